"""Read areas from GeoJSON, GIS files and WKT, and convert their coordinates to projected metres."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import shapely
from shapely.errors import GEOSException
from shapely.geometry.base import BaseGeometry

from leeward.errors import InputError
from leeward.layout.area_parts import POLYGONS, check_polygon, polygon_of, polygons_of
from leeward.parsing import LARGEST_DATA, parse_json, read_text
from leeward.readers import gis

if TYPE_CHECKING:
    import pyproj

WGS84 = "EPSG:4326"
HIGHEST_STRETCH = 1.05  # largest factor by which a projection may stretch lengths; 1.001 within a UTM zone
NAMES = ("name", "Name", "NAME", "title")  # properties with the name of a feature, in order of preference
LOWEST_UTM, HIGHEST_UTM = -80.0, 84.0  # range of the UTM zones, degrees of latitude


class Reading(NamedTuple):
    """Geometries in projected metres, their coordinate system, and notes on how they were transformed."""

    geometries: list[BaseGeometry]
    crs: str | None
    notes: tuple[str, ...]


class Feature(NamedTuple):
    """One geometry of a GeoJSON object, its properties, and its name in errors."""

    geometry: Mapping[str, Any]
    properties: Mapping[str, Any]
    where: str


def feature_name(properties: Mapping[str, Any]) -> str | None:
    """Return the name of a feature: its property name, Name, NAME or title, in this order; None if it has none."""
    for key in NAMES:
        value = properties.get(key)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    return None


def read_geojson(
    source: str | os.PathLike[str] | Mapping[str, Any], farm_idx: int | None, name: str | None, crs: str | None
) -> Reading:
    """Return the polygons of a GeoJSON object; see `Area.from_geojson`."""
    data, where = load_geojson(source)
    features = features_in(data, where)
    notes: tuple[str, ...] = ()
    if farm_idx is None and name is None:
        chosen = [feature for feature in features if feature.geometry.get("type") in POLYGONS]
        if not chosen:
            found = ", ".join(sorted({str(feature.geometry.get("type")) for feature in features}))
            raise InputError(f"{where}: it has no polygons, only {found}; expected a Polygon or a MultiPolygon")
        if len(chosen) < len(features):
            notes = (f"left out {len(features) - len(chosen)} feature(s) of {len(features)} that are not polygons",)
    else:
        chosen = _select(features, farm_idx, name, where)
    polygons = [polygon for feature in chosen for polygon in _polygons(feature)]
    named = _named_crs(data, where)
    if "crs" not in data:
        if _in_degrees(polygons):
            named = WGS84
        elif crs is None:
            raise InputError(
                f"{where}: the coordinates cannot be degrees, with {_farthest(polygons)}, and no coordinate system is "
                "named; name the projected one with crs=, for example crs='EPSG:25831'"
            )
    if named is None and crs is not None:
        reading = in_metres(polygons, crs, None, where)
        return reading._replace(
            notes=(*notes, f"coordinates read as {reading.crs}, because the source names no coordinate system")
        )
    reading = in_metres(polygons, named, crs, where)
    return reading._replace(notes=(*notes, *reading.notes))


def read_wkt(text: str, crs: str | None) -> Reading:
    """Return the polygons of a WKT text; see `Area.from_wkt`."""
    if not isinstance(text, str):
        raise InputError(f"WKT is {text!r:.60}; expected text, for example 'POLYGON ((0 0, 900 0, 0 900, 0 0))'")
    try:
        with np.errstate(invalid="ignore"):  # no warning for a NaN: the check of the ring raises an error
            geometry = shapely.from_wkt(text)
    except GEOSException as error:
        raise InputError(f"{text!r:.60} cannot be read as WKT ({error}); expected a POLYGON or MULTIPOLYGON") from error
    return in_metres(polygons_of(geometry, "the WKT"), crs, None, "the WKT")


def in_metres(geometries: Sequence[BaseGeometry], source: str | None, target: str | None, where: str) -> Reading:
    """Return geometries, projected from `source` to `target`. source: None for metres of an unnamed system.

    Without a target, projected coordinates are unchanged, and degrees are projected to their UTM zone.
    """
    if source is None:
        return Reading(list(geometries), None, ())
    known = _crs(source, where)
    if known.is_geographic:
        if not _in_degrees(geometries):
            raise InputError(
                f"{where}: the coordinates cannot be degrees of {known.to_string()}, with {_farthest(geometries)}; "
                "expected longitude and latitude, in this order, or name another coordinate system with crs="
            )
        zone = _utm(geometries, known, where) if target is None else target
        projected, verb = _in_metres(_crs(zone, "crs"), "crs"), "projected"
    else:
        known = _in_metres(known, where)
        projected, verb = known if target is None else _in_metres(_crs(target, "crs"), "crs"), "reprojected"
    moved = list(geometries)
    notes: tuple[str, ...] = ()
    if known != projected:
        moved = [_transform(geometry, known, projected, where) for geometry in geometries]
        utm = f" (UTM zone {projected.utm_zone})" if projected.utm_zone else ""
        notes = (f"{verb} from {known.to_string()} to {projected.to_string()}{utm}",)
    _check_scale(moved, projected, where)
    return Reading(moved, projected.to_string(), notes)


def load_geojson(source: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return the GeoJSON object, and its name in errors."""
    if isinstance(source, Mapping):
        return source, "the GeoJSON"
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"the GeoJSON is {source!r:.60}; expected a path, JSON text or a dict")
    if isinstance(source, str) and source.lstrip()[:1] in ("{", "["):
        text, where = source, "the GeoJSON"
    else:
        path = Path(source)
        where = str(path)
        if path.suffix.lower() in gis.ENDINGS:
            return gis.read_features(path), where
        text = read_text(path, "a GeoJSON file, or JSON text that begins with '{'", LARGEST_DATA)
    data = parse_json(text, where)
    if not isinstance(data, Mapping):
        raise InputError(f"{where}: expected a GeoJSON object, found {data!r:.60}")
    return data, where


