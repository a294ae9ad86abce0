"""Wind that varies over a site: quantities on a grid, and the conditions at any place."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import CALM, Array
from leeward.wind.field_data import ANY_HEIGHT, SHEARS, FieldData, Mask
from leeward.wind.kernels.data import NO_PAIRS, Adjoints, Curves, Field, Indices, Places, Rows, Wind

Integers = npt.NDArray[np.int64]

NONE = np.zeros((1, 1, 1, 0))
NO_ROWS = np.zeros((0, 1, 1))
DEGREES, KILOMETRES = (180.0, 90.0), 1000.0


@dataclass(frozen=True, eq=False)
class WindField:
    """Quantities on a grid in the form that the kernels need. data: what they were made of.

    extrapolate: outside the grid, the values at its border apply; else it is an error to ask there.
    """

    data: FieldData
    values: Field
    bins: int
    extrapolate: bool

    @classmethod
    def of(cls, data: FieldData) -> "WindField":
        given = data.values
        has_speed = "speed_up" in given or data.shear is not None
        names = [name for name in ("speed_up", "density", "series_speed", "series_turbulence") if name in given]
        if "turbulence" in given and given["turbulence"].shape[:3] != (1, 1, 1):
            names.append("turbulence")
        if data.kind == "weibull":
            weights = ["frequency", "weibull_a", "weibull_k"]
            varies = any(given[name].shape[:3] != (1, 1, 1) for name in weights)
            names += weights if varies or (data.local_bins and has_speed) else []
        if data.distances != "straight":
            names.append("elevation")
        arrays = {name: np.ascontiguousarray(given[name]) for name in names}
        if data.kind == "table" and given["probability"].shape[:3] != (1, 1, 1):
            arrays["cumulated"] = _cumulated(given["probability"], data.sectors)
        if "series_speed" in arrays:
            arrays["series_speed"] = np.maximum(arrays["series_speed"], CALM)
        axes = (np.ascontiguousarray(axis) for axis in (data.x, data.y, data.heights))
        fields = Field(*axes, *(arrays.get(name, NONE) for name in Field._fields[3:]))
        return cls(data, fields, len(data.speeds) if data.kind == "table" else 0, data.extrapolate)

    @property
    def is_linear(self) -> bool:
        return self.data.interpolation == "linear"

    @property
    def varies_weight(self) -> bool:
        return bool(self.values.weibull_a.shape[3] or self.values.cumulated.shape[3])

    @property
    def varies_speed(self) -> bool:
        values = self.values
        return bool(values.speed_up.shape[3] or values.series_speed.shape[3] or self.data.shear)

    @property
    def varies_with_height(self) -> bool:
        return len(self.values.height) > 1 or self.data.shear is not None

    @property
    def varies_turbulence(self) -> bool:
        return bool(self.values.turbulence.shape[3] or self.values.series_turbulence.shape[3])

    @property
    def has_ground(self) -> bool:
        """True if the elevation of the terrain adds to hub heights."""
        return self.data.distances == "elevated"

    @property
    def follows_terrain(self) -> bool:
        """True if distances follow the terrain."""
        return self.data.distances == "terrain_following"

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Return the extent of the grid: lowest x and y, highest x and y, m. One point extends everywhere."""
        x, y = self.values.x, self.values.y
        west, east = (x[0], x[-1]) if len(x) > 1 else (-np.inf, np.inf)
        south, north = (y[0], y[-1]) if len(y) > 1 else (-np.inf, np.inf)
        return float(west), float(south), float(east), float(north)

    def check_places(self, x: Array, y: Array, what: str) -> None:
        """Raise InputError if a place lies outside the grid or in a cell without values. what: its kind."""
        if self.extrapolate:
            return
        west, south, east, north = self.bounds
        away = np.maximum.reduce([west - x, x - east, south - y, y - north, np.zeros(len(x))])
        if away.any():
            i = int(np.argmax(away))
            raise InputError(
                f"{what}{i} at ({x[i]:.10g}, {y[i]:.10g}) is {away[i]:.6g} m outside the grid of the wind in "
                f"{self.data.source}, {self._extent()}; {self._hint(x, y)}"
            )
        for name, mask in self.data.missing.items():
            row, column = (_interval(axis, at) for axis, at in ((self.values.y, y), (self.values.x, x)))
            for i in np.flatnonzero(_any_corner(mask)[row, column])[:1]:
                raise InputError(
                    f"{what}{i} at ({x[i]:.10g}, {y[i]:.10g}) is where {self.data.source} has no {name} (NaN)"
                )

    def has_wind(self, x: Array, y: Array) -> npt.NDArray[np.bool_]:
        """Return whether the wind is known at places: inside the grid, and in cells without missing values."""
        if self.extrapolate:
            return np.ones(len(x), dtype=bool)
        west, south, east, north = self.bounds
        known = (x >= west) & (x <= east) & (y >= south) & (y <= north)
        row, column = (_interval(axis, at) for axis, at in ((self.values.y, y), (self.values.x, x)))
        for mask in self.data.missing.values():
            known &= ~_any_corner(mask)[row, column]
        return known

    def check_area(self, bounds: tuple[float, float, float, float], touches: Callable[[Array], Array]) -> None:
        """Raise InputError if an area lies outside the grid or touches a cell without values.

        bounds: of the area: lowest x and y, highest x and y, m. touches: a function that says whether the area touches
        each of some boxes, of shape (boxes, 4) in the order of the bounds.
        """
        if self.extrapolate:
            return
        west, south, east, north = self.bounds
        away = {
            "west": west - bounds[0],
            "south": south - bounds[1],
            "east": bounds[2] - east,
            "north": bounds[3] - north,
        }
        if max(away.values()) > OUTSIDE_M:
            by = ", ".join(f"{distance:.6g} m to the {side}" for side, distance in away.items() if distance > OUTSIDE_M)
            raise InputError(
                f"the area reaches outside the grid of the wind in {self.data.source}, {self._extent()}: {by}; "
                f"{self._hint(np.array(bounds[::2]), np.array(bounds[1::2]))}"
            )
        x, y = self.values.x, self.values.y
        for name, mask in self.data.missing.items():
            rows, columns = np.nonzero(_any_corner(mask))
            ends = [
                axis[np.minimum(cells + step, len(axis) - 1)]
                for step in (0, 1)
                for axis, cells in ((x, columns), (y, rows))
            ]
            for i in np.flatnonzero(touches(np.stack(ends, axis=1)))[:1]:
                raise InputError(
                    f"{self.data.source}: {name} is missing (NaN) near ({ends[0][i]:.10g}, {ends[1][i]:.10g}), inside "
                    "the area; exclude this part from the area, or complete the file"
                )

    def check_height(self, height: float, name: str) -> None:
        """Raise InputError if the levels of the grid do not bracket the hub height of a turbine. name: its name."""
        levels = self.values.height
        if len(levels) == 1 and (self.data.shear is not None or levels[0] == ANY_HEIGHT):
            return
        if not levels[0] - 1e-6 <= height <= levels[-1] + 1e-6:
            at = f"at {levels[0]:g} m" if len(levels) == 1 else f"from {levels[0]:g} to {levels[-1]:g} m"
            raise InputError(
                f"{name} has its hub at {height:g} m, but the wind in {self.data.source} is given {at} above ground; "
                "give it at heights that bracket the hub" + (", or set shear" if len(levels) == 1 else "")
            )

    def _extent(self) -> str:
        west, south, east, north = self.bounds
        return f"x {west:.10g} to {east:.10g}, y {south:.10g} to {north:.10g}"

    def _hint(self, x: Array, y: Array) -> str:
        """Return what to do about places outside the grid."""
        west, south, east, north = self.bounds
        if max(abs(west), abs(east)) <= DEGREES[0] and max(abs(south), abs(north)) <= DEGREES[1]:
            return "its coordinates look like degrees; expected metres in the coordinate system of the areas"
        low, high = np.array([west, south]) * KILOMETRES, np.array([east, north]) * KILOMETRES
        if (low <= [x.max(), y.max()]).all() and (high >= [x.min(), y.min()]).all():
            return "its coordinates look like kilometres; expected metres"
        return (
            "check that both have the same coordinate system, or allow extrapolation (extrapolate: true), which uses "
            "the wind at the border of the grid"
        )

    def with_equal_weights(self) -> "WindField":
        """Return the field with weights that are the same at all places."""
        names = ("frequency", "weibull_a", "weibull_k", "cumulated")
        return replace(self, values=self.values._replace(**dict.fromkeys(names, NONE)))

    def extrapolated(self) -> "WindField":
        """Return the field without an error outside the grid: the values at its border apply there."""
        return replace(self, extrapolate=True)


