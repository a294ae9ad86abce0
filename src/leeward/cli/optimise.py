"""`leeward optimise`: from an area to a layout."""

import math
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli.options import (
    HubHeight,
    PhysicsCampaign,
    RatedPower,
    RotorDiameter,
    SiteFile,
    TurbineFile,
    TurbineType,
    WakeModelName,
)
from leeward.cli.sources import Names
from leeward.cli.tables import check_files, write_table
from leeward.cli.wording import send_control
from leeward.errors import InputError, write_error
from leeward.wording import listed

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.formats.layout_table import TableLayout
    from leeward.layout import Area, LayoutProblem, Progress, SmartStart, Solution

EXIT_INTERRUPTED = 130  # as a shell says it of a program that Ctrl-C ended

BUILTIN_TURBINES = 66  # of 15 MW: a farm of 1 GW
PROGRESS_EVERY_S = 0.1


def optimise(
    area: Annotated[
        Path | None,
        typer.Option(help="GeoJSON file with the area. Without it: the areas of the campaign, or the built-in ones."),
    ] = None,
    farm_idx: Annotated[
        str | None,
        typer.Option(
            "--farm-idx",
            "--farm",
            help="Choose the area by its farm_idx, by its position in a file that has none, or by its name.",
        ),
    ] = None,
    area_name: Annotated[
        str | None, typer.Option(help="Choose the area by its name: its property name, Name, NAME or title.")
    ] = None,
    crs: Annotated[
        str | None, typer.Option(help="Projected coordinate system of the area, for example EPSG:25831.")
    ] = None,
    turbines: Annotated[
        int | None,
        typer.Option(help=f"How many. Default: as many as --start or the campaign's farm has, or {BUILTIN_TURBINES}."),
    ] = None,
    spacing_m: Annotated[float | None, typer.Option(help="How far apart turbines must be, m.")] = None,
    spacing_diameters: Annotated[
        float | None,
        typer.Option(help="The same in rotor diameters. Default: that of the campaign, or 3; without --spacing-m."),
    ] = None,
    campaign: PhysicsCampaign = None,
    turbine_type: TurbineType = None,
    turbine: TurbineFile = None,
    rated_power_mw: RatedPower = None,
    rotor_diameter_m: RotorDiameter = None,
    hub_height_m: HubHeight = None,
    site: SiteFile = None,
    wake_model: WakeModelName = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same layout.")] = 0,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="smart_start+refine (default), smart_start, random+refine, random, start+refine (default with "
            "--start), start, or your own function (problem, seed) -> (x, y) as module:function; the module may lie "
            "in the current folder."
        ),
    ] = None,
    effort: Annotated[str, typer.Option(help="fast, normal or thorough: how much work.")] = "normal",
    time_budget_s: Annotated[
        float | None,
        typer.Option(help="End after so many seconds instead; the result then depends on the machine's speed."),
    ] = None,
    work: Annotated[
        int | None, typer.Option(help="End after so many pair evaluations instead, as an earlier run printed them.")
    ] = None,
    grid_size: Annotated[int, typer.Option(help="SmartStart: points of the grid, a side.")] = 18,
    random_pct: Annotated[
        float, typer.Option(help="SmartStart: pick at random among the best so many per cent of the free points.")
    ] = 30.0,
    start: Annotated[
        Path | None, typer.Option(help="CSV file with the layout to start from: columns x_m and y_m.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help='Of a --start file with several layouts: which one, farm0_t5_s3, 0,5,3 or "farm/type/3".'),
    ] = None,
    repair_start: Annotated[
        bool, typer.Option("--repair-start", help="Move turbines of --start inside and apart first, if need be.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file for the layout. An old one is replaced.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Picture of the layout: .png, .svg or .pdf. An old one is replaced.")
    ] = None,
) -> None:
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
    check_files(output, picture)
    from leeward.cli.physics import Physics
    from leeward.layout import LayoutProblem, SmartStart, StopReason

    options = SmartStart(grid_size, random_pct)
    physics = Physics(
        campaign=campaign,
        site=site,
        wake_model=wake_model,
        turbine_file=turbine,
        turbine_type=turbine_type,
        figures=(rated_power_mw, rotor_diameter_m, hub_height_m),
    )
    begin = _start(start, key, campaign)
    machine = physics.machine_of(begin, "the turbine" if start is None else str(start))
    if recipe is None:
        recipe = "smart_start+refine" if begin is None else "start+refine"
    spacing = {"spacing_m": spacing_m, "spacing_diameters": spacing_diameters}
    if spacing_m is None and spacing_diameters is None:
        spacing = {"spacing_diameters": 3.0} if physics.campaign is None else dict(physics.campaign.spacing)
    usual = BUILTIN_TURBINES
    if physics.campaign is not None and area is None:
        farm = _farm(physics.campaign, farm_idx or area_name, campaign, begin)
        title, where = f"{physics.campaign.name}, {physics.campaign.farms[farm]}", physics.campaign.area(farm)
        if machine.type_idx is not None:
            usual = physics.campaign.n_turbines(farm, machine.type_idx)
    else:
        title, where = _area(area, farm_idx, area_name, crs)
    if turbines is None:
        turbines = usual if begin is None else len(begin.x)
    problem = LayoutProblem(machine.farm, where, turbines, **spacing)
    given: tuple[Any, Any] | None = None if begin is None else (begin.x, begin.y)
    if given is not None and repair_start:
        given = problem.repaired(*given)
    solution = _optimised(problem, seed, recipe, effort, time_budget_s, work, options, given)
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
        raise typer.Exit(EXIT_INTERRUPTED)