def features_in(data: Mapping[str, Any], where: str) -> list[Feature]:
    """Return the features of a FeatureCollection, a Feature or a geometry."""
    kind = data.get("type")
    if kind == "FeatureCollection":
        items = data.get("features")
        if not isinstance(items, Sequence) or not items:
            raise InputError(f"{where}: it has no features; expected at least one")
        places = [f"{where}: feature {i}" for i in range(len(items))]
    elif kind == "Feature":
        items, places = [data], [where]
    elif isinstance(kind, str):
        return [Feature(data, {}, where)]
    else:
        raise InputError(f"{where}: its type is {kind!r}; expected a FeatureCollection, a Feature or a geometry")
    features = []
    for item, place in zip(items, places, strict=True):
        if not isinstance(item, Mapping) or item.get("type") != "Feature":
            raise InputError(f"{place} is {item!r:.60}; expected an object of type Feature")
        geometry, properties = item.get("geometry") or {}, item.get("properties") or {}
        if not isinstance(geometry, Mapping) or not isinstance(properties, Mapping):
            raise InputError(f"{place}: geometry or properties are not objects; expected {{...}} or null")
        if ("crs" in item and item is not data) or "crs" in geometry:
            raise InputError(f"{place}: it has its own coordinate system (crs); expected one for all, at the top")
        features.append(Feature(geometry, properties, place))
    return features


def _select(features: list[Feature], farm_idx: int | None, name: str | None, where: str) -> list[Feature]:
    """Return the features with this number or name."""
    chosen = features
    if farm_idx is not None:
        if isinstance(farm_idx, bool) or not isinstance(farm_idx, int | np.integer):
            raise InputError(f"farm_idx is {farm_idx!r:.60}; expected a whole number")
        if any("farm_idx" in feature.properties for feature in features):
            chosen = [feature for feature in chosen if feature.properties.get("farm_idx") == farm_idx]
        else:
            chosen = [feature for i, feature in enumerate(features) if i == farm_idx]
    if name is not None:
        chosen = [feature for feature in chosen if feature_name(feature.properties) == name]
        polygons = [feature for feature in chosen if feature.geometry.get("type") in POLYGONS]
        chosen = polygons or chosen  # a substation may have the name of its farm
    if not chosen:
        raise InputError(
            f"{where}: no feature has {_described(farm_idx, name, ' and ')}; found the features {_listed(features)}"
        )
    if name is not None and len(chosen) > 1:
        raise InputError(
            f"{where}: {len(chosen)} features have {_described(farm_idx, name, ' and ')}; expected one: choose "
            f"by number (farm_idx) among {_listed(features)}"
        )
    return chosen


def _listed(features: list[Feature]) -> str:
    return "; ".join(
        ", ".join(filter(None, [str(i), _described(f.properties.get("farm_idx"), feature_name(f.properties), ", ")]))
        for i, f in enumerate(features)
    )


def _described(farm_idx: Any, name: str | None, between: str) -> str:
    known = (("farm_idx", farm_idx), ("name", name))
    return between.join(f"{key} {value!r}" for key, value in known if value is not None)


def _polygons(feature: Feature) -> list[BaseGeometry]:
    """Return the polygons of a feature, checked, in its own coordinates."""
    kind = feature.geometry.get("type")
    if kind not in POLYGONS:
        raise InputError(f"{feature.where} is a {kind}; expected a Polygon or a MultiPolygon")
    coordinates: Any = feature.geometry.get("coordinates")
    each = [coordinates] if kind == "Polygon" else coordinates
    if not isinstance(each, Sequence) or not all(isinstance(rings, Sequence) for rings in each):
        raise InputError(f"{feature.where}: coordinates are {coordinates!r:.60}; expected rings of points")
    if not each:
        raise InputError(f"{feature.where} is empty; expected a polygon")
    return [polygon_of(rings, feature.where) for rings in each]


def _named_crs(data: Mapping[str, Any], where: str) -> str | None:
    """Return the coordinate system in the member "crs" of GeoJSON before 2016; None if it is null, or unnamed."""
    member = data.get("crs")
    if member is None:
        return None
    properties = member.get("properties") if isinstance(member, Mapping) else None
    name = properties.get("name") if isinstance(properties, Mapping) else None
    if not isinstance(name, str):
        raise InputError(
            f"{where}: crs is {member!r:.100}; expected "
            '{"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25831"}} or the like'
        )
    return name


