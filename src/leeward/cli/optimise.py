"""`leeward optimise`: find a layout for an area."""

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

from leeward import layout
from leeward.cli.options import Options, PhysicsOptions, given
from leeward.cli.output import EXIT_INTERRUPTED, check_files, csv_table, is_terminal, note, write_file
from leeward.cli.progress import write_over
from leeward.cli.sources import Names
from leeward.errors import InputError
from leeward.formats.layout_table import TableLayout, read_layouts
from leeward.wording import listed

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.cli.physics import Machine

BUILTIN_TURBINES = 66  # of 15 MW each, about 1 GW in total
PROGRESS_EVERY_S = 0.1


class AreaOptions(Options):
    """Area and spacing of the turbines."""

    area: Path | None = Option(
        None,
        help="File with the area: GeoJSON, GeoPackage, Shapefile, KML or windIO. Default: the areas of the campaign, "
        "or the built-in ones.",
    )
    farm_idx: str | None = Option(
        None,
        "--farm-idx",
        "--farm",
        help="Area, by its farm_idx, by its position if the file has no farm_idx, or by its name. Default: the only "
        "area, or the first built-in one.",
    )
    area_name: str | None = Option(None, help="Area, by its name: its property name, Name, NAME or title.")
    crs: str | None = Option(
        None,
        help="Projected coordinate system of the area, such as EPSG:25831. Default: the file's, or UTM for degrees.",
    )
    turbines: int | None = Option(
        None, help=f"Number of turbines. Default: that of --start or of the campaign's farm, or {BUILTIN_TURBINES}."
    )
    spacing_m: float | None = Option(None, help="Minimum distance between turbines, m.")
    spacing_diameters: float | None = Option(
        None, help="Minimum distance in rotor diameters. Default without --spacing-m: the campaign's, or 3."
    )

    def spacing(self, campaign: "Campaign | None") -> dict[str, float | None]:
        """Return the minimum distance between turbines as arguments of LayoutProblem."""
        if self.spacing_m is not None or self.spacing_diameters is not None:
            return {"spacing_m": self.spacing_m, "spacing_diameters": self.spacing_diameters}
        return {"spacing_diameters": 3.0} if campaign is None else dict(campaign.physics.spacing)


class SearchOptions(Options):
    """Recipe and effort of the search."""

    seed: int = Option(0, help="Random seed. The same seed gives the same layout.")
    recipe: str | None = Option(
        None,
        help="smart_start+refine, smart_start, random+refine, random, start+refine, start, or a custom function "
        "(problem, seed) -> (x, y) as module:function; the module may be in the current folder. Default: "
        "smart_start+refine, or start+refine with --start.",
    )
    effort: str = Option("normal", help="Amount of work: fast, normal or thorough.")
    time_budget_s: float | None = Option(
        None, help="Time budget in seconds, instead of --effort; the result then depends on the machine's speed."
    )
    work: int | None = Option(
        None, help="Work budget in pair evaluations, as an earlier run printed it, instead of --effort."
    )
    grid_size: int = Option(18, help="SmartStart: grid points per side of the area.")
    random_pct: float = Option(30.0, help="SmartStart: pick each place at random from the best N % of the free points.")


class StartOptions(Options):
    """A layout to start from."""

    start: Path | None = Option(None, help="CSV file with the layout to start from: columns x_m and y_m, in m.")
    key: str | None = Option(
        None, help='Layout to take from a --start file with several: farm0_t5_s3, 0,5,3 or "farm/type/3".'
    )
    repair_start: bool = Option(
        False, "--repair-start", help="First move turbines of --start until they satisfy boundary and spacing."
    )


