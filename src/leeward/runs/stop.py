"""Requests to stop a run: signals."""

import signal
import threading
import time
from types import FrameType
from typing import Any


class StopNowError(BaseException):
    """Raised by a second request to stop. Not an Exception, so that it is not recorded as the failure of a task."""


class StopRequests:
    """Context in which the first signal requests a stop and the second raises StopNowError in the main thread."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.since = 0.0
        self.is_announced = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequests":
        if threading.current_thread() is threading.main_thread():  # other threads cannot handle signals
            for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(name) is not signal.SIG_IGN:  # a background job ignores it
                    self._before[name] = signal.signal(name, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for name, handler in self._before.items():
            signal.signal(name, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise StopNowError
        self.signal = number
        self.since = time.monotonic()

    @property
    def is_requested(self) -> bool:
        return self.signal is not None
