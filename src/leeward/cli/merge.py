"""`leeward merge`: many sources into one verified file."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli.progress import progress
from leeward.cli.sources import CampaignFile, Quiet, told_campaigns
from leeward.cli.wording import EXIT_INCOMPLETE, MOST_LISTED
from leeward.errors import BadSourceError
from leeward.store import demand_possible
from leeward.wording import command, count, listed, run_command, size

if TYPE_CHECKING:
    from leeward.campaign import Campaign
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


def merge(
    sources: Annotated[
        list[Path], typer.Argument(help="Run directories, layouts.h5 files, shards, other scripts' files, folders.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The merged file. It is replaced in one step.")],
    on_bad: Annotated[
        OnBad, typer.Option(help="Bad files or results: abort, go on without them, or salvage what they hold.")
    ] = OnBad.ABORT,
    prefer: Annotated[
        Prefer | None, typer.Option(help="Of different results of one key take this one. Default: an error.")
    ] = None,
    campaign: CampaignFile = None,
    remove_sources: Annotated[
        bool, typer.Option("--remove-sources", help="Remove sources all of whose results are in the verified output.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would happen.")] = False,
    quiet: Quiet = False,
) -> None:
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
    from leeward.cores import usable_cores
    from leeward.store import KnownCampaign, MergeRefusedError, merge as merge_files
    from leeward.watch.comparison import Comparison

    options = [] if on_bad is OnBad.ABORT else ["--on-bad", on_bad.value]
    options += [] if prefer is None else ["--prefer", prefer.value]
    demand_possible(output)
    told, problems = told_campaigns(campaign, sources)
    known = told[0] if len(told) == 1 else None
    comparison = Comparison(sources, None if campaign is None else known, known)
    try:
        with progress(quiet) as tell:
            report = merge_files(
                sources,
                output,
                on_bad=on_bad.value,
                prefer=None if prefer is None else prefer.value,
                campaign=KnownCampaign(
                    recompute=known.recompute if known is not None and campaign is not None else None,
                    judge=None if known is None or campaign is None else _judge(known, on_bad),
                    compare=comparison,
                    facts=None if known is None else facts_of(known),
                    campaigns=len(told),
                    notes=lambda: [
                        *comparison.notes(),
                        *(note for note in problems if note not in comparison.problems),
                    ],
                ),
                remove_sources=remove_sources,
                dry_run=dry_run,
                on_progress=tell,
                processes=usable_cores(),
            )
    except BadSourceError as error:  # the message names every bad file, and the log
        print(f"leeward: nothing was written: {error}", file=sys.stderr)
        if isinstance(error, MergeRefusedError):
            print("\n".join(_ways_out(error.report, sources, campaign, options)), file=sys.stderr)
        raise typer.Exit(EXIT_INCOMPLETE) from error
    print("\n".join(_lines(report, dry_run)))
    print("\n".join(_next(report, campaign, dry_run)))
    if report.no_aep and campaign is None:
        again = command("merge", *sources, "-o", output, *options, "--campaign", "FILE")
        print(f"To have missing AEPs recomputed: {again}")
    raise typer.Exit(0 if report.is_all_well else EXIT_INCOMPLETE)


def _judge(campaign: "Campaign", on_bad: OnBad) -> "Judge":
    """Of results without a digest: whether their AEP is that of their layout; and all of it where damage is known."""
    return judge_of_salvaged(campaign) if on_bad is OnBad.SALVAGE else campaign.judge_aep


def judge_of_salvaged(campaign: "Campaign") -> "Judge":
    """Right number of turbines, inside, spaced, with the AEP that the layout has."""
    return lambda result: campaign.judge(result) if result.key in campaign else None


def facts_of(campaign: "Campaign") -> "Facts":
    """What the merged file says of its campaign."""
    from leeward.store import Facts

    return Facts(
        text=campaign.frozen_text(),
        name=campaign.name,
        crs=campaign.crs or "",
        grid_size=campaign.grid_size,
        random_pct=float(campaign.random_pct),
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
    remarks = (
        (len(report.duplicates), "found more than once, and the same"),
        (len(report.recomputed), "whose AEP was recomputed"),
        (report.no_aep, 'without an AEP (status "no-aep")'),
    )
    yield from (f"  {count(number, 'result')} {what}" for number, what in remarks if number)
    for conflict in [conflict for conflict in report.conflicts if conflict.kept is not None][:MOST_LISTED]:
        kept = conflict.rivals[conflict.kept or 0]
        yield f"  {conflict.key}: {conflict.why}; taken from {report.files[kept.source].path}"
    yield from (f"  {key}: AEP not recomputed, {why}" for key, why in list(report.not_recomputed.items())[:MOST_LISTED])
    yield from (f"  note: {note}" for note in report.notes)
    if report.moved is not None:
        yield f"  the file that was there is now {report.moved}"
    yield from _removed(report, dry_run)
    yield from (f"  log: {path}" for path in report.logs)


def _left_out(report: "MergeReport") -> Iterator[str]:
    bad = report.bad_files
    for file in bad[:MOST_LISTED]:
        reasons = [f"{one.name}: {one.verdict}, {one.reason}" for one in file.bad]
        if file.copy:
            lost = f"; lost: {listed(reasons, 3)}" if reasons else ""
            yield f"  recovered from {file.path} ({file.verdict}): {count(file.valid, 'result')}{lost}"
            continue
        yield f"  left out of {file.path}: {listed(reasons or [f'{file.verdict}, {file.reason}'], 3)}"
    if len(bad) > MOST_LISTED:
        yield f"  and {len(bad) - MOST_LISTED} more bad files, in the log"


def _removed(report: "MergeReport", dry_run: bool) -> Iterator[str]:
    if not report.removals:
        return
    kept = [removal for removal in report.removals if removal.reason]
    gone = count(len(report.removals) - len(kept), "source")
    yield f"  {gone} would be removed, {len(kept)} would stay" if dry_run else f"  {gone} removed, {len(kept)} kept"
    stays = "would stay" if dry_run else "kept"
    yield from (f"  {stays}: {removal.path}: {removal.reason}" for removal in kept[:MOST_LISTED])
    if len(kept) > MOST_LISTED:
        yield f"  and {len(kept) - MOST_LISTED} more"


def _ways_out(report: "MergeReport", sources: list[Path], campaign: str | None, options: list[str]) -> Iterator[str]:
    told = [] if campaign is None else ["--campaign", campaign]
    skip = ["--on-bad", "skip"] if report.bad_files and "--on-bad" not in options else []
    again = ["merge", *sources, "-o", report.output, *options, *skip]
    if report.unsettled:
        yield f"To take the newest of different results: {command(*again, '--prefer', 'newest', *told)}"
        yield f"To take the one with most energy: {command(*again, '--prefer', 'best', *told)}"
    elif skip:
        yield f"To merge what is valid: {command(*again, *told)}"
        rescue = command("salvage", *sources, "-o", report.output, *told)
        yield f"To recover what damaged files still hold, too: {rescue}"
    adopted = [word for source in sources for word in ("--adopt", source)]
    words = run_command(report.output, campaign or "CAMPAIGN")
    yield f"To take what is valid and compute the rest: {command(*words, *adopted)}"


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
