"""The driver of the recipes: from a problem and a seed to a layout that satisfies every constraint."""

import enum
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from leeward.deprecation import renamed_argument
from leeward.errors import InfeasibleError, InputError, NotANumberError
from leeward.layout import recipes, starts
from leeward.layout.objective import Objective, ObjectiveFunction
from leeward.layout.problem import LayoutProblem
from leeward.layout.recipes import EFFORTS, Given
from leeward.layout.registry import OBJECTIVES, RECIPES, Recipe
from leeward.layout.search import Asking, Phase, Progress, Request, Search, Steps, result_of
from leeward.layout.smart_start import SmartStart
from leeward.lazy import import_named
from leeward.wind.checks import positive

Array = npt.NDArray[np.float64]
Positions = tuple[npt.ArrayLike, npt.ArrayLike] | list[npt.ArrayLike] | Array  # x and y
CustomRecipe = Callable[[LayoutProblem, int], Positions]
OnStep = Callable[[Progress], bool | None]

LARGEST_SEED = 2**32 - 1  # the largest seed of TopFarm's random generator
NO_LIMIT = 2**63


class StopReason(enum.Enum):
    """The reason why an optimisation ended; the value is a sentence."""

    COMPLETED = "the recipe is complete"
    WORK_DONE = "the work budget is spent"
    TIME_UP = "the time budget is spent"
    REQUESTED = "a stop was requested"
    NOT_A_NUMBER = "a computation gave a value that is not finite; this is the best layout before it"


@dataclass(frozen=True, eq=False)
class Solution:
    """A layout that satisfies all constraints, and how it was found.

    x, y: metres, in the coordinates of the area. aep_gwh, wake_loss (a share): on the full rose. min_spacing_m: of the
    closest two turbines, neighbours included. steps: calls of the callback. work: pair evaluations until it stopped;
    after WORK_DONE and TIME_UP the same problem, recipe, effort and seed with this `work` give the same layout to the
    last bit. phases: name, seconds and best AEP at the end of each. start: x and y of the layout that was refined, or
    None if there was none or it was infeasible. notes: remarks in sentences. value: objective on the full rose.
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
    recipe: str | CustomRecipe = "smart_start+refine",
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
    objective: "aep"; or a custom class with the methods of `ObjectiveFunction`, called with the problem, also by its
    name "module:Class".
    effort: "fast", "normal" or "thorough", an amount of work that does not depend on the clock: results can be
    reproduced. Alternatively the refinement ends after `time_budget_s` seconds, or after `work` pair evaluations; then
    the effort only sets the length of the descents.
    callback: called after every step with a Progress; the optimisation stops when it returns a true value.
    """
    began = time.perf_counter()
    check(problem, seed, effort, work, smart_start, callback)
    if time_budget_s is not None and work is not None:
        raise InputError("time_budget_s and work are both given; give one or the other, not both")
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
        steps = steps_of(search, str(recipe), seed, smart_start, start)
    solution = result_of(solved(search, steps, end, callback))
    return replace(
        solution,
        seconds=time.perf_counter() - began,
        recipe=_name(recipe),
        objective=_name(objective),
        effort=effort,
        seed=int(seed),
    )


def solved(
    search: Search, steps: Steps[None], end: float | None = None, callback: OnStep | None = None
) -> Asking[Solution]:
    """Run the steps until they end or have to stop. Return the best layout. end: on the clock, s."""
    reason, work = yield from _drive(search, steps, end, callback)
    return (yield from _solution(search, reason, work))


def _drive(
    search: Search, steps: Steps[None], end: float | None, callback: OnStep | None
) -> Asking[tuple[StopReason, int]]:
    """Run the steps, and pass their requests on. Return the reason why they ended, and the work until then."""
    done, answer = 0, None
    try:
        while True:
            try:
                progress = steps.send(answer)
            except StopIteration:
                return StopReason.COMPLETED, search.objective.work
            answer = None
            if isinstance(progress, Request):
                answer = yield progress
                continue
            started, done = progress.work > done, progress.work
            if callback is not None and callback(progress):
                return StopReason.REQUESTED, done
            # only if the step did work, so that the same work budget stops at the same step
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


def steps_of(
    search: Search, name: str, seed: int, smart_start: SmartStart | None, start: Positions | None
) -> Steps[None]:
    """Return the steps of the recipe of this name."""
    recipe = recipe_of(name, smart_start, start)
    given = Given(seed, smart_start, None if start is None else _feasible_start(search.problem, start))
    placing = import_named(recipe.placing, "recipe")(search, given)
    return recipes.improved(search, placing) if recipe.refines else placing


