"""The layer between farms and the GPU's kernels: it moves data, divides the work into chunks and starts kernels."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import Array
from leeward.wind.engine import Engine, extent_of
from leeward.wind.gpu import device
from leeward.wind.gpu.data import (
    GROUP,
    TEAMS,
    THREADS,
    WARP,
    Chunk,
    Found,
    Free,
    Layouts,
    Order,
    Points,
    States,
    Values,
    Winds,
)
from leeward.wind.kernels.data import Places, Wind

MOST_ELEMENTS = 1 << 14  # of a layout in one chunk; so the order of sums does not depend on the free memory
SHARE = 0.8  # of the free memory that is used
MOST_BYTES = 8 << 30  # that a chunk uses: enough to keep a GPU busy
BLOCK = 64  # threads of a block
ARRANGED = 512  # turbines that a block sorts
MOST_TURBINES = 3000  # two numbers for each fit into the shared memory of a block

NONE = np.empty((0, 0))
NONE_3 = np.empty((0, 0, 0))
NONE_4 = np.empty((0, 0, 0, 0))


class Batch(NamedTuple):
    """Layouts on the GPU. x, y: their origins, m, shape (layouts,). extent: as in `Block`, of the largest layout.

    used: how many of them to evaluate, the first ones.
    """

    layouts: Layouts
    x: Array
    y: Array
    extent: float
    used: int


def to_device(values: npt.ArrayLike, dtype: Any = None) -> Values:
    """Return an array on the GPU."""
    from numba import cuda

    return cuda.to_device(np.ascontiguousarray(values, dtype=dtype))


def new(shape: tuple[int, ...], dtype: Any = np.float64) -> Values:
    """Return an array on the GPU, not initialised."""
    from numba import cuda

    return cuda.device_array(shape, dtype=dtype)


def wait() -> None:
    """Wait until the GPU has done all that was started."""
    from numba import cuda

    cuda.synchronize()


@dataclass(frozen=True)
class Wanted:
    """Says what to compute of each element besides power. varies: the wind varies over the site."""

    gradient: bool = False
    speeds: bool = False
    worth: bool = False
    varies: bool = False


class Workspace(NamedTuple):
    """Arrays of one chunk on the GPU. size: number of layouts of a chunk; sums: of groups, see `add_groups`."""

    size: int
    order: Order
    states: States
    found: Found
    free: Free
    sums: Values


class BatchEngine:
    """The kernels of an engine on the GPU, for many layouts at once.

    single: in single precision, for models that define all derivatives; other models use double precision.
    """

    def __init__(self, engine: Engine, single: bool = False) -> None:
        device.require()
        self._engine = engine
        self._single = single and not engine.model.uses_differences
        self.number = np.dtype(np.float32 if self._single else np.float64)
        self._workspaces: dict[tuple[object, ...], tuple[int, Workspace]] = {}
        self._models: dict[float, Any] = {}

    def batch(
        self, places: Sequence[Places], farm: Sequence[int], rose: Sequence[int], origin: Array | None = None
    ) -> Batch:
        """Return layouts on the GPU.

        farm: number of turbines of each farm, which come first in its places. rose: index of its wind. origin: x and y
        (m) near each layout, shape (layouts, 2); by default of its first turbine.
        """
        shape = (len(places), max(len(each.x) for each in places))
        if shape[1] > MOST_TURBINES:
            raise InputError(f"a layout has {shape[1]} turbines; the GPU takes at most {MOST_TURBINES}")
        x, y, kind = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.uint32)
        if origin is None:
            origin = np.array([(each.x[0], each.y[0]) for each in places])
        for i, each in enumerate(places):
            count = len(each.x)
            x[i, :count], y[i, :count], kind[i, :count] = each.x - origin[i, 0], each.y - origin[i, 1], each.kind
        extent = max(extent_of(each.x, each.y) for each in places)
        layouts = Layouts(
            self.numbers(x),
            self.numbers(y),
            to_device(kind),
            to_device(farm, np.int64),
            to_device([len(each.x) for each in places], np.int64),
            to_device(rose, np.uint32),
            self.numbers(NONE),
            self.numbers(NONE_3),
        )
        return Batch(layouts, origin[:, 0], origin[:, 1], extent, len(places))

    def winds(self, winds: Sequence[Wind], speeds: int | None = None) -> Winds:
        """Return wind roses on the GPU. Those with fewer directions or lanes are padded, with the weight 0.

        speeds: how many of the lanes to use; by default all, with those that fill up vectors on the CPU.
        """
        directions = max(len(wind.cosine) for wind in winds)
        lanes = max(wind.speed.shape[2] for wind in winds) if speeds is None else speeds

        def padded(values: Array, mode: Any) -> Array:
            rows = directions - values.shape[0 if values.ndim == 1 else 1]
            if values.ndim == 1:
                return np.pad(values, (0, rows), mode=mode)
            used = values[:, :, :lanes]
            return np.pad(used, ((0, 0), (0, rows), (0, lanes - used.shape[2])), mode=mode)

        def stacked(name: str) -> Values:
            each = [getattr(wind, name) for wind in winds]
            mode = "constant" if name == "weight" else "edge"
            return self.numbers(np.stack([padded(values, mode) for values in each]) if len(each[0]) else NONE_4)

        return Winds(*(stacked(name) for name in Winds._fields))

    def points(self, batch: Batch, x: Sequence[Array], y: Sequence[Array], kind: Sequence[int]) -> Points:
        """Return points at which one more turbine could stand, for each layout. kind: type of that turbine."""
        shape = (len(x), max(map(len, x)))
        at_x, at_y, free = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.uint8)
        for i, (east, north) in enumerate(zip(x, y, strict=True)):
            at_x[i, : len(east)], at_y[i, : len(east)] = east - batch.x[i], north - batch.y[i]
            free[i, : len(east)] = 1
        none = self.numbers(NONE), self.numbers(NONE_3)
        return Points(self.numbers(at_x), self.numbers(at_y), to_device(free), to_device(kind, np.uint32), *none)

    def numbers(self, values: npt.ArrayLike) -> Values:
        """Return an array of numbers on the GPU."""
        return to_device(values, self.number)

    def _new(self, shape: tuple[int, ...]) -> Values:
        return new(shape, self.number)

    @functools.cached_property
    def _kernels(self) -> Any:
        from leeward.wind.gpu.build import device_kernels

        return device_kernels(type(self._engine.model), self._single)

    @functools.cached_property
    def _kinds(self) -> Any:
        kinds = self._engine.kinds
        curves = kinds.curves._replace(
            first_piece=to_device(kinds.curves.first_piece),
            **{name: self.numbers(values) for name, values in kinds.curves._asdict().items() if name != "first_piece"},
        )
        names = ("diameter", "hub_height", "thrust_low", "thrust_high")
        return kinds._replace(curves=curves, **{name: self.numbers(getattr(kinds, name)) for name in names})

    @functools.cached_property
    def _table(self) -> Values:
        return self.numbers(self._engine.model.table())

    def _model(self, extent: float) -> Any:
        if extent not in self._models:
            options, number = self._engine.options(extent), self.number.type
            parameters = [number(value) for value in options.parameters]
            kind: Any = type(options.parameters)  # a plain or a named tuple
            self._models[extent] = options._replace(
                parameters=kind(*parameters) if hasattr(kind, "_fields") else kind(parameters),
                table=self._table,
                reaches=self.numbers(options.reaches.max(axis=0)),  # of any type of source
                longest=number(options.longest),
                widest=number(options.widest),
            )
        return self._models[extent]

    def power(self, batch: Batch, winds: Winds) -> Values:
        """Return the weighted power of each turbine, MW; shape (1, layouts, turbines), on the GPU."""
        return self._sums(batch, winds, Wanted())

    def gradient(self, batch: Batch, winds: Winds) -> Values:
        """Return the weighted power of each turbine (MW), and derivatives of the farm's sum by x and y (MW/m).

        Shape (3, layouts, turbines), on the GPU.
        """
        return self._sums(batch, winds, Wanted(gradient=True))

    def worth(self, batch: Batch, winds: Winds) -> Values:
        """Return the weighted power (MW) that the farm would lose without each turbine; shape as of `power`."""
        return self._sums(batch, winds, Wanted(worth=True))

    def speeds(self, batch: Batch, winds: Winds) -> Iterator[tuple[Chunk, Array, Array]]:
        """Yield effective speed (m/s) and weighted power (MW) of each turbine in each element of a chunk."""
        for chunk, work in self._chunks(batch, winds, Wanted(speeds=True)):
            self._forward(batch, winds, chunk, work)
            count = chunk.layouts * chunk.directions * chunk.lanes
            yield chunk, work.found.speeds[:count].copy_to_host(), work.found.power[:count].copy_to_host()

    def gains(self, batch: Batch, winds: Winds, points: Points, at_winds: Winds) -> Values:
        """Return the power (MW) that each farm would gain from one more turbine at each point; (layouts, points)."""
        gain = to_device(np.zeros(points.x.shape))
        for chunk, work in self._chunks(batch, winds, Wanted()):
            self._forward(batch, winds, chunk, work)
            blocks = chunk.layouts * points.x.shape[1]
            model = self._model(batch.extent)
            self._kernels.gains[blocks, THREADS](
                batch.layouts,
                winds,
                chunk,
                self._kinds,
                model,
                work.order,
                work.states,
                work.found,
                points,
                at_winds,
                gain,
            )
        return gain

    def yields(self, batch: Batch, winds: Winds, points: Points, at_winds: Winds, rotor_average: bool) -> Values:
        """Return the yield (MW) of one more turbine at each point; shape (layouts, points)."""
        gain = to_device(np.zeros(points.x.shape))
        for chunk, work in self._chunks(batch, winds, Wanted()):
            self._forward(batch, winds, chunk, work)
            blocks = chunk.layouts * points.x.shape[1]
            model, rotor = self._model(batch.extent), self.number.type(rotor_average)
            self._kernels.points[blocks, THREADS](
                batch.layouts, winds, chunk, self._kinds, model, work.order, work.states, points, at_winds, rotor, gain
            )
        return gain

    def _sums(self, batch: Batch, winds: Winds, wanted: Wanted) -> Values:
        rows = 3 if wanted.gradient else 1
        total = new((rows, *batch.layouts.x.shape))
        for chunk, work in self._chunks(batch, winds, wanted):
            self._forward(batch, winds, chunk, work)
            found = work.found
            if wanted.gradient:
                self._start_elements("backward", batch, winds, chunk, work, found, work.free)
            if wanted.worth:
                self._start_elements("worth", batch, winds, chunk, work, found)
            self._add(found, chunk, work.sums, total, is_first=chunk.direction == 0)
        return total

    def _forward(self, batch: Batch, winds: Winds, chunk: Chunk, work: Workspace) -> None:
        most = batch.layouts.x.shape[1]
        rows = max(1, ARRANGED // most)  # of a block
        blocks, shared = -(-chunk.layouts * chunk.directions // rows), 2 * rows * most * self.number.itemsize
        model = self._model(batch.extent)
        self._kernels.arrange[blocks, 128, 0, shared](batch.layouts, winds, chunk, self._kinds, model, rows, work.order)
        self._start_elements("forward", batch, winds, chunk, work)
        blocks = -(-chunk.layouts * chunk.directions * chunk.lanes * most // BLOCK)
        self._kernels.finish[blocks, BLOCK](
            batch.layouts, winds, chunk, self._kinds, model, work.order, work.states, work.found
        )

    def _start_elements(
        self, name: str, batch: Batch, winds: Winds, chunk: Chunk, work: Workspace, *more: object
    ) -> None:
        """Start a kernel that computes elements."""
        elements, threads = (BLOCK, BLOCK) if name == "worth" else (TEAMS, WARP)  # of a block
        blocks = -(-chunk.layouts * chunk.directions * chunk.lanes // elements)
        kernel, model = getattr(self._kernels, name), self._model(batch.extent)
        kernel[blocks, threads](batch.layouts, winds, chunk, self._kinds, model, work.order, work.states, *more)

    def _add(self, found: Found, chunk: Chunk, sums: Values, total: Values, *, is_first: bool = False) -> None:
        """Add what was found in a chunk to `total`, shape (rows, layouts, turbines).

        is_first: nothing is there yet, not even zeros.
        """
        elements, rows, turbines = chunk.directions * chunk.lanes, total.shape[0], total.shape[2]
        groups, numbers = -(-elements // GROUP), rows * chunk.layouts * turbines
        self._kernels.add_groups[-(-numbers * groups // BLOCK), BLOCK](
            found, rows, elements, groups, chunk.layouts, turbines, sums
        )
        self._kernels.add_all[-(-numbers // BLOCK), BLOCK](
            sums, rows, groups, chunk.layout, chunk.layouts, turbines, int(is_first), total
        )

    def _chunks(self, batch: Batch, winds: Winds, wanted: Wanted) -> Iterator[tuple[Chunk, Workspace]]:
        """Yield all layouts and directions in chunks that fit into the memory, with arrays for them."""
        count, turbines = batch.used, batch.layouts.x.shape[1]
        _, _, directions, lanes = winds.speed.shape
        step = max(1, min(directions, MOST_ELEMENTS // lanes))
        work = self._workspace(count, turbines, step, lanes, wanted)
        for layout in range(0, count, work.size):
            layouts = min(work.size, count - layout)
            for direction in range(0, directions, step):
                yield Chunk(layout, layouts, direction, min(step, directions - direction), lanes), work

    def _workspace(self, count: int, turbines: int, directions: int, lanes: int, wanted: Wanted) -> Workspace:
        key = (turbines, directions, lanes, wanted)
        asked, known = self._workspaces.get(key, (0, None))
        if known is not None and asked >= count:
            return known
        self._workspaces.clear()
        each = self._bytes(turbines, directions, lanes, wanted)
        size = max(1, min(count, int(min(SHARE * device.free_bytes(), MOST_BYTES) / each)))
        work = self._allocated(size, turbines, directions, lanes, wanted)
        self._workspaces[key] = count, work
        return work

    def _parts(self, wanted: Wanted) -> int:
        """Return the number of parts of `States.sources`."""
        return 1 if not wanted.gradient else 5 if wanted.varies else 2

    def _bytes(self, turbines: int, directions: int, lanes: int, wanted: Wanted) -> int:
        """Return the memory for each layout of a workspace."""
        elements = directions * lanes
        pairs = turbines * (turbines - 1) // 2
        groups = -(-elements // GROUP)
        needs_adjoints, rows = wanted.gradient or wanted.worth, directions
        numbers = self._engine.source_fields * self._parts(wanted) + 1 + (3 if needs_adjoints else 0)
        numbers += 1 + (2 if wanted.gradient else 0) + (1 if wanted.speeds else 0)
        size_of = self.number.itemsize
        return rows * (turbines * (4 * size_of + 2 * 4) + pairs * 2) + turbines * (
            elements * numbers * size_of + 24 * groups
        )

    def _allocated(self, size: int, turbines: int, directions: int, lanes: int, wanted: Wanted) -> Workspace:
        """Return arrays for so many layouts."""
        rows, elements = directions, directions * lanes
        pairs, groups = turbines * (turbines - 1) // 2, -(-elements // GROUP)
        of_rows, of_elements, nothing = (size * rows, turbines), (size * elements, turbines), self._new((0, 1))
        order = Order(
            self._new((*of_rows, 4)),
            new(of_rows, np.uint32),
            new(of_rows, np.uint32),
            new((size * rows, pairs + 1), np.uint16),
        )
        no_records = self._new((0, 1, 1))
        states = States(
            self._new((*of_elements, self._engine.source_fields * self._parts(wanted))),
            self._new(of_elements),
            self._new((*of_elements, 3)) if wanted.gradient or wanted.worth else no_records,
        )
        by_x, by_y = (self._new(of_elements) if wanted.gradient else nothing for _ in range(2))
        speeds = self._new(of_elements) if wanted.speeds else nothing
        found = Found(self._new(of_elements), by_x, by_y, speeds)
        free = Free(nothing, nothing, nothing, nothing, nothing, self._new((0, 1, 1, 1)))
        return Workspace(size, order, states, found, free, new((3, size, groups, turbines)))
