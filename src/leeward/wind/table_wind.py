"""Wind of tables and time series: exact conditions, or bins with evenly spread probability."""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind import checks
from leeward.wind.checks import CALM
from leeward.wind.conditions import Array, Conditions, Distribution, place_in, shifted_lattice

KINDS = ("bins", "exact")
SPEED_BINS = ("centres", "edges")
COARSE_DEG = 5.0  # directions more than this far apart are bins by default
STEP_DEG = 1.0  # largest step between the conditions of a bin
FASTEST_M_S = 100.0  # of a time series
HINT = "set kind: bins (spread evenly over each bin) or kind: exact (these directions and no others)"


class TableWind(Distribution):
    """Exact conditions; see `Site.from_table` and `Site.from_time_series`."""

    def __init__(
        self,
        directions: Array,
        speeds: Array,
        probability: Array,
        turbulence_intensity: Array,
        what: str = "table",
        checked: bool = True,
    ) -> None:
        count = len(directions)
        flat = probability.ndim == 1
        if flat and speeds.size == 1:
            speeds = np.broadcast_to(speeds, (count,))
        shape = (count,) if flat else (count, speeds.size)
        if not flat and len(probability) != count:
            raise InputError(
                f"{what}: {len(probability)} rows of probabilities for {count} directions; expected a row for each"
            )
        if probability.shape != shape or speeds.shape != shape[-1:]:
            edges = probability.shape == (count, speeds.size - 1)
            raise InputError(
                f"{what}: {count} directions, {speeds.size} speeds and probabilities of the shape {probability.shape}; "
                "expected the shape (directions, speeds), or (directions,) with one speed for each or for all"
                + ("; if the speeds are the edges of bins, set speed_bins: edges" if edges else "")
            )
        checks.reject(speeds, speeds < 0, f"{what}: speed ", "0 m/s or more")
        speeds = np.maximum(speeds, CALM)
        if checked:  # not for a part of the circle, where bins may add up to more than 1
            checks.probabilities(probability, f"{what}: probabilities")
        if probability.sum() == 0:
            raise InputError(f"{what}: all probabilities are 0; expected at least one above 0")
        if turbulence_intensity.size != 1 and turbulence_intensity.shape != shape:
            raise InputError(
                f"{what}: turbulence_intensity has the shape {turbulence_intensity.shape}; expected one number, or the "
                f"shape {shape}"
            )
        table = (count, 1) if flat else shape
        speed = speeds[:, None] if flat else np.broadcast_to(speeds, table)
        intensity = turbulence_intensity.reshape(table) if turbulence_intensity.size > 1 else turbulence_intensity
        self.conditions = Conditions(
            directions, np.array(speed), probability.reshape(table), np.array(np.broadcast_to(intensity, table))
        )

    @classmethod
    def of(cls, conditions: Conditions) -> "TableWind":
        """Return the wind of these conditions."""
        wind = cls.__new__(cls)
        wind.conditions = conditions
        return wind

    def settings(self) -> dict[str, Any]:
        """Return the settings. A time series has one speed for each direction."""
        return {"kind": "exact", **_settings(self.conditions)}

    def describe(self) -> str:
        directions, speeds = self.conditions.speed.shape
        if speeds == 1:
            return f"{directions} exact conditions"
        return f"table of {directions} directions × {speeds} speeds, each an exact condition"

    @functools.cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        """Return the indices of all conditions, sorted by direction and speed: draws are spread evenly over both."""
        direction = np.broadcast_to(self.conditions.direction[:, None], self.conditions.speed.shape)
        return np.lexsort((self.conditions.speed.ravel(), direction.ravel()))

    def coarser(self, directions: int, speeds: Array) -> Distribution:
        if self.conditions.weight.size <= 2 * directions:
            return self
        drawn = self.draw(2 * directions, np.random.default_rng(0))
        columns = drawn.speed[:, 0], drawn.weight[:, 0], drawn.turbulence_intensity[:, 0]
        return TableWind(drawn.direction, *columns, checked=False)

    def draw(self, count: int, rng: np.random.Generator) -> Conditions:
        """Draw from the conditions themselves."""
        total = self.conditions.weight.sum()
        place, _ = place_in(self.conditions.weight.ravel()[self._order], shifted_lattice(count, rng)[0])
        chosen = self._order[place]
        row, column = np.divmod(chosen, self.conditions.weight.shape[1])
        return self.conditions.drawn(row, column, np.full(count, total / count))


