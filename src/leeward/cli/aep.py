"""`leeward aep`: the yield of layouts."""

import collections
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Option

from leeward.capacity import capacity_factor
from leeward.cli.options import CSV, Options, PhysicsOptions, given
from leeward.cli.output import csv_table, csv_target, note, table, write_file
from leeward.errors import InputError
from leeward.formats.layout_table import TableLayout, read_layouts
from leeward.wording import count, json_text

if TYPE_CHECKING:
    from leeward.cli.physics import Machine
    from leeward.wind import Simulation

STATED_TOLERANCE = 1e-6  # largest relative difference between stated and computed AEP


class AepOptions(Options):
    """Print the annual energy production, capacity factor and wake loss of each layout in a CSV file or windIO plant.

    A file with only the columns x_m and y_m is one layout. A file with several layouts needs the column `key`, or
    `farm_idx`, `type_idx` and `seed`. Each layout is evaluated on its own. Columns that contradict each other or the
    turbine are an error.

    A windIO plant has everything in it: wind, turbines, wake model and positions. Its first layout is evaluated; the
    others are neighbours.

    Exit codes: 0 printed; 1 other errors; 2 usage error; 4 FILE cannot be written.
    """

    layout: Path | None = Argument(
        None,
        help="CSV file with the columns x_m and y_m and one row per turbine; for several layouts, a file that "
        "`leeward export` wrote; or a windIO plant (.yaml). Default: a built-in example.",
    )
    physics: PhysicsOptions
    csv_file: str | None = CSV(help="Write one row per layout to this CSV file; - prints them.")
    as_json: bool = Option(False, "--json", help="Print all numbers as JSON.")
    wifa_output: Path | None = Option(
        None,
        metavar="FOLDER",
        help="Write power and wind speed of each turbine of a windIO plant to this folder, as WIFA's tools do: a "
        "NetCDF file, the plant, and output.yaml.",
    )


@dataclass(frozen=True)
class Yield:
    """A layout and its yield over a year. machines: its turbines, as text. values: the row of a table, by column."""

    layout: TableLayout
    rotor_diameter_m: float
    machines: str
    simulation: "Simulation"
    values: dict[str, Any]


def aep(options: AepOptions) -> None:
    """Print the yield of each layout."""
    target = csv_target(options.csv_file, options.as_json)
    if options.layout is None and options.physics.campaign is not None:
        raise InputError("--campaign is given without a layout; give a CSV file of layouts too")
    from leeward.readers.windio_plant import is_plant

    if options.layout is not None and is_plant(options.layout):
        where, wind, yields = _plant_yield(options.layout, options)
    elif options.wifa_output is not None:
        raise InputError("--wifa-output needs a windIO plant; give its file instead of a CSV file")
    else:
        where, wind, yields = _table_yields(options)
    for remark in _notes(where, yields):
        note(remark)
    rows = [each.values for each in yields]
    text = csv_table(list(rows[0]), [list(row.values()) for row in rows])
    if target is not None:
        write_file(target, text)
    if options.as_json:
        print(json_text({"layouts": rows}))
    elif options.csv_file == "-":
        print(text, end="")
    elif len(yields) == 1:
        _print_one(where, yields[0], wind)
    else:
        _print_table(where, rows, wind)
    for written in filter(None, (target, options.wifa_output)):
        (note if options.as_json else print)(f"written: {written}")


def _table_yields(options: AepOptions) -> tuple[str, str, list[Yield]]:
    """Return the name of the file, the source of the wind, and the yield of each layout of a CSV file."""
    from leeward.cli.physics import Physics

    physics = Physics(options.physics)
    for remark in physics.notes:
        note(remark)
    where, layouts = _layouts(options.layout)
    physics.demand_one_type(layouts, where)
    # raise every input error before any computation
    machines = [physics.machine_of(layout, where) for layout in layouts]
    pairs = zip(layouts, machines, strict=True)
    return where, physics.wind, [_yield_of(layout, machine, where, physics.choice) for layout, machine in pairs]


def _layouts(path: Path | None) -> tuple[str, list[TableLayout]]:
    if path is not None:
        return str(path), read_layouts(path)
    from leeward.campaign import builtin

    name, _, x, y = builtin.example_layout()
    return f"{name} (built-in example layout)", [TableLayout("", x.tolist(), y.tolist())]


def _plant_yield(path: Path, options: AepOptions) -> tuple[str, str, list[Yield]]:
    """Return the name of the plant, the source of its wind, and its yield. Write the files of --wifa-output."""
    from leeward.campaign.plants import plant_farm
    from leeward.readers.windio_plant import read_plant
    from leeward.wind import Turbine

    others = list(given(vars(options.physics)))
    if others:
        raise InputError(f"{path} is a windIO plant, which has everything in it; omit --{others[0].replace('_', '-')}")
    plant = read_plant(path)
    farm, own = plant_farm(plant), plant.layouts[0]
    for remark in (*plant.remarks, *farm.site.notes):
        note(f"{path.name}: {remark}")
    try:
        simulation = farm.simulate(own.x, own.y, per_condition=options.wifa_output is not None)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    types = [farm.turbine] * len(own.x) if isinstance(farm.turbine, Turbine) else list(farm.turbine)
    each = collections.Counter(types)
    machines = "; ".join(_machines(number, kind.rated_power_mw, kind.rotor_diameter_m) for kind, number in each.items())
    values = {
        "layout": plant.name,
        "turbine_type": ", ".join(turbine.name for turbine in each),
        **_figures(simulation, sum(turbine.rated_power_mw for turbine in types), farm.wake_model.name),
    }
    found = Yield(
        TableLayout(plant.name, own.x, own.y), min(kind.rotor_diameter_m for kind in each), machines, simulation, values
    )
    if _are_close(own.x, own.y, found.rotor_diameter_m):
        note(f"{path.name}: some turbines are closer than a rotor diameter; are the coordinates in metres?")
    if options.wifa_output is not None:
        from leeward.export.wifa import write_wifa_output

        write_wifa_output(options.wifa_output, plant, simulation)
    return str(path), farm.site.describe(), [found]


