"""`leeward aep`: the yield of layouts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Option

from leeward.capacity import capacity_factor
from leeward.cli.options import CSV, Options, PhysicsOptions
from leeward.cli.output import csv_table, csv_target, note, table, write_file
from leeward.errors import InputError
from leeward.formats.layout_table import TableLayout, read_layouts
from leeward.wording import count, json_text

if TYPE_CHECKING:
    from leeward.cli.physics import Machine, Physics
    from leeward.wind import Simulation

STATED_TOLERANCE = 1e-6  # largest relative difference between stated and computed AEP


class AepOptions(Options):
    """Print the annual energy production, capacity factor and wake loss of each layout in a CSV file.

    A file with only the columns x_m and y_m is one layout. A file with several layouts needs the column `key`, or
    `farm_idx`, `type_idx` and `seed`. Each layout is evaluated on its own. Columns that contradict each other or the
    turbine are an error.

    Exit codes: 0 printed; 1 other errors; 2 usage error; 4 FILE cannot be written.
    """

    layout: Path | None = Argument(
        None,
        help="CSV file with the columns x_m and y_m and one row per turbine; for several layouts, a file that "
        "`leeward export` wrote. Default: a built-in example.",
    )
    physics: PhysicsOptions
    csv_file: str | None = CSV(help="Write one row per layout to this CSV file; - prints them.")
    as_json: bool = Option(False, "--json", help="Print all numbers as JSON.")


@dataclass(frozen=True)
class Yield:
    """A layout and its yield over a year. values: the row of a table, by column."""

    layout: TableLayout
    machine: "Machine"
    simulation: "Simulation"
    values: dict[str, Any]


def aep(options: AepOptions) -> None:
    """Print the yield of each layout."""
    target = csv_target(options.csv_file, options.as_json)
    if options.layout is None and options.physics.campaign is not None:
        raise InputError("--campaign is given without a layout; give a CSV file of layouts too")
    from leeward.cli.physics import Physics

    physics = Physics(options.physics)
    where, layouts = _layouts(options.layout)
    yields = _yields(physics, where, layouts)
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
        _print_one(where, yields[0], physics)
    else:
        _print_table(where, rows, physics)
    if target is not None:
        print(f"written: {target}")


def _layouts(path: Path | None) -> tuple[str, list[TableLayout]]:
    if path is not None:
        return str(path), read_layouts(path)
    from leeward.campaign import builtin

    name, _, x, y = builtin.example_layout()
    return f"{name} (built-in example layout)", [TableLayout("", x.tolist(), y.tolist())]


def _yields(physics: "Physics", where: str, layouts: Sequence[TableLayout]) -> list[Yield]:
    physics.demand_one_type(layouts, where)
    # raise every input error before any computation
    machines = [physics.machine_of(layout, where) for layout in layouts]
    return [_yield_of(layout, machine, where) for layout, machine in zip(layouts, machines, strict=True)]


def _yield_of(layout: TableLayout, machine: "Machine", where: str) -> Yield:
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
        "n_turbines": len(layout.x),
        "installed_mw": installed_mw,
        "aep_gwh": simulation.total_aep_gwh,
        "gross_aep_gwh": float(simulation.gross_aep_gwh.sum()),
        "capacity_factor": capacity_factor(simulation.total_aep_gwh, installed_mw),
        "wake_loss": simulation.total_wake_loss,
        "wake_model": machine.farm.wake_model.name,
    }
    return Yield(layout, machine, simulation, values)


def _notes(where: str, found: Sequence[Yield]) -> Iterator[str]:
    """Yield warnings: several layouts read as one, or an AEP that differs from the stated one."""
    first = found[0]
    if not first.layout.name and _are_close(first.layout.x, first.layout.y, first.machine.turbine.rotor_diameter_m):
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


def _print_one(where: str, found: Yield, physics: "Physics") -> None:
    machine, loss, values = found.machine, found.simulation.wake_loss, found.values
    worst, best = int(loss.argmax()), int(loss.argmin())
    print(where if values["layout"] == where else f"{where}: {values['layout']}")
    rated, diameter = machine.rated_power_mw, machine.turbine.rotor_diameter_m
    print(f"  turbines        {len(loss):10d}  x {rated:g} MW, rotor {diameter:g} m{physics.choice}")
    print(f"  installed       {values['installed_mw']:10.2f}  MW")
    print(f"  wake model      {values['wake_model']:>10}")
    print(f"  wind            {physics.wind}")
    print(f"  AEP             {values['aep_gwh']:10.2f}  GWh")
    print(f"  without wakes   {values['gross_aep_gwh']:10.2f}  GWh")
    print(f"  capacity factor {values['capacity_factor']:10.2%}")
    print(f"  wake loss       {values['wake_loss']:z10.2%}")
    print(f"  per turbine     {loss[best]:z10.2%}  (turbine {best}) to {loss[worst]:z.2%} (turbine {worst})")


def _print_table(where: str, rows: Sequence[dict[str, Any]], physics: "Physics") -> None:
    print(f"{where}: {len(rows)} layouts, wake model {rows[0]['wake_model']}, wind {physics.wind}")
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
