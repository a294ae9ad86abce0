"""`leeward optimise`: from an area to a layout."""

import contextlib
import math
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Exit, Option

from leeward.cli.options import Options
from leeward.cli.output import EXIT_INTERRUPTED, check_files, csv_table, write_file
from leeward.cli.physics import Machine, Physics, PhysicsOptions
from leeward.cli.progress import write_over
from leeward.cli.sources import Names
from leeward.errors import InputError, write_error
from leeward.wording import listed

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.formats.layout_table import TableLayout
    from leeward.layout import Area, LayoutProblem, Progress, SmartStart, Solution

BUILTIN_TURBINES = 66  # of 15 MW: a farm of 1 GW
PROGRESS_EVERY_S = 0.1


class AreaOptions(Options):
    """Where turbines may stand, and how far apart."""

    area: Path | None = Option(
        None, help="GeoJSON file with the area. Without it: the areas of the campaign, or the built-in ones."
    )
    farm_idx: str | None = Option(
        None,
        "--farm-idx",
        "--farm",
        help="Choose the area by its farm_idx, by its position in a file that has none, or by its name.",
    )
    area_name: str | None = Option(None, help="Choose the area by its name: its property name, Name, NAME or title.")
    crs: str | None = Option(None, help="Projected coordinate system of the area, for example EPSG:25831.")
    turbines: int | None = Option(
        None, help=f"How many. Default: as many as --start or the campaign's farm has, or {BUILTIN_TURBINES}."
    )
    spacing_m: float | None = Option(None, help="How far apart turbines must be, m.")
    spacing_diameters: float | None = Option(
        None, help="The same in rotor diameters. Default: that of the campaign, or 3; without --spacing-m."
    )

    def spacing(self, campaign: "Campaign | None") -> dict[str, float | None]:
        """Return the least distance of two turbines, as LayoutProblem takes it."""
        if self.spacing_m is not None or self.spacing_diameters is not None:
            return {"spacing_m": self.spacing_m, "spacing_diameters": self.spacing_diameters}
        return {"spacing_diameters": 3.0} if campaign is None else dict(campaign.physics.spacing)


class SearchOptions(Options):
    """How a layout is found."""

    seed: int = Option(0, help="The same seed gives the same layout.")
    recipe: str | None = Option(
        None,
        help="smart_start+refine (default), smart_start, random+refine, random, start+refine (default with "
        "--start), start, or your own function (problem, seed) -> (x, y) as module:function; the module may lie "
        "in the current folder.",
    )
    effort: str = Option("normal", help="fast, normal or thorough: how much work.")
    time_budget_s: float | None = Option(
        None, help="End after so many seconds instead; the result then depends on the machine's speed."
    )
    work: int | None = Option(None, help="End after so many pair evaluations instead, as an earlier run printed them.")
    grid_size: int = Option(18, help="SmartStart: points of the grid, a side.")
    random_pct: float = Option(
        30.0, help="SmartStart: pick at random among the best so many per cent of the free points."
    )


class StartOptions(Options):
    """The layout to start from."""

    start: Path | None = Option(None, help="CSV file with the layout to start from: columns x_m and y_m.")
    key: str | None = Option(
        None, help='Of a --start file with several layouts: which one, farm0_t5_s3, 0,5,3 or "farm/type/3".'
    )
    repair_start: bool = Option(
        False, "--repair-start", help="Move turbines of --start inside and apart first, if need be."
    )


class OptimiseOptions(Options):
    """Find one layout with a high annual energy production, without a campaign.

    Without any option: 66 turbines of 15 MW in the first built-in area, three diameters apart. The layout satisfies all
    constraints.

    Ctrl-C ends the search with the best layout so far, which is written as usual; a second one abandons it.

    With --campaign the area, the number of turbines and the spacing are those of a farm of the campaign, too; recipe,
    effort and seed are those of the options. Of a --start file that `leeward export` wrote, the farm and the turbine
    type are those of the layout.

    Exit codes: 0 found; 130 ended by Ctrl-C; 1 errors, for example no room for the turbines; 2 wrong use; 4 a file
    cannot be written.
    """

    area: AreaOptions
    physics: PhysicsOptions
    search: SearchOptions
    start: StartOptions
    output: Path | None = Option(None, "--output", "-o", help="CSV file for the layout. An old one is replaced.")
    picture: Path | None = Option(None, help="Picture of the layout: .png, .svg or .pdf. An old one is replaced.")


