"""The worker that every engine uses: it computes a task and stores the result."""

import socket
import time
import traceback
from collections.abc import Callable

from leeward.engines.engine import Began, Done, Failed, Outcome, Stuck, Unstuck
from leeward.engines.heartbeat import Heartbeat
from leeward.engines.work import Work
from leeward.errors import StorageError
from leeward.store import Key, Result, RunPaths, begin_attempt, remove_record, store_result

Report = Callable[[Outcome], None]
Enter = Callable[[Key, str], None]

PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # pauses before retries while the disk rejects writes; the last one repeats


class Worker:
    """Computes tasks one after the other, stores their results, and writes a heartbeat."""

    def __init__(self, work: Work, paths: RunPaths, name: str) -> None:
        self.name = name
        self._work = work
        self._paths = paths
        self._heartbeat = Heartbeat(paths.workers / f"{name}.json", name)

    def perform(self, key: Key, report: Report, enter: Enter) -> Done:
        """Compute and store a task; retry while the disk rejects writes.

        report: called with Began when the attempt is recorded, with Stuck whenever the disk rejects a write, and with
        Unstuck when it accepts one again. enter: called with the key and "recording" or "storing" before these phases.
        """
        self._heartbeat.begin(str(key))
        try:
            self._record(key, report, enter)
            self._heartbeat.show(state="computing")
            result = self._work.compute(key, self._heartbeat.show)
            self._heartbeat.show(state="storing")
            return self._store(result, report, enter)
        finally:
            self._heartbeat.begin(None)

    def _record(self, key: Key, report: Report, enter: Enter) -> None:
        """Record an attempt of a task."""
        enter(key, "recording")
        attempt = (key, self._work.fingerprint(key), self.name, socket.gethostname())
        self._insist(key, lambda: begin_attempt(self._paths, *attempt), report)
        report(Began(key, self.name))

    def _store(self, result: Result, report: Report, enter: Enter) -> Done:
        """Store a result, and remove the record of its attempts."""
        key = result.key
        enter(key, "storing")
        self._insist(key, lambda: store_result(self._paths, result), report)
        self._insist(key, lambda: remove_record(self._paths, key), report)
        return Done(key, result.index_line(), self.name)

    def _insist(self, key: Key, action: Callable[[], object], report: Report) -> None:
        """Call the action until the disk accepts it."""
        rejected = 0
        while True:
            try:
                action()
            except StorageError as error:
                self._heartbeat.show(state="waiting for storage")
                report(Stuck(key, str(error)))
                time.sleep(PAUSES_S[min(rejected, len(PAUSES_S) - 1)])
                rejected += 1
            else:
                break
        if rejected:
            self._heartbeat.show(state="computing")
            report(Unstuck(key))

    def close(self) -> None:
        self._heartbeat.stop()


def failure(key: Key, error: BaseException, began: float, worker: str) -> Failed:
    """Return the failure of a task that raised an error. began: on the monotonic clock."""
    shown = "".join(traceback.format_exception(error))
    return Failed(key, "exception", last_line(error), shown, time.monotonic() - began, worker)


def last_line(error: BaseException) -> str:
    """Return the last line of the traceback."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
