"""Compile, or load from the cache, the kernels of a worker before its first task.

The time limit of a task then need not include compilation. On an empty cache all workers of a machine need the same
kernels at once, so each compiles a different one.
"""

from collections.abc import Callable

import numpy as np

from leeward.campaign.campaign import Campaign
from leeward.compiling import CompiledElsewhereError, without_waiting
from leeward.layout import Area, LayoutProblem, SmartStart, descent, smart_start
from leeward.layout.objective import Objective
from leeward.layout.starts import random_lattice
from leeward.wind import WindFarm

Call = Callable[[], object]


def warm_up(campaign: Campaign) -> None:
    """Compile the kernels of the campaign's recipe, sharing the work with other processes that do the same."""
    campaign.physics.import_wake_model()
    problem = _small_problem(campaign)
    recipe = campaign.recipe if ":" not in campaign.recipe else "random"  # a custom recipe is called only for tasks
    _make_calls(_calls(problem, recipe))


def _small_problem(campaign: Campaign) -> LayoutProblem:
    problem = campaign.problem(next(iter(campaign.farms)), next(iter(campaign.types)))
    spacing = float(problem.min_distances_m.max())
    square = Area.from_arrays([0.0, 4.0 * spacing, 4.0 * spacing, 0.0], [0.0, 0.0, 4.0 * spacing, 4.0 * spacing])
    return LayoutProblem(
        WindFarm(problem.farm.site, problem.turbines[0], problem.farm.wake_model), square, 3, spacing_m=spacing
    )


def _calls(problem: LayoutProblem, recipe: str) -> list[Call]:
    """Return calls that need one or two kernels each, the slowest to compile first."""
    objective, rng = Objective(problem), np.random.default_rng(0)
    x, y = (
        np.array([0.0, 2.0, 0.0]) * problem.min_distances_m[0],
        np.array([0.0, 0.0, 2.0]) * problem.min_distances_m[0],
    )
    state, settings = descent.start(problem, x, y), descent.Descent(1, 1.0)
    calls: list[Call] = []
    if recipe.startswith("smart_start"):
        calls += [lambda: next(smart_start.place(problem, objective, SmartStart(2), 0))]
    if recipe.endswith("+refine"):
        calls += [
            lambda: descent.step(problem, objective, settings, state, rng),
            lambda: objective.gain(x, y, 0, x, y + 1.0),
            lambda: objective.worth(x, y),
            lambda: random_lattice(problem, rng),
        ]
    return [
        *calls,
        lambda: objective.judge(x, y),
        lambda: problem.repaired(x, y),
        lambda: problem.violation(x, y),
        lambda: problem.area.signed_distance(x, y),
    ]


def _make_calls(calls: list[Call]) -> None:
    """Make all calls; those whose kernels another process is compiling come last."""
    while calls:
        left = []
        for call in calls:
            try:
                with without_waiting():
                    call()
            except CompiledElsewhereError:
                left.append(call)
        if len(left) == len(calls):
            left.pop(0)()  # all are being compiled: wait for one
        calls = left
