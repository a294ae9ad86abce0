"""Compute many layouts of a campaign in lock step on a GPU."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from leeward.campaign.batch import TaskFailure
from leeward.campaign.campaign import Campaign
from leeward.campaign.compute import result_of
from leeward.errors import LeewardError
from leeward.layout import LayoutProblem, Solution
from leeward.layout.gpu.backend import GpuBackend
from leeward.layout.lockstep import optimise_all
from leeward.store import Key, Result

CHECKED = 50  # one result of so many is computed again by the CPU
AGREEMENT = 1e-9  # largest relative difference between the AEP of the GPU and of the CPU


def compute_many(
    campaign: Campaign, keys: Sequence[Key], show_progress: Callable[..., None]
) -> Iterator[Result | TaskFailure]:
    """Yield the result of each task, or its failure, as soon as it is known.

    Raise LeewardError if the CPU finds another AEP: then none of the GPU's numbers can be trusted.
    """
    campaign.physics.import_wake_model()
    settings = campaign.spec.optimiser
    pairs = dict.fromkeys((key.farm_idx, key.type_idx) for key in keys)
    problems = {pair: campaign.problem(*pair) for pair in pairs}
    each = [problems[key.farm_idx, key.type_idx] for key in keys]
    solved = optimise_all(
        each,
        [key.seed for key in keys],
        backend=GpuBackend(problems.values(), _notice(show_progress)),
        recipe=settings.recipe,
        objective=settings.objective,
        effort=settings.effort,
        work=settings.work,
        smart_start=campaign.smart_start,
    )
    for count, (i, outcome) in enumerate(solved):
        if isinstance(outcome, Exception):
            yield TaskFailure(keys[i], outcome)
            continue
        if count % CHECKED == 0:
            check(each[i], outcome, keys[i])
        yield result_of(campaign, keys[i], outcome)


def check(problem: LayoutProblem, solution: Solution, key: Key) -> None:
    """Raise LeewardError if the AEP of a solution is not that of the CPU."""
    aep = problem.farm.aep_gwh(solution.x, solution.y)
    if not abs(solution.aep_gwh - aep) <= AGREEMENT * abs(aep):
        raise LeewardError(
            f"{key}: the GPU computed an AEP of {solution.aep_gwh!r} GWh, the CPU {aep!r} GWh; they should agree to "
            f"{AGREEMENT:g}. The GPU or its driver may be faulty, or this is a bug in leeward: please report it"
        )


def _notice(show_progress: Callable[..., None]) -> Callable[[str], Any]:
    """Return a function to call after each step of the GPU, with the name of the phase."""
    steps = 0

    def notice(phase: str) -> None:
        nonlocal steps
        steps += 1
        show_progress(step=steps, phase=phase, best_aep_gwh=None)

    return notice
