"""Recipes: generators that find a layout from a seed and yield after every step, so that a driver can stop them.

The `Search` holds the best feasible layout so far, and the current one.
"""

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leeward.errors import NotANumberError
from leeward.layout import descent, smart_start, starts
from leeward.layout.descent import Descent
from leeward.layout.objective import Objective
from leeward.layout.problem import LayoutProblem
from leeward.layout.relocation import relocate
from leeward.layout.smart_start import SmartStart

Array = npt.NDArray[np.float64]


class Given(NamedTuple):
    """The arguments of a recipe besides the problem. start: x and y of a feasible layout, m."""

    seed: int
    smart_start: SmartStart | None = None
    start: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class Effort:
    """The work of a refinement, in steps of stochastic descent.

    longest_descent: the most steps of one descent. polish_steps: on the judging rose, after the descents.
    """

    steps: int
    longest_descent: int
    polish_steps: int


EFFORTS = {"fast": Effort(500, 300, 10), "normal": Effort(2200, 1000, 30), "thorough": Effort(18000, 2200, 30)}

# lengths are shares of the mean spacing, see `LayoutProblem.mean_spacing_m`
FIRST_STEP = 0.06
HOP_STEP = 0.02
SMALL_ROSE_STEPS = 200  # of the longest descent that uses a whole wind rose at every step
SMALL_ROSE_POLISH_STEPS = 60
HOP_STEPS = 100
POLISH_STEP = 0.005
POLISH_PENALTY = 1.0
HOP_POLISH_STEPS = 20
PATIENCE = 4  # hops without success, then new starts
PROMISING = 2 / 3  # quantile: hop only from descents that ended at least as well
RELOCATE_EVERY = 75  # steps, in the middle of a descent
RELOCATED = 0.06  # share of the turbines

LATTICES = 50  # drawn for a new start, which uses the best one
RACING = 0.8  # share of the work for one race, by which the number of starts is chosen
RACE_ENDS = 0.9  # share of the work after which a race starts no further descent
MOST_STARTS = 32
FEWEST_STARTS = 4  # fewer are no race
FIRST_ROUND, LATER_ROUNDS = 4, 2  # steps of a round of a race: the longest descent divided by this
KEPT = 4  # one start of so many continues in the next round
RACE_STEPS = 0.4  # steps for each start of a race, all rounds together, as a share of the longest descent
MOST_RACED = 30  # turbines: in larger farms on smooth wind roses, one long descent is better

DESCENT, RACE, POLISH, SEARCH = "descent", "race", "polish", "search"  # phases of a refinement
MANY_DESCENTS = (RACE, SEARCH)  # phases in which the best of many descents is kept


@dataclass(frozen=True)
class Progress:
    """The state of an optimisation after a step.

    aep_gwh: estimate for the current layout, feasible or not, from a sample of the wind or a coarse rose (NaN while
    turbines are being placed). violation_m: its worst violation of a constraint. best_aep_gwh: of the best feasible
    layout so far, on the full rose (NaN before there is one). work: pair evaluations so far.
    """

    step: int
    phase: str
    aep_gwh: float
    violation_m: float
    best_aep_gwh: float
    work: int


@dataclass(frozen=True)
class Phase:
    """One part of a recipe: its name, its duration, and the best AEP on the full rose at its end."""

    name: str
    seconds: float = 0.0
    aep_gwh: float = float("nan")


@dataclass(frozen=True)
class Layout:
    """A feasible layout (m), its objective as judged on a coarse rose, and its AEP (GWh) there."""

    x: Array
    y: Array
    judged: float
    judged_aep_gwh: float


