"""Read the current state of a run directory or file, of any kind of work.

kind: the name of the kind in KINDS; None: find it with `kind_of`.
"""

import time
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leeward.errors import InputError, StorageError
from leeward.store import whole_lines
from leeward.watch.activity import read_holder
from leeward.watch.data import Absence, AbsentTask, Kind
from leeward.watch.layouts.snapshot import LAYOUTS
from leeward.watch.places import demand_place, kind_of, run_of
from leeward.watch.present import Present, present_in_file, present_in_run
from leeward.watch.read import Reading, is_alive, read_place
from leeward.watch.studies.snapshot import EVALUATIONS

KINDS = {"layouts": LAYOUTS, "evaluations": EVALUATIONS}  # by name


def _kind(path: Path, name: str | None) -> Kind:
    return KINDS[kind_of(path) if name is None else name]


def snapshot(path: Path, *, now: float | None = None, seeds: Collection[int] | None = None) -> Any:
    """Return the snapshot of a run directory, of the file beside one, or of a lone file of results.

    It is a `Snapshot` of layouts or a `StudySnapshot`. Another process, also on another machine, may write to the path
    meanwhile. now: seconds since 1970. seeds: count only these.
    """
    return observe(path, now=now, seeds=seeds).snapshot


def observe(
    path: Path,
    *,
    now: float | None = None,
    seeds: Collection[int] | None = None,
    campaign: Any = None,
    kind: str | None = None,
) -> Any:
    """Return the snapshot and the data of single tasks: an `Observation` of layouts, or a `StudyObservation`.

    campaign: replaces the campaign or study found with the results.
    """
    with _readable(path):
        of = _kind(path, kind)
        return of.show(read_place(path, of, time.time() if now is None else now, campaign), seeds)


def present_at(path: Path, kind: str | None = None) -> Present:
    """Return the results of a run directory, of the file beside one, or of a lone file."""
    run, of = run_of(path), _kind(path, kind)
    if run is None:
        return present_in_file(path, of)[0]
    return present_in_run(run, of, is_busy=is_alive(read_holder(run)))[0]


def result_lines(path: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """Return the index entry of every result, sorted by key; a result without an entry has only its key."""
    with _readable(path):
        of = _kind(path, kind)
        present = present_at(path, kind)
    lines = {str(line["key"]): line for content in reversed(present.contents) for line in whole_lines(content)}
    return [lines.get(name, {"key": name}) for name in sorted(present.names, key=of.parse)]


def absent_tasks(path: Path, campaign: Any = None, *, now: float | None = None, kind: str | None = None) -> Absence:
    """Return the missing results of a run directory, a file of results, or a folder of foreign files.

    campaign: by default the one found with the results. Results of a run directory are counted; those of a folder are
    checked, and damaged ones count as missing. now: seconds since 1970.
    """
    with _readable(path):
        of = _kind(path, kind)
        campaign = campaign or of.work_of(path)
        if campaign is None:
            raise InputError(f"{path}: has no campaign; give its file with --campaign")
        if path.is_dir() and run_of(path) is None:
            present: Container[object] = _checked_keys(path)
            reasons = {}
        else:
            reading = read_place(path, of, time.time() if now is None else now, campaign)
            present, reasons = reading.present, _reasons(reading)
    absent = sorted(key for key in campaign.tasks() if key not in present)
    tasks = tuple(reasons.get(key) or AbsentTask(key, "no result") for key in absent)
    return Absence(campaign.name, campaign.n_tasks, tasks)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise InputError if the path does not exist, and StorageError if it cannot be read."""
    demand_place(path)
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error


def _checked_keys(folder: Path) -> set[Any]:
    from leeward.store import FoundResult, gather, read_files

    files = (file for source in gather([folder]) for file in source.files)
    results = (found for found in read_files(files) if isinstance(found, FoundResult) and found.is_valid)
    return {found.key for found in results if found.key is not None}


def _reasons(reading: Reading) -> dict[Any, AbsentTask]:
    """Return the tasks that failed or are running."""
    reasons = {}
    for key, failed in reading.failures.items():
        what = "failed" if failed.final else "to be retried"
        reasons[key] = AbsentTask(key, f"{what}: {failed.message}", failed.final)
    for worker in reading.workers:
        key = reading.kind.key_of(worker.task or "")
        if key is not None:
            reasons[key] = AbsentTask(key, f"running on {worker.name}")
    return reasons
