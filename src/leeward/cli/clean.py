"""`leeward clean`: tidy a run directory."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from typer import Argument, Exit, Option

from leeward import store, watch
from leeward.cli.options import DRY_RUN, QUIET, TAKE_OVER, Options
from leeward.cli.output import EXIT_INCOMPLETE, first_of
from leeward.cli.progress import progress
from leeward.errors import InputError
from leeward.events import Emit, ignore
from leeward.processes import usable_cores
from leeward.wording import command, count, run_command


class CleanOptions(Options):
    """Move bad files to quarantine, or remove merged results.

    Bad files are never deleted: they go to `quarantine`, with the reason beside each, and the next run recomputes their
    tasks. Valid results in a bad pack are written to separate files first. Leftover temporary files are removed.

    With --merged, instead remove each shard and pack whose results are all in the verified merged file on the disk.
    The audit log records each step. The command takes the lock of the run directory, except with --dry-run.

    Exit codes: 0 nothing bad was found, or everything was removed; 3 bad files were found, or some files were kept; 1
    other errors, for example because the run is active; 2 usage error; 4 the storage is unavailable.
    """

    run: Path = Argument(..., help="Run directory, for example layouts.run or study.run.")
    merged: bool = Option(False, "--merged", help="Remove files whose results are all in the verified merged file.")
    dry_run: bool = DRY_RUN
    take_over: bool = TAKE_OVER
    quiet: bool = QUIET


def clean(options: CleanOptions) -> None:
    """Clean a run directory and print what was done."""
    store.demand_possible(options.run)
    paths = watch.paths_of(options.run)
    if paths is None or not store.is_run(paths.root):
        raise InputError(
            f"{options.run}: is not a run directory; expected the folder that `leeward run` makes beside its output, "
            "like layouts.run beside layouts.h5"
        )
    paths.check_own_places()
    with progress(options.quiet) as on_progress, contextlib.ExitStack() as stack:
        emit: Emit = ignore
        if not options.dry_run:
            lock = store.Lock.take(paths.lock, take_over=options.take_over, emit=_print_message)
            stack.callback(lock.release)
            emit = store.Audit(paths.audit, lock.check).record
        report = store.clean(
            paths,
            merged=options.merged,
            dry_run=options.dry_run,
            emit=emit,
            on_progress=on_progress,
            processes=usable_cores(),
        )
    print("\n".join(_lines(paths, report, options.merged)))
    raise Exit(EXIT_INCOMPLETE if report.bad or report.kept else 0)


def _print_message(kind: str, /, *, message: str) -> None:
    print(message, file=sys.stderr)


def _lines(paths: "store.RunPaths", report: "store.CleanReport", merged: bool) -> Iterator[str]:
    would = "would be " if report.dry_run else ""
    run = run_command(paths.output, kind=watch.kind_of(paths.root))
    if merged:
        packs = sum(path.parent == paths.packs for path in report.removed)
        gone = count(len(report.removed) - packs, "shard") + (f" and {count(packs, 'pack')}" if packs else "")
        yield f"{paths.root}: {gone} {would}removed, {len(report.kept)} kept"
        yield from first_of(f"  kept {removal.path}: {removal.reason}" for removal in report.kept)
        if report.removed:
            yield f"{paths.output} holds all their results, verified; `leeward {run[0]}` reads them there."
        return
    yield f"{paths.root}: {count(len(report.bad), 'bad file')} {would}moved to {paths.quarantine}"
    yield from (f"  {bad.path}: {bad.verdict}, {bad.reason}" for bad in report.bad)
    if report.unpacked:
        yield f"  {count(report.unpacked, 'result')} of bad packs kept, each in a separate file"
    if report.temporary:
        yield f"  {count(len(report.temporary), 'leftover temporary file')} {would}removed"
    if report.bad:
        yield f"To recompute their tasks: {command(*run)}"
