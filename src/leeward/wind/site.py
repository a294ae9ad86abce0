"""Sites: how often the wind blows from where, how fast, and how turbulent it is.

The wind is the same at every point of a site. Three kinds: Weibull distributions by sector, a table, a time series.
"""

import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.capacity import HOURS_PER_YEAR
from leeward.errors import InputError
from leeward.wind.checks import finite_array, probabilities, turbulence
from leeward.wind.conditions import Conditions

Array = npt.NDArray[np.float64]

DEFAULT_DIRECTIONS = np.arange(360.0)
DEFAULT_SPEEDS = np.arange(3.0, 26.0)
INTERPOLATIONS = ("nearest", "linear")
GOLDEN_RATIO = (np.sqrt(5.0) - 1.0) / 2.0


class Site(ABC):
    """The wind of a place. Make one with `from_netcdf`, `from_weibull`, `from_table` or `from_time_series`."""

    conditions: Conditions

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Conditions:
        """`count` conditions drawn at random, one speed each, in order of direction; their weights make a weighted sum
        over them an unbiased estimate of the integral over the wind distribution.

        They are spread evenly, as a lattice that is shifted at random, which makes the estimates much better than those
        from as many conditions drawn one by one.
        """

    @abstractmethod
    def coarser(self, directions: int, speeds: npt.ArrayLike) -> "Site":
        """The same wind in fewer conditions: cheaper, and good enough to compare layouts by.

        Weibull distributions are binned anew, in so many equal directions and round these speeds (m/s). Of a table or a
        time series twice as many conditions as directions are drawn, evenly, if it has more.
        """

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """What defines the site, as numbers and lists of them: the same for sites with the same wind, however made.

        The keys are those of a campaign file's `weibull` or `table`: `from_weibull` or `from_table` makes it again.
        """

    @abstractmethod
    def describe(self) -> str:
        """Say what kind of wind this is, in a few words."""

    @property
    def covered_hours(self) -> float:
        """The hours a year that the conditions of the site stand for: 8760 if their probabilities add up to 1."""
        return float(self.conditions.weight.sum()) * HOURS_PER_YEAR

    @property
    def mean_speed_m_s(self) -> float:
        """The mean wind speed of the conditions."""
        return float((self.conditions.weight * self.conditions.speed).sum() / self.conditions.weight.sum())

    @staticmethod
    def from_weibull(
        sector_frequency: npt.ArrayLike,
        weibull_a_m_s: npt.ArrayLike,
        weibull_k: npt.ArrayLike,
        turbulence_intensity: npt.ArrayLike,
        *,
        directions: npt.ArrayLike | None = None,
        speeds: npt.ArrayLike | None = None,
        interpolation: str = "nearest",
    ) -> "Site":
        """Weibull distributions of equal sectors, the first one centred on north.

        sector_frequency: share of the time the wind blows from each sector; weibull_a_m_s, weibull_k: scale and shape;
        turbulence_intensity: one number, or one for each sector.
        directions, speeds: centres of the bins; by default 0 .. 359 degrees and 3 .. 25 m/s, in steps of 1.
        interpolation: the values of the "nearest" sector, or "linear" between the centres of sectors.
        """
        return WeibullSite(
            finite_array(sector_frequency, "sector_frequency"),
            finite_array(weibull_a_m_s, "weibull_a_m_s"),
            finite_array(weibull_k, "weibull_k"),
            turbulence(turbulence_intensity, "turbulence_intensity"),
            DEFAULT_DIRECTIONS if directions is None else _one_or_more(directions, "directions"),
            DEFAULT_SPEEDS if speeds is None else _one_or_more(speeds, "speeds"),
            interpolation,
        )

    @staticmethod
    def from_table(
        directions: npt.ArrayLike,
        speeds: npt.ArrayLike,
        probability: npt.ArrayLike,
        turbulence_intensity: npt.ArrayLike = 0.1,
        *,
        kind: str | None = None,
        speed_bins: str = "centres",
    ) -> "Site":
        """Return the site of a tabulated wind rose.

        probability: shape (directions, speeds); or shape (directions,), with one speed for all directions or one for
        each. turbulence_intensity: one number, or of the shape of `probability`.
        kind: "bins" spreads each probability evenly over the bin round its direction, and the site has a condition
        every degree; "exact" takes each condition as it stands. By default a table of several speeds whose directions
        are evenly spaced over the full circle and more than 5 degrees apart is bins, other evenly spaced ones are
        exact, and the rest must say.
        speed_bins: the speeds are the "centres" of bins, or their "edges" (then one more than probabilities of a
        direction). A bin is evaluated at its centre.
        """
        from leeward.wind.table_site import table_site

        return table_site(
            _angles(_one_or_more(directions, "directions")),
            _one_or_more(speeds, "speeds"),
            finite_array(probability, "probability", (1, 2)),
            turbulence(turbulence_intensity, "turbulence_intensity"),
            kind,
            speed_bins,
        )

    @staticmethod
    def from_time_series(
        direction: npt.ArrayLike,
        speed: npt.ArrayLike,
        turbulence_intensity: npt.ArrayLike = 0.1,
        weight: npt.ArrayLike | None = None,
    ) -> "Site":
        """Measured or modelled conditions, one after the other.

        turbulence_intensity: one number or a series; weight: a series of shares of time that add up to at most 1
        (by default every condition counts the same).
        """
        from leeward.wind.table_site import TableSite

        degrees = _angles(finite_array(direction, "direction"))
        metres = finite_array(speed, "speed")
        if len(degrees) == 0:
            raise InputError("the time series is empty; expected at least one condition")
        if len(degrees) != len(metres):
            raise InputError(
                f"direction has {len(degrees)} values and speed has {len(metres)}; expected as many of each"
            )
        share = np.full(len(degrees), 1.0 / len(degrees)) if weight is None else finite_array(weight, "weight")
        return TableSite(
            degrees, metres, share, turbulence(turbulence_intensity, "turbulence_intensity"), what="time series"
        )

    @staticmethod
    def from_netcdf(
        path: str | os.PathLike[str],
        *,
        directions: npt.ArrayLike | None = None,
        speeds: npt.ArrayLike | None = None,
        interpolation: str = "nearest",
    ) -> "Site":
        """A site file as PyWake's `XRSite.save` writes it and `XRSite.load` reads it.

        directions, speeds, interpolation: as in `from_weibull`; the defaults are those of `XRSite.load`. A file with
        tabulated probabilities has its own speeds.
        """
        from leeward.wind.site_file import read_site_file

        return read_site_file(path, directions, speeds, interpolation)


