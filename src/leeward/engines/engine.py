"""What an engine is, and which there are."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Protocol

from leeward.campaign.execution import Execution
from leeward.engines.outcomes import Outcome
from leeward.engines.work import Work
from leeward.events import Emit
from leeward.processes import usable_cores
from leeward.store import Key, RunPaths

ENGINES = {  # class of each engine, loaded when it is used: what it needs may not be installed
    "inline": "leeward.engines.inline:InlineEngine",
    "local": "leeward.engines.local:LocalEngine",
    "dask": "leeward.engines.dask:DaskEngine",
    "slurm": "leeward.engines.slurm:SlurmEngine",
}


class Engine(Protocol):
    """Where tasks are computed. It decides nothing: which task, how often and until when is the coordinator's.

    mark: part of the names of its workers, if it does not know for certain which attempts they have recorded.
    """

    mark: str

    @property
    def room(self) -> int:
        """How many more tasks it would take now."""

    def start(self, key: Key) -> None:
        """Begin a task; only while there is room."""

    def poll(self, seconds: float) -> list[Outcome]:
        """What has happened since the last call; waits at most so long if nothing has."""

    def close(self) -> list[Key]:
        """End all workers now; the keys of tasks in hand whose attempt may have been recorded."""


@dataclass(frozen=True)
class Assignment:
    """What an engine gets to do. tasks: how many there are.

    left: returns how many of them are left, for a cluster that grows and shrinks with them. hear: takes an outcome at
    once, for an engine that cannot return it from `poll`; raises when it is time to give up.
    """

    work: Work
    paths: RunPaths
    emit: Emit
    tasks: int
    left: Callable[[], int]
    hear: Callable[[Outcome], None]


class EngineClass(Protocol):
    """What the class of an engine says before there is one. options: of the command line that it takes."""

    options: tuple[str, ...]

    def demand(self, execution: Execution, output: Path) -> None:
        """Raise if the engine cannot run here. output: absolute path of the merged file."""

    def worker_count(self, execution: Execution, tasks: int) -> int | None:
        """Return how many workers there will be; None if that is not known before."""

    def open(self, assignment: Assignment) -> Engine:
        """Start the engine."""


def engine_class(name: str) -> EngineClass:
    """Import the class of an engine."""
    found: EngineClass = resolve_name(ENGINES[name])
    return found


def processes_for(execution: Execution, most: int) -> int:
    """Return how many processes to use on this machine, if there is work for so many."""
    return max(1, min(execution.workers or usable_cores(), most))
