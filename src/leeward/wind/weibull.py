"""Weibull distributions of the wind by sector, and values that vary with the sector."""

from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind import checks
from leeward.wind.conditions import Array, Conditions, Distribution, place_in, shifted_lattice
from leeward.wind.table_wind import TableWind, speed_bin_edges

DEFAULT_DIRECTIONS = np.arange(360.0)
DEFAULT_SPEEDS = np.arange(3.0, 26.0)
INTERPOLATIONS = ("nearest", "linear")


class WeibullWind(Distribution):
    """Weibull distributions of equal sectors, the first one centred on north."""

    def __init__(
        self,
        sector_frequency: npt.ArrayLike,
        weibull_a_m_s: npt.ArrayLike,
        weibull_k: npt.ArrayLike,
        turbulence_intensity: npt.ArrayLike,
        directions: npt.ArrayLike | None,
        speeds: npt.ArrayLike | None,
        interpolation: str,
    ) -> None:
        """See `Site.from_weibull`."""
        frequency = checks.finite_array(sector_frequency, "sector_frequency")
        scale, shape = checks.finite_array(weibull_a_m_s, "weibull_a_m_s"), checks.finite_array(weibull_k, "weibull_k")
        intensity = checks.turbulence(turbulence_intensity, "turbulence_intensity")
        bins = DEFAULT_DIRECTIONS if directions is None else checks.one_or_more(directions, "directions")
        at_speeds = DEFAULT_SPEEDS if speeds is None else checks.one_or_more(speeds, "speeds")
        sectors = len(frequency)
        if not frequency.sum() > 0:
            raise InputError("sector_frequency is empty or adds up to 0; expected shares of time that add up to 1")
        for name, values in (("weibull_a_m_s", scale), ("weibull_k", shape)):
            if len(values) != sectors:
                raise InputError(
                    f"{name} has {len(values)} sectors and sector_frequency has {sectors}; expected the same number"
                )
            checks.reject(values, values <= 0, name, "a number above 0")
        if intensity.ndim > 1 or intensity.size not in (1, sectors):
            raise InputError(
                f"turbulence_intensity has the shape {intensity.shape}; expected one number, or one for "
                f"each of the {sectors} sectors"
            )
        self._frequency = checks.probabilities(frequency, "sector_frequency")
        self._scale = scale
        self._shape = shape
        self._turbulence = np.broadcast_to(intensity.ravel(), (sectors,))
        self._linear = is_linear(interpolation)
        self._edges = speed_bin_edges(check_speeds(at_speeds))
        self.conditions = self._binned(check_directions(bins), at_speeds)
        self._whole_circle = abs(direction_bin_width(bins) * len(bins) - 360.0) < 1e-6

    def _weibull(self, direction: Array) -> tuple[Array, Array]:
        """Return scale and shape at these directions."""
        return by_sector(self._scale, direction, self._linear), by_sector(self._shape, direction, self._linear)

    def _binned(self, directions: Array, speeds: Array) -> Conditions:
        column = directions[:, None]
        width = direction_bin_width(directions) / (360.0 / len(self._frequency))
        by_direction = by_sector(self._frequency, column, self._linear) * width
        weight = by_direction * np.diff(cumulative(self._edges, *self._weibull(column)), axis=1)
        # turbulence is linear between sectors in either case, as in PyWake
        intensity = np.broadcast_to(by_sector(self._turbulence, column, True), weight.shape)
        return Conditions(directions, np.broadcast_to(speeds, weight.shape), weight, np.array(intensity))

    def settings(self) -> dict[str, Any]:
        return {
            "sector_frequency": self._frequency.tolist(),
            "weibull_a_m_s": self._scale.tolist(),
            "weibull_k": self._shape.tolist(),
            "turbulence_intensity": self._turbulence.tolist(),
            "wind_directions_deg": self.conditions.direction.tolist(),
            "wind_speeds_m_s": self.conditions.speed[0].tolist(),
            "interpolation": INTERPOLATIONS[int(self._linear)],
        }

    def describe(self) -> str:
        directions, speeds = self.conditions.speed.shape
        return f"Weibull distributions of {len(self._frequency)} sectors, on {directions} directions × {speeds} speeds"

    def coarser(self, directions: int, speeds: Array) -> Distribution:
        if not self._whole_circle:
            return self._table().coarser(directions, speeds)
        return WeibullWind(
            self._frequency,
            self._scale,
            self._shape,
            self._turbulence,
            np.asarray(np.arange(directions) * (360.0 / directions), dtype=np.float64),
            speeds,
            INTERPOLATIONS[int(self._linear)],
        )

    def draw(self, count: int, rng: np.random.Generator) -> Conditions:
        """Draw from the continuous distribution over the speeds that the bins cover.

        If the directions do not cover the full circle, draw from the bins.
        """
        if not self._whole_circle:
            return self._table().draw(count, rng)
        first, second = shifted_lattice(count, rng)
        direction = self._directions_at(first)
        scale, shape = self._weibull(direction)
        lowest, highest = cumulative(self._edges[0], scale, shape), cumulative(self._edges[-1], scale, shape)
        quantile = lowest + (highest - lowest) * second
        speed = scale * (-np.log1p(-quantile)) ** (1.0 / shape)
        weight = self._frequency.sum() / count * (highest - lowest)
        intensity = by_sector(self._turbulence, direction, True)
        return Conditions(direction, speed[:, None], weight[:, None], intensity[:, None])

    def _table(self) -> TableWind:
        """Return the bins as exact conditions."""
        conditions = self.conditions
        return TableWind(
            conditions.direction, conditions.speed[0], conditions.weight, conditions.turbulence_intensity, checked=False
        )

    def _directions_at(self, share: Array) -> Array:
        """Return the directions at these shares of the cumulated frequency, from the start of the first sector on."""
        sectors = len(self._frequency)
        at_start = self._frequency
        at_end = np.roll(at_start, -1) if self._linear else at_start
        sector, uniform = place_in(0.5 * (at_start + at_end), share)
        start, end = at_start[sector], at_end[sector]
        # the place in the sector where the cumulated density, linear from start to end, is `uniform`
        place = uniform * (start + end) / (start + np.sqrt(start**2 + uniform * (end**2 - start**2)))
        offset = 0.0 if self._linear else -0.5
        return np.asarray(((sector + offset + place) * (360.0 / sectors)) % 360.0)