@dataclass
class Search:
    """The data and the findings of a recipe.

    x, y: the current layout. limit: the work at which the driver stops; if None, refinement sets it from the effort,
    not counting the work of placing the turbines.
    """

    problem: LayoutProblem
    objective: Objective
    rng: np.random.Generator
    effort: Effort
    x: Array
    y: Array
    best: Layout | None = None
    best_value: float = float("nan")
    best_aep_gwh: float = float("nan")
    start: Layout | None = None
    judging_error: float = 0.0
    polish_gain: float = 0.0
    limit: int | None = None
    steps: int = 0
    phases: list[Phase] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _began: float = 0.0
    _began_with: float = float("nan")

    def begin(self, name: str) -> None:
        """End the current phase, and begin another."""
        self.end_phase()
        self.phases.append(Phase(name))
        self._began, self._began_with = time.perf_counter(), self.best_value

    def end_phase(self) -> None:
        """Record the duration and the best AEP of the current phase, and note if it did not improve the layout."""
        if self.phases:
            seconds = time.perf_counter() - self._began
            self.phases[-1] = replace(self.phases[-1], seconds=seconds, aep_gwh=self.best_aep_gwh)
            if self.best_value == self._began_with:
                self.notes.append(f"the phase {self.phases[-1].name!r} did not improve the layout")

    def progress(self, aep_gwh: float, violation_m: float) -> Progress:
        """Count a step, and return its progress."""
        self.steps += 1
        return Progress(self.steps, self.phases[-1].name, aep_gwh, violation_m, self.best_aep_gwh, self.objective.work)

    def placed(self) -> Progress:
        """Return the progress of the step that placed all turbines."""
        return self.progress(self.best_aep_gwh, self.problem.violation(self.x, self.y).worst_m)

    def offer(self, x: Array, y: Array) -> Layout | None:
        """Return the layout, repaired and judged, or None if it is infeasible. Keep the best one."""
        x, y = self.problem.repaired(x, y)
        return self.keep(x, y) if self.problem.violation(x, y).is_feasible else None

    def keep(self, x: Array, y: Array) -> Layout:
        """Judge a feasible layout, and keep it if it is the best so far on the full rose.

        The full rose is not asked if the judging rose tells that the layout is worse, by more than its last error.
        """
        layout = Layout(x, y, *self.objective.judge(x, y))
        if self.best is not None and layout.judged < self.best.judged - self.judging_error:
            return layout
        value, aep = self.objective.full(x, y, (layout.judged, layout.judged_aep_gwh))
        if self.best is not None:
            self.judging_error = abs(value - layout.judged - (self.best_value - self.best.judged))
        if self.best is None or value > self.best_value:
            self.best, self.best_value, self.best_aep_gwh = layout, value, aep
        return layout

    def descend(self, x: Array, y: Array, settings: Descent, relocate_every: int = 0) -> Iterator[Progress]:
        """Improve a layout by gradient steps; the result is the current layout."""
        state = descent.start(self.problem, x, y)
        count = max(1, round(RELOCATED * self.problem.n_turbines))
        while not descent.done(settings, state):
            in_the_middle = 0.1 * settings.steps <= state.step <= 0.75 * settings.steps
            if relocate_every and in_the_middle and state.step % relocate_every == 0:
                x, y, which = relocate(self.problem, self.objective, state.x, state.y, count, 0.3, self.rng)
                state = descent.moved(state, x, y, which)
            state = descent.step(self.problem, self.objective, settings, state, self.rng)
            if not np.isfinite(state.aep_gwh + state.x.sum() + state.y.sum()):
                raise NotANumberError(f"the descent gave a value that is not finite at step {state.step}")
            self.x, self.y = state.x, state.y
            yield self.progress(state.aep_gwh, state.violation_m)


def placed_smartly(search: Search, given: Given) -> Iterator[Progress]:
    """Place turbines by SmartStart, and at random those that do not fit on its grid."""
    options = given.smart_start or SmartStart()
    search.begin("smart_start")
    for layout in smart_start.place(search.problem, search.objective, options, given.seed):
        search.x, search.y = layout
        yield search.progress(float("nan"), 0.0)
    placed = len(search.x)
    missing = search.problem.n_turbines - placed
    if missing:
        search.notes.append(
            f"the SmartStart grid of {options.grid_size} points a side has places for {placed} of "
            f"{search.problem.n_turbines} turbines; the rest, {missing}, were placed at random (a larger grid_size has "
            "more places)"
        )
    fill(search)


def placed_at_random(search: Search, given: Given) -> Iterator[Progress]:
    """Place turbines at random, far enough from each other."""
    search.begin("random")
    fill(search)
    yield search.placed()


def fill(search: Search) -> None:
    """Place the missing turbines at random or, if they do not fit, all turbines on a dense lattice."""
    search.x, search.y = starts.fill_at_random(search.problem, search.x, search.y, search.rng)
    if search.offer(search.x, search.y) is None:
        x, y = starts.densest_lattice(search.problem)
        if len(x) >= search.problem.n_turbines:
            chosen = search.rng.permutation(len(x))[: search.problem.n_turbines]
            search.x, search.y = x[chosen], y[chosen]
            search.offer(search.x, search.y)
            search.notes.append("turbines placed one by one did not fit; the start is a dense lattice of all of them")


def placed_as_given(search: Search, given: Given) -> Iterator[Progress]:
    """Start from a given layout."""
    if given.start is None:
        raise TypeError("the recipe needs a start")
    search.begin("given")
    search.x, search.y = given.start
    search.keep(search.x, search.y)
    yield search.placed()


def refined(search: Search) -> Iterator[Progress]:
    """Improve the current layout until the driver stops it: the generator never ends."""
    search.start = search.best
    if search.limit is None:
        search.limit = search.objective.work + search.effort.steps * search.objective.effort_unit
    search.begin(RACE if affordable_starts(search) > 1 else DESCENT)
    layout = yield from descended(search, [(search.x, search.y)])
    search.begin(POLISH)
    layout = yield from polished(search, better(search.start, layout), polish_steps(search))
    search.begin(SEARCH)
    outcomes: list[float] = []
    while True:
        if layout is not None:
            outcomes.append(layout.judged)
            if layout.judged >= np.quantile(outcomes, PROMISING):
                yield from hops(search, layout)
        layout = yield from descended(search, [])
        layout = yield from polished(search, layout, polish_steps(search))


