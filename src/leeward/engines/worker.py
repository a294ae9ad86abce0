"""The worker that every engine uses: from a key to a result on the disk."""

import socket
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from leeward.engines.heartbeat import Heartbeat
from leeward.engines.work import Work
from leeward.errors import StorageError
from leeward.store import Key, RunPaths, begin_attempt, forget_record, index_line, store_result

T = TypeVar("T")
Report = Callable[[str], None]
OnRejected = Callable[[StorageError], None]


class Worker:
    """Computes tasks one after the other, stores their results, and writes a heartbeat."""

    def __init__(self, work: Work, paths: RunPaths, name: str) -> None:
        self.name = name
        self._work = work
        self._paths = paths
        self._heartbeat = Heartbeat(paths.workers / f"{name}.json", name, work.blank_progress)
        self._heartbeat.start()

    def perform(self, key: Key, report: Report, on_rejected: OnRejected) -> dict[str, Any]:
        """Compute and store a task; return its line for the index.

        report: called with "began" when the attempt is recorded, and with "computed" before storing.
        on_rejected: called when the disk rejects a write; returns when it is time to retry, or raises.
        """
        paths, heartbeat = self._paths, self._heartbeat

        def rejected(error: StorageError) -> None:
            heartbeat.say(state="waiting for storage")
            on_rejected(error)

        heartbeat.begin(str(key))
        try:
            attempt = (key, self._work.fingerprint(key), self.name, socket.gethostname())
            retry_while_disk_rejects(lambda: begin_attempt(paths, *attempt), rejected)
            heartbeat.say(state="computing")
            report("began")
            result = self._work.compute(key, heartbeat.say)
            heartbeat.say(state="storing")
            report("computed")
            retry_while_disk_rejects(lambda: store_result(paths, result), rejected)
            retry_while_disk_rejects(lambda: forget_record(paths, key), rejected)
            return index_line(result)
        finally:
            heartbeat.rest()

    def close(self) -> None:
        self._heartbeat.stop()


def retry_while_disk_rejects(action: Callable[[], T], on_rejected: OnRejected) -> T:
    """Call the action until the disk accepts its writes or `on_rejected` raises; return its value."""
    while True:
        try:
            return action()
        except StorageError as error:
            on_rejected(error)


def last_line(error: BaseException) -> str:
    """Return the last line of the traceback."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