class BinnedWind(TableWind):
    """A table of direction bins. Its conditions are at most 1 degree apart; the speeds are centres of bins."""

    def __init__(self, bins: Conditions, starts: Array, widths: Array) -> None:
        """bins: one row for each bin. starts, widths: start and width of each bin, degrees."""
        self.bins = bins
        self._starts = starts
        self._widths = widths
        self.conditions = self._spread(np.maximum(np.ceil(widths / STEP_DEG - 1e-9), 1.0).astype(np.int64))

    @property
    def covered_degrees(self) -> float:
        """Return how many degrees of the circle the bins cover."""
        return float(self._widths.sum())

    def settings(self) -> dict[str, Any]:
        return {"kind": "bins", **_settings(self.bins)}

    def describe(self) -> str:
        bins, speeds = self.bins.speed.shape
        widths = sorted({round(float(width), 6) for width in self._widths})
        wide = f"{widths[0]:g}°" if len(widths) == 1 else f"{widths[0]:g} to {widths[-1]:g}°"
        return (
            f"table of {bins} directions × {speeds} speeds, read as bins of {wide} that are spread over "
            f"{len(self.conditions.direction)} directions; speeds are bin centres"
        )

    def coarser(self, directions: int, speeds: Array) -> Distribution:
        """Spread the bins over about this many directions, and sort their speeds into bins around `speeds`."""
        if self.bins.speed.shape[1] == 1:  # one speed for each direction
            return super().coarser(directions, speeds)
        into = _overlap(speed_bin_edges(self.bins.speed[0]), speed_bin_edges(speeds))
        fewer = np.maximum(np.round(directions * self._widths / self._widths.sum()), 1.0).astype(np.int64)
        rose = self._spread(fewer)
        weight = rose.weight @ into
        if not weight.any():  # no wind at these speeds
            return super().coarser(directions, speeds)
        present = weight > 0.0
        mean = (rose.weight * rose.turbulence_intensity) @ into / np.where(present, weight, 1.0)
        intensity = np.where(present, mean, rose.turbulence_intensity.mean(axis=1, keepdims=True))
        return TableWind(rose.direction, speeds, weight, intensity, checked=False)

    def _spread(self, counts: npt.NDArray[np.int64]) -> Conditions:
        """Return conditions with `counts` evenly spaced directions in each bin.

        An even number of directions starts on the edge of the bin, an odd number is centred in it. Twelve sectors thus
        become whole degrees, each in the sector that PyWake's nearest-sector interpolation chooses for it.
        """
        bin_of = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(bin_of)) - np.repeat(np.cumsum(counts) - counts, counts)
        place = (within + 0.5 * (counts[bin_of] % 2)) / counts[bin_of]
        direction = (self._starts[bin_of] + place * self._widths[bin_of]) % 360.0
        direction = np.where(np.abs(direction - np.round(direction)) < 1e-9, np.round(direction) % 360.0, direction)
        order = np.argsort(direction, kind="stable")
        bin_of, direction = bin_of[order], direction[order]
        return Conditions(
            direction,
            np.array(self.bins.speed[bin_of]),
            self.bins.weight[bin_of] / counts[bin_of][:, None],
            _round_circle(self.bins.direction, self.bins.turbulence_intensity, direction),
        )


def table_wind(
    directions: npt.ArrayLike,
    speeds: npt.ArrayLike,
    probability: npt.ArrayLike,
    turbulence_intensity: npt.ArrayLike,
    kind: str | None,
    speed_bins: str = "centres",
) -> Distribution:
    """Return the wind of a table; see `Site.from_table`."""
    at = checks.angles(checks.one_or_more(directions, "directions"))
    speeds = checks.one_or_more(speeds, "speeds")
    share = checks.finite_array(probability, "probability", (1, 2))
    intensity = checks.turbulence(turbulence_intensity, "turbulence_intensity")
    if kind is not None:
        checks.one_of(kind, KINDS, "table: kind")
    if checks.one_of(speed_bins, SPEED_BINS, "table: speed_bins") == "edges":
        if kind == "exact":
            raise InputError("table: kind is exact, but speed_bins is edges; set kind: bins, or give speeds, not edges")
        speeds = _centres(speeds)
    exact = TableWind(at, speeds, share, intensity)
    table = exact.conditions
    if kind is None:
        kind = _default_kind(table, is_binned=speed_bins == "edges")
    if kind == "exact":
        return exact
    if table.speed.shape[1] > 1 and (np.diff(table.speed[0]) <= 0).any():
        raise InputError("table: the speeds do not increase; expected the centres of bins in increasing order")
    direction = table.direction % 360.0
    order = np.argsort(direction, kind="stable")
    in_order = Conditions(direction[order], table.speed[order], table.weight[order], table.turbulence_intensity[order])
    return BinnedWind(in_order, *_bins(in_order.direction))