def descended(search: Search, given: list[tuple[Array, Array]]) -> Generator[Progress, None, Layout | None]:
    """Descend once from a start, or let several starts race; return the best layout. given: the first starts, or none.

    The other starts are lattices. In each round of a race, only the best layouts of the round before continue, with
    shorter steps.
    """
    count, longest = affordable_starts(search), longest_descent(search)
    settings = Descent(longest, FIRST_STEP * search.problem.mean_spacing_m)
    if count > 1:
        settings = replace(settings, steps=longest // FIRST_ROUND)
    end = search.objective.work + RACE_ENDS * search.effort.steps * search.objective.effort_unit
    found = []
    for i in range(count):
        if i > 0 and search.objective.work > end:
            break
        x, y = given[i] if i < len(given) else best_lattice(search)
        yield from search.descend(x, y, settings, RELOCATE_EVERY)
        found.append(search.offer(search.x, search.y))
    layouts = [layout for layout in found if layout is not None]
    while len(layouts) > 1:
        layouts = sorted(layouts, key=lambda layout: -layout.judged)[: max(1, len(layouts) // KEPT)]
        settings = replace(settings, steps=longest // LATER_ROUNDS, first_step_m=settings.first_step_m / 2)
        for i, layout in enumerate(layouts):
            if search.objective.work > end:
                return max(layouts, key=lambda layout: layout.judged)
            yield from search.descend(layout.x, layout.y, settings, RELOCATE_EVERY)
            layouts[i] = better(layout, search.offer(search.x, search.y)) or layout
    return max(layouts, key=lambda layout: layout.judged, default=None)


def longest_descent(search: Search) -> int:
    """Return the most steps of one descent."""
    return search.effort.longest_descent if search.objective.samples else SMALL_ROSE_STEPS


def polish_steps(search: Search) -> int:
    """Return the steps on the judging rose after a descent."""
    return search.effort.polish_steps if search.objective.samples else SMALL_ROSE_POLISH_STEPS


def affordable_starts(search: Search) -> int:
    """Return the number of starts that can race: many for a small farm or a small rose, 1 if a race does not pay."""
    objective = search.objective
    if objective.samples and search.problem.n_turbines > MOST_RACED:
        return 1
    each = RACE_STEPS * longest_descent(search) * objective.step_work + LATTICES * objective.lattice_work
    count = int(RACING * search.effort.steps * objective.effort_unit / each)
    return min(count, MOST_STARTS) if count >= FEWEST_STARTS else 1


def better(layout: Layout | None, other: Layout | None) -> Layout | None:
    """Return the better one of two layouts, the first if they are equal. None: infeasible."""
    if layout is None or other is None:
        return layout or other
    return other if other.judged > layout.judged else layout


def polished(search: Search, layout: Layout | None, steps: int) -> Generator[Progress, None, Layout | None]:
    """Descend on the judging rose, which is more accurate than that of other descents. Return the better layout."""
    if layout is None:
        return None
    settings = Descent(steps, POLISH_STEP * search.problem.mean_spacing_m, penalty=POLISH_PENALTY, judged=True)
    yield from search.descend(layout.x, layout.y, settings)
    there = search.offer(search.x, search.y)
    if there is None or there.judged <= layout.judged:
        return layout
    search.polish_gain = there.judged - layout.judged
    return there


def hops(search: Search, layout: Layout) -> Iterator[Progress]:
    """Relocate turbines and descend from there, until this fails several times in a row."""
    settings = Descent(HOP_STEPS, HOP_STEP * search.problem.mean_spacing_m)
    failures = 0
    while failures < PATIENCE:
        count = max(1, round(RELOCATED * search.problem.n_turbines * (1 + failures % 3) / 2))
        x, y, _ = relocate(search.problem, search.objective, layout.x, layout.y, count, 0.7, search.rng)
        yield from search.descend(x, y, settings)
        there = search.offer(search.x, search.y)
        within_reach = there is not None and there.judged + 1.5 * search.polish_gain > layout.judged
        if within_reach:
            there = yield from polished(search, there, HOP_POLISH_STEPS)
        if there is not None and there.judged > layout.judged:
            layout, failures = there, 0
        else:
            failures += 1


def best_lattice(search: Search) -> tuple[Array, Array]:
    """Return the best of many lattices, or turbines at random if no lattice fits."""
    lattices = [starts.random_lattice(search.problem, search.rng) for _ in range(LATTICES)]
    judged = [(search.objective.estimate(*layout), layout) for layout in lattices if layout is not None]
    if judged:
        return max(judged, key=lambda pair: pair[0])[1]
    return starts.fill_at_random(search.problem, np.empty(0), np.empty(0), search.rng)