def cumulative(speed: npt.ArrayLike, scale: Array, shape: Array) -> Array:
    """Return the probability of a wind slower than `speed`; shapes are broadcast."""
    return np.asarray(1.0 - np.exp(-((np.asarray(speed) / scale) ** shape)))


def is_linear(interpolation: str) -> bool:
    """Return whether to interpolate between sectors."""
    return checks.one_of(interpolation, INTERPOLATIONS, "interpolation") == "linear"


def by_sector(values: Array, direction: Array, linear: bool) -> Array:
    """Return `values` at these directions: of the nearest sector (half-way, the next) or linear between the centres.

    values: shape (sectors, ...); result: the shape of `direction`, then the remaining dimensions of `values`.
    """
    sectors = len(values)
    position = np.asarray(direction, dtype=np.float64) / (360.0 / sectors)
    if not linear:
        return np.asarray(values[np.floor(position + 0.5).astype(np.int64) % sectors])
    below = np.floor(position).astype(np.int64)
    share = (position - below).reshape(position.shape + (1,) * (values.ndim - 1))
    lower, upper = values[below % sectors], values[(below + 1) % sectors]
    return np.asarray(lower * (1.0 - share) + upper * share)


def direction_bin_width(directions: Array) -> float:
    """Return the width of the bins around these directions; if unequally spaced, an equal share of the circle."""
    steps = np.diff(directions)
    if len(steps) and np.allclose(steps, steps[0], rtol=1e-9, atol=0):
        return float(steps[0])
    return 360.0 / len(directions)


def check_directions(directions: Array) -> Array:
    checks.check_increasing(directions, "directions", "increasing degrees")
    if len(directions) > 1 and directions[-1] - directions[0] >= 360:
        raise InputError(
            f"directions go from {directions[0]:g} to {directions[-1]:g}, so one direction would "
            "count twice; expected less than a full circle"
        )
    return checks.angles(directions)


def check_speeds(speeds: Array) -> Array:
    checks.reject(speeds, speeds <= 0, "speeds", "a number above 0 m/s")
    checks.check_increasing(speeds, "speeds", "increasing speeds")
    return speeds
