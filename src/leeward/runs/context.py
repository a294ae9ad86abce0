"""Data that all parts of one run share: options, report, callbacks and requests to stop."""

import signal
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from leeward import __version__
from leeward.engines.engine import processes_for
from leeward.engines.work import Adoption, Work
from leeward.events import Emit
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
    the signal that requested a stop, if any. engine_lost: why no worker was left, if so.
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
        """Return 0 if complete, 3 if results are missing or failed, 130 or 143 if interrupted before."""
        if self.is_complete:
            return 0
        return 3 if self.signal is None else 128 + self.signal


class StopNowError(BaseException):
    """Raised by a second request to stop. Not an Exception, so that it does not count as a task's failure."""


class StopRequests:
    """Context in which the first signal requests a stop and the second raises StopNowError in the main thread."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.since = 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequests":
        if threading.current_thread() is threading.main_thread():  # other threads cannot catch signals
            for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(name) is not signal.SIG_IGN:  # a background job ignores it
                    self._before[name] = signal.signal(name, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, handler in self._before.items():
            signal.signal(name, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise StopNowError
        self.signal = number
        self.since = time.monotonic()

    @property
    def is_asked(self) -> bool:
        return self.signal is not None


@dataclass(frozen=True)
class RunContext:
    """The parts of one run. report: its outcome so far. emit: sends an event. stop: requests to stop."""

    report: RunReport
    options: Options
    emit: Emit
    lock: Lock
    audit: Audit
    stop: StopRequests

    @property
    def work(self) -> Work:
        return self.report.work

    @property
    def paths(self) -> RunPaths:
        return self.report.paths

    def processes(self, most: int) -> int:
        """Return how many processes to use on this machine, at most `most`."""
        return processes_for(self.work.execution, most)

    def attributes(self) -> dict[str, Value]:
        """Return the root attributes of a merged file."""
        work = self.work
        return {
            **work.attributes(),
            "leeward_version": __version__,
            "created": utc_now(),
            "total_configs": work.n_tasks + sum(key not in work for key in self.report.results),
        }
