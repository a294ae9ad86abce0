"""Sites: how often the wind blows from where, how fast, and how turbulent it is.

The wind is the same at every point of a site. Three kinds: Weibull distributions by sector, a table, a time series.
"""

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.capacity import HOURS_PER_YEAR
from leeward.deprecation import Renamed
from leeward.wind.checks import one_or_more
from leeward.wind.conditions import Conditions, Distribution
from leeward.wind.site_file import read_site_file
from leeward.wind.table_wind import series_wind, table_wind
from leeward.wind.weibull import WeibullWind


class Site:
    """The wind of a place. Make one with `from_netcdf`, `from_weibull`, `from_table` or `from_time_series`."""

    figures = Renamed("settings")

    def __init__(self, distribution: Distribution) -> None:
        self.distribution = distribution

    @property
    def conditions(self) -> Conditions:
        """The wind conditions that stand for the site: the middles of bins, or each condition of a table or series."""
        return self.distribution.conditions

    def draw(self, count: int, rng: np.random.Generator) -> Conditions:
        """`count` conditions drawn at random, one speed each, in order of direction; their weights make a weighted sum
        over them an unbiased estimate of the integral over the wind distribution.

        They are spread evenly, as a lattice that is shifted at random, which makes the estimates much better than those
        from as many conditions drawn one by one.
        """
        return self.distribution.draw(count, rng)

    def coarser(self, directions: int, speeds: npt.ArrayLike) -> "Site":
        """The same wind in fewer conditions: cheaper, and good enough to compare layouts by.

        Weibull distributions are binned anew, in so many equal directions and round these speeds (m/s). Of a table or a
        time series twice as many conditions as directions are drawn, evenly, if it has more.
        """
        return Site(self.distribution.coarser(directions, one_or_more(speeds, "speeds")))

    def settings(self) -> dict[str, Any]:
        """What defines the site, as numbers and lists of them: the same for sites with the same wind, however made.

        The keys are those of a campaign file's `weibull` or `table`: `from_weibull` or `from_table` makes it again.
        """
        return self.distribution.settings()

    def describe(self) -> str:
        """Say what kind of wind this is, in a few words."""
        return self.distribution.describe()

    @property
    def covered_degrees(self) -> float:
        """How many degrees of the circle the bins of a table cover; 360 for any other site."""
        return self.distribution.covered_degrees

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
        return Site(table_wind(directions, speeds, probability, turbulence_intensity, kind, speed_bins))

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
        return Site(series_wind(direction, speed, turbulence_intensity, weight))

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
        return Site(read_site_file(path, directions, speeds, interpolation))