def optimise(options: OptimiseOptions) -> None:
    """Find a layout, write it and print what it yields."""
    output, picture = options.output, options.picture
    check_files(output, picture)
    from leeward.layout import SmartStart, StopReason

    smart_start = SmartStart(options.search.grid_size, options.search.random_pct)
    physics = Physics(options.physics)
    begin = _start(options.start, options.physics.campaign)
    machine = physics.machine_of(begin, str(options.start.start or "the turbine"))
    title, problem = _problem(options, physics.campaign, machine, begin)
    given: tuple[Any, Any] | None = None if begin is None else (begin.x, begin.y)
    if given is not None and options.start.repair_start:
        given = problem.repaired(*given)
    solution = _optimised(problem, options.search, smart_start, given)
    if output is not None:  # before anything is printed, which may fail where nobody reads it
        _write_layout(output, problem, solution)
    if picture is not None:
        _write_picture(picture, problem, solution)
    _print_solution(title, problem, solution)
    for path in filter(None, (output, picture)):
        _say("written", "", str(path))
    if output is None:
        _say("not written", "", "the layout: give --output layout.csv to keep it")
    if solution.stop_reason is StopReason.REQUESTED:
        raise Exit(EXIT_INTERRUPTED)


def _problem(
    options: OptimiseOptions, campaign: "Campaign | None", machine: Machine, begin: "TableLayout | None"
) -> tuple[str, "LayoutProblem"]:
    """Return what to call the area, and the problem. begin: the layout to start from."""
    from leeward.layout import LayoutProblem

    given = options.area
    turbines = BUILTIN_TURBINES
    if campaign is not None and given.area is None:
        farm = _farm(campaign, given.farm_idx or given.area_name, options.physics.campaign, begin)
        title, where = f"{campaign.name}, {campaign.farms[farm]}", campaign.physics.area(farm)
        if machine.type_idx is not None:
            turbines = campaign.physics.n_turbines(farm, machine.type_idx)
    else:
        title, where = _area(given)
    if begin is not None:
        turbines = len(begin.x)
    if given.turbines is not None:
        turbines = given.turbines
    return title, LayoutProblem(machine.farm, where, turbines, **given.spacing(campaign))


def _start(options: StartOptions, campaign: str | None) -> "TableLayout | None":
    """Return the layout to start from: the only one of its file, or the one that --key names."""
    path, key = options.start, options.key
    if path is None:
        if key is not None:
            raise InputError("--key chooses a layout of a file; give --start too")
        return None
    from leeward.formats.layout_table import read_layouts

    layouts = read_layouts(path)
    if key is not None:
        names = [layout.name for layout in layouts]
        wanted = key if key in names else str(Names(campaign, None).keys([key])[0])
        layouts = [layout for layout in layouts if layout.name == wanted]
        if not layouts:
            raise InputError(f"{path}: no layout {wanted} in it; expected one of {listed(names, 5)}")
    if len(layouts) > 1:
        some = listed([layout.name for layout in layouts], 3)
        raise InputError(f"{path}: {len(layouts)} layouts in it ({some}); choose one with --key")
    return layouts[0]


def _farm(campaign: "Campaign", text: str | None, named: str | None, begin: "TableLayout | None") -> int:
    """Return which farm of the campaign it is: the one that was named, else that of the layout, else the only one."""
    if text is not None:
        found = Names(named, None).farms([text])[0]
    elif begin is not None and begin.farm_idx is not None:
        found = begin.farm_idx
    elif len(campaign.farms) == 1:
        found = next(iter(campaign.farms))
    else:
        farms = listed([f"{number} {name!r:.40}" for number, name in campaign.farms.items()], 10)
        raise InputError(f"{campaign.name} has {len(campaign.farms)} farms; choose one with --farm: {farms}")
    campaign.physics.area(found)  # says which there are
    return found


def _area(options: AreaOptions) -> tuple[str, "Area"]:
    """Return what to call the area, and the area."""
    from leeward.campaign.names import word_of

    path, farm, name, crs = options.area, options.farm_idx, options.area_name, options.crs
    if path is None:
        if name is not None or crs is not None:
            raise InputError("--area-name and --crs are about a file; expected --area too, or only --farm-idx")
        from leeward.campaign import builtin

        number = 0 if farm is None else Names("danish-energy-island", None).farms([farm])[0]
        return f"built-in area {number}", builtin.area(number)
    from leeward.layout import Area

    farm_idx: int | None = None
    if farm is not None:
        word = word_of(farm)
        if not word.quoted and word.text.isdecimal():
            farm_idx = int(word.text)
        elif name is not None:
            raise InputError("--farm and --area-name both give a name; expected one of them")
        else:
            name = word.text
    which = "".join(f", {value}" for value in (farm_idx, name) if value is not None)
    return f"{path}{which}", Area.from_geojson(path, farm_idx=farm_idx, name=name, crs=crs)


