"""The layer between farm and kernels: it converts the input, allocates the output and calls the kernels."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import one_of
from leeward.wind.conditions import Array, Conditions
from leeward.wind.field_data import AIR_DENSITY
from leeward.wind.kernels.data import (
    ELEMENTS,
    Adjoints,
    Indices,
    Kernels,
    Kinds,
    Known,
    Model,
    Places,
    Wind,
    curves_of,
)
from leeward.wind.local_wind import LocalWind
from leeward.wind.turbine import Turbine
from leeward.wind.wake_models.base import WakeModel, result_type

T = TypeVar("T")
Flags = npt.NDArray[np.uint8]

LANES = 4  # several speeds per direction are padded to a multiple of this, for the vector loops
BLOCK = 16384  # largest number of turbines x directions x speeds in a block: fits the second-level cache

LARGE_BLOCK = 30 << 20  # bytes; glibc adapts to blocks of up to 32 MB
NO_PLACES = Places(np.empty(0), np.empty(0), np.empty(0, dtype=np.uint32))
NO_SPEEDS = np.empty((0, 0))
NO_ADJOINTS = Adjoints(NO_SPEEDS, NO_SPEEDS, NO_SPEEDS, NO_SPEEDS, np.empty(0), NO_SPEEDS)


@dataclass(frozen=True)
class Block:
    """Turbines in some wind directions, the input of one call of a kernel.

    x, y: position of the origin of `places` and `at`, m. local: the wind at each place, if it varies.
    extent: an upper bound (m) of the distance between two places; at: points to evaluate.
    """

    places: Places
    x: float
    y: float
    wind: Wind
    local: LocalWind | None
    begin: int
    end: int
    extent: float
    at: Places


def wind_of(conditions: Conditions) -> Wind:
    """Return the conditions in the form that the kernels need, the same at all places.

    A direction with more than ELEMENTS speeds is repeated, each time with a part of them. Several speeds are padded to
    a multiple of LANES: speed and turbulence with the last value, weight with 0.
    """
    directions, speeds = conditions.speed.shape
    parts = -(-speeds // ELEMENTS)

    def lanes(values: Array, mode: Literal["edge", "constant"]) -> Array:
        rows = _padded(values, parts, mode).reshape(directions * parts, -1)
        filled = _padded(rows, LANES, mode) if rows.shape[1] > 1 else rows
        return np.array(filled[None], order="C")  # the kernels are compiled for writable C arrays

    speed = lanes(conditions.speed, "edge")
    return Wind(
        *_cosine_and_sine(np.repeat(conditions.direction, parts)),
        speed,
        lanes(conditions.weight, "constant"),
        lanes(conditions.turbulence_intensity, "edge"),
        speed[:0],
        speed[:0],
    )


def local_of(conditions: Conditions) -> LocalWind | None:
    """Return the wind at any place in the form that the kernels need, padded as in `wind_of`; None if it is uniform."""
    local = conditions.local
    if local is None:
        return None
    directions, speeds = conditions.speed.shape
    parts = -(-speeds // ELEMENTS)
    size = -(-speeds // parts)
    lanes = size if size == 1 else -(-size // LANES) * LANES

    def rows(values: Array, mode: Literal["edge", "constant"]) -> Array:
        filled = _padded(values, parts, mode).reshape(directions * parts, -1)
        return _padded(filled, LANES, mode) if filled.shape[1] > 1 else filled

    if speeds == 1:
        return LocalWind(local.field, local.rows(conditions.direction, conditions.speed))
    edges = np.pad(local.edges, ((0, 0), (0, parts * size - speeds)), mode="edge")
    each = [edges[:, part * size : (part + 1) * size + 1] for part in range(parts)]
    stacked = np.stack(each, axis=1).reshape(directions * parts, size + 1)
    filled = replace(
        local,
        factor=rows(local.factor, "constant"),
        turbulence_factor=rows(local.turbulence_factor, "edge"),
        edges=np.pad(stacked, ((0, 0), (0, lanes - size)), mode="edge"),
        step=np.repeat(local.step, parts),
    )
    return LocalWind(local.field, filled.rows(np.repeat(conditions.direction, parts), rows(conditions.speed, "edge")))


def blocks(wind: Wind, turbines: Places, points: Places = NO_PLACES, local: LocalWind | None = None) -> Iterator[Block]:
    """Yield all conditions in blocks of a fixed size. points: to evaluate. local: the wind at places, if it varies."""
    # differences of large coordinates are exact; sums of their products are not
    x, y = (float(turbines.x[0]), float(turbines.y[0])) if len(turbines.x) else (0.0, 0.0)
    if local is not None:
        turbines, points = local.on_ground(turbines), local.points_on_ground(points, turbines)
    places, at = (each._replace(x=each.x - x, y=each.y - y) for each in (turbines, points))
    extent = extent_of(np.concatenate((places.x, at.x)), np.concatenate((places.y, at.y)), longest_stretch(places, at))
    _, directions, lanes = wind.speed.shape
    size = max(1, min(BLOCK // max(len(places.x), 1), ELEMENTS) // lanes)
    for begin in range(0, directions, size):
        yield Block(places, x, y, wind, local, begin, min(begin + size, directions), extent, at)


def by_condition(by_row: Array, shape: tuple[int, ...]) -> Array:
    """Return values of shape (places, rows, lanes), as kernels use them, in the shape (places, directions, speeds).

    shape: (directions, speeds).
    """
    directions, count = shape
    parts = by_row.shape[1] // directions  # directions may be repeated, to split their speeds
    kept = by_row[:, :, : -(-count // parts)]
    return kept.reshape(len(by_row), directions, parts * kept.shape[2])[:, :, :count]


def each_block(work: Callable[[Block], T], parts: Iterator[Block], threads: int) -> Iterator[T]:
    """Yield the results in the order of the blocks, so that sums do not depend on the number of threads."""
    if threads == 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(threads) as pool:
        while some := list(itertools.islice(parts, 4 * threads)):  # a few at a time, to save memory
            yield from pool.map(work, some)


class Engine:
    """The kernels of a wake model for some turbine types.

    turbulence_intensity: all values that will occur, or their extremes. density: lowest and highest air density,
    relative to that of the power curves.
    """

    def __init__(
        self,
        turbines: Sequence[Turbine],
        model: WakeModel,
        turbulence_intensity: Array,
        density: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        model.check(turbines, turbulence_intensity)
        check_thrust(turbines, model, density[1])
        one_of(model.relative_to, ("source", "target"), f"wake model {model.name}: relative_to")
        self.turbines = list(turbines)
        self.density = density
        self.model = model
        self.turbulence = (float(turbulence_intensity.min()), float(turbulence_intensity.max()))
        self._options_by_extent: dict[float, Model] = {}

    def __getstate__(self) -> dict[str, object]:
        """Return the state without compiled kernels: another process loads them from the disk cache."""
        return {k: v for k, v in vars(self).items() if k not in ("_kernels", "kinds")} | {"_options_by_extent": {}}

    def in_turbulence(self, turbulence_intensity: Array) -> "Engine":
        """Return an engine with the same turbines and model for other turbulence intensities."""
        return Engine(self.turbines, self.model, turbulence_intensity, self.density)

    def with_turbine(self, turbine: Turbine) -> "Engine":
        """Return an engine with one more turbine type."""
        return Engine([*self.turbines, turbine], self.model, np.array(self.turbulence), self.density)

    def power(self, block: Block, speeds: Array = NO_SPEEDS) -> Array:
        """Return the weighted power of each turbine, MW. Fill `speeds` of shape (turbines, elements), if given."""
        power = np.zeros(len(block.places.x))
        self._kernels.energy(*self._arguments(block), power, speeds)
        return power

    def lost_power(self, block: Block) -> Array:
        """Return the weighted power of each turbine less its power without wakes (MW), for wind that varies."""
        power, arguments = np.zeros(len(block.places.x)), self._arguments(block)
        self._kernels.energy(*arguments, power, NO_SPEEDS)
        self._add_gross(block, block.places, arguments[1], np.full(len(power), -1.0), power, NO_ADJOINTS)
        return power

    def gradient(self, block: Block, counted: Array, of_loss: bool = False) -> Array:
        """Return the weighted power of each turbine (MW), and derivatives of the counted sum by x and by y (MW/m).

        of_loss: subtract the power without wakes, for wind that varies.
        """
        sums = np.zeros((3, len(counted)))
        arguments, adjoints = self._arguments(block), NO_ADJOINTS
        if block.local is not None:
            adjoints = self._adjoints(block, block.local, len(counted), self.model.uses_turbulence)
        self._kernels.gradient(*arguments, counted, sums[0], sums[1], sums[2], adjoints)
        if block.local is not None:
            if of_loss:
                self._add_gross(block, block.places, arguments[1], -counted, sums[0], adjoints)
            at = self._where(block, block.places)
            block.local.add_slopes(block.begin, block.end, *at, adjoints, sums[1], sums[2])
        return sums

    def gross(self, block: Block) -> Array:
        """Return the weighted power (MW) of a turbine without wakes at each of the block's points, if the wind varies.

        Its derivatives by x and by y (MW/m) follow; shape (3, points).
        """
        if block.local is None:
            raise TypeError("the wind does not vary")
        sums = np.zeros((3, len(block.at.x)))
        adjoints = self._adjoints(block, block.local, len(block.at.x), False)
        wind = self._wind_at(block, block.at)
        self._add_gross(block, block.at, wind, np.ones(len(block.at.x)), sums[0], adjoints)
        at = self._where(block, block.at)
        block.local.add_slopes(block.begin, block.end, *at, adjoints, sums[1], sums[2])
        return sums

    def _adjoints(self, block: Block, local: LocalWind, count: int, turbulence: bool) -> Adjoints:
        elements = (block.end - block.begin) * block.wind.speed.shape[2]
        return local.adjoints(count, elements, turbulence=turbulence)

    def _add_gross(
        self, block: Block, places: Places, wind: Wind, factor: Array, power: Array, adjoints: Adjoints
    ) -> None:
        if block.local is None:
            raise TypeError("the wind does not vary")
        block.local.add_gross_power(wind, places.kind, self.kinds.curves, factor, power, adjoints)

    def wind_at(self, wind: Wind, local: LocalWind | None, places: Places) -> Wind:
        """Return the wind in all directions, with a row for each place if it varies."""
        if local is None:
            return wind
        heights = self.kinds.hub_height[places.kind]
        return local.at(wind, 0, len(wind.cosine), places.x, places.y, heights, self._exponent)

    @property
    def source_fields(self) -> int:
        """Return the number of quantities that the wake of a turbine depends on."""
        return len(result_type(self.model.formulas.source)._fields)

    def wind_at_points(self, wind: Wind, local: LocalWind | None, block: Block) -> Wind:
        """Return wind that varies in the block's directions, with a row for each of its points."""
        if local is None:
            raise TypeError("the wind does not vary")
        return local.at(wind, block.begin, block.end, *self._where(block, block.at), self._exponent)

    def points(self, block: Block, at_wind: Wind, first: int, rotor_average: bool, known: Known, power: Array) -> None:
        """Update the power (MW) of one more turbine at each of the block's points.

        at_wind, first, known, power: as in `leeward.wind.kernels.maps`; only the block's directions change.
        """
        self._kernels.points(*self._arguments(block), block.at, at_wind, first, float(rotor_average), known, power)

    def marginal(self, block: Block, counted: Array) -> Array:
        """Return the weighted power (MW) that the counted turbines would lose without each turbine."""
        gain = np.zeros(len(counted))
        self._kernels.marginal(*self._arguments(block), counted, gain)
        return gain

    def gains(self, block: Block, counted: Array) -> Array:
        """Return the weighted power (MW) that the counted turbines would gain from one more at each point."""
        gain = np.zeros(len(block.at.x))
        self._kernels.gains(*self._arguments(block), counted, block.at, self._wind_at(block, block.at), gain)
        return gain

    def flow(self, block: Block, height_m: float) -> Array:
        """Return the weighted wind speed (m/s) at each of the block's points, at this height above the ground.

        The points are an extra turbine type without a rotor; the types in the block are ignored.
        """
        kinds, model = self.kinds, self.options(block.extent)
        reaches = self._reaches(np.r_[0.5 * kinds.diameter, 0.0], block.extent)
        seen = kinds._replace(diameter=np.r_[kinds.diameter, 0.0], hub_height=np.r_[kinds.hub_height, height_m])
        widest = math.sqrt(float(reaches.max()))
        at = block.at._replace(kind=np.full(len(block.at.x), len(self.turbines), dtype=np.uint32))
        at_wind = self._wind_at(block, at, np.full(len(at.x), height_m))
        mean = np.zeros(len(at.x))
        points = (at, at_wind, seen, model._replace(reaches=reaches, widest=widest))
        self._kernels.flow(*self._arguments(block), *points, mean)
        return mean

    def cases(self, block: Block, targets: int, group: Indices, stands: Flags, reached: Flags, *power: Array) -> None:
        """Fill in the power (MW) of the first `targets` turbines with the wakes of neighbours only, and with all wakes.

        The other arguments are those of `leeward.wind.kernels.cases`.
        """
        self._kernels.cases(*self._arguments(block), targets, group, stands, reached, *power)

    def _arguments(self, block: Block) -> tuple[Places, Wind, int, int, Kinds, Model]:
        wind, begin, end = self._wind_at(block, block.places), block.begin, block.end
        if block.local is not None:
            begin, end = 0, end - begin  # the wind is that of the block only
        return block.places, wind, begin, end, self.kinds, self.options(block.extent)

    def _where(self, block: Block, places: Places, heights: Array | None = None) -> tuple[Array, Array, Array]:
        """Return x, y and height above ground of places, m."""
        heights = self.kinds.hub_height[places.kind] if heights is None else heights
        return places.x + block.x, places.y + block.y, heights

    def _wind_at(self, block: Block, places: Places, heights: Array | None = None) -> Wind:
        """Return the wind of the block. If it varies: only in the block's directions, with a row for each place."""
        if block.local is None:
            return block.wind
        at = self._where(block, places, heights)
        return block.local.at(block.wind, block.begin, block.end, *at, self._exponent)

    @property
    def _exponent(self) -> int:
        """Return the exponent of `Wind.scale`; 0 if contributions are relative to the free speed where they act."""
        return 0 if self.model.relative_to == "target" else 2 if self.model.squared else 1

    @functools.cached_property
    def _kernels(self) -> Kernels:
        from leeward.wind.kernels.build import kernels_of  # imports the compiler

        keep_freed_memory()
        return kernels_of(type(self.model))

    @functools.cached_property
    def kinds(self) -> Kinds:
        """Return the properties of the turbine types."""
        return Kinds(
            np.array([t.rotor_diameter_m for t in self.turbines]),
            np.array([t.hub_height_m for t in self.turbines]),
            np.array([t.lowest_thrust for t in self.turbines]) * self.density[0],
            np.array([t.highest_thrust for t in self.turbines]) * self.density[1],
            curves_of([t.curve for t in self.turbines]),
        )

    def options(self, extent: float) -> Model:
        """Return the wake model for distances up to `extent`, m."""
        if extent not in self._options_by_extent:
            model, reaches = self.model, self._reaches(0.5 * self.kinds.diameter, extent)
            widest = math.sqrt(float(reaches.max()))
            ratio = bool(model.uses_speed_ratio)
            options = Model(model.parameters(), model.table(), bool(model.squared), ratio, reaches, extent, widest)
            self._options_by_extent[extent] = options
        return self._options_by_extent[extent]

    def _reaches(self, radii: Array, extent: float) -> Array:
        """Return how far wakes reach rotors of these radii (m), squared; shape (types, radii, bins)."""
        low, high = self.turbulence
        reaches: Array = self._kernels.reaches(self.kinds, self.model.parameters(), radii, extent, low, high)
        return reaches


