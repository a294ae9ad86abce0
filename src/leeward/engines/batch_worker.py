"""The worker that computes batches of tasks on a GPU and stores each result as soon as it is known."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from leeward.campaign.batch import TaskFailure
from leeward.engines.worker import Enter, Report, Worker, failure
from leeward.errors import LeewardError
from leeward.store import Key, Result
from leeward.wording import count

DISK_THREADS = 8  # a disk syncs several small files in little more than the time of one
MOST_UNSTORED = 64  # results in memory; more wait in `compute_many`
PROGRESS_S = 0.25  # shortest time between two messages of progress


class BatchWorker(Worker):
    """Computes one task or one batch after the other."""

    def perform_batch(
        self, keys: Sequence[Key], report: Report, enter: Enter, note_progress: Callable[[], None]
    ) -> None:
        """Compute the tasks together; store and report each as soon as it is finished.

        An attempt of every task is recorded before the first computation. report, enter: as in `perform`, but called
        from several threads. note_progress: called now and then after a step. If `compute_many` raises an error, the
        finished results are stored first.
        """
        self._heartbeat.begin(count(len(keys), "task"))
        try:
            with ThreadPoolExecutor(DISK_THREADS, "disk") as disk:
                for _ in disk.map(lambda key: self._record(key, report, enter), keys):
                    pass  # raises the error of a thread
                self._heartbeat.show(state="computing")
                self._compute(keys, disk, report, enter, note_progress)
        finally:
            self._heartbeat.begin(None)

    def _compute(
        self,
        keys: Sequence[Key],
        disk: ThreadPoolExecutor,
        report: Report,
        enter: Enter,
        note_progress: Callable[[], None],
    ) -> None:
        began, noted, left = time.monotonic(), 0.0, set(keys)
        places = threading.Semaphore(MOST_UNSTORED)

        def show_progress(**facts: Any) -> None:
            nonlocal noted
            self._heartbeat.show(**facts)
            if time.monotonic() - noted >= PROGRESS_S:
                noted = time.monotonic()
                note_progress()

        def store(result: Result) -> None:
            try:
                report(self._store(result, report, enter))
            except Exception as error:  # the coordinator records the failure
                report(failure(result.key, error, began, self.name))
            finally:
                places.release()

        for outcome in self._work.compute_many(keys, show_progress):
            if outcome.key not in left:
                raise LeewardError(f"the batch returned {outcome.key} twice, or without a request")
            left.discard(outcome.key)
            self._heartbeat.show(task=f"{count(len(keys), 'task')}, {len(keys) - len(left)} computed")
            if isinstance(outcome, TaskFailure):
                report(failure(outcome.key, outcome.exception, began, self.name))
            else:
                places.acquire()
                disk.submit(store, outcome)
        for key in left:
            report(failure(key, LeewardError("the batch ended without a result of this task"), began, self.name))
