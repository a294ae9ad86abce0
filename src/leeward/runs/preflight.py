"""Find finished tasks and all errors before a run, without writing anything."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from leeward.engines.engine import engine_class
from leeward.engines.work import Work
from leeward.errors import HeldError, LeewardError, StorageError
from leeward.runs import resume
from leeward.runs.context import Options
from leeward.runs.run import nothing_to_run
from leeward.store import Key, RunFiles, RunPaths, check_space, read_owner


@dataclass
class Preflight:
    """The outcome of the checks. done: tasks with a verified result in the run directory or the output."""

    done: set[Key] = field(default_factory=set)
    errors: list[LeewardError] = field(default_factory=list)


def preflight(work: Work, output: Path, options: Options, tasks: int, processes: int) -> Preflight:
    """Make the checks of `run` with the same arguments. tasks: number of selected tasks."""
    paths, execution = RunPaths(output), work.execution
    found = Preflight()
    checks: list[Callable[[], object]] = [
        lambda: _demand_tasks(work, options, tasks),
        lambda: resume.refuse_bad_sources(options.adopt),
        lambda: engine_class(execution.engine).demand(execution, output.absolute()),
        work.check,
        lambda: _demand_folder(paths),
    ]
    has_folder = paths.output.absolute().parent.is_dir()
    if has_folder and not options.new:
        checks += [
            lambda: resume.refuse_odd_output(paths),
            paths.check_own_places,
            lambda: _demand_free(paths, options),
            lambda: _read_stored(found, work, paths, options, processes),
        ]
    if has_folder and tasks:
        needs = {"result_bytes": work.result_bytes(None), "loose": execution.loose_results}
        checks.append(lambda: check_space(paths, max(tasks - len(found.done), 0), len(found.done), **needs))
    for check in checks:
        try:
            check()
        except LeewardError as error:
            found.errors.append(error)
    return found


def _demand_tasks(work: Work, options: Options, tasks: int) -> None:
    if options.only is None:
        work.select(None)  # raises if there are too many
    if not tasks:
        raise nothing_to_run(work, options)


def _demand_folder(paths: RunPaths) -> None:
    resume.refuse_missing_folder(paths)
    place = paths.root if paths.root.is_dir() else paths.output.absolute().parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise StorageError(f"{place}: cannot be written; choose another output with -o")


def _demand_free(paths: RunPaths, options: Options) -> None:
    owner, _ = read_owner(paths.lock)
    if owner is not None and not owner.is_gone and not options.take_over:
        raise HeldError(f"{paths.root}: held by {owner}; wait until it ends, stop it, or choose another output with -o")


def _read_stored(found: Preflight, work: Work, paths: RunPaths, options: Options, processes: int) -> None:
    stored = resume.Stored()
    if paths.root.is_dir():
        stored = resume.read_stored(RunFiles(paths), processes, lambda: None)
        found.done.update(key for key in stored.results if key in work)
        resume.refuse_changed(work, paths, stored)
    if not resume.is_source(paths.output, options.adopt):
        resume.restore(work, paths, stored, store=lambda result: None, notice=lambda: None)
        found.done.update(key for key in stored.results if key in work)
