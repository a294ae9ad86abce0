"""Make numbers and objects from a campaign file: turbine counts, sites, turbines, neighbours."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.campaign.shapes import path_in
from leeward.campaign.spec import (
    CampaignSpec,
    CubicTurbine,
    FarmSpec,
    FullTurbine,
    GenericTurbine,
    NeighboursSpec,
    SiteSpec,
    TimeSeriesSpec,
)
from leeward.errors import InputError
from leeward.parsing import read_columns

if TYPE_CHECKING:
    from leeward.wind import Neighbours, Site, Turbine

MOST_TURBINES = 100_000  # of one farm: the limit of a stored layout


def turbine_count(spec: CampaignSpec, farm: FarmSpec, turbine: FullTurbine) -> int:
    """Return the number of turbines: the one given, or capacity / rated power, rounded down."""
    count = _count(spec, farm, turbine)
    if count > MOST_TURBINES:
        raise InputError(f"is {count} turbines in one farm; expected at most {MOST_TURBINES}")
    return count


def capacity_wanted(spec: CampaignSpec, farm: FarmSpec) -> float | None:
    """Return the requested capacity (MW), or None if the number of turbines was given."""
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
        raise InputError("is missing, and so is capacity_mw; give one of them to set the number of turbines")
    count = math.floor(capacity / turbine.rated_power_mw + 1e-9)  # 3.3 MW are three of 1.1 MW, despite rounding
    if count < 1:
        raise InputError(
            f"is {capacity:g}, less than the {turbine.rated_power_mw:g} MW of one turbine ({turbine.name}): that is 0 "
            "turbines; expected at least one turbine's rated power"
        )
    return count


def site_of(spec: SiteSpec, folder: Path | None = None) -> "Site":
    """Return the site with these values."""
    from leeward.wind import Site

    if spec.weibull is not None:
        wind = spec.weibull
        return Site.from_weibull(
            wind.sector_frequency,
            wind.weibull_a_m_s,
            wind.weibull_k,
            wind.turbulence_intensity,
            directions=wind.wind_directions_deg,
            speeds=wind.wind_speeds_m_s,
            interpolation=wind.interpolation,
        )
    if spec.table is not None:
        rose = spec.table
        return Site.from_table(
            rose.wind_directions_deg,
            rose.wind_speeds_m_s,
            rose.probability,
            rose.turbulence_intensity,
            kind=rose.kind,
            speed_bins=rose.speed_bins,
        )
    if spec.time_series is not None:
        return _series(spec.time_series, folder)
    return Site.from_netcdf(
        path_in(folder, str(spec.file)),
        directions=spec.wind_directions_deg,
        speeds=spec.wind_speeds_m_s,
        interpolation=spec.interpolation or "nearest",
    )


def _series(spec: TimeSeriesSpec, folder: Path | None) -> "Site":
    from leeward.wind import Site

    direction, speed, weight = spec.wind_direction_deg, spec.wind_speed_m_s, spec.weight
    intensity = spec.turbulence_intensity
    if spec.file is not None:
        path = path_in(folder, spec.file)
        table = read_columns(path, ("wind_direction_deg", "wind_speed_m_s"), ("turbulence_intensity", "weight"))
        direction, speed, weight = table["wind_direction_deg"], table["wind_speed_m_s"], table.get("weight")
        if "turbulence_intensity" in table:
            if intensity is not None:
                raise InputError(f"{path} has a column turbulence_intensity, and the campaign gives it too; remove one")
            intensity = table["turbulence_intensity"]
    return Site.from_time_series(direction or [], speed or [], 0.1 if intensity is None else intensity, weight)


def turbine_of(spec: Any) -> "Turbine":
    """Return the turbine with these values."""
    from leeward.wind import Turbine

    values = spec.model_dump(exclude={"type_idx", "name"})
    name = spec.name or "turbine"
    if isinstance(spec, GenericTurbine):
        return Turbine.generic(**values, name=name)
    if isinstance(spec, CubicTurbine):
        return Turbine.cubic(**values, name=name)
    return Turbine(**values, name=name)


def neighbours_of(specs: list[NeighboursSpec]) -> "Neighbours | None":
    """Return all existing turbines together, or None."""
    from leeward.wind import Neighbours

    if not specs:
        return None
    x = [value for spec in specs for value in spec.x_m or []]
    y = [value for spec in specs for value in spec.y_m or []]
    turbines = [turbine for spec in specs for turbine in [turbine_of(spec.turbine)] * len(spec.x_m or [])]
    return Neighbours(x, y, turbines)
