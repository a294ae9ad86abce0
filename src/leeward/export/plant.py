"""One layout with its campaign, for files that hold everything that its AEP depends on, and a YAML writer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from leeward.campaign.layouts import setup_of
from leeward.campaign.remarks import installed_of
from leeward.capacity import yield_words
from leeward.peers.setup import Setup

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.layout import Area
    from leeward.store import Result


@dataclass(frozen=True)
class Plant(Setup):
    """A layout of a campaign. fingerprint: "" for a layout of another program. spacing_m: the minimum spacing."""

    key: str
    campaign: str
    farm_name: str
    crs: str
    fingerprint: str
    aep_gwh: float
    installed_mw: float
    area: "Area"
    spacing_m: float

    @property
    def energy_words(self) -> str:
        """Return AEP, installed power and capacity factor as text, for a comment."""
        return f"{self.aep_gwh!r} GWh; {yield_words(self.aep_gwh, self.installed_mw)}"

    @property
    def site(self) -> dict[str, Any]:
        """Return the settings of the site, as in a campaign file."""
        return self.farm.site.settings()


def plant_of(result: "Result", campaign: "Campaign") -> Plant:
    """Return the plant of a result, or raise InputError if it was not made with the settings of this campaign."""
    setup = setup_of(result, campaign)
    return Plant(
        farm=setup.farm,
        x=setup.x,
        y=setup.y,
        key=str(result.key),
        campaign=campaign.name,
        farm_name=campaign.farms[result.key.farm_idx],
        crs=campaign.crs or "",
        fingerprint=result.fingerprint,
        aep_gwh=float(result.aep_gwh),
        installed_mw=installed_of(campaign, result),
        area=campaign.physics.area(result.key.farm_idx),
        spacing_m=float(campaign.physics.constraints(result.key.farm_idx, result.key.type_idx).min_distances_m[0]),
    )


class _Dumper(yaml.SafeDumper):
    """A dumper that uses aliases for repeated sections, such as turbines, but not for lists."""

    def ignore_aliases(self, data: Any) -> bool:
        return not isinstance(data, dict)


def _list(dumper: _Dumper, items: list[Any]) -> yaml.Node:
    is_flat = not any(isinstance(item, dict | list) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_flat)


_Dumper.add_representer(list, _list)


def yaml_bytes(comments: Sequence[str], data: dict[str, Any]) -> bytes:
    """Return data as YAML, comments first and each list of numbers on one line. Numbers round-trip exactly."""
    top = "".join(f"# {' '.join(line.split())}\n" for line in comments)
    return (top + yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)).encode()
