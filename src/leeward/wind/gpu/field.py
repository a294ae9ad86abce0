"""Wind that varies over the site, for many layouts on a GPU."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from leeward.wind.checks import Array
from leeward.wind.conditions import Conditions
from leeward.wind.engine import Engine, extent_of
from leeward.wind.gpu import device
from leeward.wind.gpu.data import GROUP, THREADS, Chunk, Found, Free, Layouts, Order, Points, States, Values, Winds
from leeward.wind.gpu.engine import (
    BLOCK,
    MOST_ELEMENTS,
    SHARE,
    Batch,
    BatchEngine,
    Wanted,
    Workspace,
    new,
    to_device,
)
from leeward.wind.gpu.field_data import FieldWinds, Local, Located, Terrain, Varies
from leeward.wind.gpu.field_memory import Room, RoomPlan
from leeward.wind.gpu.field_winds import local_part, on_device, room_for_draws, winds_of
from leeward.wind.kernels.data import Field

MOST_SPACES = 4  # kept for later calls: a descent needs net and gross yield in turn
NET, LOSS = 0.0, -1.0  # factor of the power without wakes that is added
Varying = Any  # FieldWinds, where `BatchEngine` has Winds


class Space(NamedTuple):
    """Arrays of one group of layouts. slots: the index of each layout, which is that of its wind in `room`."""

    work: Workspace
    room: Room
    slots: Values


class Part(NamedTuple):
    """A group of layouts in some directions, ready for `forward`.

    first, begin: the first layout and direction. roses: those of the layouts. The indices in the rest start at 0.
    """

    first: int
    begin: int
    roses: Values
    batch: Batch
    points: Points | None
    winds: Winds
    chunk: Chunk
    work: Workspace
    room: Room


class FieldEngine(BatchEngine):
    """The kernels of an engine on the GPU, for layouts in wind that varies over the site.

    The methods are those of `BatchEngine`, with `FieldWinds` as wind; batches need their true origins. The wind at the
    turbines is computed in double precision.
    """

    def __init__(self, engine: Engine, single: bool = False) -> None:
        super().__init__(engine, single)
        self._spaces: dict[tuple[object, ...], tuple[int, Space]] = {}
        self._fields: dict[int, tuple[Field, Field]] = {}

    # --- wind

    def field_winds(self, conditions: Sequence[Conditions]) -> FieldWinds:
        """Return wind roses of one field on the GPU."""
        values = local_part(conditions[0]).field.values
        if id(values) not in self._fields:
            self._fields[id(values)] = values, on_device(values)
        return winds_of(conditions, self._fields[id(values)][1])

    def drawn(
        self,
        winds: FieldWinds,
        rose: Values,
        direction: Values,
        speed: Values,
        weight: Values,
        into: FieldWinds | None = None,
    ) -> FieldWinds:
        """Return a rose for each layout, with some of the conditions of its rose in `winds`, and other weights.

        rose: shape (layouts,). direction, speed (indices) and weight: shape (layouts, conditions), on the GPU. into: an
        earlier result of the same size, to overwrite. The `rose` of a layout in the result is its own index.
        """
        layouts, count = direction.shape
        drawn = room_for_draws(winds, layouts, count) if into is None else into
        given = (winds.rows, winds.reference, winds.parts, winds.speeds)
        self._start("draw", layouts * count, *given, rose, direction, speed, weight, drawn.rows, drawn.reference)
        return drawn

    # --- energy

    def power(self, batch: Batch, winds: Varying) -> Values:
        """Return the weighted power of each turbine, MW; shape (1, layouts, turbines), on the GPU."""
        return self._local_sums(batch, winds, Wanted(varies=True), NET)

    def lost_power(self, batch: Batch, winds: Varying) -> Values:
        """Return the weighted power of each turbine less its power without wakes (MW); shape as of `power`."""
        return self._local_sums(batch, winds, Wanted(varies=True), LOSS)

    def gradient(self, batch: Batch, winds: Varying, of_loss: bool = False) -> Values:
        """Return the weighted power of each turbine (MW), and derivatives of the farm's sum by x and y (MW/m).

        Shape (3, layouts, turbines), on the GPU. of_loss: subtract the power without wakes.
        """
        return self._local_sums(batch, winds, Wanted(gradient=True, varies=True), LOSS if of_loss else NET)

    def worth(self, batch: Batch, winds: Varying) -> Values:
        """Return the weighted power (MW) that the farm would lose without each turbine; shape as of `power`."""
        return self._local_sums(batch, winds, Wanted(worth=True, varies=True), NET)

    def gross(self, batch: Batch, winds: Varying) -> Values:
        """Return the weighted power (MW) of each of the farm's turbines without wakes, and its derivatives by x and y.

        MW/m; shape (3, layouts, turbines), on the GPU.
        """
        total = to_device(np.zeros((3, *batch.layouts.x.shape)))
        for part in self._parts_of(batch, winds, None):
            self._begin_free(part, 1.0, True)
            self._add_slopes(part, winds)
            self._add_found(part, total)
        return total

    def speeds(self, batch: Batch, winds: Varying) -> Iterator[tuple[Chunk, Array, Array]]:
        """Yield effective speed (m/s) and weighted power (MW) of each turbine in each element of a chunk."""
        for part in self._parts_of(batch, winds, Wanted(speeds=True, varies=True)):
            self._forward(part.batch, part.winds, part.chunk, part.work)
            count, found = part.chunk.layouts * part.chunk.directions * part.chunk.lanes, part.work.found
            chunk = part.chunk._replace(layout=part.first, direction=part.begin)
            yield chunk, found.speeds[:count].copy_to_host(), found.power[:count].copy_to_host()

    def gains(self, batch: Batch, winds: Varying, points: Points, at_winds: Varying) -> Values:
        """Return the power (MW) that each farm would gain from one more turbine at each point; (layouts, points)."""
        gain = to_device(np.zeros(points.x.shape))
        for part in self._parts_of(batch, winds, Wanted(varies=True), points, at_winds):
            self._forward(part.batch, part.winds, part.chunk, part.work)
            work, at = part.work, (part.points, part.room.points.winds, gain[part.first :])
            self._start_points("gains", part, points, work.order, work.states, work.found, *at)
        return gain

    def yields(self, batch: Batch, winds: Varying, points: Points, at_winds: Varying, rotor_average: bool) -> Values:
        """Return the yield (MW) of one more turbine at each point; shape (layouts, points)."""
        gain, rotor = to_device(np.zeros(points.x.shape)), self.number.type(rotor_average)
        for part in self._parts_of(batch, winds, Wanted(varies=True), points, at_winds):
            self._forward(part.batch, part.winds, part.chunk, part.work)
            work, at = part.work, (part.points, part.room.points.winds, rotor, gain[part.first :])
            self._start_points("points", part, points, work.order, work.states, *at)
        return gain

    def _local_sums(self, batch: Batch, winds: FieldWinds, wanted: Wanted, gross: float) -> Values:
        """Return the sums over all elements. gross: factor of the power without wakes that is added."""
        total = to_device(np.zeros((3 if wanted.gradient else 1, *batch.layouts.x.shape)))
        for part in self._parts_of(batch, winds, wanted):
            whole = part.batch, part.winds, part.chunk, part.work
            self._forward(*whole)
            if wanted.gradient or gross:
                self._begin_free(part, gross, False)
            if wanted.gradient:
                self._start_elements("backward", *whole, part.work.found, part.room.free)
                self._add_slopes(part, winds)
            if wanted.worth:
                self._start_elements("worth", *whole, part.work.found)
            self._add_found(part, total)
        return total

    # --- kernels

    def _start(self, name: str, threads: int, *arguments: object) -> None:
        from leeward.wind.gpu.build import field_device_kernels

        if threads:
            getattr(field_device_kernels(), name)[-(-threads // BLOCK), BLOCK](*arguments)

    def _start_points(self, name: str, part: Part, points: Points, *arguments: object) -> None:
        blocks, model = part.chunk.layouts * points.x.shape[1], self._model(part.batch.extent)
        kernel = getattr(self._kernels, name)
        kernel[blocks, THREADS](part.batch.layouts, part.winds, part.chunk, self._kinds, model, *arguments)

    def _begin_free(self, part: Part, factor: float, is_alone: bool) -> None:
        chunk, layouts = part.chunk, part.batch.layouts
        threads = chunk.layouts * chunk.directions * chunk.lanes * layouts.x.shape[1]
        arguments = (self._kinds, factor, is_alone, part.work.found, part.room.free)
        self._start("begin_free", threads, layouts, part.winds, chunk, *arguments)

    def _add_slopes(self, part: Part, winds: FieldWinds) -> None:
        chunk, room = part.chunk, part.room
        threads = chunk.layouts * chunk.directions * part.batch.layouts.x.shape[1]
        roses = (winds.reference.cosine.shape[1], part.roses, self._varies(winds))
        where = (room.turbines, chunk, part.begin, room.terrain)
        self._start("add_slopes", threads, winds.field, winds.rows, *roses, *where, room.free, part.work.found)

    def _add_found(self, part: Part, total: Values) -> None:
        self._add(part.work.found, part.chunk._replace(layout=part.first), part.work.sums, total)

    # --- division into parts

    def _parts_of(
        self,
        batch: Batch,
        winds: FieldWinds,
        wanted: Wanted | None,
        points: Points | None = None,
        at_winds: FieldWinds | None = None,
    ) -> Iterator[Part]:
        """Yield all layouts and directions in parts that fit into the memory. wanted: None without wakes."""
        _, _, directions, lanes = winds.reference.speed.shape
        step = max(1, min(directions, MOST_ELEMENTS // lanes))
        space = self._space(batch, winds, wanted, points, step)
        room, size = space.room, space.work.size
        for first in range(0, batch.used, size):
            count = min(size, batch.used - first)
            some, at = self._group(batch, winds, space, points, first, count)
            roses = batch.layouts.rose[first : first + count]
            for begin in range(0, directions, step):
                chunk = Chunk(0, count, 0, min(step, directions - begin), lanes)
                self._fill_winds(winds, roses, room.turbines, chunk, begin)
                if at_winds is not None:
                    self._fill_winds(at_winds, roses, room.points, chunk, begin)
                yield Part(first, begin, roses, some, at, room.turbines.winds, chunk, space.work, room)

    def _fill_winds(self, winds: FieldWinds, roses: Values, local: Local, chunk: Chunk, begin: int) -> None:
        threads = chunk.layouts * local.located.x.shape[1] * chunk.directions
        where = (local.located, local.sectors, chunk.layouts, begin, chunk.directions, local.winds)
        self._start("fill_winds", threads, winds.field, winds.rows, winds.reference, roses, self._varies(winds), *where)

    def _group(
        self, batch: Batch, winds: FieldWinds, space: Space, points: Points | None, first: int, count: int
    ) -> tuple[Batch, Points | None]:
        """Return some layouts and their points, with the terrain, and fill in the field there."""
        some, room = slice(first, first + count), space.room
        x, y = to_device(batch.x[some], np.float64), to_device(batch.y[some], np.float64)
        layouts = Layouts(*(values[some] if len(values) else values for values in batch.layouts))
        threads = count * layouts.x.shape[1]
        self._start("locate_turbines", threads, layouts, x, y, self._kinds, count, room.turbines.located)
        self._fill_places(winds, room.turbines, count)
        extent = batch.extent * self._fill_terrain(winds, room, count)
        if points is not None:
            points = Points(*(values[some] if len(values) else values for values in points))
            threads = count * points.x.shape[1]
            self._start("locate_points", threads, points, x, y, self._kinds, count, room.points.located)
            self._fill_places(winds, room.points, count)
            extent = max(extent, batch.extent * self._fill_terrain_at(winds, room, count))
            points = points._replace(ground=room.terrain.at_ground, stretch=room.terrain.at_stretch)
        if extent > batch.extent:
            extent = extent_of(np.array([0.0, extent]), np.zeros(2))
        terrain = room.terrain
        layouts = layouts._replace(rose=space.slots, ground=terrain.ground, stretch=terrain.stretch)
        return Batch(layouts, batch.x[some], batch.y[some], extent, count), points

    def _fill_places(self, winds: FieldWinds, local: Local, count: int) -> None:
        most = max(values.shape[2] for values in local.sectors)
        threads = count * local.located.x.shape[1] * most
        tables = (local.sectors, local.by_x, local.by_y)
        self._start("fill_places", threads, winds.field, local.located, count, most, *tables)

    def _fill_terrain(self, winds: FieldWinds, room: Room, count: int) -> float:
        """Fill in the terrain at turbines. Return the largest stretch."""
        located, terrain, field = room.turbines.located, room.terrain, winds.field
        turbines = located.x.shape[1]
        if len(terrain.ground):
            arguments = (terrain.ground, terrain.east, terrain.north)
            self._start("fill_terrain", count * turbines, field, located, count, *arguments)
        if not len(terrain.stretch):
            return 1.0
        pairs = count * turbines * (turbines // 2)
        self._start("fill_stretch", pairs, field, located, count, terrain.stretch)
        if len(room.free.stretch):
            self._start("fill_stretch_slopes", pairs, field, located, count, room.free.stretch)
        return self._longest(terrain.stretch, located, located, count, terrain)

    def _fill_terrain_at(self, winds: FieldWinds, room: Room, count: int) -> float:
        """Fill in the terrain at points. Return the largest stretch."""
        located, turbines, terrain = room.points.located, room.turbines.located, room.terrain
        points = located.x.shape[1]
        if len(terrain.at_ground):
            no_slopes = (terrain.east, terrain.north)  # they have room for turbines, and only if there is a gradient
            self._start("fill_terrain", count * points, winds.field, located, count, terrain.at_ground, *no_slopes)
        if not len(terrain.at_stretch):
            return 1.0
        pairs = count * points * turbines.x.shape[1]
        self._start("fill_stretch_at", pairs, winds.field, located, turbines, count, terrain.at_stretch)
        return self._longest(terrain.at_stretch, located, turbines, count, terrain)

    def _longest(self, stretch: Values, places: Located, turbines: Located, count: int, terrain: Terrain) -> float:
        """Return the largest stretch from any place to any turbine."""
        number = places.x.shape[1]
        arguments = (turbines, count, places is turbines, terrain.longest)
        self._start("find_longest", count * number, stretch, places, *arguments)
        return float(terrain.longest.copy_to_host()[:count, :number].max())

    # --- memory

    def _space(self, batch: Batch, winds: FieldWinds, wanted: Wanted | None, points: Points | None, step: int) -> Space:
        turbines, lanes = batch.layouts.x.shape[1], winds.reference.speed.shape[3]
        at = 0 if points is None else points.x.shape[1]
        key = (id(winds.field), turbines, at, step, lanes, wanted)
        asked, known = self._spaces.get(key, (0, None))
        if known is not None and asked >= batch.used:
            return known
        plan = self._plan(winds, turbines, at, step, wanted)
        each = plan.bytes
        if wanted is None:
            each += self._gross_bytes(turbines, step, lanes)
        else:
            each += self._bytes(turbines, step, lanes, wanted)
        self._spaces.pop(key, None)
        known = None  # frees its memory
        if len(self._spaces) == MOST_SPACES or each * batch.used > SHARE * device.free_bytes():
            self._spaces.clear()
        size = max(1, min(batch.used, int(SHARE * device.free_bytes() / each)))
        if wanted is None:
            work = self._without_wakes(size, turbines, step, lanes)
        else:
            work = self._allocated(size, turbines, step, lanes, wanted)
        space = Space(work, plan.allocated(size), to_device(np.arange(size)))
        self._spaces[key] = batch.used, space
        return space

    def _gross_bytes(self, turbines: int, directions: int, lanes: int) -> int:
        """Return the memory for each layout in `_without_wakes`."""
        elements = directions * lanes
        return turbines * (3 * self.number.itemsize * elements + 8 * -(-elements // GROUP))

    def _without_wakes(self, size: int, turbines: int, directions: int, lanes: int) -> Workspace:
        """Return a workspace for `gross` only."""
        elements, none = directions * lanes, new((0, 1, 1))
        power, by_x, by_y = (self._new((size * elements, turbines)) for _ in range(3))
        found = Found(power, by_x, by_y, self._new((0, 1)))
        sums = new((3, size, -(-elements // GROUP), turbines))
        free = Free(*[none] * len(Free._fields))
        return Workspace(size, Order(none, none, none, none), States(none, none, none), found, free, sums)

    @property
    def _exponent(self) -> int:
        """Return the exponent of `Winds.scale`, as in `Engine`."""
        model = self._engine.model
        return 0 if model.relative_to == "target" else 2 if model.squared else 1

    def _varies(self, winds: FieldWinds) -> Varies:
        """Return which quantities vary."""
        field = winds.description
        return Varies(field.varies_speed, field.varies_weight, field.varies_turbulence, self._exponent == 2)

    def _plan(self, winds: FieldWinds, turbines: int, points: int, step: int, wanted: Wanted | None) -> RoomPlan:
        """Return what the arrays of a chunk must hold. points: their number, or 0."""
        return RoomPlan(
            winds,
            turbines,
            points,
            step,
            self.number,
            slopes=wanted is None or wanted.gradient,
            wakes=wanted is not None,
            uses_turbulence=bool(self._engine.model.uses_turbulence),
            exponent=self._exponent,
        )
