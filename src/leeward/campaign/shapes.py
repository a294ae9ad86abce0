"""Shapes in a campaign file, areas made from them, and areas as plain coordinates."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from leeward.campaign.validation import Strict
from leeward.errors import InputError

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

    from leeward.layout import Area
    from leeward.layout.area_parts import Part

Point = Annotated[list[float], Field(min_length=2, max_length=2)]
Ring = Annotated[list[Point], Field(min_length=3)]
Line = Annotated[list[Point], Field(min_length=2)]
Text = Annotated[str, Field(min_length=1)]

PROJECTED_DIGITS = 3  # projected coordinates are rounded to mm, so that they are the same on every machine


def _feature(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise ValueError(f"is {value!r:.60}; expected a feature's farm_idx, its position, or its name")
    return value


Feature = Annotated[Any, BeforeValidator(_feature)]


class Circle(Strict):
    """A circle, in metres."""

    x: float
    y: float
    radius: Annotated[float, Field(gt=0)]


class Shape(Strict):
    """A region, in exactly one form."""

    forms: ClassVar[tuple[str, ...]] = ("polygon_m", "circle_m", "wkt", "geojson", "file")
    polygon_m: Ring | None = None
    holes_m: list[Ring] = Field(default_factory=list)
    circle_m: Circle | None = None
    wkt: Text | None = None
    geojson: dict[str, Any] | None = None
    file: Text | None = None
    feature: Feature = None


class Exclusion(Shape):
    """A zone without turbines: a region, a line or points, with a buffer around them."""

    forms: ClassVar[tuple[str, ...]] = ("polygon_m", "circle_m", "line_m", "points_m", "wkt", "geojson", "file")
    line_m: Line | None = None
    points_m: Annotated[list[Point], Field(min_length=1)] | None = None
    buffer_m: Annotated[float, Field(ge=0)] = 0.0


class Piece(Strict):
    """A polygon (a ring and its holes), a line or a point, and all points within `margin_m` of it."""

    forms: ClassVar[tuple[str, ...]] = ("rings_m", "line_m", "point_m")
    rings_m: Annotated[list[Ring], Field(min_length=1)] | None = None
    line_m: Line | None = None
    point_m: Point | None = None
    margin_m: Annotated[float, Field(ge=0)] = 0.0


class Pieces(Strict):
    """An area: regions, and zones excluded from them."""

    parts: Annotated[list[Piece], Field(min_length=1)]
    zones: list[Piece] = Field(default_factory=list)


def path_in(folder: Path | None, name: str) -> Path:
    """Return the path of a file that a campaign refers to."""
    if folder is None:
        raise InputError(
            f"refers to the file {name}; expected its contents, because a frozen campaign cannot refer to files"
        )
    return folder / name


def area_of(shape: Shape, folder: Path | None, crs: str | None) -> "Area":
    """Return the area of one shape."""
    from leeward.layout import Area

    if shape.polygon_m is not None:
        holes = [([x for x, _ in ring], [y for _, y in ring]) for ring in shape.holes_m]
        return Area.from_arrays(*zip(*shape.polygon_m, strict=True), holes=holes, crs=crs)
    if shape.circle_m is not None:
        return Area.circle(shape.circle_m.x, shape.circle_m.y, shape.circle_m.radius, crs=crs)
    if shape.wkt is not None:
        return Area.from_wkt(shape.wkt, crs=crs)
    which = {"name": shape.feature} if isinstance(shape.feature, str) else {"farm_idx": shape.feature}
    if shape.geojson is not None:
        return Area.from_geojson(shape.geojson, crs=crs, **which)
    return Area.from_file(path_in(folder, str(shape.file)), crs=crs, **which)


def without(area: "Area", exclusions: list[Exclusion], folder: Path | None, crs: str | None) -> "Area":
    """Return the area without the excluded zones."""
    import shapely

    for number, exclusion in enumerate(exclusions):
        zone: Area | BaseGeometry
        try:
            if exclusion.line_m is not None:
                zone = shapely.LineString(exclusion.line_m)
            elif exclusion.points_m is not None:
                zone = shapely.MultiPoint(exclusion.points_m)
            else:
                zone = area_of(exclusion, folder, crs)
            area = area.without(zone, exclusion.buffer_m)
        except InputError as error:
            raise InputError(f"exclude[{number}]: {error}") from error
    return area


def features_of(path: Path) -> list[tuple[int, str | None, dict[str, Any]]]:
    """Return number, name and GeoJSON of each polygon feature of a file; see `feature_name`."""
    from leeward.layout.area_file import feature_name, features_in, load_geojson
    from leeward.layout.area_parts import POLYGONS

    data, where = load_geojson(path)
    features = features_in(data, where)
    crs = {"crs": data["crs"]} if "crs" in data else {}  # a file has it once, at the top
    is_numbered = any("farm_idx" in feature.properties for feature in features)
    found = []
    for position, (geometry, properties, _) in enumerate(features):
        number = properties.get("farm_idx", None if is_numbered else position)
        if number is None or geometry.get("type") not in POLYGONS:
            continue  # skip substations, cables and other features
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise InputError(f"{path}: feature {position}: farm_idx is {number!r}; expected a whole number, 0 or more")
        alone = {"type": "Feature", "geometry": geometry, "properties": properties, **crs}
        found.append((number, feature_name(properties), alone))
    if not found:
        raise InputError(f"{path}: the file has no polygons; expected the areas of farms")
    return found


def is_windio(file: str) -> bool:
    """Return whether a file of an area is a windIO site."""
    return Path(file).suffix.lower() in (".yaml", ".yml")


def names_of(shape: Shape, folder: Path | None) -> list[str | None]:
    """Return the names of the polygon features that a shape takes from GeoJSON; None for one without a name."""
    if shape.file is None or shape.feature is not None:
        return [shape.feature] if isinstance(shape.feature, str) else []
    if is_windio(shape.file):
        from leeward.readers.windio_site import read_area

        return [read_area(path_in(folder, shape.file)).name]
    return [name for _, name, _ in features_of(path_in(folder, shape.file))]


def pieces_of(area: "Area") -> Pieces:
    """Return the area as coordinates."""
    moved = any(note.startswith(("projected", "reprojected")) for note in area.notes)
    pieces = {
        "parts": [_piece(part, moved) for part in area.parts],
        "zones": [_piece(part, moved) for part in area.zones],
    }
    found = Pieces.model_validate(pieces)
    return pieces_of(area_from(found, None)) if moved else found  # rounding may change the order of the parts


def area_from(pieces: Pieces, crs: str | None) -> "Area":
    """Return the area with exactly these coordinates."""
    from leeward.layout import Area
    from leeward.layout.area_parts import in_order

    parts = in_order(_part(piece, f"part {number}") for number, piece in enumerate(pieces.parts))
    return Area(parts, in_order(_part(piece, f"zone {number}") for number, piece in enumerate(pieces.zones)), crs)


def _piece(part: "Part", moved: bool) -> dict[str, Any]:
    import shapely

    geometry = part.geometry

    def points(of: "BaseGeometry") -> list[list[float]]:
        coordinates = shapely.get_coordinates(of)
        found: list[list[float]] = (coordinates.round(PROJECTED_DIGITS) if moved else coordinates).tolist()
        return found

    if geometry.geom_type == "Polygon":
        return {"rings_m": [points(ring) for ring in shapely.get_rings(geometry)], "margin_m": float(part.margin)}
    if geometry.geom_type == "Point":
        return {"point_m": points(geometry)[0], "margin_m": float(part.margin)}
    return {"line_m": points(geometry), "margin_m": float(part.margin)}


def _part(piece: Piece, where: str) -> "Part":
    import shapely

    from leeward.layout.area_parts import Part, polygon_of

    if piece.rings_m is not None:
        return Part(polygon_of(piece.rings_m, where), piece.margin_m)
    geometry = shapely.Point(piece.point_m) if piece.line_m is None else shapely.LineString(piece.line_m)
    return Part(geometry, piece.margin_m)
