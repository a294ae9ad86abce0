"""The one worker function: from a key to a result, and to the disk. What runs under every engine is this."""

import os
import platform
import socket
from collections.abc import Callable
from typing import Any

import numpy as np

from leeward import __version__
from leeward.campaign import Campaign
from leeward.errors import StorageError
from leeward.layout import Progress
from leeward.layout.recipes import SEARCH
from leeward.store import Key, Result, RunPaths, Value, begin_attempt, forget_record, index_line, store_result, utc_now

MOST_HISTORY = 1000  # points of a curve that somebody looks at
POINTS_OF_A_PHASE = 25  # enough for a curve, and few enough that each is the mean of many steps

Report = Callable[[str], None]
Watch = Callable[[Progress], None]
Trouble = Callable[[StorageError], None]


class History:
    """AEP over the steps, as a curve to look at.

    Until the first refinement ends: of the layout in hand, feasible or not, as the mean of the estimates of some steps,
    in the middle of these. In the search after it: of the best feasible layout so far. There is a point with the AEP of
    the best layout wherever that rises, and the last point is that of the result.
    """

    def __init__(self) -> None:
        self._points: list[tuple[float, float]] = []
        self._in_hand: list[tuple[float, float]] = []  # of the phase that goes on
        self._phase = ""
        self._best = float("-inf")

    def __call__(self, progress: Progress) -> None:
        if progress.phase != self._phase:
            self._close_phase()
            self._phase = progress.phase
        if progress.best_aep_gwh > self._best:
            self._rise(float(progress.step), progress.best_aep_gwh)
        elif progress.aep_gwh == progress.aep_gwh and progress.phase != SEARCH:
            self._in_hand.append((float(progress.step), progress.aep_gwh))

    def end(self, steps: int, aep_gwh: float) -> None:
        """Add the result, if anything was recorded before it."""
        self._close_phase()
        if self._points and self._points[-1] != (float(steps), aep_gwh):
            self._rise(float(steps), aep_gwh)

    def _rise(self, step: float, best: float) -> None:
        if self._points and self._points[-1][1] == self._best and self._points[-1][0] < step - 1.0:
            self._points.append((step - 1.0, self._best))  # until then it stayed the same
        self._points.append((step, best))
        self._best = best

    def _close_phase(self) -> None:
        if self._in_hand:
            means = np.array_split(self._in_hand, min(len(self._in_hand), POINTS_OF_A_PHASE))
            self._points += [tuple(some.mean(axis=0).tolist()) for some in means]
        self._in_hand = []

    @property
    def curve(self) -> Any:
        """Shape (2, points): steps and GWh; None without a point. Long ones are thinned, the last point stays."""
        if not self._points:
            return None
        points = np.array(self._points).T
        stride = -(-points.shape[1] // MOST_HISTORY)
        return np.ascontiguousarray(points[:, ::-1][:, ::stride][:, ::-1])


def compute(campaign: Campaign, key: Key, watch: Watch | None = None) -> Result:
    """The result of a task."""
    history = History()

    def see(progress: Progress) -> bool:
        history(progress)
        if watch is not None:
            watch(progress)
        return False

    here = os.getcwd()
    try:
        solution = campaign.optimise(key, see)
    finally:
        os.chdir(here)  # a recipe of somebody's own may have gone elsewhere
    history.end(solution.steps, solution.aep_gwh)
    details: dict[str, Value] = {
        "aep_by_phase": np.array([phase.aep_gwh for phase in solution.phases]),
        "phases": ",".join(phase.name for phase in solution.phases),
        "wake_loss": solution.wake_loss,
        "min_spacing_m": solution.min_spacing_m,
        "installed_mw": len(solution.x) * campaign.rated_power_mw(key.type_idx),
        "seconds": solution.seconds,
        "host": socket.gethostname(),
        "created": utc_now(),
        "work": solution.work,
        "reproducible": campaign.reproducible,
        "versions": versions(),
        "method_version": campaign.method_version,
    }
    if solution.notes:
        details["notes"] = "; ".join(solution.notes)
    return Result(
        key=key,
        layout=np.array([solution.x, solution.y]),
        aep=solution.aep_gwh,
        diameter=campaign.diameter(key.type_idx),
        fingerprint=campaign.fingerprint(key.farm_idx, key.type_idx),
        stop_reason=solution.stop_reason.name.lower(),
        steps=solution.steps,
        details=details,
        history=history.curve,
    )


def perform(
    campaign: Campaign,
    paths: RunPaths,
    key: Key,
    worker: str,
    report: Report,
    trouble: Trouble,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """A task from its start to its result on the disk, and the line about it for the index.

    report: is told "began" when the attempt is recorded and "computed" when only storing is left. trouble: called when
    the disk takes nothing; returns when it is time to try again, or raises.
    """
    fingerprint = campaign.fingerprint(key.farm_idx, key.type_idx)
    patiently(lambda: begin_attempt(paths, key, fingerprint, worker, socket.gethostname()), trouble)
    report("began")
    result = compute(campaign, key, watch)
    report("computed")
    patiently(lambda: store_result(paths, result), trouble)
    patiently(lambda: forget_record(paths, key), trouble)
    return index_line(result)


def patiently(action: Callable[[], object], trouble: Trouble) -> None:
    """Until it works, or until `trouble` has enough."""
    while True:
        try:
            action()
            return
        except StorageError as error:
            trouble(error)


def versions() -> str:
    """What the numbers depend on besides the fingerprint."""
    import h5py
    import numba

    parts = {
        "leeward": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "h5py": h5py.__version__,
        "machine": platform.machine(),
    }
    return ", ".join(f"{name} {version}" for name, version in parts.items())
