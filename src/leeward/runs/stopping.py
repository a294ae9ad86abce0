"""Requests to stop: Ctrl-C, a closed terminal, the SIGTERM by which SLURM and others warn before a time limit."""

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any


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
