"""Which tasks have no result: what was expected, without what is there."""

import time
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.errors import InputError, StorageError
from leeward.watch.activity import read_failures, read_holder, read_workers
from leeward.watch.data import Kind
from leeward.watch.kinds import kind_of, present_at
from leeward.watch.places import demand_place, run_of


@dataclass(frozen=True)
class AbsentTask:
    """reason: why it has no result, as far as that is known. failed: it was tried, and is not tried again by itself."""

    key: Any
    reason: str
    failed: bool = False


@dataclass(frozen=True)
class Absence:
    """campaign: its name. expected: how many tasks it has. tasks: those without a result, sorted by key."""

    campaign: str
    expected: int
    tasks: tuple[AbsentTask, ...]


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
