"""The objective on several wind roses, and the work of its evaluations."""

import functools
from collections import Counter
from typing import Protocol

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError, NotANumberError
from leeward.layout.problem import LayoutProblem
from leeward.wind import Site, Turbine, WindFarm
from leeward.wind.conditions import GWH_PER_MW, Conditions
from leeward.wind.engine import LANES

Array = npt.NDArray[np.float64]

FEW = 6  # turbines: in smaller farms other work exceeds that of pairs
SAMPLE = 100  # conditions of one step of stochastic descent
JUDGING_DIRECTIONS, JUDGING_SPEEDS = 360, 8
PROPOSING_DIRECTIONS, PROPOSING_SPEEDS = 120, 4
GROSS_SPEEDS = np.linspace(0.0, 50.0, 1001)  # m/s
SMART_START_DIRECTIONS = 360
SMART_START_SPEEDS = (6.0, 8.0, 10.0, 12.0, 14.0)  # those of TopFarm


class ObjectiveFunction(Protocol):
    """The function to maximise, of a layout and its AEP, with its gradient. Its class is called with the problem.

    leeward computes the AEP and its derivatives, from samples of the wind where they are accurate enough.
    """

    def value(self, x: Array, y: Array, aep_gwh: float) -> float:
        """Return the objective of a layout. x, y: m, shape (turbines,)."""

    def gradient(self, x: Array, y: Array, aep_gwh: float, by_x: Array, by_y: Array) -> tuple[Array, Array]:
        """Return the derivatives of the value by x and y. by_x, by_y: those of the AEP, GWh/m, shape (turbines,)."""


class Aep:
    """The AEP, GWh."""

    def __init__(self, problem: LayoutProblem) -> None:
        pass

    def value(self, x: Array, y: Array, aep_gwh: float) -> float:
        return aep_gwh

    def gradient(self, x: Array, y: Array, aep_gwh: float, by_x: Array, by_y: Array) -> tuple[Array, Array]:
        return by_x, by_y


