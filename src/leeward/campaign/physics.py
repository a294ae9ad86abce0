"""Sites, turbines and wake models as a campaign file has them, made into objects."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.campaign.shapes import path_in
from leeward.campaign.spec import CubicTurbine, GenericTurbine, NeighboursSpec, SiteSpec, TimeSeriesSpec
from leeward.campaign.tables import columns
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.wind import Neighbours, Site, Turbine, WakeModel


def site_of(spec: SiteSpec, folder: Path | None = None) -> "Site":
    """The site with these figures."""
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
        table = columns(path, ("wind_direction_deg", "wind_speed_m_s"), ("turbulence_intensity", "weight"))
        direction, speed, weight = table["wind_direction_deg"], table["wind_speed_m_s"], table.get("weight")
        if "turbulence_intensity" in table:
            if intensity is not None:
                raise InputError(f"{path} has a column turbulence_intensity, and it is given too; expected one of them")
            intensity = table["turbulence_intensity"]
    return Site.from_time_series(direction or [], speed or [], 0.1 if intensity is None else intensity, weight)


def turbine_of(spec: Any) -> "Turbine":
    """The turbine with these figures."""
    from leeward.wind import Turbine

    figures = spec.model_dump(exclude={"type_idx", "name"})
    name = spec.name or "turbine"
    if isinstance(spec, GenericTurbine):
        return Turbine.generic(**figures, name=name)
    if isinstance(spec, CubicTurbine):
        return Turbine.cubic(**figures, name=name)
    return Turbine(**figures, name=name)


def wake_model_of(spec: dict[str, Any]) -> "WakeModel":
    """The wake model with these options."""
    from leeward.wind.wake_models import wake_model

    return type(wake_model(spec["name"]))(**{key: value for key, value in spec.items() if key != "name"})


def neighbours_of(specs: list[NeighboursSpec]) -> "Neighbours | None":
    """All that stand already, together."""
    from leeward.wind import Neighbours

    if not specs:
        return None
    x = [value for spec in specs for value in spec.x_m or []]
    y = [value for spec in specs for value in spec.y_m or []]
    turbines = [turbine for spec in specs for turbine in [turbine_of(spec.turbine)] * len(spec.x_m or [])]
    return Neighbours(x, y, turbines)
