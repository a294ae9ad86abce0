"""Sites: the distribution of wind direction, speed and turbulence.

A site has Weibull distributions by sector, a table or a time series. They are the same everywhere, or vary on a grid.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leeward.capacity import HOURS_PER_YEAR
from leeward.deprecation import Renamed
from leeward.errors import InputError
from leeward.readers.wasp_field import WASP_FIELDS
from leeward.readers.wind_file import WindData, read_wind
from leeward.wind.checks import Array, one_or_more
from leeward.wind.conditions import Conditions, Distribution
from leeward.wind.field import WindField
from leeward.wind.field_data import FieldData, Shear
from leeward.wind.field_dataset import FieldOptions, dataset_of
from leeward.wind.field_settings import from_field_settings
from leeward.wind.field_wind import FieldPart, FieldWind
from leeward.wind.site_file import dataset_wind, pywake_site, read_site_file, with_shear
from leeward.wind.table_wind import TableWind, series_wind, table_wind
from leeward.wind.weibull import WeibullWind

if TYPE_CHECKING:
    import xarray

DEFAULT_TURBULENCE = 0.1
NO_TURBULENCE = f"no turbulence intensity is given: {DEFAULT_TURBULENCE:g} is used"


class Site:
    """The wind of a site, the same everywhere or varying over the site and with height.

    Create one with `from_file`, `from_weibull`, `from_table`, `from_time_series`, `from_dataset` or `from_pywake`.
    notes: how a file was read.
    """

    figures = Renamed("settings")

    def __init__(self, distribution: Distribution, notes: tuple[str, ...] = ()) -> None:
        self.distribution = distribution
        self.notes = notes

    def __repr__(self) -> str:
        return f"<Site: {self.describe()}>"

    @property
    def conditions(self) -> Conditions:
        """Return the wind conditions of the site: the centres of bins, or each condition of a table or series."""
        return self.distribution.conditions

    def draw(self, count: int, rng: np.random.Generator) -> Conditions:
        """Return `count` conditions drawn at random, one speed each, sorted by direction.

        A sum over them with their weights is an unbiased estimate of the integral over the wind distribution, or, for
        wind that varies over the site, of the sum over its conditions. They form a lattice that is shifted at random,
        which gives much better estimates than independent draws.
        """
        return self.distribution.draw(count, rng)

    def coarser(self, directions: int, speeds: npt.ArrayLike) -> "Site":
        """Return the same wind in fewer conditions: cheaper, and good enough to compare layouts.

        Weibull distributions get this many equal directions, and bins around these speeds (m/s). A table or a time
        series is reduced to twice as many conditions as directions, drawn evenly, if it has more.
        """
        return Site(self.distribution.coarser(directions, one_or_more(speeds, "speeds")))

    def settings(self) -> dict[str, Any]:
        """Return the numbers that define the site. Sites with the same wind have the same settings,
        except for the name of a file.

        The keys are those of a campaign file's `weibull` or `table`, or `field`; `from_settings` restores the site.
        """
        return self.distribution.settings()

    def describe(self) -> str:
        """Return a short description of the wind data."""
        return self.distribution.describe()

    @property
    def field(self) -> WindField | None:
        """Return how the wind varies over the site; None if it is the same everywhere and at all heights."""
        return self.distribution.field if isinstance(self.distribution, FieldWind) else None

    @property
    def crs(self) -> str | None:
        """Return the coordinate system of wind on a grid, if it is known."""
        return None if self.field is None else self.field.data.crs

    def to_dataset(self) -> "xarray.Dataset":
        """Return wind that varies as a dataset with the names of PyWake's `XRSite`; see `from_dataset`.

        Shear and the other options of `from_dataset` are not in it.
        """
        if self.field is None:
            raise InputError("the wind is the same everywhere; its numbers are in settings()")
        return dataset_of(self.field.data)

    def with_turbulence(self, turbulence_intensity: float) -> "Site":
        """Return a site on a grid with another turbulence intensity, the same everywhere."""
        if not isinstance(self.distribution, FieldWind):
            raise InputError("the wind is the same everywhere; give its turbulence intensity when you create the site")
        data = self._whole_field
        others = [name for name in data.values if name not in ("turbulence", "series_turbulence")]
        values = {name: data.values[name] for name in others}
        values["turbulence"] = np.full((1, 1, 1, 1), turbulence_intensity)
        missing = {name: data.missing[name] for name in others if name in data.missing}
        changed = replace(data, values=values, missing=missing, turbulence_at_15=False)
        return Site(FieldWind(changed), self.notes)

    def fewer_directions(self) -> "Site":
        """Return wind with the same gross yield in fewer directions, or nearly the same, if that is possible."""
        if not isinstance(self.distribution, FieldWind):
            return self
        return Site(self.distribution.fewer_directions(), self.notes)

    def with_conditions(self, conditions: Conditions) -> "Site":
        """Return a site with these conditions, made of its own."""
        if not isinstance(self.distribution, FieldWind):
            return Site(TableWind.of(conditions), self.notes)
        return Site(FieldPart(self.distribution, conditions), self.notes)

    def unchecked(self) -> "Site":
        """Return the same wind without checks of places; see `WindField.unchecked`."""
        if not isinstance(self.distribution, FieldWind):
            return self
        return Site(self.distribution.unchecked(), self.notes)

    @property
    def turbulence_range(self) -> Array:
        """Return turbulence intensities among which are the lowest and the highest of the site."""
        return self.distribution.turbulence_range

    @property
    def density_range(self) -> tuple[float, float]:
        """Return the lowest and the highest air density of the site, relative to that of power curves, 1.225 kg/m3."""
        return self.distribution.density_range

    @property
    def covered_degrees(self) -> float:
        """Return how many degrees of the circle the bins of a table cover; 360 for any other site."""
        return self.distribution.covered_degrees

    @property
    def covered_hours(self) -> float:
        """Return the hours a year that the conditions cover: 8760 if their probabilities add up to 1."""
        return float(self.conditions.weight.sum()) * HOURS_PER_YEAR

    @property
    def mean_speed_m_s(self) -> float:
        """Return the mean wind speed of the conditions; if the wind varies, before speed-up and shear."""
        return float((self.conditions.weight * self.conditions.speed).sum() / self.conditions.weight.sum())

    @staticmethod
    def from_settings(settings: Mapping[str, Any], notes: tuple[str, ...] = ()) -> "Site":
        """Return the site with these settings: those of `settings()`, or the keys of `weibull`, `table` or
        `time_series` in a campaign file.
        """
        if "field" in settings:
            return Site(FieldWind(from_field_settings(settings["field"])), notes)
        values = {name: value for name, value in settings.items() if value is not None}
        if "turbulence_intensity" not in values:
            values["turbulence_intensity"] = DEFAULT_TURBULENCE
            notes = (*notes, NO_TURBULENCE)
        if "weibull_k" in values:
            bins = {
                "directions": values.pop("wind_directions_deg", None),
                "speeds": values.pop("wind_speeds_m_s", None),
            }
            site = Site.from_weibull(**values, **bins)
        elif "probability" in values:
            axes = (values.pop("wind_directions_deg"), values.pop("wind_speeds_m_s"))
            site = Site.from_table(*axes, **values)
        else:
            series = (values.pop("wind_direction_deg"), values.pop("wind_speed_m_s"))
            site = Site.from_time_series(*series, **values)
        return Site(site.distribution, notes)

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
        """Return a site with Weibull distributions for equal sectors, the first one centred on north.

        sector_frequency: share of the time the wind blows from each sector; weibull_a_m_s, weibull_k: scale and shape;
        turbulence_intensity: one number, or one for each sector.
        directions, speeds: centres of the bins; by default 0 .. 359 degrees and 3 .. 25 m/s, in steps of 1.
        interpolation: the values of the "nearest" sector, or "linear" between the centres of sectors.
        """
        return Site(
            WeibullWind(
                sector_frequency, weibull_a_m_s, weibull_k, turbulence_intensity, directions, speeds, interpolation
            )
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
        """Return a site with a tabulated wind rose.

        probability: shape (directions, speeds); or shape (directions,), with one speed for all directions or one for
        each. turbulence_intensity: one number, or an array of the shape of `probability`.
        kind: "bins" spreads each probability evenly over the bin around its direction, with a condition every degree;
        "exact" uses each condition unchanged. The default is bins for a table of several speeds whose directions are
        evenly spaced over the full circle and more than 5 degrees apart, and exact for other evenly spaced directions.
        Any other table needs `kind`.
        speed_bins: the speeds are the "centres" of bins, or their "edges" (one more than probabilities of a
        direction). A bin is evaluated at its centre.
        """
        return Site(table_wind(directions, speeds, probability, turbulence_intensity, kind, speed_bins))

    @staticmethod
    def from_time_series(
        direction: npt.ArrayLike,
        speed: npt.ArrayLike,
        turbulence_intensity: npt.ArrayLike = 0.1,
        weight: npt.ArrayLike | None = None,
    ) -> "Site":
        """Return a site with a series of measured or modelled conditions.

        turbulence_intensity: one number or a series; weight: a series of shares of time that add up to at most 1
        (by default every condition counts the same).
        """
        return Site(series_wind(direction, speed, turbulence_intensity, weight))

    @staticmethod
    def from_file(
        path: str | os.PathLike[str],
        *,
        directions: npt.ArrayLike | None = None,
        speeds: npt.ArrayLike | None = None,
        interpolation: str | None = None,
        turbulence_intensity: float | None = None,
        shear: Shear | None = None,
        distances: str = "straight",
        extrapolate: bool = False,
        crs: str | None = None,
    ) -> "Site":
        """Read the wind of a site from a file.

        Formats: a PyWake site (.nc), a WAsP table (.tab), a WAsP resource grid (.wrg, .rsf, or a folder of .grd files)
        or a windIO energy resource (.yaml). directions, speeds, interpolation: as in `from_weibull`, for Weibull
        distributions. turbulence_intensity: replaces that of the file. The others: as in `from_dataset`.
        """
        path = Path(path)
        options = FieldOptions(
            directions, speeds, interpolation, turbulence_intensity, shear, distances, extrapolate, crs
        )
        if path.is_dir() or path.suffix.lower() in (".nc", *WASP_FIELDS):
            notes: list[str] = []
            return Site(read_site_file(path, options, notes), tuple(notes))
        return site_of_data(read_wind(path), str(path), options)

    @staticmethod
    def from_dataset(
        dataset: "xarray.Dataset",
        *,
        directions: npt.ArrayLike | None = None,
        speeds: npt.ArrayLike | None = None,
        interpolation: str = "nearest",
        turbulence_intensity: float | None = None,
        shear: Shear | None = None,
        distances: str = "straight",
        extrapolate: bool = False,
        crs: str | None = None,
    ) -> "Site":
        """Return the wind in an xarray dataset with the names of PyWake's `XRSite`, which may vary over the site.

        Variables: `Sector_frequency`, `Weibull_A` and `Weibull_k`, or `P` by `wd` and `ws`, or `WS` and `wd` by `time`;
        `TI`; and, if they matter, `Speedup`, `Air_density` (kg/m3) and `Elevation` (m). Each may depend on `x`, `y` (m)
        and `h` (m above ground). Values are linear between the points of the grid.
        directions, speeds, interpolation: as in `from_weibull`. turbulence_intensity: replaces that of the dataset.
        shear: how the wind speed increases with height. distances: between turbines, "straight"; "elevated", which adds
        the elevation of the terrain to hub heights; or "terrain_following", along the terrain.
        extrapolate: True uses the values at the border of the grid outside it. crs: coordinate system of x and y, by
        default the one that the dataset names.
        """
        options = FieldOptions(
            directions, speeds, interpolation, turbulence_intensity, shear, distances, extrapolate, crs
        )
        notes: list[str] = []
        return Site(dataset_wind(dataset, "the dataset", options, notes), tuple(notes))

    @staticmethod
    def from_pywake(
        site: Any,
        *,
        directions: npt.ArrayLike | None = None,
        speeds: npt.ArrayLike | None = None,
        turbulence_intensity: float | None = None,
        distances: str = "straight",
    ) -> "Site":
        """Return the wind of a site object of PyWake, such as `XRSite` or `WaspGridSite`.

        directions, speeds: as in `from_weibull`; by default those that PyWake uses for the site.
        turbulence_intensity: replaces that of the site. distances: as in `from_dataset`; those of the site do not
        count.
        """
        options = FieldOptions(directions, speeds, turbulence_intensity=turbulence_intensity, distances=distances)
        notes: list[str] = []
        return Site(pywake_site(site, options, notes), tuple(notes))

    @staticmethod
    def from_netcdf(
        path: str | os.PathLike[str],
        *,
        directions: npt.ArrayLike | None = None,
        speeds: npt.ArrayLike | None = None,
        interpolation: str = "nearest",
    ) -> "Site":
        """Read a site file in the format of PyWake's `XRSite.save`.

        directions, speeds, interpolation: as in `from_weibull`; the defaults are those of `XRSite.load`. A file with
        tabulated probabilities has its own speeds.
        """
        return Site.from_file(path, directions=directions, speeds=speeds, interpolation=interpolation)

    def with_shear(self, shear: Shear) -> "Site":
        """Return the site with a wind speed that increases with height."""
        if not isinstance(shear, Shear):
            raise InputError(f"shear is {shear!r:.60}; expected Shear.power(...) or Shear.logarithmic(...)")
        if isinstance(self.distribution, FieldWind):
            return Site(FieldWind(replace(self._whole_field, shear=shear)), self.notes)
        return Site(with_shear(self.distribution, shear), self.notes)

    @property
    def _whole_field(self) -> FieldData:
        """Return the data of wind on a grid. Raise InputError if the site has only a part of its conditions."""
        if not isinstance(self.distribution, FieldWind):
            raise TypeError("the wind does not vary")
        if isinstance(self.distribution, FieldPart):
            raise InputError("the site has only some conditions of another one; change that one first")
        return self.distribution.data


def site_of_data(wind: WindData, where: str, options: FieldOptions) -> Site:
    """Return the wind that a reader found in a file.

    where: the file, for errors. options: those that are given replace the values of the file.
    """
    shear = options.shear
    if shear is None and wind.shear:
        shear = Shear.power(wind.shear["exponent"], wind.shear["reference_height_m"])
    if wind.grid is not None:
        notes, intensity = list(wind.notes), options.turbulence_intensity
        if intensity is None and not wind.has_turbulence:
            intensity = DEFAULT_TURBULENCE
            notes.append(NO_TURBULENCE)
        own = wind.settings
        directions = own.get("directions") if options.directions is None else options.directions
        speeds = own.get("speeds") if options.speeds is None else options.speeds
        options = replace(options, directions=directions, speeds=speeds, shear=shear, turbulence_intensity=intensity)
        return Site(dataset_wind(wind.grid, where, options, notes), tuple(notes))
    if options.distances != "straight" or options.extrapolate:
        raise InputError(f"{where}: distances and extrapolate apply to wind on a grid, which this file does not have")
    given: dict[str, Any] = {
        "wind_directions_deg": options.directions,
        "wind_speeds_m_s": options.speeds,
        "interpolation": options.interpolation,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if given and "weibull_k" not in wind.settings:
        names = ", ".join(given)
        raise InputError(f"{where}: {names} apply to Weibull distributions only; the file has its own values")
    if options.turbulence_intensity is not None:
        given["turbulence_intensity"] = options.turbulence_intensity
    try:
        site = Site.from_settings({**wind.settings, **given}, tuple(wind.notes))
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return site if shear is None else site.with_shear(shear)
