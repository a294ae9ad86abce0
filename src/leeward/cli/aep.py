"""`leeward aep`: the yield of layouts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Option

from leeward.capacity import capacity_factor
from leeward.cli.options import CSV, Options
from leeward.cli.output import csv_table, csv_target, note, table, write_file
from leeward.cli.physics import Physics, PhysicsOptions
from leeward.errors import InputError
from leeward.wording import count, json_text

if TYPE_CHECKING:
    from leeward.cli.physics import Machine
    from leeward.formats.layout_table import TableLayout
    from leeward.wind import Simulation

STATED_TOLERANCE = 1e-6  # relative
COLUMNS = ["layout", "farm_idx", "type_idx", "seed", "turbine_type", "n_turbines", "installed_mw", "aep_gwh"]
COLUMNS += ["gross_aep_gwh", "capacity_factor", "wake_loss", "wake_model"]


class AepOptions(Options):
    """Print the annual energy production, capacity factor and wake loss of each layout in a CSV file.

    A file with only x_m and y_m is one farm. A file with several layouts needs the column `key`, or `farm_idx`,
    `type_idx` and `seed`. Each layout is evaluated on its own. Columns that contradict each other or the turbine are
    an error.

    Exit codes: 0 printed; 1 other errors; 2 usage error; 4 FILE cannot be written.
    """

    layout: Path | None = Argument(
        None,
        help="CSV file with the columns x_m and y_m and one row per turbine; for several layouts, a file that "
        "`leeward export` wrote. Default: a built-in example.",
    )
    physics: PhysicsOptions
    csv_file: str | None = CSV(help="Write one row per layout to this CSV file; - prints it.")
    as_json: bool = Option(False, "--json", help="Print all numbers as JSON.")


@dataclass(frozen=True)
class Yield:
    """A layout and its yield over a year. name: of the layout, or of the file if the layout has none."""

    name: str
    layout: "TableLayout"
    machine: "Machine"
    simulation: "Simulation"

    @property
    def installed_mw(self) -> float:
        return len(self.layout.x) * self.machine.rated_power_mw

    @property
    def capacity_factor(self) -> float:
        """Return the AEP as a share of what the installed power would yield if it ran all year."""
        return capacity_factor(self.simulation.total_aep_gwh, self.installed_mw)

    @property
    def differs(self) -> bool:
        """Return whether the file states a different AEP."""
        stated = self.layout.layout_aep_gwh
        return stated is not None and not math.isclose(stated, self.simulation.total_aep_gwh, rel_tol=STATED_TOLERANCE)

    @property
    def row(self) -> list[object]:
        """Return the values in the order of COLUMNS."""
        layout, machine, simulation = self.layout, self.machine, self.simulation
        type_idx = layout.type_idx if machine.type_idx is None else machine.type_idx
        return [
            *(self.name, layout.farm_idx, type_idx, layout.seed, layout.turbine_type or machine.turbine.name),
            *(len(layout.x), self.installed_mw, simulation.total_aep_gwh, float(simulation.gross_aep_gwh.sum())),
            *(self.capacity_factor, simulation.total_wake_loss, machine.farm.wake_model.name),
        ]


def aep(options: AepOptions) -> None:
    """Print the yield of each layout."""
    target = csv_target(options.csv_file, options.as_json)
    if options.layout is None and options.physics.campaign is not None:
        raise InputError("--campaign is given without a layout; give a CSV file of layouts too")
    physics = Physics(options.physics)
    where, layouts = _layouts(options.layout)
    yields = _yields(physics, where, layouts)
    for remark in _notes(where, yields):
        note(remark)
    rows = [each.row for each in yields]
    if target is not None:
        write_file(target, csv_table(COLUMNS, rows))
    if options.as_json:
        print(json_text({"layouts": [dict(zip(COLUMNS, row, strict=True)) for row in rows]}))
    elif options.csv_file == "-":
        print(csv_table(COLUMNS, rows), end="")
    elif len(yields) == 1:
        _print_one(where, yields[0])
    else:
        _print_table(where, yields)
    if target is not None:
        print(f"written: {target}")


def _layouts(path: Path | None) -> "tuple[str, list[TableLayout]]":
    from leeward.formats.layout_table import TableLayout, read_layouts

    if path is not None:
        return str(path), read_layouts(path)
    from leeward.campaign import builtin

    name, _, x, y = builtin.example_layout()
    return f"{name} (built-in example layout)", [TableLayout("", x.tolist(), y.tolist())]


def _yields(physics: "Physics", where: str, layouts: "Sequence[TableLayout]") -> list[Yield]:
    physics.demand_one_type(list(layouts), where)
    machines = [physics.machine_of(layout, where) for layout in layouts]  # finds every input error before any work
    found = []
    for layout, machine in zip(layouts, machines, strict=True):
        try:
            simulation = machine.farm.simulate(layout.x, layout.y)
        except InputError as error:
            raise InputError(f"{where}{f', {layout.name}' if layout.name else ''}: {error}") from error
        found.append(Yield(layout.name or where, layout, machine, simulation))
    return found


def _notes(where: str, found: Sequence[Yield]) -> Iterator[str]:
    """Yield warnings: several layouts read as one, or an AEP that differs from the stated one."""
    first = found[0]
    if not first.layout.name and are_close(first.layout.x, first.layout.y, first.machine.turbine.rotor_diameter_m):
        yield (
            f"{where}: some turbines are closer than a rotor diameter; if the file holds several layouts, add the "
            "column key, or farm_idx, type_idx and seed, to tell them apart"
        )
    others = [each for each in found if each.differs]
    if others:
        stated, computed = others[0].layout.layout_aep_gwh, others[0].simulation.total_aep_gwh
        yield (
            f"{where}: the file states a different AEP for {len(others)} of {count(len(found), 'layout')}, for example "
            f"{stated:.2f} GWh instead of {computed:.2f} for {others[0].name}: it was computed with other wind, "
            "turbines, wake model or neighbours; use --campaign to take those of its campaign"
        )


def are_close(x: Sequence[float], y: Sequence[float], distance_m: float) -> bool:
    """Return whether any two points are closer than distance_m. x, y: m."""
    import numpy as np

    order = np.argsort(x)
    east, north = np.asarray(x, dtype=float)[order], np.asarray(y, dtype=float)[order]
    for step in range(1, len(east)):  # compare each point with the next ones to the east until they are too far away
        east_apart = east[step:] - east[:-step]
        if not (east_apart < distance_m).any():
            return False
        if (np.hypot(east_apart, north[step:] - north[:-step]) < distance_m).any():
            return True
    return False


def _print_one(where: str, found: Yield) -> None:
    turbine, simulation = found.machine.turbine, found.simulation
    loss = simulation.wake_loss
    worst, best = int(loss.argmax()), int(loss.argmin())
    print(where if found.name == where else f"{where}: {found.name}")
    rated, diameter = found.machine.rated_power_mw, turbine.rotor_diameter_m
    print(f"  turbines        {len(loss):10d}  x {rated:g} MW, rotor {diameter:g} m{found.machine.choice}")
    print(f"  installed       {found.installed_mw:10.2f}  MW")
    print(f"  wake model      {found.machine.farm.wake_model.name:>10}")
    print(f"  wind            {found.machine.wind}")
    print(f"  AEP             {simulation.total_aep_gwh:10.2f}  GWh")
    print(f"  without wakes   {simulation.gross_aep_gwh.sum():10.2f}  GWh")
    print(f"  capacity factor {found.capacity_factor:10.2%}")
    print(f"  wake loss       {simulation.total_wake_loss:z10.2%}")
    print(f"  per turbine     {loss[best]:z10.2%}  (turbine {best}) to {loss[worst]:z.2%} (turbine {worst})")


def _print_table(where: str, found: Sequence[Yield]) -> None:
    machine = found[0].machine
    print(f"{where}: {len(found)} layouts, wake model {machine.farm.wake_model.name}, wind {machine.wind}")
    header = ["layout", "turbine", "turbines", "MW", "AEP GWh", "capacity factor", "wake loss"]
    rows = [
        [
            *(each.name, each.layout.turbine_type or each.machine.turbine.name),
            *(len(each.layout.x), f"{each.installed_mw:.2f}", f"{each.simulation.total_aep_gwh:.2f}"),
            *(f"{each.capacity_factor:.2%}", f"{each.simulation.total_wake_loss:z.2%}"),
        ]
        for each in found
    ]
    print(table(rows, header=header, right=range(2, 7)))
