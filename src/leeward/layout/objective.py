"""The objective on several wind roses, and the work of its evaluations."""

import copy
import functools
from collections import Counter
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError, NotANumberError
from leeward.layout.gross import GrossYield
from leeward.layout.problem import LayoutProblem
from leeward.layout.roses import Stakes
from leeward.wind import Site, Turbine, WindFarm
from leeward.wind.conditions import GWH_PER_MW, Conditions
from leeward.wind.engine import LANES

Array = npt.NDArray[np.float64]

FEW = 46  # turbines: farms of 10 to 46 get the work of so many, smaller ones less
SAMPLE = 100  # conditions of one step of stochastic descent
CALL = 30_000  # pair evaluations that take as long as the fixed cost of a call
DERIVATIVES = 1.5  # the work of an evaluation with derivatives, relative to one without
MARGINAL = 2.0  # the same for `worth`
GAIN = 3.0  # the same for each point of `gain`
REDUCED_DIRECTIONS, REDUCED_SPEEDS = 360, 8
PROPOSING_DIRECTIONS, PROPOSING_SPEEDS = 360, 1
TYPICAL_POINTS = 36  # at which the wind is representative of the area
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


class Rose(NamedTuple):
    """A farm on a wind rose. cost: the work of one pair.

    lacking_gwh: gross yield that only the full rose has. gross: of the full rose, if the wind varies over the site.
    """

    farm: WindFarm
    cost: float
    lacking_gwh: float = 0.0
    gross: GrossYield | None = None

    def aep_gwh(self, x: Array, y: Array) -> float:
        """Return the AEP (GWh), with the gross yield of the full rose."""
        if self.gross is not None:
            return self.gross.aep_gwh(self.farm, x, y)
        return self.farm.aep_gwh(x, y) + self.lacking_gwh

    def missing_gwh(self, x: Array, y: Array, turbine: Turbine | None = None) -> Array:
        """Return the gross yield that the rose lacks for turbines at places, GWh, less a constant for each type."""
        if self.gross is None:
            return np.zeros(1)
        return self.gross.missing_gwh(self.farm, x, y, turbine)


