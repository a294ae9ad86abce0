"""Who gets which task, how often, and until when. All that happens is told; the disk may fail, and comes back."""

import functools
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from leeward.engines.outcomes import Began, Computed, Done, Engine, Failed, Outcome, Returned, Stuck, Unstuck
from leeward.errors import LeewardError, StorageError
from leeward.events import Emit
from leeward.runs.packing import Packing
from leeward.runs.stopping import StopRequests
from leeward.store import (
    INTERVAL_S,
    Audit,
    BadRecordError,
    Brief,
    Key,
    Lock,
    Record,
    RunPaths,
    Verdict,
    append_line,
    begin_attempt,
    encode_line,
    forget_record,
    forgive_attempt,
    quarantine,
    read_record,
    record_failure,
    store_result,
)

POLL_S = 0.5
TRY_AGAIN_S = 1.0
TRY_ELSEWHERE_S = 30.0  # while the disk takes nothing: it may be so in one place only

Find = Callable[[Key], dict[str, Any] | None]  # the index line of a stored and verified result, if there is one


class Coordinator:
    """Drives an engine through tasks.

    results: what is stored, by key; grows on the way, by little for each. computed: how many of these now. failed: keys
    without hope, and their last failure. find: looks into the store, after the death of a worker. packing: of results,
    when they are in too many files.
    """

    def __init__(
        self,
        paths: RunPaths,
        lock: Lock,
        audit: Audit,
        tell: Emit,
        stop: StopRequests,
        *,
        retries: int,
        grace_s: float,
        storage_wait_s: float,
        find: Find,
        packing: Packing,
    ) -> None:
        self._paths = paths
        self._lock = lock
        self._audit = audit
        self._tell = tell
        self._stop = stop
        self._retries = retries
        self._grace_s = grace_s
        self._storage_wait_s = storage_wait_s
        self._find = find
        self._packing = packing
        self._queue: deque[Key] = deque()
        self._in_hand: set[Key] = set()
        self._abandoned: set[Key] = set()
        self._stuck: set[Key] = set()
        self._unwritten: deque[Callable[[], object]] = deque()
        self._refused_since: float | None = None
        self._hangs = False  # storing a result did, and none was stored since
        self._tried = self._checked = 0.0
        self._told_stop = False
        self.results: dict[Key, Brief] = {}
        self.failed: dict[Key, Record] = {}
        self.computed = 0
        self.total = 0

    def run(self, tasks: Iterable[Key], engine: Engine) -> None:
        """Until all tasks have a result or have failed, or until somebody asks to stop."""
        self._queue.extend(tasks)
        try:
            while self._goes_on():
                while self._may_hand_out() and engine.room > 0 and self._queue:
                    key = self._queue.popleft()
                    self._in_hand.add(key)
                    engine.start(key)
                for outcome in engine.poll(POLL_S if self._in_hand else TRY_AGAIN_S):
                    self.hear(outcome)
                self._look_after()
        finally:
            cut_off = engine.close()
            self._abandoned, self._in_hand = self._in_hand, set()
            self._stuck.clear()
            self._forgive(cut_off, engine.mark)

    def look_again(self) -> None:
        """For results of workers that went on for a while when nobody heard them any more."""
        for key in sorted(self._abandoned):
            if (line := self._find(key)) is not None:
                self._done(key, line, "")

    @property
    def left(self) -> int:
        """Tasks that are to be done, those in hand among them."""
        return len(self._queue) + len(self._in_hand)

    def _forgive(self, keys: list[Key], mark: str) -> None:
        """Tasks that were cut off by us, which is no fault of theirs; nothing is done where the directory is lost."""
        try:
            self._lock.check()
        except LeewardError as error:
            self._tell("not-forgiven", tasks=len(keys), message=str(error))
            return
        for key in keys:
            self.write(functools.partial(forgive_attempt, self._paths, key, mark=mark))

    def _goes_on(self) -> bool:
        if not self._stop.is_asked:
            return bool(self._queue or self._in_hand or self._unwritten)
        self.notice()
        return bool(self._in_hand) and time.monotonic() - self._stop.since < self._grace_s

    def notice(self) -> None:
        """Say once that a request to stop was heard, whatever is being done."""
        if self._stop.is_asked and not self._told_stop:
            self._told_stop = True
            self._tell("stopping", signal=self._stop.signal, in_hand=len(self._in_hand), grace_s=self._grace_s)

    def _may_hand_out(self) -> bool:
        """Where storing hangs, one task at a time finds out whether it still does; where the disk takes nothing from
        some workers, after a while, whether it does from others.
        """
        if self._stop.is_asked or self._unwritten or (self._hangs and self._in_hand):
            return False
        since = time.monotonic() if self._refused_since is None else self._refused_since
        return not self._stuck or (self._in_hand <= self._stuck and time.monotonic() - since > TRY_ELSEWHERE_S)

    def hear(self, outcome: Outcome) -> None:
        """What an engine has to say."""
        if isinstance(outcome, Done):
            self._done(outcome.key, outcome.line, outcome.worker)
        elif isinstance(outcome, Computed):
            self.write(functools.partial(self._store, outcome))
        elif isinstance(outcome, Began):
            self._began(outcome)
        elif isinstance(outcome, Returned):
            self.write(functools.partial(self._returned, outcome))
        elif isinstance(outcome, Failed):
            self._failed(outcome)
        elif isinstance(outcome, Stuck):
            self._stuck.add(outcome.key)
            self._refused(outcome.message)
        elif isinstance(outcome, Unstuck):
            self._stuck.discard(outcome.key)
            self._accepted()

    def _began(self, outcome: Began) -> None:
        """An attempt is recorded by the worker that makes it, if it can."""
        if outcome.fingerprint is not None:
            facts = (outcome.key, outcome.fingerprint, outcome.worker, host_of(outcome.worker))
            self.write(lambda: begin_attempt(self._paths, *facts))

    def _returned(self, outcome: Returned) -> None:
        """Nobody has said that it was begun; but it may have been, and the news lost with its worker."""
        key = outcome.key
        last = self._known_attempts(key).unfinished if outcome.mark else None
        if (line := self._find(key)) is not None:
            self._done(key, line, "")
        elif last is not None and f"-{outcome.mark}" in last:
            self._failed(Failed(key, "died", "its worker was lost as soon as it had begun", "", 0.0, last))
        else:
            self._in_hand.discard(key)
            self._queue.appendleft(key)

    def _store(self, outcome: Computed) -> None:
        store_result(self._paths, outcome.result)
        forget_record(self._paths, outcome.key)
        self._done(outcome.key, outcome.line, outcome.worker)

    def _done(self, key: Key, line: dict[str, Any], worker: str) -> None:
        self._in_hand.discard(key)
        if self._hangs:
            self._hangs = False
            self._accepted()
        self.results[key] = Brief.of(line)
        self._packing.add([key])
        self.computed += 1
        self.failed.pop(key, None)
        self.write(lambda: self.append_index(encode_line(line)))
        self._tell("done", worker=worker, done=len(self.results), failed=len(self.failed), total=self.total, **line)

    def append_index(self, lines: bytes) -> None:
        """A StorageError means that the same lines can be appended again: one that is there twice does no harm."""
        try:
            append_line(self._paths.index, lines.decode())
        except OSError as error:
            raise StorageError(f"{self._paths.index}: cannot be written ({error})") from error

    def _failed(self, outcome: Failed) -> None:
        key = outcome.key
        if outcome.kind != "exception" and (line := self._find(key)) is not None:  # stored before it died
            self._done(key, line, outcome.worker)
            self.write(functools.partial(forget_record, self._paths, key))
            return
        self._in_hand.discard(key)
        if outcome.kind == "storing":  # not the task's fault
            self._queue.append(key)
            self._hangs = True
            self._refused(outcome.message)
            self.write(functools.partial(forgive_attempt, self._paths, key, outcome.worker))
        else:
            self.write(lambda: self._record_failure(outcome))

    def _record_failure(self, outcome: Failed) -> None:
        """Keep what happened, then decide: once more, or never."""
        key, died = outcome.key, outcome.kind in ("died", "timed-out")
        facts = {"message": outcome.message, "worker": outcome.worker, "seconds": round(outcome.seconds, 1)}
        old = self._known_attempts(key)
        final = outcome.kind == "exception" or old.has_had_its_chances(self._retries, deaths=old.deaths + died)
        failure = {**facts, "kind": outcome.kind, "host": host_of(outcome.worker), "traceback": outcome.traceback}
        record = record_failure(self._paths, key, final=final, died=died, **failure)
        if final:
            self.failed[key] = record
        else:
            self._queue.appendleft(key)
        event = "failed" if final else "retry"
        self._tell(event, key=str(key), kind=outcome.kind, attempt=len(record.attempts), **facts)
        self.write(lambda: self._audit.record(event, key=str(key), kind=outcome.kind, **facts))

    def _known_attempts(self, key: Key) -> Record:
        path = self._paths.failure(key)
        try:
            return read_record(path) or Record(str(key))
        except BadRecordError as error:
            quarantine(self._paths, path, Verdict.UNREADABLE, str(error), self._audit.record)
            return Record(str(key))

    # --- a disk that takes nothing -----------------------------------------------------------------------------------

    def write(self, action: Callable[[], object]) -> None:
        """Do something to the run directory, now or as soon as the disk takes it; in order."""
        self._unwritten.append(action)
        if len(self._unwritten) == 1:
            self._write_out()

    def _write_out(self) -> None:
        while self._unwritten:
            try:
                self._unwritten[0]()
            except StorageError as error:
                self._refused(str(error))
                return
            self._unwritten.popleft()
            self._accepted()

    def patiently(self, action: Callable[[], Any]) -> Any:
        """The same, for what has to be done before anything else; a request to stop ends the waiting."""
        while True:
            try:
                value = action()
            except StorageError as error:
                self._refused(str(error))
                if self._stop.is_asked:
                    raise
                time.sleep(TRY_AGAIN_S)
            else:
                self._accepted()
                return value

    def _refused(self, message: str) -> None:
        now = time.monotonic()
        if self._refused_since is None:
            self._refused_since = now
            self._tell("storage-refuses", message=message, wait_s=self._storage_wait_s)
        waited = now - self._refused_since
        if waited > self._storage_wait_s:
            raise StorageError(
                f"{message}; gave up after {waited:.0f} s. Everything stored before is there; "
                f"{len(self._in_hand)} task(s) in hand will be computed again: make room, and run the same command"
            )

    def _accepted(self) -> None:
        if self._refused_since is not None and not (self._stuck or self._hangs):
            self._tell("storage-accepts", seconds=round(time.monotonic() - self._refused_since, 1))
            self._refused_since = None

    def _look_after(self) -> None:
        """What is due from time to time: is the directory still ours, does the disk take writes again, are there too
        many files?
        """
        now = time.monotonic()
        if self._unwritten and now - self._tried > TRY_AGAIN_S:
            self._tried = now
            self._write_out()
        if self._packing.is_due and not (self._unwritten or self._stop.is_asked):
            self.write(self._packing.pack)
        if now - self._checked > INTERVAL_S:
            self._checked = now
            try:
                self._lock.check()
            except StorageError as error:
                self._refused(str(error))


def host_of(worker: str) -> str:
    """Of a worker, by its name."""
    return worker.rsplit("-", 2)[0]