class OptimiseOptions(Options):
    """Find one layout with a high annual energy production, without a campaign.

    Without options: 66 turbines of 15 MW in the first built-in area, at least three rotor diameters apart. The layout
    satisfies all constraints.

    Ctrl-C ends the search and writes the best layout so far; a second Ctrl-C discards it.

    With --campaign, area, number of turbines and spacing come from a farm of the campaign; recipe, effort and seed come
    from the options. With a --start file that `leeward export` wrote, farm and turbine type are those of the layout.

    A windIO plant is a campaign too: `--campaign plant.yaml -o optimised.yaml` writes it with the new layout.

    Exit codes: 0 found; 130 ended by Ctrl-C; 1 other errors, for example no room for the turbines; 2 usage error; 4 a
    file cannot be written.
    """

    area: AreaOptions
    physics: PhysicsOptions
    search: SearchOptions
    start: StartOptions
    output: Path | None = Option(
        None, "--output", "-o", help="File for the layout: .csv, or .yaml for a windIO plant. An old one is replaced."
    )
    picture: Path | None = Option(None, help="Picture of the layout: .png, .svg or .pdf. An old one is replaced.")


def optimise(options: OptimiseOptions) -> None:
    """Find a layout, write it and print its yield."""
    output, picture = options.output, options.picture
    check_files(output, picture)
    from leeward.cli.physics import Physics

    smart_start = layout.SmartStart(options.search.grid_size, options.search.random_pct)
    physics = Physics(options.physics)
    for remark in physics.notes:
        note(remark)
    start = _start(options.start, options.physics.campaign)
    machine = physics.machine_of(start, str(options.start.start or "the turbine"))
    title, problem = _problem(options, physics.campaign, machine, start)
    given: tuple[Any, Any] | None = None if start is None else (start.x, start.y)
    if given is not None and options.start.repair_start:
        given = problem.repaired(*given)
    solution = _optimised(problem, options.search, smart_start, given)
    if output is not None:  # write files first: printing fails if the reader of the output is gone
        if output.suffix.lower() in (".yaml", ".yml"):
            _write_plant(output, title, problem, solution, options)
        else:
            _write_layout(output, problem, solution)
    if picture is not None:
        _write_picture(picture, problem, solution)
    _print_solution(title, problem, solution)
    for path in filter(None, (output, picture)):
        _print_row("written", "", str(path))
    if output is None:
        _print_row("not written", "", "the layout; to keep it, give --output layout.csv")
    if solution.stop_reason is layout.StopReason.REQUESTED:
        raise Exit(EXIT_INTERRUPTED)


def _problem(
    options: OptimiseOptions, campaign: "Campaign | None", machine: "Machine", start: TableLayout | None
) -> tuple[str, "layout.LayoutProblem"]:
    """Return the title of the area, and the problem. start: the layout to start from."""
    given = options.area
    turbines = BUILTIN_TURBINES
    if campaign is not None and given.area is None:
        farm = _farm(campaign, given.farm_idx or given.area_name, start)
        title, where = f"{campaign.name}, {campaign.farms[farm]}", campaign.physics.area(farm)
        kind, physics = machine.type_idx, campaign.physics
        turbines = physics.count(farm, machine.turbine) if kind is None else physics.n_turbines(farm, kind)
    else:
        title, where = _area(given)
    if start is not None:
        turbines = len(start.x)
    if given.turbines is not None:
        turbines = given.turbines
    return title, layout.LayoutProblem(machine.farm, where, turbines, **given.spacing(campaign))


def _start(options: StartOptions, campaign: str | None) -> TableLayout | None:
    """Return the layout to start from: the one that --key names, or the only one in the file."""
    path, key = options.start, options.key
    if path is None:
        if key is not None:
            raise InputError("--key is given without --start; give both")
        return None
    layouts = read_layouts(path)
    if key is not None:
        names = [one.name for one in layouts]
        name = key if key in names else str(Names(campaign, None).keys([key])[0])
        layouts = [one for one in layouts if one.name == name]
        if not layouts:
            raise InputError(f"{path}: has no layout {name}; expected one of {listed(names, 5)}")
    if len(layouts) > 1:
        some = listed([one.name for one in layouts], 3)
        raise InputError(f"{path}: holds {len(layouts)} layouts ({some}); choose one with --key")
    return layouts[0]


