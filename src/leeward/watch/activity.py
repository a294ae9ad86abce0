"""Who is at work on a run directory, what has failed there, and how fast it goes."""

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

WATCH_S = 2 * INTERVAL_S + 1.0  # within which the counter of a live owner moves, as far as the disk shows it
LOOK_EVERY_S = 0.1
MISSED_BEATS = 5  # a worker that was silent for so many looks hung
SHORTEST_SILENCE_S = 15.0
LARGEST_BEAT = 1 << 20  # bytes
WINDOW = 200  # latest results that the rate is taken from
_NO_VALUE = (TypeError, ValueError, AttributeError, OverflowError)  # JSON of another form, or with impossible numbers


class _Pulse(NamedTuple):
    """The counter of an owner elsewhere. since: when it was first seen at this number, on the clock of this process.

    has_moved: whether it ever was seen to move.
    """

    token: str
    counter: int
    since: float
    has_moved: bool = False


_pulses: dict[Path, _Pulse] = {}  # by lock: what the last look of this process found


def read_holder(paths: RunPaths) -> Holder | None:
    """Return who holds the lock, and whether it lives.

    On its own machine the process itself tells. From elsewhere the counter in the lock does, by moving between two
    looks: the first look at an owner waits a few seconds for that. No clocks are compared: they differ, and jump.
    """
    while True:
        try:
            owner, counter = read_owner(paths.lock)
        except NotAFileError:
            return Holder("an unknown host", 0, "an unknown time", "unknown", None)
        if owner is None:
            return None
        if owner.is_gone or _is_of_this_machine(owner):
            return Holder(owner.host, owner.pid, owner.since, "dead" if owner.is_gone else "alive", None)
        if not owner.pid:  # the lock is unreadable: there is nothing to watch
            return Holder(owner.host, owner.pid, owner.since, "unknown", None)
        pulse = _noted(paths.lock, owner, counter)
        silence = time.monotonic() - pulse.since
        if pulse.has_moved or silence >= WATCH_S:
            is_alive = pulse.has_moved and silence <= INTERVALS * INTERVAL_S
            return Holder(owner.host, owner.pid, owner.since, "alive" if is_alive else "unknown", silence)
        time.sleep(LOOK_EVERY_S)


def _is_of_this_machine(owner: Owner) -> bool:
    """Return whether the processes that are seen here are those of the owner's machine."""
    me = Owner.myself()
    here = (me.host, me.machine_id, me.boot_id, me.pid_namespace)
    return here == (owner.host, owner.machine_id, owner.boot_id, owner.pid_namespace)


def _noted(lock: Path, owner: Owner, counter: int) -> _Pulse:
    """Compare the counter with that of the last look, and remember it."""
    known = _pulses.get(lock)
    if known is None or known.token != owner.token:
        known = _Pulse(owner.token, counter, time.monotonic())
    elif known.counter != counter:
        known = _Pulse(owner.token, counter, time.monotonic(), has_moved=True)
    _pulses[lock] = known
    return known


def read_workers(paths: RunPaths, holder: Holder | None, now: float) -> list[WorkerSeen]:
    """Live ones, and those that look hung while somebody may still be waiting for them."""
    waited_for = holder is not None and holder.state != "dead"
    workers = []
    for name in names_in(paths.workers):
        worker = _worker(paths.workers / name, now)
        if worker is not None and (waited_for or not worker.looks_hung):
            workers.append(worker)
    return workers


def _worker(path: Path, now: float) -> WorkerSeen | None:
    """None if it has ended."""
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
            step=int(facts["step"]),
            phase=str(facts["phase"]),
            best_aep=None if facts["best_aep_gwh"] is None else _finite(facts["best_aep_gwh"]),
            age_s=age,
            looks_hung=age > max(MISSED_BEATS * _finite(facts["every_s"]), SHORTEST_SILENCE_S),
        )
    except (FileNotFoundError, NotAFileError, KeyError, RecursionError, *_NO_VALUE):
        return None  # gone by now, or none of ours
    is_gone = worker.host == socket.gethostname() and process_start(worker.pid) is None
    return None if is_gone else worker


def _age(facts: dict[str, Any], path: Path, now: float) -> float:
    """Return how old a heartbeat is, in seconds: on the machine that wrote it by a clock that never jumps."""
    boot, beat = facts.get("boot_id"), facts.get("monotonic")
    if boot and beat is not None and boot == Owner.myself().boot_id:
        return max(time.monotonic() - _finite(beat), 0.0)
    return max(now - max(_finite(facts["time"]), path.stat().st_mtime), 0.0)  # the clocks of two machines may differ


def read_failures(
    paths: RunPaths, kind: Kind, done: Container[object], retries: int
) -> tuple[dict[Any, FailedTask], int]:
    """Tasks without a result that something went wrong with, by key, and how many records cannot be read."""
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
        except (BadRecordError, *_NO_VALUE):  # torn, or not what leeward writes
            unreadable += 1
            continue
        if failed is not None:
            failures[key] = failed
    return failures, unreadable


def _failed(record: Record, retries: int) -> FailedTask | None:
    """None for a task that was only begun."""
    final = record.is_hopeless(retries)
    attempts = len(record.attempts)
    failure = record.failure
    if failure is not None:
        kind, message, when, worker = map(str, (failure.kind, failure.message, failure.time, failure.worker))
        seconds, trace = _finite(failure.seconds), str(failure.traceback)
        return FailedTask(str(record.key), kind, message, attempts, when, worker, seconds, trace, bool(final))
    if not final:
        return None
    last: dict[str, Any] = record.attempts[-1] if record.attempts else {}
    message = f"cut off {attempts} times with its coordinator"
    began, worker = str(last.get("began", "")), str(last.get("worker", ""))
    return FailedTask(str(record.key), "cut-off", message, attempts, began, worker, None, "", final)


def audit_events(path: Path) -> list[dict[str, Any]]:
    """What was done to the run directory at or beside this place, the oldest first; nothing of a lone file."""
    run = run_of(path)
    try:
        return [] if run is None else read_lines(run.audit)
    except NotAFileError as error:
        raise BadSourceError(f"{run.audit if run else path}: {error.strerror}, the audit trail of the run") from error
    except OSError as error:
        raise StorageError(f"{path}: its audit trail cannot be read ({error})") from error


def rate_per_hour(created: list[str], holder: Holder | None, now: float) -> float | None:
    """Results an hour, lately. created: when each was made, as text. holder: of a run that goes on, else None.

    Of a run that goes on only what it made itself counts, and the time since its latest result counts too.
    """
    latest = nlargest(WINDOW, created)  # as texts they sort like times
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
    """JSON as Python reads it has infinities, and numbers that are none."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r:.40} where a number was expected")
    return number


def _seconds(text: object) -> float | None:
    """Since 1970, of a time as leeward writes it."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
