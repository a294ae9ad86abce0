"""The data of drawings of layouts: coordinates, shapes, wake losses and convergence."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from leeward.campaign import Campaign
from leeward.campaign.remarks import installed_of
from leeward.capacity import capacity_factor
from leeward.errors import InputError
from leeward.store import Result

Array = npt.NDArray[np.float64]
CELLS = 100  # of the map of the wind, along its longer side
Rings = tuple[Array, ...]  # one polygon: its outer ring, then those of its holes; shape (points, 2), m


@dataclass(frozen=True, eq=False)
class FarmShape:
    """An area for drawing. polygons: its parts."""

    farm_idx: int
    name: str
    polygons: tuple[Rings, ...]
    crs: str | None


@dataclass(frozen=True, eq=False)
class LayoutView:
    """One layout for drawing, with its wake losses.

    shape: None if unknown. wake_loss: fraction of each turbine, shape (turbines,); if None, `remark` gives the reason;
    is_pending: it is being computed. spacing_m: the minimum allowed; None if unknown. neighbours: existing turbines,
    shape (2, neighbours). installed_mw: NaN if unknown.
    """

    result: Result
    farm: str
    kind: str
    shape: FarmShape | None
    wake_loss: Array | None
    spacing_m: float | None
    neighbours: Array
    remark: str = ""
    is_pending: bool = False
    installed_mw: float = math.nan

    @property
    def capacity_factor(self) -> float:
        """Return the capacity factor as a fraction; NaN if unknown."""
        return capacity_factor(self.result.aep_gwh, self.installed_mw)


@dataclass(frozen=True, eq=False)
class ResourceView:
    """The mean free wind speed over the areas of all farms, for drawing.

    bounds: of the map: lowest x and y, highest x and y, m. speed: m/s in equal cells, from south to north and from west
    to east, shape (rows, columns); NaN where the wind is not known. height_m: hub height of the first turbine type.
    speeds: lowest and highest wind speed of the conditions, m/s.
    """

    bounds: tuple[float, float, float, float]
    speed: Array
    height_m: float
    speeds: tuple[float, float]


@lru_cache(maxsize=2)  # a dashboard asks at every update
def farm_shapes(campaign: Campaign | None) -> Mapping[int, FarmShape]:
    """Return the areas of all farms by number; none if the campaign is unknown."""
    return {} if campaign is None else {farm: farm_shape(campaign, farm) for farm in campaign.farms}


def farm_shape(campaign: Campaign, farm_idx: int) -> FarmShape:
    """Return the area of a farm of the campaign."""
    import shapely

    area = campaign.physics.area(farm_idx)
    parts = [part for part in shapely.get_parts(area.to_shapely()) if isinstance(part, shapely.Polygon)]
    rings = [(part.exterior, *part.interiors) for part in parts]
    polygons = tuple(tuple(np.asarray(ring.coords)[:, :2] for ring in of_part) for of_part in rings)
    return FarmShape(farm_idx, campaign.farms[farm_idx], polygons, area.crs)


def resource_view(campaign: Campaign | None) -> ResourceView | None:
    """Return the map of the wind of a campaign; None if the wind is the same everywhere, or not known anywhere.

    This needs the wake engine, and takes some seconds.
    """
    from leeward.wind import resource_map

    if campaign is None or not resource_map.varies_over_site(site := campaign.physics.site):
        return None
    rings = [polygon[0] for shape in farm_shapes(campaign).values() for polygon in shape.polygons]
    points = np.concatenate(rings)
    (left, low), (right, high) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    bounds = left, low, right, high = resource_map.map_bounds(site, (left, low, right, high))
    cell = max(right - left, high - low) / CELLS
    columns, rows = max(round((right - left) / cell), 1), max(round((high - low) / cell), 1)
    x = left + (np.arange(columns) + 0.5) * ((right - left) / columns)
    y = low + (np.arange(rows) + 0.5) * ((high - low) / rows)
    height = campaign.physics.hub_height_m(next(iter(campaign.types)))
    grid_x, grid_y = np.meshgrid(x, y)
    speed = resource_map.mean_speed_m_s(site, grid_x, grid_y, height)
    every = site.conditions.speed
    if np.isnan(speed).all():
        return None
    return ResourceView(bounds, speed, height, (float(every.min()), float(every.max())))


def layout_view(campaign: Campaign | None, result: Result, *, with_losses: bool = True) -> LayoutView:
    """Return a stored layout in its area. with_losses: compute wake losses, which needs the wake engine."""
    (farm, kind, _), installed = result.key, installed_of(campaign, result)
    if campaign is None or farm not in campaign.farms or kind not in campaign.types:
        words = "the campaign is not known" if campaign is None else f"not of the campaign {campaign.name}"
        return LayoutView(result, "", "", None, None, None, np.zeros((2, 0)), words, installed_mw=installed)
    names, shape = (campaign.farms[farm], campaign.types[kind]), farm_shape(campaign, farm)
    view = LayoutView(result, *names, shape, None, None, neighbours_of(campaign), installed_mw=installed)
    if not with_losses:
        return view
    problem = campaign.physics.constraints(farm, kind)
    view = replace(view, spacing_m=float(problem.min_distances_m[: problem.n_turbines].min()))
    try:
        loss = campaign.problem(farm, kind).farm.simulate(*problem.positions(result.x, result.y)).wake_loss
        return replace(view, wake_loss=loss)
    except InputError as error:  # the wake engine rejects the layout, or it cannot load a custom wake model
        return replace(view, remark=str(error))


def neighbours_of(campaign: Campaign | None) -> Array:
    """Return the existing turbines of a campaign, shape (2, neighbours); empty if the campaign is unknown."""
    groups = () if campaign is None else campaign.neighbours
    x, y = ([value for group in groups for value in getattr(group, name)] for name in ("x_m", "y_m"))
    return np.array([x, y], dtype=np.float64)


def phases_of(result: Result) -> dict[str, float]:
    """Return AEP (GWh) after each phase, by its name; phases without names are numbered from 1."""
    values = result.details.get("aep_by_phase")
    aeps = [float(aep) for aep in values] if isinstance(values, np.ndarray) and values.ndim == 1 else []
    words = str(result.details.get("phases", ""))
    names = words.split(",") if words else []
    if not len(set(names)) == len(names) == len(aeps):
        names = [f"phase {number}" for number in range(1, len(aeps) + 1)]
    return {name: aep for name, aep in zip(names, aeps, strict=True) if math.isfinite(aep)}


def history_of(result: Result) -> Array | None:
    """Return steps and AEP (GWh), shape (2, n), up to the AEP of the result; None if not stored.

    In older files the last improvement may come after the last recorded step.
    """
    if result.history is None:
        return None
    known: Array = result.history[:, np.isfinite(result.history).all(axis=0)]
    if known.shape[1] == 0:
        return None
    if result.steps and math.isfinite(result.aep_gwh) and result.aep_gwh > known[1, -1]:
        known = np.column_stack([known, [max(float(result.steps), known[0, -1]), result.aep_gwh]])
    return known
