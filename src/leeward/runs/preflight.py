"""Find out, before a run, how much is done already and every error that the run would raise.

Nothing is written.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from leeward.campaign import Campaign
from leeward.campaign.execution import Execution
from leeward.errors import HeldError, InputError, LeewardError, StorageError
from leeward.runs import resume
from leeward.runs.adopt import refuse_bad_sources
from leeward.runs.demands import demand_cluster
from leeward.runs.run import Options
from leeward.store import Key, RunFiles, RunPaths, check_space, read_owner


@dataclass
class Preflight:
    """done: tasks with a verified result in the run directory or the output. errors: in the order a run meets them."""

    done: set[Key] = field(default_factory=set)
    errors: list[LeewardError] = field(default_factory=list)

    def try_all(self, checks: Iterable[Callable[[], None]]) -> None:
        """Call each check; keep the errors."""
        for check in checks:
            try:
                check()
            except LeewardError as error:
                self.errors.append(error)


def preflight(
    campaign: Campaign, execution: Execution, output: Path, options: Options, tasks: int, processes: int = 1
) -> Preflight:
    """Check what `run` checks, given the same arguments.

    execution: with the user's defaults. tasks: how many there are.
    """
    paths = RunPaths(output)
    found = Preflight()
    found.try_all(
        [
            lambda: _demand_tasks(campaign, options, tasks),
            lambda: refuse_bad_sources(options.adopt),
            lambda: _demand_engine(execution, output),
            campaign.check,
            lambda: _demand_folder(paths),
        ]
    )
    if paths.output.absolute().parent.is_dir() and not options.new:
        found.try_all(
            [
                lambda: resume.refuse_odd_output(paths),
                paths.demand_own_places,
                lambda: _demand_free(paths, options),
                lambda: _look_at_stored(found, campaign, paths, options, processes),
            ]
        )
    if tasks and paths.output.absolute().parent.is_dir():
        turbines = max(campaign.n_turbines(farm, kind) for farm in campaign.farms for kind in campaign.types)
        left = max(tasks - len(found.done), 0)
        found.try_all([lambda: check_space(paths, left, len(found.done), turbines, execution.loose_results)])
    return found


def _demand_tasks(campaign: Campaign, options: Options, tasks: int) -> None:
    if options.only is None:
        campaign.tasks()  # raises where there are too many
    if not tasks:
        raise InputError(
            f"none of the {campaign.n_tasks} tasks of {campaign.name} was asked for by {options.only!r:.80}"
        )


def _demand_engine(execution: Execution, output: Path) -> None:
    if execution.engine in ("dask", "slurm"):
        demand_cluster(execution, output.absolute())


def _demand_folder(paths: RunPaths) -> None:
    folder = paths.output.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; make it first, or name another output")
    place = paths.root if paths.root.is_dir() else folder
    if not os.access(place, os.W_OK | os.X_OK):
        raise StorageError(f"{place}: cannot be written; choose another output with -o")


def _demand_free(paths: RunPaths, options: Options) -> None:
    owner, _ = read_owner(paths.lock)
    if owner is not None and not owner.is_gone and not options.take_over:
        raise HeldError(f"{paths.root}: held by {owner}; wait until it ends, stop it, or choose another output with -o")


def _look_at_stored(found: Preflight, campaign: Campaign, paths: RunPaths, options: Options, processes: int) -> None:
    stored = resume.Stored()
    if paths.root.is_dir():
        stored = resume.read_stored(RunFiles(paths), processes)
        found.done.update(key for key in stored.results if key in campaign)
        resume.refuse_changed(campaign, paths, stored)
    if paths.output.resolve() not in {source.resolve() for source in options.adopt}:
        resume.take_back(campaign, paths, stored, lambda action: None, lambda: None)
        found.done.update(key for key in stored.results if key in campaign)
