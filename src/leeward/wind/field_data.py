"""The numbers that define wind that varies over a site, checked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind import checks
from leeward.wind.checks import Array

Mask = npt.NDArray[np.bool_]

KINDS = ("weibull", "table", "list", "series")
SHEARS = ("power", "logarithmic")
DISTANCES = ("straight", "elevated", "terrain_following")
NEEDED = {"weibull": ("frequency", "weibull_a", "weibull_k"), "table": ("probability",), "list": (), "series": ()}
LIMITS = {  # of each quantity; densities are relative to 1.225 kg/m3
    "frequency": (0.0, 1.0, "a fraction from 0 to 1 (per cent? divide by 100)"),
    "weibull_a": (0.01, 60.0, "metres per second, above 0 and at most 60"),
    "weibull_k": (0.2, 20.0, "a shape from 0.2 to 20"),
    "probability": (0.0, 1.0, "a fraction from 0 to 1"),
    "speed_up": (0.05, 10.0, "a factor from 0.05 to 10"),
    "turning": (-360.0, 360.0, "degrees from -360 to 360"),
    "turbulence": (0.0, 2.0, "a fraction, such as 0.08 (per cent? divide by 100)"),
    "density": (0.4, 1.6, "an air density from 0.49 to 1.96 kg/m3"),
    "elevation": (-1000.0, 9000.0, "metres from -1000 to 9000"),
    "series_speed": (0.0, 100.0, "metres per second from 0 to 100"),
    "series_turbulence": (0.0, 2.0, "a fraction, such as 0.08 (per cent? divide by 100)"),
}
AIR_DENSITY = 1.225  # kg/m3, of power curves
ANY_HEIGHT = 0.0  # m: the only level of a grid that applies at all heights
SLACK = 0.02  # frequencies of files are rounded: their sum may differ from 1 by this much
MOST_BYTES = 2 << 30
IDLE = ("weibull_a", "weibull_k")  # quantities that may be 0 in sectors without wind
NEARLY_ZERO = 1e-12  # instead of 0 in such sectors: its logarithm is finite
SLOWEST_M_S = 1.0  # below it, the turbulence intensity does not increase any more


@dataclass(frozen=True)
class Shear:
    """The increase of the wind speed with height.

    kind: "power", with exponents as `values`, or "logarithmic", with roughness lengths (m): one number, or one for each
    sector, of which the nearest applies. reference_height_m: where the wind speeds of the site apply.
    """

    kind: str
    values: tuple[float, ...]
    reference_height_m: float

    def __post_init__(self) -> None:
        checks.one_of(self.kind, SHEARS, "shear: kind")
        checks.positive(self.reference_height_m, "shear: reference_height_m")
        for value in checks.one_or_more(self.values, "shear: values"):
            if self.kind == "power" and not -0.5 <= value <= 1.0:
                raise InputError(f"shear: the exponent is {value:g}; expected -0.5 to 1 (typical are 0.05 to 0.3)")
            if self.kind == "logarithmic" and not 0.0 < value < self.reference_height_m:
                raise InputError(
                    f"shear: the roughness length is {value:g} m; expected more than 0 and less than "
                    f"reference_height_m, {self.reference_height_m:g}"
                )

    @classmethod
    def power(cls, exponent: npt.ArrayLike, reference_height_m: float) -> "Shear":
        """Return the power law. exponent: one number, or one for each sector."""
        return cls("power", tuple(np.atleast_1d(exponent).tolist()), reference_height_m)

    @classmethod
    def logarithmic(cls, roughness_length_m: npt.ArrayLike, reference_height_m: float) -> "Shear":
        """Return the logarithmic law. roughness_length_m: one number, or one for each sector."""
        return cls("logarithmic", tuple(np.atleast_1d(roughness_length_m).tolist()), reference_height_m)


@dataclass(frozen=True, eq=False)
class FieldData:
    """Wind that varies over a site.

    kind: "weibull"; "table"; "list", of conditions; or "series", of time steps.
    x, y, heights: points of the grid, m, increasing; one value does not vary. A single height `ANY_HEIGHT` applies at
    all heights.
    values: quantities of shape (y, x, heights, n); the axes may also have the length 1. n is the number of sectors or
    1; that of `probability` is sectors x speeds; that of a series is the number of steps. `LIMITS` has their names and
    units. directions: centres of the bins, or the direction of each step, which wakes follow. speeds: centres of the
    bins, or the reference speed of each step, m/s. weight: of the steps, a share of the time.
    interpolation: "nearest" or "linear" between sectors. local_bins: bins of speed move with the local speed.
    turbulence_at_15: the turbulence intensity applies at 15 m/s; at others it is multiplied by 0.75 + 3.8 / speed.
    distances: one of `DISTANCES`. extrapolate: outside the grid, the values at its border apply. crs: coordinate system
    of the grid, if known. source: name of the file, for errors. covered_degrees: how much of the circle the bins of a
    list cover. missing: True where a quantity is NaN, shape (y, x).
    """

    kind: str
    x: Array
    y: Array
    heights: Array
    values: Mapping[str, Array]
    directions: Array
    speeds: Array
    weight: Array | None = None
    interpolation: str = "nearest"
    local_bins: bool = False
    turbulence_at_15: bool = False
    shear: Shear | None = None
    distances: str = "straight"
    extrapolate: bool = False
    crs: str | None = None
    source: str = "site"
    covered_degrees: float = 360.0
    missing: Mapping[str, Mask] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.one_of(self.kind, KINDS, f"{self.source}: kind")
        checks.one_of(self.distances, DISTANCES, f"{self.source}: distances")
        if not isinstance(self.extrapolate, bool | np.bool_):
            raise InputError(f"{self.source}: extrapolate is {self.extrapolate!r:.60}; expected True or False")
        for name, axis in (("x", self.x), ("y", self.y), ("h", self.heights)):
            check_axis(axis, name, self.source)
        checks.angles(checks.finite_array(self.directions, f"{self.source}: wd"))  # NaN would crash the kernels
        checks.finite_array(self.speeds, f"{self.source}: ws")
        for name in NEEDED[self.kind]:
            if name not in self.values:
                raise InputError(f"{self.source}: has no {name}; expected {', '.join(NEEDED[self.kind])}")
        self._check_speeds()
        if self.shear is not None and len(self.heights) == 1 and self.heights[0] != ANY_HEIGHT:
            check_shear(self.shear, self.heights[0], self.source)
        if sum(values.nbytes for values in self.values.values()) > MOST_BYTES:
            raise InputError(
                f"{self.source}: the grid has more than {MOST_BYTES >> 30} GiB of values; select a part of it"
            )
        if self.distances != "straight" and "elevation" not in self.values:
            raise InputError(
                f"{self.source}: distances is {self.distances!r}, which needs the elevation of the terrain"
            )
        for name, values in self.values.items():
            checks.one_of(name, tuple(LIMITS), f"{self.source}: the name of a quantity")
            self._check_shape(name, values)
        idle = {name: self._without_zeros(name) for name in IDLE if name in self.values}
        object.__setattr__(self, "values", {**self.values, **idle})
        for name, values in self.values.items():
            self._check_values(name, values)
        self._check_sums()
        missing = {name: mask for name, mask in self._missing() if mask.any()}
        object.__setattr__(self, "missing", missing)
        whole = {name: each if name in unused(self.distances) else filled(each) for name, each in self.values.items()}
        object.__setattr__(self, "values", whole)

    @property
    def has_bins(self) -> bool:
        """Return whether the conditions are bins of directions and speeds, rather than a list or a series."""
        return self.kind in ("weibull", "table")

    @property
    def sectors(self) -> int:
        """Return the number of sectors."""
        if self.kind == "table":
            return int(self.values["probability"].shape[3]) // len(self.speeds)
        if self.kind == "weibull":
            return int(self.values["frequency"].shape[3])
        names = ("speed_up", "turbulence", "density")
        return max((self.values[name].shape[3] for name in names if name in self.values), default=1)

    def where(self, row: int, column: int) -> str:
        """Return a phrase for a point of the grid."""
        x = f"x = {self.x[min(column, len(self.x) - 1)]:.10g}"
        return f"{x}, y = {self.y[min(row, len(self.y) - 1)]:.10g}"

    def _at_level(self, level: int) -> str:
        height = self.heights[min(level, len(self.heights) - 1)]
        return "" if height == ANY_HEIGHT else f", height {height:g} m"

    def _check_speeds(self) -> None:
        """Raise InputError unless the speeds are those of bins, or of the steps of a series."""
        speeds, what = self.speeds, f"{self.source}: ws"
        checks.reject(speeds, ~((speeds >= 0.0) & (speeds <= 100.0)), what, "0 to 100 m/s")
        if self.has_bins:
            if not len(speeds):
                raise InputError(f"{what} is empty; expected the speeds of bins")
            checks.check_increasing(speeds, what, "increasing speeds")
            if self.kind == "weibull" and speeds[0] == 0.0:
                raise InputError(f"{what}[0] is 0; expected speeds of bins above 0 m/s (give `speeds`)")
            if self.kind == "weibull" and self.local_bins and len(speeds) == 1:
                raise InputError(f"{what} has one speed; bins that move with the local speed need two or more")
            return
        expected = 0 if "series_speed" in self.values else len(self.directions)
        if len(speeds) != expected:
            raise InputError(f"{what} has {len(speeds)} steps; expected {expected}")
        if self.weight is None:
            return
        what = f"{self.source}: weight"
        if len(self.weight) != len(self.directions):
            raise InputError(f"{what} has {len(self.weight)} steps; expected {len(self.directions)}")
        if not checks.probabilities(checks.finite_array(self.weight, what), what).any():
            raise InputError(f"{what} is 0 in all steps; expected shares of the time")

    def _check_shape(self, name: str, values: Array) -> None:
        sizes = (len(self.y), len(self.x), len(self.heights))
        axes = zip(values.shape[:3], sizes, strict=True) if values.ndim == 4 else []
        if values.ndim != 4 or not all(length in (1, size) for length, size in axes):
            raise InputError(
                f"{self.source}: {name} has the shape {values.shape}; expected (y, x, heights, n) with "
                f"{' x '.join(map(str, sizes))} points"
            )

        if self.has_bins or not name.startswith("series_"):
            allowed = (1, self.sectors * len(self.speeds)) if name == "probability" else (1, self.sectors)
            if values.shape[3] not in allowed:
                expected = (
                    f"1 or {self.sectors}, as others have"
                    if self.sectors > 1
                    else f"1, as {(*NEEDED[self.kind], name)[0]} has"
                )
                raise InputError(f"{self.source}: {name} has {values.shape[3]} sectors; expected {expected}")
        elif values.shape[3] != len(self.directions):
            raise InputError(
                f"{self.source}: {name} has {values.shape[3]} steps; expected {len(self.directions)}, one each"
            )

    def _without_zeros(self, name: str) -> Array:
        """Return a Weibull parameter in which zeros of sectors without wind are nearly 0."""
        values, frequency = self.values[name], self.values["frequency"]
        is_idle = frequency == 0.0
        for axis in range(4):
            if values.shape[axis] == 1:
                is_idle = is_idle.all(axis=axis, keepdims=True)
        return np.where((values == 0.0) & is_idle, NEARLY_ZERO, values)

    def _check_values(self, name: str, values: Array) -> None:
        low, high, expected = LIMITS[name]
        if name not in unused(self.distances) and any_missing(values).all():
            missing = np.flatnonzero(np.isnan(values).all(axis=(0, 1, 2)))
            part = "step" if name.startswith("series_") else "value" if name == "probability" else "sector"
            which = f" in {part} {missing[0]}" if len(missing) and values.shape[3] > 1 else ""
            raise InputError(
                f"{self.source}: {name} is missing (NaN) at all points{which}; expected values of the wind"
            )
        bad = ~np.isnan(values) & ~((values >= low) & (values <= high))
        if name in IDLE:
            bad &= values != NEARLY_ZERO
        for row, column, level, n in np.argwhere(bad)[:1]:
            found = values[row, column, level, n] * (AIR_DENSITY if name == "density" else 1.0)
            raise InputError(
                f"{self.source}: {name} is {found:g} at {self.where(row, column)}{self._at_level(level)} (value {n}); "
                f"expected {expected}"
            )

    def _check_sums(self) -> None:
        """Raise InputError if the frequencies at a point do not add up to 1, or probabilities to more than 1."""
        name = {"weibull": "frequency", "table": "probability"}.get(self.kind)
        if name is None:
            return
        total = self.values[name].sum(axis=3)
        if not total.any():
            raise InputError(f"{self.source}: {name} is 0 everywhere; expected fractions that add up to 1")
        is_bad = (total > 1.0 + SLACK) | ((total < 1.0 - SLACK) & (self.kind == "weibull"))
        for row, column, _ in np.argwhere(is_bad)[:1]:
            found = total[is_bad][0]
            raise InputError(
                f"{self.source}: {name} adds up to {found:.6g} over all sectors at {self.where(row, column)}; expected "
                f"1{' (are sectors missing?)' if found < 1 else ''}"
            )

    def _missing(self) -> Iterator[tuple[str, Mask]]:
        """Yield the quantities that count, and where they are NaN or were before they were filled in."""
        for name, values in self.values.items():
            if name not in unused(self.distances):
                yield name, any_missing(values) | self.missing.get(name, False)

    def turbulence_factor(self, speed: Array) -> Array:
        """Return the factor of the turbulence intensity at wind speeds (m/s): that of IEC 61400-1, edition 3, or 1."""
        return 0.75 + 3.8 / np.maximum(speed, SLOWEST_M_S) if self.turbulence_at_15 else np.ones(np.shape(speed))

    def turbulence_range(self, speed: Array) -> Array:
        """Return turbulence intensities among which are the lowest and the highest at these wind speeds (m/s)."""
        factor = self.turbulence_factor(speed)
        given = [each for name, each in self.values.items() if name in ("turbulence", "series_turbulence")]
        ends = [end for each in given for end in (each.min(), each.max())]
        return np.outer(ends, [factor.min(), factor.max()]).ravel()


def unused(distances: str) -> set[str]:
    """Return the quantities that change no result with these distances, so that they may be missing."""
    return {"turning"} | ({"elevation"} if distances == "straight" else set())


def check_shear(shear: Shear, height: float, source: str) -> None:
    """Raise InputError unless shear starts from the height (m) at which the wind is given."""
    if abs(height - shear.reference_height_m) > 1e-6:
        raise InputError(
            f"{source}: gives the wind at {height:g} m, but shear has reference_height_m {shear.reference_height_m:g}; "
            "expected the same height"
        )


def check_axis(axis: Array, name: str, source: str) -> None:
    """Raise InputError unless the coordinates are finite and increase."""
    if axis.ndim != 1 or not len(axis):
        raise InputError(
            f"{source}: {name} has the shape {axis.shape}; expected one coordinate for each column or row (rotated "
            "grids are not supported)"
        )
    for i in np.flatnonzero(~np.isfinite(axis))[:1]:
        raise InputError(f"{source}: {name}[{i}] is {axis[i]}; expected a finite number")
    for i in np.flatnonzero(np.diff(axis) <= 0)[:1]:
        raise InputError(
            f"{source}: {name}[{i + 1}] is {axis[i + 1]:.10g} after {axis[i]:.10g}; expected increasing coordinates "
            f"({'remove one of them' if axis[i + 1] == axis[i] else f'sort the file by {name}'})"
        )


def check_same_crs(of_grid: str | None, crs: str | None) -> None:
    """Raise InputError if the grid of the wind and the areas or layouts are in different coordinate systems.

    None: not known.
    """
    if of_grid == crs or of_grid is None or crs is None:
        return
    import pyproj

    try:
        known = pyproj.CRS.from_user_input(of_grid)
    except pyproj.exceptions.CRSError as error:
        raise InputError(f"names the unknown coordinate system {of_grid!r:.60}") from error
    if not known.equals(pyproj.CRS.from_user_input(crs), ignore_axis_order=True):
        raise InputError(
            f"the wind is in {known.name}, but the areas or layouts are in {crs}; expected one coordinate system: "
            "reproject the file of the wind, or set `crs` for the areas"
        )


def any_missing(values: Array) -> Mask:
    """Return the points of the grid with a NaN, shape (y, x)."""
    return np.asarray(np.isnan(values).any(axis=(2, 3)))


def filled(values: Array) -> Array:
    """Return values with each NaN replaced by that of a neighbouring point of the grid; other values are unchanged.

    They only serve optimisers, which may pass through places without values. A layout there is rejected.
    """
    bad = any_missing(values)
    values = np.ascontiguousarray(values, dtype=np.float64)
    if not bad.any():
        return values
    values = values.copy()
    while bad.any():
        known = ~bad
        for shift, axis in ((1, 0), (-1, 0), (1, 1), (-1, 1)):
            source, target = _shifted(known.shape[axis], shift)
            here = np.take(bad, target, axis) & np.take(known, source, axis)
            rows, columns = np.nonzero(here)
            to = (target[rows], columns) if axis == 0 else (rows, target[columns])
            of = (source[rows], columns) if axis == 0 else (rows, source[columns])
            values[to] = values[of]
            bad[to] = False
    return values


def _shifted(size: int, shift: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the indices of points that have a neighbour in one direction: of the neighbours, and of the points."""
    points = np.arange(size)
    target = points[(points - shift >= 0) & (points - shift < size)]
    return target - shift, target