def _farm(campaign: "Campaign", text: str | None, start: TableLayout | None) -> int:
    """Return the farm_idx: of the farm named by text, else that of the layout, else the only one of the campaign."""
    from leeward.campaign.selection import farm_of, word_of

    if text is not None:
        found = farm_of(word_of(text), lambda: campaign)
    elif start is not None and start.farm_idx is not None:
        found = start.farm_idx
    elif len(campaign.farms) == 1:
        found = next(iter(campaign.farms))
    else:
        farms = listed([f"{number} {name!r:.40}" for number, name in campaign.farms.items()], 10)
        raise InputError(f"{campaign.name} has {len(campaign.farms)} farms; choose one with --farm: {farms}")
    campaign.physics.area(found)  # raises an error that lists the farms
    return found


def _area(options: AreaOptions) -> tuple[str, "layout.Area"]:
    from leeward.campaign.selection import word_of

    path, farm, name, crs = options.area, options.farm_idx, options.area_name, options.crs
    if path is None:
        if name is not None or crs is not None:
            raise InputError("--area-name and --crs need a file; give --area too, or use --farm-idx alone")
        from leeward.campaign import builtin

        number = 0 if farm is None else Names("danish-energy-island", None).farms([farm])[0]
        return f"built-in area {number}", builtin.area(number)
    farm_idx: int | None = None
    if farm is not None:
        word = word_of(farm)
        if not word.quoted and word.text.isdecimal():
            farm_idx = int(word.text)
        elif name is not None:
            raise InputError("--farm and --area-name both give a name; give one or the other, not both")
        else:
            name = word.text
    which = "".join(f", {value}" for value in (farm_idx, name) if value is not None)
    return f"{path}{which}", layout.Area.from_file(path, farm_idx=farm_idx, name=name, crs=crs)


def _optimised(
    problem: "layout.LayoutProblem",
    options: SearchOptions,
    smart_start: "layout.SmartStart",
    start: tuple[Any, Any] | None,
) -> "layout.Solution":
    """Search for the best layout, show the progress and return the layout. Ctrl-C ends the search. start: x, y, m."""
    recipe = options.recipe or ("smart_start+refine" if start is None else "start+refine")
    is_custom = ":" in recipe
    if is_custom:
        sys.path.insert(0, os.getcwd())  # as `python -m` does
    line = _ProgressLine()
    try:
        line.write("preparing")
        with _stop_on_interrupt(not is_custom) as stop:  # a custom function cannot be stopped early

            def callback(progress: "layout.Progress") -> bool:
                line.show(progress)
                # stop only if there is a layout to return
                return stop.is_set() and math.isfinite(progress.best_aep_gwh)

            return layout.optimise(
                problem,
                options.seed,
                recipe=recipe,
                effort=options.effort,
                time_budget_s=options.time_budget_s,
                work=options.work,
                smart_start=smart_start if recipe.startswith("smart_start") else None,
                start=start,
                callback=callback,
            )
    except KeyboardInterrupt as interrupt:
        line.write("")
        print("leeward: interrupted; nothing was written", file=sys.stderr)
        raise Exit(EXIT_INTERRUPTED) from interrupt
    finally:
        line.write("")


