"""Read the state of a run in the background, one reading at a time, so that no page waits long for the disk."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar, cast

from leeward.errors import StorageError
from leeward.store import file_identity, output_index_path
from leeward.watch import observe, run_of
from leeward.wording import duration

SHORTEST_PAUSE_S = 1.0  # between two readings
PAUSE_FACTOR = 10.0  # pause after a reading, as a multiple of its duration
WAIT_S = 0.5  # a page waits this long for a new reading, then shows the last one
OVERDUE_S = 15.0  # after this time a page notes that its data are out of date
T = TypeVar("T")


class Background:
    """A queue of work in a daemon thread.

    A thread pool would delay the exit of Python while the disk hangs or a kernel is compiled.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Queue work and return its future."""
        future: Future[T] = Future()
        self._queue.put((future, work))
        return future

    def _work(self) -> None:
        while True:
            future, work = self._queue.get()
            try:
                future.set_result(work())
            except BaseException as error:  # raised by the future's `result`
                future.set_exception(error)
            del future, work  # otherwise they stay in memory until the next item


class Reader:
    """Reads a run directory or file in the background. Thread-safe."""

    def __init__(self, path: Path, campaign: Any) -> None:
        """Start the background thread. campaign: replaces the one found with the results."""
        self._path = path
        self._named = campaign
        self._lock = threading.Lock()
        self._thread = Background("reading")
        self._last: Future[Any] | None = None
        self._current: Future[Any] | None = None
        self._began = self._next = 0.0
        self._seen: Any = None
        self._file: object = None  # identity of a lone file when last read

    def latest(self) -> Any:
        """Return the latest reading, or raise its error. If it is old, start another one and wait for it briefly."""
        with self._lock:
            if self._current is None and time.monotonic() >= self._next:
                self._began = time.monotonic()
                self._current = self._thread.submit(self._read)
            last, current, waited = self._last, self._current, time.monotonic() - self._began
        if last is None or current is None:  # there is only one
            return cast(Future[Any], current or last).result()
        try:
            return current.result(timeout=max(WAIT_S - waited, 0.0))
        except TimeoutError:
            return last.result()

    def remark(self) -> str:
        """Return a remark if the current reading is overdue, else ""."""
        with self._lock:
            silent = time.monotonic() - self._began if self._current is not None else 0.0
        return f"; the storage has not responded for {duration(silent)}" if silent > OVERDUE_S else ""

    def _read(self) -> Any:
        try:
            file = self._lone_file()
            if self._seen is None or file is None or file != self._file:
                self._seen = observe(self._path, campaign=self._named)
            self._file = file
            return self._seen
        except OSError as error:
            raise StorageError(f"{self._path}: cannot be read ({error})") from error
        finally:
            with self._lock:
                took = time.monotonic() - self._began
                self._next = time.monotonic() + max(SHORTEST_PAUSE_S, PAUSE_FACTOR * took)
                self._last, self._current = self._current, None

    def _lone_file(self) -> object:
        """Return the identity of a lone file, to read it again only when it changes; None for a run directory."""
        if run_of(self._path) is not None or not self._path.is_file():
            return None
        return file_identity(self._path), file_identity(output_index_path(self._path))
