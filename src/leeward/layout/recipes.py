"""Recipes: ways from a seed to a layout, as generators that yield after every step: a driver can watch and stop them.

Whatever has been found by then is in the `Search`: the best feasible layout, and the one in hand.
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
    """What a recipe is given besides the problem. start: x and y of a feasible layout, m."""

    seed: int
    smart_start: SmartStart | None = None
    start: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class Effort:
    """How much work refinement is: as many pair evaluations as `steps` of stochastic descent take; and how many of
    these, at most, a descent from a start has.
    """

    steps: int
    first_descent: int


EFFORTS = {"fast": Effort(400, 250), "normal": Effort(1600, 900), "thorough": Effort(16000, 2200)}

# lengths are shares of the mean spacing: the side of the square that a turbine has to itself
FIRST_STEP = 0.06
HOP_STEP = 0.02
SMALL_ROSE_STEPS = 300  # of a descent that sees all of the wind rose at every step
HOP_STEPS = 100
LATTICES = 50  # of so many the best one is where a new start begins
POLISH_STEP = 0.01
POLISH_STEPS = 30
HOP_POLISH_STEPS = 20
PATIENCE = 4  # hops without success, then a new start
PROMISING = 2 / 3  # hops are for descents that ended better than this share of all
RELOCATE_EVERY = 75  # steps of a descent, in its middle
RELOCATED = 0.06  # share of the turbines

SEARCH = "search"  # the phase after the first refinement: many descents, of which only the best counts


@dataclass(frozen=True)
class Progress:
    """What a driver sees after every step.

    aep_gwh: of the layout in hand, feasible or not, as the step estimates it from a sample of the wind or from a coarse
    rose (not a number while turbines are being placed); violation_m: its worst violation of a constraint.
    best_aep_gwh: of the best feasible layout so far, on the full rose (not a number before there is one). work: pair
    evaluations so far.
    """

    step: int
    phase: str
    aep_gwh: float
    violation_m: float
    best_aep_gwh: float
    work: int


@dataclass(frozen=True)
class Phase:
    """One part of a recipe: its name, how long it took, and the best AEP on the full rose at its end."""

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
    """What a recipe works on, and what it has found.

    x, y: the layout in hand; limit: the work at which the driver stops; if there is none, refinement sets it by the
    effort, which placing the turbines does not count in.
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
    polish_gain: float = 0.0
    limit: int | None = None
    steps: int = 0
    phases: list[Phase] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _began: float = 0.0

    def begin(self, name: str) -> None:
        """Close the phase before, with the AEP that it led to, and begin another."""
        self.end_phase()
        self.phases.append(Phase(name))
        self._began = time.perf_counter()

    def end_phase(self) -> None:
        if self.phases:
            seconds = time.perf_counter() - self._began
            self.phases[-1] = replace(self.phases[-1], seconds=seconds, aep_gwh=self.best_aep_gwh)

    def progress(self, aep_gwh: float, violation_m: float) -> Progress:
        """Count a step, and tell of it."""
        self.steps += 1
        return Progress(self.steps, self.phases[-1].name, aep_gwh, violation_m, self.best_aep_gwh, self.objective.work)

    def placed(self) -> Progress:
        """The step in which all turbines found a place."""
        return self.progress(self.best_aep_gwh, self.problem.violation(self.x, self.y).worst_m)

    def offer(self, x: Array, y: Array) -> Layout | None:
        """The layout, repaired and judged, if it is feasible; the best one so far is kept."""
        x, y = self.problem.repaired(x, y)
        return self.keep(x, y) if self.problem.violation(x, y).is_feasible else None

    def keep(self, x: Array, y: Array) -> Layout:
        """Judge a feasible layout, and keep it if it is the best so far."""
        layout = Layout(x, y, *self.objective.judge(x, y))
        if self.best is None or layout.judged > self.best.judged:
            value, aep = self.objective.full(x, y, (layout.judged, layout.judged_aep_gwh))
            if self.best is None or value > self.best_value:
                self.best, self.best_value, self.best_aep_gwh = layout, value, aep
        return layout

    def descend(self, x: Array, y: Array, settings: Descent, relocate_every: int = 0) -> Iterator[Progress]:
        """Go uphill in the objective from a layout; where it ends is the layout in hand."""
        state = descent.start(self.problem, x, y)
        count = max(1, round(RELOCATED * self.problem.n_turbines))
        beyond = self._beyond_judged if settings.judged else 0.0
        while not descent.done(settings, state):
            in_the_middle = 0.1 * settings.steps <= state.step <= 0.75 * settings.steps
            if relocate_every and in_the_middle and state.step % relocate_every == 0:
                x, y, which = relocate(self.problem, self.objective, state.x, state.y, count, 0.3, self.rng)
                state = descent.moved(state, x, y, which)
            state = descent.step(self.problem, self.objective, settings, state, self.rng)
            if not np.isfinite(state.aep_gwh + state.x.sum() + state.y.sum()):
                raise NotANumberError(f"the descent left the finite numbers at its step {state.step}")
            self.x, self.y = state.x, state.y
            yield self.progress(state.aep_gwh + beyond, state.violation_m)

    @property
    def _beyond_judged(self) -> float:
        """Return how much more the best layout yields on the full rose than as judged, GWh."""
        return 0.0 if self.best is None else self.best_aep_gwh - self.best.judged_aep_gwh


