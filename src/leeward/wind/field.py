"""Wind that varies over a site: quantities on a grid, and the area where they are known."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import CALM, Array
from leeward.wind.field_data import ANY_HEIGHT, FieldData, Mask
from leeward.wind.kernels.data import Field, kernel_array

Integers = npt.NDArray[np.int64]

NONE = np.zeros((1, 1, 1, 0))
DEGREES, KILOMETRES = (180.0, 90.0), 1000.0
FAR = 10.0  # sizes of the grid: what lies farther away was probably given in another unit
TOO_FAR = 50.0  # sizes of the grid: extrapolation ends there


@dataclass(frozen=True, eq=False)
class WindField:
    """Quantities on a grid in the form that the kernels need. data: what they were made of.

    is_checked: False if places outside the grid and in cells with missing values are no error.
    """

    data: FieldData
    values: Field
    bins: int
    is_checked: bool = True

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
        arrays = {name: kernel_array(given[name]) for name in names}
        if data.kind == "table" and given["probability"].shape[:3] != (1, 1, 1):
            arrays["cumulated"] = _cumulated(given["probability"], data.sectors)
        if "series_speed" in arrays:
            arrays["series_speed"] = np.maximum(arrays["series_speed"], CALM)
        axes = (kernel_array(axis) for axis in (data.x, data.y, data.heights))
        fields = Field(*axes, *(arrays.get(name, NONE) for name in Field._fields[3:]))
        return cls(data, fields, len(data.speeds) if data.kind == "table" else 0)

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
    def scales_speed(self) -> bool:
        """Return whether wind speeds at turbines are those of the conditions times a factor: speed-up or shear."""
        return bool(self.values.speed_up.shape[3] or self.data.shear) and not self.data.local_bins

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
        if not self.is_checked:
            return
        west, south, east, north = self.bounds
        away = np.maximum.reduce([west - x, x - east, south - y, y - north, np.zeros(len(x))])
        if away.max(initial=0.0) > self._farthest:
            i = int(np.argmax(away))
            raise InputError(
                f"{what}{i} at ({x[i]:.10g}, {y[i]:.10g}) is {away[i]:.6g} m outside the grid of the wind in "
                f"{self.data.source}, {self._extent()}; {self._hint(x, y)}"
            )
        for name, mask in self._missing():
            row, column = (_interval(axis, at) for axis, at in ((self.values.y, y), (self.values.x, x)))
            for i in np.flatnonzero(_any_corner(mask)[row, column])[:1]:
                raise InputError(
                    f"{what}{i} at ({x[i]:.10g}, {y[i]:.10g}) is where {self.data.source} has no {name} (NaN)"
                )

    def has_wind(self, x: Array, y: Array) -> npt.NDArray[np.bool_]:
        """Return whether the wind is known at places: in reach of the grid, and in cells without missing values."""
        west, south, east, north = self.bounds
        far = self._farthest
        known = (x >= west - far) & (x <= east + far) & (y >= south - far) & (y <= north + far)
        row, column = (_interval(axis, at) for axis, at in ((self.values.y, y), (self.values.x, x)))
        for _, mask in self._missing():
            known &= ~_any_corner(mask)[row, column]
        return known

    def check_area(self, bounds: tuple[float, float, float, float], touches: Callable[[Array], Array]) -> None:
        """Raise InputError if an area lies outside the grid or touches a cell without values.

        bounds: of the area: lowest x and y, highest x and y, m. touches: a function that says whether the area touches
        each of some boxes, of shape (boxes, 4) in the order of the bounds.
        """
        if not self.is_checked:
            return
        west, south, east, north = self.bounds
        away = {
            "west": west - bounds[0],
            "south": south - bounds[1],
            "east": bounds[2] - east,
            "north": bounds[3] - north,
        }
        if max(away.values()) > self._farthest:
            by = ", ".join(f"{distance:.6g} m to the {side}" for side, distance in away.items() if distance > OUTSIDE_M)
            raise InputError(
                f"the area reaches outside the grid of the wind in {self.data.source}, {self._extent()}: {by}; "
                f"{self._hint(np.array(bounds[::2]), np.array(bounds[1::2]))}"
            )
        x, y = self.values.x, self.values.y
        for name, mask in self._missing():
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

    def check_hub(self, height: float, name: str) -> None:
        """Raise InputError if the wind is not known at the hub height of a turbine. name: its name."""
        self.check_height(height, f"{name} has its hub at {height:g} m", "give it at heights that bracket the hub")

    def check_height(self, height: float, what: str, remedy: str = "choose another height") -> None:
        """Raise InputError if the wind is not known at a height above the ground, m. what: start of the message."""
        levels, shear = self.values.height, self.data.shear
        if shear is not None and shear.kind == "logarithmic" and height <= max(shear.values):
            raise InputError(
                f"{what}, not above the roughness length of the shear, {max(shear.values):g} m; choose another height"
            )
        if len(levels) == 1 and (shear is not None or levels[0] == ANY_HEIGHT):
            return
        if not levels[0] - 1e-6 <= height <= levels[-1] + 1e-6:
            at = f"at {levels[0]:g} m" if len(levels) == 1 else f"from {levels[0]:g} to {levels[-1]:g} m"
            raise InputError(
                f"{what}, but the wind in {self.data.source} is given {at} above ground; {remedy}"
                + (", or set shear" if len(levels) == 1 and not self.data.local_bins else "")
            )

    @property
    def _farthest(self) -> float:
        """Return how far from the grid places may be, m. Beyond it, extrapolation would hide a wrong unit."""
        west, south, east, north = self.bounds
        return TOO_FAR * max(east - west, north - south) if self.data.extrapolate else OUTSIDE_M

    def _extent(self) -> str:
        west, south, east, north = self.bounds
        return f"x {west:.10g} to {east:.10g}, y {south:.10g} to {north:.10g}"

    def _hint(self, x: Array, y: Array) -> str:
        """Return what to do about places outside the grid."""
        west, south, east, north = self.bounds
        low, high = np.array([west, south]), np.array([east, north])
        first, last = np.array([x.min(), y.min()]), np.array([x.max(), y.max()])
        is_far = np.maximum(first - high, low - last).max() > FAR * (high - low).max()
        if is_far and (low * KILOMETRES <= last).all() and (high * KILOMETRES >= first).all():
            return "its coordinates look like kilometres; expected metres"
        if max(abs(west), abs(east)) <= DEGREES[0] and max(abs(south), abs(north)) <= DEGREES[1]:
            return "its coordinates look like degrees; expected metres in the coordinate system of the areas"
        return (
            "check that both have the same coordinate system, or allow extrapolation (extrapolate: true), which uses "
            "the wind at the border of the grid"
        )

    def with_equal_weights(self) -> "WindField":
        """Return the field with weights that are the same at all places."""
        names = ("frequency", "weibull_a", "weibull_k", "cumulated")
        return replace(self, values=self.values._replace(**dict.fromkeys(names, NONE)))

    def _missing(self) -> Iterator[tuple[str, Mask]]:
        """Yield the quantities with missing values, and where they are missing, shape (y, x)."""
        shape = (len(self.values.y), len(self.values.x))
        for name, mask in self.data.missing.items():
            yield name, np.broadcast_to(mask, shape)

    def unchecked(self) -> "WindField":
        """Return the field for optimisers, which pass through any place.

        Outside the grid, the values at its border apply; missing values are those of a neighbouring point.
        """
        return replace(self, is_checked=False)


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
