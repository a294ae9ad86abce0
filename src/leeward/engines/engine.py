"""The interface of an engine, the known engines, and the outcomes that they report."""

import abc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

from leeward.campaign.execution import Execution
from leeward.engines.work import Work
from leeward.errors import LeewardError
from leeward.events import Emit
from leeward.processes import usable_cores
from leeward.store import Key, Result, RunPaths, parse_key

ENGINES = {  # the class of each engine; it is imported when used
    "inline": "leeward.engines.inline:InlineEngine",
    "local": "leeward.engines.local:LocalEngine",
    "gpu": "leeward.engines.gpu:GpuEngine",
    "dask": "leeward.engines.clusters:DaskEngine",
    "slurm": "leeward.engines.clusters:SlurmEngine",
}


class EngineLostError(LeewardError):
    """Raised when no worker is left, or when no worker could be used. Stored results are safe."""


@dataclass(frozen=True)
class Began:
    """A worker has begun a task. fingerprint: given if the worker could not record the attempt itself."""

    key: Key
    worker: str
    fingerprint: str | None = None


@dataclass(frozen=True)
class Done:
    """The task has a result. line: its line for the index. result: given if its worker could not store it."""

    key: Key
    line: dict[str, Any]
    worker: str
    result: Result | None = None


@dataclass(frozen=True)
class Failed:
    """The task has no result.

    kind: "exception": it raised an error. "died": its worker died. "timed-out": it exceeded its time limit. "cut-off":
    its job reached its time limit. "storing": the disk did not answer. alone: False if its worker died while it
    computed other tasks too; any of them may be the cause, so the death does not count as one of this task.
    """

    key: Key
    kind: str
    message: str
    traceback: str
    seconds: float
    worker: str
    alone: bool = True


@dataclass(frozen=True)
class Stuck:
    """The disk rejects writes; the worker keeps its result and retries by itself."""

    key: Key
    message: str


@dataclass(frozen=True)
class Unstuck:
    """The disk accepts writes again."""

    key: Key


@dataclass(frozen=True)
class Returned:
    """The task must be queued again: no message reports that it began.

    mark: given if its worker was lost. An attempt recorded by a worker with this mark in its name belongs to this run.
    """

    key: Key
    mark: str = ""


Outcome = Began | Done | Failed | Stuck | Unstuck | Returned

_SENT = {kind.__name__: kind for kind in (Began, Done, Failed, Stuck, Unstuck)}


def to_message(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain data, for a pipe or a connection."""
    return {"what": type(outcome).__name__, **asdict(outcome), "key": str(outcome.key)}


def from_message(message: dict[str, Any]) -> Outcome:
    """Return the outcome in a message, without a result. Raise KeyError, TypeError or ValueError if it is invalid."""
    facts = {name: value for name, value in message.items() if name not in ("what", "key", "result")}
    return _SENT[message["what"]](key=parse_key(message["key"]), **facts)


@dataclass(frozen=True)
class Assignment:
    """The work of an engine. tasks: their number.

    left: returns how many tasks are left, for a cluster that scales with them. on_outcome: handles an outcome at once,
    for an engine that blocks in `poll`; raises StorageError if the disk has rejected writes for too long.
    """

    work: Work
    paths: RunPaths
    emit: Emit
    tasks: int
    left: Callable[[], int]
    on_outcome: Callable[[Outcome], None]


class Engine(Protocol):
    """Computes tasks. The coordinator decides which task runs, how often, and until when.

    mark: part of the names of its workers, to find the attempts that they have recorded; may be "".
    """

    mark: str

    @property
    def room(self) -> int:
        """Return how many more tasks it accepts now."""

    def start(self, key: Key) -> None:
        """Begin a task; only while there is room."""

    def poll(self, seconds: float) -> list[Outcome]:
        """Return the outcomes since the last call; wait for one at most this long."""

    def close(self) -> list[Key]:
        """End all workers now; return the running tasks whose attempt may have been recorded."""


class EngineKind(abc.ABC):
    """Base class of the entries of ENGINES: checks an engine before a run, and starts it."""

    @classmethod  # noqa: B027 (most engines demand nothing)
    def demand(cls, execution: Execution, output: Path) -> None:
        """Raise LeewardError if the engine cannot run here. output: absolute path of the merged file."""

    @classmethod
    def worker_count(cls, execution: Execution, tasks: int) -> int | None:
        """Return the number of workers; None if it is not known in advance."""
        return None

    @classmethod
    @abc.abstractmethod
    def open(cls, assignment: Assignment) -> Engine:
        """Start the engine."""


def engine_class(name: str) -> type[EngineKind]:
    """Import the class of an engine."""
    found: type[EngineKind] = resolve_name(ENGINES[name])
    return found


def processes_for(execution: Execution, most: int) -> int:
    """Return how many processes to use on this machine, at most `most`."""
    return max(1, min(execution.workers or usable_cores(), most))
