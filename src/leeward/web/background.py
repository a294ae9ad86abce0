"""Work that a page does not wait for."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

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
