"""What a snapshot of any kind of work consists of."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.errors import InputError
from leeward.wording import duration

if TYPE_CHECKING:
    from leeward.watch.read import Look

_NO_ROOM = "InfeasibleError: no feasible layout of "  # how `leeward.layout.driver` says it
MAKE_ROOM = "Trying again cannot help. Change the campaign: fewer turbines, less spacing, or a larger area."


def is_out_of_room(message: str) -> bool:
    """Return whether a failure says that the turbines do not fit into the area."""
    return _NO_ROOM in message


@dataclass(frozen=True)
class Kind:
    """How one kind of work is watched. Everything else here sees its keys as values that sort and have a text.

    parse: from the text of a key to the key; InputError for any other text. pattern: a regular expression of these
    texts, without groups. figure: the number in the line of an index by which results are compared. work_of: what a
    place says was expected of it, None if nothing: it has a `name`, `n_tasks`, `execution.retries` and `tasks()`. show:
    what pages show, of a look and of what the caller chose from it.
    """

    parse: Callable[[str], Any]
    pattern: str
    figure: str
    work_of: Callable[[Path], Any]
    show: Callable[["Look", Any], Any]

    def key_of(self, text: str) -> Any:
        """Return the key that a text names; None if it names none."""
        try:
            return self.parse(text)
        except InputError:
            return None


@dataclass(frozen=True)
class FailedTask:
    """A task without a result, and the last thing that went wrong with it.

    kind: "exception", "died", "timed-out", or "cut-off" (often, with its coordinator). final: it is not tried again
    unless somebody asks for it.
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

    @property
    def is_out_of_room(self) -> bool:
        """Return whether the turbines do not fit, so that another attempt cannot help."""
        return is_out_of_room(self.message)


@dataclass(frozen=True)
class WorkerSeen:
    """A worker that lives, or looks as if it hung.

    task: None if it has none in hand. since: of its task, or of its rest. task_s: how long that is, seconds. age_s:
    since the last sign of life. best_aep: of the task so far, GWh.
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
    best_aep: float | None
    age_s: float
    looks_hung: bool


@dataclass(frozen=True)
class HostSeen:
    """The workers of one machine. busy: with a task in hand. hung: of all, those that look it."""

    host: str
    workers: int
    busy: int
    hung: int


@dataclass(frozen=True)
class Holder:
    """The holder of a lock. state: "alive", "dead" or "unknown" (not to be judged from here).

    age_s: for how long its counter was seen to stand still; None where its process is seen, or the lock is unreadable.
    """

    host: str
    pid: int
    since: str
    state: str
    age_s: float | None


@dataclass(frozen=True)
class AbsentTask:
    """reason: why it has no result, as far as that is known. failed: it was tried, and is not tried again by itself."""

    key: Any
    reason: str
    failed: bool = False


@dataclass(frozen=True)
class Absence:
    """campaign: its name. expected: how many tasks it has. tasks: those without a result, sorted by key."""

    campaign: str
    expected: int
    tasks: tuple[AbsentTask, ...]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A run directory, or a lone file, at one moment, whatever kind of work it holds; counted, not verified.

    path: as it was asked for. run: the run directory, None of a lone file. output: the merged file; output_results: how
    many results its index tells of, None if it has none that fits. campaign: its name. expected and missing: None if
    nobody knows what was expected. done: results that are expected; beyond: those that are not (any more). failed: of
    the missing ones. running: of the missing ones, in the hands of live workers. quarantined: files. unreadable_lines:
    of the index. notes: what else looks odd. rate_per_hour: results, lately; None if unknown, and when nothing is left
    to compute.
    """

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
        """The workers by machine."""
        names = sorted({worker.host for worker in self.workers})
        grouped = {name: [worker for worker in self.workers if worker.host == name] for name in names}
        return tuple(
            HostSeen(
                name,
                len(workers),
                sum(worker.task is not None for worker in workers),
                sum(worker.looks_hung for worker in workers),
            )
            for name, workers in grouped.items()
        )

    @property
    def activity(self) -> str:
        """Who is at work on it, in words."""
        owner = self.owner
        if owner is None:
            return "not running" if self.run else "a merged file, with no run directory beside it"
        who = f"process {owner.pid} on {owner.host}, since {owner.since}"
        if owner.state == "alive":
            return f"running: {who}"
        if owner.state == "dead":
            return f"not running; {who}, has died"
        if owner.age_s is None:
            return f"held by {who}; not known from here whether it runs: its lock cannot be read"
        still = duration(owner.age_s)
        return f"held by {who}; not known from here whether it runs: its counter has not moved for {still}"

    @property
    def is_running(self) -> bool:
        """Whether somebody is at work on it, as far as can be seen."""
        alive = self.owner is not None and self.owner.state == "alive"
        return alive or any(not worker.looks_hung for worker in self.workers)

    @property
    def is_complete(self) -> bool:
        """Whether every expected result is there; where nobody knows, whether anything is."""
        return self.missing == 0 if self.missing is not None else self.done > 0

    def as_data(self) -> dict[str, Any]:
        """For JSON; the names stay what they are."""
        hosts = [asdict(host) for host in self.hosts]
        return {**asdict(self), "hosts": hosts, "is_running": self.is_running, "is_complete": self.is_complete}
