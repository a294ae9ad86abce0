"""The stages of a run before and after computing: read what exists, adopt, merge."""

import functools
from collections.abc import Callable

from leeward import __version__
from leeward.compiling import compile_events
from leeward.runs import resume
from leeward.runs.context import RunContext
from leeward.runs.disk import RunDisk
from leeward.runs.result_files import ResultFiles
from leeward.store import Key, OutputHoldsMoreError, Result, RunFiles, forget_record, merge_run, store_result


def look_at_what_is_there(context: RunContext, disk: RunDisk, files: ResultFiles, notice: Callable[[], None]) -> None:
    """Verify the results in the run directory and the output; raise InputError if they do not fit the work."""
    work, paths, report = context.work, context.paths, context.report
    resume.tidy(paths)
    found = RunFiles(paths)
    if len(found):
        context.emit("checking", shards=found.likely_results or len(found))
    disk.retry(lambda: resume.sync_names(paths))
    stored = disk.retry(lambda: resume.read_stored(found, context.processes(len(found)), notice))
    report.results = stored.results
    resume.refuse_changed(work, paths, stored)
    report.is_counted = True
    facts = {"tasks": len(report.wanted), "stored": len(stored.results), "version": __version__}
    disk.retry(lambda: context.audit.record("run-began", **facts))
    if files.put_in_order(stored):
        resume.refuse_changed(work, paths, stored)
    restored = 0
    if paths.output.resolve() not in {source.resolve() for source in context.options.adopt}:  # adopting reads it
        restored = resume.take_back(work, paths, stored, files.store, notice)
    disk.retry(lambda: resume.freeze(work, paths, context.audit.record))
    lines = b"".join(stored.lines.unpacked())
    disk.retry(lambda: files.replace_index(lines))
    if stored.results or stored.bad:
        context.emit("checked", valid=len(stored.results), bad=len(stored.bad), restored=restored)


def look_at_records(context: RunContext, disk: RunDisk) -> set[Key]:
    """Note the failures of earlier runs; return the tasks that were running when a coordinator died.

    A failure stands until the user retries it or the settings change.
    """
    work, report = context.work, context.report
    records = resume.read_records(context.paths, context.audit.record)
    wanted = set(report.wanted) if context.options.retry_failed else set()
    void = {
        key
        for key, record in records.items()
        if key in report.results or key in wanted or (key in work and record.fingerprint != work.fingerprint(key))
    }
    for key in void:
        disk.retry(functools.partial(forget_record, context.paths, key))
    kept = {key: record for key, record in records.items() if key not in void}
    retries = work.execution.retries
    report.failures |= {key: record for key, record in kept.items() if record.is_hopeless(retries)}
    return {key for key, record in kept.items() if record.attempts}


def adopt(context: RunContext, disk: RunDisk, files: ResultFiles, notice: Callable[[], None]) -> None:
    """Adopt results from elsewhere, which count as done."""
    options, report = context.options, context.report
    if not options.adopt:
        return
    sources = [str(source) for source in options.adopt]
    context.emit("adopting", sources=sources)
    adopter = context.work.adopter(options.keep_infeasible)

    def store(result: Result) -> None:
        files.store(functools.partial(store_result, context.paths, result))

    with compile_events(context.emit):
        adoption = adopter.adopt(options.adopt, report.results.keys(), store, notice)
    report.results.update(adoption.results)
    lines = b"".join(adoption.lines.unpacked())
    disk.retry(lambda: files.append_index(lines))
    for key in adoption.results:
        report.failures.pop(key, None)
    facts = adoption.facts()
    disk.retry(lambda: context.audit.record("adopted", sources=sources, **facts))
    context.emit("adopted", **facts)
    report.adoption = adoption


def merge(context: RunContext, disk: RunDisk, files: ResultFiles, notice: Callable[[], None]) -> int:
    """Merge all results into the output; return how many must be recomputed.

    Those do not verify, and their files are now in quarantine; or their files are gone.
    """
    report, processes, record = context.report, context.processes(2), context.audit.record
    results = report.results
    if not results:
        return 0
    context.emit("merging", results=len(results))
    before = len(results)
    try:
        attributes = context.attributes()
        merged = disk.retry(lambda: merge_run(context.paths, attributes, emit=record, processes=processes))
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
    """Restore lost results from the output, or have them recomputed; return how many."""
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
