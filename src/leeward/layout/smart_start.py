"""SmartStart as in TopFarm 2.7: place turbines one by one, at random from the best points of a grid."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.layout.objective import Objective
from leeward.layout.problem import LayoutProblem
from leeward.wind.flow import NextTurbineMap

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SmartStart:
    """Options of SmartStart. grid_size: points per side of the area's bounding box.

    random_pct: pick at random from the best N % of the free points; 0 takes the best one, 100 any.
    """

    grid_size: int = 18
    random_pct: float = 30.0

    def __post_init__(self) -> None:
        if isinstance(self.grid_size, bool) or not (
            isinstance(self.grid_size, int | np.integer) and self.grid_size >= 2
        ):
            raise InputError(f"grid_size is {self.grid_size!r}; expected a whole number, 2 or more")
        if not (isinstance(self.random_pct, int | float | np.number) and 0 <= self.random_pct <= 100):
            raise InputError(f"random_pct is {self.random_pct!r}; expected a percentage from 0 to 100")


def grid_points(problem: LayoutProblem, size: int) -> tuple[Array, Array]:
    """Return the points of the grid that lie in the area, row by row."""
    left, low, right, high = problem.area.bounds
    x, y = (c.ravel() for c in np.meshgrid(np.linspace(left, right, size), np.linspace(low, high, size)))
    inside = problem.area.signed_distance(x, y) >= 0.0
    return x[inside], y[inside]


def place(
    problem: LayoutProblem, objective: Objective, options: SmartStart, seed: int
) -> Iterator[tuple[Array, Array]]:
    """Yield the layout after each turbine placed. End early if no point of the grid is left."""
    at_x, at_y = grid_points(problem, options.grid_size)
    farm = objective.smart_start_farm()
    random = np.random.RandomState(seed)  # as in TopFarm, so that a seed gives the same layout
    maps: dict[object, NextTurbineMap] = {}
    x, y = np.empty(0), np.empty(0)
    for turbine, kind in enumerate(problem.turbines):
        free = problem.free(x, y, np.arange(turbine), turbine, at_x, at_y)
        if not free.any():
            return
        if problem.one_type:
            at_x, at_y = at_x[free], at_y[free]
            for known in maps.values():
                known.keep(free)
            free = np.ones(len(at_x), dtype=bool)
        if options.random_pct < 100:
            if kind not in maps:
                maps[kind] = farm.next_turbine_map(at_x, at_y, turbine=kind, rotor_average=False)
            yields = maps[kind].aep_gwh(x, y)[free]
        else:
            yields = np.zeros(int(free.sum()))
        objective.work += objective.map_work(len(yields) + len(x))
        chosen = np.flatnonzero(free)[random.choice(best_places(yields, options))]
        x, y = np.r_[x, at_x[chosen]], np.r_[y, at_y[chosen]]
        yield x, y


def best_places(yields: Array, options: SmartStart) -> npt.NDArray[np.int64]:
    """Return the indices of the places to choose from at random, by the yields of all places."""
    among = max(1, int(np.round(options.random_pct / 100 * len(yields))))
    return np.flatnonzero(yields >= np.sort(yields)[-among])
