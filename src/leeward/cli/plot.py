"""`leeward plot`: draw figures of a campaign and its layouts."""

from pathlib import Path

from typer import Argument, Option

from leeward import watch
from leeward.cli.options import CAMPAIGN_FILE, FARMS, TYPES, Options
from leeward.cli.output import check_files
from leeward.cli.sources import Names, given_place
from leeward.errors import InputError


class PlotOptions(Options):
    """Draw a figure of a campaign, of one of its layouts, or of a study: PNG, SVG or PDF.

    --farm and --type select the farms and turbine types. All figures except aep and convergence need a campaign.

    Exit codes: 0 drawn; 1 the data is missing or damaged; 2 usage error; 4 the storage is unavailable, or the picture
    cannot be written.
    """

    what: str = Argument(
        ...,
        metavar="WHAT",
        help="layout: one layout. map: the best layout of each farm. aep: AEP over the seeds, by farm and type. "
        "convergence: AEP over the steps of the optimiser. rose: wind rose. flow: wind speeds in a layout. resource: a "
        "map of wind that varies over the site, without wakes, see --quantity. study: a figure of a study, see "
        "--figure.",
    )
    output: Path = Option(..., "--output", "-o", help="Picture to write: .png, .svg or .pdf. An old one is replaced.")
    path: str | None = Argument(
        None,
        metavar="PATH",
        help="Run directory, layouts.h5, study.h5, or a folder; WHAT and PATH in any order. Default: the only run "
        "in the current folder.",
    )
    key: list[str] | None = Option(
        None,
        help="study: the task, such as target0_scenario3. Default: the first one; losses: all layouts. "
        'layout, flow, convergence, resource: the result to draw: farm0_t5_s3, "0 5 3", 0,5,3 or "farm name/type '
        'name/3". Repeatable for convergence and resource. Default: the best result, by AEP, or by capacity factor if '
        "installed power differs by more than 0.5 %; resource: the best of each farm.",
    )
    farm: list[str] | None = FARMS
    turbine_type: list[str] | None = TYPES
    all_seeds: bool = Option(False, "--all-seeds", help="convergence: also draw the other seeds of that farm and type.")
    direction: float | None = Option(
        None,
        help="flow: direction that the wind comes from, in degrees clockwise from north; needs --speed. Default: the "
        "mean over all winds, weighted by energy.",
    )
    speed: float | None = Option(None, help="flow: free wind speed, m/s; needs --direction.")
    height_m: float | None = Option(
        None,
        help="flow, resource: height above the ground, m. Default: the hub height; resource: that of --type, by "
        "default of the type of --key, else of the first type.",
    )
    points: int | None = Option(
        None,
        help="flow, resource: grid points along the longer side of the map. Default: 800, or 200 for the mean; "
        "resource: 150.",
    )
    quantity: str | None = Option(
        None,
        help="resource: mean-speed: mean free wind speed. gross-yield: yield of one turbine of --type without wakes. "
        "weibull-a, weibull-k: scale and shape of the Weibull distributions. frequency: share of time of a sector. "
        "speed-up: factor of the wind speed. turbulence: mean turbulence intensity. elevation: of the terrain. "
        "Default: mean-speed.",
    )
    sector: int | None = Option(
        None, help="resource: number of a sector of the wind, from 0, which is north. Default: all sectors together."
    )
    figure: str | None = Option(
        None,
        help="study: losses: distribution of wake losses over the scenarios. build-out: map of a scenario. series: "
        "power of a task over time. regret: regret of each layout in each scenario. pareto: layouts in two scenarios. "
        "Default: losses.",
    )
    scenarios: tuple[str, str] | None = Option(
        None, metavar="A B", help="pareto: names or numbers of two scenarios. Default: both of a study of two."
    )
    case: str | None = Option(
        None, help="regret, pareto: wakes to count: all, external, internal or none. Default: all."
    )
    step: int | None = Option(None, help="build-out: draw farms that do not stand in this step dashed. Default: none.")
    campaign: str | None = CAMPAIGN_FILE


def plot(options: PlotOptions) -> None:
    """Draw a figure and write it to a file."""
    what, path = _figure_and_path(options.what, options.path)
    _reject_unused(what, options)
    check_files(None, options.output)
    from leeward.cli import figures
    from leeward.plots.runs import Choice

    if what == "study":
        from leeward.cli import study_figures

        of_study = given_place(path, "evaluations")
        watch.demand_place(of_study)
        figures.save(study_figures.draw(options, of_study), options.output)
        print(f"written: {options.output}")
        return
    place = None
    if path is not None or options.campaign is None or what not in OF_CAMPAIGN:
        place = given_place(path)
        watch.demand_place(place)
    names = Names(options.campaign, place)
    choice = Choice(names.farms(options.farm), names.types(options.turbine_type))
    wanted = figures.Wanted(options, [] if place is None else [place], names.keys(options.key), choice)
    figures.save(getattr(figures, f"draw_{what}")(wanted), options.output)
    print(f"written: {options.output}")


def _figure_and_path(first: str, second: str | None) -> tuple[str, Path | None]:
    """Return the name of the figure and the path, which may come in either order."""
    words = [first] if second is None else [first, second]
    for number, word in enumerate(words):
        if word in FIGURES:
            others = words[:number] + words[number + 1 :]
            return word, Path(others[0]) if others else None
    raise InputError(f"{' '.join(words)!r:.60} does not name a figure; expected one of {', '.join(FIGURES)}")


def _reject_unused(what: str, options: PlotOptions) -> None:
    """Raise InputError for an option of another figure, which would have no effect."""
    for name in ("key", "farm", "turbine_type", "campaign", "all_seeds", *OF_FLOW, *OF_RESOURCE, *OF_STUDY):
        belongs_to = [figure for figure, names in FIGURES.items() if name in names]
        value = getattr(options, name)
        if not (value is None or value is False or value == []) and what not in belongs_to:
            option = "--type" if name == "turbine_type" else f"--{name.replace('_', '-')}"
            raise InputError(f"{option} has no effect on {what}; it belongs to {', '.join(belongs_to)}")


OF_FLOW = ("direction", "speed", "height_m", "points")
OF_RESOURCE = ("quantity", "sector")
OF_STUDY = ("figure", "scenarios", "case", "step")
OF_ALL = ("farm", "turbine_type", "campaign")
OF_CAMPAIGN = ("rose", "resource")  # figures that need no results
# The options that each figure has. Each is drawn by draw_... in leeward.cli.figures, that of a study by
# leeward.cli.study_figures.
FIGURES = {
    "layout": ("key", *OF_ALL),
    "map": OF_ALL,
    "aep": OF_ALL,
    "convergence": ("key", "all_seeds", *OF_ALL),
    "rose": OF_ALL,
    "flow": ("key", *OF_FLOW, *OF_ALL),
    "resource": ("key", *OF_RESOURCE, "height_m", "points", *OF_ALL),
    "study": ("key", *OF_STUDY),
}
