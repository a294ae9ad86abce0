"""Between the farm and the kernels: checks, allocates and converts."""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from leeward.wind.conditions import Conditions
from leeward.wind.kernels import kernels_of
from leeward.wind.kernels.data import ELEMENTS, Batch, Indices, Kernels, Kinds, Model, curves_of
from leeward.wind.turbine import Turbine
from leeward.wind.wake_models.base import WakeModel

Array = npt.NDArray[np.float64]

LANES = 4  # several speeds per direction are filled up to a multiple of this, for the vector loops
BLOCK = 16384  # turbines x directions x speeds that a kernel works on at a time, at most: they fit the second cache
CHUNK = 1 << 18  # turbines (or points) x directions whose geometry is prepared at a time


@dataclass(frozen=True)
class Geometry:
    """Turbines as seen in some wind directions, with the conditions of these directions.

    lanes: number of speeds that are not only there to fill up; extent: a distance (m) that no two points exceed;
    at_downwind, at_crosswind: of further points, shape (directions, points).
    """

    batch: Batch
    lanes: int
    extent: float
    at_downwind: Array
    at_crosswind: Array

    @classmethod
    def blocks(
        cls,
        x: Array,
        y: Array,
        kinds: Indices,
        conditions: Conditions,
        at_x: Array | None = None,
        at_y: Array | None = None,
    ) -> Iterator["Geometry"]:
        """All conditions, in blocks of a fixed size."""
        turbines = max(len(x), 1)
        conditions = _narrow(conditions)
        lanes = conditions.speed.shape[1]
        block = max(1, min(BLOCK // turbines, ELEMENTS) // (lanes if lanes == 1 else lanes + LANES - 1))
        chunk = block * max(1, CHUNK // (max(turbines, 0 if at_x is None else len(at_x)) * block))
        # differences of large coordinates are exact; sums of their products are not
        origin_x, origin_y = (x[0], y[0]) if len(x) else (0.0, 0.0)
        east, north = x - origin_x, y - origin_y
        points = (np.empty(0) if at_x is None else at_x - origin_x, np.empty(0) if at_y is None else at_y - origin_y)
        extent = _extent(np.r_[east, points[0]], np.r_[north, points[1]])
        for start in range(0, len(conditions.direction), chunk):
            part = _slice(conditions, slice(start, start + chunk))
            batch = _batch(east, north, kinds, part)
            downwind, crosswind = _rotate(batch.cosine, batch.sine, *points)
            for first in range(0, len(part.direction), block):
                rows = slice(first, first + block)
                yield cls(_rows(batch, rows), lanes, extent, downwind[rows], crosswind[rows])


def _batch(x: Array, y: Array, kinds: Indices, conditions: Conditions) -> Batch:
    """The turbines sorted downwind in each direction."""
    cosine, sine = _cosine_and_sine(conditions.direction)
    downwind, crosswind = _rotate(cosine, sine, x, y)
    order = np.argsort(downwind, axis=1, kind="stable")  # side by side: in the order they were given
    crosswind = np.take_along_axis(crosswind, order, axis=1)
    return Batch(
        downwind=np.take_along_axis(downwind, order, axis=1),
        crosswind=crosswind,
        turbine=order.astype(np.uint32),
        kind=kinds[order],
        lateral=np.argsort(crosswind, axis=1).astype(np.uint32),
        speed=_fill(conditions.speed, "edge"),
        weight=_fill(conditions.weight, "constant"),
        turbulence_intensity=_fill(conditions.turbulence_intensity, "edge"),
        cosine=cosine,
        sine=sine,
    )


def _rows(batch: Batch, rows: slice) -> Batch:
    """Some of the directions; the lanes of all of them in one row."""
    part = Batch._make(values[rows] for values in batch)
    return part._replace(
        speed=part.speed.ravel(), weight=part.weight.ravel(), turbulence_intensity=part.turbulence_intensity.ravel()
    )


def _rotate(cosine: Array, sine: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Downwind and crosswind coordinates, shape (directions, points)."""
    return -np.outer(cosine, x) - np.outer(sine, y), np.outer(sine, x) - np.outer(cosine, y)


class Engine:
    """The kernels of a wake model, ready for some turbine types.

    turbulence_intensity: all values that will occur, or their extremes.
    """

    def __init__(self, turbines: Sequence[Turbine], model: WakeModel, turbulence_intensity: Array) -> None:
        model.check(turbines, turbulence_intensity)
        self.turbines = list(turbines)
        self._model = model
        self._turbulence = (float(turbulence_intensity.min()), float(turbulence_intensity.max()))
        self._options_by_extent: dict[float, Model] = {}

    def __getstate__(self) -> dict[str, object]:
        """Without compiled kernels: another process loads them from the disk cache."""
        return {k: v for k, v in vars(self).items() if k not in ("_kernels", "_kinds")} | {"_options_by_extent": {}}

    def power(self, geometry: Geometry) -> Array:
        """Weighted power of each turbine, MW."""
        return self._power_and_speeds_by_rank(geometry)[0]

    def power_and_speeds(self, geometry: Geometry) -> tuple[Array, Array]:
        """Weighted power of each turbine (MW), and effective speeds of shape (turbines, directions, speeds)."""
        power, by_rank = self._power_and_speeds_by_rank(geometry)
        directions, turbines = geometry.batch.downwind.shape
        by_rank = by_rank.reshape(turbines, directions, by_rank.shape[1] // directions)[:, :, : geometry.lanes]
        speeds = np.empty(by_rank.shape)
        np.put_along_axis(speeds, geometry.batch.turbine.T[:, :, None], by_rank, axis=0)
        return power, speeds

    def _power_and_speeds_by_rank(self, geometry: Geometry) -> tuple[Array, Array]:
        turbines = geometry.batch.downwind.shape[1]
        power = np.zeros(turbines)
        speeds = np.empty((turbines, len(geometry.batch.speed)))
        self._kernels.energy(geometry.batch, self._kinds, self._options(geometry.extent), power, speeds)
        return power, speeds

    def gradient(self, geometry: Geometry, counted: Array) -> Array:
        """Weighted power of each turbine (MW), and derivatives of the sum of the counted ones by x and by y (MW/m)."""
        sums = np.zeros((3, geometry.batch.downwind.shape[1]))
        self._kernels.gradient(
            geometry.batch, self._kinds, self._options(geometry.extent), counted, sums[0], sums[1], sums[2]
        )
        return sums

    def points(self, geometry: Geometry, turbine: Turbine, rotor_average: bool) -> Array:
        """Weighted power (MW) of one more turbine at each of the geometry's points."""
        power = np.zeros(geometry.at_downwind.shape[1])
        self._kernels.points(
            geometry.batch,
            self._kinds,
            self._options(geometry.extent),
            self.turbines.index(turbine),
            float(rotor_average),
            geometry.at_downwind,
            geometry.at_crosswind,
            power,
        )
        return power

    @functools.cached_property
    def _kernels(self) -> Kernels:
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
            self._options_by_extent[extent] = self._new_options(extent)
        return self._options_by_extent[extent]

    def _new_options(self, extent: float) -> Model:
        parameters = self._model.parameters()
        reaches = self._kernels.reaches(
            self._kinds, parameters, 0.5 * self._kinds.diameter, extent, self._turbulence[0], self._turbulence[1]
        )
        widest = math.sqrt(float(reaches.max()))
        return Model(parameters, self._model.table(), bool(self._model.squared), reaches, extent, widest)


def _cosine_and_sine(direction: Array) -> tuple[Array, Array]:
    """Of the angle that the wind comes from, anticlockwise from east; exact for the four main directions."""
    angle = np.deg2rad(90.0 - direction)
    cosine, sine = np.cos(angle), np.sin(angle)
    quarter = direction % 90.0 == 0.0
    return np.where(quarter, np.round(cosine), cosine), np.where(quarter, np.round(sine), sine)


def _extent(x: Array, y: Array) -> float:
    """A distance (m) that no two points exceed, rounded up so that layouts of one area share it."""
    if len(x) == 0:
        return 1000.0
    diagonal = math.hypot(float(np.ptp(x)), float(np.ptp(y)))
    return 1000.0 * math.sqrt(2.0) ** math.ceil(2.0 * math.log2(max(diagonal, 1000.0) / 1000.0))


def _narrow(conditions: Conditions) -> Conditions:
    """The same conditions with no more speeds per direction than a kernel takes: directions repeated if need be."""
    directions, speeds = conditions.speed.shape
    if speeds <= ELEMENTS:
        return conditions
    parts = -(-speeds // ELEMENTS)
    missing = -speeds % parts

    def folded(values: Array, mode: Literal["edge", "constant"]) -> Array:
        return np.pad(values, ((0, 0), (0, missing)), mode=mode).reshape(directions * parts, -1)

    return Conditions(
        np.repeat(conditions.direction, parts),
        folded(conditions.speed, "edge"),
        folded(conditions.weight, "constant"),
        folded(conditions.turbulence_intensity, "edge"),
    )


def _slice(conditions: Conditions, part: slice) -> Conditions:
    return Conditions(
        conditions.direction[part],
        conditions.speed[part],
        conditions.weight[part],
        conditions.turbulence_intensity[part],
    )


def _fill(values: Array, mode: Literal["edge", "constant"]) -> Array:
    """Fill several lanes up to a multiple of LANES: with the last value, or with 0."""
    lanes = values.shape[1]
    missing = -lanes % LANES if lanes > 1 else 0
    filled = np.pad(values, ((0, 0), (0, missing)), mode=mode) if missing else values
    return np.array(filled, order="C")  # a copy of one kind, whatever came in: the kernels are compiled for it
