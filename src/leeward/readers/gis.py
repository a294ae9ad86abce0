"""Areas in files of geographic information systems: GeoPackage, Shapefile and KML, read by pyogrio."""

import math
from pathlib import Path
from typing import Any

from leeward.errors import InputError

ENDINGS = (".gpkg", ".shp", ".kml", ".kmz")


def read_features(path: Path) -> dict[str, Any]:
    """Return the features of the only layer with polygons, as a GeoJSON object that names its coordinate system."""
    try:
        import pyogrio
    except ImportError as error:
        raise InputError(f"{path}: reading {path.suffix} files needs pyogrio; pip install 'leeward[gis]'") from error
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected areas")
    try:
        # tables without geometry, such as the styles of QGIS, have no kind
        layers = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None and "Point" not in kind]
        if not layers:
            raise InputError(f"{path}: has no layer of polygons")
        read = {layer: pyogrio.raw.read(path, layer=layer) for layer in layers}
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    found = {layer: _collection(*content) for layer, content in read.items()}
    with_polygons = {layer: data for layer, data in found.items() if any(map(_is_polygon, data["features"]))}
    if len(with_polygons) > 1:
        raise InputError(
            f"{path}: {len(with_polygons)} layers have polygons ({', '.join(with_polygons)}); expected one: export it "
            "to a file of its own"
        )
    return next(iter((with_polygons or found).values()))


def _is_polygon(feature: dict[str, Any]) -> bool:
    return (feature["geometry"] or {}).get("type") in ("Polygon", "MultiPolygon")


def _collection(meta: dict[str, Any], _: Any, geometries: Any, columns: Any) -> dict[str, Any]:
    import shapely

    shapes = [_polygons(shape) for shape in shapely.force_2d(shapely.from_wkb(geometries))]
    names = [str(name) for name in meta["fields"]]
    features = [
        {
            "type": "Feature",
            "geometry": None if shape is None else _plain(shapely.geometry.mapping(shape)),
            "properties": {name: _value(column[row]) for name, column in zip(names, columns, strict=True)},
        }
        for row, shape in enumerate(shapes)
    ]
    # null, not absent: without a name they are metres, while GeoJSON would be in degrees
    named = {"type": "name", "properties": {"name": meta["crs"]}} if meta["crs"] else None
    return {"type": "FeatureCollection", "crs": named, "features": features}


def _polygons(shape: Any) -> Any:
    """Return a collection, such as a MultiGeometry of KML, as its polygons; other geometries as they are."""
    import shapely

    if shape is None or shape.geom_type != "GeometryCollection":
        return shape
    parts = [part for part in shape.geoms if part.geom_type in ("Polygon", "MultiPolygon")]
    return shapely.MultiPolygon([each for part in parts for each in shapely.get_parts(part)]) if parts else shape


def _plain(value: Any) -> Any:
    """Return tuples as lists."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _value(value: Any) -> Any:
    """Return an attribute as text, a number or None. Whole numbers are stored as floats where some are missing."""
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float):
        return None if math.isnan(plain) else int(plain) if plain.is_integer() else plain
    return plain if isinstance(plain, str | int | bool) or plain is None else str(plain)
