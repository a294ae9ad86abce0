"""A complete run: verify existing results, compute missing ones, merge all."""

import os
import time
from collections.abc import Collection, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from leeward.campaign import Campaign, builtin_campaign, load
from leeward.campaign.selection import as_keys
from leeward.campaign.work import LayoutWork
from leeward.deprecation import renamed_argument
from leeward.engines.engine import Assignment, EngineLostError, engine_class
from leeward.engines.work import Work
from leeward.errors import InputError, LeewardError
from leeward.events import Emit, OnEvent
from leeward.files import refresh, rename, storage_errors
from leeward.runs import filesystem, resume, stages
from leeward.runs.context import Options, RunContext, RunReport, StopNowError, StopRequests
from leeward.runs.coordinator import Coordinator
from leeward.runs.disk import RunDisk
from leeward.runs.result_files import ResultFiles
from leeward.store import Audit, Key, Lock, RunPaths, check_space, output_index_path, prepare_folders, probe, utc_now

__all__ = ["Options", "RunReport", "run", "run_work"]

ROUNDS = 3  # rounds of computing and merging, as long as results do not verify


@renamed_argument("hear", "on_event")
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
    on_event: OnEvent | None = None,
) -> RunReport:
    """Compute all missing layouts of a campaign, and merge all into `output`.

    Each result is stored in the run directory beside the output (`layouts.run`) as soon as it is computed. The same
    call resumes a run, however it ended.

    campaign: a Campaign, the path of a campaign file, a dict of the same shape, the name of a built-in campaign, or
    None for the built-in one with one seed.
    only: run only these tasks, as "farm=0,3 type=5 seed=0:10" or as keys. retry_failed: also retry tasks that failed
    before. adopt: files and folders with results from elsewhere, which count as done. keep_infeasible: also adopt
    layouts with turbines closer than a rotor diameter. new: start over, and keep an old run under another name.
    take_over: take the run directory from a coordinator on another machine whose heartbeat has stopped. grace_s: time
    for running tasks after a request to stop, s. storage_wait_s: time to wait while the disk rejects writes, s; then
    StorageError. on_event: called with every event, a dict whose key "event" is its kind.
    """
    if os.name != "posix":
        raise LeewardError("leeward run works on Linux and macOS; on this system use leeward to check, merge and read")
    if not isinstance(campaign, Campaign):
        campaign = builtin_campaign() if campaign is None else load(campaign)
    sources = tuple(Path(source) for source in ([adopt] if isinstance(adopt, str | PathLike) else adopt))
    resume.refuse_bad_sources(sources)
    if keep_infeasible and not sources:
        raise InputError("keep_infeasible is given without adopt (--keep-infeasible without --adopt); give both")
    if not (grace_s >= 0 and storage_wait_s >= 0):
        raise InputError(f"grace_s is {grace_s:g} and storage_wait_s {storage_wait_s:g}; expected 0 or more")
    chosen = only if only is None or isinstance(only, str) else as_keys(only, campaign)
    options = Options(chosen, retry_failed, sources, keep_infeasible, new, take_over, grace_s, storage_wait_s)
    return run_work(LayoutWork(campaign), RunPaths(Path(output)), options, on_event or (lambda event: None))


def run_work(work: Work, paths: RunPaths, options: Options, on_event: OnEvent) -> RunReport:
    """Compute all missing tasks of a work, and merge all into the output; see `run`."""

    def emit(kind: str, /, **facts: Any) -> None:
        on_event({"event": kind, "time": utc_now(), **facts})

    began = time.monotonic()
    report = RunReport(paths, work, list(work.select(options.only)))
    if not report.wanted:
        raise nothing_to_run(work, options)
    engine_class(work.execution.engine).demand(work.execution, paths.output.absolute())
    if not paths.output.parent.is_dir():
        raise InputError(f"{paths.output.parent}: no such folder; create it first, or choose another output with -o")
    resume.refuse_odd_output(paths)
    for note in work.check():
        emit("note", message=note)
    if options.new:
        _put_old_aside(paths, options.take_over, emit)
    prepare_folders(paths)
    lock = Lock.take(paths.lock, take_over=options.take_over, emit=emit)
    try:
        refresh(paths.output.parent)  # another machine may just have written the output
        if text := filesystem.remark(paths.root):
            emit("file-system", message=text)
        with StopRequests() as stop:
            try:
                _Run(RunContext(report, options, emit, lock, Audit(paths.audit, lock.check), stop)).go()
            except StopNowError:
                emit("stopped", signal=stop.signal)
            report.signal = stop.signal
    finally:
        lock.release()
    report.seconds = time.monotonic() - began
    return report


