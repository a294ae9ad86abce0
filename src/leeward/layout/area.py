"""The area in which turbines may stand: its shape, and the distance of points from its boundary."""

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry.base import BaseGeometry

from leeward.errors import InputError, LeewardError
from leeward.layout.area_file import Reading, in_metres, read_geojson, read_wkt
from leeward.layout.area_parts import (
    Part,
    as_parts,
    boundary_of,
    in_order,
    inner_shape,
    joined,
    polygon_of,
    zone_parts,
)
from leeward.layout.kernels import compiled
from leeward.layout.kernels.data import Boundary
from leeward.readers.windio_site import read_area
from leeward.wind.checks import finite_array, positive

Array = npt.NDArray[np.float64]

ON_BOUNDARY_M = 1e-9  # points at most this far outside count as on the boundary; the spacing of floats near 6 000 000 m
NEARLY_M = 1e-6  # a small step moves points at most this far outside to the boundary
POLISHING_STEPS = 60
MOST_DRAWS = 10_000_000


@dataclass(frozen=True, repr=False)
class Area:
    """The area in which turbines may stand: regions without excluded zones.

    Make one with `from_file`, `from_geojson`, `from_wkt`, `from_arrays`, `circle` or `union`, and exclude zones with
    `without`. An area never changes; areas of the same shape are equal. Coordinates are metres, x to the east and y to
    the north, in the projected coordinate system `crs`, or in an unnamed one if None. notes: sentences on how the
    coordinates were transformed. bounds: least x and y, greatest x and y of the regions, m; zones do not reduce it.
    boundary: the area for the kernels, in metres from `origin`, which is in whole metres to lose no digits.
    """

    parts: tuple[Part, ...]
    zones: tuple[Part, ...] = ()
    crs: str | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)
    bounds: tuple[float, float, float, float] = field(init=False, compare=False)
    origin: tuple[float, float] = field(init=False, compare=False)
    boundary: Boundary = field(init=False, compare=False)

    def __post_init__(self) -> None:
        lefts, lows, rights, highs = zip(*(part.bounds for part in self.parts), strict=True)
        left, low, right, high = min(lefts), min(lows), max(rights), max(highs)
        origin = float(round((left + right) / 2)), float(round((low + high) / 2))
        boundary = boundary_of(self.parts, self.zones, origin)
        vars(self).update(bounds=(left, low, right, high), origin=origin, boundary=boundary)

    @staticmethod
    def from_file(
        path: str | os.PathLike[str],
        *,
        farm_idx: int | None = None,
        name: str | None = None,
        crs: str | None = None,
    ) -> "Area":
        """Read GeoJSON, GeoPackage, Shapefile or KML, or the boundaries and exclusions of a windIO site (.yaml).

        farm_idx, name, crs: as in `from_geojson`. The first two do not apply to windIO.
        """
        file = Path(path)
        if file.suffix.lower() not in (".yaml", ".yml"):
            return Area.from_geojson(file, farm_idx=farm_idx, name=name, crs=crs)
        if farm_idx is not None or name is not None:
            raise InputError(f"{file}: a windIO site is one area; remove farm_idx and name")
        return _windio_area(file, crs)

    @staticmethod
    def from_geojson(
        source: str | os.PathLike[str] | Mapping[str, Any],
        *,
        farm_idx: int | None = None,
        name: str | None = None,
        crs: str | None = None,
    ) -> "Area":
        """Return the polygons of a GeoJSON file, text or dict: a FeatureCollection, a Feature or a geometry.

        farm_idx: select the feature with this property `farm_idx` or, if no feature has one, at this position.
        name: select the feature with this name: its property name, Name, NAME or title. crs: the projected coordinate
        system of the area; by default that of the source or, for degrees (GeoJSON without a "crs"), the UTM zone.
        """
        return _of_polygons(read_geojson(source, farm_idx, name, crs))

    @staticmethod
    def from_wkt(text: str, *, crs: str | None = None) -> "Area":
        """Return the area of a POLYGON or MULTIPOLYGON. crs: of its coordinates. Degrees are projected to UTM."""
        return _of_polygons(read_wkt(text, crs))

    @staticmethod
    def from_arrays(
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        holes: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]] = (),
        crs: str | None = None,
    ) -> "Area":
        """Return a polygon with corners x, y, shape (corners,). holes: pairs of x and y. crs: as in `from_wkt`."""
        rings = [_ring(x, y, "")]
        for i, hole in enumerate(holes):
            if not isinstance(hole, Sequence | np.ndarray) or len(hole) != 2:
                raise InputError(f"hole {i} is {hole!r:.60}; expected a pair of x and y")
            rings.append(_ring(hole[0], hole[1], f"hole {i}: "))
        return _of_polygons(in_metres([polygon_of(rings, "the polygon")], crs, None, "the polygon"))

    @staticmethod
    def circle(x: float, y: float, radius_m: float, *, crs: str | None = None) -> "Area":
        """Return an exact disc. crs: of x and y, as in `from_wkt`."""
        radius = positive(radius_m, "radius_m")
        centre = shapely.Point(*finite_array([x, y], "the centre"))
        geometries, name, notes = in_metres([centre], crs, None, "the centre")
        return _checked(in_order([Part(geometries[0], radius)]), (), name, notes)

    @staticmethod
    def union(areas: Iterable["Area"]) -> "Area":
        """Return the union of areas. Polygons that touch or overlap become one region; a circle stays separate."""
        areas = list(areas)
        for area in areas:
            if not isinstance(area, Area):
                raise InputError(f"one of the areas is {area!r:.60}; expected an Area")
        if not areas:
            raise InputError("there are no areas to join; expected at least one")
        for one in areas:
            for zone in one.zones:
                if any(zone not in other.zones and zone.meets(part) for other in areas for part in other.parts):
                    raise InputError(
                        "a zone excluded from one of the areas overlaps another area; "
                        "make the union of the areas first, then exclude the zones from it"
                    )
        zones = in_order(zone for area in areas for zone in area.zones)
        notes = tuple(dict.fromkeys(note for area in areas for note in area.notes))
        return _checked(joined(part for area in areas for part in area.parts), zones, _common_crs(areas), notes)

    def without(self, zones: "Area | BaseGeometry | Iterable[Area | BaseGeometry]", buffer_m: float = 0.0) -> "Area":
        """Return the area without zones and a buffer around them.

        zones: areas, or shapely geometries in the coordinates of this area: polygons, lines (cables), points (wrecks).
        """
        buffer = float(finite_array(buffer_m, "buffer_m", (0,)))
        if buffer < 0:
            raise InputError(f"buffer_m is {buffer:g}; expected 0 or more")
        if not isinstance(zones, Area | BaseGeometry | Iterable):
            raise InputError(f"zones are {zones!r:.60}; expected an Area, a shapely geometry, or several of them")
        each = [zones] if isinstance(zones, Area | BaseGeometry) else list(zones)
        found: list[Part] = []
        for i, zone in enumerate(each):
            found += _zone(zone, buffer, f"zone {i}")
        areas = [self, *(zone for zone in each if isinstance(zone, Area))]
        cut = [part.geometry for part in found if part.is_polygon]
        parts = list(self.parts)
        if cut:
            hole = shapely.union_all(cut)
            parts = [
                piece
                for part in parts
                for piece in (as_parts(part.geometry.difference(hole)) if part.is_polygon else [part])
            ]
        # a zone that was cut out of the polygons may still overlap a disc
        kept = [
            zone
            for zone in found
            if any(zone.meets(part) for part in parts if not (zone.is_polygon and part.is_polygon))
        ]
        notes = tuple(dict.fromkeys(note for area in areas for note in area.notes))
        return _checked(in_order(parts), in_order([*self.zones, *kept]), _common_crs(areas), notes)

    def __repr__(self) -> str:
        return f"Area({self.regions} region(s), {self.area_m2 / 1e6:.6g} km2, crs={self.crs!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Area, (self.parts, self.zones, self.crs, self.notes)

    @property
    def regions(self) -> int:
        """The number of pieces that do not touch."""
        return len(shapely.get_parts(self._shape))

    @property
    def area_m2(self) -> float:
        """The size in m2: exact for polygons and discs, accurate to 5 millionths if a zone cuts a curve."""
        if not self.zones and self.regions == len(self.parts):
            return sum(part.area_m2 for part in self.parts)
        return float(self._shape.area)

    def signed_distance(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
        """Return the distance from the boundary, m, shape (points,): positive inside, negative outside.

        It is exact inside. Outside of an area with zones it is the distance from one boundary, the most violated
        one; the nearest point inside may be farther away.
        """
        return self._measure(*_points(x, y))[0]

    def signed_distance_gradient(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Return `signed_distance`, and its derivatives by x and y: a unit vector at every point.

        Half-way between two edges there are several such vectors; the result is one of them.
        """
        return self._measure(*_points(x, y))

    def contains(self, x: npt.ArrayLike, y: npt.ArrayLike, tolerance_m: float = 0.0) -> npt.NDArray[np.bool_]:
        """Return whether points lie inside, or no more than `tolerance_m` outside; shape (points,).

        Rounding decides whether a point on the boundary counts as inside; give a tolerance, for example 1e-6.
        """
        return self.signed_distance(x, y) >= -float(finite_array(tolerance_m, "tolerance_m", (0,)))

    def nearest_inside(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
        """Return the nearest points inside the area or on its boundary; points inside stay.

        Where several boundaries meet, the distance is accurate to 5 millionths of a buffer or radius. The signed
        distance of the result is at least -1e-9 m.
        """
        x, y = _points(x, y)
        there_x, there_y = self._step(x, y, 0.0)
        # a step to the most violated boundary is never too long; if the point then violates another one, search
        away = np.flatnonzero(self._measure(there_x, there_y)[0] < -NEARLY_M)
        if len(away):
            lines = shapely.shortest_line(self._shape, shapely.points(x[away], y[away]))
            there_x[away], there_y[away] = shapely.get_coordinates(lines)[::2].T
        for step in range(POLISHING_STEPS):
            if (self._measure(there_x, there_y)[0] >= -ON_BOUNDARY_M).all():
                return there_x, there_y
            there_x, there_y = self._step(there_x, there_y, ON_BOUNDARY_M * (1.5**step - 1.0))
        raise LeewardError(f"nearest_inside found no point inside {self}; this is a bug in leeward: please report it")

    def random_points(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return x and y of `count` points, drawn uniformly from the area."""
        if isinstance(count, bool) or not (isinstance(count, int | np.integer) and count >= 0):
            raise InputError(f"count is {count!r}; expected a whole number, 0 or more")
        if not isinstance(rng, np.random.Generator):
            raise InputError(f"rng is {rng!r:.60}; expected a generator, for example numpy.random.default_rng(0)")
        boxes = np.array([part.bounds for part in self.parts])
        sizes = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        points, tried = np.empty((0, 2)), 0
        while len(points) < count:
            if tried > MOST_DRAWS:
                raise InputError(f"the area, {self}, is too thin to draw {count} points in; expected a wider one")
            box = boxes[rng.choice(len(boxes), max(256, 2 * count), p=sizes / sizes.sum())]
            drawn = rng.uniform(box[:, :2], box[:, 2:])
            tried += len(drawn)
            # where n boxes overlap, keep one point in n
            east, north = drawn[:, :1], drawn[:, 1:]
            within = (east >= boxes[:, 0]) & (east <= boxes[:, 2]) & (north >= boxes[:, 1]) & (north <= boxes[:, 3])
            kept = rng.random(len(drawn)) * within.sum(axis=1) < 1.0
            points = np.concatenate([points, drawn[kept & (self._measure(*drawn.T)[0] >= 0)]])
        return points[:count, 0].copy(), points[:count, 1].copy()

    def to_shapely(self) -> BaseGeometry:
        """Return a Polygon or MultiPolygon; a circle has 1024 corners, never beyond the area."""
        return self._shape

    def to_geojson(self) -> dict[str, Any]:
        """Return a GeoJSON geometry in the area's coordinates, which its member "crs" names."""
        crs = None if self.crs is None else {"type": "name", "properties": {"name": self.crs}}
        return {**shapely.geometry.mapping(self._shape), "crs": crs}

    @functools.cached_property
    def boxes(self) -> Array:
        """The bounds of each part, metres from the origin; shape (parts, 4)."""
        return np.asarray(np.array([part.bounds for part in self.parts]) - np.tile(self.origin, 2))

    @functools.cached_property
    def _shape(self) -> BaseGeometry:
        return inner_shape(self.parts, self.zones)

    def _measure(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return signed distance and derivatives."""
        distance, by_x, by_y = np.empty((3, len(x)))
        compiled("signed_distances")(x - self.origin[0], y - self.origin[1], self.boundary, distance, by_x, by_y)
        return distance, by_x, by_y

    def _step(self, x: Array, y: Array, beyond: float) -> tuple[Array, Array]:
        """Move points that are outside to the nearest boundary, and a little beyond it."""
        distance, by_x, by_y = self._measure(x, y)
        length = np.where(distance < -ON_BOUNDARY_M, beyond - distance, 0.0)
        return x + length * by_x, y + length * by_y


def _windio_area(path: Path, crs: str | None) -> Area:
    """Return the area of a windIO site. crs: as in `Area.from_geojson`."""
    site = read_area(path)
    named = site.crs or crs

    def area_of(shape: dict[str, Any]) -> Area:
        if "polygon_m" in shape:
            polygon = polygon_of([shape["polygon_m"]], str(path))
            return _of_polygons(in_metres([polygon], named, crs, str(path)))
        if site.crs is not None and crs not in (None, site.crs):
            raise InputError(f"{path}: its circle is in {site.crs}; it cannot be reprojected to {crs}")
        circle = shape["circle_m"]
        return Area.circle(circle["x"], circle["y"], circle["radius"], crs=named)

    area = Area.union([area_of(shape) for shape in site.regions])
    return area.without([area_of(shape) for shape in site.exclusions]) if site.exclusions else area


def _of_polygons(reading: Reading) -> Area:
    return _checked(joined(Part(polygon) for polygon in reading.geometries), (), reading.crs, reading.notes)


def _checked(parts: tuple[Part, ...], zones: tuple[Part, ...], crs: str | None, notes: tuple[str, ...]) -> Area:
    """Return the area, or raise InputError if it is empty."""
    area = Area(parts, zones, crs, notes) if parts else None
    if area is None or area.to_shapely().is_empty:
        raise InputError("the area is empty: the zones and their buffers cover all of it")
    return area


def _zone(zone: object, buffer: float, where: str) -> list[Part]:
    """Return the parts of an excluded zone, extended by its buffer."""
    if isinstance(zone, BaseGeometry):
        return zone_parts(shapely.force_2d(zone), buffer, where)
    if not isinstance(zone, Area):
        raise InputError(f"{where} is {zone!r:.60}; expected an Area or a shapely geometry")
    if zone.zones:
        raise InputError(
            f"{where} has excluded zones itself; expected an area without zones: exclude its pieces one by one"
        )
    return [Part(part.geometry, part.margin + buffer) for part in zone.parts]


def _common_crs(areas: Iterable[Area]) -> str | None:
    """Return the coordinate system of several areas; unnamed ones are assumed to be the same."""
    names = list(dict.fromkeys(area.crs for area in areas if area.crs is not None))
    if len(names) > 1:
        raise InputError(
            f"the areas have several coordinate systems: {', '.join(names)}; read all with crs={names[0]!r}"
        )
    return names[0] if names else None


def _ring(x: npt.ArrayLike, y: npt.ArrayLike, what: str) -> Array:
    return np.column_stack(_points(x, y, what))


def _points(x: npt.ArrayLike, y: npt.ArrayLike, what: str = "") -> tuple[Array, Array]:
    """Return x and y of points, checked."""
    east, north = finite_array(x, f"{what}x"), finite_array(y, f"{what}y")
    if len(east) != len(north):
        raise InputError(f"{what}x has {len(east)} coordinates and {what}y has {len(north)}; expected the same number")
    return east, north
