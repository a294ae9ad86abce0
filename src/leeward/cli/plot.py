"""`leeward plot`: draw figures of a campaign and its layouts."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Option

from leeward.cli.options import CAMPAIGN_FILE, FARMS, TYPES, Options
from leeward.cli.output import check_files, note
from leeward.cli.sources import Names, demanded_campaign, given_place, known_campaigns
from leeward.errors import InputError, write_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from leeward.campaign import Campaign
    from leeward.plots.runs import Choice
    from leeward.store import Key


class PlotOptions(Options):
    """Draw a figure of a campaign or of one of its layouts: PNG, SVG or PDF.

    --farm and --type restrict the figure to these. All figures except aep and convergence need a campaign.

    Exit codes: 0 drawn; 1 there is nothing to draw, or it is damaged; 2 usage error; 4 the storage is unavailable, or
    the picture cannot be written.
    """

    what: str = Argument(
        ...,
        metavar="WHAT",
        help="layout: one layout. map: the best layout of each farm. aep: AEP over the seeds, by farm and type. "
        "convergence: AEP over the steps of the optimiser. rose: wind rose. flow: wind speeds in a layout.",
    )
    output: Path = Option(..., "--output", "-o", help="The picture: .png, .svg or .pdf. An old one is replaced.")
    path: str | None = Argument(
        None,
        metavar="PATH",
        help="Run directory, layouts.h5, or a folder; may come first. Default: the only run in the current folder.",
    )
    key: list[str] | None = Option(
        None,
        help='layout, flow, convergence: the result to draw, farm0_t5_s3, "0 5 3", 0,5,3 or "farm name/type name/3". '
        "Default: the best one, by AEP, or by capacity factor if installed power differs by more than 0.5 %. "
        "Repeatable for convergence.",
    )
    farm: list[str] | None = FARMS
    turbine_type: list[str] | None = TYPES
    all_seeds: bool = Option(False, "--all-seeds", help="convergence: also draw the other seeds of that farm and type.")
    direction: float | None = Option(
        None,
        help="flow: direction the wind comes from, degrees clockwise from north. Default without --direction and "
        "--speed: the mean over all winds, weighted by energy.",
    )
    speed: float | None = Option(None, help="flow: free wind speed, m/s.")
    height_m: float | None = Option(None, help="flow: height above the ground, m. Default: the hub height.")
    points: int | None = Option(
        None, help="flow: grid points along the longer side of the map. Default: 800, or 200 for the mean."
    )
    campaign: str | None = CAMPAIGN_FILE


@dataclass(frozen=True)
class Wanted:
    """The options with all names resolved. places: the run or file; empty for the wind rose of a campaign."""

    options: PlotOptions
    places: list[Path]
    keys: "list[Key]"
    choice: "Choice"

    @property
    def place(self) -> Path:
        return self.places[0]

    def campaign(self, why: str = "this figure") -> "Campaign":
        """Return the campaign, or raise InputError that names what needs it."""
        return demanded_campaign(self.options.campaign, self.places, why)

    @functools.cached_property
    def known_campaign(self) -> "Campaign | None":
        known, _ = known_campaigns(self.options.campaign, self.places)
        return known[0] if known else None


def plot(options: PlotOptions) -> None:
    """Draw a figure and write it to a file."""
    what, path = _figure_and_path(options.what, options.path)
    _refuse_unused(what, options)
    check_files(None, options.output)
    from leeward.plots.runs import Choice
    from leeward.watch import demand_place

    place = None
    if path is not None or options.campaign is None or what != "rose":
        place = given_place(path)
        demand_place(place)
    names = Names(options.campaign, place)
    choice = Choice(names.farms(options.farm), names.types(options.turbine_type))
    wanted = Wanted(options, [] if place is None else [place], names.keys(options.key), choice)
    _save(PICTURES[what].draw(wanted), options.output)
    print(f"written: {options.output}")


def _save(figure: "Figure", output: Path) -> None:
    """Write the figure, with a note for letters that no font has."""
    from leeward.plots import save_figure
    from leeward.plots.style import MissingLettersWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MissingLettersWarning)
        try:
            save_figure(output, figure)
        except OSError as error:
            raise write_error(output, error) from error
    for warning in caught:
        if issubclass(warning.category, MissingLettersWarning):
            note(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _figure_and_path(first: str, second: str | None) -> tuple[str, Path | None]:
    """Return the name of the figure and the path, which may come in either order."""
    words = [first] if second is None else [first, second]
    for number, word in enumerate(words):
        if word in PICTURES:
            others = words[:number] + words[number + 1 :]
            return word, Path(others[0]) if others else None
    raise InputError(f"{' '.join(words)!r:.60} does not name a figure; expected one of {', '.join(PICTURES)}")


def _refuse_unused(what: str, options: PlotOptions) -> None:
    """Raise InputError for an option of another figure, which would have no effect."""
    for name in ("key", "all_seeds", *OF_FLOW):
        belongs_to = [word for word, picture in PICTURES.items() if name in picture.options]
        value = getattr(options, name)
        if not (value is None or value is False or value == []) and what not in belongs_to:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} has no effect on {what}; it belongs to {', '.join(belongs_to)}")


def _layout(wanted: Wanted) -> "Figure":
    from leeward.campaign.remarks import installed_of
    from leeward.plots import PlacedTurbines, layout_figure
    from leeward.plots.runs import layout_problem, title_of
    from leeward.watch import find_result

    campaign, key = wanted.campaign(), _one_key(wanted)
    result = find_result(wanted.place, key).result
    # the stored AEP, as everywhere else: another program may have used another wake model
    placed = PlacedTurbines(result.x, result.y, result.aep, installed_of(campaign, result))
    return layout_figure(layout_problem(campaign, key), placed, name=title_of(campaign, key))


def _map(wanted: Wanted) -> "Figure":
    from leeward.plots import best_layouts_figure
    from leeward.plots.ground import neighbours_of
    from leeward.plots.runs import best_of_each_farm

    campaign = wanted.campaign()
    farms = best_of_each_farm(wanted.place, campaign, wanted.choice)
    neighbours = neighbours_of(campaign.problem(next(iter(campaign.farms)), next(iter(campaign.types))).farm)
    return best_layouts_figure(farms, campaign.name, neighbours=neighbours)


def _aep(wanted: Wanted) -> "Figure":
    from leeward.plots import aep_distribution_figure
    from leeward.plots.runs import aep_cells

    return aep_distribution_figure(aep_cells(wanted.place, wanted.known_campaign, wanted.choice))


def _convergence(wanted: Wanted) -> "Figure":
    from leeward.plots import convergence_figure
    from leeward.plots.runs import convergences, known_aeps

    place = wanted.place
    keys = list(dict.fromkeys(wanted.keys)) or [_best_key(wanted)]
    if wanted.options.all_seeds:
        cells = {key[:2] for key in keys}
        others = [key for key in known_aeps(place, wanted.choice) if key[:2] in cells]
        keys = list(dict.fromkeys([*keys, *others]))
    return convergence_figure(convergences(place, keys, wanted.known_campaign))


def _rose(wanted: Wanted) -> "Figure":
    from leeward.plots import wind_rose_figure

    campaign = wanted.campaign("a wind rose")
    site = campaign.problem(next(iter(campaign.farms)), next(iter(campaign.types))).farm.site
    return wind_rose_figure(site, campaign.name)


def _flow(wanted: Wanted) -> "Figure":
    from leeward.plots import flow_figure
    from leeward.plots.runs import layout_problem, title_of
    from leeward.processes import usable_cores
    from leeward.watch import find_result

    options = wanted.options
    if (options.direction is None) != (options.speed is None):
        raise InputError("--direction and --speed belong together; give both, or neither for the mean")
    campaign, key = wanted.campaign(), _one_key(wanted)
    result = find_result(wanted.place, key).result
    return flow_figure(
        layout_problem(campaign, key),
        result.x,
        result.y,
        direction_deg=options.direction,
        speed_m_s=options.speed,
        height_m=options.height_m,
        points=options.points,
        threads=usable_cores(),
        name=title_of(campaign, key),
    )


def _one_key(wanted: Wanted) -> "Key":
    if len(wanted.keys) > 1:
        raise InputError(f"{len(wanted.keys)} keys are given for a figure of one layout; give one --key")
    return wanted.keys[0] if wanted.keys else _best_key(wanted)


def _best_key(wanted: Wanted) -> "Key":
    """Return the key of the best result, with a note if that is not the one with the highest AEP."""
    from leeward.plots.runs import best_key, known_aeps

    key, is_by_factor = best_key(known_aeps(wanted.place, wanted.choice), wanted.known_campaign)
    if is_by_factor:
        why = "installed power differs by more than 0.5 %, so the best is the one with the highest capacity factor"
        note(f"drew {key}: {why}")
    return key


@dataclass(frozen=True)
class Picture:
    """A kind of figure. options: names of the options that only some figures have."""

    draw: "Callable[[Wanted], Figure]"
    options: tuple[str, ...] = ()


OF_FLOW = ("direction", "speed", "height_m", "points")
PICTURES = {
    "layout": Picture(_layout, ("key",)),
    "map": Picture(_map),
    "aep": Picture(_aep),
    "convergence": Picture(_convergence, ("key", "all_seeds")),
    "rose": Picture(_rose),
    "flow": Picture(_flow, ("key", *OF_FLOW)),
}
