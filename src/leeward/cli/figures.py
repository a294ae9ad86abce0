"""The figures of `leeward plot`: a function for each. This module imports matplotlib, which is slow."""

import functools
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from leeward import plots
from leeward.campaign import Campaign
from leeward.campaign.remarks import installed_of
from leeward.cli.output import note, writing
from leeward.cli.sources import demanded_campaign, known_campaigns
from leeward.errors import InputError
from leeward.plots import runs
from leeward.plots.ground import neighbours_of
from leeward.plots.style import MissingLettersWarning
from leeward.processes import usable_cores
from leeward.store import Key
from leeward.watch import find_result, neighbours_of as neighbour_positions

if TYPE_CHECKING:
    from leeward.cli.plot import PlotOptions


@dataclass(frozen=True)
class Wanted:
    """The options of `leeward plot` with names resolved. places: the run or file; empty for a wind rose without one."""

    options: "PlotOptions"
    places: list[Path]
    keys: list[Key]
    choice: runs.Choice

    @property
    def place(self) -> Path:
        return self.places[0]

    @functools.cached_property
    def campaign(self) -> Campaign:
        """Return the campaign, or raise InputError if none is known."""
        return demanded_campaign(self.options.campaign, self.places, "this figure")

    @functools.cached_property
    def known_campaign(self) -> Campaign | None:
        known, _ = known_campaigns(self.options.campaign, self.places)
        return known[0] if known else None


def draw_layout(wanted: Wanted) -> Figure:
    campaign, key = wanted.campaign, _one_key(wanted)
    result = find_result(wanted.place, key).result
    # show the stored AEP, as all commands do: another program may have used another wake model
    placed = plots.PlacedTurbines(result.x, result.y, result.aep_gwh, installed_of(campaign, result))
    return plots.layout_figure(runs.layout_problem(campaign, key), placed, name=runs.title_of(campaign, key))


def draw_map(wanted: Wanted) -> Figure:
    campaign = wanted.campaign
    farms = runs.best_of_each_farm(wanted.place, campaign, wanted.choice)
    neighbours = neighbours_of(campaign.problem(next(iter(campaign.farms)), next(iter(campaign.types))).farm)
    return plots.best_layouts_figure(farms, campaign.name, neighbours=neighbours)


def draw_aep(wanted: Wanted) -> Figure:
    return plots.aep_distribution_figure(runs.aep_cells(wanted.place, wanted.known_campaign, wanted.choice))


def draw_convergence(wanted: Wanted) -> Figure:
    place = wanted.place
    keys = list(dict.fromkeys(wanted.keys)) or [_best_key(wanted)]
    if wanted.options.all_seeds:
        cells = {key[:2] for key in keys}
        others = [key for key in runs.known_aeps(place, wanted.choice) if key[:2] in cells]
        keys = list(dict.fromkeys([*keys, *others]))
    return plots.convergence_figure(runs.convergences(place, keys, wanted.known_campaign))


def draw_rose(wanted: Wanted) -> Figure:
    return plots.wind_rose_figure(wanted.campaign.physics.site, wanted.campaign.name)


def draw_flow(wanted: Wanted) -> Figure:
    options = wanted.options
    if (options.direction is None) != (options.speed is None):
        raise InputError("--direction and --speed must be given together; give both, or neither for the mean")
    campaign, key = wanted.campaign, _one_key(wanted)
    result = find_result(wanted.place, key).result
    return plots.flow_figure(
        runs.layout_problem(campaign, key),
        result.x,
        result.y,
        direction_deg=options.direction,
        speed_m_s=options.speed,
        height_m=options.height_m,
        points=options.points,
        threads=usable_cores(),
        name=runs.title_of(campaign, key),
    )


def draw_resource(wanted: Wanted) -> Figure:
    """Draw the wind over the farms of the keys, or over all selected farms, with their layouts on top."""
    options, campaign, keys = wanted.options, wanted.campaign, list(dict.fromkeys(wanted.keys))
    if len(wanted.choice.types) > 1:
        raise InputError(f"{len(wanted.choice.types)} turbine types are given for one map; give one --type")
    if keys and not wanted.places:
        raise InputError("--key needs the run or file that has the layout; give its PATH")
    if not wanted.places:
        results = []
    elif keys:
        results = runs.results_of(wanted.place, keys)
    else:
        results = runs.best_results(wanted.place, campaign, wanted.choice)
    farms = dict.fromkeys(key.farm_idx for key in keys) or wanted.choice.farms or campaign.farms
    kind = next(iter([*wanted.choice.types, *(key.type_idx for key in keys), *campaign.types]))
    existing_x, existing_y = neighbour_positions(campaign)
    return plots.resource_figure(
        campaign.physics.site,
        campaign.physics.turbine(kind),
        [campaign.physics.area(farm) for farm in farms],
        quantity=options.quantity or "mean-speed",
        sector=options.sector,
        height_m=options.height_m,
        points=options.points,
        layouts=[(result.x, result.y) for result in results],
        neighbours=(existing_x, existing_y),
        threads=usable_cores(),
        name=runs.title_of(campaign, keys[0]) if len(keys) == 1 else campaign.name,
    )


def _one_key(wanted: Wanted) -> Key:
    if len(wanted.keys) > 1:
        raise InputError(f"{len(wanted.keys)} keys are given for a figure of one layout; give one --key")
    return wanted.keys[0] if wanted.keys else _best_key(wanted)


def _best_key(wanted: Wanted) -> Key:
    """Return the key of the best result. Print a note if the best is not the one with the highest AEP."""
    key, is_by_factor = runs.best_key(runs.known_aeps(wanted.place, wanted.choice), wanted.known_campaign)
    if is_by_factor:
        why = "installed power differs by more than 0.5 %, so the best is the one with the highest capacity factor"
        note(f"the figure shows {key}: {why}")
    return key


def save(figure: Figure, output: Path) -> None:
    """Write the figure. Print a note about characters that no font has."""
    with warnings.catch_warnings(record=True) as caught, writing(output):
        warnings.simplefilter("always", MissingLettersWarning)
        plots.save_figure(output, figure)
    for warning in caught:
        if issubclass(warning.category, MissingLettersWarning):
            note(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
