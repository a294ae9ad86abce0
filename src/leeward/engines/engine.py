"""What an engine is, which there are, and what one tells its coordinator of a task."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

from leeward.campaign.execution import Execution
from leeward.engines.work import Work
from leeward.errors import LeewardError
from leeward.events import Emit
from leeward.processes import usable_cores
from leeward.store import Key, Result, RunPaths

ENGINES = {  # class of each engine, loaded when it is used: what it needs may not be installed
    "inline": "leeward.engines.inline:InlineEngine",
    "local": "leeward.engines.local:LocalEngine",
    "dask": "leeward.engines.dask:DaskEngine",
    "slurm": "leeward.engines.slurm:SlurmEngine",
}


class EngineLostError(LeewardError):
    """The machines that compute are gone, or never came; what was stored is stored."""


@dataclass(frozen=True)
class Began:
    """A worker has begun. fingerprint: if the attempt is still to be recorded; a worker that can, has done so."""

    key: Key
    worker: str
    fingerprint: str | None = None


@dataclass(frozen=True)
class Done:
    """The result is on the disk; line: what the index says of it."""

    key: Key
    line: dict[str, Any]
    worker: str


@dataclass(frozen=True)
class Computed:
    """The result is here, and not on the disk yet, which its worker cannot reach."""

    key: Key
    result: Result
    line: dict[str, Any]
    worker: str


@dataclass(frozen=True)
class Failed:
    """There is no result. kind: "exception" is the task's own word; "died" and "timed-out" are its worker's fate;
    "cut-off" is its worker's end that was known before; and with "storing" the disk did not answer.
    """

    key: Key
    kind: str
    message: str
    traceback: str
    seconds: float
    worker: str


@dataclass(frozen=True)
class Stuck:
    """The disk takes nothing; the worker keeps what it has, and tries again by itself."""

    key: Key
    message: str


@dataclass(frozen=True)
class Unstuck:
    """It does again."""

    key: Key


@dataclass(frozen=True)
class Returned:
    """It is to be handed out again: nobody has said that it was begun.

    mark: if its worker was lost. An attempt on the disk by a worker that has it in its name was made in this run.
    """

    key: Key
    mark: str = ""


Outcome = Began | Done | Computed | Failed | Stuck | Unstuck | Returned


@dataclass(frozen=True)
class Assignment:
    """What an engine gets to do. tasks: how many there are.

    left: returns how many of them are left, for a cluster that grows and shrinks with them. on_outcome: takes an
    outcome at once, for an engine that cannot return it from `poll`; raises when it is time to give up.
    """

    work: Work
    paths: RunPaths
    emit: Emit
    tasks: int
    left: Callable[[], int]
    on_outcome: Callable[[Outcome], None]


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
        """Return what has happened since the last call; wait at most so long if nothing has."""

    def close(self) -> list[Key]:
        """End all workers now; return the tasks in hand whose attempt may have been recorded."""


class EngineKind:
    """What an entry of ENGINES says before there is an engine."""

    @classmethod
    def demand(cls, execution: Execution, output: Path) -> None:
        """Raise if the engine cannot run here. output: absolute path of the merged file."""

    @classmethod
    def worker_count(cls, execution: Execution, tasks: int) -> int | None:
        """Return how many workers there will be; None if that is not known before."""
        return None

    @classmethod
    def open(cls, assignment: Assignment) -> Engine:
        """Start the engine."""
        raise NotImplementedError


def engine_class(name: str) -> type[EngineKind]:
    """Import the class of an engine."""
    found: type[EngineKind] = resolve_name(ENGINES[name])
    return found


def processes_for(execution: Execution, most: int) -> int:
    """Return how many processes to use on this machine, if there is work for so many."""
    return max(1, min(execution.workers or usable_cores(), most))
