"""The snapshot: from what lies on the disk at this moment to plain data."""

import contextlib
import functools
import statistics
import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.campaign import Campaign
from leeward.capacity import capacity_factor
from leeward.errors import BadSourceError, InputError, LeewardError, StorageError
from leeward.files import NotAFileError, read_regular
from leeward.store import Key, RunPaths, encode_line, index_line, is_pack, output_index, whole_lines
from leeward.watch.activity import rate_per_hour, read_failures, read_holder, read_workers
from leeward.watch.basis import basis_of
from leeward.watch.campaigns import campaign_of, demand_place, run_of
from leeward.watch.data import Cell, FailedTask, Holder, Snapshot, WorkerSeen
from leeward.watch.present import (
    Present,
    add_packed,
    in_lines,
    in_output,
    in_shards,
    key_of,
    names_in,
    tells_of_more,
)

RETRIES = 2  # where no campaign says how many


@dataclass(frozen=True)
class Observation:
    """One look at a place: the snapshot, and what it was counted from. campaign: None if it is not known."""

    snapshot: Snapshot
    campaign: Campaign | None
    present: Present


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
    now = time.time() if now is None else now
    try:
        run = run_of(path)
        if run is not None:
            return _of_run(path, run, now, seeds, campaign)
        if path.is_dir():
            raise InputError(
                f"{path}: is a folder, but no run directory; expected one like layouts.run, or a layouts.h5; "
                f"`leeward check {path}` looks at a folder of files"
            )
        return _of_file(path, now, seeds, campaign)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error


def result_lines(path: Path) -> list[dict[str, Any]]:
    """What the index says of every result there, in the order of the keys; a result that it lacks has only its key."""
    demand_place(path)
    try:
        run = run_of(path)
        if run is None:
            return _sorted(_lines_of_file(path)[0])
        present = present_at(path)
        lines = dict(_lines_of_output(run.output))
        for pack in run.pack_files():
            lines |= _lines_of_pack(pack)
        with contextlib.suppress(FileNotFoundError, NotAFileError):  # a cache: what it lacks is known by its key
            lines |= {line["key"]: line for line in whole_lines(read_regular(run.index))}
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error})") from error
    keys = (Key(*pair, seed) for pair, seeds in present.seeds.items() for seed in seeds)
    return _sorted({name: lines.get(name, {"key": name}) for name in map(str, keys)})


def index_content(file: Path, *, is_lone: bool = False) -> bytes | None:
    """The lines of the index beside a merged file or a pack; None without one that fits.

    is_lone: there is nothing else to know its results by; without an index the lines are made from the file itself.
    """
    content = output_index(file, is_pack=is_pack(file))
    if content is None and is_lone:
        return b"".join(map(encode_line, _lines_of_file(file)[0].values()))
    return content


