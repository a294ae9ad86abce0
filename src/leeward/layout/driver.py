"""One call from a problem and a seed to a layout that satisfies every constraint: the driver of the recipes."""

import enum
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from leeward.deprecation import renamed_argument
from leeward.errors import InfeasibleError, InputError, NotANumberError
from leeward.layout import recipes, starts
from leeward.layout.objective import Objective, ObjectiveFunction
from leeward.layout.problem import LayoutProblem
from leeward.layout.recipes import EFFORTS, Given, Phase, Progress, Search
from leeward.layout.registry import OBJECTIVES, RECIPES, imported
from leeward.layout.smart_start import SmartStart
from leeward.wind.checks import positive

Array = npt.NDArray[np.float64]
Positions = tuple[npt.ArrayLike, npt.ArrayLike] | list[npt.ArrayLike] | Array  # x and y
Own = Callable[[LayoutProblem, int], Positions]
OnStep = Callable[[Progress], bool | None]

LARGEST_SEED = 2**32 - 1  # what TopFarm's random stream takes
NO_LIMIT = 2**63


class StopReason(enum.Enum):
    """Why an optimisation ended; the value is a sentence."""

    COMPLETED = "the recipe came to its end"
    WORK_DONE = "as much work was done as was asked for"
    TIME_UP = "the time was up"
    REQUESTED = "the watcher asked to stop"
    NOT_A_NUMBER = "a computation gave something that is not a number; this is the best layout from before"


@dataclass(frozen=True, eq=False)
class Solution:
    """A layout that satisfies all constraints, and how it came about.

    x, y: metres, in the coordinates of the area. aep_gwh, wake_loss (a share): on the full rose. min_spacing_m: of the
    closest two turbines, neighbours included. steps: those that a driver sees. work: pair evaluations until it stopped;
    after WORK_DONE and TIME_UP the same problem, recipe, effort and seed with this `work` give the same layout to the
    last bit. phases: name, seconds and best AEP at the end of each. start: x and y of the layout that was refined, if
    any and if feasible. notes: what else is worth knowing, in sentences. value: of the objective, on the full rose.
    """

    x: Array
    y: Array
    aep_gwh: float
    wake_loss: float
    min_spacing_m: float
    stop_reason: StopReason
    steps: int
    work: int
    seconds: float
    phases: tuple[Phase, ...]
    start: tuple[Array, Array] | None
    notes: tuple[str, ...]
    recipe: str = ""
    effort: str = ""
    seed: int = 0
    objective: str = "aep"
    value: float = float("nan")


@renamed_argument("watch", "callback")
def optimise(
    problem: LayoutProblem,
    seed: int,
    *,
    recipe: str | Own = "smart_start+refine",
    objective: str | type[ObjectiveFunction] = "aep",
    effort: str = "normal",
    time_budget_s: float | None = None,
    work: int | None = None,
    smart_start: SmartStart | None = None,
    start: Positions | None = None,
    callback: OnStep | None = None,
) -> Solution:
    """Return the best layout that a recipe finds.

    recipe: "smart_start+refine"; "smart_start" alone; "random+refine" or "random", from turbines placed at random;
    "start+refine", from the layout `start` (x, y), or "start", which only measures it; or a custom function
    (problem, seed) -> (x, y), also by its name "module:function". smart_start: options of SmartStart.
    objective: what is maximised, "aep"; or a custom class with the methods of `ObjectiveFunction`, made with the
    problem, also by its name "module:Class".
    effort: "fast", "normal" or "thorough", an amount of work that does not depend on the clock: results can be
    reproduced. Instead of it, the refinement can end after `time_budget_s` seconds, or after `work` pair evaluations;
    then the effort only says how long the descents are.
    callback: called after every step with a Progress; the optimisation stops when it returns something true.
    """
    began = time.perf_counter()
    _check(problem, seed, effort, work, smart_start, callback)
    if time_budget_s is not None and work is not None:
        raise InputError("time_budget_s and work are both given; expected one of them, or none")
    end = None if time_budget_s is None else began + positive(time_budget_s, "time_budget_s")
    unseen = {"start": start, "smart_start": smart_start, "time_budget_s": end, "work": work}
    custom = _custom_function(recipe, unseen)
    nowhere = np.empty(0)
    evaluated = Objective(problem, _objective(objective, problem))
    search = Search(problem, evaluated, np.random.default_rng(seed), EFFORTS[effort], nowhere, nowhere)
    if custom is not None:
        steps = _placed_by(custom, search, seed)
    else:
        search.limit = NO_LIMIT if end is not None else work
        steps = _steps(search, str(recipe), seed, smart_start, start)
    reason, done = _drive(search, steps, end, callback)
    solution = _solution(search, reason, done)
    return replace(
        solution,
        seconds=time.perf_counter() - began,
        recipe=_name(recipe),
        objective=_name(objective),
        effort=effort,
        seed=int(seed),
    )


