"""`leeward clean`: order in a run directory."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli.progress import progress
from leeward.cli.sources import Quiet
from leeward.cli.wording import EXIT_INCOMPLETE, MOST_LISTED
from leeward.errors import InputError
from leeward.wording import command, count, run_command

if TYPE_CHECKING:
    from leeward.events import OnProgress
    from leeward.store import CleanReport, RunPaths


def clean(
    run: Annotated[Path, typer.Argument(help="Run directory, for example layouts.run.")],
    merged: Annotated[
        bool, typer.Option("--merged", help="Remove the files whose results are in the verified layouts.h5.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would happen.")] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the run directory from an owner elsewhere that stands still.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Move invalid files to quarantine, or remove merged results.

    Bad files are never deleted: they are in `quarantine`, with the reason beside each, and the next run computes their
    tasks again; what a bad pack still holds becomes shards first. Left-over temporary files are removed.

    With --merged instead: remove the shards and packs whose every result was found again in the verified `layouts.h5`
    on the disk. Each step is in the audit log. It takes the lock of the run directory, as a run does; --dry-run takes
    none.

    Exit codes: 0 nothing bad was found, or all could be removed; 3 bad files were found, or some had to stay; 1 other
    errors, for example a run that is going on; 2 wrong use; 4 the storage is unavailable.
    """
    from leeward.store import demand_possible, is_run
    from leeward.watch.campaigns import paths_of

    demand_possible(run)
    paths = paths_of(run)
    if paths is None or not is_run(paths.root):
        raise InputError(
            f"{run}: no run directory; expected the folder that `leeward run` makes beside its output, "
            "like layouts.run beside layouts.h5"
        )
    with progress(quiet) as tell:
        report = _cleaned(paths, merged, dry_run, take_over, tell)
    print("\n".join(_lines(paths, report, merged)))
    raise typer.Exit(EXIT_INCOMPLETE if report.bad or report.kept else 0)


def _cleaned(paths: "RunPaths", merged: bool, dry_run: bool, take_over: bool, tell: "OnProgress") -> "CleanReport":
    """Under the lock, as a run is; only looking takes none."""
    from leeward.cores import usable_cores
    from leeward.store import Audit, Lock, clean as clean_run

    paths.demand_own_places()
    if dry_run:
        return clean_run(paths, merged=merged, dry_run=True, on_progress=tell, processes=usable_cores())
    lock = Lock.take(paths.lock, take_over=take_over, tell=lambda text: print(text, file=sys.stderr))
    try:
        record = Audit(paths.audit, lock.check).record
        return clean_run(paths, merged=merged, emit=record, on_progress=tell, processes=usable_cores())
    finally:
        lock.release()


def _lines(paths: "RunPaths", report: "CleanReport", merged: bool) -> Iterator[str]:
    would = "would be " if report.dry_run else ""
    if merged:
        packs = sum(path.parent == paths.packs for path in report.removed)
        gone = count(len(report.removed) - packs, "shard") + (f" and {count(packs, 'pack')}" if packs else "")
        yield f"{paths.root}: {gone} {would}removed, {len(report.kept)} kept"
        yield from (f"  kept {removal.path}: {removal.reason}" for removal in report.kept[:MOST_LISTED])
        if len(report.kept) > MOST_LISTED:
            yield f"  and {len(report.kept) - MOST_LISTED} more"
        if report.removed:
            yield f"All their results are in {paths.output}, verified. `leeward run` takes them from there again."
        return
    yield f"{paths.root}: {count(len(report.bad), 'bad file')} {would}moved to {paths.quarantine}"
    yield from (f"  {bad.path}: {bad.verdict}, {bad.reason}" for bad in report.bad)
    if report.unpacked:
        yield f"  {count(report.unpacked, 'result')} of bad packs kept, in files of their own"
    if report.temporary:
        yield f"  {count(len(report.temporary), 'left-over temporary file')} {would}removed"
    if report.bad:
        yield f"To compute their tasks again: {command(*run_command(paths.output))}"
