"""`leeward clean`: tidy a run directory."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Exit, Option

from leeward.cli.options import DRY_RUN, QUIET, TAKE_OVER, Options
from leeward.cli.output import EXIT_INCOMPLETE, first_of
from leeward.cli.progress import progress
from leeward.errors import InputError
from leeward.wording import command, count, run_command

if TYPE_CHECKING:
    from leeward.events import OnProgress
    from leeward.store import CleanReport, RunPaths


class CleanOptions(Options):
    """Move invalid files to quarantine, or remove merged results.

    Bad files are never deleted: they go to `quarantine`, with the reason beside each, and the next run recomputes their
    tasks. Valid results in a bad pack are written to files of their own first. Leftover temporary files are removed.

    With --merged: remove the shards and packs all of whose results are in the verified `layouts.h5` on the disk. The
    audit log records each step. The command takes the lock of the run directory, as a run does, except with --dry-run.

    Exit codes: 0 nothing bad was found, or everything was removed; 3 bad files were found, or some files were kept; 1
    other errors, for example because the run is active; 2 usage error; 4 the storage is unavailable.
    """

    run: Path = Argument(..., help="Run directory, for example layouts.run.")
    merged: bool = Option(False, "--merged", help="Remove the files whose results are in the verified layouts.h5.")
    dry_run: bool = DRY_RUN
    take_over: bool = TAKE_OVER
    quiet: bool = QUIET


def clean(options: CleanOptions) -> None:
    """Clean a run directory and print what was done."""
    from leeward.store import demand_possible, is_run
    from leeward.watch import paths_of

    demand_possible(options.run)
    paths = paths_of(options.run)
    if paths is None or not is_run(paths.root):
        raise InputError(
            f"{options.run}: is not a run directory; expected the folder that `leeward run` makes beside its output, "
            "like layouts.run beside layouts.h5"
        )
    with progress(options.quiet) as on_progress:
        report = _cleaned(paths, options, on_progress)
    print("\n".join(_lines(paths, report, options.merged)))
    raise Exit(EXIT_INCOMPLETE if report.bad or report.kept else 0)


def _cleaned(paths: "RunPaths", options: CleanOptions, on_progress: "OnProgress") -> "CleanReport":
    """Clean while holding the lock; a dry run needs none."""
    from leeward.processes import usable_cores
    from leeward.store import Audit, Lock, clean as clean_run

    paths.demand_own_places()
    merged, cores = options.merged, usable_cores()
    if options.dry_run:
        return clean_run(paths, merged=merged, dry_run=True, on_progress=on_progress, processes=cores)
    lock = Lock.take(paths.lock, take_over=options.take_over, emit=_print_message)
    try:
        record = Audit(paths.audit, lock.check).record
        return clean_run(paths, merged=merged, emit=record, on_progress=on_progress, processes=cores)
    finally:
        lock.release()


def _print_message(kind: str, /, *, message: str) -> None:
    print(message, file=sys.stderr)


def _lines(paths: "RunPaths", report: "CleanReport", merged: bool) -> Iterator[str]:
    would = "would be " if report.dry_run else ""
    if merged:
        packs = sum(path.parent == paths.packs for path in report.removed)
        gone = count(len(report.removed) - packs, "shard") + (f" and {count(packs, 'pack')}" if packs else "")
        yield f"{paths.root}: {gone} {would}removed, {len(report.kept)} kept"
        yield from first_of(f"  kept {removal.path}: {removal.reason}" for removal in report.kept)
        if report.removed:
            yield f"All their results are in {paths.output}, verified. `leeward run` reads them from there."
        return
    yield f"{paths.root}: {count(len(report.bad), 'bad file')} {would}moved to {paths.quarantine}"
    yield from (f"  {bad.path}: {bad.verdict}, {bad.reason}" for bad in report.bad)
    if report.unpacked:
        yield f"  {count(report.unpacked, 'result')} of bad packs kept, each in its own file"
    if report.temporary:
        yield f"  {count(len(report.temporary), 'leftover temporary file')} {would}removed"
    if report.bad:
        yield f"To recompute their tasks: {command(*run_command(paths.output))}"
