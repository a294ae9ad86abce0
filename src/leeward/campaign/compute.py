"""Compute one layout, from the key of a task to its result; compile the kernels before the first one."""

import os
import platform
import socket
from collections.abc import Callable
from typing import Any

import numpy as np

from leeward import __version__
from leeward.campaign.campaign import Campaign
from leeward.campaign.spec import DEFAULT_OBJECTIVE
from leeward.compiling import CompiledElsewhereError, without_waiting
from leeward.layout import Area, LayoutProblem, Progress, SmartStart, Solution, descent, smart_start
from leeward.layout.objective import Objective
from leeward.layout.recipes import MANY_DESCENTS
from leeward.layout.starts import random_lattice
from leeward.store import Key, Result, Value, utc_now
from leeward.wind import WindFarm

MOST_HISTORY = 1000  # most points of a stored curve
POINTS_OF_A_PHASE = 25  # enough to draw a curve; with more, each point would be the mean of too few steps

Call = Callable[[], object]
ShowProgress = Callable[..., None]  # called with the keyword arguments step, phase and best_aep_gwh


class History:
    """The curve of AEP over the steps.

    In a single descent and in the polish, it shows the current layout, feasible or not, and each point is the mean
    estimate over several steps. In a race and in the search that follows, it shows the best feasible layout, with
    a point wherever the best AEP rises. The last point is the result.
    """

    def __init__(self) -> None:
        self._points: list[tuple[float, float]] = []
        self._estimates: list[tuple[float, float]] = []  # steps and AEP of the current phase
        self._phase = ""
        self._best = float("-inf")

    def __call__(self, progress: Progress) -> None:
        if progress.phase != self._phase:
            self._close_phase()
            self._phase = progress.phase
        if progress.best_aep_gwh > self._best:
            self._rise(float(progress.step), progress.best_aep_gwh)
        elif progress.aep_gwh == progress.aep_gwh and progress.phase not in MANY_DESCENTS:
            self._estimates.append((float(progress.step), progress.aep_gwh))

    def end(self, steps: int, aep_gwh: float) -> None:
        """Add the result as the last point, unless the curve is empty."""
        self._close_phase()
        if self._points and self._points[-1] != (float(steps), aep_gwh):
            self._rise(float(steps), aep_gwh)

    def _rise(self, step: float, best: float) -> None:
        if self._points and self._points[-1][1] == self._best and self._points[-1][0] < step - 1.0:
            self._points.append((step - 1.0, self._best))  # the best AEP was constant until then
        self._points.append((step, best))
        self._best = best

    def _close_phase(self) -> None:
        if self._estimates:
            means = np.array_split(self._estimates, min(len(self._estimates), POINTS_OF_A_PHASE))
            self._points += [tuple(some.mean(axis=0).tolist()) for some in means]
        self._estimates = []

    @property
    def curve(self) -> Any:
        """Steps and AEP (GWh), shape (2, points), or None. A long curve is thinned; the last point stays."""
        if not self._points:
            return None
        points = np.array(self._points).T
        stride = -(-points.shape[1] // MOST_HISTORY)
        return np.ascontiguousarray(points[:, ::-1][:, ::stride][:, ::-1])


def compute(campaign: Campaign, key: Key, show_progress: ShowProgress) -> Result:
    """Return the result of a task."""
    history = History()

    def record(progress: Progress) -> bool:
        history(progress)
        best = progress.best_aep_gwh
        show_progress(step=progress.step, phase=progress.phase, best_aep_gwh=best if best == best else None)
        return False

    here = os.getcwd()
    try:
        solution = campaign.optimise(key, record)
    finally:
        os.chdir(here)  # a custom recipe may have changed the working directory
    history.end(solution.steps, solution.aep_gwh)
    return result_of(campaign, key, solution, history.curve)


def result_of(campaign: Campaign, key: Key, solution: Solution, history: Any = None) -> Result:
    """Return the result of a task from its solution. history: see `History.curve`."""
    details: dict[str, Value] = {
        "aep_by_phase": np.array([phase.aep_gwh for phase in solution.phases]),
        "phases": ",".join(phase.name for phase in solution.phases),
        "wake_loss": solution.wake_loss,
        "min_spacing_m": solution.min_spacing_m,
        "installed_mw": len(solution.x) * campaign.physics.rated_power_mw(key.type_idx),
        "seconds": solution.seconds,
        "host": socket.gethostname(),
        "created": utc_now(),
        "work": solution.work,
        "reproducible": campaign.spec.optimiser.reproducible,
        "versions": versions(),
        "method_version": campaign.fingerprints.method_version,
    }
    if solution.objective != DEFAULT_OBJECTIVE:
        details |= {"objective": solution.objective, "objective_value": solution.value}
    if solution.notes:
        details["notes"] = "; ".join(solution.notes)
    return Result(
        key=key,
        layout=np.array([solution.x, solution.y]),
        aep_gwh=solution.aep_gwh,
        rotor_diameter_m=campaign.physics.rotor_diameter_m(key.type_idx),
        fingerprint=campaign.fingerprint(key.farm_idx, key.type_idx),
        stop_reason=solution.stop_reason.name.lower(),
        steps=solution.steps,
        details=details,
        history=history,
    )


def versions() -> str:
    """Return the versions of all programs that affect the numbers, and the machine type."""
    import h5py
    import numba

    programs = f"leeward {__version__}, python {platform.python_version()}, numpy {np.__version__}"
    return f"{programs}, numba {numba.__version__}, h5py {h5py.__version__}, machine {platform.machine()}"


def warm_up(campaign: Campaign) -> None:
    """Compile the kernels of the campaign's recipe, or load them from the cache.

    The time limit of a task then does not have to include compilation. If the cache is empty, all workers of a machine
    need the same kernels at once, so each worker compiles a different one.
    """
    campaign.physics.import_wake_model()
    problem = _small_problem(campaign)
    recipe = campaign.recipe if ":" not in campaign.recipe else "random"  # a custom recipe is called only for tasks
    _make_calls(_calls(problem, recipe))


def _small_problem(campaign: Campaign) -> LayoutProblem:
    problem = campaign.problem(next(iter(campaign.farms)), next(iter(campaign.types)))
    spacing = float(problem.min_distances_m.max())
    square = Area.from_arrays([0.0, 4.0 * spacing, 4.0 * spacing, 0.0], [0.0, 0.0, 4.0 * spacing, 4.0 * spacing])
    site = problem.farm.site.unchecked()  # the square is anywhere
    farm = WindFarm(site, problem.turbines[0], problem.farm.wake_model)
    return LayoutProblem(farm, square, 3, spacing_m=spacing)


def _calls(problem: LayoutProblem, recipe: str) -> list[Call]:
    """Return calls that need one or two kernels each, the slowest to compile first."""
    objective, rng = Objective(problem), np.random.default_rng(0)
    x, y = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]) * problem.min_distances_m[0]
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
            left.pop(0)()  # other processes compile all of them: wait for one
        calls = left