def placed_smartly(search: Search, given: Given) -> Iterator[Progress]:
    """SmartStart; what it cannot place on its grid is placed at random."""
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
    """Every turbine anywhere in the area where it is far enough from the others."""
    search.begin("random")
    fill(search)
    yield search.placed()


def fill(search: Search) -> None:
    """Place the turbines that are missing at random; if they cannot be made to fit, all of them on a dense lattice."""
    search.x, search.y = starts.fill_at_random(search.problem, search.x, search.y, search.rng)
    if search.offer(search.x, search.y) is None:
        x, y = starts.densest_lattice(search.problem)
        if len(x) >= search.problem.n_turbines:
            chosen = search.rng.permutation(len(x))[: search.problem.n_turbines]
            search.x, search.y = x[chosen], y[chosen]
            search.offer(search.x, search.y)
            search.notes.append("turbines placed one by one did not fit; the start is a dense lattice of all of them")


def placed_as_given(search: Search, given: Given) -> Iterator[Progress]:
    """A layout that somebody has."""
    if given.start is None:
        raise TypeError("a recipe that needs a start, without one")
    search.begin("given")
    search.x, search.y = given.start
    search.keep(search.x, search.y)
    yield search.placed()


def refined(search: Search) -> Iterator[Progress]:
    """The layout in hand, improved for as long as the driver lets it: never ends by itself."""
    stochastic = search.objective.samples
    steps = search.effort.first_descent if stochastic else SMALL_ROSE_STEPS
    settings = Descent(steps, FIRST_STEP * search.problem.mean_spacing_m)
    search.start = search.best
    if search.limit is None:
        search.limit = search.objective.work + search.effort.steps * search.objective.effort_unit
    search.begin("descent")
    yield from search.descend(search.x, search.y, settings, RELOCATE_EVERY)
    layout = search.offer(search.x, search.y)
    if stochastic:
        search.begin("polish")
        layout = yield from polished(search, layout, POLISH_STEPS)
    search.begin(SEARCH)
    outcomes: list[float] = []
    while True:
        if layout is not None:
            outcomes.append(layout.judged)
            if layout.judged >= np.quantile(outcomes, PROMISING):
                yield from hops(search, layout)
        search.x, search.y = best_lattice(search)
        yield from search.descend(search.x, search.y, settings, RELOCATE_EVERY)
        layout = search.offer(search.x, search.y)
        if stochastic:
            layout = yield from polished(search, layout, POLISH_STEPS)


def polished(search: Search, layout: Layout | None, steps: int) -> Generator[Progress, None, Layout | None]:
    """What random samples of the wind cannot tell apart: a descent on the rose that layouts are judged by."""
    if layout is None:
        return None
    settings = Descent(steps, POLISH_STEP * search.problem.mean_spacing_m, judged=True)
    yield from search.descend(layout.x, layout.y, settings)
    better = search.offer(search.x, search.y)
    if better is None or better.judged <= layout.judged:
        return layout
    search.polish_gain = better.judged - layout.judged
    return better


def hops(search: Search, layout: Layout) -> Iterator[Progress]:
    """Relocate turbines of a layout and descend from there, until that has failed several times in a row."""
    settings = Descent(HOP_STEPS, HOP_STEP * search.problem.mean_spacing_m)
    failures = 0
    while failures < PATIENCE:
        count = max(1, round(RELOCATED * search.problem.n_turbines * (1 + failures % 3) / 2))
        x, y, _ = relocate(search.problem, search.objective, layout.x, layout.y, count, 0.7, search.rng)
        yield from search.descend(x, y, settings)
        there = search.offer(search.x, search.y)
        within_reach = there is not None and there.judged + 1.5 * search.polish_gain > layout.judged
        if search.objective.samples and within_reach:
            there = yield from polished(search, there, HOP_POLISH_STEPS)
        if there is not None and there.judged > layout.judged:
            layout, failures = there, 0
        else:
            failures += 1


def best_lattice(search: Search) -> tuple[Array, Array]:
    """The best of many lattices, or turbines at random where none fits."""
    lattices = [starts.random_lattice(search.problem, search.rng) for _ in range(LATTICES)]
    judged = [(search.objective.estimate(*layout), layout) for layout in lattices if layout is not None]
    if judged:
        return max(judged, key=lambda pair: pair[0])[1]
    return starts.fill_at_random(search.problem, np.empty(0), np.empty(0), search.rng)
