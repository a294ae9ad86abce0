"""What a run directory, or a file of results, looks like now: plain data for the command line and for pages.

Nothing here writes, locks or verifies: files are counted, and the caches are believed. `leeward check` verifies.
"""

from leeward.watch.absent import Absence, AbsentTask, absent_tasks
from leeward.watch.activity import audit_events
from leeward.watch.best import best_cell, best_of_all, best_of_cells, best_of_farms
from leeward.watch.campaigns import campaign_of, campaigns_of
from leeward.watch.data import Cell, FailedTask, Holder, HostSeen, Snapshot, WorkerSeen
from leeward.watch.read import Observation, observe, result_lines, snapshot

__all__ = [
    "Absence",
    "AbsentTask",
    "Cell",
    "FailedTask",
    "Holder",
    "HostSeen",
    "Observation",
    "Snapshot",
    "WorkerSeen",
    "absent_tasks",
    "audit_events",
    "best_cell",
    "best_of_all",
    "best_of_cells",
    "best_of_farms",
    "campaign_of",
    "campaigns_of",
    "observe",
    "result_lines",
    "snapshot",
]
