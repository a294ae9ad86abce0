"""Results together with their campaign, and the models of other programs made from them."""

import functools
from typing import TYPE_CHECKING

from leeward.campaign.campaign import Campaign
from leeward.errors import InputError
from leeward.store import Key, Layouts

if TYPE_CHECKING:
    from leeward.peers.floris import FlorisCase
    from leeward.peers.pywake import PyWakeCase
    from leeward.peers.setup import Setup
    from leeward.store import Result


class CampaignLayouts(Layouts):
    """`Layouts` that turn a result into a model of another program, with the campaign stored beside the results."""

    @functools.cached_property
    def campaign(self) -> Campaign:
        """The campaign of the results. Raise InputError if the file does not hold it."""
        if not self.campaign_text:
            raise InputError(f"{self.path}: does not hold its campaign; use the methods of a campaign, with x and y")
        return Campaign.from_text(self.campaign_text, f"the campaign in {self.path}")

    def to_pywake(self, key: Key | tuple[int, int, int] | str) -> "PyWakeCase":
        """Return a PyWake model and the arguments of its call: `model, layout = layouts.to_pywake("farm0_t5_s3")`.

        `model(**layout).aep()` gives the stored AEP to 1e-9. Neighbours are the last turbines; `aep_gwh` of the result
        leaves them out.
        """
        from leeward.peers.pywake import pywake_case

        return pywake_case(setup_of(self[key], self.campaign))

    def to_floris(self, key: Key | tuple[int, int, int] | str) -> "FlorisCase":
        """Return a FLORIS model with the wind of the site, and weights of its turbines, which are 0 for neighbours.

        FLORIS uses its own wake models, so its net yield differs; docs/export.md says how.
        """
        from leeward.peers.floris import floris_case

        result = self[key]
        return floris_case(setup_of(result, self.campaign), f"{self.campaign.name}, {result.key}")


def setup_of(result: "Result", campaign: Campaign) -> "Setup":
    """Return a result with everything that its AEP depends on.

    Raise InputError if it was not made with the settings of this campaign.
    """
    key = result.key
    if key.farm_idx not in campaign.farms or key.type_idx not in campaign.types:
        raise InputError(
            f"{key}: its farm or turbine type is not in the campaign {campaign.name}; name another with --campaign"
        )
    version = campaign.fingerprints.version_of(key, result.fingerprint, None)
    if result.origin == "leeward" and version is None:
        expected = campaign.fingerprint(key.farm_idx, key.type_idx)
        raise InputError(
            f"{key} was not made with the settings of the campaign {campaign.name}: its fingerprint is "
            f"{result.fingerprint[:12]}..., expected {expected[:12]}...; name the right campaign with --campaign"
        )
    return campaign.setup(key.type_idx, result.x, result.y)
