"""The parts of an area: polygons, discs and buffered zones, checked, and as arrays for the kernels."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry.base import BaseGeometry

from leeward.errors import InputError
from leeward.layout.kernels.data import Boundary
from leeward.wind.checks import finite_array

Array = npt.NDArray[np.float64]
Number = TypeVar("Number", np.float64, np.int64)

QUARTER_SEGMENTS = 256  # edges that replace a quarter circle; the error is 5 millionths of the radius
POLYGONS = ("Polygon", "MultiPolygon")


@dataclass(frozen=True)
class Part:
    """All points within `margin` metres of a polygon, a line or a point. A disc is a point with a margin."""

    geometry: BaseGeometry
    margin: float = 0.0

    @property
    def is_polygon(self) -> bool:
        """True if its edges are straight."""
        return self.margin == 0 and self.geometry.geom_type == "Polygon"

    @property
    def area_m2(self) -> float:
        """The size of a polygon or a disc, m2."""
        return float(self.geometry.area) + math.pi * self.margin**2

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Least x and y, greatest x and y."""
        left, low, right, high = self.geometry.bounds
        return left - self.margin, low - self.margin, right + self.margin, high + self.margin

    def meets(self, other: "Part") -> bool:
        """Return whether two parts overlap; also true for polygons that share an edge."""
        reach = self.margin + other.margin
        if reach > 0:
            return bool(self.geometry.distance(other.geometry) < reach)
        return bool(self.geometry.intersects(other.geometry))

    def inside_of(self) -> BaseGeometry:
        """Return a polygon that approximates the part and is never larger."""
        return self.geometry.buffer(self.margin, quad_segs=QUARTER_SEGMENTS) if self.margin else self.geometry

    def outside_of(self) -> BaseGeometry:
        """Return a polygon that approximates the part and is never smaller."""
        if not self.margin:
            return self.geometry
        around = self.margin / math.cos(math.pi / (4 * QUARTER_SEGMENTS))
        return self.geometry.buffer(around, quad_segs=QUARTER_SEGMENTS)


def polygon_of(rings: Sequence[npt.ArrayLike], where: str) -> BaseGeometry:
    """Return a polygon from its outer ring and its holes, each of shape (points, 2 or more), closed or not."""
    checked = []
    for i, values in enumerate(rings):
        what = f"{where}: ring" if i == 0 else f"{where}: hole {i - 1}"
        ring = finite_array(values, what, (1, 2))
        if ring.size and (ring.ndim != 2 or ring.shape[1] < 2):
            raise InputError(f"{what}: expected points with two coordinates, found the shape {ring.shape}")
        different = len(np.unique(ring[:, :2], axis=0)) if ring.size else 0
        if different < 3:
            raise InputError(f"{what} has {different} different point(s); expected at least 3")
        checked.append(ring[:, :2])
    if not checked:
        raise InputError(f"{where} is empty; expected a polygon with at least 3 points")
    polygon = shapely.Polygon(checked[0], checked[1:])
    check_polygon(polygon, where)
    return polygon


def check_polygon(polygon: BaseGeometry, where: str) -> None:
    """Raise InputError unless the polygon has an area and its rings do not cross."""
    if not polygon.is_valid:
        raise InputError(
            f"{where} is not a valid polygon: {shapely.is_valid_reason(polygon)} (x and y in brackets); expected rings "
            "that neither cross nor touch themselves, with the holes inside: correct it, or use shapely.make_valid"
        )
    if not polygon.area > 0:
        raise InputError(f"{where} has no area: its points lie on one line; expected a polygon")


def polygons_of(geometry: BaseGeometry, where: str) -> list[BaseGeometry]:
    """Return the polygons of a geometry, checked."""
    if geometry.is_empty:
        raise InputError(f"{where} is empty; expected a polygon")
    if geometry.geom_type not in POLYGONS:
        raise InputError(f"{where} is a {geometry.geom_type}; expected a Polygon or a MultiPolygon")
    return [
        polygon_of([shapely.get_coordinates(ring) for ring in shapely.get_rings(polygon)], where)
        for polygon in shapely.get_parts(geometry)
    ]


