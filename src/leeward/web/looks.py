"""Read the state of a run in the background: one reading at a time, rate-limited, and no page waits long for it."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from leeward.campaign import Campaign
from leeward.errors import LeewardError, StorageError
from leeward.store import output_index_path
from leeward.watch import Observation, identity, observe, run_of
from leeward.wording import duration

SHORTEST_S = 1.0  # between two readings
PATIENCE = 10.0  # pause after a reading, as a multiple of its duration
LOOK_S = 0.5  # wait for a new reading; then a page shows the last one
LONG_S = 15.0  # after this time a page says that it is out of date
T = TypeVar("T")


class Background:
    """A queue of work in a daemon thread.

    Python waits for a thread pool when it exits, even if the disk hangs or half a minute of compiling is left.
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
            del future, work  # else they would be kept alive until the next item


class Looks:
    """The latest reading of a run directory or file. Thread-safe."""

    def __init__(self, path: Path, campaign: Campaign | None) -> None:
        """Start the background thread. campaign: replaces the one found with the results."""
        self._path = path
        self._named = campaign
        self._lock = threading.Lock()
        self._reader = Background("reading")
        self._under_way: Future[Observation] | None = None
        self._began = self._next = 0.0
        self._seen: Observation | None = None
        self._failed: LeewardError | None = None  # by the last reading
        self._file: object = None  # identity of a lone file when last read

    def latest(self) -> Observation:
        """Return the latest reading, after a short wait for a new one if it is old; raise the error of the latest."""
        with self._lock:
            if self._under_way is None and time.monotonic() >= self._next:
                self._began = time.monotonic()
                self._under_way = self._reader.submit(self._look)
            look, waited = self._under_way, time.monotonic() - self._began
            is_first = self._seen is None and self._failed is None
        if look is not None:
            try:
                return look.result(timeout=None if is_first else max(LOOK_S - waited, 0.0))
            except TimeoutError:
                pass  # use the previous one
        with self._lock:
            if self._failed is not None or self._seen is None:
                raise self._failed or StorageError(f"{self._path}: not read yet")
            return self._seen

    def remark(self) -> str:
        """Return a remark if the latest reading is overdue, else ""."""
        with self._lock:
            silent = time.monotonic() - self._began if self._under_way is not None else 0.0
        return f"; the storage has not responded for {duration(silent)}" if silent > LONG_S else ""

    def _look(self) -> Observation:
        seen, failed = self._seen, None
        try:
            file = self._lone_file()
            if seen is None or file is None or file != self._file:
                seen = observe(self._path, campaign=self._named)
            self._file = file
        except LeewardError as error:
            failed = error
        except OSError as error:
            failed = StorageError(f"{self._path}: cannot be read ({error})")
        with self._lock:
            took = time.monotonic() - self._began
            self._seen, self._failed = seen, failed
            self._next = time.monotonic() + max(SHORTEST_S, PATIENCE * took)
            self._under_way = None
        if failed is not None or seen is None:
            raise failed or StorageError(f"{self._path}: nothing was read")
        return seen

    def _lone_file(self) -> object:
        """Return the identity of a lone file, to read it again only when it changes; None for a run directory."""
        if run_of(self._path) is not None or not self._path.is_file():
            return None
        return identity(self._path), identity(output_index_path(self._path))
