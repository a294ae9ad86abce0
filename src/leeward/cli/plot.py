"""`leeward plot`: figures of a campaign and of its layouts."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Option

from leeward.cli.options import CAMPAIGN_FILE, FARMS, TYPES, Options
from leeward.cli.output import check_files, note
from leeward.cli.sources import Names, demanded_campaign, given_place, told_campaigns
from leeward.errors import InputError, write_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from leeward.campaign import Campaign
    from leeward.plots.runs import Choice
    from leeward.store import Key


class PlotOptions(Options):
    """Draw a figure of a campaign or of one of its layouts: PNG, SVG or PDF.

    With --farm and --type only these are drawn, or chosen from. All but aep and convergence need a campaign.

    Exit codes: 0 drawn; 1 there is nothing to draw, or it is damaged; 2 wrong use; 4 the storage is unavailable, or the
    picture cannot be written.
    """

    what: str = Argument(
        ...,
        metavar="WHAT",
        help="layout: one layout. map: the best layout of each farm. aep: AEP over the seeds, by farm and type. "
        "convergence: how AEP rose. rose: wind rose. flow: wind speeds in a layout.",
    )
    output: Path = Option(..., "--output", "-o", help="The picture: .png, .svg or .pdf. An old one is replaced.")
    path: str | None = Argument(
        None,
        metavar="PATH",
        help="Run directory, layouts.h5, or a folder; may come first. Default: the only run in the current folder.",
    )
    key: list[str] | None = Option(
        None,
        help='layout, flow, convergence: which result, farm0_t5_s3, "0 5 3", 0,5,3 or "farm name/type name/3". '
        "Default: the best one, by AEP, or by capacity factor where installed power differs by more than 0.5 %. "
        "For convergence it can be given several times.",
    )
    farm: list[str] | None = FARMS
    turbine_type: list[str] | None = TYPES
    all_seeds: bool = Option(False, "--all-seeds", help="convergence: the other seeds of that farm and type too.")
    direction: float | None = Option(
        None,
        help="flow: where the wind comes from, degrees clockwise from north. Without --direction and --speed: the "
        "mean over all winds, weighted by energy.",
    )
    speed: float | None = Option(None, help="flow: how fast the free wind is, m/s.")
    height_m: float | None = Option(None, help="flow: height above the ground, m. Default: the hub height.")
    points: int | None = Option(
        None, help="flow: points of the map along its longer side. Default: 800; 200 for the mean."
    )
    campaign: str | None = CAMPAIGN_FILE


@dataclass(frozen=True)
class Wanted:
    """The options, with the names in them resolved. places: the run or file; none for a wind rose of a campaign."""

    options: PlotOptions
    places: list[Path]
    keys: "list[Key]"
    choice: "Choice"

    @property
    def place(self) -> Path:
        return self.places[0]

    def campaign(self, why: str = "this picture") -> "Campaign":
        """Return the campaign; an InputError, which says what needs it, where nobody knows it."""
        return demanded_campaign(self.options.campaign, self.places, why)

    @functools.cached_property
    def known_campaign(self) -> "Campaign | None":
        known, _ = told_campaigns(self.options.campaign, self.places)
        return known[0] if known else None


def plot(options: PlotOptions) -> None:
    """Draw a figure, and write it to a file."""
    what, path = _told_apart(options.what, options.path)
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
    """What no font can draw is said in a line."""
    from leeward.plots import save_figure
    from leeward.plots.fonts import MissingLettersWarning

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", MissingLettersWarning)
        try:
            save_figure(output, figure)
        except OSError as error:
            raise write_error(output, error) from error
    for warning in told:
        if issubclass(warning.category, MissingLettersWarning):
            note(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _told_apart(first: str, second: str | None) -> tuple[str, Path | None]:
    """What to draw, and the place; in either order."""
    words = [first] if second is None else [first, second]
    for number, word in enumerate(words):
        if word in PICTURES:
            others = words[:number] + words[number + 1 :]
            return word, Path(others[0]) if others else None
    raise InputError(f"{' '.join(words)!r:.60} says not what to draw; expected one of {', '.join(PICTURES)}")


def _refuse_unused(what: str, options: PlotOptions) -> None:
    """Raise InputError for an option of another picture: it would do nothing."""
    for name in ("key", "all_seeds", *OF_FLOW):
        belongs_to = [word for word, picture in PICTURES.items() if name in picture.options]
        value = getattr(options, name)
        if not (value is None or value is False or value == []) and what not in belongs_to:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} is of no use for {what}; it belongs to {', '.join(belongs_to)}")


def _layout(wanted: Wanted) -> "Figure":
    from leeward.campaign.remarks import installed_of
    from leeward.plots import PlacedTurbines, layout_figure
    from leeward.plots.runs import layout_problem, title_of
    from leeward.watch import find_result

    campaign, key = wanted.campaign(), _one_key(wanted)
    result = find_result(wanted.place, key).result
    # the stored energy, as everywhere; that of another program may be of another wake model
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
        raise InputError("--direction and --speed belong together; expected both, or neither for the mean")
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
    """The key that was named, else that of the best result there."""
    if len(wanted.keys) > 1:
        raise InputError(f"{len(wanted.keys)} keys for a picture of one layout; expected one --key")
    return wanted.keys[0] if wanted.keys else _best_key(wanted)


def _best_key(wanted: Wanted) -> "Key":
    """Return the key of the best result, and say so where that is not the one with the highest AEP."""
    from leeward.plots.runs import best_key, known_aeps

    key, is_by_factor = best_key(known_aeps(wanted.place, wanted.choice), wanted.known_campaign)
    if is_by_factor:
        words = "installed power differs by more than 0.5 %: the one with the highest capacity factor"
        note(f"drawn is {key}; {words}")
    return key


@dataclass(frozen=True)
class Picture:
    """A kind of figure. options: those of its own."""

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
