"""How long a campaign will take, and how much memory: from a measurement of a few seconds."""

import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from leeward.campaign import Campaign
from leeward.errors import InfeasibleError
from leeward.layout import Progress, SmartStart, optimise
from leeward.layout.objective import FEW, Objective
from leeward.layout.recipes import EFFORTS

MEASURED_S = 2.0  # CPU time of the measurement
PLACING = ("smart_start", "random")  # phases before the refinement


@dataclass(frozen=True)
class Estimate:
    """core_s: CPU seconds of all tasks together. task_s: of the longest. memory_bytes: of one worker.

    is_rough: only placing the turbines was measured, because that took all the time.
    """

    core_s: float
    task_s: float
    memory_bytes: int
    is_rough: bool


class _Meter:
    """Stops an optimisation after a while, and keeps how far it got in which time."""

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
    """Return what the tasks cost; None with a custom recipe, of which nothing is known.

    tasks: how many there are of each farm and type. The pair with the most turbines is measured; the work of the others
    follows from their numbers of turbines.
    """
    settings = campaign.optimiser
    if ":" in campaign.recipe or not tasks:
        return None
    farm, kind = max(tasks, key=lambda pair: campaign.n_turbines(*pair))
    problem = campaign.problem(farm, kind)
    smart = SmartStart(campaign.grid_size, campaign.random_pct) if campaign.recipe.startswith("smart") else None
    try:
        # what it calls is compiled after this, and in memory
        optimise(problem, 0, recipe=campaign.recipe, effort="fast", work=1, smart_start=smart)
        meter = _Meter()
        optimise(problem, 0, recipe=campaign.recipe, effort="thorough", smart_start=smart, watch=meter)
    except InfeasibleError:  # the turbines do not fit
        return None
    most = problem.n_turbines
    is_placed = meter.placed >= most or campaign.recipe.startswith("random")
    placing_s = meter.placing_s if is_placed else meter.placing_s * most / max(meter.placed, 1)
    refining_s = 0.0
    is_rough = False
    if campaign.recipe.endswith("+refine"):
        work = settings.get("work") or EFFORTS[settings["effort"]].steps * Objective(problem).effort_unit
        rate = meter.work / meter.refining_s if meter.refining_s > 0.2 else meter.placing_work / meter.placing_s
        is_rough = meter.refining_s <= 0.2
        refining_s = work / rate
    core_s = longest = 0.0
    for pair, count in tasks.items():
        share = campaign.n_turbines(*pair) / most
        seconds = share * placing_s + (max(share, FEW / most) ** 2 if "work" not in settings else 1.0) * refining_s
        seconds = settings.get("time_budget_s") or seconds
        core_s += count * seconds
        longest = max(longest, seconds)
    return Estimate(core_s, longest, _peak_memory(), is_rough)


def available_memory() -> int | None:
    """Return the bytes of memory that processes can still get; None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # not Linux
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _peak_memory() -> int:
    """Return the largest memory that this process has had, in bytes: a worker has about as much."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
