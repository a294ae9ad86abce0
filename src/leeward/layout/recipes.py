"""Recipes: generators that find a layout from a seed and yield after every step, so that a driver can stop them.

The `Search` holds the best feasible layout so far, and the current one. It makes all computations that take long.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from leeward.layout import starts
from leeward.layout.descent import Descent
from leeward.layout.search import RELOCATED, Asking, Effort, Layout, Pair, Search, Steps
from leeward.layout.smart_start import SmartStart


class Given(NamedTuple):
    """The arguments of a recipe besides the problem. start: x and y of a feasible layout, m."""

    seed: int
    smart_start: SmartStart | None = None
    start: Pair | None = None


EFFORTS = {"fast": Effort(500, 300, 10), "normal": Effort(2200, 1000, 30), "thorough": Effort(18000, 2200, 30)}

# lengths are shares of the mean spacing, see `LayoutProblem.mean_spacing_m`
FIRST_STEP = 0.06
HOP_STEP = 0.02
SMALL_ROSE_STEPS = 200  # of the longest descent that uses a whole wind rose at every step
SMALL_ROSE_POLISH_STEPS = 60
HOP_STEPS = 100
HOP_CHANCE = 0.7  # noise of a relocation, see `relocate`
POLISH_STEP = 0.005
POLISH_PENALTY = 1.0
HOP_POLISH_STEPS = 20
PATIENCE = 4  # hops without success, then new starts
PROMISING = 2 / 3  # quantile: hop only from descents that ended at least as well
RELOCATE_EVERY = 75  # steps, in the middle of a descent

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


def placed_smartly(search: Search, given: Given) -> Steps[None]:
    """Place turbines by SmartStart, and at random those that do not fit on its grid."""
    options = given.smart_start or SmartStart()
    search.begin("smart_start")
    yield from search.place(options, given.seed)
    placed = len(search.x)
    missing = search.problem.n_turbines - placed
    if missing:
        search.notes.append(
            f"the SmartStart grid of {options.grid_size} points a side has places for {placed} of "
            f"{search.problem.n_turbines} turbines; the rest, {missing}, were placed at random (a larger grid_size has "
            "more places)"
        )
    yield from fill(search)


def placed_at_random(search: Search, given: Given) -> Steps[None]:
    """Place turbines at random, far enough from each other."""
    search.begin("random")
    yield from fill(search)
    yield search.placed()


def fill(search: Search) -> Asking[None]:
    """Place the missing turbines at random or, if they do not fit, all turbines on a dense lattice."""
    search.x, search.y = starts.fill_at_random(search.problem, search.x, search.y, search.rng)
    if (yield from search.offered(search.x, search.y)) is None:
        x, y = starts.densest_lattice(search.problem)
        if len(x) >= search.problem.n_turbines:
            chosen = search.rng.permutation(len(x))[: search.problem.n_turbines]
            search.x, search.y = x[chosen], y[chosen]
            yield from search.offered(search.x, search.y)
            search.notes.append("turbines placed one by one did not fit; the start is a dense lattice of all of them")


def placed_as_given(search: Search, given: Given) -> Steps[None]:
    """Start from a given layout."""
    if given.start is None:
        raise TypeError("the recipe needs a start")
    search.begin("given")
    search.x, search.y = given.start
    yield from search.kept(search.x, search.y)
    yield search.placed()


def refined(search: Search) -> Steps[None]:
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


def improved(search: Search, placing: Steps[None]) -> Steps[None]:
    """Place the turbines, then improve the layout."""
    yield from placing
    yield from refined(search)


def descended(search: Search, given: list[Pair]) -> Steps[Layout | None]:
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
        x, y = given[i] if i < len(given) else (yield from best_lattice(search))
        yield from search.descend(x, y, settings, RELOCATE_EVERY)
        found.append((yield from search.offered(search.x, search.y)))
    layouts = [layout for layout in found if layout is not None]
    while len(layouts) > 1:
        layouts = sorted(layouts, key=lambda layout: -layout.judged)[: max(1, len(layouts) // KEPT)]
        settings = replace(settings, steps=longest // LATER_ROUNDS, first_step_m=settings.first_step_m / 2)
        for i, layout in enumerate(layouts):
            if search.objective.work > end:
                return max(layouts, key=lambda layout: layout.judged)
            yield from search.descend(layout.x, layout.y, settings, RELOCATE_EVERY)
            there = yield from search.offered(search.x, search.y)
            layouts[i] = better(layout, there) or layout
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


def polished(search: Search, layout: Layout | None, steps: int) -> Steps[Layout | None]:
    """Descend on the judging rose, which is more accurate than that of other descents. Return the better layout."""
    if layout is None:
        return None
    settings = Descent(steps, POLISH_STEP * search.problem.mean_spacing_m, penalty=POLISH_PENALTY, judged=True)
    yield from search.descend(layout.x, layout.y, settings)
    there = yield from search.offered(search.x, search.y)
    if there is None or there.judged <= layout.judged:
        return layout
    search.polish_gain = there.judged - layout.judged
    return there


def hops(search: Search, layout: Layout) -> Steps[None]:
    """Relocate turbines and descend from there, until this fails several times in a row."""
    settings = Descent(HOP_STEPS, HOP_STEP * search.problem.mean_spacing_m)
    failures = 0
    while failures < PATIENCE:
        count = max(1, round(RELOCATED * search.problem.n_turbines * (1 + failures % 3) / 2))
        x, y, _ = yield from search.relocate(layout.x, layout.y, count, HOP_CHANCE)
        yield from search.descend(x, y, settings)
        there = yield from search.offered(search.x, search.y)
        within_reach = there is not None and there.judged + 1.5 * search.polish_gain > layout.judged
        if within_reach:
            there = yield from polished(search, there, HOP_POLISH_STEPS)
        if there is not None and there.judged > layout.judged:
            layout, failures = there, 0
        else:
            failures += 1


def best_lattice(search: Search) -> Asking[Pair]:
    """Return the best of many lattices, or turbines at random if no lattice fits."""
    drawn = [starts.random_lattice(search.problem, search.rng) for _ in range(LATTICES)]
    lattices = [layout for layout in drawn if layout is not None]
    if lattices:
        estimates = yield from search.estimate(lattices)
        return lattices[max(range(len(lattices)), key=estimates.__getitem__)]
    return starts.fill_at_random(search.problem, np.empty(0), np.empty(0), search.rng)