def _start(path: Path | None, key: str | None, campaign: str | None) -> "TableLayout | None":
    """Return the layout to start from: the only one of its file, or the one that --key names."""
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
    campaign.area(found)  # says which there are
    return found


def _area(path: Path | None, farm: str | None, name: str | None, crs: str | None) -> tuple[str, "Area"]:
    """Return what to call the area, and the area. farm: a number or a name."""
    from leeward.campaign.names import word_of

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
    problem: "LayoutProblem",
    seed: int,
    recipe: str,
    effort: str,
    time_budget_s: float | None,
    work: int | None,
    options: "SmartStart",
    given: tuple[Any, Any] | None,
) -> "Solution":
    """The library's call, with a line of progress, and a Ctrl-C that asks it to stop."""
    from leeward import layout

    own = ":" in recipe
    if own:
        sys.path.insert(0, os.getcwd())  # as `python -m` has it
    line = _ProgressLine()
    stop = _Stop()

    def watch(progress: "Progress") -> bool:
        line.show(progress)
        return stop.asked and math.isfinite(progress.best_aep_gwh)  # there must be something to return

    try:
        line.say("preparing")
        with stop:
            if own:
                stop.give_up()  # somebody's own function cannot be asked
            return layout.optimise(
                problem,
                seed,
                recipe=recipe,
                effort=effort,
                time_budget_s=time_budget_s,
                work=work,
                smart_start=options if recipe.startswith("smart_start") else None,
                start=given,
                callback=watch,
            )
    except KeyboardInterrupt as interrupt:
        line.clear()
        print("leeward: abandoned; nothing was written", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from interrupt
    finally:
        line.clear()


class _Stop:
    """Within it, the first Ctrl-C is a request to stop; the next one interrupts as ever."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> "_Stop":
        # where somebody has it ignored, as for a job in the background, it stays so
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, *_: object) -> None:
        self.asked = True
        self.give_up()

    def give_up(self) -> None:
        """Let Ctrl-C be what it was."""
        if signal.getsignal(signal.SIGINT) == self._ask:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_up()


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
            room = shutil.get_terminal_size().columns - 1
            send_control(sys.stderr, "\r\x1b[K")
            print(text[:room], end="", file=sys.stderr, flush=True)

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
    _say(
        "AEP",
        f"{solution.aep_gwh:.2f}",
        f"GWh  {solution.seconds:8.1f} s, {solution.steps} steps, work {solution.work}",
    )
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
    write_table(path, ["turbine", "x_m", "y_m", "aep_gwh", "wake_loss"], rows)


def _write_picture(path: Path, problem: "LayoutProblem", solution: "Solution") -> None:
    """The layout beside the one that the refinement began with."""
    from leeward.plots import save_layout_picture

    start = None if solution.start is None else (*solution.start, solution.phases[0].aep_gwh)
    try:
        save_layout_picture(path, problem, solution, start)
    except OSError as error:
        raise write_error(path, error) from error
