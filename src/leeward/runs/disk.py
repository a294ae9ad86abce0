"""Writes to the run directory, in order. They wait while the disk rejects them."""

import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from leeward.errors import StorageError
from leeward.events import Emit
from leeward.runs.stop import StopRequests
from leeward.store import Key

T = TypeVar("T")
TRY_AGAIN_S = 1.0
TRY_ELSEWHERE_S = 30.0  # after this time other workers try: the disk may reject the writes of one machine only


class RunDisk:
    """A queue of writes. in_hand: running tasks. wait_s: how long the disk may reject writes before StorageError."""

    def __init__(self, emit: Emit, stop: StopRequests, wait_s: float) -> None:
        self.in_hand: set[Key] = set()
        self._emit = emit
        self._stop = stop
        self._wait_s = wait_s
        self._unwritten: deque[Callable[[], object]] = deque()
        self._stuck: set[Key] = set()  # tasks whose workers cannot store the result
        self._hangs = False  # a worker hung while storing, and no result was stored since
        self._rejected_since: float | None = None
        self._tried = 0.0

    @property
    def has_unwritten(self) -> bool:
        return bool(self._unwritten)

    def may_hand_out(self) -> bool:
        """Return whether another task may begin.

        While storing hangs, tasks run one at a time to test the disk. While the disk rejects the writes of some
        workers, others try after a while.
        """
        if self._unwritten or (self._hangs and self.in_hand):
            return False
        since = time.monotonic() if self._rejected_since is None else self._rejected_since
        return not self._stuck or (self.in_hand <= self._stuck and time.monotonic() - since > TRY_ELSEWHERE_S)

    def write(self, action: Callable[[], object]) -> None:
        """Write to the run directory now, or after the writes that wait for the disk."""
        self._unwritten.append(action)
        if len(self._unwritten) == 1:
            self._write_out()

    def retry_writes(self) -> None:
        """Retry rejected writes, at most once in TRY_AGAIN_S."""
        now = time.monotonic()
        if self._unwritten and now - self._tried > TRY_AGAIN_S:
            self._tried = now
            self._write_out()

    def _write_out(self) -> None:
        while self._unwritten:
            try:
                self._unwritten[0]()
            except StorageError as error:
                self.note_rejected(str(error))
                return
            self._unwritten.popleft()
            self._note_accepted()

    def retry(self, action: Callable[[], T]) -> T:
        """Call the action until the disk accepts it; return its value. A request to stop ends the waiting."""
        while True:
            try:
                value = action()
            except StorageError as error:
                self.note_rejected(str(error))
                if self._stop.is_requested:
                    raise
                time.sleep(TRY_AGAIN_S)
            else:
                self._note_accepted()
                return value

    def note_stuck(self, key: Key, message: str) -> None:
        """Note that a worker cannot store its result."""
        self._stuck.add(key)
        self.note_rejected(message)

    def note_unstuck(self, key: Key) -> None:
        self._stuck.discard(key)
        self._note_accepted()

    def note_hanging(self, message: str) -> None:
        """Note that storing a result took too long."""
        self._hangs = True
        self.note_rejected(message)

    def note_stored(self, key: Key) -> None:
        self.in_hand.discard(key)
        if self._hangs:
            self._hangs = False
            self._note_accepted()

    def clear_tasks(self) -> set[Key]:
        """Remove and return the running tasks, after the engine was closed."""
        in_hand, self.in_hand = self.in_hand, set()
        self._stuck.clear()
        return in_hand

    def note_rejected(self, message: str) -> None:
        """Note a rejected write; raise StorageError if the disk has rejected writes for too long."""
        now = time.monotonic()
        if self._rejected_since is None:
            self._rejected_since = now
            self._emit("storage-refuses", message=message, wait_s=self._wait_s)
        waited = now - self._rejected_since
        if waited > self._wait_s:
            raise StorageError(
                f"{message}; the disk has rejected writes for {waited:.0f} s. Stored results are safe; "
                f"{len(self.in_hand)} unfinished task(s) will be recomputed: free some space and run the same command "
                "again"
            )

    def _note_accepted(self) -> None:
        if self._rejected_since is not None and not (self._stuck or self._hangs):
            self._emit("storage-accepts", seconds=round(time.monotonic() - self._rejected_since, 1))
            self._rejected_since = None
