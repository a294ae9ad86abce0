"""Wind roses: how often the wind blows from where, and how fast."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.conditions import Conditions
from leeward.wind.site import Site
from leeward.wind.table_wind import BinnedWind

Array = npt.NDArray[np.float64]

SECTORS = 12
MOST_SECTORS = 36
SPEED_CLASSES = (0.0, 5.0, 10.0, 15.0, 20.0, 25.0)  # m/s: where each class begins; the last one has no end


@dataclass(frozen=True)
class WindRose:
    """Shares of all time. frequency: shape (sectors, classes); the first sector is centred on north.

    speed_classes: where each class begins, m/s. What a site does not tell of (calms, storms) is not in it: the shares
    add up to at most 1.
    """

    frequency: Array
    speed_classes: tuple[float, ...]

    @property
    def directions(self) -> Array:
        """Centres of the sectors, degrees clockwise from north."""
        return np.arange(len(self.frequency)) * 360.0 / len(self.frequency)


def wind_rose(site: Site, sectors: int | None = None, speed_classes: Sequence[float] = SPEED_CLASSES) -> WindRose:
    """The wind of a site of any kind, by sector and class of speed.

    sectors: by default those of Weibull distributions, or one for each direction of the site, where these are evenly
    spaced and at most 36, else 12. speed_classes: where each begins, m/s; the last one is open.
    Weibull distributions in their own sectors are taken as they are, light winds included. Else the site's conditions
    are counted: directions and speeds that are evenly spaced are the middles of bins, whose share is spread evenly over
    them, so that of a bin that lies across two classes each has its part.
    """
    begins = np.asarray(speed_classes, dtype=np.float64)
    if begins.ndim != 1 or len(begins) < 1 or (np.diff(begins) <= 0).any():
        raise InputError(f"speed_classes are {list(speed_classes)!r:.80}; expected rising speeds in m/s")
    if sectors is not None and not (isinstance(sectors, int) and sectors >= 1):
        raise InputError(f"sectors is {sectors!r}; expected a whole number, 1 or more")
    known = site.settings()
    own = len(known.get("sector_frequency", ()))
    if own and known["interpolation"] == "nearest" and sectors in (None, own):
        return WindRose(_of_weibull(known, begins), tuple(begins.tolist()))
    conditions = site.conditions
    wind = site.distribution
    if isinstance(wind, BinnedWind) and _even_circle(wind.bins.direction):
        conditions = wind.bins
    shares = _counted(conditions, sectors or own or _sectors(conditions), begins)
    return WindRose(shares, tuple(begins.tolist()))


def _of_weibull(known: Mapping[str, Any], begins: Array) -> Array:
    """From the distributions of the sectors."""
    scale, shape = (np.array(known[name])[:, None] for name in ("weibull_a_m_s", "weibull_k"))
    above = np.exp(-((np.maximum(begins, 0.0) / scale) ** shape))
    frequency = np.array(known["sector_frequency"])[:, None]
    return np.asarray(frequency * (above - np.column_stack([above[:, 1:], np.zeros(len(above))])))


def _counted(conditions: Conditions, sectors: int, begins: Array) -> Array:
    """From the conditions, whatever they are of."""
    by_direction = _by_direction(conditions, sectors)
    if (conditions.speed == conditions.speed[0]).all():  # one set of speeds for all directions
        return np.asarray(by_direction.T @ (conditions.weight @ _by_speed(conditions.speed[0], begins)))
    rose = np.zeros((sectors, len(begins)))
    for i in range(len(conditions.direction)):
        rose += np.outer(by_direction[i], conditions.weight[i] @ _by_speed(conditions.speed[i], begins))
    return rose


def _sectors(conditions: Conditions) -> int:
    directions = conditions.direction
    return len(directions) if len(directions) <= MOST_SECTORS and _even_circle(directions) else SECTORS


def _even_circle(directions: Array) -> bool:
    """Whether the directions go round the circle in equal steps."""
    steps = np.diff(np.r_[directions, directions[0] + 360.0])
    return bool(len(directions) > 1 and np.allclose(steps, 360.0 / len(directions)))


def _by_direction(conditions: Conditions, sectors: int) -> Array:
    """Which share of each direction falls into each sector; shape (directions, sectors)."""
    directions, width = conditions.direction, 360.0 / sectors
    half = 180.0 / len(directions) if _even_circle(directions) else 0.0
    centres = np.arange(sectors) * width
    away = (directions[:, None] - centres + 180.0) % 360.0 - 180.0
    if half == 0.0:  # points: one sector each, that which begins at or before them
        return np.asarray((away >= -0.5 * width) & (away < 0.5 * width), dtype=np.float64)
    overlap = np.zeros((len(directions), sectors))
    for turn in (-360.0, 0.0, 360.0):  # a wide bin may reach a sector from either side
        low = np.maximum(away + turn - half, -0.5 * width)
        high = np.minimum(away + turn + half, 0.5 * width)
        overlap += np.maximum(high - low, 0.0)
    return np.asarray(overlap / (2.0 * half))


def _by_speed(speeds: Array, begins: Array) -> Array:
    """Which share of each speed falls into each class; shape (speeds, classes)."""
    ends = np.r_[begins[1:], np.inf]
    steps = np.diff(speeds)
    half = 0.5 * float(steps[0]) if len(steps) and np.allclose(steps, steps[0]) and steps[0] > 0 else 0.0
    column = speeds[:, None]
    if half == 0.0:
        return np.asarray((column >= begins) & (column < ends), dtype=np.float64)
    low, high = np.maximum(column - half, begins), np.minimum(column + half, ends)
    return np.asarray(np.maximum(high - low, 0.0) / (2.0 * half))
