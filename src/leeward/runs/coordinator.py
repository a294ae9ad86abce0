"""The coordinator assigns tasks, retries them, and waits while the disk rejects writes."""

import functools
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from leeward.engines.engine import Began, Done, Engine, Failed, Outcome, Returned, Stuck, Unstuck
from leeward.errors import LeewardError, StorageError
from leeward.runs import disk as disks
from leeward.runs.context import RunContext
from leeward.runs.result_files import ResultFiles
from leeward.runs.resume import read_or_quarantine
from leeward.store import (
    INTERVAL_S,
    Brief,
    Key,
    Record,
    Result,
    begin_attempt,
    encode_line,
    event_facts,
    record_failure,
    remove_record,
    store_result,
    withdraw_attempt,
)

POLL_S = 0.5


class Coordinator:
    """Drives an engine through the tasks and adds results and failures to the report."""

    def __init__(self, context: RunContext, files: ResultFiles) -> None:
        self._context = context
        self._paths = context.paths
        self._report = context.report
        self._stop = context.stop
        self._disk = context.disk
        self._files = files
        self._queue: deque[Key] = deque()
        self._abandoned: set[Key] = set()
        self._checked = 0.0

    def run(self, tasks: Iterable[Key], engine: Engine) -> None:
        """Run until all tasks have a result or have failed, or until a request to stop."""
        self._queue.extend(tasks)
        try:
            while self._is_unfinished():
                while not self._stop.is_requested and self._disk.may_hand_out() and engine.room > 0 and self._queue:
                    key = self._queue.popleft()
                    self._disk.in_hand.add(key)
                    engine.start(key)
                for outcome in engine.poll(POLL_S if self._disk.in_hand else disks.TRY_AGAIN_S):
                    self.on_outcome(outcome)
                self._maintain()
        finally:
            cut_off = engine.close()
            self._abandoned = self._disk.clear_tasks()
            self._forgive(cut_off, engine.mark)

    def find_abandoned(self) -> None:
        """Find results that workers stored after the engine was lost."""
        for key in sorted(self._abandoned):
            if (line := self._files.find(key)) is not None:
                self._done(key, line, "")

    def left(self) -> int:
        """Return the number of unfinished tasks, running ones included."""
        return len(self._queue) + len(self._disk.in_hand)

    def _is_unfinished(self) -> bool:
        """Return whether to continue: until all is done, or after a request to stop until the grace time is over."""
        if not self._stop.is_requested:
            return bool(self._queue or self._disk.in_hand or self._disk.has_unwritten)
        self._context.announce_stop()
        return bool(self._disk.in_hand) and time.monotonic() - self._stop.since < self._context.options.grace_s

    def on_outcome(self, outcome: Outcome) -> None:
        """Handle an outcome of the engine."""
        if isinstance(outcome, Done):
            if outcome.result is None:
                self._done(outcome.key, outcome.line, outcome.worker)
            else:
                self._disk.write(functools.partial(self._store, outcome, outcome.result))
        elif isinstance(outcome, Began):
            self._began(outcome)
        elif isinstance(outcome, Returned):
            self._disk.write(functools.partial(self._returned, outcome))
        elif isinstance(outcome, Failed):
            self._failed(outcome)
        elif isinstance(outcome, Stuck):
            self._disk.note_stuck(outcome.key, outcome.message)
        elif isinstance(outcome, Unstuck):
            self._disk.note_unstuck(outcome.key)

    def _began(self, outcome: Began) -> None:
        """Record an attempt if its worker could not."""
        if outcome.fingerprint is not None:
            facts = (outcome.key, outcome.fingerprint, outcome.worker, _host_of(outcome.worker))
            self._disk.write(lambda: begin_attempt(self._paths, *facts))

    def _forgive(self, keys: list[Key], mark: str) -> None:
        """Remove the records of attempts that the coordinator has ended, unless it has lost the lock."""
        try:
            self._context.lock.check()
        except LeewardError as error:
            self._context.emit("not-forgiven", tasks=len(keys), message=str(error))
            return
        for key in keys:
            self._disk.write(functools.partial(withdraw_attempt, self._paths, key, mark=mark))

    def _record_of(self, key: Key) -> Record:
        found = read_or_quarantine(self._paths, self._paths.failure(key), self._context.audit.record)
        return found or Record(str(key))

    def _returned(self, outcome: Returned) -> None:
        """Queue a task again, unless the disk shows that it began. The message may be lost with its worker."""
        key = outcome.key
        last = self._record_of(key).unfinished if outcome.mark else None
        if (line := self._files.find(key)) is not None:
            self._done(key, line, "")
        elif last is not None and f"-{outcome.mark}" in last:
            self._failed(Failed(key, "died", "its worker was lost just after the task began", "", 0.0, last))
        else:
            self._disk.in_hand.discard(key)
            self._queue.appendleft(key)

    def _store(self, outcome: Done, result: Result) -> None:
        """Store a result that its worker could not."""
        store_result(self._paths, result)
        remove_record(self._paths, outcome.key)
        self._done(outcome.key, outcome.line, outcome.worker)

    def _done(self, key: Key, line: dict[str, Any], worker: str) -> None:
        report = self._report
        self._disk.note_stored(key)
        report.results[key] = Brief.of(line)
        self._files.add([key])
        report.computed += 1
        report.failures.pop(key, None)
        self._disk.write(lambda: self._files.append_index(encode_line(line)))
        counts = {"done": len(report.results), "failed": len(report.failures), "total": len(report.wanted)}
        self._context.emit("done", worker=worker, **counts, **event_facts(line))

    def _failed(self, outcome: Failed) -> None:
        key = outcome.key
        if outcome.kind != "exception" and (line := self._files.find(key)) is not None:  # stored before its worker died
            self._done(key, line, outcome.worker)
            self._disk.write(lambda: remove_record(self._paths, key))
            return
        self._disk.in_hand.discard(key)
        if outcome.kind == "storing":  # the disk caused the failure, not the task
            self._queue.append(key)
            self._disk.note_hanging(outcome.message)
            self._disk.write(lambda: withdraw_attempt(self._paths, key, outcome.worker))
        else:
            self._disk.write(lambda: self._retry_or_fail(outcome))

    def _retry_or_fail(self, outcome: Failed) -> None:
        """Record a failure. Queue the task again unless it raised an error or has used all its retries."""
        key, died = outcome.key, outcome.alone and outcome.kind in ("died", "timed-out")
        facts = {"message": outcome.message, "worker": outcome.worker, "seconds": round(outcome.seconds, 1)}
        old, retries = self._record_of(key), self._context.work.execution.retries
        final = outcome.kind == "exception" or old.is_out_of_retries(retries, deaths=old.deaths + died)
        failure = {**facts, "kind": outcome.kind, "host": _host_of(outcome.worker), "traceback": outcome.traceback}
        record = record_failure(self._paths, key, final=final, died=died, **failure)
        event = "failed" if final else "retry"
        alone = {} if outcome.alone else {"alone": False}
        self._context.emit(event, key=str(key), kind=outcome.kind, attempt=len(record.attempts), **alone, **facts)
        self._disk.write(lambda: self._context.audit.record(event, key=str(key), kind=outcome.kind, **facts))
        if final:
            self._report.failures[key] = record
        else:
            self._queue.appendleft(key)

    def _maintain(self) -> None:
        """Retry rejected writes, pack files if there are too many, and check the lock now and then."""
        self._disk.retry_writes()
        if self._files.is_due and not (self._disk.has_unwritten or self._stop.is_requested):
            self._disk.write(self._files.pack)
        now = time.monotonic()
        if now - self._checked > INTERVAL_S:
            self._checked = now
            try:
                self._context.lock.check()
            except StorageError as error:
                self._disk.note_rejected(str(error))


def _host_of(worker: str) -> str:
    """Return the host of a worker from its name."""
    return worker.rsplit("-", 2)[0]
