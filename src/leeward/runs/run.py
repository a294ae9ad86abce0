"""A whole campaign: what is there is verified, what is missing is computed, and all of it is merged."""

import os
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from leeward import __version__
from leeward.campaign import Campaign, builtin_campaign, load
from leeward.campaign.defaults import with_user_defaults
from leeward.campaign.execution import Execution
from leeward.compiling import compile_events
from leeward.cores import usable_cores
from leeward.engines.inline import InlineEngine
from leeward.engines.local import LocalEngine
from leeward.engines.outcomes import Engine, EngineLostError
from leeward.errors import InputError, LeewardError, StorageError
from leeward.events import OnEvent
from leeward.files import is_there, refresh, rename
from leeward.runs import filesystem, resume
from leeward.runs.adopt import Adoption, adopt, refuse_bad_sources
from leeward.runs.coordinator import Coordinator
from leeward.runs.demands import demand_cluster
from leeward.runs.order import Order
from leeward.runs.packing import Packing
from leeward.runs.selection import as_keys, chosen_tasks
from leeward.runs.stopping import StopNowError, StopRequests
from leeward.store import (
    Audit,
    BadShard,
    Brief,
    Key,
    Lock,
    OutputHoldsMoreError,
    Record,
    RunFiles,
    RunMerge,
    RunPaths,
    Value,
    check_space,
    index_line,
    merge_run,
    output_index_path,
    prepare_folders,
    probe,
    read_shards,
    utc_now,
)

ROUNDS = 3  # of merging, until what does not verify has been computed again often enough


@dataclass(frozen=True)
class Options:
    """How a run is to go about it; see `run`."""

    only: str | Collection[Key] | None = None
    retry_failed: bool = False
    adopt: tuple[Path, ...] = ()
    keep_infeasible: bool = False
    new: bool = False
    take_over: bool = False
    grace_s: float = 60.0
    storage_wait_s: float = 1800.0


@dataclass
class RunReport:
    """How a run ended.

    wanted: the tasks that were asked for; done, failed and missing are about these. results: AEP and wake loss of every
    result in the run directory, by key; is_counted: whether the run got as far as looking there. failures: records of
    failed tasks. signal: of a request to stop, if any. engine_lost: why there was nobody left to compute, if so.
    """

    paths: RunPaths
    campaign: Campaign
    wanted: list[Key]
    results: dict[Key, Brief] = field(default_factory=dict)
    failures: dict[Key, Record] = field(default_factory=dict)
    computed: int = 0
    is_counted: bool = False
    adoption: Adoption | None = None
    merged: RunMerge | None = None
    quarantined: int = 0
    signal: int | None = None
    engine_lost: str = ""
    seconds: float = 0.0

    @property
    def done(self) -> int:
        return sum(key in self.results for key in self.wanted)

    @property
    def failed(self) -> list[Key]:
        return [key for key in self.wanted if key in self.failures and key not in self.results]

    @property
    def missing(self) -> list[Key]:
        return [key for key in self.wanted if key not in self.results]

    @property
    def is_complete(self) -> bool:
        """Whether every task that was asked for has a verified result in the merged file."""
        return self.merged is not None and all(key in self.merged.keys for key in self.wanted)

    @property
    def exit_code(self) -> int:
        """0 complete; 3 with results missing or failed; 130 or 143 interrupted before all was done."""
        if self.is_complete:
            return 0
        return 3 if self.signal is None else 128 + self.signal


