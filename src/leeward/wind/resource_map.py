"""The wind resource at points of a site: mean wind speed, Weibull distributions, gross yield and others, for maps.

x, y of every function: points, in metres, of any shape; the result has the same shape. It is NaN where the wind is not
known: outside the grid of the site, and in cells with missing values. height_m: above the ground.
sector: number of a sector, from 0, which is centred on north; None for all sectors together.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import Array, coordinates, positive
from leeward.wind.conditions import Conditions
from leeward.wind.engine import local_of, wind_of
from leeward.wind.farm import WindFarm
from leeward.wind.local_wind import sectors_at, values_at
from leeward.wind.rose import SECTORS
from leeward.wind.site import Site
from leeward.wind.turbine import Turbine

Bounds = tuple[float, float, float, float]

AROUND = 0.15  # margin of a map, as a fraction of the longer side of the areas
MOST_VALUES = 1 << 20  # points x conditions in one part: bounds the memory
SETTINGS = {"frequency": "sector_frequency", "weibull_a": "weibull_a_m_s", "weibull_k": "weibull_k"}
NO_HEIGHT = 0.0  # of quantities that do not depend on the height


def varies_over_site(site: Site) -> bool:
    """Return whether the wind varies from place to place, so that a map of it shows something."""
    return site.field is not None and max(len(site.field.data.x), len(site.field.data.y)) > 1


def map_bounds(site: Site, bounds: Bounds, around: float = AROUND) -> Bounds:
    """Return the bounds (lowest x and y, highest x and y, m) of a map of some area, with a margin.

    The margin ends where the grid of the wind ends, unless the area reaches farther. around: the width of the margin,
    as a fraction of the longer side.
    """
    left, low, right, high = bounds
    margin = around * max(right - left, high - low)
    wide = (left - margin, low - margin, right + margin, high + margin)
    if site.field is None or site.field.data.extrapolate:
        return wide
    known = site.field.bounds
    left, low = (max(wide[i], known[i]) if bounds[i] >= known[i] else wide[i] for i in (0, 1))
    right, high = (min(wide[i], known[i]) if bounds[i] <= known[i] else wide[i] for i in (2, 3))
    return left, low, right, high


def sector_count(site: Site) -> int:
    """Return the number of sectors of the wind data; 12 if they have none."""
    if site.field is None:
        return len(site.settings().get(SETTINGS["frequency"], ())) or SECTORS
    data = site.field.data
    return SECTORS if not data.has_bins and data.sectors == 1 else data.sectors


def mean_speed_m_s(
    site: Site, x: npt.ArrayLike, y: npt.ArrayLike, height_m: float, sector: int | None = None, *, threads: int = 1
) -> Array:
    """Return the mean free wind speed (m/s) over the conditions of the site, weighted by their local probabilities.

    As in `Site.mean_speed_m_s`, wind that the conditions do not cover, by default below 2.5 m/s, does not count.
    """
    return _mean(site, "speed", x, y, height_m, sector, threads)


def turbulence_intensity(
    site: Site, x: npt.ArrayLike, y: npt.ArrayLike, height_m: float, sector: int | None = None, *, threads: int = 1
) -> Array:
    """Return the mean turbulence intensity (fraction) over the conditions, weighted by their local probabilities."""
    return _mean(site, "turbulence_intensity", x, y, height_m, sector, threads)


def gross_aep_gwh(
    site: Site, turbine: Turbine, x: npt.ArrayLike, y: npt.ArrayLike, sector: int | None = None, *, threads: int = 1
) -> Array:
    """Return the gross yield (GWh a year) of one turbine at each point; with a sector, the part that comes from it."""
    farm = WindFarm(site, turbine, "no_wake", threads=threads)
    conditions = _conditions(site, sector)

    def at(east: Array, north: Array) -> Array:
        parts = _parts(len(east), conditions.speed.size)
        return np.concatenate(
            [farm.gross_aep_gradient(east[i], north[i], conditions, turbine=turbine)[0] for i in parts]
        )

    return _mapped(site, x, y, at)


def weibull_a_m_s(site: Site, x: npt.ArrayLike, y: npt.ArrayLike, height_m: float, sector: int | None = None) -> Array:
    """Return the scale (m/s) of the Weibull distribution of a sector, of the wind speed at the points themselves.

    That includes speed-up and shear. For all sectors, it is the mean of their scales, weighted by frequency.
    """
    height = _height(site, height_m)
    scales = _weibull_values(site, "weibull_a")

    def at(east: Array, north: Array) -> Array:
        scale = _interpolated(site, scales, east, north, height)
        if site.field is not None and not site.field.data.local_bins:
            # bins of speed are those at the reference, and so are the distributions
            scale = scale * _speed_factors(site, east, north, height)
        return _of_sectors(site, scale, east, north, height, sector)

    return _mapped(site, x, y, at)


def weibull_k(site: Site, x: npt.ArrayLike, y: npt.ArrayLike, height_m: float, sector: int | None = None) -> Array:
    """Return the shape of the Weibull distribution of a sector; for all, the mean weighted by frequency."""
    height = _height(site, height_m)
    shapes = _weibull_values(site, "weibull_k")

    def at(east: Array, north: Array) -> Array:
        shape = _interpolated(site, shapes, east, north, height)
        return _of_sectors(site, shape, east, north, height, sector)

    return _mapped(site, x, y, at)


def sector_frequency(site: Site, x: npt.ArrayLike, y: npt.ArrayLike, height_m: float, sector: int) -> Array:
    """Return the share of time that the wind comes from a sector."""
    height, number = _height(site, height_m), _checked_sector(site, sector)
    return _mapped(site, x, y, lambda east, north: _frequencies(site, east, north, height)[:, number])


def speed_up(site: Site, x: npt.ArrayLike, y: npt.ArrayLike, height_m: float, sector: int | None = None) -> Array:
    """Return the wind speed relative to that at the reference, without shear; for all, the mean weighted by frequency.

    Raise InputError if the site has no speed-up.
    """
    height = _height(site, height_m)
    values = _given(site, "speed_up")
    if values is None:
        raise InputError(f"{_source(site)}: has no speed-up")

    def at(east: Array, north: Array) -> Array:
        return _of_sectors(site, _interpolated(site, values, east, north, height), east, north, height, sector)

    return _mapped(site, x, y, at)


def elevation_m(site: Site, x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """Return the elevation of the terrain, m. Raise InputError if the site has none."""
    values = _given(site, "elevation")
    if values is None:
        raise InputError(f"{_source(site)}: has no elevation of the terrain")
    return _mapped(site, x, y, lambda east, north: _interpolated(site, values, east, north, NO_HEIGHT)[:, 0])


# --- parts -----------------------------------------------------------------------------------------------------------


def _mapped(site: Site, x: npt.ArrayLike, y: npt.ArrayLike, values: Callable[[Array, Array], Array]) -> Array:
    """Return the values at points; NaN where the wind is not known. values: a function of known x and y, shape (n,)."""
    shape = np.shape(x)
    if shape != np.shape(y):
        raise InputError(f"x has the shape {shape} and y has {np.shape(y)}; expected the same")
    east, north = coordinates(np.ravel(x), np.ravel(y))
    known = np.ones(len(east), dtype=bool) if site.field is None else site.field.has_wind(east, north)
    found = np.full(len(east), np.nan)
    if known.any():
        found[known] = values(east[known], north[known])
    return found.reshape(shape)


def _mean(
    site: Site,
    quantity: Literal["speed", "turbulence_intensity"],
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    height_m: float,
    sector: int | None,
    threads: int,
) -> Array:
    """Return the mean of a quantity over conditions, weighted by their local probabilities."""
    height, conditions = _height(site, height_m), _conditions(site, sector)
    wind, local = wind_of(conditions), local_of(conditions)

    def at(east: Array, north: Array) -> Array:
        def mean(part: slice) -> Array:
            here, count = wind, len(east[part])
            if local is not None:
                here = local.at(wind, 0, len(wind.cosine), east[part], north[part], np.full(count, height), 0)
            values = getattr(here, quantity)
            with np.errstate(invalid="ignore"):  # no wind from this sector
                means = (values * here.weight).sum(axis=(1, 2)) / here.weight.sum(axis=(1, 2))
            return np.asarray(np.broadcast_to(means, count))

        with ThreadPoolExecutor(threads) as pool:
            return np.concatenate(list(pool.map(mean, _parts(len(east), wind.weight.size))))

    return _mapped(site, x, y, at)


def _parts(count: int, conditions: int) -> Iterator[slice]:
    """Yield parts of so many points, small enough that their conditions fit into memory."""
    size = max(MOST_VALUES // conditions, 1)
    return (slice(begin, begin + size) for begin in range(0, count, size))


def _height(site: Site, height_m: float) -> float:
    """Return the height, or raise InputError if the wind is not known there."""
    height = positive(height_m, "height_m")
    if site.field is None:
        return height
    site.field.check_height(height, f"height_m is {height:g}")
    return height


def _source(site: Site) -> str:
    return "site" if site.field is None else site.field.data.source


def _checked_sector(site: Site, sector: int) -> int:
    count = sector_count(site)
    if not (isinstance(sector, int | np.integer) and 0 <= sector < count):
        raise InputError(f"sector is {sector!r}; expected a whole number from 0 to {count - 1}")
    return int(sector)


def _conditions(site: Site, sector: int | None) -> Conditions:
    """Return the conditions of the site, or those whose direction is in a sector."""
    every = site.conditions
    if sector is None:
        return every
    number = _checked_sector(site, sector)
    rows = sectors_at(every.direction, sector_count(site), False)[0] == number
    if not rows.any():
        raise InputError(f"the site has no wind condition in sector {number}; choose another sector")
    local = None if every.local is None else every.local.in_order(np.flatnonzero(rows))
    return Conditions(
        every.direction[rows], every.speed[rows], every.weight[rows], every.turbulence_intensity[rows], local
    )


def _given(site: Site, name: str) -> Array | None:
    """Return a quantity of the wind data, shape (y, x, heights, n); None if they do not have it."""
    if site.field is not None:
        return site.field.data.values.get(name)
    values = site.settings().get(SETTINGS.get(name, ""))
    return None if values is None else np.array(values)[None, None, None]


def _weibull_values(site: Site, name: str) -> Array:
    values = _given(site, name)
    if values is None:
        raise InputError(f"{_source(site)}: has no Weibull distributions; it has {site.describe()}")
    return values


def _of_sectors(site: Site, values: Array, east: Array, north: Array, height: float, sector: int | None) -> Array:
    """Return the value of a sector at each point, or the mean over all. values: shape (points, sectors or 1)."""
    if sector is not None:
        return np.asarray(values[:, min(_checked_sector(site, sector), values.shape[1] - 1)])
    frequency = _frequencies(site, east, north, height)
    return np.asarray((values * frequency).sum(axis=1) / frequency.sum(axis=1))


def _frequencies(site: Site, east: Array, north: Array, height: float) -> Array:
    """Return the share of time that the wind comes from each sector; shape (points, sectors)."""
    frequency, count = _given(site, "frequency"), sector_count(site)
    if (probability := _given(site, "probability")) is not None:
        frequency = probability.reshape(*probability.shape[:3], count, -1).sum(axis=4)
    if frequency is not None:
        return _interpolated(site, frequency, east, north, height)
    conditions = site.conditions
    sector, _, _ = sectors_at(conditions.direction, count, False)
    share = np.bincount(sector, conditions.weight.sum(axis=1), count)
    return np.asarray(np.broadcast_to(share, (len(east), count)))


def _speed_factors(site: Site, east: Array, north: Array, height: float) -> Array:
    """Return the wind speed at points relative to that at the reference; shape (points or 1, sectors)."""
    count, local = sector_count(site), site.conditions.local
    if local is None:
        raise TypeError("the wind does not vary")
    ones = np.ones((count, 1))
    centres = np.asarray(np.arange(count) * (360.0 / count), dtype=np.float64)
    conditions = Conditions(centres, ones, ones, ones, local.unweighted(ones, False))
    wind, varied = wind_of(conditions), local_of(conditions)
    if varied is None:
        raise TypeError("the wind does not vary")
    return varied.at(wind, 0, count, east, north, np.full(len(east), height), 0).speed[:, :, 0]


def _interpolated(site: Site, values: Array, east: Array, north: Array, height: float) -> Array:
    """Return values of shape (y, x, heights, n) between the points of the grid; shape (points, n)."""
    if site.field is None:
        return np.broadcast_to(values[0, 0, 0], (len(east), values.shape[3]))
    return values_at(site.field, values, east, north, np.full(len(east), height))
