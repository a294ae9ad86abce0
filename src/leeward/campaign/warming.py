"""Compile, or load, all that the tasks of a worker will call, before its first task.

Their time limit then need not allow for it. On an empty cache all workers of a machine start at once and need the same
kernels, so each compiles another one.
"""

from collections.abc import Callable

import numpy as np

from leeward.campaign.campaign import Campaign
from leeward.compiling import CompiledElsewhereError, without_waiting
from leeward.layout import Area, LayoutProblem, SmartStart, descent, smart_start
from leeward.layout.objective import Objective
from leeward.layout.starts import random_lattice
from leeward.wind import WindFarm

Question = Callable[[], object]


def warm_up(campaign: Campaign) -> None:
    """Compile what the recipe of the campaign calls, together with other processes that do the same."""
    campaign.physics.import_wake_model()
    problem = _small_problem(campaign)
    recipe = campaign.recipe if ":" not in campaign.recipe else "random"  # a custom one is called for tasks only
    _ask_together(_questions(problem, recipe))


def _small_problem(campaign: Campaign) -> LayoutProblem:
    farm, kind = next(iter(campaign.farms)), next(iter(campaign.types))
    wanted = campaign.problem(farm, kind)
    spacing = float(wanted.min_distances_m.max())
    square = Area.from_arrays([0.0, 4.0 * spacing, 4.0 * spacing, 0.0], [0.0, 0.0, 4.0 * spacing, 4.0 * spacing])
    return LayoutProblem(
        WindFarm(wanted.farm.site, wanted.turbines[0], wanted.farm.wake_model), square, 3, spacing_m=spacing
    )


def _questions(problem: LayoutProblem, recipe: str) -> list[Question]:
    """Return calls that need one or two kernels each, the slowest to compile first."""
    objective, rng = Objective(problem), np.random.default_rng(0)
    x, y = (
        np.array([0.0, 2.0, 0.0]) * problem.min_distances_m[0],
        np.array([0.0, 0.0, 2.0]) * problem.min_distances_m[0],
    )
    state, settings = descent.start(problem, x, y), descent.Descent(1, 1.0)
    asked: list[Question] = []
    if recipe.startswith("smart_start"):
        asked += [lambda: next(smart_start.place(problem, objective, SmartStart(2), 0))]
    if recipe.endswith("+refine"):
        asked += [
            lambda: descent.step(problem, objective, settings, state, rng),
            lambda: objective.gain(x, y, 0, x, y + 1.0),
            lambda: objective.worth(x, y),
            lambda: random_lattice(problem, rng),
        ]
    return [
        *asked,
        lambda: objective.judge(x, y),
        lambda: problem.repaired(x, y),
        lambda: problem.violation(x, y),
        lambda: problem.area.signed_distance(x, y),
    ]


def _ask_together(questions: list[Question]) -> None:
    """Ask all questions; those whose kernels another process is compiling come later."""
    while questions:
        left = []
        for question in questions:
            try:
                with without_waiting():
                    question()
            except CompiledElsewhereError:
                left.append(question)
        if len(left) == len(questions):
            left.pop(0)()  # all are being compiled: wait for one
        questions = left
