"""Writes to the run directory, in order; they wait while the disk rejects them."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from leeward.engines.worker import retry_while_disk_rejects
from leeward.errors import StorageError
from leeward.events import Emit
from leeward.runs.context import StopRequests
from leeward.store import Key

TRY_AGAIN_S = 1.0
TRY_ELSEWHERE_S = 30.0  # while the disk rejects writes: it may be so in one place only


class RunDisk:
    """wait_s: how long the disk may reject writes; then StorageError. in_hand: tasks whose results are not stored."""

    def __init__(self, emit: Emit, stop: StopRequests, wait_s: float) -> None:
        self.in_hand: set[Key] = set()
        self._emit = emit
        self._stop = stop
        self._wait_s = wait_s
        self._unwritten: deque[Callable[[], object]] = deque()
        self._stuck: set[Key] = set()  # tasks in hand that their workers cannot store
        self._hangs = False  # storing a result did, and none was stored since
        self._rejected_since: float | None = None
        self._tried = 0.0

    @property
    def has_unwritten(self) -> bool:
        return bool(self._unwritten)

    def may_hand_out(self) -> bool:
        """Return whether another task may begin.

        Where storing hangs, one task at a time finds out whether it still does; where the disk rejects the writes of
        some workers, after a while, whether it does those of others.
        """
        if self._unwritten or (self._hangs and self.in_hand):
            return False
        since = time.monotonic() if self._rejected_since is None else self._rejected_since
        return not self._stuck or (self.in_hand <= self._stuck and time.monotonic() - since > TRY_ELSEWHERE_S)

    def write(self, action: Callable[[], object]) -> None:
        """Do something to the run directory, now or as soon as the disk accepts it; in order."""
        self._unwritten.append(action)
        if len(self._unwritten) == 1:
            self._write_out()

    def write_again(self) -> None:
        """Try once more what was rejected, from time to time."""
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

    def retry(self, action: Callable[[], Any]) -> Any:
        """Do what has to be done before anything else; return its value. A request to stop ends the waiting."""
        value = retry_while_disk_rejects(action, self._wait)
        self._note_accepted()
        return value

    def _wait(self, error: StorageError) -> None:
        self.note_rejected(str(error))
        if self._stop.is_asked:
            raise error
        time.sleep(TRY_AGAIN_S)

    def note_stuck(self, key: Key, message: str) -> None:
        """A worker keeps a result that the disk rejects."""
        self._stuck.add(key)
        self.note_rejected(message)

    def note_unstuck(self, key: Key) -> None:
        self._stuck.discard(key)
        self._note_accepted()

    def note_hanging(self, message: str) -> None:
        """Storing a result took too long."""
        self._hangs = True
        self.note_rejected(message)

    def note_stored(self, key: Key) -> None:
        self.in_hand.discard(key)
        if self._hangs:
            self._hangs = False
            self._note_accepted()

    def forget_tasks(self) -> set[Key]:
        """The engine is closed: return the tasks that were in hand."""
        in_hand, self.in_hand = self.in_hand, set()
        self._stuck.clear()
        return in_hand

    def note_rejected(self, message: str) -> None:
        """Raise StorageError when the disk has rejected writes for too long."""
        now = time.monotonic()
        if self._rejected_since is None:
            self._rejected_since = now
            self._emit("storage-refuses", message=message, wait_s=self._wait_s)
        waited = now - self._rejected_since
        if waited > self._wait_s:
            raise StorageError(
                f"{message}; gave up after {waited:.0f} s. Everything stored before is there; "
                f"{len(self.in_hand)} task(s) in hand will be computed again: make room, and run the same command"
            )

    def _note_accepted(self) -> None:
        if self._rejected_since is not None and not (self._stuck or self._hangs):
            self._emit("storage-accepts", seconds=round(time.monotonic() - self._rejected_since, 1))
            self._rejected_since = None
