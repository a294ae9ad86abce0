"""Records of attempts and failures in the run directory."""

import functools

from leeward.engines.outcomes import Began, Failed
from leeward.errors import LeewardError
from leeward.runs.context import RunContext
from leeward.runs.disk import RunDisk
from leeward.store import (
    BadRecordError,
    Key,
    Record,
    Verdict,
    begin_attempt,
    forget,
    forgive_attempt,
    quarantine,
    read_record,
    record_failure,
)


class Attempts:
    """Writes the records, as soon as the disk accepts them."""

    def __init__(self, context: RunContext, disk: RunDisk) -> None:
        self._context = context
        self._paths = context.paths
        self._disk = disk

    def begin(self, outcome: Began) -> None:
        """Record an attempt, if the worker that makes it could not."""
        if outcome.fingerprint is not None:
            facts = (outcome.key, outcome.fingerprint, outcome.worker, host_of(outcome.worker))
            self._disk.write(lambda: begin_attempt(self._paths, *facts))

    def forget(self, key: Key) -> None:
        self._disk.write(lambda: forget(self._paths, key))

    def forgive(self, key: Key, worker: str) -> None:
        """Take back an attempt that failed through no fault of the task."""
        self._disk.write(lambda: forgive_attempt(self._paths, key, worker))

    def forgive_all(self, keys: list[Key], mark: str) -> None:
        """Take back the attempts that we have cut off; nothing is done where the directory is lost."""
        try:
            self._context.lock.check()
        except LeewardError as error:
            self._context.emit("not-forgiven", tasks=len(keys), message=str(error))
            return
        for key in keys:
            self._disk.write(functools.partial(forgive_attempt, self._paths, key, mark=mark))

    def known(self, key: Key) -> Record:
        """Read the record of a task; one that cannot be read goes to quarantine."""
        path = self._paths.failure(key)
        try:
            return read_record(path) or Record(str(key))
        except BadRecordError as error:
            quarantine(self._paths, path, Verdict.UNREADABLE, str(error), self._context.audit.record)
            return Record(str(key))

    def fail(self, outcome: Failed) -> Record | None:
        """Keep what happened, then decide: return the record if the task has failed, None to try it once more."""
        key, died = outcome.key, outcome.kind in ("died", "timed-out")
        facts = {"message": outcome.message, "worker": outcome.worker, "seconds": round(outcome.seconds, 1)}
        old, retries = self.known(key), self._context.work.execution.retries
        final = outcome.kind == "exception" or old.has_had_its_chances(retries, deaths=old.deaths + died)
        failure = {**facts, "kind": outcome.kind, "host": host_of(outcome.worker), "traceback": outcome.traceback}
        record = record_failure(self._paths, key, final=final, died=died, **failure)
        event = "failed" if final else "retry"
        self._context.emit(event, key=str(key), kind=outcome.kind, attempt=len(record.attempts), **facts)
        self._disk.write(lambda: self._context.audit.record(event, key=str(key), kind=outcome.kind, **facts))
        return record if final else None


def host_of(worker: str) -> str:
    """Return the host of a worker, by its name."""
    return worker.rsplit("-", 2)[0]