class Objective:
    """An objective on several wind roses: random samples and coarse ones to move by, the full one to report.

    Recipes propose layouts by their energy (SmartStart, `worth`, `gain`) and keep the best by the objective.
    work: in pair evaluations. One is the wake of a turbine on another in one wind condition. Derivatives, several
    speeds in one direction, turbines and calls count as many as take equally long.
    """

    def __init__(self, problem: LayoutProblem, function: ObjectiveFunction | None = None) -> None:
        self.farm = problem.farm
        self._area = problem.area
        self._function = Aep(problem) if function is None else function
        self.work = 0
        self._all = len(problem.min_distances_m)
        self.turbines = problem.turbines
        self._one_type = problem.one_type
        if self._one_type and not isinstance(self.farm.turbine, Turbine):
            self.farm = self._on(self.farm.site, self.turbines[0])  # one type for any number of positions
        if self.farm.site.field is not None:
            # on their way, turbines may leave the area and the grid
            self.farm = self._on(self.farm.site.unchecked())

    @functools.cached_property
    def samples(self) -> bool:
        """True if descent uses random samples, because even the reduced rose is too large for every step."""
        return self.reduced_rose.cost > 2 * SAMPLE

    @property
    def effort_unit(self) -> int:
        """The unit of efforts for this farm; see `effort_unit`."""
        return effort_unit(self._all)

    @functools.cached_property
    def step_work(self) -> int:
        """The work of one `gradient`."""
        return self._work(SAMPLE if self.samples else self.reduced_rose.cost, DERIVATIVES)

    @functools.cached_property
    def judged_step_work(self) -> int:
        """The work of one `judged_gradient`."""
        return self._work(self.judging_rose.cost, DERIVATIVES)

    @property
    def judge_work(self) -> int:
        """The work of one `judge`."""
        return self._work(self.judging_rose.cost)

    @property
    def full_work(self) -> int:
        """The work of one `full`."""
        return 0 if self.judges_on_the_full_rose else self._work(self.full_rose.cost)

    @property
    def estimate_work(self) -> int:
        """The work of one `estimate`."""
        return self._work(self.proposing_rose.cost)

    @property
    def lattice_work(self) -> int:
        """The work of drawing a lattice and estimating its objective."""
        return CALL // 2 + self.estimate_work

    @property
    def worth_work(self) -> int:
        """The work of one `worth`."""
        return self._work(self.proposing_rose.cost, MARGINAL)

    def gain_work(self, places: int) -> int:
        """Return the work of one `gain` at so many places."""
        return self._work(self.proposing_rose.cost, 1.0 + GAIN * places / self._all)

    def map_work(self, places: int) -> int:
        """Return the work of updating the map of SmartStart after one more turbine: its wake at so many places."""
        return CALL + int(self._smart_start_cost * places)

    @property
    def judges_on_the_full_rose(self) -> bool:
        """True if the rose of `judge` is the full one."""
        return self.judging_rose is self.full_rose

    def fresh(self) -> Self:
        """Return an objective that shares the wind roses of this one, with no work counted."""
        _ = self.full_rose, self.judging_rose, self.proposing_rose, self._smart_start_cost  # now the copy has them
        other = copy.copy(self)
        other.work = 0
        return other

    def gradient(self, x: Array, y: Array, rng: np.random.Generator) -> tuple[float, Array, Array]:
        """Return the AEP (GWh) and the derivatives of the objective, from a sample or, if small, from the reduced rose.

        The AEP of a sample is an estimate with the gross yield as its control variate: the known error of the sample in
        the gross yield is subtracted. Only the error in the wake loss remains.
        """
        self.work += self.step_work
        if not self.samples:
            return self._gradient(self.reduced_rose, x, y)
        drawn = self.stakes.draw(SAMPLE, rng) if self.stakes else self.farm.site.draw(SAMPLE, rng)
        if self.gross is not None:
            return self._with_gross(self.farm.net_minus_gross_gradient(x, y, drawn), x, y)
        aep, by_x, by_y = self.farm.aep_gradient(x, y, drawn)
        return self._uphill(x, y, aep + self.lacking_gwh(drawn), by_x, by_y)

    def judged_gradient(self, x: Array, y: Array) -> tuple[float, Array, Array]:
        """Return the AEP (GWh) on the rose of `judge`, and the derivatives of the objective there."""
        self.work += self.judged_step_work
        return self._gradient(self.judging_rose, x, y)

    def _gradient(self, rose: Rose, x: Array, y: Array) -> tuple[float, Array, Array]:
        if rose.gross is not None:
            return self._with_gross(rose.farm.net_minus_gross_gradient(x, y), x, y)
        aep, by_x, by_y = rose.farm.aep_gradient(x, y)
        return self._uphill(x, y, aep + rose.lacking_gwh, by_x, by_y)

    def _with_gross(self, lost: tuple[float, Array, Array], x: Array, y: Array) -> tuple[float, Array, Array]:
        """Return the AEP (GWh) and the derivatives of the objective. lost: AEP less gross yield, with derivatives."""
        if self.gross is None:
            raise TypeError("the wind does not vary")
        gross, east, north = self.gross.gradient(x, y)
        return self._uphill(x, y, lost[0] + gross, lost[1] + east, lost[2] + north)

    def judge(self, x: Array, y: Array) -> tuple[float, float]:
        """Return the objective to compare layouts by, and the AEP (GWh) that it was computed with."""
        self.work += self.judge_work
        return self.valued(x, y, self.judging_rose.aep_gwh(x, y))

    def estimate(self, x: Array, y: Array) -> float:
        """Return the objective to compare very different layouts by, cheaply."""
        self.work += self.estimate_work
        return self.valued(x, y, self.proposing_rose.aep_gwh(x, y))[0]

    def worth(self, x: Array, y: Array) -> Array:
        """Return roughly what the farm would lose without each turbine, GWh, less a constant for each type."""
        self.work += self.worth_work
        return self.proposing_rose.farm.marginal_aep_gwh(x, y) + self.proposing_rose.missing_gwh(x, y)

    def gain(self, x: Array, y: Array, moved: int, at_x: Array, at_y: Array) -> Array:
        """Return roughly what the farm would gain from the turbine `moved` at each point, as `worth` counts it, GWh."""
        self.work += self.gain_work(len(at_x))
        farm, turbine = self.proposing_rose.farm, self.turbines[moved]
        if not self._one_type:
            farm = self._on(farm.site, [t for i, t in enumerate(self.turbines) if i != moved])
        gain = farm.next_turbine_gain(np.delete(x, moved), np.delete(y, moved), at_x, at_y, turbine=turbine)
        return gain + self.proposing_rose.missing_gwh(at_x, at_y, turbine)

    def full(self, x: Array, y: Array, judged: tuple[float, float]) -> tuple[float, float]:
        """Return objective and AEP (GWh) on the full rose. judged: the result of `judge`, which may be the same."""
        if self.judges_on_the_full_rose:
            return judged
        self.work += self.full_work
        return self.valued(x, y, self.farm.aep_gwh(x, y))

    def smart_start_farm(self) -> WindFarm:
        """Return the farm in the wind conditions of TopFarm's SmartStart."""
        return self._on(self.farm.site.coarser(SMART_START_DIRECTIONS, SMART_START_SPEEDS))

    def _work(self, cost: float, share: float = 1.0) -> int:
        """Return the work of evaluating a layout. cost: of one pair. share: relative to the AEP alone."""
        return CALL + int(share * _pairs(self._all) * cost)

    def valued(self, x: Array, y: Array, aep: float) -> tuple[float, float]:
        """Return the objective of a layout with this AEP (GWh), and the AEP, or raise NotANumberError."""
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

    def _gross_aep_gwh(self, conditions: Conditions) -> float:
        """Return the gross yield in these conditions, GWh."""
        power = np.interp(conditions.speed, GROSS_SPEEDS, self._gross_power)
        return float(np.vdot(power, conditions.weight)) * GWH_PER_MW

    def lacking_gwh(self, conditions: Conditions) -> float:
        """Return the gross yield of the full rose that these conditions lack, GWh."""
        return self._full_gross_aep_gwh - self._gross_aep_gwh(conditions)

    @functools.cached_property
    def gross(self) -> GrossYield | None:
        """The gross yield, if the wind varies over the site."""
        return None if self.farm.site.field is None else GrossYield(self.farm)

    @functools.cached_property
    def _full_gross_aep_gwh(self) -> float:
        return self._gross_aep_gwh(self.farm.site.conditions)

    def _typical_wind(self, conditions: Conditions) -> tuple[Array, Array]:
        """Return mean speeds and weights of conditions over the area, for wind that varies over it."""
        x, y = self._area.random_points(TYPICAL_POINTS, np.random.default_rng(0))
        return self.farm.mean_free_wind(x, y, conditions, Counter(self.turbines).most_common(1)[0][0])

    @functools.cached_property
    def _gross_power(self) -> Array:
        """Power of all turbines without wakes at `GROSS_SPEEDS`, MW: a table is faster than the curves."""
        counts = Counter(self.turbines)
        return np.asarray(sum(count * turbine.power_mw(GROSS_SPEEDS) for turbine, count in counts.items()))

    @functools.cached_property
    def stakes(self) -> Stakes:
        represent = None if self.farm.site.field is None else self._typical_wind
        return Stakes(self.farm.site, lambda speed: np.interp(speed, GROSS_SPEEDS, self._gross_power), represent)

    @functools.cached_property
    def full_rose(self) -> Rose:
        return Rose(self.farm, _cost(self.farm.site))

    @functools.cached_property
    def reduced_rose(self) -> Rose:
        return self._smaller(REDUCED_DIRECTIONS, REDUCED_SPEEDS)

    @functools.cached_property
    def judging_rose(self) -> Rose:
        return self.reduced_rose if self.samples else self.full_rose

    @functools.cached_property
    def proposing_rose(self) -> Rose:
        return self._smaller(PROPOSING_DIRECTIONS, PROPOSING_SPEEDS)

    @functools.cached_property
    def _smart_start_cost(self) -> float:
        return _cost(self.smart_start_farm().site)

    def _smaller(self, directions: int, speeds: int) -> Rose:
        """Return a smaller rose, or the full one if that is no larger."""
        if not self.stakes:
            return self.full_rose
        site = self.stakes.reduced(directions, speeds)
        cost = _cost(site)
        if cost >= self.full_rose.cost:
            return self.full_rose
        if self.gross is not None:
            return Rose(self._on(site), cost, gross=self.gross)
        return Rose(self._on(site), cost, self.lacking_gwh(site.conditions))

    def _on(self, site: Site, turbines: Turbine | list[Turbine] | None = None) -> WindFarm:
        """Return the farm with another rose, and possibly other turbines."""
        return self.farm.on(site, turbines)


def effort_unit(turbines: int) -> int:
    """Return the unit of efforts: the work of a gradient from a sample. Small farms get more, for races."""
    turbines = max(turbines, min(FEW, 8 + 4 * turbines))
    return CALL + int(DERIVATIVES * _pairs(turbines) * SAMPLE)


def _pairs(turbines: int) -> float:
    """Return the pair evaluations that take as long as one condition of a farm, from times for 8 to 528 turbines.

    They grow more slowly than the number of pairs, because wakes are narrow; each turbine has a fixed cost.
    """
    return 0.5 * turbines**2 + 35.0 * turbines


def _cost(site: Site) -> float:
    """Return the work of one pair on the whole rose of a site: speeds in one direction share much of it."""
    directions, speeds = map(int, site.conditions.speed.shape)
    return float(directions) if speeds == 1 else directions * (2.0 + -(-speeds // LANES))
