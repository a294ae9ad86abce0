"""The quantity that the results of a campaign are compared by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from leeward.campaign import Campaign
from leeward.campaign.remarks import comparison_remarks, is_by_capacity_factor, optimiser_words


@dataclass(frozen=True)
class Basis:
    """Installed power (MW) by farm and turbine type, and what a summary says of the campaign.

    by_capacity_factor: farms whose types are compared by capacity factor, not by AEP. remarks: sentences for those who
    compare types. optimiser: recipe and effort in words; None where no campaign is known.
    """

    installed_mw: Mapping[tuple[int, int], float] = field(default_factory=dict)
    by_capacity_factor: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()
    optimiser: str | None = None


@lru_cache(maxsize=4)  # a dashboard asks at every look; a campaign never changes
def basis_of(campaign: Campaign | None) -> Basis:
    """Return what results of this campaign are compared on; an InputError if it gives a farm no valid turbine count."""
    if campaign is None:
        return Basis()
    return Basis(
        {(farm, kind): campaign.physics.installed_mw(farm, kind) for farm in campaign.farms for kind in campaign.types},
        tuple(farm for farm in campaign.farms if is_by_capacity_factor(campaign, farm)),
        tuple(comparison_remarks(campaign)),
        optimiser_words(campaign),
    )
