"""The wind conditions of a field at any place, for the kernels."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.wind.checks import Array
from leeward.wind.field import NONE, WindField
from leeward.wind.field_data import SHEARS
from leeward.wind.kernels.data import NO_PAIRS, Adjoints, Curves, Indices, Places, Rows, Wind, kernel_array

Integers = npt.NDArray[np.int64]

NO_ROWS = np.zeros((0, 1, 1))


def sectors_at(direction: Array, count: int, linear: bool) -> tuple[Integers, Integers, Array]:
    """Return the sectors around directions, and the position between them (0 .. 1); the nearest one if not linear."""
    position = np.asarray(direction, dtype=np.float64) / (360.0 / count)
    if not linear:
        nearest = np.floor(position + 0.5).astype(np.int64) % count
        return nearest, nearest, np.zeros(len(nearest))
    below = np.floor(position).astype(np.int64)
    return below % count, (below + 1) % count, position - below


@dataclass(frozen=True, eq=False)
class FieldConditions:
    """Describes how conditions vary over the site.

    factor: of the weights; turbulence_factor: of the turbulence intensity; shape (directions, speeds). edges: of the
    bins of speed, shape (directions, speeds + 1), in m/s or, for a table, as positions in it. step: index into series.
    """

    field: WindField
    factor: Array
    turbulence_factor: Array
    edges: Array
    step: Integers

    def drawn(self, row: Integers, column: Integers, ratio: Array) -> "FieldConditions":
        """Return some of the conditions, with their weights multiplied by `ratio`; see `Conditions.drawn`."""
        return FieldConditions(
            self.field,
            (self.factor[row, column] * ratio)[:, None],
            self.turbulence_factor[row, column][:, None],
            np.stack([self.edges[row, column], self.edges[row, column + 1]], axis=1),
            self.step[row],
        )

    def in_order(self, order: Integers) -> "FieldConditions":
        """Return the same conditions with their directions in another order."""
        values = (self.factor[order], self.turbulence_factor[order], self.edges[order], self.step[order])
        return FieldConditions(self.field, *values)

    def unweighted(self, speed: Array, local_turbulence: bool) -> "FieldConditions":
        """Return how conditions with the weight 1 vary. Values of a time series do not count.

        speed: of the conditions at the reference, shape (directions, speeds). local_turbulence: True if the turbulence
        intensity varies too.
        """
        values = self.field.with_equal_weights().values._replace(series_speed=NONE, series_turbulence=NONE)
        if not local_turbulence:
            values = values._replace(turbulence=NONE)
        field, (directions, speeds) = replace(self.field, values=values), speed.shape
        factor, edges = field.data.turbulence_factor(speed), np.ones((directions, speeds + 1))
        return FieldConditions(field, np.ones(speed.shape), factor, edges, np.zeros(directions, dtype=np.int64))

    def rows(self, direction: Array, speed: Array) -> Rows:
        """Return the conditions in the form that the kernels need. direction, speed: those of `Conditions`."""
        field = self.field
        main = sectors_at(direction, field.data.sectors, field.is_linear)
        smooth = sectors_at(direction, field.data.sectors, True)
        shear, height, value = 0, 1.0, np.zeros(len(direction))
        if field.data.shear is not None:
            given = field.data.shear
            shear, height = 1 + SHEARS.index(given.kind), float(given.reference_height_m)
            sector, _, _ = sectors_at(direction, len(given.values), False)
            value = np.array(given.values)[sector]
        with np.errstate(divide="ignore"):
            edges = self.edges if field.bins else np.log(self.edges)
        same = (main[0][1:] == main[0][:-1]) & (main[2][1:] == 0.0) & (main[2][:-1] == 0.0) & (value[1:] == value[:-1])
        same &= (edges[1:] == edges[:-1]).all(axis=1) & (self.factor[1:] == self.factor[:-1]).all(axis=1)
        return Rows(
            *main,
            *smooth,
            self.step,
            np.r_[False, same].astype(np.uint8),
            kernel_array(self.factor),
            np.array(speed, order="C"),
            kernel_array(self.turbulence_factor),
            kernel_array(edges),
            field.bins,
            bool(field.data.local_bins),
            shear,
            height,
            value,
        )


def _kernels() -> Mapping[str, Any]:
    """Return the compiled loops over places."""
    from leeward.wind.kernels.build import resource_kernels  # imports the compiler

    return resource_kernels()


def values_at(field: WindField, values: Array, x: Array, y: Array, height: Array) -> Array:
    """Return values of shape (y, x, heights, n), interpolated at places; shape (places, n)."""
    found = np.empty((len(x), values.shape[3]))
    places = (kernel_array(axis) for axis in (x, y, height))
    _kernels()["fill_values"](field.values, kernel_array(values), *places, found)
    return found


@dataclass(frozen=True, eq=False)
class LocalWind:
    """The wind conditions at any place, for the kernels. rows: as in `Wind`, padded in the same way."""

    field: WindField
    rows: Rows

    def at(self, wind: Wind, begin: int, end: int, x: Array, y: Array, height: Array, exponent: int) -> Wind:
        """Return the wind in the directions begin .. end, with a row for each place of what varies.

        wind: the reference. x, y, height: of the places, m. exponent: of the speed in `Wind.scale`; 0: no scale.
        """
        field = self.field
        shape = (len(x), end - begin, wind.speed.shape[2])
        speed = np.empty(shape if field.varies_speed else NO_ROWS.shape)
        weight = np.empty(shape if field.varies_weight else NO_ROWS.shape)
        turbulence = np.empty(shape if field.varies_turbulence else NO_ROWS.shape)
        density = np.empty(shape if field.values.density.shape[3] else (0, *shape[1:]))
        places = (kernel_array(values) for values in (x, y, height))
        _kernels()["local_wind"](field.values, self.rows, begin, end, *places, speed, weight, turbulence, density)
        part = slice(begin, end)
        local = Wind(
            wind.cosine[part],
            wind.sine[part],
            speed if field.varies_speed else np.ascontiguousarray(wind.speed[:, part]),
            weight if field.varies_weight else np.ascontiguousarray(wind.weight[:, part]),
            turbulence if field.varies_turbulence else np.ascontiguousarray(wind.turbulence_intensity[:, part]),
            density,
            density[:0],
        )
        if exponent and field.varies_speed:
            local = local._replace(scale=speed if exponent == 1 else speed * speed)
        return local

    def on_ground(self, turbines: Places) -> Places:
        """Return turbines with the elevation of the terrain and their distances along it, where these count."""
        return self.points_on_ground(turbines._replace(stretch=NO_PAIRS), turbines)

    def points_on_ground(self, points: Places, turbines: Places) -> Places:
        """Return points with the elevation of the terrain and the distances to turbines along it, where these count.

        Distances that the points already have, those to the first turbines, are kept.
        """
        points = points._replace(ground=self._terrain(points.x, points.y)[0])
        if not self.field.follows_terrain:
            return points
        known = points.stretch.shape[1] if len(points.stretch) == len(points.x) else 0
        stretch = np.empty((len(points.x), len(turbines.x)))
        stretch[:, :known] = points.stretch[:, :known] if known else 0.0
        ways = (kernel_array(axis) for axis in (points.x, points.y, turbines.x, turbines.y))
        _kernels()["fill_stretch"](self.field.values, *ways, known, points.x is turbines.x, stretch)
        return points._replace(stretch=stretch)

    def _terrain(self, x: Array, y: Array) -> Array:
        """Return the elevation of the terrain (m) and its slopes to the east and north at places; shape (3, places)."""
        if not self.field.has_ground:
            return np.empty((3, 0))
        found = np.empty((3, len(x)))
        _kernels()["fill_ground"](self.field.values, kernel_array(x), kernel_array(y), *found)
        return found

    def adjoints(self, count: int, elements: int, *, turbulence: bool) -> Adjoints:
        """Return arrays for the derivatives with respect to what varies. turbulence: False if it has no effect."""
        field = self.field
        shape = (count, elements)

        def zeros(needed: bool) -> Array:
            return np.zeros(shape if needed else (0, 0))

        # the derivatives with respect to weights are always needed: they mark that the others are
        return Adjoints(
            zeros(field.varies_speed),
            zeros(True),
            zeros(turbulence and field.varies_turbulence),
            zeros(bool(field.values.density.shape[3])),
            np.zeros(count if field.has_ground else 0),
            np.zeros((count, count) if field.follows_terrain else (0, 0)),
        )

    def add_slopes(
        self, begin: int, end: int, x: Array, y: Array, height: Array, adjoints: Adjoints, by_x: Array, by_y: Array
    ) -> None:
        """Add the derivatives with respect to positions to by_x and by_y, from those with respect to the wind there."""
        if not self.field.varies_weight:
            adjoints = adjoints._replace(weight=np.zeros((0, 0)))
        places = (kernel_array(values) for values in (x, y, height))
        _kernels()["position_slopes"](self.field.values, self.rows, begin, end, *places, adjoints, by_x, by_y)
        if len(adjoints.ground):
            _, east, north = self._terrain(x, y)
            by_x += adjoints.ground * east
            by_y += adjoints.ground * north
        if len(adjoints.stretch):
            at = kernel_array(x), kernel_array(y)
            _kernels()["stretch_slopes"](self.field.values, *at, adjoints.stretch, by_x, by_y)

    def add_gross_power(
        self, wind: Wind, kind: Indices, curves: Curves, factor: Array, mean_power: Array, adjoints: Adjoints
    ) -> None:
        """Add the power (MW) of a turbine at each place without wakes, times a factor (places,), to `mean_power`.

        wind: the result of `at`. Add its derivatives with respect to the wind to `adjoints`.
        """
        _kernels()["gross_power"](wind.speed, wind.weight, wind.density, kind, curves, factor, mean_power, adjoints)
