"""Read the current state of a run directory or file, of any kind of work."""

import contextlib
import time
from collections.abc import Collection, Container, Mapping
from pathlib import Path
from typing import Any

from leeward.campaign import Campaign
from leeward.errors import InputError, StorageError
from leeward.files import NotAFileError, read_regular
from leeward.store import output_index, whole_lines
from leeward.watch.activity import read_failures, read_holder, read_workers
from leeward.watch.data import Absence, AbsentTask, Kind
from leeward.watch.layouts.snapshot import LAYOUTS, Observation, Snapshot
from leeward.watch.places import demand_place, run_of
from leeward.watch.present import Present, in_lines, lines_of, present_in_file, present_in_run
from leeward.watch.read import is_alive, look_at

KINDS = {"layouts": LAYOUTS}  # by name


def kind_of(path: Path) -> Kind:
    """Return the kind of work of a run directory or file: so far always layouts."""
    return KINDS["layouts"]


def snapshot(path: Path, *, now: float | None = None, seeds: Collection[int] | None = None) -> Snapshot:
    """Return the snapshot of a run directory, of the file beside one, or of a lone file of results.

    It may be written at the same time, and by another machine. now: seconds since 1970. seeds: count only these.
    """
    return observe(path, now=now, seeds=seeds).snapshot


def observe(
    path: Path,
    *,
    now: float | None = None,
    seeds: Collection[int] | None = None,
    campaign: Campaign | None = None,
) -> Observation:
    """Return the snapshot and the data of single tasks. campaign: replaces the one found with the results."""
    demand_place(path)
    kind = kind_of(path)
    try:
        seen: Observation = kind.show(look_at(path, kind, time.time() if now is None else now, campaign), seeds)
        return seen
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error


def present_at(path: Path) -> Present:
    """Return the results of a run directory, of the file beside one, or of a lone file."""
    run, kind = run_of(path), kind_of(path)
    if run is None:
        return present_in_file(path, kind)[0]
    return present_in_run(run, kind, is_busy=is_alive(read_holder(run)))[0]


def result_lines(path: Path) -> list[dict[str, Any]]:
    """Return the index entry of every result, sorted by key; a result without an entry has only its key."""
    demand_place(path)
    kind = kind_of(path)
    try:
        run = run_of(path)
        if run is None:
            contents = [lines_of(path)[0]]
            names = in_lines(contents[0], kind).names
        else:
            names = present_at(path).names
            contents = [output_index(run.output) or b"", *(lines_of(pack)[0] for pack in run.pack_files())]
            with contextlib.suppress(FileNotFoundError, NotAFileError):  # only a cache
                contents.append(read_regular(run.index))
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error
    lines = {str(line["key"]): line for content in contents for line in whole_lines(content)}
    return [lines.get(name, {"key": name}) for name in sorted(names, key=kind.parse)]


def absent_tasks(path: Path, campaign: Any = None, *, now: float | None = None) -> Absence:
    """Return the missing results of a run directory, a file of results, or a folder of foreign files.

    campaign: by default the one found with the results. Results of a run directory are counted; those of a folder are
    checked, and damaged ones count as missing. now: seconds since 1970.
    """
    demand_place(path)
    kind = kind_of(path)
    campaign = campaign or kind.work_of(path)
    if campaign is None:
        raise InputError(f"{path}: has no campaign; name it with --campaign")
    is_folder = path.is_dir() and run_of(path) is None
    try:
        present = _checked_keys(path) if is_folder else present_at(path)
        reasons = _reasons(path, kind, campaign.execution.retries, present, time.time() if now is None else now)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error
    absent = sorted(key for key in campaign.tasks() if key not in present)
    tasks = tuple(reasons.get(key) or AbsentTask(key, "no result") for key in absent)
    return Absence(campaign.name, campaign.n_tasks, tasks)


def _checked_keys(folder: Path) -> set[Any]:
    from leeward.store import FoundResult, gather, read_files

    files = (file for source in gather([folder]) for file in source.files)
    results = (found for found in read_files(files) if isinstance(found, FoundResult) and found.is_valid)
    return {found.key for found in results if found.key is not None}


def _reasons(path: Path, kind: Kind, retries: int, present: Container[object], now: float) -> Mapping[Any, AbsentTask]:
    run = run_of(path)
    if run is None:
        return {}
    failures, _ = read_failures(run, kind, present, retries)
    reasons = {
        key: AbsentTask(
            key, f"failed: {failed.message}" if failed.final else f"to be retried: {failed.message}", failed.final
        )
        for key, failed in failures.items()
    }
    for worker in read_workers(run, read_holder(run), now):
        key = kind.key_of(worker.task or "")
        if key is not None:
            reasons[key] = AbsentTask(key, f"running on {worker.name}")
    return reasons