def recipe_of(name: str, smart_start: SmartStart | None, start: Positions | None) -> Recipe:
    """Return the recipe of this name, or raise InputError if it does not exist or does not use these arguments."""
    recipe = RECIPES.get(name)
    if recipe is None:
        raise InputError(f"recipe is {name!r}; expected one of {', '.join(RECIPES)}, or a custom 'module:function'")
    if (start is not None) != (recipe.takes == "start"):
        problem = "needs a start layout; give start" if start is None else "does not use a start layout; remove start"
        raise InputError(f"recipe {name!r} {problem}")
    if smart_start is not None and recipe.takes != "smart_start":
        raise InputError(f"smart_start is given, but the recipe {name!r} does not use it; remove it")
    return recipe


def _feasible_start(problem: LayoutProblem, start: Positions) -> tuple[Array, Array]:
    x, y = _pair(problem, start, "start is")
    violation = problem.violation(x, y)
    if not violation.is_feasible:
        raise InputError(
            f"start is not feasible: {violation}; problem.repaired(x, y) moves the turbines to feasible "
            "positions (on the command line: --repair-start)"
        )
    return x, y


def _pair(problem: LayoutProblem, layout: object, what: str) -> tuple[Array, Array]:
    """Return x and y of a layout: a tuple, a list or an array of two rows."""
    if not (isinstance(layout, tuple | list | np.ndarray) and len(layout) == 2):
        raise InputError(f"{what} {layout!r:.60}; expected a pair of x and y")
    return problem.positions(layout[0], layout[1])


def check(
    problem: object, seed: object, effort: object, work: object, smart_start: object, callback: object = None
) -> None:
    """Raise InputError unless `optimise` accepts these arguments."""
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


def _custom_function(recipe: object, unseen: Mapping[str, object]) -> CustomRecipe | None:
    """Return the custom function of the recipe, or None. unseen: arguments that such a function cannot use."""
    if not (callable(recipe) or isinstance(recipe, str)):
        raise InputError(f"recipe is {recipe!r:.60}; expected a name, or a function (problem, seed) -> (x, y)")
    if isinstance(recipe, str) and ":" not in recipe:
        return None
    function: CustomRecipe = import_named(recipe, "recipe") if isinstance(recipe, str) else recipe
    for name, given in unseen.items():
        if given is not None:
            raise InputError(f"{name} is given, but a custom recipe cannot use it; remove it")
    return function


def _objective(objective: object, problem: LayoutProblem) -> ObjectiveFunction:
    """Return the objective function for the problem."""
    factory: Any = objective
    if isinstance(objective, str):
        path = objective if ":" in objective else OBJECTIVES.get(objective)
        if path is None:
            known = ", ".join(OBJECTIVES)
            raise InputError(f"objective is {objective!r}; expected one of {known}, or a custom 'module:Class'")
        factory = import_named(path, "objective")
    if not callable(factory) or not all(callable(getattr(factory, name, None)) for name in ("value", "gradient")):
        raise InputError(f"objective is {objective!r:.100}; expected a class with the methods value and gradient")
    return cast(ObjectiveFunction, factory(problem))


def _name(given: object) -> str:
    return given if isinstance(given, str) else str(getattr(given, "__qualname__", type(given).__qualname__))


def _placed_by(custom: CustomRecipe, search: Search, seed: int) -> Steps[None]:
    """Call a custom recipe, which has no steps, and keep its layout."""
    search.begin("own")
    x, y = _pair(search.problem, custom(search.problem, seed), "the recipe's function returned")
    violation = search.problem.violation(x, y)
    if not violation.is_feasible:
        raise InfeasibleError(f"the layout of the recipe's function is not feasible: {violation}")
    search.x, search.y = x, y
    yield from search.kept(x, y)


def _solution(search: Search, reason: StopReason, work: int) -> Asking[Solution]:
    """Return the best layout, simulated on the full rose."""
    problem = search.problem
    placed = len(search.x)
    if placed < problem.n_turbines:
        yield from recipes.fill(search)
        search.notes.append(f"stopped after {placed} turbines were placed; the others were placed at random")
    elif reason is not StopReason.COMPLETED:
        yield from search.offered(search.x, search.y)  # the current layout may be the best one
    search.end_phase()
    if search.best is None:
        raise InfeasibleError(_no_room(problem))
    x, y = search.best.x, search.best.y
    violation = problem.violation(x, y)
    if not violation.is_feasible:
        raise InfeasibleError(
            f"the best layout is not feasible: {violation}; this is a bug in leeward: please report it"
        )
    aep, wake_loss = yield from search.measured(x, y)
    return Solution(
        x=x,
        y=y,
        aep_gwh=aep,
        wake_loss=wake_loss,
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
        f"{fit} fit on a triangular lattice {apart:g} m apart, and more than {problem.most_turbines} cannot fit; "
        "use fewer turbines, a smaller spacing or a larger area"
    )