OUTSIDE_M = 1e-6  # rounding of coordinates


def _cumulated(probability: Array, sectors: int) -> Array:
    """Return the probability of a table below each edge of its bins; shape (y, x, heights, sectors x (bins + 1))."""
    shape = probability.shape[:3]
    by_sector = probability.reshape(*shape, sectors, -1)
    edges = np.concatenate([np.zeros((*shape, sectors, 1)), np.cumsum(by_sector, axis=4)], axis=4)
    return np.ascontiguousarray(edges.reshape(*shape, -1))


def _interval(axis: Array, at: Array) -> Integers:
    """Return the intervals of an axis that contain some coordinates."""
    return np.clip(np.searchsorted(axis, at, side="right") - 1, 0, max(len(axis) - 2, 0))


def _any_corner(mask: Mask) -> Mask:
    """Return whether any corner of each cell is True; an axis of length 1 has cells of one point."""
    for axis in (0, 1):
        if mask.shape[axis] > 1:
            low, high = (np.take(mask, range(s, mask.shape[axis] - 1 + s), axis) for s in (0, 1))
            mask = low | high
    return mask


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
    """The part of `Conditions` that says how they vary.

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

    def one_wind(self, local_turbulence: bool) -> "FieldConditions":
        """Return how a single condition with the weight 1 varies. Values of a time series do not count.

        local_turbulence: True if the turbulence intensity varies too.
        """
        values = self.field.with_equal_weights().values._replace(series_speed=NONE, series_turbulence=NONE)
        if not local_turbulence:
            values = values._replace(turbulence=NONE)
        one = np.ones((1, 1))
        field, step = replace(self.field, values=values), np.zeros(1, dtype=np.int64)
        return FieldConditions(field, one, one, np.ones((1, 2)), step)

    def rows(self, direction: Array, speed: Array) -> Rows:
        """Return the conditions in the form that the kernels need. direction, speed: those of `Conditions`."""
        field = self.field
        main = sectors_at(direction, field.data.sectors, field.is_linear)
        smooth = sectors_at(direction, field.data.sectors, True)
        shear, height, value = 0, 1.0, np.zeros(len(direction))
        if field.data.shear is not None:
            given = field.data.shear
            shear, height = 1 + SHEARS.index(given.kind), given.reference_height_m
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
            np.ascontiguousarray(self.factor),
            np.array(speed, order="C"),
            np.ascontiguousarray(self.turbulence_factor),
            np.ascontiguousarray(edges),
            field.bins,
            field.data.local_bins,
            shear,
            height,
            value,
        )


@functools.cache
def _kernels() -> Mapping[str, Any]:
    """Return the compiled loops over places."""
    from leeward.wind.kernels import resource, resource_slopes
    from leeward.wind.kernels.compile import kernel

    def compiled(module: ModuleType, name: str) -> Any:
        return kernel(getattr(module, name), "resource", source=Path(str(module.__file__)))

    homes = {
        "local_wind": resource,
        "fill_ground": resource,
        "fill_stretch": resource,
        "stretch_slopes": resource_slopes,
        "gross_power": resource,
        "position_slopes": resource_slopes,
    }
    return {name: compiled(module, name) for name, module in homes.items()}


@dataclass(frozen=True, eq=False)
class LocalWind:
    """The wind conditions at any place, for the kernels. rows: as in `Wind`, padded in the same way."""

    field: WindField
    rows: Rows

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

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
        places = (np.ascontiguousarray(values, dtype=np.float64) for values in (x, y, height))
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
        ways = (np.ascontiguousarray(axis) for axis in (points.x, points.y, turbines.x, turbines.y))
        _kernels()["fill_stretch"](self.field.values, *ways, known, points.x is turbines.x, stretch)
        return points._replace(stretch=stretch)

    def _terrain(self, x: Array, y: Array) -> Array:
        """Return the elevation of the terrain (m) and its slopes to the east and north at places; shape (3, places)."""
        if not self.field.has_ground:
            return np.empty((3, 0))
        found = np.empty((3, len(x)))
        _kernels()["fill_ground"](self.field.values, np.ascontiguousarray(x), np.ascontiguousarray(y), *found)
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
        places = (np.ascontiguousarray(values, dtype=np.float64) for values in (x, y, height))
        _kernels()["position_slopes"](self.field.values, self.rows, begin, end, *places, adjoints, by_x, by_y)
        if len(adjoints.ground):
            _, east, north = self._terrain(x, y)
            by_x += adjoints.ground * east
            by_y += adjoints.ground * north
        if len(adjoints.stretch):
            at = np.ascontiguousarray(x), np.ascontiguousarray(y)
            _kernels()["stretch_slopes"](self.field.values, *at, adjoints.stretch, by_x, by_y)

    def add_gross_power(
        self, wind: Wind, kind: Indices, curves: Curves, factor: Array, mean_power: Array, adjoints: Adjoints
    ) -> None:
        """Add the power (MW) of a turbine at each place without wakes, times a factor (places,), to `mean_power`.

        wind: the result of `at`. Add its derivatives with respect to the wind to `adjoints`.
        """
        _kernels()["gross_power"](wind.speed, wind.weight, wind.density, kind, curves, factor, mean_power, adjoints)
