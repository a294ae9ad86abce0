"""`leeward merge`: merge many sources into one verified file."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Exit, Option

from leeward import store, watch
from leeward.cli.options import CAMPAIGN_FILE, DRY_RUN, QUIET, Options
from leeward.cli.output import EXIT_INCOMPLETE, MOST_LISTED, counted, first_of
from leeward.cli.progress import progress
from leeward.cli.sources import adopt_words, campaign_words, kind_of_sources, known_works
from leeward.errors import BadSourceError
from leeward.processes import usable_cores
from leeward.wording import command, count, listed, run_command, size

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.cli.salvage import SalvageOptions
    from leeward.study import Study


class OnBad(StrEnum):
    """The action for a bad source."""

    ABORT = "abort"
    SKIP = "skip"
    SALVAGE = "salvage"


class Prefer(StrEnum):
    """The rule that chooses between different results of one key."""

    NEWEST = "newest"
    BEST = "best"


PREFER = Option(
    None, help="If results for one key differ, take the newest, or the best (highest AEP). Default: stop with an error."
)


class MergeOptions(Options):
    """Merge results into one file and verify each before and after.

    All sources are checked first. Every result is verified again after writing, and the output is replaced in one step.
    A log is written beside it, as text and as JSON lines.

    Each result has its own verdict: one bad group does not affect the others in its file. By default anything bad stops
    the merge without output; `--on-bad skip` leaves it out, and `--on-bad salvage` recovers what `leeward salvage`
    would. Identical results count once; different results for the same key are an error unless --prefer chooses one.

    With --campaign, a missing or impossible AEP is recomputed; without it, the layout gets the status `no-aep`. Results
    of other scripts have no checksum; with --campaign, they are bad if their stored AEP is not that of their layout (to
    1e-9), because a flipped bit would look the same. If the script used another wake model, omit --campaign.

    Each result is compared with its campaign: the one given with --campaign, else that of its run directory, else the
    one stored in its file. A result is bad if its fingerprint or its number of turbines differs, or if a turbine is
    outside the area of its farm. Adopted results have no fingerprint; results of tasks that are not in the campaign are
    merged. Results of another method version of leeward are compared under that version, merged and noted.

    The output stores the campaign of its sources. Campaigns that differ only in `execution` count as one; if they also
    differ in their seeds, the output's campaign has all seeds. A campaign that cannot be read is noted and ignored.

    --remove-sources removes a source only after each of its results was read back from the output on the disk. A file
    that holds anything else is kept: attributes of the file or of a dataset, other data, or, for identical results of
    other scripts, attributes that differ. The command takes the locks of these run directories, and their audit logs
    record each removal. With --dry-run, it prints which sources would be removed and which would be kept.

    Exit codes: 0 everything was merged, and no expected result is missing; 3 something is bad, in conflict, missing or
    without AEP; 1 other errors; 2 usage error; 4 the output cannot be written.
    """

    sources: list[Path] = Argument(
        ..., help="Run directories, layouts.h5 or study.h5 files, shards, files of other scripts, folders."
    )
    output: Path = Option(..., "--output", "-o", help="Merged file to write. An old one is replaced in one step.")
    on_bad: OnBad = Option(
        OnBad.ABORT, help="Action for bad files or results: abort, skip (leave them out), salvage (recover them)."
    )
    prefer: Prefer | None = PREFER
    campaign: str | None = CAMPAIGN_FILE
    remove_sources: bool = Option(
        False, "--remove-sources", help="Remove each source whose results are all in the verified output."
    )
    dry_run: bool = DRY_RUN
    quiet: bool = QUIET


def merge(options: MergeOptions) -> None:
    """Merge results into one file and print what was done."""
    words = [] if options.on_bad is OnBad.ABORT else ["--on-bad", options.on_bad.value]
    words += [] if options.prefer is None else ["--prefer", options.prefer.value]
    try:
        report = merged(options, options.on_bad, quiet=options.quiet, remove_sources=options.remove_sources)
    except BadSourceError as error:  # the message names every bad file, and the log
        print(f"leeward: nothing was written: {error}", file=sys.stderr)
        if isinstance(error, store.MergeRefusedError):
            print("\n".join(_alternatives(error.report, options, words)), file=sys.stderr)
        raise Exit(EXIT_INCOMPLETE) from error
    print("\n".join(_lines(report, options.dry_run)))
    print("\n".join(missing_lines(report, options, report.output)))
    if report.no_aep and options.campaign is None:
        again = command("merge", *options.sources, "-o", options.output, *words, "--campaign", "FILE")
        print(f"To recompute missing AEPs: {again}")
    raise Exit(0 if report.is_all_well else EXIT_INCOMPLETE)


def merged(
    options: "MergeOptions | SalvageOptions", on_bad: OnBad, *, quiet: bool, remove_sources: bool = False
) -> "store.MergeReport":
    """Merge the sources. Compare each result with its campaign, and judge it by the one given with --campaign."""
    store.demand_possible(options.output)
    found, problems = known_works(options.campaign, options.sources)
    known = found[0] if len(found) == 1 else None
    named = None if options.campaign is None else known
    comparison = watch.Comparison(options.sources, named, known)
    with progress(quiet) as on_progress:
        return store.merge(
            options.sources,
            options.output,
            on_bad=on_bad.value,
            prefer=None if options.prefer is None else options.prefer.value,
            campaign=store.KnownCampaign(
                recompute=getattr(named, "recompute", None),  # a study has no results without an AEP
                judge=None if named is None else _judge(named, on_bad),
                compare=comparison,
                attributes={} if known is None else _attributes(known),
                expected=None if known is None else set(known.tasks()),
                campaigns=len(found),
                notes=lambda: [*comparison.notes(), *(text for text in problems if text not in comparison.problems)],
            ),
            remove_sources=remove_sources,
            dry_run=options.dry_run,
            on_progress=on_progress,
            processes=usable_cores(),
        )


def _judge(campaign: Any, on_bad: OnBad) -> "store.Judge":
    """Return the function that checks results without a checksum: only their AEP or, for salvage, everything."""
    if on_bad is not OnBad.SALVAGE and hasattr(campaign.judge, "aep"):
        check: store.Judge = campaign.judge.aep
        return check
    return lambda result: campaign.judge(result) if result.key in campaign else None


def _attributes(campaign: "Campaign | Study") -> "dict[str, store.Value]":
    from leeward.study import Study
    from leeward.study.work import StudyWork

    if isinstance(campaign, Study):
        return StudyWork(campaign).attributes()
    return {
        "campaign": campaign.frozen_text(),
        "campaign_name": campaign.name,
        "crs": campaign.crs or "",
        "grid_size": campaign.spec.optimiser.grid_size,
        "random_pct": float(campaign.spec.optimiser.random_pct),
    }


def _lines(report: "store.MergeReport", dry_run: bool) -> Iterator[str]:
    if report.problem:
        yield f"The merge would fail: {report.problem}"
    else:
        yield output_line(report, f"from {count(len(report.files), 'file')}", dry_run)
        yield from _left_out(report)
    yield from merge_counts(report)
    for conflict in [conflict for conflict in report.conflicts if conflict.kept is not None][:MOST_LISTED]:
        kept = conflict.alternatives[conflict.kept or 0]
        yield f"  {conflict.key}: {conflict.why}; taken from {report.files[kept.source].path}"
    yield from (f"  {key}: AEP not recomputed, {why}" for key, why in list(report.not_recomputed.items())[:MOST_LISTED])
    yield from merge_notes(report)
    yield from _removed(report, dry_run)
    yield from (f"  log: {path}" for path in report.logs)


def output_line(report: "store.MergeReport", sources: str, dry_run: bool) -> str:
    """Return the number of results in the output. sources: where they come from."""
    results = f"{count(report.results, 'result')} {sources}"
    if dry_run:
        return f"{report.output}: would get {results}"
    return f"{report.output}: {results}, {size(report.size)}, each verified after writing"


def merge_counts(report: "store.MergeReport") -> Iterator[str]:
    """Yield the numbers of results that were found more than once, got a new AEP or have no AEP."""
    yield from counted(
        (len(report.duplicates), "result", "found more than once, identical"),
        (len(report.recomputed), "result", "with a recomputed AEP"),
        (report.no_aep, "result", 'without an AEP (status "no-aep")'),
        indent="  ",
    )


def merge_notes(report: "store.MergeReport") -> Iterator[str]:
    """Yield the notes, and the new name of the previous output."""
    yield from (f"  note: {text}" for text in report.notes)
    if report.moved is not None:
        yield f"  the previous file is now {report.moved}"


def _left_out(report: "store.MergeReport") -> Iterator[str]:
    lines = []
    for file in report.bad_files:
        reasons = [f"{one.name}: {one.verdict}, {one.reason}" for one in file.bad]
        lost = f"; lost: {listed(reasons, 3)}" if reasons else ""
        if file.copy:
            lines.append(f"  recovered from {file.path} ({file.verdict}): {count(file.valid, 'result')}{lost}")
        else:
            lines.append(f"  left out of {file.path}: {listed(reasons or [f'{file.verdict}, {file.reason}'], 3)}")
    yield from first_of(lines, " bad files, in the log")


def _removed(report: "store.MergeReport", dry_run: bool) -> Iterator[str]:
    if not report.removals:
        return
    kept = [removal for removal in report.removals if removal.reason]
    gone = count(len(report.removals) - len(kept), "source")
    would_be = "would be " if dry_run else ""
    yield f"  {gone} {would_be}removed, {len(kept)} {would_be}kept"
    yield from first_of(f"  {would_be}kept: {removal.path}: {removal.reason}" for removal in kept)


def _alternatives(report: "store.MergeReport", options: MergeOptions, words: list[str]) -> Iterator[str]:
    """Yield commands that merge only the valid results. words: options of this merge."""
    sources, named = options.sources, campaign_words(options.campaign)
    skip = ["--on-bad", "skip"] if report.bad_files and "--on-bad" not in words else []
    again = ["merge", *sources, "-o", report.output, *words, *skip]
    if report.unresolved:
        yield from ways_to_prefer(again, named)
    elif skip:
        yield f"To merge what is valid: {command(*again, *named)}"
        rescue = command("salvage", *sources, "-o", report.output, *named)
        yield f"To also recover what damaged files still hold: {rescue}"
    if kind_of_sources(sources) == "layouts":  # a study adopts nothing
        run = run_command(report.output, options.campaign or "CAMPAIGN")
        yield f"To take what is valid and compute the rest: {command(*run, *adopt_words(sources))}"


def ways_to_prefer(again: list[object], named: list[str]) -> Iterator[str]:
    """Yield commands that choose between different results. again: this command; named: its --campaign option."""
    yield f"To take the newest of different results: {command(*again, '--prefer', 'newest', *named)}"
    yield f"To take the one with the highest AEP: {command(*again, '--prefer', 'best', *named)}"


def missing_lines(report: "store.MergeReport", options: "MergeOptions | SalvageOptions", output: Path) -> Iterator[str]:
    """Yield a line on missing results, and the command that computes them. output: the output of that command."""
    if report.missing is None:
        yield f"The expected results are not known; `leeward missing {report.output} --campaign FILE` lists them."
    elif report.missing:
        yield f"{count(len(report.missing), 'expected result')} missing: {listed(report.missing)}"
    elif not report.problem:
        yield "No expected result is missing."
    if report.missing != [] and not options.dry_run:
        kind = watch.kind_of(report.output)
        if kind == "evaluations":
            again = run_command(report.output, options.campaign or "STUDY", kind)
        else:
            again = [*run_command(output, options.campaign or "CAMPAIGN"), "--adopt", report.output]
        yield f"To compute what is missing: {command(*again)}"
