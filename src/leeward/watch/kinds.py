"""What lies at a place now, of whatever kind of work it is."""

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
    """Return the kind of work at a place. A run directory or a file that states none holds layouts."""
    return KINDS["layouts"]  # none states one yet


def snapshot(path: Path, *, now: float | None = None, seeds: Collection[int] | None = None) -> Snapshot:
    """Of a run directory, of the file beside one, or of a lone file of results.

    It may be written at the same time, and by another machine. now: seconds since 1970. seeds: only the tasks of these.
    """
    return observe(path, now=now, seeds=seeds).snapshot


def observe(
    path: Path,
    *,
    now: float | None = None,
    seeds: Collection[int] | None = None,
    campaign: Campaign | None = None,
) -> Observation:
    """The snapshot, with what pages tell of single tasks from. campaign: instead of the one that the place tells of."""
    demand_place(path)
    kind = kind_of(path)
    try:
        seen: Observation = kind.show(look_at(path, kind, time.time() if now is None else now, campaign), seeds)
        return seen
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error


def present_at(path: Path) -> Present:
    """Of a run directory, of the file beside one, or of a lone file."""
    run, kind = run_of(path), kind_of(path)
    if run is None:
        return present_in_file(path, kind)[0]
    return present_in_run(run, kind, is_busy=is_alive(read_holder(run)))[0]


def result_lines(path: Path) -> list[dict[str, Any]]:
    """What the index says of every result there, in the order of the keys; a result that it lacks has only its key."""
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
            with contextlib.suppress(FileNotFoundError, NotAFileError):  # a cache: what it lacks is known by its key
                contents.append(read_regular(run.index))
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error
    lines = {str(line["key"]): line for content in contents for line in whole_lines(content)}
    return [lines.get(name, {"key": name}) for name in sorted(names, key=kind.parse)]


def absent_tasks(path: Path, campaign: Any = None, *, now: float | None = None) -> Absence:
    """Of a run directory, a file of results, or a folder of other scripts' files.

    campaign: what is expected; without it, what the place itself says. Results of a run directory are counted, those of
    a folder are checked: damaged ones count as absent. now: seconds since 1970.
    """
    demand_place(path)
    kind = kind_of(path)
    campaign = campaign or kind.work_of(path)
    if campaign is None:
        raise InputError(f"{path}: does not say what was expected of it; name the campaign with --campaign")
    is_folder = path.is_dir() and run_of(path) is None
    try:
        present = _checked_keys(path) if is_folder else present_at(path)
        reasons = _reasons(path, kind, campaign.execution.retries, present, time.time() if now is None else now)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error
    absent = sorted(key for key in campaign.tasks() if key not in present)
    tasks = tuple(reasons.get(key) or AbsentTask(key, "not there") for key in absent)
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
            key, f"failed: {failed.message}" if failed.final else f"to be tried again: {failed.message}", failed.final
        )
        for key, failed in failures.items()
    }
    for worker in read_workers(run, read_holder(run), now):
        key = kind.key_of(worker.task or "")
        if key is not None:
            reasons[key] = AbsentTask(key, f"in the hands of {worker.name}")
    return reasons