def _yield_of(layout: TableLayout, machine: "Machine", where: str, choice: str) -> Yield:
    try:
        simulation = machine.farm.simulate(layout.x, layout.y)
    except InputError as error:
        raise InputError(f"{where}{f', {layout.name}' if layout.name else ''}: {error}") from error
    installed_mw = len(layout.x) * machine.rated_power_mw
    values = {
        "layout": layout.name or where,
        "farm_idx": layout.farm_idx,
        "type_idx": layout.type_idx if machine.type_idx is None else machine.type_idx,
        "seed": layout.seed,
        "turbine_type": layout.turbine_type or machine.turbine.name,
        **_figures(simulation, installed_mw, machine.farm.wake_model.name),
    }
    diameter = machine.turbine.rotor_diameter_m
    text = _machines(len(layout.x), machine.rated_power_mw, diameter) + choice
    return Yield(layout, diameter, text, simulation, values)


def _figures(simulation: "Simulation", installed_mw: float, wake_model: str) -> dict[str, Any]:
    return {
        "n_turbines": len(simulation.aep_gwh),
        "installed_mw": installed_mw,
        "aep_gwh": simulation.total_aep_gwh,
        "gross_aep_gwh": float(simulation.gross_aep_gwh.sum()),
        "capacity_factor": capacity_factor(simulation.total_aep_gwh, installed_mw),
        "wake_loss": simulation.total_wake_loss,
        "wake_model": wake_model,
    }


def _machines(number: int, rated_power_mw: float, rotor_diameter_m: float) -> str:
    return f"{number:10d}  x {rated_power_mw:g} MW, rotor {rotor_diameter_m:g} m"


def _notes(where: str, found: Sequence[Yield]) -> Iterator[str]:
    """Yield warnings: several layouts read as one, or an AEP that differs from the stated one."""
    first = found[0]
    if not first.layout.name and _are_close(first.layout.x, first.layout.y, first.rotor_diameter_m):
        yield (
            f"{where}: some turbines are closer than a rotor diameter; if the file holds several layouts, add the "
            "column key, or farm_idx, type_idx and seed, to tell them apart"
        )
    others = [
        (stated, each.values)
        for each in found
        if (stated := each.layout.layout_aep_gwh) is not None
        and not math.isclose(stated, each.values["aep_gwh"], rel_tol=STATED_TOLERANCE)
    ]
    if others:
        stated, values = others[0]
        yield (
            f"{where}: the file states a different AEP for {len(others)} of {count(len(found), 'layout')}, for example "
            f"{stated:.2f} GWh instead of {values['aep_gwh']:.2f} for {values['layout']}; it was computed with "
            "different wind, turbines, wake model or neighbours; give the campaign of the file with --campaign"
        )


def _are_close(x: Sequence[float], y: Sequence[float], distance_m: float) -> bool:
    """Return whether any two points are closer than distance_m. x, y: m."""
    import shapely

    if len(set(zip(x, y, strict=True))) < len(x):
        return True
    points = shapely.points(x, y)
    options = {"max_distance": distance_m, "exclusive": True, "return_distance": True, "all_matches": False}
    _, distances_m = shapely.STRtree(points).query_nearest(points, **options)
    return bool((distances_m < distance_m).any())


def _print_one(where: str, found: Yield, wind: str) -> None:
    loss, values = found.simulation.wake_loss, found.values
    worst, best = int(loss.argmax()), int(loss.argmin())
    print(where if values["layout"] == where else f"{where}: {values['layout']}")
    print(f"  turbines        {found.machines}")
    print(f"  installed       {values['installed_mw']:10.2f}  MW")
    print(f"  wake model      {values['wake_model']:>10}")
    print(f"  wind            {wind}")
    print(f"  AEP             {values['aep_gwh']:10.2f}  GWh")
    print(f"  without wakes   {values['gross_aep_gwh']:10.2f}  GWh")
    print(f"  capacity factor {values['capacity_factor']:10.2%}")
    print(f"  wake loss       {values['wake_loss']:z10.2%}")
    print(f"  per turbine     {loss[best]:z10.2%}  (turbine {best}) to {loss[worst]:z.2%} (turbine {worst})")


def _print_table(where: str, rows: Sequence[dict[str, Any]], wind: str) -> None:
    print(f"{where}: {len(rows)} layouts, wake model {rows[0]['wake_model']}, wind {wind}")
    # column: header and format
    columns = {
        "layout": ("layout", ""),
        "turbine_type": ("turbine", ""),
        "n_turbines": ("turbines", ""),
        "installed_mw": ("MW", ".2f"),
        "aep_gwh": ("AEP GWh", ".2f"),
        "capacity_factor": ("capacity factor", ".2%"),
        "wake_loss": ("wake loss", "z.2%"),
    }
    cells = ([format(values[name], form) for name, (_, form) in columns.items()] for values in rows)
    print(table(cells, header=[header for header, _ in columns.values()], right=range(2, 7)))
