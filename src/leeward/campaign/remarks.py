"""Sentences for every summary of a campaign: installed power, comparison of types, hub heights, recipe and effort."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leeward.capacity import HOURS_PER_YEAR, by_capacity_factor, comparison_remark, installed_power
from leeward.wording import count

if TYPE_CHECKING:
    from leeward.campaign.campaign import Campaign
    from leeward.store.schema import Result

SUM_SLACK = 1e-6  # of probabilities, from rounding
HUB_HEIGHTS = (
    "Hub heights differ between the turbine types and have no effect on the wind: wind speeds are taken at each type's "
    "own hub height."
)


def installed_of(campaign: "Campaign | None", result: "Result") -> float:
    """Return the installed power of a result (MW); not a number where neither it nor the campaign tells it."""
    kind = result.key.type_idx
    rated = None if campaign is None or kind not in campaign.types else campaign.rated_power_mw(kind)
    return installed_power(result.details, result.n_turbines, rated)


def is_by_capacity_factor(campaign: "Campaign", farm_idx: int) -> bool:
    """Return whether the turbine types of a farm are compared by capacity factor instead of by AEP."""
    return by_capacity_factor(campaign.installed_mw(farm_idx, kind) for kind in campaign.types)


def optimiser_words(campaign: "Campaign") -> str:
    """Return recipe and effort, or the budget that replaces it, in words."""
    settings = campaign.optimiser
    effort = settings.get("effort", "")
    seconds, work = settings.get("time_budget_s"), settings.get("work")
    if seconds is not None:
        how = f"time budget {seconds:g} s a layout"
    elif work is not None:
        how = f"work budget {count(work, 'pair evaluation')} a layout"
    elif effort:
        return f"recipe {campaign.recipe}, effort {effort}"
    else:
        how = "a custom function" if ":" in campaign.recipe else "without refinement"
    return f"recipe {campaign.recipe}, {how}" + (f" (effort {effort})" if effort else "")


def wind_remarks(campaign: "Campaign") -> Iterator[str]:
    """Yield what is wrong with the wind, and by how much it changes every AEP."""
    site = campaign.site
    excess = site.covered_hours / HOURS_PER_YEAR - 1.0
    if excess > SUM_SLACK:
        yield (
            f"The probabilities of the wind add up to {1.0 + excess:.6g}: every AEP is {100.0 * excess:.2g} % too "
            "high. Divide them by their sum."
        )
    if site.covered_degrees < 360.0 - 1e-6:
        yield (
            f"The bins of the wind rose cover {site.covered_degrees:g} of 360 degrees: no wind blows from the other "
            "directions."
        )


def comparison_remarks(campaign: "Campaign") -> Iterator[str]:
    """Yield the sentences that a reader needs before comparing AEPs and turbine types."""
    differing = [f"{farm} {name}" for farm, name in campaign.farms.items() if is_by_capacity_factor(campaign, farm)]
    if differing:
        yield comparison_remark(differing, len(campaign.farms))
    yield from wind_remarks(campaign)
    if len({campaign.hub_height_m(kind) for kind in campaign.types}) > 1:
        yield HUB_HEIGHTS