def _drive(
    search: Search, steps: Iterator[Progress], end: float | None, callback: OnStep | None
) -> tuple[StopReason, int]:
    """Return which of recipe, work, time and callback ended it, and the work done until then."""
    done = 0
    try:
        for progress in steps:
            started, done = progress.work > done, progress.work
            if callback is not None and callback(progress):
                return StopReason.REQUESTED, done
            # only where the work tells one step from the next, so that the same work stops at the same step
            if started and len(search.x) == search.problem.n_turbines:
                if search.limit is not None and done >= search.limit:
                    return StopReason.WORK_DONE, done
                if end is not None and time.perf_counter() >= end:
                    return StopReason.TIME_UP, done
    except NotANumberError:
        if search.best is None:
            raise
        search.x, search.y = search.best.x, search.best.y
        return StopReason.NOT_A_NUMBER, done
    return StopReason.COMPLETED, search.objective.work


def _steps(
    search: Search, name: str, seed: int, smart_start: SmartStart | None, start: Positions | None
) -> Iterator[Progress]:
    """Return the steps of the recipe of this name."""
    recipe = RECIPES.get(name)
    if recipe is None:
        raise InputError(
            f"recipe is {name!r}; expected one of {', '.join(RECIPES)}, or your own function as 'module:function'"
        )
    if (start is not None) != (recipe.takes == "start"):
        raise InputError(f"recipe {name!r} and start {'missing' if start is None else 'given'}; expected both or none")
    if smart_start is not None and recipe.takes != "smart_start":
        raise InputError(f"smart_start is given with the recipe {name!r}, which has no use for it; expected none")
    given = Given(seed, smart_start, None if start is None else _feasible_start(search.problem, start))
    placing = imported(recipe.placing, "recipe", "function")(search, given)
    return itertools.chain(placing, recipes.refined(search)) if recipe.refines else placing


def _feasible_start(problem: LayoutProblem, start: Positions) -> tuple[Array, Array]:
    x, y = _pair(problem, start, "start is")
    violation = problem.violation(x, y)
    if not violation.is_feasible:
        raise InputError(
            f"start is not feasible: {violation}; expected all inside and far enough apart: problem.repaired(x, y) "
            "moves them so (on the command line: --repair-start)"
        )
    return x, y


def _pair(problem: LayoutProblem, layout: object, what: str) -> tuple[Array, Array]:
    """The x and y of somebody's layout: a tuple, a list or an array of two rows."""
    if not (isinstance(layout, tuple | list | np.ndarray) and len(layout) == 2):
        raise InputError(f"{what} {layout!r:.60}; expected a pair of x and y")
    return problem.positions(layout[0], layout[1])


def _check(problem: object, seed: object, effort: object, work: object, smart_start: object, callback: object) -> None:
    if not isinstance(problem, LayoutProblem):
        raise InputError(f"problem is {problem!r:.60}; expected a LayoutProblem")
    if isinstance(seed, bool) or not (isinstance(seed, int | np.integer) and 0 <= seed <= LARGEST_SEED):
        raise InputError(f"seed is {seed!r}; expected a whole number from 0 to {LARGEST_SEED}")
    if not (isinstance(effort, str) and effort in EFFORTS):
        raise InputError(f"effort is {effort!r}; expected one of {', '.join(EFFORTS)}")
    if work is not None and (isinstance(work, bool) or not (isinstance(work, int | np.integer) and work >= 1)):
        raise InputError(f"work is {work!r}; expected a whole number of pair evaluations, 1 or more")
    if smart_start is not None and not isinstance(smart_start, SmartStart):
        raise InputError(f"smart_start is {smart_start!r:.60}; expected SmartStart(grid_size, random_pct)")
    if callback is not None and not callable(callback):
        raise InputError(f"callback is {callback!r:.60}; expected a function of a Progress")