class Objective:
    """An objective on several wind roses: random samples and coarse ones to move by, the full one to report.

    Recipes propose layouts by their energy (SmartStart, `worth`, `gain`) and keep the best by the objective.
    work: pair evaluations so far. One is the wake of a turbine on another in one wind direction at up to four wind
    speeds. With derivatives it counts twice; pairs whose wakes do not touch count as well.
    """

    def __init__(self, problem: LayoutProblem, function: ObjectiveFunction | None = None) -> None:
        self.farm = problem.farm
        self._function = Aep(problem) if function is None else function
        self.work = 0
        self._all = len(problem.min_distances_m)
        self._turbines = problem.turbines
        self._one_type = problem.one_type
        if self._one_type and not isinstance(self.farm.turbine, Turbine):
            self.farm = self._on(self.farm.site, self._turbines[0])  # one type for any number of positions

    @functools.cached_property
    def samples(self) -> bool:
        """True if descent uses random samples, because the full rose is too large for every step."""
        return _cost(self.farm.site) > 2 * SAMPLE

    @property
    def effort_unit(self) -> int:
        """The unit of efforts: pair evaluations of a gradient from a sample, of a farm that is not tiny."""
        return 2 * max(self._all, FEW) ** 2 * SAMPLE

    @functools.cached_property
    def step_work(self) -> int:
        """The pair evaluations of one gradient."""
        return 2 * self._all**2 * (SAMPLE if self.samples else _cost(self.farm.site))

    def gradient(self, x: Array, y: Array, rng: np.random.Generator) -> tuple[float, Array, Array]:
        """Return the AEP (GWh) and the derivatives of the objective, from a sample or, if small, from the full rose.

        The AEP of a sample is an estimate with the gross yield as its control variate: the known error of the sample in
        the gross yield is subtracted. Only the error in the wake loss remains.
        """
        self.work += self.step_work
        if not self.samples:
            return self._uphill(x, y, *self.farm.aep_gradient(x, y))
        drawn = self.farm.site.draw(SAMPLE, rng)
        aep, by_x, by_y = self.farm.aep_gradient(x, y, drawn)
        return self._uphill(x, y, aep - (self._gross_aep(drawn) - self._full_gross_aep), by_x, by_y)

    def judged_gradient(self, x: Array, y: Array) -> tuple[float, Array, Array]:
        """Return the AEP (GWh) on the rose of `judge`, and the derivatives of the objective there."""
        self.work += 2 * self._all**2 * _cost(self._judging.site)
        return self._uphill(x, y, *self._judging.aep_gradient(x, y))

    def judge(self, x: Array, y: Array) -> tuple[float, float]:
        """Return the objective to compare layouts by, and the AEP (GWh) that it was computed with."""
        self.work += self._all**2 * _cost(self._judging.site)
        return self._valued(x, y, self._judging.aep(x, y))

    def estimate(self, x: Array, y: Array) -> float:
        """Return the objective to compare very different layouts by, cheaply."""
        self.work += self._all**2 * _cost(self._proposing.site)
        return self._valued(x, y, self._proposing.aep(x, y))[0]

    def worth(self, x: Array, y: Array) -> Array:
        """Return roughly what the farm would lose without each turbine, GWh."""
        self.work += 2 * self._all**2 * _cost(self._proposing.site)
        return self._proposing.marginal_aep_gwh(x, y)

    def gain(self, x: Array, y: Array, moved: int, at_x: Array, at_y: Array) -> Array:
        """Return roughly what the farm would gain from the turbine `moved` at each point, GWh."""
        self.work += (len(x) + 2 * len(at_x)) * self._all * _cost(self._proposing.site)
        farm, turbine = self._proposing, self._turbines[moved]
        if not self._one_type:
            farm = self._on(farm.site, [t for i, t in enumerate(self._turbines) if i != moved])
        return farm.next_turbine_gain(np.delete(x, moved), np.delete(y, moved), at_x, at_y, turbine=turbine)

    def full(self, x: Array, y: Array, judged: tuple[float, float]) -> tuple[float, float]:
        """Return objective and AEP (GWh) on the full rose. judged: the result of `judge`, which may be the same."""
        if self._judging is self.farm:
            return judged
        self.work += self._all**2 * _cost(self.farm.site)
        return self._valued(x, y, self.farm.aep(x, y))

    def smart_start_farm(self) -> WindFarm:
        """Return the farm in the wind conditions of TopFarm's SmartStart."""
        return self._on(self.farm.site.coarser(SMART_START_DIRECTIONS, SMART_START_SPEEDS))

    def count_map(self, farm: WindFarm, places: int) -> None:
        """Add the work of updating a map after one more turbine: its wake at this many places."""
        self.work += _cost(farm.site) * places

    def _valued(self, x: Array, y: Array, aep: float) -> tuple[float, float]:
        value = float(self._function.value(x, y, aep))
        if not np.isfinite(value):
            raise NotANumberError(f"the objective of a layout is {value}")
        return value, aep

    def _uphill(self, x: Array, y: Array, aep: float, by_x: Array, by_y: Array) -> tuple[float, Array, Array]:
        east, north = (np.asarray(by, np.float64) for by in self._function.gradient(x, y, aep, by_x, by_y))
        if not east.shape == north.shape == x.shape:
            raise InputError(
                f"the gradient of the objective has the shapes {east.shape} and {north.shape}; expected {x.shape} each"
            )
        return aep, east, north

    def _gross_aep(self, conditions: Conditions) -> float:
        """Return the gross yield in these conditions, GWh."""
        power = np.interp(conditions.speed, GROSS_SPEEDS, self._gross_power)
        return float(np.vdot(power, conditions.weight)) * GWH_PER_MW

    @functools.cached_property
    def _full_gross_aep(self) -> float:
        return self._gross_aep(self.farm.site.conditions)

    @functools.cached_property
    def _gross_power(self) -> Array:
        """Power of all turbines without wakes at `GROSS_SPEEDS`, MW: a table is faster than the curves."""
        counts = Counter(self._turbines)
        return np.asarray(sum(count * turbine.power_mw(GROSS_SPEEDS) for turbine, count in counts.items()))

    @functools.cached_property
    def _judging(self) -> WindFarm:
        return self._coarse(JUDGING_DIRECTIONS, JUDGING_SPEEDS)

    @functools.cached_property
    def _proposing(self) -> WindFarm:
        return self._coarse(PROPOSING_DIRECTIONS, PROPOSING_SPEEDS)

    def _coarse(self, directions: int, speeds: int) -> WindFarm:
        """Return the farm on a coarser rose, or unchanged if its rose is no larger."""
        if _cost(self.farm.site) <= directions * speeds // LANES:
            return self.farm
        return self._on(self.farm.site.coarser(directions, _telling_speeds(self._turbines, speeds)))

    def _on(self, site: Site, turbines: Turbine | list[Turbine] | None = None) -> WindFarm:
        """Return the farm with another rose, and possibly other turbines."""
        farm = self.farm
        return WindFarm(
            site, turbines or farm.turbine, farm.wake_model, neighbours=farm.neighbours, threads=farm.threads
        )


def _cost(site: Site) -> int:
    """Return the evaluations of one pair on the whole rose of a site."""
    directions, speeds = map(int, site.conditions.speed.shape)
    return directions * -(-speeds // LANES)


def _telling_speeds(turbines: list[Turbine], count: int) -> Array:
    """Return a few wind speeds (m/s) at which wakes cost energy: from cut-in to well above rated."""
    speeds = np.arange(0.5, 40.0, 0.25)
    powers = [turbine.power_mw(speeds) for turbine in turbines]
    lowest = min(float(speeds[np.argmax(power > 0.01 * power.max())]) for power in powers)
    highest = 1.3 * max(float(speeds[np.argmax(power >= 0.999 * power.max())]) for power in powers)
    return lowest + (np.arange(count) + 0.5) * (highest - lowest) / count
