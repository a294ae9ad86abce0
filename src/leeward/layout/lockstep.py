"""Many optimisations in lock step: their computations of one kind run together, for example on a GPU.

Every task is the same recipe as in `optimise`. Its search yields requests; a backend computes those of many tasks at
once.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from leeward.errors import InputError
from leeward.layout.descent import Descent, DescentState
from leeward.layout.driver import Solution, check, recipe_of, solved, steps_of
from leeward.layout.objective import Objective
from leeward.layout.problem import TOLERANCE_M, LayoutProblem
from leeward.layout.recipes import EFFORTS
from leeward.layout.registry import RECIPES
from leeward.layout.search import Array, Asking, Pair, Request, Search, Steps
from leeward.layout.smart_start import SmartStart

R = TypeVar("R", bound=Request)
Batch = Sequence[tuple["BatchedSearch", R]]


@dataclass(frozen=True, eq=False)
class Place(Request):
    """Place turbines by SmartStart."""

    options: SmartStart
    seed: int


class Placed(NamedTuple):
    """x, y: of the turbines that fit, m. places: the number of free points of the grid before each of them."""

    x: Array
    y: Array
    places: Sequence[int]


@dataclass(frozen=True, eq=False)
class Relocate(Request):
    """Move up to `count` turbines, as `relocate` does, with random numbers of the search."""

    x: Array
    y: Array
    count: int
    chance: float


class Relocated(NamedTuple):
    """x, y: m. which: indices of the turbines moved. places: for each turbine tried, the number of free candidates."""

    x: Array
    y: Array
    which: list[int]
    places: Sequence[int]


@dataclass(frozen=True, eq=False)
class Repair(Request):
    """Push turbines apart and inside, as `LayoutProblem.repaired` does."""

    x: Array
    y: Array


class Repaired(NamedTuple):
    """x, y: m. worst_m: the worst violation that is left, m."""

    x: Array
    y: Array
    worst_m: float


@dataclass(frozen=True, eq=False)
class Estimate(Request):
    """Compute the AEP (GWh) of each layout on the proposing rose."""

    layouts: Sequence[Pair]


@dataclass(frozen=True, eq=False)
class Judge(Request):
    """Compute the AEP (GWh) on the judging rose."""

    x: Array
    y: Array


@dataclass(frozen=True, eq=False)
class Full(Request):
    """Compute the AEP (GWh) on the full rose."""

    x: Array
    y: Array


@dataclass(frozen=True, eq=False)
class Measure(Request):
    """Compute the AEP of the final layout on the full rose, and its wake loss."""

    x: Array
    y: Array


class Measured(NamedTuple):
    """aep_gwh: GWh. wake_loss: the share of the energy without wakes."""

    aep_gwh: float
    wake_loss: float


@dataclass(frozen=True, eq=False)
class Descend(Request):
    """Take so many more steps of a descent, with random numbers of the search."""

    state: DescentState
    settings: Descent
    steps: int


class Backend(Protocol):
    """The computations of many tasks. Each method returns one answer for each request, in their order.

    An answer may be an exception, which ends its task as it would end `optimise`. The requests of a call may differ in
    everything except `Descend.settings.judged`. `BatchedSearch.task` identifies the task. The backend draws random
    numbers from `BatchedSearch.rng` and counts no work.
    """

    def place(self, batch: Batch[Place]) -> Sequence[Placed | Exception]: ...

    def relocate(self, batch: Batch[Relocate]) -> Sequence[Relocated | Exception]: ...

    def repair(self, batch: Batch[Repair]) -> Sequence[Repaired | Exception]: ...

    def estimate(self, batch: Batch[Estimate]) -> Sequence[Sequence[float] | Exception]: ...

    def judge(self, batch: Batch[Judge]) -> Sequence[float | Exception]: ...

    def full(self, batch: Batch[Full]) -> Sequence[float | Exception]: ...

    def measure(self, batch: Batch[Measure]) -> Sequence[Measured | Exception]: ...

    def descend(self, batch: Batch[Descend]) -> Sequence[DescentState | Exception]:
        """Return the state after the steps. Its aep_gwh must be NaN if any step gave a value that is not finite."""


METHODS: dict[type[Request], str] = {  # those computed first come first
    Place: "place",
    Relocate: "relocate",
    Repair: "repair",
    Estimate: "estimate",
    Judge: "judge",
    Full: "full",
    Measure: "measure",
    Descend: "descend",
}


@dataclass
class BatchedSearch(Search):
    """A search that asks for all computations that take long, and counts their work. task: its index."""

    task: int = 0

    def place(self, options: SmartStart, seed: int) -> Steps[None]:
        """Place turbines by SmartStart; the result is the current layout, which may lack turbines."""
        found: Placed = yield Place(options, seed)
        for standing, places in enumerate(found.places):
            self.objective.work += self.objective.map_work(int(places) + standing)
            self.x, self.y = found.x[: standing + 1], found.y[: standing + 1]
            yield self.progress(float("nan"), 0.0)

    def advance(self, settings: Descent, state: DescentState, steps: int) -> Steps[DescentState]:
        """Return the state after more steps of a descent. The last step of a request may be the one to stop after."""
        each = self.objective.judged_step_work if settings.judged else self.objective.step_work
        end = state.step + steps
        while state.step < end:
            count = end - state.step
            if self.limit is not None:
                count = max(1, min(count, -((self.objective.work - self.limit) // each)))
            state = yield Descend(state, settings, count)
            self.objective.work += count * each
            yield self.stepped(state, count)
        return state

    def relocate(self, x: Array, y: Array, count: int, chance: float) -> Asking[tuple[Array, Array, list[int]]]:
        """Return the layout with up to `count` turbines moved, and their indices."""
        found: Relocated = yield Relocate(x, y, count, chance)
        self.objective.work += self.objective.worth_work
        self.objective.work += sum(self.objective.gain_work(int(places)) for places in found.places if places)
        return found.x, found.y, found.which

    def repair(self, x: Array, y: Array) -> Asking[tuple[Array, Array, bool]]:
        """Return the repaired layout, and whether it is feasible."""
        found: Repaired = yield Repair(x, y)
        return found.x, found.y, found.worst_m <= TOLERANCE_M

    def judge(self, x: Array, y: Array) -> Asking[tuple[float, float]]:
        """Return objective and AEP (GWh) on the judging rose."""
        aep: float = yield Judge(x, y)
        self.objective.work += self.objective.judge_work
        return self.objective.valued(x, y, aep)

    def full(self, x: Array, y: Array, judged: tuple[float, float]) -> Asking[tuple[float, float]]:
        """Return objective and AEP (GWh) on the full rose. judged: the result of `judge`."""
        if self.objective.judges_on_the_full_rose:
            return judged
        aep: float = yield Full(x, y)
        self.objective.work += self.objective.full_work
        return self.objective.valued(x, y, aep)

    def measured(self, x: Array, y: Array) -> Asking[tuple[float, float]]:
        """Return AEP (GWh) and wake loss of the final layout."""
        found: Measured = yield Measure(x, y)
        return found

    def estimate(self, layouts: Sequence[Pair]) -> Asking[list[float]]:
        """Return a cheap estimate of the objective of each layout."""
        found: Sequence[float] = yield Estimate(layouts)
        self.objective.work += len(layouts) * self.objective.estimate_work
        return [self.objective.valued(*layout, aep)[0] for layout, aep in zip(layouts, found, strict=True)]


def optimise_all(
    problems: Sequence[LayoutProblem],
    seeds: Sequence[int],
    *,
    backend: Backend,
    recipe: object = "smart_start+refine",
    objective: object = "aep",
    effort: str = "normal",
    time_budget_s: float | None = None,
    work: int | None = None,
    smart_start: SmartStart | None = None,
) -> Iterator[tuple[int, Solution | Exception]]:
    """Yield the index of each task and its solution, or the exception that ended it, as soon as the task is done.

    A task is a problem and its seed. The other arguments are those of `optimise`; custom recipes, recipes that start
    from a layout, custom objectives and time budgets raise InputError. Tasks of the same LayoutProblem share its wind
    roses.
    """
    known = [name for name, entry in RECIPES.items() if entry.takes != "start"]
    if not (isinstance(recipe, str) and recipe in known):
        raise InputError(f"recipe is {recipe!r:.60}; expected one of {', '.join(known)} for tasks in lock step")
    if objective != "aep":
        raise InputError(f"objective is {objective!r:.60}; expected 'aep' for tasks in lock step")
    if time_budget_s is not None:
        raise InputError(f"time_budget_s is {time_budget_s!r:.60}; remove it for tasks in lock step, or give work")
    recipe_of(recipe, smart_start, None)
    if len(problems) != len(seeds):
        raise InputError(f"there are {len(problems)} problems and {len(seeds)} seeds; expected a seed for each problem")
    for problem, seed in zip(problems, seeds, strict=True):
        check(problem, seed, effort, work, smart_start)
    shared = {id(problem): Objective(problem) for problem in problems}
    tasks = {}
    for i, (problem, seed) in enumerate(zip(problems, seeds, strict=True)):
        rng, nowhere = np.random.default_rng(seed), np.empty(0)
        search = BatchedSearch(problem, shared[id(problem)], rng, EFFORTS[effort], nowhere, nowhere, limit=work, task=i)
        tasks[i] = _Task(search, _solution(search, recipe, effort, seed, smart_start))
    return _outcomes(tasks, backend)


def _solution(
    search: BatchedSearch, recipe: str, effort: str, seed: int, smart_start: SmartStart | None
) -> Asking[Solution]:
    """Return the solution of a task."""
    began = time.perf_counter()
    search.objective = search.objective.fresh()
    solution = yield from solved(search, steps_of(search, recipe, seed, smart_start, None))
    return replace(solution, seconds=time.perf_counter() - began, recipe=recipe, effort=effort, seed=int(seed))


class _Task:
    """A task that runs. request: what it waits for."""

    def __init__(self, search: BatchedSearch, asking: Asking[Solution]) -> None:
        self.search = search
        self.request = Request()
        self._asking = asking

    def resume(self, answer: Any) -> Solution | Exception | None:
        """Send the answer. Return the outcome of the task, or None if it waits for another request."""
        try:
            failed = isinstance(answer, Exception)
            self.request = self._asking.throw(answer) if failed else self._asking.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        except Exception as error:  # it ends only this task
            return error
        return None


def _outcomes(tasks: dict[int, _Task], backend: Backend) -> Iterator[tuple[int, Solution | Exception]]:
    """Run the tasks. Requests of one kind are computed together.

    Descents come last, those of most tasks first: while some tasks wait, the others reach their next descent.
    """
    waiting: dict[tuple[int, bool], list[int]] = {}
    answers: list[tuple[int, Any]] = [(i, None) for i in tasks]
    while answers:
        for i, answer in answers:
            outcome = tasks[i].resume(answer)
            if outcome is None:
                waiting.setdefault(_kind(tasks[i].request), []).append(i)
            else:
                del tasks[i]
                yield i, outcome
        answers = []
        if waiting:
            kind = min(waiting, key=lambda kind: (kind[0], -len(waiting[kind])))
            together = waiting.pop(kind)
            batch = [(tasks[i].search, tasks[i].request) for i in together]
            compute = getattr(backend, METHODS[type(batch[0][1])])
            answers = list(zip(together, compute(batch), strict=True))


def _kind(request: Request) -> tuple[int, bool]:
    """Return the place of the request in the order of kinds, and whether it is a descent on the judging rose."""
    return list(METHODS).index(type(request)), isinstance(request, Descend) and request.settings.judged
