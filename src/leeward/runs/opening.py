"""The begin of a run: what the run directory holds, what earlier runs tried, and what other files offer."""

from collections.abc import Callable

from leeward import __version__
from leeward.compiling import compile_events
from leeward.runs import resume
from leeward.runs.context import RunContext
from leeward.runs.disk import RunDisk
from leeward.runs.result_files import ResultFiles
from leeward.store import Key, RunFiles, forget


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
    if paths.output.resolve() not in {source.resolve() for source in context.options.adopt}:  # it is looked at there
        restored = resume.take_back(work, paths, stored, files.store, notice)
    disk.retry(lambda: resume.freeze(work, paths, context.audit.record))
    lines = b"".join(stored.lines.unpacked())
    disk.retry(lambda: resume.write_index(paths, lines))
    if stored.results or stored.bad:
        context.emit("checked", valid=len(stored.results), bad=len(stored.bad), restored=restored)


def look_at_records(context: RunContext, disk: RunDisk) -> set[Key]:
    """Note what failed in earlier runs; return the tasks that were in hand when one of them died.

    A failure stands until somebody wants the task tried again, or the settings change.
    """
    work, report = context.work, context.report
    records = resume.read_records(context.paths, context.audit.record)
    wanted = set(report.wanted) if context.options.retry_failed else set()
    void = {
        key
        for key, record in records.items()
        if key in report.results or key in wanted or (key in work and record.fingerprint != work.fingerprint(key))
    }

    def forget_void() -> None:
        for key in void:
            forget(context.paths, key)

    disk.retry(forget_void)
    kept = {key: record for key, record in records.items() if key not in void}
    retries = work.execution.retries
    report.failures |= {key: record for key, record in kept.items() if record.is_hopeless(retries)}
    return {key for key, record in kept.items() if record.attempts}


def adopt(context: RunContext, disk: RunDisk, files: ResultFiles, notice: Callable[[], None]) -> None:
    """Store results of other origin, which count as done."""
    options, report = context.options, context.report
    if not options.adopt:
        return
    sources = [str(source) for source in options.adopt]
    context.emit("adopting", sources=sources)
    adopter = context.work.adopter(options.keep_infeasible)
    with compile_events(context.emit):
        adoption = adopter.adopt(context.paths, options.adopt, report.results.keys(), files.store, notice)
    report.results.update(adoption.results)
    lines = b"".join(adoption.lines.unpacked())
    disk.retry(lambda: files.append_index(lines))
    for key in adoption.results:
        report.failures.pop(key, None)
    facts = adoption.facts()
    disk.retry(lambda: context.audit.record("adopted", sources=sources, **facts))
    context.emit("adopted", **facts)
    report.adoption = adoption
