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
from leeward.engines.engine import engine_class
from leeward.engines.work import Work
from leeward.errors import InputError, LeewardError
from leeward.events import Emit, OnEvent
from leeward.files import refresh, rename, storage_errors
from leeward.runs import filesystem, resume
from leeward.runs.context import Options, RunContext, RunReport
from leeward.runs.disk import RunDisk
from leeward.runs.stages import Stages
from leeward.runs.stop import StopNowError, StopRequests
from leeward.store import Audit, Key, Lock, RunPaths, output_index_path, prepare_folders, utc_now


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
    resume.refuse_missing_folder(paths)
    resume.refuse_odd_output(paths)
    for note in work.check():
        emit("note", message=note)
    if options.new:
        _rename_old_run(paths, options.take_over, emit)
    prepare_folders(paths)
    lock = Lock.take(paths.lock, take_over=options.take_over, emit=emit)
    try:
        refresh(paths.output.parent)  # another machine may just have written the output
        if text := filesystem.remark(paths.root):
            emit("file-system", message=text)
        with StopRequests() as stop:
            disk = RunDisk(emit, stop, options.storage_wait_s)
            try:
                Stages(RunContext(report, options, emit, lock, Audit(paths.audit, lock.check), stop, disk)).run()
            except StopNowError:
                emit("stopped", signal=stop.signal)
            report.signal = stop.signal
    finally:
        lock.release()
    report.seconds = time.monotonic() - began
    return report


def nothing_to_run(work: Work, options: Options) -> InputError:
    return InputError(f"{options.only!r:.80} selects none of the {work.n_tasks} tasks of {work.name}")


def _rename_old_run(old: RunPaths, take_over: bool, emit: Emit) -> None:
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
