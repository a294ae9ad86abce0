"""The results of each turbine of a layout."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leeward.deprecation import Renamed
from leeward.wind.checks import Array
from leeward.wind.conditions import GWH_PER_MW, Conditions


@dataclass(frozen=True)
class Simulation:
    """The results of each turbine of a layout over a year.

    aep_gwh, gross_aep_gwh (without wakes), power_mw and effective_speed_m_s (means over all conditions): shape
    (turbines,). With `per_condition`: effective speed, power, power without wakes and weight in each of the
    `conditions`, shape (turbines, directions, speeds).
    """

    aep_gwh: Array
    gross_aep_gwh: Array
    effective_speed_m_s: Array
    conditions: Conditions
    condition_speed_m_s: Array | None = None
    condition_power_mw: Array | None = None
    condition_gross_power_mw: Array | None = None
    condition_weight: Array | None = None

    condition_free_power_mw = Renamed("condition_gross_power_mw")
    free_aep_gwh = Renamed("gross_aep_gwh")

    @property
    def power_mw(self) -> Array:
        """Return the mean power of each turbine."""
        return self.aep_gwh / GWH_PER_MW

    @property
    def wake_loss(self) -> Array:
        """Return the share of its energy that each turbine loses to the wakes of others."""
        return _loss(self.aep_gwh, self.gross_aep_gwh)

    @property
    def condition_wake_loss(self) -> Array | None:
        """Return the share of its power that each turbine loses in each condition; 0 where it has no power."""
        if self.condition_power_mw is None or self.condition_gross_power_mw is None:
            return None
        return _loss(self.condition_power_mw, self.condition_gross_power_mw)

    @property
    def total_aep_gwh(self) -> float:
        return float(self.aep_gwh.sum())

    @property
    def total_wake_loss(self) -> float:
        return float(_loss(self.aep_gwh.sum(), self.gross_aep_gwh.sum()))


def _loss(aep: npt.ArrayLike, free: npt.ArrayLike) -> Array:
    free = np.asarray(free)
    return np.where(free > 0, 1.0 - np.asarray(aep) / np.where(free > 0, free, 1.0), 0.0)