def _optimised(
    problem: "LayoutProblem", options: SearchOptions, smart_start: "SmartStart", start: tuple[Any, Any] | None
) -> "Solution":
    """Call the library, with a line of progress, and a Ctrl-C that asks it to stop. start: x and y, m."""
    from leeward import layout

    recipe = options.recipe or ("smart_start+refine" if start is None else "start+refine")
    own = ":" in recipe
    if own:
        sys.path.insert(0, os.getcwd())  # as `python -m` has it
    line = _ProgressLine()
    try:
        line.say("preparing")
        with _interrupt_asks(not own) as asked:  # a custom function cannot be asked

            def watch(progress: "Progress") -> bool:
                line.show(progress)
                return asked.is_set() and math.isfinite(progress.best_aep_gwh)  # there must be something to return

            return layout.optimise(
                problem,
                options.seed,
                recipe=recipe,
                effort=options.effort,
                time_budget_s=options.time_budget_s,
                work=options.work,
                smart_start=smart_start if recipe.startswith("smart_start") else None,
                start=start,
                callback=watch,
            )
    except KeyboardInterrupt as interrupt:
        line.clear()
        print("leeward: abandoned; nothing was written", file=sys.stderr)
        raise Exit(EXIT_INTERRUPTED) from interrupt
    finally:
        line.clear()


@contextlib.contextmanager
def _interrupt_asks(is_wanted: bool) -> Iterator[threading.Event]:
    """Let the first Ctrl-C set an event, as a request to stop; the next one interrupts as ever."""
    asked = threading.Event()

    def ask(*_: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    # where somebody has it ignored, as for a job in the background, it stays so
    if is_wanted and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        if signal.getsignal(signal.SIGINT) == ask:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class _ProgressLine:
    """One line on the terminal that is written over and over; nothing where there is no terminal."""

    def __init__(self) -> None:
        self._wanted = sys.stderr.isatty()
        self._began = self._last = time.monotonic()

    def show(self, progress: "Progress") -> None:
        now = time.monotonic()
        if now - self._last < PROGRESS_EVERY_S:
            return
        self._last = now
        best = f"{progress.best_aep_gwh:.2f} GWh" if math.isfinite(progress.best_aep_gwh) else "placing turbines"
        self.say(f"{now - self._began:6.1f} s   {progress.phase:<12} step {progress.step:<7} {best}")

    def say(self, text: str) -> None:
        if self._wanted:
            write_over(text[: shutil.get_terminal_size().columns - 1])

    def clear(self) -> None:
        self.say("")


def _print_solution(title: str, problem: "LayoutProblem", solution: "Solution") -> None:
    turbine = problem.turbines[0]
    room = float(problem.min_distances_m[: problem.n_turbines].max())
    closest = f"{solution.min_spacing_m:.1f}" if math.isfinite(solution.min_spacing_m) else "-"
    print(f"{title}, {problem.area.area_m2 / 1e6:.1f} km2")
    _say("turbines", problem.n_turbines, f"x {turbine.rated_power_mw:g} MW, rotor {turbine.rotor_diameter_m:g} m")
    for phase in solution.phases:
        _say(f"after {phase.name}", f"{phase.aep_gwh:.2f}", f"GWh  {phase.seconds:8.1f} s")
    spent = f"{solution.seconds:8.1f} s, {solution.steps} steps, work {solution.work}"
    _say("AEP", f"{solution.aep_gwh:.2f}", f"GWh  {spent}")
    _say("wake loss", f"{solution.wake_loss:z.2%}")
    _say("closest spacing", closest, f"m, at least {room:g} m")
    _say("recipe", "", f"{solution.recipe}, effort {solution.effort}, seed {solution.seed}")
    _say("stopped", "", solution.stop_reason.value)
    for note in solution.notes:
        _say("note", "", note)


def _say(what: str, value: object, more: str = "") -> None:
    print(f"  {what:<18}{value:>10}  {more}".rstrip() if value != "" else f"  {what:<18}  {more}")


def _write_layout(path: Path, problem: "LayoutProblem", solution: "Solution") -> None:
    """One line per turbine, coordinates to the last digit."""
    simulation = problem.farm.simulate(solution.x, solution.y)
    columns = (solution.x, solution.y, simulation.aep_gwh, simulation.wake_loss)
    rows = (
        [i, x, y, round(aep_gwh, 6), round(loss, 6)]
        for i, (x, y, aep_gwh, loss) in enumerate(zip(*(c.tolist() for c in columns), strict=True))
    )
    write_file(path, csv_table(["turbine", "x_m", "y_m", "aep_gwh", "wake_loss"], rows))


def _write_picture(path: Path, problem: "LayoutProblem", solution: "Solution") -> None:
    """The layout beside the one that the refinement began with."""
    from leeward.plots import save_layout_picture

    start = None if solution.start is None else (*solution.start, solution.phases[0].aep_gwh)
    try:
        save_layout_picture(path, problem, solution, start)
    except OSError as error:
        raise write_error(path, error) from error