def series_wind(
    direction: npt.ArrayLike, speed: npt.ArrayLike, turbulence_intensity: npt.ArrayLike, weight: npt.ArrayLike | None
) -> Distribution:
    """Return the wind of a time series; see `Site.from_time_series`."""
    degrees = checks.angles(checks.finite_array(direction, "direction"))
    metres = checks.finite_array(speed, "speed")
    if len(degrees) == 0:
        raise InputError("the time series is empty; expected at least one condition")
    if len(degrees) != len(metres):
        raise InputError(f"direction has {len(degrees)} values and speed has {len(metres)}; expected the same number")
    checks.reject(metres, metres > FASTEST_M_S, "speed", f"at most {FASTEST_M_S:g} m/s (is this a missing value?)")
    share = np.full(len(degrees), 1.0 / len(degrees)) if weight is None else checks.finite_array(weight, "weight")
    return TableWind(
        degrees, metres, share, checks.turbulence(turbulence_intensity, "turbulence_intensity"), what="time series"
    )


def _default_kind(table: Conditions, is_binned: bool) -> str:
    """Return the default kind of a table. Raise InputError if the table must name its kind."""
    count, speeds = table.speed.shape
    if count == 1 and not is_binned:
        return "exact"
    steps = _steps(np.sort(table.direction % 360.0))
    if not np.allclose(steps, 360.0 / count, rtol=0.0, atol=1e-6):
        shown = ", ".join(f"{direction:g}" for direction in table.direction[:6]) + (", ..." if count > 6 else "")
        raise InputError(f"table: the directions ({shown}) are not evenly spaced over the full circle: {HINT}")
    return "bins" if is_binned or (speeds > 1 and 360.0 / count > COARSE_DEG + 1e-9) else "exact"


def _steps(directions: Array) -> Array:
    """Return the step from each of the sorted directions to the next, around the circle."""
    return np.diff(np.r_[directions, directions[0] + 360.0])


def _bins(directions: Array) -> tuple[Array, Array]:
    """Return start and width of the bins around sorted directions; a bin ends half-way to the next direction.

    If even steps cover only part of the circle, the outermost bins are as wide as the others.
    """
    if len(directions) < 2:
        raise InputError("table: the bin of a single direction has no known width; set kind: exact")
    steps = _steps(directions)
    for i in np.flatnonzero(steps < 1e-9)[:1]:
        raise InputError(f"table: the direction {directions[i]:g} appears twice (0 and 360 are the same); remove one")
    gap = int(np.argmax(steps))
    others = np.delete(steps, gap)
    if steps[gap] > others.max() + 1e-6 and np.allclose(others, others[0], rtol=0.0, atol=1e-6):
        steps[gap] = others[0]
    before, after = 0.5 * np.roll(steps, 1), 0.5 * steps
    return directions - before, before + after


def _centres(edges: Array) -> Array:
    """Return the centres between the edges of speed bins."""
    if len(edges) < 2:
        raise InputError(f"table: speed_bins is edges, but the number of speeds is {len(edges)}; expected at least 2")
    checks.check_increasing(edges, "table: speed ", "increasing edges")
    return np.asarray(0.5 * (edges[:-1] + edges[1:]))


def _overlap(edges: Array, classes: Array) -> Array:
    """Return the share of each bin that lies in each class; shape (bins, classes)."""
    low = np.maximum(edges[:-1, None], classes[:-1])
    high = np.minimum(edges[1:, None], classes[1:])
    return np.asarray(np.maximum(high - low, 0.0) / np.diff(edges)[:, None])


def _round_circle(directions: Array, values: Array, at: Array) -> Array:
    """Return values of shape (directions, speeds) at other directions, by linear interpolation."""
    columns = [np.interp(at, directions, column, period=360.0) for column in values.T]
    return np.ascontiguousarray(np.array(columns).T)


def _settings(conditions: Conditions) -> dict[str, Any]:
    speed, weight, turbulence_intensity = conditions.speed[0], conditions.weight, conditions.turbulence_intensity
    if len(speed) == 1:
        speed, weight, turbulence_intensity = conditions.speed[:, 0], weight[:, 0], turbulence_intensity[:, 0]
    return {
        "wind_directions_deg": conditions.direction.tolist(),
        "wind_speeds_m_s": speed.tolist(),
        "probability": weight.tolist(),
        "turbulence_intensity": turbulence_intensity.tolist(),
    }


def speed_bin_edges(speeds: Array) -> Array:
    """Return edges half-way between the speeds, the outermost bins symmetric; a single speed has a bin of 1 m/s."""
    if len(speeds) == 1:
        return np.array([max(speeds[0] - 0.5, 0.0), speeds[0] + 0.5])
    half = np.diff(speeds) / 2.0
    edges: Array = np.r_[speeds[0] - half[0], speeds[:-1] + half, speeds[-1] + half[-1]]
    return np.maximum(edges, 0.0)
