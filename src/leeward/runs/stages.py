"""The stages of a run: verify existing results, adopt others, compute missing ones, merge all."""

import functools

from leeward import __version__
from leeward.compiling import compile_events
from leeward.engines.engine import Assignment, EngineLostError, engine_class, processes_for
from leeward.runs import resume
from leeward.runs.context import RunContext
from leeward.runs.coordinator import Coordinator
from leeward.runs.result_files import ResultFiles
from leeward.store import Key, OutputHoldsMoreError, RunFiles, check_space, merge_run, probe, remove_record

ROUNDS = 3  # most rounds of computing and merging; a result that does not verify needs another round


class Stages:
    """The stages of one run, in order. The caller holds the lock of the run directory."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._report = context.report
        self._paths = context.paths
        self._disk = context.disk
        self._files = ResultFiles(context)
        self._coordinator = Coordinator(context, self._files)

    def run(self) -> None:
        """Run all stages; return early after a request to stop or when the engine is lost."""
        context, report, stop = self._context, self._report, self._context.stop
        probe(self._paths)
        self._verify_existing()
        suspects = self._read_records()
        if context.options.adopt:
            self._adopt()
        tasks = self._tasks(suspects)
        self._announce(tasks)
        for turn in range(ROUNDS):
            if tasks:
                self._compute(tasks)
            lost = self._merge() if report.results else 0
            if lost == 0 or stop.is_requested or report.engine_lost:
                break
            tasks = self._tasks(suspects)
            context.emit("again", tasks=len(tasks), lost=lost, turn=turn + 1)
        facts = {"done": report.done, "failed": len(report.failed), "missing": len(report.missing)}
        merged = report.merged.count if report.merged else None
        context.record("run-ended", **facts, merged=merged, signal=stop.signal)

    def _verify_existing(self) -> None:
        """Verify the results in the run directory and the output; raise InputError if they do not fit the work."""
        context, report, work, paths = self._context, self._report, self._context.work, self._paths
        resume.remove_leftovers(paths)
        found = RunFiles(paths)
        if len(found):
            context.emit("checking", shards=found.likely_results or len(found))
        self._disk.retry(lambda: resume.sync_names(paths))
        stored = self._read_stored(found)
        report.results = stored.results
        resume.refuse_changed(work, paths, stored)
        report.is_counted = True
        context.record("run-began", tasks=len(report.wanted), stored=len(stored.results), version=__version__)
        if self._files.repair(stored):
            resume.refuse_changed(work, paths, stored)
        restored = 0
        if not resume.is_source(paths.output, context.options.adopt):  # adopting reads it
            restored = self._restore(stored)
        self._disk.retry(lambda: resume.freeze(work, paths, context.audit.record))
        lines = b"".join(stored.lines.unpacked())
        self._disk.retry(lambda: self._files.replace_index(lines))
        if stored.results or stored.bad:
            context.emit("checked", valid=len(stored.results), bad=len(stored.bad), restored=restored)

    def _read_stored(self, found: RunFiles) -> resume.Stored:
        context = self._context
        processes = processes_for(context.work.execution, len(found))
        return self._disk.retry(lambda: resume.read_stored(found, processes, context.announce_stop))

    def _restore(self, stored: resume.Stored) -> int:
        context = self._context
        return resume.restore(context.work, self._paths, stored, self._files.store, context.announce_stop)

    def _read_records(self) -> set[Key]:
        """Add the failures of earlier runs to the report; return the tasks that were running when a coordinator died.

        A failure counts until the user retries it or the settings change.
        """
        context, work, report = self._context, self._context.work, self._report
        records = resume.read_records(self._paths, context.audit.record)
        retried = set(report.wanted) if context.options.retry_failed else set()
        for key, record in list(records.items()):
            is_changed = key in work and record.fingerprint != work.fingerprint(key)
            if key in report.results or key in retried or is_changed:
                self._disk.retry(functools.partial(remove_record, self._paths, key))
                del records[key]
        retries = work.execution.retries
        report.failures |= {key: record for key, record in records.items() if record.has_failed(retries)}
        return {key for key, record in records.items() if record.attempts}

    def _adopt(self) -> None:
        """Adopt results from elsewhere, which count as done."""
        context, options, report = self._context, self._context.options, self._report
        sources = [str(source) for source in options.adopt]
        context.emit("adopting", sources=sources)
        with compile_events(context.emit):
            report.adoption = context.work.adopt(
                options.adopt,
                report.results.keys(),
                options.keep_infeasible,
                self._files.store,
                context.announce_stop,
            )
        report.results.update(report.adoption.results)
        for key in report.adoption.results:
            report.failures.pop(key, None)
        facts = report.adoption.facts()
        context.record("adopted", sources=sources, **facts)
        context.emit("adopted", **facts)

    def _tasks(self, suspects: set[Key]) -> list[Key]:
        """Return the tasks to compute; suspects, which were running when a coordinator died, come last."""
        report = self._report
        left = [key for key in report.wanted if key not in report.results and key not in report.failures]
        return sorted(left, key=lambda key: key in suspects)

    def _announce(self, tasks: list[Key]) -> None:
        """Check the disk space, and emit "began"."""
        work, report = self._context.work, self._report
        execution = work.execution
        needs = {"result_bytes": work.result_bytes(tasks), "loose": execution.loose_results}
        check_space(self._paths, len(tasks), len(report.results), **needs)
        failed = sum(key in report.failures for key in report.wanted)
        workers = engine_class(execution.engine).worker_count(execution, len(tasks))
        facts = {"total": len(report.wanted), "done": report.done, "failed": failed, "workers": workers}
        self._context.emit("began", campaign=work.name, **facts, engine=execution.engine)

    def _compute(self, tasks: list[Key]) -> None:
        context, coordinator = self._context, self._coordinator
        assignment = Assignment(
            context.work, self._paths, context.emit, len(tasks), coordinator.left, coordinator.on_outcome
        )
        try:
            coordinator.run(tasks, engine_class(context.work.execution.engine).open(assignment))
        except EngineLostError as error:
            self._report.engine_lost = str(error)
            context.emit("engine-lost", message=str(error))
            context.record("engine-lost", message=str(error))
            coordinator.find_abandoned()

    def _merge(self) -> int:
        """Merge all results into the output; return how many must be recomputed.

        These results do not verify, so their files are now in quarantine, or their files are gone.
        """
        context, results = self._context, self._report.results
        context.emit("merging", results=len(results))
        before = len(results)
        attributes, processes = context.attributes(), processes_for(context.work.execution, 2)
        try:
            merged = self._disk.retry(
                lambda: merge_run(self._paths, attributes, emit=context.audit.record, processes=processes)
            )
        except OutputHoldsMoreError as error:
            return self._recover(error)
        rescued = {found.key for bad in merged.bad_files for found in self._files.move_to_quarantine(bad)} - merged.keys
        for key in [key for key in results if key not in merged.keys and key not in rescued]:
            del results[key]
        self._report.merged = merged
        context.emit("merged", results=merged.count, output=str(self._paths.output), bad=len(merged.bad_files))
        return before - len(results) + len(rescued)

    def _recover(self, error: OutputHoldsMoreError) -> int:
        """Restore lost results from the output; return how many results must be recomputed."""
        for bad in error.bad_files:
            self._files.move_to_quarantine(bad)
        results = self._report.results
        found = self._read_stored(RunFiles(self._paths))
        gone = [key for key in results if key not in found.results]
        for key in gone:
            del results[key]
        restored = self._restore(resume.Stored(results))
        if not (error.bad_files or gone or restored):
            raise error
        return max(1, len(error.bad_files) + len(gone))
