"""Looks at a place: one at a time, no more often than they are worth, and no page waits for a long one."""

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

SHORTEST_S = 1.0  # between two looks
PATIENCE = 10.0  # looking takes at most this part of the time: a tenth
LOOK_S = 0.5  # how long a page waits for a new look; then it shows what the last one saw
LONG_S = 15.0  # after which a page says that it is old
T = TypeVar("T")


class Background:
    """Does one thing after the other, in a thread that ends with the process whatever it is doing.

    A pool of the library would be waited for at the end: for a disk that hangs, or for half a minute of compiling.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Have something done, when all that was asked for before is."""
        future: Future[T] = Future()
        self._queue.put((future, work))
        return future

    def _work(self) -> None:
        while True:
            future, work = self._queue.get()
            try:
                future.set_result(work())
            except BaseException as error:  # who asks for the result gets it
                future.set_exception(error)
            del future, work  # until the next one comes they would be kept alive


class Looks:
    """The latest look at a place. Safe to use from several threads."""

    def __init__(self, path: Path, campaign: Campaign | None) -> None:
        """campaign: what the results belong to, instead of what the place says."""
        self._path = path
        self._named = campaign
        self._lock = threading.Lock()
        self._eyes = Background("looking")
        self._under_way: Future[Observation] | None = None
        self._began = self._next = 0.0
        self._seen: Observation | None = None
        self._failed: LeewardError | None = None  # the last look
        self._file: object = None  # which one was seen, of a lone file

    def latest(self) -> Observation:
        """What was seen last. Where that is old a new look is taken, and waited for if it is short.

        What was wrong with the last look is raised, until one goes well.
        """
        with self._lock:
            if self._under_way is None and time.monotonic() >= self._next:
                self._began = time.monotonic()
                self._under_way = self._eyes.submit(self._look)
            look, waited = self._under_way, time.monotonic() - self._began
            is_first = self._seen is None and self._failed is None
        if look is not None:
            try:  # once: a page asks for it several times
                return look.result(timeout=None if is_first else max(LOOK_S - waited, 0.0))
            except TimeoutError:
                pass  # then the one before
        with self._lock:
            if self._failed is not None or self._seen is None:
                raise self._failed or StorageError(f"{self._path}: nothing was seen of it yet")
            return self._seen

    def remark(self) -> str:
        """How old the latest look is, where that is worth a word."""
        with self._lock:
            silent = time.monotonic() - self._began if self._under_way is not None else 0.0
        return f"; the place has not answered for {duration(silent)}" if silent > LONG_S else ""

    def _look(self) -> Observation:
        """In the background."""
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
            raise failed or StorageError(f"{self._path}: nothing was seen of it")
        return seen

    def _lone_file(self) -> object:
        """Which file it is, to be looked at only when it is another: without an index it is read as a whole."""
        if run_of(self._path) is not None or not self._path.is_file():
            return None
        return identity(self._path), identity(output_index_path(self._path))
