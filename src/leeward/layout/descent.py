"""Stochastic gradient descent with penalties: `start`, `step` and `done` over a plain state; the caller owns the loop.

After Quick et al. (2023, Wind Energy Science 8, 1235): conditions drawn from the continuous wind distribution at every
step, Adam with a short memory, and a penalty whose weight grows as the steps become shorter. A small wind rose is
evaluated completely at every step.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.layout.kernels import compiled
from leeward.layout.objective import Objective
from leeward.layout.problem import LayoutProblem

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Descent:
    """Settings of a descent. first_step_m: length of the first steps, which shrinks linearly to `last_share` of it.

    penalty: weight of the constraints; with 1, a violation as long as a step weighs twice as much as the mean gradient.
    first_moment, second_moment: decay of Adam's moments per step. judged: use the rose of `Objective.judge`,
    which is more accurate and costs more.
    """

    steps: int
    first_step_m: float
    last_share: float = 0.005
    penalty: float = 0.3
    first_moment: float = 0.5
    second_moment: float = 0.9
    judged: bool = False


@dataclass(frozen=True)
class DescentState:
    """The state of a descent. x, y: m. moments: of Adam, shape (6, turbines).

    first_gradient: mean gradient of the first step, GWh/m. aep_gwh, violation_m: estimated AEP and worst
    violation of the positions before the last step.
    """

    x: Array
    y: Array
    moments: Array
    step: int = 0
    first_gradient: float = 0.0
    aep_gwh: float = float("nan")
    violation_m: float = float("nan")


def start(problem: LayoutProblem, x: npt.ArrayLike, y: npt.ArrayLike) -> DescentState:
    """Return the state at these positions, at rest."""
    east, north = problem.positions(x, y)
    return DescentState(east, north, np.zeros((6, len(east))))


def done(settings: Descent, state: DescentState) -> bool:
    return state.step >= settings.steps


def step(
    problem: LayoutProblem, objective: Objective, settings: Descent, state: DescentState, rng: np.random.Generator
) -> DescentState:
    """Return the state after one more step."""
    if not (len(state.x) == len(state.y) == problem.n_turbines and state.moments.shape == (6, problem.n_turbines)):
        raise InputError(
            f"the state of the descent has {len(state.x)} turbines, the problem {problem.n_turbines}; expected a state "
            "from `start` for this problem"
        )
    gone = state.step / settings.steps
    length = settings.first_step_m * max(1.0 - gone, settings.last_share)
    if settings.judged:
        aep, uphill_x, uphill_y = objective.judged_gradient(state.x, state.y)
    else:
        aep, uphill_x, uphill_y = objective.gradient(state.x, state.y, rng)
    first = state.first_gradient
    if first == 0.0:
        first = 0.5 * float(np.abs(uphill_x).mean() + np.abs(uphill_y).mean())
    weight = settings.penalty * (first or 1.0) / length
    east, north = problem.relative(state.x, state.y)
    moments, violation = state.moments.copy(), np.empty(2)
    adam = (length, weight, settings.first_moment, settings.second_moment, state.step + 1.0)
    compiled("descend")(east, north, *problem.constraints, uphill_x, uphill_y, moments, adam, violation)
    count = problem.n_turbines
    return DescentState(
        x=east[:count] + problem.area.origin[0],
        y=north[:count] + problem.area.origin[1],
        moments=moments,
        step=state.step + 1,
        first_gradient=first,
        aep_gwh=aep,
        violation_m=float(violation.max()),
    )


def moved(state: DescentState, x: Array, y: Array, which: list[int]) -> DescentState:
    """Return the state with the turbines `which` moved, at rest there."""
    moments = state.moments.copy()
    moments[:, which] = 0.0
    return replace(state, x=x, y=y, moments=moments)
