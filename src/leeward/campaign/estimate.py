"""Estimate the time and memory of a campaign from a measurement of a few seconds."""

import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from leeward.campaign.campaign import Campaign
from leeward.campaign.compute import warm_up
from leeward.errors import InfeasibleError
from leeward.layout import LayoutProblem, Progress, optimise
from leeward.layout.objective import Objective, effort_unit
from leeward.layout.recipes import EFFORTS

MEASURED_S = 2.0  # CPU time of the measurement, s
SHORTEST_S = 0.2  # shortest time of refinement that gives its speed
PLACING = ("smart_start", "random")  # phases before the refinement


@dataclass(frozen=True)
class Estimate:
    """The cost of some tasks. core_s: CPU seconds of all tasks.

    task_s: CPU seconds of the longest task. memory_bytes: memory of one worker. is_rough: the measurement ended before
    the refinement, so only the placing of turbines was measured.
    """

    core_s: float
    task_s: float
    memory_bytes: int
    is_rough: bool


class _Meter:
    """A callback that stops an optimisation after a while and records its speed."""

    def __init__(self) -> None:
        self.began = time.process_time()
        self.placing_s = self.refining_s = 0.0
        self.placed = 0
        self.placing_work = self.work = 0

    def __call__(self, progress: Progress) -> bool:
        now = time.process_time() - self.began
        if progress.phase in PLACING:
            self.placing_s, self.placed, self.placing_work = now, progress.step, progress.work
        else:
            self.refining_s, self.work = now - self.placing_s, progress.work - self.placing_work
        return now > MEASURED_S


def estimate(campaign: Campaign, tasks: dict[tuple[int, int], int]) -> Estimate | None:
    """Return the cost of tasks; None for a custom recipe, or if the turbines do not fit.

    tasks: number of tasks by farm and type. The pair with the most turbines is measured. The cost of the others is
    scaled by their number of turbines.
    """
    if ":" in campaign.recipe or not tasks:
        return None
    problem = campaign.problem(*max(tasks, key=lambda pair: campaign.physics.n_turbines(*pair)))
    meter = _measured(campaign, problem)
    if meter is None:
        return None
    settings, most = campaign.optimiser, problem.n_turbines
    is_placed = meter.placed >= most or campaign.recipe.startswith("random")
    placing_s = meter.placing_s if is_placed else meter.placing_s * most / max(meter.placed, 1)
    refining_s = _refining_s(campaign, problem, meter) if campaign.recipe.endswith("+refine") else 0.0
    each = {}
    for pair in tasks:
        turbines = campaign.physics.n_turbines(*pair)
        work = 1.0 if "work" in settings else effort_unit(turbines) / effort_unit(most)
        each[pair] = settings.get("time_budget_s") or turbines / most * placing_s + work * refining_s
    core_s = sum(count * each[pair] for pair, count in tasks.items())
    is_rough = refining_s > 0.0 and meter.refining_s <= SHORTEST_S
    return Estimate(core_s, max(each.values()), _peak_memory(), is_rough)


def _measured(campaign: Campaign, problem: LayoutProblem) -> _Meter | None:
    """Optimise for MEASURED_S and return the measurements; None if no layout is feasible."""
    try:
        warm_up(campaign)  # so that compiling is not measured
        meter = _Meter()
        smart_start = campaign.smart_start
        optimise(problem, 0, recipe=campaign.recipe, effort="thorough", smart_start=smart_start, callback=meter)
    except InfeasibleError:
        return None
    return meter


def _refining_s(campaign: Campaign, problem: LayoutProblem, meter: _Meter) -> float:
    """Return the time to refine one layout, s."""
    settings = campaign.optimiser
    work = settings.get("work") or EFFORTS[settings["effort"]].steps * Objective(problem).effort_unit
    if meter.refining_s > SHORTEST_S:
        return float(work * meter.refining_s / meter.work)
    return float(work * meter.placing_s / meter.placing_work)


def available_memory() -> int | None:
    """Return the available memory in bytes, or None if the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # not Linux
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _peak_memory() -> int:
    """Return the peak memory of this process in bytes: a worker needs about as much."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
