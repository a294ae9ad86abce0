"""Wind that varies over a site: datasets in the names of PyWake's `XRSite`, and sites made of them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray

from leeward.wind import Site
from leeward.wind.field_data import Shear

EAST, NORTH = 700_000.0, 6_240_000.0
X = EAST + np.array([0.0, 1500.0, 3000.0, 4500.0, 6000.0])
Y = NORTH + np.array([0.0, 1600.0, 3200.0, 4800.0])
UNEVEN_X = EAST + np.array([0.0, 700.0, 900.0, 2500.0, 4900.0, 6000.0])
UNEVEN_Y = NORTH + np.array([0.0, 2100.0, 2400.0, 4800.0])
HEIGHTS = np.array([80.0, 160.0])  # bracket the hubs of `turbines` in conftest.py
SECTORS = 8
CENTRES = np.arange(SECTORS) * 360.0 / SECTORS
BINS = np.array([4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0])
STEPS = 150


@dataclass(frozen=True)
class Case:
    """A dataset, and the options with which leeward and PyWake read it.

    sector_shear: kind and values of the shear, by sector or one number, which applies at 100 m.
    """

    dataset: xarray.Dataset
    interpolation: str = "nearest"
    sector_shear: tuple[str, Any] | None = None
    distances: str = "straight"

    @property
    def is_series(self) -> bool:
        return "time" in self.dataset.dims

    @property
    def is_table(self) -> bool:
        return "P" in self.dataset

    def site(self, directions=None, speeds=None, **options) -> Site:
        """Return the site. Time series have their own directions and speeds, tables their own speeds."""
        if not self.is_series:
            options["directions"] = directions
        if not self.is_series and not self.is_table:
            options["speeds"] = speeds
        if self.sector_shear is not None:
            kind, values = self.sector_shear
            options["shear"] = getattr(Shear, kind)(values, 100.0)
        options = {"interpolation": self.interpolation, "distances": self.distances, **options}
        return Site.from_dataset(self.dataset, **options)

    def replaced(self, dataset) -> "Case":
        """Return the case with another dataset."""
        return replace(self, dataset=dataset)


def waves(low, high, seed, *axes):
    """Return smooth values from `low` to `high` over these axes; a number stands for so many independent sectors."""
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0.0, 2.0 * np.pi)
    for axis in axes:
        if np.ndim(axis):
            share = (axis - axis[0]) / max(axis[-1] - axis[0], 1.0)
            steps = rng.choice([-1.0, 1.0]) * rng.uniform(1.5, 3.0) * share
        else:
            steps = rng.uniform(0.0, 2.0 * np.pi, axis)
        phase = np.add.outer(phase, steps)
    return 0.5 * (low + high) + 0.5 * (high - low) * np.sin(phase)


def uniform_weibull(sectors=SECTORS, turbulence=0.08):
    """The same wind everywhere, by sector."""
    frequency = waves(0.5, 1.5, 11, sectors)
    return xarray.Dataset(
        {
            "Sector_frequency": ("wd", frequency / frequency.sum()),
            "Weibull_A": ("wd", waves(8.0, 11.0, 12, sectors)),
            "Weibull_k": ("wd", waves(1.8, 2.5, 13, sectors)),
            "TI": turbulence,
        },
        {"wd": np.arange(sectors) * 360.0 / sectors},
    )


def weibull_field(x=X, y=Y, heights=HEIGHTS, sectors=SECTORS):
    """Frequencies, scales, shapes and turbulence that vary with the place, the height and the sector."""
    axes, dims = (x, y, heights, sectors), ("x", "y", "h", "wd")
    frequency = waves(0.4, 1.6, 1, *axes)
    return xarray.Dataset(
        {
            "Sector_frequency": (dims, frequency / frequency.sum(axis=-1, keepdims=True)),
            "Weibull_A": (dims, waves(7.5, 11.5, 2, *axes)),
            "Weibull_k": (dims, waves(1.7, 2.6, 3, *axes)),
            "TI": (dims, waves(0.06, 0.12, 4, *axes)),
        },
        {"x": x, "y": y, "h": heights, "wd": np.arange(sectors) * 360.0 / sectors},
    )


def with_speed_up(dataset, x=X, y=Y, heights=None, low=0.85, high=1.15):
    """The same with a speed-up by sector."""
    dataset = dataset.assign_coords(x=x, y=y)
    axes, dims = [x, y], ["x", "y"]
    if heights is not None:
        dataset = dataset.assign_coords(h=heights)
        axes, dims = [*axes, heights], [*dims, "h"]
    if "wd" not in dataset.coords:
        dataset = dataset.assign_coords(wd=CENTRES)
    sectors = dataset.sizes["wd"]
    return dataset.assign(Speedup=((*dims, "wd"), waves(low, high, 21, *axes, sectors)))


def with_turbulence(dataset, x=X, y=Y):
    """The same with a turbulence intensity by place and sector."""
    values = waves(0.05, 0.14, 22, x, y, dataset.sizes["wd"])
    return dataset.assign_coords(x=x, y=y).assign(TI=(("x", "y", "wd"), values))


def with_density(dataset, x=X, y=Y, sectors=None):
    """The same with an air density (kg/m3) by place, and by sector if their number is given."""
    axes, dims = ((x, y), ("x", "y")) if sectors is None else ((x, y, sectors), ("x", "y", "wd"))
    return dataset.assign_coords(x=x, y=y).assign(Air_density=(dims, waves(1.05, 1.3, 23, *axes)))


def with_local_bins(dataset):
    """The same with bins of speed that move with the local speed, as in PyWake's `WaspGridSite`."""
    return dataset.assign_attrs(speed_bins="local")