def _sorted(lines: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [lines[name] for name in sorted(lines, key=Key.parse)]


def _of_run(
    path: Path, run: RunPaths, now: float, seeds: Collection[int] | None, named: Campaign | None
) -> Observation:
    notes = list(run.odd_places())
    campaign = named or _campaign(path, notes)
    holder = read_holder(run)
    workers = read_workers(run, holder, now)
    present = _present_in_run(run, holder, notes)
    failures, bad_records = read_failures(run, present, campaign.execution.retries if campaign else RETRIES)
    if present.odd:
        notes.append(f"{present.odd} file(s) in {run.results} are no shards by their names")
    if bad_records:
        notes.append(f"{bad_records} record(s) of failures cannot be read")
    counted = _Counted(campaign, present, failures, workers, seeds)
    goes_on = holder if holder is not None and holder.state == "alive" else None
    rate = None if counted.left == 0 else rate_per_hour(present.created, goes_on, now)  # a finished run has none
    seen = Snapshot(
        path=str(path),
        run=str(run.root),
        output=str(run.output),
        time=now,
        **counted.totals,
        failures=tuple(counted.failures[key] for key in sorted(counted.failures)),
        workers=tuple(workers),
        owner=holder,
        rate_per_hour=rate,
        seconds_left=counted.seconds_left(rate) if goes_on else None,
        output_exists=run.output.exists(),
        output_results=present.output_results,
        unreadable_lines=present.unreadable,
        quarantined=sum(not name.endswith(".reason.json") for name in names_in(run.quarantine)),
        notes=tuple(notes),
    )
    return Observation(seen, campaign, present)


def _present_in_run(run: RunPaths, holder: Holder | None, notes: list[str]) -> Present:
    """Shards, packs, and what only the output has; without an index that fits it is read, unless it is being made."""
    present = in_shards(run)
    for pack in add_packed(present, run):
        packed, problems = _present_in_file(pack)
        notes += problems
        present.add(packed)
    content = output_index(run.output)
    is_busy = holder is not None and holder.state == "alive"
    if content is not None:
        present.output_results = content.count(b"\n")
        if tells_of_more(content, present):
            present.add(in_lines(content))
    elif run.output.is_file() and not (is_busy and present.count):
        merged, problems = _present_in_file(run.output)
        notes += problems
        present.add(merged)
        present.output_results = merged.output_results
    return present


def _of_file(path: Path, now: float, seeds: Collection[int] | None, named: Campaign | None) -> Observation:
    present, notes = _present_in_lone_file(path)
    campaign = named or _campaign(path, notes)
    counted = _Counted(campaign, present, {}, [], seeds)
    seen = Snapshot(
        path=str(path),
        run=None,
        output=str(path),
        time=now,
        **counted.totals,
        output_exists=True,
        output_results=present.count,
        notes=tuple(notes),
    )
    return Observation(seen, campaign, present)


def _campaign(path: Path, notes: list[str]) -> Campaign | None:
    """One that cannot be read does not stand in the way of counting."""
    try:
        campaign = campaign_of(path)
        basis_of(campaign)  # refuses one whose turbines cannot be counted
        return campaign
    except LeewardError as error:
        notes.append(f"what was expected is not known: {error}")
        return None


def present_at(path: Path) -> Present:
    """Of a run directory, of the file beside one, or of a lone file."""
    run = run_of(path)
    if run is not None:
        return _present_in_run(run, read_holder(run), [])
    return _present_in_lone_file(path)[0]


def _present_in_lone_file(path: Path) -> tuple[Present, list[str]]:
    present, problems = _present_in_file(path)
    if problems and not present.count:
        raise BadSourceError(f"{problems[0]}; `leeward check {path}` says more")
    return present, problems


def _present_in_file(path: Path) -> tuple[Present, list[str]]:
    """From the index beside the file; without one that fits, from the file itself, with what is wrong with it."""
    present = in_output(path)
    if present is not None:
        return present, []
    lines, problems = _lines_of_file(path)
    present = Present(output_results=len(lines))
    for name, line in lines.items():
        farm, kind, seed = Key.parse(name)
        present.seeds[farm, kind].add(seed)
        if line["aep"] is not None:
            present.aeps[farm, kind][seed] = line["aep"]
    return present, problems


def _lines_of_pack(pack: Path) -> dict[str, dict[str, Any]]:
    content = output_index(pack, is_pack=True)
    return _lines_of_file(pack)[0] if content is None else {line["key"]: line for line in whole_lines(content)}


def _lines_of_output(output: Path) -> dict[str, dict[str, Any]]:
    """From the index beside it; empty without one that fits."""
    content = output_index(output)
    return {} if content is None else {line["key"]: line for line in whole_lines(content)}


def _lines_of_file(path: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The same, from the file itself where need be; it is opened by another process."""
    from leeward.store import FoundResult, read_files

    lines = _lines_of_output(path)
    problems: list[str] = []
    if lines:
        return lines, problems
    for found in read_files([path]):
        if isinstance(found, FoundResult):
            if found.is_valid:
                lines[str(found.key)] = index_line(found)
        elif not found.is_valid:
            reason = f"{found.verdict}, {found.reason}" if found.reason else f"{found.bad} damaged result(s)"
            problems.append(f"{found.path}: {reason}")
    return lines, problems


class _Counted:
    """Everything by farm and turbine type."""

    def __init__(
        self,
        campaign: Campaign | None,
        present: Present,
        failures: dict[Key, FailedTask],
        workers: Iterable[WorkerSeen],
        seeds: Collection[int] | None,
    ) -> None:
        self._campaign = campaign
        self._basis = basis_of(campaign)
        self._seeds = _chosen(campaign, seeds)
        self._done: Counter[tuple[int, int]] = Counter()
        self._aeps: dict[tuple[int, int], list[tuple[float, int]]] = {}
        self._beyond = 0
        for pair, there in present.seeds.items():
            chosen = self._of_interest(pair, there)
            self._beyond += len(there if seeds is None else there.intersection(seeds)) - len(chosen)
            self._done[pair] = len(chosen)
            aeps = present.aeps.get(pair, {})
            self._aeps[pair] = [(aep, seed) for seed, aep in aeps.items() if seed in chosen]
        self.failures = {key: failed for key, failed in failures.items() if self._counts(key)}
        self._failed = Counter(key[:2] for key, failed in self.failures.items() if failed.final)
        in_hand = {task for worker in workers if (task := key_of(worker.task or "")) is not None}
        self._running = Counter(key[:2] for key in in_hand if self._counts(key) and key not in present)

    def _of_interest(self, pair: tuple[int, int], there: set[int]) -> set[int]:
        campaign = self._campaign
        if campaign is not None and not (pair[0] in campaign.farms and pair[1] in campaign.types):
            return set()
        return there if self._seeds is None else {seed for seed in there if seed in self._seeds}

    def _counts(self, key: Key) -> bool:
        is_chosen = self._seeds is None or key.seed in self._seeds
        return is_chosen and (self._campaign is None or key in self._campaign)

    @functools.cached_property
    def totals(self) -> dict[str, Any]:
        """The fields of a snapshot that say how much of the campaign is done."""
        farms, types = self._names()
        done = self._done.total()
        n_seeds = None if self._campaign is None or self._seeds is None else len(self._seeds)
        expected = None if n_seeds is None else n_seeds * len(farms) * len(types)
        return {
            "campaign": None if self._campaign is None else self._campaign.name,
            "farms": farms,
            "types": types,
            "seeds": n_seeds,
            "expected": expected,
            "done": done,
            "failed": self._failed.total(),
            "running": self._running.total(),
            "missing": None if expected is None else expected - done,
            "beyond": self._beyond,
            "cells": tuple(self._cell(farm, kind, n_seeds) for farm in farms for kind in types),
            "optimiser": self._basis.optimiser,
            "by_capacity_factor": self._basis.by_capacity_factor,
            "remarks": self._basis.remarks,
        }

    @property
    def left(self) -> int | None:
        """Tasks that a run would still compute; None if nobody knows."""
        missing = self.totals["missing"]
        return None if missing is None else max(missing - self._failed.total(), 0)

    def seconds_left(self, rate: float | None) -> float | None:
        return None if self.left is None or not rate else 3600.0 * self.left / rate

    def _names(self) -> tuple[dict[int, str], dict[int, str]]:
        if self._campaign is not None:
            return dict(self._campaign.farms), dict(self._campaign.types)
        farms = sorted({farm for farm, _ in self._done})
        types = sorted({kind for _, kind in self._done})
        return dict.fromkeys(farms, ""), dict.fromkeys(types, "")

    def _cell(self, farm: int, kind: int, expected: int | None) -> Cell:
        pair = farm, kind
        done, failed, running = self._done[pair], self._failed[pair], self._running[pair]
        aeps = self._aeps.get(pair)
        installed = self._basis.installed_mw.get(pair)
        if not aeps:
            return Cell(farm, kind, done, expected, failed, running, installed_mw=installed)
        aep, seed = aeps[0] if len(aeps) == 1 else max(aeps, key=lambda known: (known[0], -known[1]))
        median = aep if len(aeps) == 1 else statistics.median(aep for aep, _ in aeps)
        factor = None if installed is None else capacity_factor(aep, installed)
        best = str(Key(farm, kind, seed))
        return Cell(farm, kind, done, expected, failed, running, aep, median, best, installed, factor)


def _chosen(campaign: Campaign | None, seeds: Collection[int] | None) -> Collection[int] | None:
    """The seeds that count; None for all of a campaign that nobody knows."""
    if campaign is None:
        return seeds
    known = campaign.seeds if isinstance(campaign.seeds, range) else frozenset(campaign.seeds)
    if seeds is None:
        return known
    chosen = frozenset(seed for seed in seeds if seed in known)
    if not chosen:
        listed = ", ".join(map(str, seeds))
        raise InputError(f"seed {listed}: not of the campaign {campaign.name}, whose seeds are {_shown(campaign)}")
    return chosen


def _shown(campaign: Campaign) -> str:
    seeds = campaign.seeds
    if isinstance(seeds, range) and seeds.step == 1:
        return f"{seeds.start} to {seeds.stop - 1}"
    return ", ".join(map(str, seeds[:10])) + (", ..." if len(seeds) > 10 else "")
