"""What all parts of one run share: its work, its directory, its callbacks, and requests to stop."""

import signal
import threading
import time
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

from leeward import __version__
from leeward.engines.engine import processes_for
from leeward.engines.work import Work
from leeward.events import Emit
from leeward.runs.report import Options, RunReport
from leeward.store import Audit, Lock, RunPaths, Value, utc_now


class StopNowError(BaseException):
    """A second request: end at once. Not an Exception, so that nothing takes it for a task's failure."""


class StopRequests:
    """Within it, the first signal is a request, and the second raises StopNowError in the main thread."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.since = 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequests":
        if threading.current_thread() is threading.main_thread():  # elsewhere signals cannot be caught
            for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(name) is not signal.SIG_IGN:  # as for a job in the background
                    self._before[name] = signal.signal(name, self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, handler in self._before.items():
            signal.signal(name, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise StopNowError
        self.signal = number
        self.since = time.monotonic()

    @property
    def is_asked(self) -> bool:
        return self.signal is not None


@dataclass(frozen=True)
class RunContext:
    """report: what the run has come to so far. emit: sends an event. stop: requests to stop."""

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
        """Return how many processes to use on this machine, if there is work for so many."""
        return processes_for(self.work.execution, most)

    def attributes(self) -> dict[str, Value]:
        """Return the attributes of the root of a merged file."""
        work = self.work
        return {
            **work.attributes(),
            "leeward_version": __version__,
            "created": utc_now(),
            "total_configs": work.n_tasks + sum(key not in work for key in self.report.results),
        }
