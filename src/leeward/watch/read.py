"""Read the current content of a run directory or a file, for any kind of work."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.errors import InputError, LeewardError
from leeward.store import RunPaths
from leeward.watch.activity import rate_per_hour, read_failures, read_holder, read_workers
from leeward.watch.data import FailedTask, Holder, Kind, Progress, WorkerSeen
from leeward.watch.places import run_of
from leeward.watch.present import Present, names_in, present_in_file, present_in_run

RETRIES = 2  # if the campaign is unknown


@dataclass(frozen=True)
class Reading:
    """The content of a run directory or lone file. run: None for a file. work: None if unknown. failures: by key."""

    path: Path
    run: RunPaths | None
    time: float
    kind: Kind
    work: Any
    present: Present
    notes: tuple[str, ...]
    failures: Mapping[Any, FailedTask]
    workers: tuple[WorkerSeen, ...] = ()
    holder: Holder | None = None

    @property
    def running_keys(self) -> set[Any]:
        """Return the keys of unfinished tasks that workers are computing."""
        keys = {self.kind.key_of(worker.task or "") for worker in self.workers} - {None}
        return {key for key in keys if key not in self.present}


def read_place(path: Path, kind: Kind, now: float, work: Any = None) -> Reading:
    """Return the content of a run directory or a lone file. now: seconds since 1970. work: replaces the stored one."""
    run = run_of(path)
    if run is not None:
        return _read_run(path, run, kind, now, work)
    if path.is_dir():
        raise InputError(
            f"{path}: is a folder, but not a run directory; expected one like layouts.run, or a layouts.h5; to check "
            f"a folder of files, run `leeward check {path}`"
        )
    present, notes = present_in_file(path, kind)
    present.output_results = len(present.names)
    work = work or _stored_work(path, kind, notes)
    return Reading(path, None, now, kind, work, present, tuple(notes), {})


def _read_run(path: Path, run: RunPaths, kind: Kind, now: float, work: Any) -> Reading:
    notes = list(run.odd_places())
    work = work or _stored_work(path, kind, notes)
    holder = read_holder(run)
    workers = tuple(read_workers(run, holder, now))
    present, problems = present_in_run(run, kind, is_busy=is_alive(holder))
    notes += problems
    failures, bad_records = read_failures(run, kind, present, RETRIES if work is None else work.execution.retries)
    if present.odd:
        notes.append(f"{present.odd} file(s) in {run.results} do not have the name of a shard")
    if bad_records:
        notes.append(f"{bad_records} failure record(s) cannot be read")
    return Reading(path, run, now, kind, work, present, tuple(notes), failures, workers, holder)


def _stored_work(path: Path, kind: Kind, notes: list[str]) -> Any:
    """Return the expected work; None, with a note, if it cannot be read."""
    try:
        return kind.work_of(path)
    except LeewardError as error:
        notes.append(f"the expected results are not known: {error}")
        return None


def is_alive(holder: Holder | None) -> bool:
    """Return whether the holder of a lock is known to be alive."""
    return holder is not None and holder.state == "alive"


def progress_of(
    reading: Reading, expected: int | None, done: int, beyond: int, failures: Mapping[Any, FailedTask], running: int
) -> Progress:
    """Return the progress. expected: number of tasks, None if unknown. failures: of expected tasks, by key."""
    run = reading.run
    failed = sum(failure.final for failure in failures.values())
    missing = None if expected is None else expected - done
    left = None if missing is None else max(missing - failed, 0)  # tasks that a run would still compute
    live_holder = reading.holder if is_alive(reading.holder) else None
    is_finished = run is None or left == 0  # a finished run has no rate
    rate = None if is_finished else rate_per_hour(reading.present.created, live_holder, reading.time)
    return Progress(
        path=str(reading.path),
        run=None if run is None else str(run.root),
        output=str(reading.path if run is None else run.output),
        time=reading.time,
        campaign=None if reading.work is None else reading.work.name,
        expected=expected,
        done=done,
        failed=failed,
        running=running,
        missing=missing,
        beyond=beyond,
        failures=tuple(failures[key] for key in sorted(failures)),
        workers=reading.workers,
        owner=reading.holder,
        rate_per_hour=rate,
        seconds_left=None if live_holder is None or left is None or not rate else 3600.0 * left / rate,
        output_exists=run is None or run.output.exists(),
        output_results=reading.present.output_results,
        unreadable_lines=0 if run is None else reading.present.unreadable,
        quarantined=0 if run is None else sum(not name.endswith(".reason.json") for name in names_in(run.quarantine)),
        notes=reading.notes,
    )