def run(
    campaign: Campaign | str | PathLike[str] | Mapping[str, Any] | None = None,
    output: str | PathLike[str] = "layouts.h5",
    *,
    only: str | Collection[Key | str] | None = None,
    retry_failed: bool = False,
    adopt: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
    keep_infeasible: bool = False,
    new: bool = False,
    take_over: bool = False,
    grace_s: float = 60.0,
    storage_wait_s: float = 1800.0,
    hear: OnEvent | None = None,
) -> RunReport:
    """Compute every layout of a campaign that is not there yet, and merge all into `output`.

    The results lie in a run directory beside the output (`layouts.run`), each stored as soon as it is computed; the
    same call goes on where an earlier one ended, however it ended.

    campaign: a Campaign, the path of a campaign file, a dict of the same shape, a built-in campaign's name, or None for
    the built-in one with one seed.
    only: some of the tasks, as "farm=0,3 type=5 seed=0:10" or as keys. retry_failed: also those that failed before.
    adopt: files and folders with results of other origin, which count as done. keep_infeasible: adopt layouts with
    turbines closer than a rotor diameter too. new: keep an old run under another name, and begin anew. take_over: also
    from an owner of the directory that stands still on another machine. grace_s: for tasks in hand, after a request to
    stop. storage_wait_s: how long to wait for a disk that takes nothing; then StorageError. hear: called with every
    event, a dict.
    """
    if os.name != "posix":
        raise LeewardError("leeward run works on Linux and macOS; on this system it can check, merge and read results")
    if not isinstance(campaign, Campaign):
        campaign = builtin_campaign() if campaign is None else load(campaign)
    sources = tuple(Path(source) for source in ([adopt] if isinstance(adopt, str | PathLike) else adopt))
    refuse_bad_sources(sources)
    if keep_infeasible and not sources:
        raise InputError(
            "keep_infeasible is given without adopt (--keep-infeasible without --adopt); it is about adopted layouts: "
            "give both"
        )
    if not (grace_s >= 0 and storage_wait_s >= 0):
        raise InputError(f"grace_s is {grace_s:g} and storage_wait_s {storage_wait_s:g}; expected 0 or more")
    chosen = only if only is None or isinstance(only, str) else as_keys(only, campaign)
    options = Options(chosen, retry_failed, sources, keep_infeasible, new, take_over, grace_s, storage_wait_s)
    execution = with_user_defaults(campaign).execution
    if execution.engine in ("dask", "slurm"):
        demand_cluster(execution, Path(output).absolute())
    return _Run(campaign, execution, RunPaths(Path(output)), options, hear or (lambda event: None)).go()