@contextlib.contextmanager
def _stop_on_interrupt(is_enabled: bool) -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets; the next one interrupts as usual."""
    stop = threading.Event()

    def on_interrupt(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    # a background job ignores Ctrl-C; keep it so
    if is_enabled and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        if signal.getsignal(signal.SIGINT) == on_interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class _ProgressLine:
    """A line on the terminal that is overwritten. Without a terminal, nothing is shown."""

    def __init__(self) -> None:
        self._is_terminal = is_terminal(sys.stderr)
        self._began = self._last = time.monotonic()

    def show(self, progress: "layout.Progress") -> None:
        now = time.monotonic()
        if now - self._last < PROGRESS_EVERY_S:
            return
        self._last = now
        best = f"{progress.best_aep_gwh:.2f} GWh" if math.isfinite(progress.best_aep_gwh) else "placing turbines"
        self.write(f"{now - self._began:6.1f} s   {progress.phase:<12} step {progress.step:<7} {best}")

    def write(self, text: str) -> None:
        if self._is_terminal:
            write_over(text[: shutil.get_terminal_size().columns - 1])


def _print_solution(title: str, problem: "layout.LayoutProblem", solution: "layout.Solution") -> None:
    turbine = problem.turbines[0]
    spacing_m = float(problem.min_distances_m[: problem.n_turbines].max())
    closest = f"{solution.min_spacing_m:.1f}" if math.isfinite(solution.min_spacing_m) else "-"
    print(f"{title}, {problem.area.area_m2 / 1e6:.1f} km2")
    _print_row("turbines", problem.n_turbines, f"x {turbine.rated_power_mw:g} MW, rotor {turbine.rotor_diameter_m:g} m")
    for phase in solution.phases:
        _print_row(f"after {phase.name}", f"{phase.aep_gwh:.2f}", f"GWh  {phase.seconds:8.1f} s")
    spent = f"{solution.seconds:8.1f} s, {solution.steps} steps, work {solution.work}"
    _print_row("AEP", f"{solution.aep_gwh:.2f}", f"GWh  {spent}")
    _print_row("wake loss", f"{solution.wake_loss:z.2%}")
    _print_row("closest spacing", closest, f"m, at least {spacing_m:g} m")
    _print_row("recipe", "", f"{solution.recipe}, effort {solution.effort}, seed {solution.seed}")
    _print_row("stopped", "", solution.stop_reason.value)
    for remark in solution.notes:
        _print_row("note", "", remark)


def _print_row(what: str, value: object, more: str = "") -> None:
    print(f"  {what:<18}{value:>10}  {more}".rstrip() if value != "" else f"  {what:<18}  {more}")


def _write_layout(path: Path, problem: "layout.LayoutProblem", solution: "layout.Solution") -> None:
    simulation = problem.farm.simulate(solution.x, solution.y)
    columns = (solution.x, solution.y, simulation.aep_gwh, simulation.wake_loss)
    rows = (
        [i, x, y, round(aep_gwh, 6), round(loss, 6)]
        for i, (x, y, aep_gwh, loss) in enumerate(zip(*(c.tolist() for c in columns), strict=True))
    )
    write_file(path, csv_table(["turbine", "x_m", "y_m", "aep_gwh", "wake_loss"], rows))


def _write_plant(
    path: Path, title: str, problem: "layout.LayoutProblem", solution: "layout.Solution", options: OptimiseOptions
) -> None:
    """Write a windIO plant: the given one with new positions, or one made from the problem if options changed it."""
    from leeward.export.windio import optimised_plant, problem_plant
    from leeward.export.write import write_pieces
    from leeward.readers.windio_plant import is_plant, read_plant

    source = Path(options.physics.campaign or "")
    is_changed = list(given(vars(options.physics))) != ["campaign"] or options.area.area is not None
    if is_plant(source) and not is_changed and len(read_plant(source).layouts[0].x) == len(solution.x):
        content = optimised_plant(read_plant(source), problem, solution)
    else:
        content = problem_plant(problem, solution, title)
    write_pieces(path, iter([content]))


def _write_picture(path: Path, problem: "layout.LayoutProblem", solution: "layout.Solution") -> None:
    from leeward.cli.figures import save
    from leeward.plots import layout_figure

    start = None if solution.start is None else (*solution.start, solution.phases[0].aep_gwh)
    save(layout_figure(problem, solution, start), path)
