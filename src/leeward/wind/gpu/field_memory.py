"""The memory that wind fields need on a GPU, for each layout."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from leeward.wind.gpu.data import Free, Values, Winds
from leeward.wind.gpu.engine import new
from leeward.wind.gpu.field_data import FieldWinds, Local, Located, Terrain
from leeward.wind.kernels.data import SectorValues


@dataclass(frozen=True)
class Shape:
    """The shape of an array: `each` rows for each layout, each of the shape `rest`."""

    number: Any
    each: int
    rest: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return self.each * math.prod(self.rest) * int(np.dtype(self.number).itemsize)

    def allocated(self, layouts: int) -> Values:
        return new((layouts * self.each, *self.rest), self.number)


class Room(NamedTuple):
    """Arrays on the GPU for some layouts: the wind at turbines and at points, the terrain, and derivatives."""

    turbines: Local
    points: Local
    terrain: Terrain
    free: Free


@dataclass(frozen=True)
class RoomPlan:
    """Says what a room must hold. turbines, points: numbers of places of a layout; directions: of a chunk.

    number: type of numbers. slopes: with derivatives. wakes: False for power without wakes. uses_turbulence: True if
    wakes depend on it. exponent: of the speed in `Winds.scale`, as in `Engine`.
    """

    winds: FieldWinds
    turbines: int
    points: int
    directions: int
    number: Any
    slopes: bool
    wakes: bool
    uses_turbulence: bool
    exponent: int

    @property
    def lanes(self) -> int:
        return int(self.winds.reference.speed.shape[3])

    @property
    def bytes(self) -> int:
        """Return the memory for each layout."""
        return sum(shape.bytes for shape in _leaves(self._shapes))

    def allocated(self, layouts: int) -> Room:
        """Return arrays for so many layouts."""
        room: Room = _mapped(self._shapes, lambda shape: shape.allocated(layouts))
        if self.exponent == 1 and self.winds.description.varies_speed:
            return room._replace(turbines=_with_scale(room.turbines), points=_with_scale(room.points))
        return room

    @property
    def _shapes(self) -> Room:
        """Return shapes in the place of arrays."""
        field, places, elements = self.winds.description, (self.turbines,), self.directions * self.lanes
        ground, stretch = (int(given and self.wakes) for given in (field.has_ground, field.follows_terrain))
        some_points = int(self.points > 0)

        def adjoints(is_needed: bool) -> Shape:
            return Shape(self.number, elements if self.slopes and is_needed else 0, places)

        free = Free(
            adjoints(field.varies_speed),
            adjoints(True),
            adjoints(field.varies_turbulence and self.uses_turbulence and self.wakes),
            adjoints(bool(field.values.density.shape[3])),
            adjoints(bool(ground)),
            Shape(self.number, stretch * self.slopes, (self.turbines, self.turbines, 4)),
        )
        terrain = Terrain(
            Shape(self.number, ground, places),
            Shape(np.float64, ground * self.slopes, places),
            Shape(np.float64, ground * self.slopes, places),
            Shape(self.number, stretch, (self.turbines, self.turbines)),
            Shape(self.number, ground * some_points, (self.points,)),
            Shape(self.number, stretch * some_points, (self.points, self.turbines)),
            Shape(np.float64, stretch, (max(self.turbines, self.points),)),
        )
        return Room(self._local(self.turbines, self.slopes), self._local(self.points, False), terrain, free)

    def _local(self, places: int, slopes: bool) -> Local:
        """Return the shapes of the wind at turbines or at points. slopes: with derivatives."""
        field, some = self.winds.description, int(places > 0)

        def sectors(is_needed: int) -> Any:
            counts = (getattr(field.values, name).shape[3] for name in SectorValues._fields)
            return SectorValues._make(Shape(np.float64, is_needed, (places, count)) for count in counts)

        def lanes(is_local: bool, is_needed: bool = True) -> Shape:
            return Shape(self.number, some * is_needed, (places if is_local else 1, self.directions, self.lanes))

        cosine, where = Shape(self.number, some, (self.directions,)), Shape(np.float64, some, (places,))
        winds = Winds(
            cosine,
            cosine,
            lanes(field.varies_speed),
            lanes(field.varies_weight),
            lanes(field.varies_turbulence),
            lanes(True, bool(field.values.density.shape[3])),
            lanes(True, self.exponent == 2 and field.varies_speed),
        )
        located = Located(where, where, where, Shape(np.int64, some, ()))
        return Local(located, sectors(some), sectors(some * slopes), sectors(some * slopes), winds)


def _with_scale(local: Local) -> Local:
    """Return the wind with the free speed as scale."""
    return local._replace(winds=local.winds._replace(scale=local.winds.speed))


def _mapped(shapes: Any, function: Callable[[Shape], Any]) -> Any:
    """Return named tuples of shapes with the results of a function in their place."""
    return function(shapes) if isinstance(shapes, Shape) else type(shapes)(*(_mapped(s, function) for s in shapes))


def _leaves(shapes: Any) -> Iterator[Shape]:
    """Yield the shapes in named tuples."""
    if isinstance(shapes, Shape):
        yield shapes
        return
    for each in shapes:
        yield from _leaves(each)
