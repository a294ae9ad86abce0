"""Layouts as GeoJSON (RFC 7946): longitude and latitude in WGS84, converted from the campaign's coordinates."""

import functools
import json
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.formats.rows import TURBINE_COLUMNS, Cell, values_of

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.layout import Area
    from leeward.store import Result

Array = npt.NDArray[np.float64]

DECIMALS = 9  # of degrees: a tenth of a millimetre
# A straight edge in a projection is curved in degrees: 26 m off over 30 km in the North Sea, so turbines on the
# boundary would seem to lie outside. Edges of this length are at most 3 cm off.
LONGEST_EDGE_M = 1000.0


def layout_geojson(result: "Result", campaign: "Campaign") -> str:
    """Return one layout: the area of its farm, a point for each existing turbine, and one for each of its turbines."""
    return "".join(collection([result.key.farm_idx], [result], campaign))


def collection(farms: Iterable[int], results: "Iterable[Result]", campaign: "Campaign") -> Iterator[str]:
    """Yield the text of a file piece by piece, one feature a line: farm areas, existing turbines, then layouts."""
    facts = {"type": "FeatureCollection", "campaign": campaign.name, "projected_crs": demanded_crs(campaign)}
    first = [*(_area_feature(farm, campaign) for farm in farms), *_neighbour_features(campaign)]
    yield _dumped(facts)[:-1] + ', "features": [\n' + ",\n".join(map(_dumped, first))
    for result in results:
        yield ",\n".join(["", *map(_dumped, _turbine_features(result, campaign))])
    yield "\n]}\n"


def _dumped(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False)  # JSON has no NaN


def _area_feature(farm_idx: int, campaign: "Campaign") -> dict[str, Any]:
    area, name = campaign.physics.area(farm_idx), campaign.farms.get(farm_idx)
    properties = {"kind": "area", "farm_idx": farm_idx, "name": name, "area_km2": area.area_m2 / 1e6}
    return {"type": "Feature", "properties": properties, "geometry": _geometry(area, demanded_crs(campaign))}


def _turbine_features(result: "Result", campaign: "Campaign") -> Iterator[dict[str, Any]]:
    values = values_of(result, campaign)
    names = [column.name for column in TURBINE_COLUMNS if column.name not in ("turbine", "x_m", "y_m", "crs")]
    properties = {"kind": "turbine", **{name: _known(values[name]) for name in names}}
    points = _points(result.x, result.y, demanded_crs(campaign), str(result.key))
    for turbine, point in enumerate(points):
        yield {"type": "Feature", "properties": {**properties, "turbine": turbine}, "geometry": point}


def _neighbour_features(campaign: "Campaign") -> Iterator[dict[str, Any]]:
    """Yield a Point for each existing turbine: once per file, because their wakes reach all farms."""
    crs = demanded_crs(campaign)
    for group in campaign.neighbours:
        machine: Any = group.turbine
        properties = {
            "kind": "neighbour",
            "turbine_type": machine.name,
            "rotor_diameter_m": float(machine.rotor_diameter_m),
            "hub_height_m": float(machine.hub_height_m),
            "rated_power_mw": float(machine.rated_power_mw),
        }
        for point in _points(group.x_m or [], group.y_m or [], crs, "the neighbours"):
            yield {"type": "Feature", "properties": properties, "geometry": point}


def demanded_crs(campaign: "Campaign") -> str:
    """Return the coordinate system of the campaign, or raise InputError if it has none."""
    if campaign.crs is None:
        raise InputError(
            f"the campaign {campaign.name} has no coordinate system, but GeoJSON needs longitude and latitude; add the "
            "key `crs` to the campaign file, for example `crs: EPSG:25831`, and name the file with --campaign"
        )
    return campaign.crs


def to_wgs84(x: npt.ArrayLike, y: npt.ArrayLike, crs: str, where: str) -> tuple[Array, Array]:
    """Return longitude and latitude, degrees to 9 decimals, of points in a projected system; shape (points,)."""
    longitude, latitude = _transformer(crs).transform(np.asarray(x), np.asarray(y))
    if not (np.isfinite(longitude).all() and np.isfinite(latitude).all()):
        raise InputError(f"{where}: has a point outside the range of {crs}; check the coordinate system")
    return np.round(longitude, DECIMALS), np.round(latitude, DECIMALS)


def _points(x: npt.ArrayLike, y: npt.ArrayLike, crs: str, where: str) -> Iterator[dict[str, Any]]:
    longitude, latitude = to_wgs84(x, y, crs, where)
    for place in zip(longitude.tolist(), latitude.tolist(), strict=True):
        yield {"type": "Point", "coordinates": list(place)}


@functools.cache
def _transformer(crs: str) -> Any:
    import pyproj

    return pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)


def _geometry(area: "Area", crs: str) -> dict[str, Any]:
    """Return a geometry as RFC 7946 asks: outer rings counterclockwise, holes clockwise, cut at the 180th meridian."""
    import shapely

    def move(points: Array) -> Array:
        return np.column_stack(to_wgs84(points[:, 0], points[:, 1], crs, "the area"))

    moved = shapely.transform(shapely.segmentize(area.to_shapely(), LONGEST_EDGE_M), move)
    parts = [piece for part in shapely.get_parts(moved) for piece in _cut_at_180(part)]
    polygons = [shapely.geometry.polygon.orient(part, 1.0) for part in parts]
    shape = polygons[0] if len(polygons) == 1 else shapely.MultiPolygon(polygons)
    geometry: dict[str, Any] = shapely.geometry.mapping(shape)
    return geometry


def _cut_at_180(polygon: Any) -> list[Any]:
    """Split a polygon that crosses the 180th meridian, where its corners jump by 360 degrees, into one on each side."""
    import shapely

    west, _, east, _ = polygon.bounds
    if east - west <= 180.0:  # no area is so wide
        return [polygon]
    whole = shapely.transform(polygon, lambda points: points + np.where(points[:, :1] < 0.0, [360.0, 0.0], 0.0))
    east_of_it = shapely.transform(whole & shapely.box(180, -90, 360, 90), lambda points: points - [360.0, 0.0])
    sides = shapely.get_parts([whole & shapely.box(0, -90, 180, 90), east_of_it])
    return [part for part in sides if shapely.area(part) > 0.0]


def _known(value: Cell) -> Cell:
    return None if isinstance(value, float) and not math.isfinite(value) else value
