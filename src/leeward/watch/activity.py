"""The lock holder, workers, failures and rate of a run directory."""

import json
import math
import socket
import time
from collections.abc import Container
from datetime import UTC, datetime
from heapq import nlargest
from pathlib import Path
from typing import Any, NamedTuple

from leeward.errors import BadSourceError, StorageError
from leeward.files import NotAFileError, read_regular
from leeward.store import (
    INTERVAL_S,
    INTERVALS,
    BadRecordError,
    Owner,
    Record,
    RunPaths,
    process_start,
    read_lines,
    read_owner,
    read_record,
)
from leeward.watch.data import FailedTask, Holder, Kind, WorkerSeen
from leeward.watch.places import run_of
from leeward.watch.present import names_in

WATCH_S = 2 * INTERVAL_S + 1.0  # the counter of a live owner advances within this time
POLL_S = 0.1  # time between two readings of the counter
MISSED_BEATS = 5  # a worker that missed this many heartbeats looks hung
SHORTEST_SILENCE_S = 15.0  # a worker does not look hung before this time
LARGEST_BEAT = 1 << 20  # most bytes of a heartbeat file
WINDOW = 200  # number of latest results that give the rate
_BAD_JSON = (TypeError, ValueError, AttributeError, OverflowError)  # JSON of an unexpected form


class _Heartbeat(NamedTuple):
    """The heartbeat counter of an owner on another machine. since: time of its last change, by the monotonic clock."""

    token: str
    counter: int
    since: float
    has_moved: bool = False


_heartbeats: dict[Path, _Heartbeat] = {}  # by the path of the lock, as this process last read it


def read_holder(paths: RunPaths) -> Holder | None:
    """Return the holder of the lock, and whether it is alive.

    On the holder's machine, its process is checked. On another machine, the heartbeat counter in the lock must advance;
    the first call waits a few seconds for that. Clocks are not compared, because they differ and jump.
    """
    while True:
        owner, counter = read_owner(paths.lock)
        if owner is None:
            return None
        if not owner.pid:  # the lock is unreadable
            return Holder("an unknown host", 0, "an unknown time", "unknown", None)
        if owner.is_gone or _is_visible(owner):
            return Holder(owner.host, owner.pid, owner.since, "dead" if owner.is_gone else "alive", None)
        heartbeat = _record_counter(paths.lock, owner, counter)
        silence = time.monotonic() - heartbeat.since
        if heartbeat.has_moved or silence >= WATCH_S:
            is_alive = heartbeat.has_moved and silence <= INTERVALS * INTERVAL_S
            return Holder(owner.host, owner.pid, owner.since, "alive" if is_alive else "unknown", silence)
        time.sleep(POLL_S)


def _is_visible(owner: Owner) -> bool:
    """Return whether the processes of the owner's machine are visible here."""
    me = Owner.myself()
    here = (me.host, me.machine_id, me.boot_id, me.pid_namespace)
    return here == (owner.host, owner.machine_id, owner.boot_id, owner.pid_namespace)


def _record_counter(lock: Path, owner: Owner, counter: int) -> _Heartbeat:
    """Return when the counter last changed, and remember its value for the next call."""
    known = _heartbeats.get(lock)
    if known is None or known.token != owner.token:
        known = _Heartbeat(owner.token, counter, time.monotonic())
    elif known.counter != counter:
        known = _Heartbeat(owner.token, counter, time.monotonic(), has_moved=True)
    _heartbeats[lock] = known
    return known


def read_workers(paths: RunPaths, holder: Holder | None, now: float) -> list[WorkerSeen]:
    """Return live workers, and those that look hung unless the coordinator is dead."""
    may_be_running = holder is not None and holder.state != "dead"
    workers = []
    for name in sorted(names_in(paths.workers)):
        worker = _worker(paths.workers / name, now)
        if worker is not None and (may_be_running or not worker.looks_hung):
            workers.append(worker)
    return workers