def check_thrust(turbines: Sequence[Turbine], model: WakeModel, density: float) -> None:
    """Raise InputError for a thrust coefficient at which the wake model is not defined, at this relative density."""
    for turbine in turbines:
        thrust = turbine.highest_thrust * density
        if not thrust < model.thrust_below:
            air = f" at an air density of {density * AIR_DENSITY:.3g} kg/m3" if density != 1.0 else ""
            raise InputError(
                f"wake model {model.name}: the thrust coefficient of {turbine.name} goes up to {thrust:g}{air}; this "
                f"model needs it below {model.thrust_below:g}; choose another wake model"
            )


@functools.cache
def keep_freed_memory() -> None:
    """Make the C library keep the memory that a kernel frees for the next call.

    A call needs some MB of scratch memory. glibc returns freed memory to the system, and getting it back, page by page,
    costs nearly as much as the arithmetic. After glibc has freed one large block, it keeps that much (its thresholds
    are dynamic). With another C library this has no effect.
    """
    np.empty(LARGE_BLOCK, dtype=np.uint8)


def _cosine_and_sine(direction: Array) -> tuple[Array, Array]:
    """Return cosine and sine of the angle the wind comes from, anticlockwise from east; exact for multiples of 90°."""
    angle = np.deg2rad(90.0 - direction)
    cosine, sine = np.cos(angle), np.sin(angle)
    quarter = direction % 90.0 == 0.0
    return np.where(quarter, np.round(cosine), cosine), np.where(quarter, np.round(sine), sine)


def longest_stretch(*places: Places) -> float:
    """Return the largest factor of distances along the terrain; see `Places`."""
    return max((float(each.stretch.max()) for each in places if each.stretch.size), default=1.0)


def extent_of(x: Array, y: Array, stretch: float = 1.0) -> float:
    """Return an upper bound (m) of the distance between two points, rounded up so that layouts of one area share it.

    stretch: a factor of distances.
    """
    diagonal = stretch * math.hypot(x.max() - x.min(), y.max() - y.min()) if len(x) else 0.0
    return 1000.0 * math.sqrt(2.0) ** math.ceil(2.0 * math.log2(max(diagonal, 1000.0) / 1000.0))


def _padded(values: Array, multiple: int, mode: Literal["edge", "constant"]) -> Array:
    """Return the values with a multiple of this many columns, padded with the last value or with 0."""
    missing = -values.shape[1] % multiple
    return np.pad(values, ((0, 0), (0, missing)), mode=mode) if missing else values