def with_turning(dataset, x=X, y=Y):
    """The same with a change of the wind direction (degrees) by place and sector."""
    values = waves(-8.0, 8.0, 25, x, y, dataset.sizes["wd"])
    return dataset.assign_coords(x=x, y=y).assign(Turning=(("x", "y", "wd"), values))


def with_elevation(dataset, x=X, y=Y, high=120.0):
    """The same on hills (m)."""
    return dataset.assign_coords(x=x, y=y).assign(Elevation=(("x", "y"), waves(0.0, high, 24, x, y)))


def table(turbulence=0.08):
    """Probabilities by sector and speed, the same everywhere."""
    probability = waves(0.2, 1.8, 31, SECTORS, BINS)
    return xarray.Dataset(
        {"P": (("wd", "ws"), probability / probability.sum()), "TI": turbulence}, {"wd": CENTRES, "ws": BINS}
    )


def table_field(x=X, y=Y, heights=HEIGHTS):
    """Probabilities that vary with the place and the height."""
    probability = waves(0.2, 1.8, 32, x, y, heights, SECTORS, BINS)
    probability /= probability.sum(axis=(3, 4), keepdims=True)
    return xarray.Dataset(
        {"P": (("x", "y", "h", "wd", "ws"), probability), "TI": 0.08},
        {"x": x, "y": y, "h": heights, "wd": CENTRES, "ws": BINS},
    )


def steps():
    """Return directions and reference speeds of a time series."""
    rng = np.random.default_rng(41)
    return rng.uniform(0.0, 360.0, STEPS), rng.uniform(4.0, 16.0, STEPS)


def series_field(x=X, y=Y):
    """Speed and turbulence at each step and place."""
    direction, speed = steps()
    dims = ("x", "y", "time")
    return xarray.Dataset(
        {
            "WS": (dims, speed * waves(0.85, 1.15, 42, x, y, STEPS)),
            "TI": (dims, waves(0.05, 0.14, 43, x, y, STEPS)),
            "wd": ("time", direction),
        },
        {"x": x, "y": y, "time": np.arange(STEPS)},
    )


def series_with_speed_up(x=X, y=Y):
    """A time series at a reference, and a speed-up by sector."""
    direction, speed = steps()
    dataset = with_speed_up(xarray.Dataset({"TI": 0.08}, {"time": np.arange(STEPS)}), x, y)
    return dataset.assign(WD=("time", direction)).assign_coords(ws=("time", speed))