def _worker(path: Path, now: float) -> WorkerSeen | None:
    """Return the worker of a heartbeat file; None if it has ended."""
    try:
        facts = json.loads(read_regular(path, LARGEST_BEAT))
        age = _age(facts, path, now)
        began = _seconds(facts["since"])
        worker = WorkerSeen(
            name=str(facts["worker"]),
            host=str(facts["host"]),
            pid=int(facts["pid"]),
            task=None if facts["task"] is None else str(facts["task"]),
            since=str(facts["since"]),
            task_s=None if began is None else max(now - began, 0.0),
            state=str(facts["state"]),
            step=int(facts.get("step", 0)),
            phase=str(facts.get("phase", "")),
            best_aep_gwh=None if facts.get("best_aep_gwh") is None else _finite(facts["best_aep_gwh"]),
            age_s=age,
            looks_hung=age > max(MISSED_BEATS * _finite(facts["every_s"]), SHORTEST_SILENCE_S),
        )
    except (FileNotFoundError, NotAFileError, KeyError, RecursionError, *_BAD_JSON):
        return None  # the file was deleted meanwhile, or is not a heartbeat
    is_gone = worker.host == socket.gethostname() and process_start(worker.pid) is None
    return None if is_gone else worker


def _age(facts: dict[str, Any], path: Path, now: float) -> float:
    """Return the age of a heartbeat in seconds, by the monotonic clock on the machine that wrote it."""
    boot, beat = facts.get("boot_id"), facts.get("monotonic")
    if boot and beat is not None and boot == Owner.myself().boot_id:
        return max(time.monotonic() - _finite(beat), 0.0)
    return max(now - max(_finite(facts["time"]), path.stat().st_mtime), 0.0)  # the clocks of two machines may differ


def read_failures(
    paths: RunPaths, kind: Kind, done: Container[object], retries: int
) -> tuple[dict[Any, FailedTask], int]:
    """Return failed tasks without a result, by key, and the number of unreadable records."""
    failures = {}
    unreadable = 0
    for name in names_in(paths.failures):
        key = kind.key_of(name.removesuffix(".json"))
        if key is None or key in done:  # a stored result outranks an old failure
            continue
        path = paths.failures / name
        try:
            record = read_record(path)
            failed = None if record is None else _failed(record, retries)
        except (BadRecordError, *_BAD_JSON):  # truncated, or not written by leeward
            unreadable += 1
            continue
        if failed is not None:
            failures[key] = failed
    return failures, unreadable


def _failed(record: Record, retries: int) -> FailedTask | None:
    """Return the failure of a task; None if it has started but not failed."""
    final = record.has_failed(retries)
    attempts = len(record.attempts)
    failure = record.failure
    if failure is not None:
        kind, message, when, worker = map(str, (failure.kind, failure.message, failure.time, failure.worker))
        seconds, trace = _finite(failure.seconds), str(failure.traceback)
        return FailedTask(str(record.key), kind, message, attempts, when, worker, seconds, trace, bool(final))
    if not final:
        return None
    last: dict[str, Any] = record.attempts[-1] if record.attempts else {}
    message = f"interrupted {attempts} times when the coordinator died"
    began, worker = str(last.get("began", "")), str(last.get("worker", ""))
    return FailedTask(str(record.key), "cut-off", message, attempts, began, worker, None, "", final)


def audit_events(path: Path) -> list[dict[str, Any]]:
    """Return the audit trail of the run directory at or beside this path, oldest first; empty for a lone file."""
    run = run_of(path)
    try:
        return [] if run is None else read_lines(run.audit)
    except NotAFileError as error:
        raise BadSourceError(
            f"{run.audit if run else path}: {error.strerror}, expected the audit trail of the run"
        ) from error
    except OSError as error:
        raise StorageError(f"{path}: the audit trail cannot be read ({error})") from error


def rate_per_hour(created: list[str], holder: Holder | None, now: float) -> float | None:
    """Return the recent number of results per hour. created: times as text. holder: of a live run, else None.

    For a live run, only its own results count, and the time since the latest one counts too.
    """
    latest = nlargest(WINDOW, created)  # the text of a time sorts like the time itself
    times = sorted(time for text in latest if (time := _seconds(text)) is not None)
    began = None if holder is None else _seconds(holder.since)
    if began is not None:
        times = [time for time in times if time >= began]
    if not times:
        return None
    end = times[-1] if holder is None else max(now, times[-1])
    if began is not None and len(times) < WINDOW:
        count, start = len(times), began
    else:
        count, start = len(times) - 1, times[0]
    return 3600.0 * count / (end - start) if count and end > start else None


def _finite(value: Any) -> float:
    """Return a finite number, or raise ValueError: Python's JSON allows NaN and infinities."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r:.40} is not a finite number")
    return number


def _seconds(text: object) -> float | None:
    """Return a time as leeward writes it in seconds since 1970; None if it is invalid."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