class WeibullSite(Site):
    """See `Site.from_weibull`."""

    def __init__(
        self,
        frequency: Array,
        scale: Array,
        shape: Array,
        turbulence_intensity: Array,
        directions: Array,
        speeds: Array,
        interpolation: str,
    ) -> None:
        sectors = len(frequency)
        if not frequency.sum() > 0:
            raise InputError("sector_frequency is empty or adds up to 0; expected shares of time that add up to 1")
        for name, values in (("weibull_a_m_s", scale), ("weibull_k", shape)):
            if len(values) != sectors:
                raise InputError(f"{name} has {len(values)} sectors and sector_frequency has {sectors}")
            for i in np.flatnonzero(values <= 0)[:1]:
                raise InputError(f"{name}[{i}] is {values[i]:g}; expected a number above 0")
        if turbulence_intensity.ndim > 1 or turbulence_intensity.size not in (1, sectors):
            raise InputError(
                f"turbulence_intensity has the shape {turbulence_intensity.shape}; expected one number, or one for "
                f"each of the {sectors} sectors"
            )
        self._frequency = probabilities(frequency, "sector_frequency")
        self._scale = scale
        self._shape = shape
        self._turbulence = np.broadcast_to(turbulence_intensity.ravel(), (sectors,))
        self._linear = is_linear(interpolation)
        self._edges = speed_bin_edges(_check_speeds(speeds))
        self.conditions = self._binned(check_directions(directions), speeds)
        self._whole_circle = abs(direction_bin_width(directions) * len(directions) - 360.0) < 1e-6

    def _weibull(self, direction: Array) -> tuple[Array, Array]:
        """Scale and shape at these directions."""
        return by_sector(self._scale, direction, self._linear), by_sector(self._shape, direction, self._linear)

    def _binned(self, directions: Array, speeds: Array) -> Conditions:
        column = directions[:, None]
        width = direction_bin_width(directions) / (360.0 / len(self._frequency))
        by_direction = by_sector(self._frequency, column, self._linear) * width
        weight = by_direction * np.diff(_below(self._edges, *self._weibull(column)), axis=1)
        # turbulence is linear between sectors in either case, as in PyWake
        intensity = np.broadcast_to(by_sector(self._turbulence, column, True), weight.shape)
        return Conditions(directions, np.broadcast_to(speeds, weight.shape), weight, np.array(intensity))

    def figures(self) -> dict[str, Any]:
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

    def coarser(self, directions: int, speeds: npt.ArrayLike) -> Site:
        if not self._whole_circle:
            return self._table().coarser(directions, speeds)
        return WeibullSite(
            self._frequency,
            self._scale,
            self._shape,
            self._turbulence,
            np.asarray(np.arange(directions) * (360.0 / directions), dtype=np.float64),
            _one_or_more(speeds, "speeds"),
            INTERPOLATIONS[int(self._linear)],
        )

    def draw(self, count: int, rng: np.random.Generator) -> Conditions:
        """From the continuous distribution over the whole circle and over the speeds that the bins cover.

        Where the directions do not go all the way round: from the bins.
        """
        if not self._whole_circle:
            return self._table().draw(count, rng)
        first, second = shifted_lattice(count, rng)
        direction = self._directions_at(first)
        scale, shape = self._weibull(direction)
        lowest, highest = _below(self._edges[0], scale, shape), _below(self._edges[-1], scale, shape)
        quantile = lowest + (highest - lowest) * second
        speed = scale * (-np.log1p(-quantile)) ** (1.0 / shape)
        weight = self._frequency.sum() / count * (highest - lowest)
        intensity = by_sector(self._turbulence, direction, True)
        return Conditions(direction, speed[:, None], weight[:, None], intensity[:, None])

    def _table(self) -> Site:
        """The bins as they are."""
        from leeward.wind.table_site import TableSite

        conditions = self.conditions
        return TableSite(
            conditions.direction, conditions.speed[0], conditions.weight, conditions.turbulence_intensity, checked=False
        )

    def _directions_at(self, share: Array) -> Array:
        """Directions below which the wind blows these shares of the time, from the start of the first sector on."""
        sectors = len(self._frequency)
        at_start = self._frequency
        at_end = np.roll(at_start, -1) if self._linear else at_start
        sector, uniform = place_in(0.5 * (at_start + at_end), share)
        start, end = at_start[sector], at_end[sector]
        # place in the sector whose cumulated density, linear from start to end, is `uniform`
        place = uniform * (start + end) / (start + np.sqrt(start**2 + uniform * (end**2 - start**2)))
        offset = 0.0 if self._linear else -0.5
        return np.asarray(((sector + offset + place) * (360.0 / sectors)) % 360.0)