def layout(count, seed, x=X, y=Y, apart_m=500.0, border_m=0.0):
    """Positions at random in the grid, `apart_m` from each other and `border_m` from the borders of its cells."""
    rng = np.random.default_rng(seed)
    places = []
    while len(places) < count:
        place = rng.uniform([x[0], y[0]], [x[-1], y[-1]])
        inside = all(np.abs(axis - at).min() > border_m for axis, at in zip((x, y), place, strict=True))
        if inside and all(np.hypot(*(place - other)) > apart_m for other in places):
            places.append(place)
    return tuple(np.array(places).T)


ALPHA = waves(0.05, 0.3, 51, SECTORS).tolist()
ROUGHNESS = waves(0.01, 0.5, 52, SECTORS).tolist()
WEIBULL = uniform_weibull()
WEIBULL_FIELD = weibull_field()
ONE_LEVEL = weibull_field().isel(h=0, drop=True)
SPEED_UP = with_speed_up(WEIBULL)
EVERYTHING = with_density(with_elevation(with_speed_up(WEIBULL_FIELD, heights=HEIGHTS), high=80.0), sectors=SECTORS)
HILLS = with_elevation(with_turbulence(SPEED_UP), high=80.0)  # less than any hub height
CASES = {
    "weibull": Case(WEIBULL_FIELD),
    "weibull linear": Case(WEIBULL_FIELD, "linear"),
    "weibull uneven": Case(weibull_field(UNEVEN_X, UNEVEN_Y, np.array([80.0, 130.0, 145.0, 160.0]))),
    "speed-up": Case(SPEED_UP),
    "speed-up linear": Case(with_speed_up(WEIBULL, heights=HEIGHTS), "linear"),
    "speed-up on a field": Case(with_speed_up(WEIBULL_FIELD, heights=HEIGHTS)),
    "speed-up and turbulence": Case(with_turbulence(SPEED_UP)),
    "local bins": Case(with_local_bins(SPEED_UP)),
    "local bins linear": Case(with_local_bins(with_speed_up(ONE_LEVEL)), "linear"),
    "local bins with shear": Case(with_local_bins(SPEED_UP), sector_shear=("power", ALPHA)),
    "turbulence": Case(with_turbulence(WEIBULL)),
    "turbulence at 15 m/s": Case(with_turbulence(SPEED_UP).rename(TI="TI_15"), "linear"),
    "table": Case(table_field()),
    "table linear": Case(table_field(), "linear"),
    "table with speed-up": Case(with_speed_up(table())),
    "table with shear": Case(table(), sector_shear=("power", ALPHA)),
    "density": Case(with_density(WEIBULL)),
    "density on a field": Case(with_density(WEIBULL_FIELD)),
    "density by sector": Case(with_density(SPEED_UP, sectors=SECTORS)),  # linear between them
    "elevated": Case(with_elevation(WEIBULL, high=80.0), distances="elevated"),
    "elevated with speed-up": Case(HILLS, distances="elevated"),
    "everything": Case(with_local_bins(EVERYTHING), "linear", distances="elevated"),
    "terrain following": Case(with_elevation(WEIBULL, high=900.0), distances="terrain_following"),
    "terrain following with speed-up": Case(with_elevation(SPEED_UP, high=900.0), distances="terrain_following"),
    "power shear": Case(WEIBULL, sector_shear=("power", 0.2)),
    "power shear by sector": Case(WEIBULL, sector_shear=("power", ALPHA)),
    "power shear on a speed-up": Case(SPEED_UP, sector_shear=("power", ALPHA)),
    "logarithmic shear": Case(WEIBULL, sector_shear=("logarithmic", 0.03)),
    "logarithmic shear by sector": Case(WEIBULL, "linear", sector_shear=("logarithmic", ROUGHNESS)),
    "logarithmic shear on a field": Case(ONE_LEVEL, sector_shear=("logarithmic", ROUGHNESS)),
    "series": Case(series_field()),
    "series with speed-up": Case(series_with_speed_up()),
    "series with linear speed-up": Case(series_with_speed_up(), "linear"),
    "series with shear": Case(series_field(), sector_shear=("power", ALPHA)),
}