class _Run:
    """One run, from taking the directory to giving it back. execution: the campaign's, with the user's defaults."""

    def __init__(
        self, campaign: Campaign, execution: Execution, paths: RunPaths, options: Options, hear: OnEvent
    ) -> None:
        self.campaign = campaign
        self.execution = execution
        self.paths = paths
        self.options = options
        self._hear = hear
        self.report = RunReport(paths, campaign, chosen_tasks(campaign, options.only))
        if not self.report.wanted:
            raise InputError(
                f"none of the {campaign.n_tasks} tasks of {campaign.name} was asked for by {options.only!r:.80}"
            )

    def tell(self, event: str, **facts: Any) -> None:
        self._hear({"event": event, "time": utc_now(), **facts})

    def go(self) -> RunReport:
        began = time.monotonic()
        if not self.paths.output.parent.is_dir():
            raise InputError(f"{self.paths.output.parent}: no such folder; make it first, or name another output")
        resume.refuse_odd_output(self.paths)
        self.campaign.check()
        if self.options.new:
            self._put_old_aside()
        prepare_folders(self.paths)
        lock = Lock.take(
            self.paths.lock, take_over=self.options.take_over, tell=lambda text: self.tell("waiting", message=text)
        )
        try:
            refresh(self.paths.output.parent)  # another machine may just have written the output
            if text := filesystem.remark(self.paths.root):
                self.tell("file-system", message=text)
            with StopRequests() as stop:
                self.audit = Audit(self.paths.audit, lock.check)
                self.coordinator = self._coordinator(lock, stop)
                try:
                    self._work(stop)
                except StopNowError:
                    self.tell("stopped", signal=stop.signal)
                self.report.signal = stop.signal
                self.report.quarantined = self.order.quarantined
        finally:
            lock.release()
        self.report.seconds = time.monotonic() - began
        return self.report

    def _coordinator(self, lock: Lock, stop: StopRequests) -> Coordinator:
        most = self.execution.loose_results
        packing = Packing(self.paths, most, self._attributes, self.audit.record, self.tell)
        coordinator = Coordinator(
            self.paths,
            lock,
            self.audit,
            self.tell,
            stop,
            retries=self.execution.retries,
            grace_s=self.options.grace_s,
            storage_wait_s=self.options.storage_wait_s,
            find=self._find,
            packing=packing,
        )
        self.order = Order(self.paths, packing, coordinator.patiently, self.audit.record, self.tell)
        return coordinator

    def _work(self, stop: StopRequests) -> None:
        probe(self.paths)
        self._look_at_what_is_there()
        self._adopt()
        tasks = self._tasks()
        self._say_what_is_to_come(tasks)
        for turn in range(ROUNDS):
            self._compute(tasks)
            lost = self._merge()
            if lost == 0 or stop.is_asked or self.report.engine_lost:
                break
            tasks = self._tasks()
            self.tell("again", tasks=len(tasks), lost=lost, turn=turn + 1)
        merged = self.report.merged
        facts = {
            "done": self.report.done,
            "failed": len(self.report.failed),
            "missing": len(self.report.missing),
            "merged": merged.count if merged else None,
            "signal": stop.signal,
        }
        self.coordinator.patiently(lambda: self.audit.record("run-ended", **facts))

    def _put_old_aside(self) -> None:
        """The old run directory and its output get a name that says when; they stay a pair."""
        old = self.paths
        aside = RunPaths(old.output.with_name(f"{old.output.stem}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.h5"))
        if aside.root.exists() or aside.output.exists():
            raise InputError(f"{aside.root}: is there already; expected a name that is free: try again")
        if not (old.root.exists() or old.output.exists()):
            return
        try:
            if old.root.exists():
                lock = Lock.take(old.lock, take_over=self.options.take_over)
                try:
                    rename(old.root, aside.root)
                    lock.path = aside.lock
                finally:
                    lock.release()
            if old.output.exists():
                rename(old.output, aside.output)
                output_index_path(old.output).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{old.root}: cannot be put aside ({error})") from error
        self.tell("put-aside", run=str(aside.root), output=str(aside.output))

    def _look_at_what_is_there(self) -> None:
        resume.tidy(self.paths)
        files = RunFiles(self.paths)
        if len(files):
            self.tell("checking", shards=files.likely_results or len(files))
        patiently, notice = self.coordinator.patiently, self.coordinator.notice
        patiently(lambda: resume.sync_names(self.paths))
        stored = patiently(lambda: resume.read_stored(files, self._cores(len(files)), notice))
        self.coordinator.results = self.report.results = stored.results
        resume.refuse_changed(self.campaign, self.paths, stored)
        self.report.is_counted = True
        patiently(
            lambda: self.audit.record(
                "run-began", tasks=len(self.report.wanted), stored=len(stored.results), version=__version__
            )
        )
        if self.order.put_in_order(stored):
            resume.refuse_changed(self.campaign, self.paths, stored)
        restored = 0
        if self._is_output_not_adopted():
            restored = resume.take_back(self.campaign, self.paths, stored, self.order.store, notice)
        patiently(lambda: resume.freeze(self.campaign, self.paths, self.audit.record))
        lines = b"".join(stored.lines.unpacked())
        patiently(lambda: resume.write_index(self.paths, lines))
        self._look_at_records()
        if stored.results or stored.bad:
            self.tell("checked", valid=len(stored.results), bad=len(stored.bad), restored=restored)

    def _is_output_not_adopted(self) -> bool:
        """An output that is itself adopted is looked at there."""
        return self.paths.output.resolve() not in {source.resolve() for source in self.options.adopt}

    def _look_at_records(self) -> None:
        """What earlier runs tried: failures stand until somebody wants them tried again, or the settings change."""
        records = resume.read_records(self.paths, self.audit.record)
        results, failed = self.report.results, self.coordinator.failed
        wanted = set(self.report.wanted) if self.options.retry_failed else set()
        void = {
            key
            for key, record in records.items()
            if key in results
            or key in wanted
            or (key in self.campaign and record.fingerprint != self._fingerprint(key))
        }
        self.coordinator.patiently(lambda: resume.forget_records(self.paths, void))
        kept = {key: record for key, record in records.items() if key not in void}
        retries = self.execution.retries
        failed |= {key: record for key, record in kept.items() if record.is_hopeless(retries)}
        self._suspects = {key for key, record in kept.items() if record.attempts}

    def _fingerprint(self, key: Key) -> str:
        return self.campaign.fingerprint(key.farm_idx, key.type_idx)

    def _adopt(self) -> None:
        if not self.options.adopt:
            return
        self.tell("adopting", sources=[str(source) for source in self.options.adopt])
        results = self.report.results
        patiently, notice = self.coordinator.patiently, self.coordinator.notice
        with compile_events(self.tell):
            adoption = adopt(
                self.campaign,
                self.paths,
                self.options.adopt,
                results.keys(),
                self.order.store,
                notice,
                keep_infeasible=self.options.keep_infeasible,
            )
        results.update(adoption.results)
        lines = b"".join(adoption.lines.unpacked())
        patiently(lambda: self.coordinator.append_index(lines))
        for key in adoption.results:
            self.coordinator.failed.pop(key, None)
        facts = {
            "adopted": len(adoption.results),
            "recomputed": adoption.recomputed,
            "disagreeing": adoption.disagreeing,
            "present": adoption.present,
            "not_the_best": adoption.worse,
            "violating": {str(key): worst for key, worst in adoption.violating.items()},
            "refused": adoption.refused,
            "bad_files": adoption.bad_files,
        }
        patiently(lambda: self.audit.record("adopted", sources=[str(source) for source in self.options.adopt], **facts))
        self.tell("adopted", **facts)
        self.report.adoption = adoption

    def _tasks(self) -> list[Key]:
        """What is to be computed; what was in hand when a coordinator died comes last, in case it was its fault."""
        known = self.coordinator.failed
        left = [key for key in self.report.wanted if key not in self.report.results and key not in known]
        return sorted(left, key=lambda key: key in self._suspects)

    def _say_what_is_to_come(self, tasks: list[Key]) -> None:
        pairs = {(key.farm_idx, key.type_idx) for key in tasks}
        turbines = max((self.campaign.n_turbines(*pair) for pair in pairs), default=0)
        loose = self.execution.loose_results
        check_space(self.paths, len(tasks), len(self.report.results), turbines, loose)
        wanted = self.report.wanted
        done = sum(key in self.report.results for key in wanted)
        failed = sum(key in self.coordinator.failed for key in wanted)
        self.coordinator.total = len(wanted)
        engine = self.execution.engine
        workers = {"local": self._cores(len(tasks)), "inline": 1}.get(engine)
        facts = {"total": len(wanted), "done": done, "failed": failed, "workers": workers, "engine": engine}
        self.tell("began", campaign=self.campaign.name, **facts)

    def _cores(self, most: int) -> int:
        return max(1, min(self.execution.workers or usable_cores(), most))

    def _compute(self, tasks: list[Key]) -> None:
        try:
            if tasks:
                self.coordinator.run(tasks, self._engine(len(tasks)))
        except EngineLostError as error:
            message = self.report.engine_lost = str(error)
            self.tell("engine-lost", message=message)
            self.coordinator.patiently(lambda: self.audit.record("engine-lost", message=message))
            self.coordinator.look_again()
        finally:
            self.report.failures = dict(self.coordinator.failed)
            self.report.computed = self.coordinator.computed

    def _engine(self, tasks: int) -> Engine:
        execution = self.execution
        if execution.engine == "inline":
            return InlineEngine(self.campaign, self.paths, self.coordinator.hear, self.tell)
        if execution.engine in ("dask", "slurm"):
            from leeward.engines.cluster.start import cluster_engine

            return cluster_engine(self.campaign, execution, self.paths, self.tell, lambda: self.coordinator.left)
        mark = secrets.token_hex(4)  # attempts of its workers are told from those of others
        cores = self._cores(tasks)
        return LocalEngine(self.campaign.frozen_text(), self.paths, cores, execution.timeout_s, mark, tell=self.tell)

    def _merge(self) -> int:
        """All results into the output; how many had to be given up, and are to be computed again.

        Those do not verify, and their files are in quarantine now; or somebody has removed them.
        """
        results = self.report.results
        if not results:
            return 0
        self.tell("merging", results=len(results))
        before = len(results)
        try:
            merged = self.coordinator.patiently(
                lambda: merge_run(self.paths, self._attributes(), emit=self.audit.record, processes=self._cores(2))
            )
        except OutputHoldsMoreError as error:
            return self._make_up_for(error)
        rescued = {found.key for bad in merged.bad_files for found in self.order.put_aside(bad)} - merged.keys
        for key in [key for key in results if key not in merged.keys and key not in rescued]:
            del results[key]
        self.report.merged = merged
        self.tell("merged", results=merged.count, output=str(self.paths.output), bad=len(merged.bad_files))
        return before - len(results) + len(rescued)

    def _make_up_for(self, error: OutputHoldsMoreError) -> int:
        """The output holds what some files do not any more: it comes back from there, or is computed again."""
        for bad in error.bad_files:
            self.order.put_aside(bad)
        results = self.report.results
        patiently, notice = self.coordinator.patiently, self.coordinator.notice
        there = patiently(lambda: resume.read_stored(RunFiles(self.paths), self._cores(2), notice)).results
        gone = [key for key in results if key not in there]
        for key in gone:
            del results[key]
        known = resume.Stored(results)
        restored = resume.take_back(self.campaign, self.paths, known, self.order.store, notice)
        lines = b"".join(known.lines.unpacked())
        patiently(lambda: self.coordinator.append_index(lines))
        if not (error.bad_files or gone or restored):
            raise error
        return max(1, len(error.bad_files) + len(gone))

    def _find(self, key: Key) -> dict[str, Any] | None:
        """A result that a dead worker may have stored; a bad one is put out of the way."""
        path = self.paths.shard(key)
        if not is_there(path):
            return None
        (found,) = self.coordinator.patiently(lambda: list(read_shards([path])))
        if not isinstance(found, BadShard):
            return index_line(found)
        self.order.put_aside(found)
        return None

    def _attributes(self) -> dict[str, Value]:
        campaign = self.campaign
        attributes: dict[str, Value] = {
            "campaign": campaign.study_text(),
            "campaign_name": campaign.name,
            "leeward_version": __version__,
            "created": utc_now(),
            "grid_size": campaign.grid_size,
            "random_pct": float(campaign.random_pct),
            "total_configs": campaign.n_tasks + sum(key not in campaign for key in self.report.results),
            "crs": campaign.crs or "",
        }
        return attributes
