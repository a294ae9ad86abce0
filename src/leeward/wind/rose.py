"""Wind roses: frequencies by direction and speed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leeward.errors import InputError
from leeward.wind.conditions import Array, Conditions
from leeward.wind.site import Site
from leeward.wind.table_wind import BinnedWind

SECTORS = 12
MOST_SECTORS = 36
SPEED_CLASSES = (0.0, 5.0, 10.0, 15.0, 20.0, 25.0)  # m/s: start of each class; the last one has no end


@dataclass(frozen=True)
class WindRose:
    """Shares of time by sector and speed class.

    frequency: shape (sectors, classes); the first sector is centred on north. The shares add up to at most 1: wind that
    the site does not cover (calms, storms) is missing. speed_classes: the start of each class, m/s.
    """

    frequency: Array
    speed_classes: tuple[float, ...]

    @property
    def directions(self) -> Array:
        """Return the centres of the sectors, degrees clockwise from north."""
        return np.arange(len(self.frequency)) * 360.0 / len(self.frequency)


def wind_rose(site: Site, sectors: int | None = None, speed_classes: Sequence[float] = SPEED_CLASSES) -> WindRose:
    """Return the wind of a site by sector and speed class.

    sectors: by default those of the Weibull distributions. Other sites have one for each direction if these are evenly
    spaced and at most 36, otherwise 12. speed_classes: the start of each class, m/s; the last one is open.
    Weibull distributions in their own sectors are used directly, low wind speeds included. Otherwise the conditions of
    the site are counted. Evenly spaced directions and speeds are centres of bins, and the share of a bin that overlaps
    two classes is split between them.
    """
    begins = np.asarray(speed_classes, dtype=np.float64)
    if begins.ndim != 1 or len(begins) < 1 or (np.diff(begins) <= 0).any():
        raise InputError(f"speed_classes are {list(speed_classes)!r:.80}; expected increasing speeds in m/s")
    if sectors is not None and not (isinstance(sectors, int) and sectors >= 1):
        raise InputError(f"sectors is {sectors!r}; expected a whole number, 1 or more")
    settings = site.settings() if site.field is None else {}  # those of a field hold all values of its grid
    site_sectors = len(settings.get("sector_frequency", ()))
    if site_sectors and settings["interpolation"] == "nearest" and sectors in (None, site_sectors):
        return WindRose(_from_weibull(settings, begins), tuple(begins.tolist()))
    conditions = site.conditions
    wind = site.distribution
    if isinstance(wind, BinnedWind) and _even_circle(wind.bins.direction):
        conditions = wind.bins
    shares = _from_conditions(conditions, sectors or site_sectors or _sectors(conditions), begins)
    return WindRose(shares, tuple(begins.tolist()))


def _from_weibull(settings: Mapping[str, Any], begins: Array) -> Array:
    scale, shape = (np.array(settings[name])[:, None] for name in ("weibull_a_m_s", "weibull_k"))
    above = np.exp(-((np.maximum(begins, 0.0) / scale) ** shape))
    frequency = np.array(settings["sector_frequency"])[:, None]
    return np.asarray(frequency * (above - np.column_stack([above[:, 1:], np.zeros(len(above))])))


def _from_conditions(conditions: Conditions, sectors: int, begins: Array) -> Array:
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
    """Return whether the directions cover the circle in equal steps."""
    steps = np.diff(np.r_[directions, directions[0] + 360.0])
    return bool(len(directions) > 1 and np.allclose(steps, 360.0 / len(directions)))


def _by_direction(conditions: Conditions, sectors: int) -> Array:
    """Return the share of each direction that falls into each sector; shape (directions, sectors)."""
    directions, width = conditions.direction, 360.0 / sectors
    half = 180.0 / len(directions) if _even_circle(directions) else 0.0
    centres = np.arange(sectors) * width
    away = (directions[:, None] - centres + 180.0) % 360.0 - 180.0
    if half == 0.0:  # exact directions: each belongs to one sector
        return np.asarray((away >= -0.5 * width) & (away < 0.5 * width), dtype=np.float64)
    overlap = np.zeros((len(directions), sectors))
    for turn in (-360.0, 0.0, 360.0):  # a wide bin may reach a sector from either side
        low = np.maximum(away + turn - half, -0.5 * width)
        high = np.minimum(away + turn + half, 0.5 * width)
        overlap += np.maximum(high - low, 0.0)
    return np.asarray(overlap / (2.0 * half))


def _by_speed(speeds: Array, begins: Array) -> Array:
    """Return the share of each speed that falls into each class; shape (speeds, classes)."""
    ends = np.r_[begins[1:], np.inf]
    steps = np.diff(speeds)
    half = 0.5 * float(steps[0]) if len(steps) and np.allclose(steps, steps[0]) and steps[0] > 0 else 0.0
    column = speeds[:, None]
    if half == 0.0:
        return np.asarray((column >= begins) & (column < ends), dtype=np.float64)
    low, high = np.maximum(column - half, begins), np.minimum(column + half, ends)
    return np.asarray(np.maximum(high - low, 0.0) / (2.0 * half))
