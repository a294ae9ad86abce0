"""The end of a run: all results go into the output."""

from collections.abc import Callable

from leeward.runs import resume
from leeward.runs.context import RunContext
from leeward.runs.disk import RunDisk
from leeward.runs.result_files import ResultFiles
from leeward.store import OutputHoldsMoreError, RunFiles, merge_run


def merge(context: RunContext, disk: RunDisk, files: ResultFiles, notice: Callable[[], None]) -> int:
    """Merge all results into the output; return how many had to be given up, and are to be computed again.

    Those do not verify, and their files are in quarantine now; or somebody has removed them.
    """
    report, processes = context.report, context.processes(2)
    results = report.results
    if not results:
        return 0
    context.emit("merging", results=len(results))
    before = len(results)
    try:
        merged = disk.retry(
            lambda: merge_run(context.paths, context.attributes(), record=context.audit.record, processes=processes)
        )
    except OutputHoldsMoreError as error:
        return _make_up_for(error, context, disk, files, notice)
    rescued = {found.key for bad in merged.bad_files for found in files.put_aside(bad)} - merged.keys
    for key in [key for key in results if key not in merged.keys and key not in rescued]:
        del results[key]
    report.merged = merged
    context.emit("merged", results=merged.count, output=str(context.paths.output), bad=len(merged.bad_files))
    return before - len(results) + len(rescued)


def _make_up_for(
    error: OutputHoldsMoreError, context: RunContext, disk: RunDisk, files: ResultFiles, notice: Callable[[], None]
) -> int:
    """Take back from the output what some files do not hold any more, or have it computed again; return how many."""
    for bad in error.bad_files:
        files.put_aside(bad)
    results = context.report.results
    found = disk.retry(lambda: resume.read_stored(RunFiles(context.paths), context.processes(2), notice))
    gone = [key for key in results if key not in found.results]
    for key in gone:
        del results[key]
    known = resume.Stored(results)
    restored = resume.take_back(context.work, context.paths, known, files.store, notice)
    lines = b"".join(known.lines.unpacked())
    disk.retry(lambda: files.append_index(lines))
    if not (error.bad_files or gone or restored):
        raise error
    return max(1, len(error.bad_files) + len(gone))
