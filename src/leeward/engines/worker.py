"""The worker that every engine uses: it computes a task and stores the result."""

import socket
import time
import traceback
from collections.abc import Callable

from leeward.engines.engine import Began, Done, Failed, Outcome, Stuck, Unstuck
from leeward.engines.heartbeat import Heartbeat
from leeward.engines.work import Work
from leeward.errors import StorageError
from leeward.store import Key, RunPaths, begin_attempt, remove_record, store_result

PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # pauses before retries while the disk rejects writes; the last one repeats


class Worker:
    """Computes tasks one after the other, stores their results, and writes a heartbeat."""

    def __init__(self, work: Work, paths: RunPaths, name: str) -> None:
        self.name = name
        self._work = work
        self._paths = paths
        self._heartbeat = Heartbeat(paths.workers / f"{name}.json", name)

    def perform(self, key: Key, report: Callable[[Outcome], None], enter: Callable[[str], None]) -> Done:
        """Compute and store a task; retry while the disk rejects writes.

        report: called with Began when the attempt is recorded, with Stuck whenever the disk rejects a write, and with
        Unstuck when it accepts one again. enter: called with "recording" and "storing" before these phases.
        """
        paths, heartbeat = self._paths, self._heartbeat

        def retry(action: Callable[[], object]) -> None:
            rejected = 0
            while True:
                try:
                    action()
                except StorageError as error:
                    heartbeat.show(state="waiting for storage")
                    report(Stuck(key, str(error)))
                    time.sleep(PAUSES_S[min(rejected, len(PAUSES_S) - 1)])
                    rejected += 1
                else:
                    break
            if rejected:
                report(Unstuck(key))

        enter("recording")
        heartbeat.begin(str(key))
        try:
            attempt = (key, self._work.fingerprint(key), self.name, socket.gethostname())
            retry(lambda: begin_attempt(paths, *attempt))
            heartbeat.show(state="computing")
            report(Began(key, self.name))
            result = self._work.compute(key, heartbeat.show)
            heartbeat.show(state="storing")
            enter("storing")
            retry(lambda: store_result(paths, result))
            retry(lambda: remove_record(paths, key))
            return Done(key, result.index_line(), self.name)
        finally:
            heartbeat.begin(None)

    def close(self) -> None:
        self._heartbeat.stop()


def failure(key: Key, error: BaseException, began: float, worker: str) -> Failed:
    """Return the failure of a task that raised an error. began: on the monotonic clock."""
    shown = "".join(traceback.format_exception(error))
    return Failed(key, "exception", last_line(error), shown, time.monotonic() - began, worker)


def last_line(error: BaseException) -> str:
    """Return the last line of the traceback."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