def nothing_to_run(work: Work, options: Options) -> InputError:
    return InputError(f"{options.only!r:.80} selects none of the {work.n_tasks} tasks of {work.name}")


def _put_old_aside(old: RunPaths, take_over: bool, emit: Emit) -> None:
    """Rename the old run directory and its output, with the time in the name."""
    aside = RunPaths(old.output.with_name(f"{old.output.stem}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.h5"))
    if aside.root.exists() or aside.output.exists():
        raise InputError(f"{aside.root}: exists, so the old run cannot get this name; try again")
    if not (old.root.exists() or old.output.exists()):
        return
    with storage_errors(old.root, "cannot be renamed"):
        if old.root.exists():
            lock = Lock.take(old.lock, take_over=take_over)
            try:
                rename(old.root, aside.root)
                lock.path = aside.lock
            finally:
                lock.release()
        if old.output.exists():
            rename(old.output, aside.output)
            output_index_path(old.output).unlink(missing_ok=True)
    emit("put-aside", run=str(aside.root), output=str(aside.output))


class _Run:
    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._report = context.report
        self._disk = RunDisk(context.emit, context.stop, context.options.storage_wait_s)
        self._files = ResultFiles(context, self._disk)
        self._coordinator = Coordinator(context, self._disk, self._files)

    def go(self) -> None:
        context, report, stop = self._context, self._report, self._context.stop
        probe(context.paths)
        shared = (context, self._disk, self._files, self._coordinator.notice)
        stages.look_at_what_is_there(*shared)
        suspects = stages.look_at_records(context, self._disk)
        stages.adopt(*shared)
        tasks = self._tasks(suspects)
        self._announce(tasks)
        for turn in range(ROUNDS):
            self._compute(tasks)
            lost = stages.merge(*shared)
            if lost == 0 or stop.is_asked or report.engine_lost:
                break
            tasks = self._tasks(suspects)
            context.emit("again", tasks=len(tasks), lost=lost, turn=turn + 1)
        facts = {"done": report.done, "failed": len(report.failed), "missing": len(report.missing)}
        merged = report.merged.count if report.merged else None
        self._disk.retry(lambda: context.audit.record("run-ended", **facts, merged=merged, signal=stop.signal))

    def _tasks(self, suspects: set[Key]) -> list[Key]:
        """Return the tasks to compute; suspects, which were running when a coordinator died, come last."""
        report = self._report
        left = [key for key in report.wanted if key not in report.results and key not in report.failures]
        return sorted(left, key=lambda key: key in suspects)

    def _announce(self, tasks: list[Key]) -> None:
        """Check the disk space, and emit "began"."""
        work, report = self._context.work, self._report
        execution, wanted = work.execution, report.wanted
        needs = {"result_bytes": work.result_bytes(tasks), "loose": execution.loose_results}
        check_space(report.paths, len(tasks), len(report.results), **needs)
        done = sum(key in report.results for key in wanted)
        failed = sum(key in report.failures for key in wanted)
        workers = engine_class(execution.engine).worker_count(execution, len(tasks))
        facts = {"total": len(wanted), "done": done, "failed": failed, "workers": workers, "engine": execution.engine}
        self._context.emit("began", campaign=work.name, **facts)

    def _compute(self, tasks: list[Key]) -> None:
        context, coordinator = self._context, self._coordinator
        if not tasks:
            return
        assignment = Assignment(
            context.work, context.paths, context.emit, len(tasks), coordinator.left, coordinator.on_outcome
        )
        try:
            coordinator.run(tasks, engine_class(context.work.execution.engine).open(assignment))
        except EngineLostError as error:
            message = self._report.engine_lost = str(error)
            context.emit("engine-lost", message=message)
            self._disk.retry(lambda: context.audit.record("engine-lost", message=message))
            coordinator.look_again()
