"""Data that all parts of one run share: options, report, callbacks, disk and requests to stop."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leeward import __version__
from leeward.engines.work import Adoption, Work
from leeward.events import Emit
from leeward.runs.disk import RunDisk
from leeward.runs.stop import StopRequests
from leeward.store import Audit, Brief, Key, Lock, Record, RunMerge, RunPaths, Value, utc_now


@dataclass(frozen=True)
class Options:
    """Options of a run; see `leeward.run`."""

    only: str | Collection[Key] | None = None
    retry_failed: bool = False
    adopt: tuple[Path, ...] = ()
    keep_infeasible: bool = False
    new: bool = False
    take_over: bool = False
    grace_s: float = 60.0
    storage_wait_s: float = 1800.0


@dataclass
class RunReport:
    """The outcome of a run.

    wanted: the selected tasks; done, failed and missing refer to these. results: a brief of every result in the run
    directory, by key; is_counted: whether the run has read them. failures: records of failed tasks. signal: number of
    the signal that requested a stop, or None. engine_lost: the reason if the run lost all workers.
    """

    paths: RunPaths
    work: Work
    wanted: list[Key]
    results: dict[Key, Brief] = field(default_factory=dict)
    failures: dict[Key, Record] = field(default_factory=dict)
    computed: int = 0
    is_counted: bool = False
    adoption: Adoption | None = None
    merged: RunMerge | None = None
    quarantined: int = 0
    signal: int | None = None
    engine_lost: str = ""
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"<RunReport: {self.done} of {len(self.wanted)} done, {len(self.failures)} failed, {self.paths.output}>"

    @property
    def campaign(self) -> Any:
        """Return the campaign that was run."""
        return self.work.source

    @property
    def done(self) -> int:
        return sum(key in self.results for key in self.wanted)

    @property
    def failed(self) -> list[Key]:
        return [key for key in self.wanted if key in self.failures and key not in self.results]

    @property
    def missing(self) -> list[Key]:
        return [key for key in self.wanted if key not in self.results]

    @property
    def is_complete(self) -> bool:
        """Return whether every selected task has a verified result in the merged file."""
        return self.merged is not None and all(key in self.merged.keys for key in self.wanted)

    @property
    def exit_code(self) -> int:
        """Return 0 if complete, 130 or 143 if a signal stopped the run before that, else 3."""
        if self.is_complete:
            return 0
        return 3 if self.signal is None else 128 + self.signal


@dataclass(frozen=True)
class RunContext:
    """The parts of one run. report: its outcome so far. emit: sends an event."""

    report: RunReport
    options: Options
    emit: Emit
    lock: Lock
    audit: Audit
    stop: StopRequests
    disk: RunDisk

    @property
    def work(self) -> Work:
        return self.report.work

    @property
    def paths(self) -> RunPaths:
        return self.report.paths

    def record(self, kind: str, /, **facts: Any) -> None:
        """Write a line to the audit log; wait while the disk rejects writes."""
        self.disk.retry(lambda: self.audit.record(kind, **facts))

    def announce_stop(self) -> None:
        """Emit "stopping" once after a request to stop."""
        if self.stop.is_requested and not self.stop.is_announced:
            self.stop.is_announced = True
            in_hand, grace_s = len(self.disk.in_hand), self.options.grace_s
            self.emit("stopping", signal=self.stop.signal, in_hand=in_hand, grace_s=grace_s)

    def attributes(self) -> dict[str, Value]:
        """Return the root attributes of a merged file."""
        work = self.work
        return {
            **work.attributes(),
            "leeward_version": __version__,
            "created": utc_now(),
            "total_configs": work.n_tasks + sum(key not in work for key in self.report.results),
        }
