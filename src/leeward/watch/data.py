"""The parts of a snapshot of any kind of work."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from leeward.errors import InputError
from leeward.wording import duration

if TYPE_CHECKING:
    from leeward.watch.read import Reading


@dataclass(frozen=True)
class Kind:
    """A kind of work. Its keys can be sorted, and `str` returns their text.

    parse: returns the key of a text, or raises InputError. pattern: a regular expression of these texts, without
    groups. figure: the field of index lines by which results are ranked. work_of: returns the expected work of a path,
    with `name`, `n_tasks`, `execution.retries` and `tasks()`, or None. show: returns the observation of a `Reading`;
    its second argument selects the tasks to count, None for all.
    """

    parse: Callable[[str], Any]
    pattern: str
    figure: str
    work_of: Callable[[Path], Any]
    show: Callable[["Reading", Any], Any]

    def key_of(self, text: str) -> Any:
        """Return the key of a text; None if it is not a key."""
        try:
            return self.parse(text)
        except InputError:
            return None


@dataclass(frozen=True)
class FailedTask:
    """A task without a result, and its last failure.

    kind: "exception", "died", "timed-out", or "cut-off" (repeatedly interrupted when the coordinator died). final: not
    retried automatically.
    """

    key: str
    kind: str
    message: str
    attempts: int
    time: str
    worker: str
    seconds: float | None
    traceback: str
    final: bool


@dataclass(frozen=True)
class WorkerSeen:
    """A worker that is alive or looks hung.

    task: None if it is idle. since: start of its task or of its idle time; task_s: seconds since then. age_s: seconds
    since the last heartbeat. best_aep_gwh: best AEP of the task so far.
    """

    name: str
    host: str
    pid: int
    task: str | None
    since: str
    task_s: float | None
    state: str
    step: int
    phase: str
    best_aep_gwh: float | None
    age_s: float
    looks_hung: bool


@dataclass(frozen=True)
class HostSeen:
    """Counts of the workers of one machine. busy: with a task. hung: those that look hung."""

    host: str
    workers: int
    busy: int
    hung: int


@dataclass(frozen=True)
class Holder:
    """The holder of a lock. state: "alive", "dead" or "unknown" (cannot be determined from this machine).

    age_s: seconds since its counter last advanced; None if its process is visible or the lock is unreadable.
    """

    host: str
    pid: int
    since: str
    state: str
    age_s: float | None


@dataclass(frozen=True)
class AbsentTask:
    """A task without a result, and the reason if known. failed: it is not retried automatically."""

    key: Any
    reason: str
    failed: bool = False


@dataclass(frozen=True)
class Absence:
    """The missing results of a campaign. expected: number of tasks. tasks: those without a result, sorted by key."""

    campaign: str
    expected: int
    tasks: tuple[AbsentTask, ...]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The state of a run directory or a lone file of any kind of work; counted, not verified.

    run: the run directory, None for a lone file. output: the merged file; output_results: number of results in its
    index, None without a valid index. campaign: its name. expected, missing: None if unknown. done: expected results;
    beyond: results that are not or no longer expected. failed, running: of the missing ones. quarantined: files.
    unreadable_lines: of the index. notes: other problems. rate_per_hour: recent results per hour; None if unknown, or
    if nothing is left to compute. KIND: the name of the kind of work. NOUN: one result of this kind.
    """

    KIND: ClassVar[str] = ""
    NOUN: ClassVar[str] = "result"

    path: str
    run: str | None
    output: str
    time: float
    campaign: str | None
    expected: int | None
    done: int
    failed: int
    running: int
    missing: int | None
    beyond: int
    failures: tuple[FailedTask, ...] = ()
    workers: tuple[WorkerSeen, ...] = ()
    owner: Holder | None = None
    rate_per_hour: float | None = None
    seconds_left: float | None = None
    output_exists: bool = False
    output_results: int | None = None
    unreadable_lines: int = 0
    quarantined: int = 0
    notes: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[HostSeen, ...]:
        """Return the workers by machine."""
        total = Counter(worker.host for worker in self.workers)
        busy = Counter(worker.host for worker in self.workers if worker.task is not None)
        hung = Counter(worker.host for worker in self.workers if worker.looks_hung)
        return tuple(HostSeen(host, total[host], busy[host], hung[host]) for host in sorted(total))

    @property
    def activity(self) -> str:
        """Return a text that says whether a run is in progress, and which process runs it."""
        owner = self.owner
        if owner is None:
            return "not running" if self.run else "a merged file without a run directory"
        who = f"process {owner.pid} on {owner.host}, since {owner.since}"
        if owner.state == "alive":
            return f"running: {who}"
        if owner.state == "dead":
            return f"not running; {who}, has died"
        if owner.age_s is None:
            return f"held by {who}; it may be running: its lock cannot be read"
        return f"held by {who}; it may be running, but its heartbeat has not advanced for {duration(owner.age_s)}"

    @property
    def is_running(self) -> bool:
        """Return whether a run is in progress, as far as this machine can tell."""
        alive = self.owner is not None and self.owner.state == "alive"
        return alive or any(not worker.looks_hung for worker in self.workers)

    @property
    def is_complete(self) -> bool:
        """Return whether every expected result exists; if that is unknown, whether any does."""
        return self.missing == 0 if self.missing is not None else self.done > 0

    def as_data(self) -> dict[str, Any]:
        """Return the data for JSON. The names are a stable interface."""
        hosts = [asdict(host) for host in self.hosts]
        return {**asdict(self), "hosts": hosts, "is_running": self.is_running, "is_complete": self.is_complete}
