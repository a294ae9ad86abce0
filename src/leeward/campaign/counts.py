"""Count the turbines of a farm, from a number or from a capacity."""

import math

from leeward.campaign.spec import CampaignSpec, FarmSpec, FullTurbine
from leeward.errors import InputError

MOST_TURBINES = 100_000  # of one farm: a stored layout has room for as many


def turbine_count(spec: CampaignSpec, farm: FarmSpec, turbine: FullTurbine) -> int:
    """The number given, or as many as make up the capacity, rounded down."""
    count = _count(spec, farm, turbine)
    if count > MOST_TURBINES:
        raise InputError(f"is {count} turbines in one farm; expected at most {MOST_TURBINES}")
    return count


def capacity_wanted(spec: CampaignSpec, farm: FarmSpec) -> float | None:
    """Return the capacity that was asked for (MW); None where the number of turbines was given."""
    if farm.n_turbines is not None or (farm.capacity_mw is None and spec.turbines_per_farm is not None):
        return None
    return spec.capacity_mw if farm.capacity_mw is None else farm.capacity_mw


def _count(spec: CampaignSpec, farm: FarmSpec, turbine: FullTurbine) -> int:
    if farm.n_turbines is not None:
        return farm.n_turbines
    if farm.capacity_mw is None and spec.turbines_per_farm is not None:
        return spec.turbines_per_farm
    capacity = capacity_wanted(spec, farm)
    if capacity is None:
        raise InputError("is missing, and capacity_mw too; expected one of them: how many turbines a farm has")
    count = math.floor(capacity / turbine.rated_power_mw + 1e-9)  # 3.3 MW are three of 1.1 MW, whatever the last bit
    if count < 1:
        raise InputError(
            f"is {capacity:g}, less than the {turbine.rated_power_mw:g} MW of one turbine ({turbine.name}): that is 0 "
            "turbines; expected at least one turbine's rated power"
        )
    return count
