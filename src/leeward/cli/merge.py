"""`leeward merge`: many sources into one verified file."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Exit, Option

from leeward.cli.options import CAMPAIGN_FILE, DRY_RUN, QUIET, Options
from leeward.cli.output import EXIT_INCOMPLETE, MOST_LISTED, counted, first_of
from leeward.cli.progress import progress
from leeward.cli.sources import adopt_words, campaign_words, told_campaigns
from leeward.errors import BadSourceError
from leeward.store import demand_possible
from leeward.wording import command, count, listed, run_command, size

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.cli.salvage import SalvageOptions
    from leeward.store import Facts, Judge, MergeReport


class OnBad(StrEnum):
    """What a bad source means."""

    ABORT = "abort"
    SKIP = "skip"
    SALVAGE = "salvage"


class Prefer(StrEnum):
    """Which of several different results of a key is taken."""

    NEWEST = "newest"
    BEST = "best"


PREFER = Option(None, help="Of different results of one key take this one. Default: an error.")


class MergeOptions(Options):
    """Merge results into one file, each verified before and after.

    All sources are checked first; every result is verified again after writing, and the output appears in one step. A
    log is written beside it, as text and as JSON lines.

    Verdicts are per result: one bad group does not sink the others of its file. By default anything bad ends the merge
    with no output; `--on-bad skip` goes on without it, and `--on-bad salvage` tries everything that `leeward salvage`
    does. The same result twice is one result; different results of one key are an error unless --prefer says which to
    take.

    A missing or impossible AEP is recomputed with --campaign; without it the layout is kept with the status `no-aep`,
    counted apart. Results of other scripts have no digest; with --campaign those whose stored AEP is not that of their
    layout (to 1e-9) are bad, because a flipped bit would look just so. If the script had another wake model, leave
    --campaign out.

    Each result is compared with its campaign: the one named with --campaign, else that of its run directory, else the
    one that its file tells. A result with another fingerprint, another number of turbines or a place outside the area
    of its farm is bad. Adopted results have no fingerprint; results of tasks that the campaign does not have are taken.
    Results of another method version of leeward are compared under that version, merged, and noted.

    The output tells the campaign of its sources. Campaigns that differ only in how they are run (`execution`) are one;
    if they differ in their seeds too, the output's campaign has the seeds of all. A campaign that cannot be read is
    noted, and stands in no result's way.

    A source is removed only if asked for, and only when each of its results was found again in the output on the disk.
    A file that holds anything else stays: attributes of the file or of a dataset, data beside the results, or, of
    another script's result that is there twice, attributes that differ. The run directories that sources lie in, or
    beside, are held meanwhile, as by a run, and each removal is in their audit logs too. With --dry-run it is said what
    would be removed and what would stay.

    Exit codes: 0 all went in, and nothing expected is missing; 3 something is bad, in conflict, missing or without its
    AEP; 1 other errors; 2 wrong use; 4 the output cannot be written.
    """

    sources: list[Path] = Argument(
        ..., help="Run directories, layouts.h5 files, shards, other scripts' files, folders."
    )
    output: Path = Option(..., "--output", "-o", help="The merged file. It is replaced in one step.")
    on_bad: OnBad = Option(
        OnBad.ABORT, help="Bad files or results: abort, go on without them, or salvage what they hold."
    )
    prefer: Prefer | None = PREFER
    campaign: str | None = CAMPAIGN_FILE
    remove_sources: bool = Option(
        False, "--remove-sources", help="Remove sources all of whose results are in the verified output."
    )
    dry_run: bool = DRY_RUN
    quiet: bool = QUIET


def merge(options: MergeOptions) -> None:
    """Merge results into one file, and print what was done."""
    from leeward.store import MergeRefusedError

    words = [] if options.on_bad is OnBad.ABORT else ["--on-bad", options.on_bad.value]
    words += [] if options.prefer is None else ["--prefer", options.prefer.value]
    try:
        report = merged(options, options.on_bad, quiet=options.quiet, remove_sources=options.remove_sources)
    except BadSourceError as error:  # the message names every bad file, and the log
        print(f"leeward: nothing was written: {error}", file=sys.stderr)
        if isinstance(error, MergeRefusedError):
            print("\n".join(_ways_out(error.report, options, words)), file=sys.stderr)
        raise Exit(EXIT_INCOMPLETE) from error
    print("\n".join(_lines(report, options.dry_run)))
    print("\n".join(_next(report, options.campaign, options.dry_run)))
    if report.no_aep and options.campaign is None:
        again = command("merge", *options.sources, "-o", options.output, *words, "--campaign", "FILE")
        print(f"To have missing AEPs recomputed: {again}")
    raise Exit(0 if report.is_all_well else EXIT_INCOMPLETE)


def merged(
    options: "MergeOptions | SalvageOptions", on_bad: OnBad, *, quiet: bool, remove_sources: bool = False
) -> "MergeReport":
    """Merge the sources. Each result is compared with its campaign, and judged by the one that --campaign names."""
    from leeward.processes import usable_cores
    from leeward.store import KnownCampaign, merge as merge_files
    from leeward.watch import Comparison

    demand_possible(options.output)
    told, problems = told_campaigns(options.campaign, options.sources)
    known = told[0] if len(told) == 1 else None
    named = None if options.campaign is None else known
    comparison = Comparison(options.sources, named, known)
    with progress(quiet) as on_progress:
        return merge_files(
            options.sources,
            options.output,
            on_bad=on_bad.value,
            prefer=None if options.prefer is None else options.prefer.value,
            campaign=KnownCampaign(
                recompute=None if named is None else named.recompute,
                judge=None if named is None else _judge(named, on_bad),
                compare=comparison,
                facts=None if known is None else _facts(known),
                campaigns=len(told),
                notes=lambda: [*comparison.notes(), *(text for text in problems if text not in comparison.problems)],
            ),
            remove_sources=remove_sources,
            dry_run=options.dry_run,
            on_progress=on_progress,
            processes=usable_cores(),
        )


def _judge(campaign: "Campaign", on_bad: OnBad) -> "Judge":
    """Of results without a digest: whether their AEP is that of their layout; and all of it where damage is known."""
    if on_bad is not OnBad.SALVAGE:
        return campaign.judge.aep
    # right number of turbines, inside, spaced, with the AEP that the layout has
    return lambda result: campaign.judge(result) if result.key in campaign else None


def _facts(campaign: "Campaign") -> "Facts":
    """What the merged file says of its campaign."""
    from leeward.store import Facts

    return Facts(
        text=campaign.frozen_text(),
        name=campaign.name,
        crs=campaign.crs or "",
        grid_size=campaign.spec.optimiser.grid_size,
        random_pct=float(campaign.spec.optimiser.random_pct),
        expected=set(campaign.tasks()),
    )


def _lines(report: "MergeReport", dry_run: bool) -> Iterator[str]:
    if report.problem:
        yield f"Would not be merged: {report.problem}"
    elif dry_run:
        yield f"{report.output}: would get {count(report.results, 'result')} from {count(len(report.files), 'file')}"
    else:
        yield (
            f"{report.output}: {count(report.results, 'result')} from {count(len(report.files), 'file')}, "
            f"{size(report.size)}, each verified after writing"
        )
    if not report.problem:
        yield from _left_out(report)
    yield from merge_remarks(report)
    for conflict in [conflict for conflict in report.conflicts if conflict.kept is not None][:MOST_LISTED]:
        kept = conflict.rivals[conflict.kept or 0]
        yield f"  {conflict.key}: {conflict.why}; taken from {report.files[kept.source].path}"
    yield from (f"  {key}: AEP not recomputed, {why}" for key, why in list(report.not_recomputed.items())[:MOST_LISTED])
    yield from noted(report)
    yield from _removed(report, dry_run)
    yield from (f"  log: {path}" for path in report.logs)


def merge_remarks(report: "MergeReport") -> Iterator[str]:
    """Yield how many results were found twice, got an AEP or have none."""
    yield from counted(
        (len(report.duplicates), "result", "found more than once, and the same"),
        (len(report.recomputed), "result", "whose AEP was recomputed"),
        (report.no_aep, "result", 'without an AEP (status "no-aep")'),
        indent="  ",
    )


def noted(report: "MergeReport") -> Iterator[str]:
    """Yield the notes, and where an older output is now."""
    yield from (f"  note: {text}" for text in report.notes)
    if report.moved is not None:
        yield f"  the file that was there is now {report.moved}"


def _left_out(report: "MergeReport") -> Iterator[str]:
    lines = []
    for file in report.bad_files:
        reasons = [f"{one.name}: {one.verdict}, {one.reason}" for one in file.bad]
        lost = f"; lost: {listed(reasons, 3)}" if reasons else ""
        if file.copy:
            lines.append(f"  recovered from {file.path} ({file.verdict}): {count(file.valid, 'result')}{lost}")
        else:
            lines.append(f"  left out of {file.path}: {listed(reasons or [f'{file.verdict}, {file.reason}'], 3)}")
    yield from first_of(lines, " bad files, in the log")


def _removed(report: "MergeReport", dry_run: bool) -> Iterator[str]:
    if not report.removals:
        return
    kept = [removal for removal in report.removals if removal.reason]
    gone = count(len(report.removals) - len(kept), "source")
    yield f"  {gone} would be removed, {len(kept)} would stay" if dry_run else f"  {gone} removed, {len(kept)} kept"
    stays = "would stay" if dry_run else "kept"
    yield from first_of(f"  {stays}: {removal.path}: {removal.reason}" for removal in kept)


def _ways_out(report: "MergeReport", options: MergeOptions, words: list[str]) -> Iterator[str]:
    """Yield the commands that would merge what can be had. words: options of this merge."""
    sources, told = options.sources, campaign_words(options.campaign)
    skip = ["--on-bad", "skip"] if report.bad_files and "--on-bad" not in words else []
    again = ["merge", *sources, "-o", report.output, *words, *skip]
    if report.unsettled:
        yield from ways_to_prefer(again, told)
    elif skip:
        yield f"To merge what is valid: {command(*again, *told)}"
        rescue = command("salvage", *sources, "-o", report.output, *told)
        yield f"To recover what damaged files still hold, too: {rescue}"
    run = run_command(report.output, options.campaign or "CAMPAIGN")
    yield f"To take what is valid and compute the rest: {command(*run, *adopt_words(sources))}"


def ways_to_prefer(again: list[object], told: list[str]) -> Iterator[str]:
    """Yield the commands that take one of different results. again: the words of this one; told: of its campaign."""
    yield f"To take the newest of different results: {command(*again, '--prefer', 'newest', *told)}"
    yield f"To take the one with most energy: {command(*again, '--prefer', 'best', *told)}"


def _next(report: "MergeReport", campaign: str | None, dry_run: bool) -> Iterator[str]:
    """What it means, and what to do about it."""
    if report.missing is None:
        yield f"What was expected is not known; `leeward missing {report.output} --campaign FILE` compares."
    elif report.missing:
        yield f"{count(len(report.missing), 'expected result')} missing: {listed(report.missing)}"
        if not dry_run:
            words = run_command(report.output, campaign or "CAMPAIGN")
            yield f"To compute what is missing: {command(*words, '--adopt', report.output)}"
    elif not report.problem:
        yield "Nothing that was expected is missing."