def _custom_function(recipe: object, unseen: Mapping[str, object]) -> Own | None:
    """Return the custom function that the recipe is or names, if any. unseen: arguments that it would not see."""
    if not (callable(recipe) or isinstance(recipe, str)):
        raise InputError(f"recipe is {recipe!r:.60}; expected a name, or a function (problem, seed) -> (x, y)")
    if isinstance(recipe, str) and ":" not in recipe:
        return None
    function: Own = imported(recipe, "recipe", "function") if isinstance(recipe, str) else recipe
    for name, given in unseen.items():
        if given is not None:
            raise InputError(f"{name} is given with a recipe of your own, which would not see it; expected neither")
    return function


def _objective(objective: object, problem: LayoutProblem) -> ObjectiveFunction:
    """Return what is maximised, made with the problem."""
    made: Any = objective
    if isinstance(objective, str):
        path = objective if ":" in objective else OBJECTIVES.get(objective)
        if path is None:
            known = ", ".join(OBJECTIVES)
            raise InputError(f"objective is {objective!r}; expected one of {known}, or your own as 'module:Class'")
        made = imported(path, "objective", "Class")
    is_one = callable(made) and all(callable(getattr(made, method, None)) for method in ("value", "gradient"))
    if not is_one:
        raise InputError(f"objective is {objective!r:.100}; expected a class with the methods value and gradient")
    return cast(ObjectiveFunction, made(problem))


def _name(given: object) -> str:
    return given if isinstance(given, str) else str(getattr(given, "__qualname__", type(given).__qualname__))


def _placed_by(custom: Own, search: Search, seed: int) -> Iterator[Progress]:
    """Take the answer of a custom recipe as it is; there are no steps to tell of."""
    search.begin("own")
    x, y = _pair(search.problem, custom(search.problem, seed), "the recipe's function returned")
    violation = search.problem.violation(x, y)
    if not violation.is_feasible:
        raise InfeasibleError(f"the layout of the recipe's function is not feasible: {violation}")
    search.x, search.y = x, y
    search.keep(x, y)
    yield from ()


def _solution(search: Search, reason: StopReason, work: int) -> Solution:
    """The best layout, measured anew."""
    problem = search.problem
    placed = len(search.x)
    if placed < problem.n_turbines:
        recipes.fill(search)
        search.notes.append(f"stopped after {placed} turbines were placed; the others were placed at random")
    elif reason is not StopReason.COMPLETED:
        search.offer(search.x, search.y)  # where it was interrupted may be better than all before
    search.end_phase()
    if search.best is None:
        raise InfeasibleError(_no_room(problem))
    x, y = search.best.x, search.best.y
    violation = problem.violation(x, y)
    if not violation.is_feasible:
        raise InfeasibleError(
            f"the best layout is not feasible: {violation}; this is a fault in leeward: please report"
        )
    simulation = problem.farm.simulate(x, y)
    return Solution(
        x=x,
        y=y,
        aep_gwh=simulation.total_aep_gwh,
        wake_loss=simulation.total_wake_loss,
        min_spacing_m=problem.min_spacing_m(x, y),
        stop_reason=reason,
        steps=search.steps,
        work=work,
        seconds=0.0,
        phases=tuple(search.phases),
        start=None if search.start is None else (search.start.x, search.start.y),
        notes=(*problem.area.notes, *search.notes),
        value=search.best_value,
    )


def _no_room(problem: LayoutProblem) -> str:
    fit = len(starts.densest_lattice(problem)[0])
    apart = float(problem.min_distances_m.max())
    return (
        f"no feasible layout of {problem.n_turbines} turbines was found in {problem.area.area_m2 / 1e6:.6g} km2: "
        f"{fit} stand on a triangular lattice {apart:g} m apart, and more than {problem.most_turbines} cannot fit; "
        "expected fewer turbines, a smaller spacing or a larger area"
    )