def _below(speed: npt.ArrayLike, scale: Array, shape: Array) -> Array:
    """Probability of a wind slower than `speed`; shapes are broadcast."""
    return np.asarray(1.0 - np.exp(-((np.asarray(speed) / scale) ** shape)))


def shifted_lattice(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """`count` points spread evenly over the unit square, shifted together at random: each is uniformly distributed."""
    shift = rng.random(2)
    steps = np.arange(count)
    return (steps + shift[0]) / count, (steps * GOLDEN_RATIO + shift[1]) % 1.0


def place_in(weights: Array, share: Array) -> tuple[npt.NDArray[np.int64], Array]:
    """In which of the weighted cells a share (from 0 to 1) of the whole lies, and how far into it (from 0 to 1)."""
    ends = np.cumsum(weights)
    reached = share * ends[-1]
    cell = np.searchsorted(ends, reached, side="right")
    cell = np.minimum(cell, np.flatnonzero(weights)[-1])  # rounding may take the last one past the end
    return cell, np.clip(1.0 - (ends[cell] - reached) / weights[cell], 0.0, 1.0)


def is_linear(interpolation: str) -> bool:
    """Whether to interpolate between sectors."""
    if interpolation not in INTERPOLATIONS:
        raise InputError(f"interpolation is {interpolation!r}; expected one of {INTERPOLATIONS}")
    return interpolation == "linear"


def _one_or_more(values: npt.ArrayLike, what: str) -> Array:
    """A number, or several."""
    return finite_array(np.atleast_1d(np.asarray(values)), what)


def by_sector(values: Array, direction: Array, linear: bool) -> Array:
    """Values by sector, at directions: of the nearest sector (half-way, the next) or linear between the centres.

    values: shape (sectors, ...); direction: of the shape of what is wanted, less the rest of the values' shape.
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
    """Width of equal bins round these directions; where they are not equidistant, an equal share of the circle."""
    steps = np.diff(directions)
    if len(steps) and np.allclose(steps, steps[0], rtol=1e-9, atol=0):
        return float(steps[0])
    return 360.0 / len(directions)


def speed_bin_edges(speeds: Array) -> Array:
    """Edges half-way between the speeds, the outermost as far out as the next one in; 1 m/s wide round a single one."""
    if len(speeds) == 1:
        return np.array([max(speeds[0] - 0.5, 0.0), speeds[0] + 0.5])
    half = np.diff(speeds) / 2.0
    edges: Array = np.r_[speeds[0] - half[0], speeds[:-1] + half, speeds[-1] + half[-1]]
    return np.maximum(edges, 0.0)


def _angles(directions: Array) -> Array:
    for i in np.flatnonzero((directions < 0) | (directions > 360))[:1]:
        raise InputError(f"direction [{i}] is {directions[i]:g}; expected degrees from 0 to 360 (take them % 360)")
    return directions


def check_directions(directions: Array) -> Array:
    if len(directions) == 0:
        raise InputError("directions is empty; expected at least one")
    for i in np.flatnonzero(np.diff(directions) <= 0)[:1]:
        raise InputError(
            f"directions[{i + 1}] is {directions[i + 1]:g} after {directions[i]:g}; expected increasing degrees"
        )
    if len(directions) > 1 and directions[-1] - directions[0] >= 360:
        raise InputError(f"directions go from {directions[0]:g} to {directions[-1]:g}: one direction would count twice")
    return _angles(directions)


def _check_speeds(speeds: Array) -> Array:
    if len(speeds) == 0:
        raise InputError("speeds is empty; expected at least one")
    for i in np.flatnonzero(speeds <= 0)[:1]:
        raise InputError(f"speeds[{i}] is {speeds[i]:g}; expected a number above 0 m/s")
    for i in np.flatnonzero(np.diff(speeds) <= 0)[:1]:
        raise InputError(f"speeds[{i + 1}] is {speeds[i + 1]:g} after {speeds[i]:g}; expected increasing speeds")
    return speeds
