"""`leeward.open_layouts`: results to work with, beside what their campaign says of them."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path

from leeward.campaign.campaign import Campaign
from leeward.errors import InputError
from leeward.store import Layouts


def open_layouts(path: str | os.PathLike[str]) -> Layouts:
    """The results in a `layouts.h5`, a run directory, or the worker files of another script (one, or a folder of them).

    Every result is checked on the way; damaged ones are left out, listed in `bad`, and warned of.
    """
    return Layouts(Path(path), rated_powers=rated_powers)


def rated_powers(campaign_text: str) -> Mapping[int, float]:
    """Return the rated power of each turbine type (MW); with a warning, none of a campaign that cannot be read."""
    try:
        campaign = Campaign.from_text(campaign_text, "the campaign of the results")
    except InputError as error:
        warnings.warn(f"installed_mw is not known of all results: {error}", stacklevel=2)
        return {}
    return {kind: campaign.physics.rated_power_mw(kind) for kind in campaign.types}