def zone_parts(geometry: BaseGeometry, buffer_m: float, where: str) -> list[Part]:
    """Return the polygons, lines and points of an excluded geometry, extended by a buffer."""
    if geometry.is_empty:
        raise InputError(f"{where} is empty; expected polygons, lines or points")
    parts = []
    for piece in shapely.get_parts(geometry):
        if piece.geom_type == "GeometryCollection" or piece.geom_type.startswith("Multi"):
            parts += zone_parts(piece, buffer_m, where)
        elif piece.geom_type == "Polygon":
            parts += [Part(polygon, buffer_m) for polygon in polygons_of(piece, where)]
        else:
            points = finite_array(shapely.get_coordinates(piece), where, (2,))
            if not buffer_m > 0:
                raise InputError(f"{where} is a {piece.geom_type}, which has no area; give its buffer_m")
            different = len(np.unique(points, axis=0))
            parts.append(Part(shapely.LineString(points) if different > 1 else shapely.Point(points[0]), buffer_m))
    return parts


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return regions in a fixed order; polygons that touch or overlap become one."""
    parts = list(parts)
    polygons = [part.geometry for part in parts if part.is_polygon]
    whole = polygons[0] if len(polygons) == 1 else shapely.union_all(polygons)
    return in_order([*as_parts(whole), *(part for part in parts if not part.is_polygon)])


def as_parts(geometry: BaseGeometry) -> list[Part]:
    """Return the polygons of a union or difference, without lines and points."""
    return [Part(piece) for piece in shapely.get_parts(geometry) if piece.geom_type == "Polygon" and piece.area > 0]


def in_order(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts normalised, sorted and without duplicates, so that equal areas compare equal."""
    normal = {Part(shapely.normalize(part.geometry), part.margin) for part in parts}
    return tuple(sorted(normal, key=lambda part: (part.bounds, part.geometry.wkb_hex)))


def inner_shape(regions: Iterable[Part], zones: Iterable[Part]) -> BaseGeometry:
    """Return the regions without the zones, as polygons that are never larger."""
    shape = shapely.union_all([part.inside_of() for part in regions])
    excluded = [part.outside_of() for part in zones]
    left = as_parts(shape.difference(shapely.union_all(excluded)) if excluded else shape)
    return left[0].geometry if len(left) == 1 else shapely.MultiPolygon([part.geometry for part in left])


def boundary_of(regions: Sequence[Part], zones: Sequence[Part], origin: tuple[float, float]) -> Boundary:
    """Return the parts as arrays for the kernels."""
    parts = [*regions, *zones]
    edges = [_edges(part.geometry, np.array(origin)) for part in parts]
    start, end = (np.concatenate(side) for side in zip(*edges, strict=True))
    square = ((end - start) ** 2).sum(axis=1)
    return Boundary(
        start_x=_fixed(start[:, 0]),
        start_y=_fixed(start[:, 1]),
        end_x=_fixed(end[:, 0]),
        end_y=_fixed(end[:, 1]),
        inverse_square=_fixed(np.divide(1.0, square, out=np.zeros(len(square)), where=square > 0)),
        first=_fixed(np.cumsum([0, *(len(starts) for starts, _ in edges)], dtype=np.int64)),
        closed=_fixed(np.array([part.geometry.geom_type == "Polygon" for part in parts], dtype=np.int64)),
        margin=_fixed(np.array([part.margin for part in parts])),
        regions=len(regions),
    )


def _fixed(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return a contiguous read-only copy: areas never change."""
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def _edges(geometry: BaseGeometry, origin: Array) -> tuple[Array, Array]:
    """Return the starts and ends of edges, shape (edges, 2) each; a polygon lies to the left of its edges."""
    if geometry.geom_type != "Polygon":
        points = _without_repeats(shapely.get_coordinates(geometry) - origin)
        return points, np.concatenate([points[1:], points[-1:]])
    rings = []
    for i, ring in enumerate(shapely.get_rings(geometry)):
        points = shapely.get_coordinates(ring) - origin
        anticlockwise = i == 0  # holes are clockwise
        rings.append(_without_repeats(points if shapely.is_ccw(ring) == anticlockwise else points[::-1]))
    return np.concatenate([ring[:-1] for ring in rings]), np.concatenate([ring[1:] for ring in rings])


def _without_repeats(points: Array) -> Array:
    new = np.r_[True, (np.diff(points, axis=0) != 0).any(axis=1)]
    kept: Array = points[new]
    return kept
