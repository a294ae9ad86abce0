"""`leeward plot`: figures of a campaign and of its layouts."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli.options import Farms, Types
from leeward.cli.sources import CampaignFile, Names, demanded_campaign, given_place, told_campaigns
from leeward.cli.tables import check_files
from leeward.errors import InputError, write_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from leeward.plots.runs import Choice
    from leeward.store import Key


class Picture(StrEnum):
    """What there is to draw."""

    LAYOUT = "layout"
    MAP = "map"
    AEP = "aep"
    CONVERGENCE = "convergence"
    ROSE = "rose"
    FLOW = "flow"


OF_FLOW = (Picture.FLOW,)
OF_RESULTS = (Picture.LAYOUT, Picture.FLOW, Picture.CONVERGENCE)


@dataclass(frozen=True)
class Wanted:
    """What was asked for."""

    place: Path | None
    campaign_file: str | None
    keys: "list[Key]"
    choice: "Choice"
    all_seeds: bool
    direction: float | None
    speed: float | None
    height_m: float | None
    points: int | None


def plot(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="layout: one layout. map: the best layout of each farm. aep: AEP over the seeds, by farm and type. "
            "convergence: how AEP rose. rose: wind rose. flow: wind speeds in a layout.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture: .png, .svg or .pdf. An old one is replaced.")
    ],
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH",
            help="Run directory, layouts.h5, or a folder; may come first. Default: the only run in the current folder.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            help='layout, flow, convergence: which result, farm0_t5_s3, "0 5 3", 0,5,3 or "farm name/type name/3". '
            "Default: the best one, by AEP, or by capacity factor where installed power differs by more than 0.5 %. "
            "For convergence it can be given several times."
        ),
    ] = None,
    farm: Farms = None,
    turbine_type: Types = None,
    all_seeds: Annotated[
        bool, typer.Option("--all-seeds", help="convergence: the other seeds of that farm and type too.")
    ] = False,
    direction: Annotated[
        float | None,
        typer.Option(
            help="flow: where the wind comes from, degrees clockwise from north. Without --direction and --speed: the "
            "mean over all winds, weighted by energy."
        ),
    ] = None,
    speed: Annotated[float | None, typer.Option(help="flow: how fast the free wind is, m/s.")] = None,
    height_m: Annotated[
        float | None, typer.Option(help="flow: height above the ground, m. Default: the hub height.")
    ] = None,
    points: Annotated[
        int | None, typer.Option(help="flow: points of the map along its longer side. Default: 800; 200 for the mean.")
    ] = None,
    campaign: CampaignFile = None,
) -> None:
    """Draw a figure of a campaign or of one of its layouts: PNG, SVG or PDF.

    With --farm and --type only these are drawn, or chosen from. All but aep and convergence need a campaign.

    Exit codes: 0 drawn; 1 there is nothing to draw, or it is damaged; 2 wrong use; 4 the storage is unavailable, or the
    picture cannot be written.
    """
    picture, place = _told_apart(what, path)
    _refuse_unused(picture, OF_RESULTS, {"--key": bool(key)})
    _refuse_unused(picture, (Picture.CONVERGENCE,), {"--all-seeds": all_seeds})
    numbers = {"--direction": direction, "--speed": speed, "--height-m": height_m, "--points": points}
    _refuse_unused(picture, OF_FLOW, {name: value is not None for name, value in numbers.items()})
    check_files(None, output)
    from leeward.plots.runs import Choice

    needs_place = place is not None or campaign is None or picture is not Picture.ROSE
    place = _existing(given_place(place)) if needs_place else None
    names = Names(campaign, place)
    wanted = Wanted(
        place=place,
        campaign_file=campaign,
        keys=names.keys(key),
        choice=Choice(names.farms(farm), names.types(turbine_type)),
        all_seeds=all_seeds,
        direction=direction,
        speed=speed,
        height_m=height_m,
        points=points,
    )
    _save(DRAW[picture](wanted), output)
    print(f"written: {output}")


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
            print(f"leeward: note: {warning.message}", file=sys.stderr)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _told_apart(first: str, second: str | None) -> tuple[Picture, Path | None]:
    """What to draw, and the place; in either order."""
    words = [first] if second is None else [first, second]
    for number, word in enumerate(words):
        if word in {known.value for known in Picture}:
            others = words[:number] + words[number + 1 :]
            return Picture(word), Path(others[0]) if others else None
    raise InputError(f"{' '.join(words)!r:.60} says not what to draw; expected one of {', '.join(Picture)}")


def _refuse_unused(what: Picture, belongs_to: tuple[Picture, ...], given: dict[str, bool]) -> None:
    for name, is_given in given.items():
        if is_given and what not in belongs_to:
            raise InputError(f"{name} is of no use for {what}; it belongs to {', '.join(belongs_to)}")


def _existing(place: Path) -> Path:
    from leeward.watch import demand_place

    demand_place(place)
    return place


def _layout(wanted: Wanted) -> "Figure":
    from leeward.campaign.remarks import installed_of
    from leeward.plots import PlacedTurbines, layout_figure
    from leeward.plots.runs import layout_problem, title_of
    from leeward.watch import find_result

    place = given_place(wanted.place)
    campaign = demanded_campaign(wanted.campaign_file, [place], "this picture")
    key = _one_key(wanted, place)
    result = find_result(place, key).result
    # the stored energy, as everywhere; that of another program may be of another wake model
    placed = PlacedTurbines(result.x, result.y, result.aep, installed_of(campaign, result))
    return layout_figure(layout_problem(campaign, key), placed, name=title_of(campaign, key))


def _map(wanted: Wanted) -> "Figure":
    from leeward.plots import best_layouts_figure
    from leeward.plots.ground import neighbours_of
    from leeward.plots.runs import best_of_each_farm

    place = given_place(wanted.place)
    campaign = demanded_campaign(wanted.campaign_file, [place], "this picture")
    farms = best_of_each_farm(place, campaign, wanted.choice)
    neighbours = neighbours_of(campaign.problem(next(iter(campaign.farms)), next(iter(campaign.types))).farm)
    return best_layouts_figure(farms, campaign.name, neighbours=neighbours)


def _aep(wanted: Wanted) -> "Figure":
    from leeward.plots import aep_distribution_figure
    from leeward.plots.runs import aep_cells

    place = given_place(wanted.place)
    known, _ = told_campaigns(wanted.campaign_file, [place])
    return aep_distribution_figure(aep_cells(place, known[0] if known else None, wanted.choice))


def _convergence(wanted: Wanted) -> "Figure":
    from leeward.plots import convergence_figure
    from leeward.plots.runs import convergences, known_aeps

    place = given_place(wanted.place)
    known, _ = told_campaigns(wanted.campaign_file, [place])
    campaign = known[0] if known else None
    keys = list(dict.fromkeys(wanted.keys)) or [_best_key(wanted, place)]
    if wanted.all_seeds:
        cells = {key[:2] for key in keys}
        others = [key for key in known_aeps(place, wanted.choice) if key[:2] in cells]
        keys = list(dict.fromkeys([*keys, *others]))
    return convergence_figure(convergences(place, keys, campaign))


def _rose(wanted: Wanted) -> "Figure":
    from leeward.plots import wind_rose_figure

    places = [] if wanted.place is None else [wanted.place]
    campaign = demanded_campaign(wanted.campaign_file, places, "a wind rose")
    site = campaign.problem(next(iter(campaign.farms)), next(iter(campaign.types))).farm.site
    return wind_rose_figure(site, campaign.name)


def _flow(wanted: Wanted) -> "Figure":
    from leeward.cores import usable_cores
    from leeward.plots import flow_figure
    from leeward.plots.runs import layout_problem, title_of
    from leeward.watch import find_result

    if (wanted.direction is None) != (wanted.speed is None):
        raise InputError("--direction and --speed belong together; expected both, or neither for the mean")
    place = given_place(wanted.place)
    campaign = demanded_campaign(wanted.campaign_file, [place], "this picture")
    key = _one_key(wanted, place)
    result = find_result(place, key).result
    return flow_figure(
        layout_problem(campaign, key),
        result.x,
        result.y,
        direction_deg=wanted.direction,
        speed_m_s=wanted.speed,
        height_m=wanted.height_m,
        points=wanted.points,
        threads=usable_cores(),
        name=title_of(campaign, key),
    )


def _one_key(wanted: Wanted, place: Path) -> "Key":
    """The key that was named, else that of the best result there."""
    if len(wanted.keys) > 1:
        raise InputError(f"{len(wanted.keys)} keys for a picture of one layout; expected one --key")
    return wanted.keys[0] if wanted.keys else _best_key(wanted, place)


def _best_key(wanted: Wanted, place: Path) -> "Key":
    """Return the key of the best result, and say so where that is not the one with the highest AEP."""
    from leeward.plots.runs import best_key, known_aeps

    campaigns, _ = told_campaigns(wanted.campaign_file, [place])
    campaign = campaigns[0] if campaigns else None
    key, is_by_factor = best_key(known_aeps(place, wanted.choice), campaign)
    if is_by_factor:
        words = "installed power differs by more than 0.5 %: the one with the highest capacity factor"
        print(f"leeward: note: drawn is {key}; {words}", file=sys.stderr)
    return key


DRAW: "dict[Picture, Callable[[Wanted], Figure]]" = {
    Picture.LAYOUT: _layout,
    Picture.MAP: _map,
    Picture.AEP: _aep,
    Picture.CONVERGENCE: _convergence,
    Picture.ROSE: _rose,
    Picture.FLOW: _flow,
}
