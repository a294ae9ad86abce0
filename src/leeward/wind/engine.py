"""The layer between farm and kernels: it converts the input, allocates the output and calls the kernels."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from leeward.wind.conditions import Array, Conditions
from leeward.wind.kernels.data import ELEMENTS, Indices, Kernels, Kinds, Known, Model, Places, Wind, curves_of
from leeward.wind.turbine import Turbine
from leeward.wind.wake_models.base import WakeModel, result_type

T = TypeVar("T")
Flags = npt.NDArray[np.uint8]

LANES = 4  # several speeds per direction are padded to a multiple of this, for the vector loops
BLOCK = 16384  # largest number of turbines x directions x speeds in a block: fits the second-level cache

LARGE_BLOCK = 30 << 20  # bytes; glibc adapts to blocks of up to 32 MB
NO_PLACES = Places(np.empty(0), np.empty(0), np.empty(0, dtype=np.uint32))
NO_SPEEDS = np.empty((0, 0))


@dataclass(frozen=True)
class Block:
    """Turbines in some wind directions, the input of one call of a kernel.

    extent: an upper bound (m) of the distance between two places; at: points to evaluate.
    """

    places: Places
    wind: Wind
    begin: int
    end: int
    extent: float
    at: Places


def wind_of(conditions: Conditions) -> Wind:
    """Return the conditions in the form that the kernels need.

    A direction with more than ELEMENTS speeds is repeated, each time with a part of them. Several speeds are padded to
    a multiple of LANES: speed and turbulence with the last value, weight with 0.
    """
    directions, speeds = conditions.speed.shape
    parts = -(-speeds // ELEMENTS)

    def lanes(values: Array, mode: Literal["edge", "constant"]) -> Array:
        rows = _padded(values, parts, mode).reshape(directions * parts, -1)
        filled = _padded(rows, LANES, mode) if rows.shape[1] > 1 else rows
        return np.array(filled, order="C")  # the kernels are compiled for writable C arrays

    return Wind(
        *_cosine_and_sine(np.repeat(conditions.direction, parts)),
        lanes(conditions.speed, "edge"),
        lanes(conditions.weight, "constant"),
        lanes(conditions.turbulence_intensity, "edge"),
    )


def blocks(wind: Wind, turbines: Places, points: Places = NO_PLACES) -> Iterator[Block]:
    """Yield all conditions in blocks of a fixed size. points: to evaluate."""
    # differences of large coordinates are exact; sums of their products are not
    x, y = (turbines.x[0], turbines.y[0]) if len(turbines.x) else (0.0, 0.0)
    places, at = (Places(each.x - x, each.y - y, each.kind) for each in (turbines, points))
    extent = extent_of(np.concatenate((places.x, at.x)), np.concatenate((places.y, at.y)))
    directions, lanes = wind.speed.shape
    size = max(1, min(BLOCK // max(len(places.x), 1), ELEMENTS) // lanes)
    for begin in range(0, directions, size):
        yield Block(places, wind, begin, min(begin + size, directions), extent, at)


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

    turbulence_intensity: all values that will occur, or their extremes.
    """

    def __init__(self, turbines: Sequence[Turbine], model: WakeModel, turbulence_intensity: Array) -> None:
        model.check(turbines, turbulence_intensity)
        self.turbines = list(turbines)
        self._model = model
        self._turbulence = (float(turbulence_intensity.min()), float(turbulence_intensity.max()))
        self._options_by_extent: dict[float, Model] = {}

    def __getstate__(self) -> dict[str, object]:
        """Return the state without compiled kernels: another process loads them from the disk cache."""
        return {k: v for k, v in vars(self).items() if k not in ("_kernels", "_kinds")} | {"_options_by_extent": {}}

    def in_turbulence(self, turbulence_intensity: Array) -> "Engine":
        """Return an engine with the same turbines and model for other turbulence intensities."""
        return Engine(self.turbines, self._model, turbulence_intensity)

    def power(self, block: Block, speeds: Array = NO_SPEEDS) -> Array:
        """Return the weighted power of each turbine, MW. Fill `speeds` of shape (turbines, elements), if given."""
        power = np.zeros(len(block.places.x))
        self._kernels.energy(*self._arguments(block), power, speeds)
        return power

    def gradient(self, block: Block, counted: Array) -> Array:
        """Return the weighted power of each turbine (MW), and derivatives of the counted sum by x and by y (MW/m)."""
        sums = np.zeros((3, len(counted)))
        self._kernels.gradient(*self._arguments(block), counted, sums[0], sums[1], sums[2])
        return sums

    @property
    def source_fields(self) -> int:
        """Return the number of quantities that the wake of a turbine depends on."""
        return len(result_type(self._model.formulas.source)._fields)

    def points(self, block: Block, rotor_average: bool, known: Known, power: Array) -> None:
        """Update the power (MW) of one more turbine at each of the block's points.

        known, power: as in `leeward.wind.kernels.maps`; only the block's directions change.
        """
        self._kernels.points(*self._arguments(block), block.at, float(rotor_average), known, power)

    def marginal(self, block: Block, counted: Array) -> Array:
        """Return the weighted power (MW) that the counted turbines would lose without each turbine."""
        gain = np.zeros(len(counted))
        self._kernels.marginal(*self._arguments(block), counted, gain)
        return gain

    def gains(self, block: Block, counted: Array) -> Array:
        """Return the weighted power (MW) that the counted turbines would gain from one more at each point."""
        gain = np.zeros(len(block.at.x))
        self._kernels.gains(*self._arguments(block), counted, block.at, gain)
        return gain

    def flow(self, block: Block, height_m: float) -> Array:
        """Return the weighted wind speed (m/s) at each of the block's points, at this height above the ground.

        The points are an extra turbine type without a rotor; the types in the block are ignored.
        """
        kinds, model = self._kinds, self._options(block.extent)
        reaches = self._reaches(np.r_[0.5 * kinds.diameter, 0.0], block.extent)
        seen = kinds._replace(diameter=np.r_[kinds.diameter, 0.0], hub_height=np.r_[kinds.hub_height, height_m])
        widest = math.sqrt(float(reaches.max()))
        at = block.at._replace(kind=np.full(len(block.at.x), len(self.turbines), dtype=np.uint32))
        mean = np.zeros(len(at.x))
        self._kernels.flow(*self._arguments(block), at, seen, model._replace(reaches=reaches, widest=widest), mean)
        return mean

    def cases(self, block: Block, targets: int, group: Indices, stands: Flags, reached: Flags, *power: Array) -> None:
        """Fill in the power (MW) of the first `targets` turbines with the wakes of neighbours only, and with all wakes.

        The other arguments are those of `leeward.wind.kernels.cases`.
        """
        self._kernels.cases(*self._arguments(block), targets, group, stands, reached, *power)

    def _arguments(self, block: Block) -> tuple[Places, Wind, int, int, Kinds, Model]:
        return block.places, block.wind, block.begin, block.end, self._kinds, self._options(block.extent)

    @functools.cached_property
    def _kernels(self) -> Kernels:
        from leeward.wind.kernels.build import kernels_of  # imports the compiler

        keep_freed_memory()
        return kernels_of(type(self._model))

    @functools.cached_property
    def _kinds(self) -> Kinds:
        return Kinds(
            np.array([t.rotor_diameter_m for t in self.turbines]),
            np.array([t.hub_height_m for t in self.turbines]),
            np.array([t.lowest_thrust for t in self.turbines]),
            np.array([t.highest_thrust for t in self.turbines]),
            curves_of([t.curve for t in self.turbines]),
        )

    def _options(self, extent: float) -> Model:
        if extent not in self._options_by_extent:
            model, reaches = self._model, self._reaches(0.5 * self._kinds.diameter, extent)
            widest = math.sqrt(float(reaches.max()))
            options = Model(model.parameters(), model.table(), bool(model.squared), reaches, extent, widest)
            self._options_by_extent[extent] = options
        return self._options_by_extent[extent]

    def _reaches(self, radii: Array, extent: float) -> Array:
        """Return how far wakes reach rotors of these radii (m), squared; shape (types, radii, bins)."""
        low, high = self._turbulence
        reaches: Array = self._kernels.reaches(self._kinds, self._model.parameters(), radii, extent, low, high)
        return reaches


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


def extent_of(x: Array, y: Array) -> float:
    """Return an upper bound (m) of the distance between two points, rounded up so that layouts of one area share it."""
    diagonal = math.hypot(x.max() - x.min(), y.max() - y.min()) if len(x) else 0.0
    return 1000.0 * math.sqrt(2.0) ** math.ceil(2.0 * math.log2(max(diagonal, 1000.0) / 1000.0))


def _padded(values: Array, multiple: int, mode: Literal["edge", "constant"]) -> Array:
    """Return the values with a multiple of this many columns, padded with the last value or with 0."""
    missing = -values.shape[1] % multiple
    return np.pad(values, ((0, 0), (0, missing)), mode=mode) if missing else values
