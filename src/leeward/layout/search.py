"""The search of a recipe: its data, its findings, and all of its computations that take long.

Those are generators. `Search` computes at once; a subclass can yield a `Request` instead, to which the driver sends the
answer.
"""

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from leeward.errors import NotANumberError
from leeward.layout import descent, smart_start
from leeward.layout.descent import Descent, DescentState
from leeward.layout.objective import Objective
from leeward.layout.problem import LayoutProblem
from leeward.layout.relocation import relocate
from leeward.layout.smart_start import SmartStart

Array = npt.NDArray[np.float64]
Pair: TypeAlias = tuple[Array, Array]  # x and y, m
T = TypeVar("T")

RELOCATED = 0.06  # share of the turbines
RELOCATE_FROM, RELOCATE_TO = 0.1, 0.75  # shares of the steps of a descent
CHANCE = 0.3  # noise of a relocation, see `relocate`


@dataclass(frozen=True)
class Effort:
    """The work of a refinement, in steps of stochastic descent.

    longest_descent: the most steps of one descent. polish_steps: on the judging rose, after the descents.
    """

    steps: int
    longest_descent: int
    polish_steps: int


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


class Request:
    """A computation that a search asks the driver for. The driver sends the answer into the generator."""


Asking: TypeAlias = Generator[Request, Any, T]
Steps: TypeAlias = Generator[Progress | Request, Any, T]


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

    def progress(self, aep_gwh: float, violation_m: float, steps: int = 1) -> Progress:
        """Count steps, and return the progress after the last one."""
        self.steps += steps
        return Progress(self.steps, self.phases[-1].name, aep_gwh, violation_m, self.best_aep_gwh, self.objective.work)

    def placed(self) -> Progress:
        """Return the progress of the step that placed all turbines."""
        return self.progress(self.best_aep_gwh, self.problem.violation(self.x, self.y).worst_m)

    def stepped(self, state: DescentState, steps: int = 1) -> Progress:
        """Take the layout of a descent after more steps, and return the progress, or raise NotANumberError."""
        if not np.isfinite(state.aep_gwh + state.x.sum() + state.y.sum()):
            raise NotANumberError(f"the descent gave a value that is not finite at step {state.step}")
        self.x, self.y = state.x, state.y
        return self.progress(state.aep_gwh, state.violation_m, steps)

    def offered(self, x: Array, y: Array) -> Asking[Layout | None]:
        """Return the layout, repaired and judged, or None if it is infeasible. Keep the best one."""
        x, y, is_feasible = yield from self.repair(x, y)
        return (yield from self.kept(x, y)) if is_feasible else None

    def keep(self, x: Array, y: Array) -> Layout:
        """Judge a feasible layout at once; see `kept`."""
        return result_of(self.kept(x, y))

    def kept(self, x: Array, y: Array) -> Asking[Layout]:
        """Judge a feasible layout, and keep it if it is the best so far on the full rose.

        The full rose is not asked if the judging rose tells that the layout is worse, by more than its last error.
        """
        layout = Layout(x, y, *(yield from self.judge(x, y)))
        if self.best is not None and layout.judged < self.best.judged - self.judging_error:
            return layout
        value, aep = yield from self.full(x, y, (layout.judged, layout.judged_aep_gwh))
        if self.best is not None:
            self.judging_error = abs(value - layout.judged - (self.best_value - self.best.judged))
        if self.best is None or value > self.best_value:
            self.best, self.best_value, self.best_aep_gwh = layout, value, aep
        return layout

    def descend(self, x: Array, y: Array, settings: Descent, relocate_every: int = 0) -> Steps[None]:
        """Improve a layout by gradient steps; the result is the current layout.

        relocate_every: steps between two relocations in the middle of the descent; 0: none.
        """
        state = descent.start(self.problem, x, y)
        count = max(1, round(RELOCATED * self.problem.n_turbines))
        first, last = RELOCATE_FROM * settings.steps, RELOCATE_TO * settings.steps
        moves = [s for s in range(0, settings.steps, relocate_every) if first <= s <= last] if relocate_every else []
        for move in moves:
            state = yield from self.advance(settings, state, move - state.step)
            x, y, which = yield from self.relocate(state.x, state.y, count, CHANCE)
            state = descent.moved(state, x, y, which)
        yield from self.advance(settings, state, settings.steps - state.step)

    def advance(self, settings: Descent, state: DescentState, steps: int) -> Steps[DescentState]:
        """Return the state after more steps of a descent."""
        for _ in range(steps):
            state = descent.step(self.problem, self.objective, settings, state, self.rng)
            yield self.stepped(state)
        return state

    def place(self, options: SmartStart, seed: int) -> Steps[None]:
        """Place turbines by SmartStart; the result is the current layout, which may lack turbines."""
        for layout in smart_start.place(self.problem, self.objective, options, seed):
            self.x, self.y = layout
            yield self.progress(float("nan"), 0.0)

    def relocate(self, x: Array, y: Array, count: int, chance: float) -> Asking[tuple[Array, Array, list[int]]]:
        """Return the layout with up to `count` turbines moved, and their indices; see `relocate`."""
        return computed(relocate(self.problem, self.objective, x, y, count, chance, self.rng))

    def repair(self, x: Array, y: Array) -> Asking[tuple[Array, Array, bool]]:
        """Return the repaired layout, and whether it is feasible."""
        east, north = self.problem.repaired(x, y)
        return computed((east, north, self.problem.violation(east, north).is_feasible))

    def judge(self, x: Array, y: Array) -> Asking[tuple[float, float]]:
        """Return objective and AEP (GWh) on the judging rose."""
        return computed(self.objective.judge(x, y))

    def full(self, x: Array, y: Array, judged: tuple[float, float]) -> Asking[tuple[float, float]]:
        """Return objective and AEP (GWh) on the full rose. judged: the result of `judge`."""
        return computed(self.objective.full(x, y, judged))

    def measured(self, x: Array, y: Array) -> Asking[tuple[float, float]]:
        """Return AEP (GWh) and wake loss of the final layout."""
        simulation = self.problem.farm.simulate(x, y)
        return computed((simulation.total_aep_gwh, simulation.total_wake_loss))

    def estimate(self, layouts: Sequence[Pair]) -> Asking[list[float]]:
        """Return a cheap estimate of the objective of each layout."""
        return computed([self.objective.estimate(*layout) for layout in layouts])


def computed(value: T) -> Asking[T]:
    """Return a generator that asks for nothing and returns the value."""
    yield from ()
    return value


def result_of(asking: Asking[T]) -> T:
    """Return the result of a generator that asks for nothing."""
    try:
        request = next(asking)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise TypeError(f"no driver answers {request!r:.60}")