def _crs(name: str, where: str) -> "pyproj.CRS":
    import pyproj

    try:
        crs = pyproj.CRS.from_user_input(name)
    except pyproj.exceptions.CRSError as error:
        raise InputError(
            f"{where}: the coordinate system {name!r:.100} is not known ({error}); expected a name such as 'EPSG:25831'"
        ) from error
    return crs


def _in_metres(crs: "pyproj.CRS", where: str) -> "pyproj.CRS":
    """Return `crs`, or raise InputError if it is not projected, in metres."""
    if not crs.is_projected:
        raise InputError(f"{where}: {crs.to_string()} is not projected; expected metres, for example 'EPSG:25831'")
    for axis in crs.axis_info[:2]:
        if axis.unit_conversion_factor != 1.0:
            raise InputError(
                f"{where}: the unit of {crs.to_string()} is the {axis.unit_name}; expected the metre: "
                "reproject it to another coordinate system first, for example that of the UTM zone"
            )
    return crs


def _in_degrees(geometries: Sequence[BaseGeometry]) -> bool:
    points = np.abs(shapely.get_coordinates(geometries))
    return bool((points <= (180.0, 90.0)).all())


def _farthest(geometries: Sequence[BaseGeometry]) -> str:
    points = shapely.get_coordinates(geometries)
    x, y = points[np.argmax(np.abs(points).max(axis=1))]
    return f"a point at ({x:g}, {y:g})"


def _utm(geometries: Sequence[BaseGeometry], crs: "pyproj.CRS", where: str) -> str:
    """Return the UTM zone of the centre of the geometries."""
    import pyproj

    left, low, right, high = shapely.total_bounds(np.array(geometries, dtype=object))
    if right - left > 180:
        raise InputError(
            f"{where}: it spans longitudes from {left:g} to {right:g} (across 180 degrees?), too many for a UTM zone; "
            "name a projected coordinate system with crs=, or project the coordinates first"
        )
    to_wgs84 = pyproj.Transformer.from_crs(crs, WGS84, always_xy=True)
    longitude, latitude = to_wgs84.transform((left + right) / 2, (low + high) / 2)
    if not LOWEST_UTM <= latitude <= HIGHEST_UTM:
        raise InputError(
            f"{where}: its centre is at the latitude {latitude:g}, where there are no UTM zones; name a projected "
            "coordinate system with crs=, or project the coordinates first"
        )
    zone = min(int((longitude + 180) // 6) + 1, 60)
    return f"EPSG:{(32600 if latitude >= 0 else 32700) + zone}"


def _transform(geometry: BaseGeometry, source: "pyproj.CRS", target: "pyproj.CRS", where: str) -> BaseGeometry:
    import pyproj

    transformer = pyproj.Transformer.from_crs(source, target, always_xy=True)

    def move(points: Any) -> Any:
        return np.column_stack(transformer.transform(points[:, 0], points[:, 1]))

    points = shapely.get_coordinates(geometry)
    bad = ~np.isfinite(move(points)).all(axis=1)
    if bad.any():
        x, y = points[bad][0]
        raise InputError(
            f"{where}: the point ({x:g}, {y:g}) of {source.to_string()} cannot be projected to {target.to_string()}; "
            "expected a coordinate system for this part of the world"
        )
    moved = shapely.transform(geometry, move)
    if moved.geom_type == "Polygon":
        check_polygon(moved, f"{where}, in {target.to_string()},")
    return moved


def _check_scale(geometries: Sequence[BaseGeometry], crs: "pyproj.CRS", where: str) -> None:
    """Raise InputError if a metre of the projection is not a metre on the ground, as in EPSG:3857."""
    import pyproj

    left, low, right, high = shapely.total_bounds(np.array(geometries, dtype=object))
    x, y = (left + right) / 2, (low + high) / 2
    to_degrees = pyproj.Transformer.from_crs(crs, WGS84, always_xy=True)
    longitude, latitude = to_degrees.transform(np.array([x, x + 1000.0, x]), np.array([y, y, y + 1000.0]))
    if not (np.isfinite(longitude).all() and np.isfinite(latitude).all()):
        raise InputError(f"{where}: ({x:g}, {y:g}) is not on the globe in {crs.to_string()}; check crs")
    start = np.full(2, longitude[0]), np.full(2, latitude[0])
    length = pyproj.Geod(ellps="WGS84").inv(*start, longitude[1:], latitude[1:])[2]
    stretch = 1000.0 / np.asarray(length)
    if not (stretch < HIGHEST_STRETCH).all() or not (stretch > 1 / HIGHEST_STRETCH).all():
        raise InputError(
            f"{where}: its centre is at longitude {longitude[0]:.2f}, latitude {latitude[0]:.2f}, where 1000 m on the "
            f"ground are {1000 * stretch[0]:.0f} m in {crs.to_string()}; expected a coordinate system for this "
            "part of the world. Is crs the right one? Are longitude and latitude swapped (GeoJSON has longitude first)?"
        )
