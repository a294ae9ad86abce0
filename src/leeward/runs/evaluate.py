"""Evaluate a study: verify existing results, compute missing ones, merge all."""

import os
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from leeward.errors import InputError, LeewardError
from leeward.events import OnEvent
from leeward.runs.context import Options, RunReport
from leeward.runs.run import run_work
from leeward.store import EvaluationKey, RunPaths
from leeward.study import Study, load_study
from leeward.study.selection import chosen_evaluations
from leeward.study.work import StudyWork


def evaluate(
    study: Study | str | PathLike[str] | Mapping[str, Any],
    output: str | PathLike[str] = "study.h5",
    *,
    only: str | Collection[EvaluationKey | str] | None = None,
    retry_failed: bool = False,
    new: bool = False,
    take_over: bool = False,
    grace_s: float = 60.0,
    storage_wait_s: float = 1800.0,
    on_event: OnEvent | None = None,
) -> RunReport:
    """Compute all missing evaluations of a study, and merge all into `output`.

    Each result is stored in the run directory beside the output (`study.run`) as soon as it is computed. The same call
    resumes a run, however it ended.

    study: a Study, the path of a study file, or a dict of the same shape. only: compute only these tasks, as
    "target=0 scenario=0:100" or as keys. retry_failed: also retry tasks that failed before. new: start over, and keep
    an old run under another name. take_over: take the run directory from a coordinator on another machine whose
    heartbeat has stopped. grace_s: time for running tasks after a request to stop, s. storage_wait_s: time to wait
    while the disk rejects writes, s; then StorageError. on_event: called with every event, a dict whose key "event" is
    its kind.
    """
    if os.name != "posix":
        raise LeewardError("leeward evaluate works on Linux and macOS; on this system use leeward to check and read")
    if not isinstance(study, Study):
        study = load_study(study)
    if not (grace_s >= 0 and storage_wait_s >= 0):
        raise InputError(f"grace_s is {grace_s:g} and storage_wait_s {storage_wait_s:g}; expected 0 or more")
    chosen: Any = only if only is None or isinstance(only, str) else chosen_evaluations(study, only)
    options = Options(chosen, retry_failed, (), False, new, take_over, grace_s, storage_wait_s)
    return run_work(StudyWork(study), RunPaths(Path(output)), options, on_event or (lambda event: None))  # type: ignore[arg-type]
