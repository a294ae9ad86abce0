"""Open the results of a campaign."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.campaign.campaign import Campaign
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.campaign.layouts import CampaignLayouts


def open_layouts(path: str | os.PathLike[str]) -> "CampaignLayouts":
    """Open the results in a `layouts.h5`, a run directory, or the worker files of another script (a file or a folder).

    Every result is checked. Damaged ones are left out and listed in `bad`, with a warning.
    """
    from leeward.campaign.layouts import CampaignLayouts

    return CampaignLayouts(Path(path), rated_powers=rated_powers)


def rated_powers(campaign_text: str) -> Mapping[int, float]:
    """Return the rated power of each turbine type (MW). If the campaign cannot be read, warn and return no types."""
    try:
        campaign = Campaign.from_text(campaign_text, "the campaign of the results")
    except InputError as error:
        warnings.warn(f"installed_mw is unknown for some results: {error}", stacklevel=2)
        return {}
    return {number: campaign.physics.rated_power_mw(number) for number in campaign.types}
