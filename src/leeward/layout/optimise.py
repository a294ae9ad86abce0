"""One call from a problem and a seed to a layout that satisfies every constraint: the driver of the recipes."""

import enum
import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leeward.errors import InfeasibleError, InputError, NotANumberError
from leeward.layout import recipes, starts
from leeward.layout.objective import Objective
from leeward.layout.problem import LayoutProblem
from leeward.layout.recipes import EFFORTS, Phase, Progress, Search
from leeward.layout.smart_start import SmartStart
from leeward.wind.checks import positive

Array = npt.NDArray[np.float64]
Positions = tuple[npt.ArrayLike, npt.ArrayLike] | list[npt.ArrayLike] | Array  # x and y
Own = Callable[[LayoutProblem, int], Positions]
Watch = Callable[[Progress], bool | None]

RECIPES = ("smart_start+refine", "smart_start", "random+refine", "random", "start+refine", "start")
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
    any and if feasible. notes: what else is worth knowing, in sentences.
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


def optimise(
    problem: LayoutProblem,
    seed: int,
    *,
    recipe: str | Own = "smart_start+refine",
    effort: str = "normal",
    time_budget_s: float | None = None,
    work: int | None = None,
    smart_start: SmartStart | None = None,
    start: Positions | None = None,
    watch: Watch | None = None,
) -> Solution:
    """The best layout that a recipe finds.

    recipe: "smart_start+refine"; "smart_start" alone; "random+refine" or "random", from turbines placed at random;
    "start+refine", from the layout `start` (x, y), or "start", which only measures it; or somebody's own function
    (problem, seed) -> (x, y), also by its name "module:function". smart_start: options of SmartStart.
    effort: "fast", "normal" or "thorough", an amount of work that does not depend on the clock: results can be
    reproduced. Instead of it, the refinement can end after `time_budget_s` seconds, or after `work` pair evaluations;
    then the effort only says how long the descents are.
    watch: called after every step; the optimisation stops when it returns something true.
    """
    began = time.perf_counter()
    _check(problem, seed, effort, work, smart_start, watch)
    own = _own_function(recipe)
    objective = Objective(problem)
    nowhere = np.empty(0)
    search = Search(problem, objective, np.random.default_rng(seed), EFFORTS[effort], nowhere, nowhere)
    end = None
    if time_budget_s is not None:
        if work is not None:
            raise InputError("time_budget_s and work are both given; expected one of them, or none")
        end = began + positive(time_budget_s, "time_budget_s")
    if own is not None:
        for name, given in (("start", start), ("smart_start", smart_start), ("time_budget_s", end), ("work", work)):
            if given is not None:
                raise InputError(f"{name} is given with a recipe of your own, which would not see it; expected neither")
        _use_own(search, own, seed)
        reason, done = StopReason.COMPLETED, objective.work
    else:
        search.limit = NO_LIMIT if end is not None else work
        reason, done = _drive(search, _steps(search, str(recipe), smart_start, start, seed), end, watch)
    solution = _solution(search, reason, done)
    name = recipe if isinstance(recipe, str) else getattr(recipe, "__qualname__", type(recipe).__qualname__)
    return replace(solution, seconds=time.perf_counter() - began, recipe=name, effort=effort, seed=int(seed))


def _drive(search: Search, steps: Iterator[Progress], end: float | None, watch: Watch | None) -> tuple[StopReason, int]:
    """Go on until the recipe, the work, the time or the watcher ends it; the work done until then."""
    done = 0
    try:
        for progress in steps:
            started, done = progress.work > done, progress.work
            if watch is not None and watch(progress):
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
    search: Search, recipe: str, options: SmartStart | None, start: Positions | None, seed: int
) -> Iterator[Progress]:
    """The recipe of this name."""
    if recipe not in RECIPES:
        raise InputError(
            f"recipe is {recipe!r}; expected one of {', '.join(RECIPES)}, or your own function as 'module:function'"
        )
    first, _, refine = recipe.partition("+")
    if (start is not None) != (first == "start"):
        raise InputError(
            f"recipe {recipe!r} and start {'missing' if start is None else 'given'}; expected both or none"
        )
    if options is not None and first != "smart_start":
        raise InputError(f"smart_start is given with the recipe {recipe!r}, which has no use for it; expected none")
    if start is not None:
        placing = recipes.placed_as_given(search, *_feasible_start(search.problem, start))
    elif first == "smart_start":
        placing = recipes.placed_smartly(search, options or SmartStart(), seed)
    else:
        placing = recipes.placed_at_random(search)

    def both() -> Iterator[Progress]:
        yield from placing
        if refine:
            yield from recipes.refined(search)

    return both()


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


def _check(problem: object, seed: object, effort: object, work: object, smart_start: object, watch: object) -> None:
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
    if watch is not None and not callable(watch):
        raise InputError(f"watch is {watch!r:.60}; expected a function of a Progress")


def _own_function(recipe: object) -> Own | None:
    """Somebody's own optimiser, if the recipe is one."""
    if callable(recipe):
        return recipe
    if not isinstance(recipe, str):
        raise InputError(f"recipe is {recipe!r:.60}; expected a name, or a function (problem, seed) -> (x, y)")
    module, colon, name = recipe.partition(":")
    if not colon:
        return None
    if not (module and all(part.isidentifier() for part in module.split("."))):
        raise InputError(f"recipe {recipe!r} has no name of a module before the colon; expected 'module:function'")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(f"recipe {recipe!r} cannot be imported ({error}); expected 'module:function'") from error
    function: Own | None = getattr(found, name, None)
    if not callable(function):
        raise InputError(f"recipe {recipe!r}: {module} has no function {name!r}; expected (problem, seed) -> (x, y)")
    return function


def _use_own(search: Search, own: Own, seed: int) -> None:
    """Take the answer of somebody's own optimiser as it is."""
    search.begin("own")
    answer = own(search.problem, seed)
    x, y = _pair(search.problem, answer, "the recipe's function returned")
    violation = search.problem.violation(x, y)
    if not violation.is_feasible:
        raise InfeasibleError(f"the layout of the recipe's function is not feasible: {violation}")
    search.x, search.y = x, y
    search.keep(x, y)


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
    )


def _no_room(problem: LayoutProblem) -> str:
    fit = len(starts.densest_lattice(problem)[0])
    apart = float(problem.room.max())
    return (
        f"no feasible layout of {problem.n_turbines} turbines was found in {problem.area.area_m2 / 1e6:.6g} km2: "
        f"{fit} stand on a triangular lattice {apart:g} m apart, and more than {problem.most_turbines} cannot fit; "
        "expected fewer turbines, a smaller spacing or a larger area"
    )
