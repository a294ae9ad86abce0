"""`leeward salvage`: what damaged files still hold, in a new file."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli.merge import Prefer, facts_of, judge_of_salvaged
from leeward.cli.progress import progress
from leeward.cli.sources import CampaignFile, Quiet, told_campaigns
from leeward.cli.wording import EXIT_INCOMPLETE, MOST_LISTED, table
from leeward.store import Verdict, demand_possible
from leeward.wording import command, count, json_text, listed, run_command, size

if TYPE_CHECKING:
    from leeward.store import MergeReport, Salvaged, SourceReport


def salvage(
    sources: Annotated[list[Path], typer.Argument(help="Damaged files, and folders with such files in them.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A new file for what is recovered.")],
    prefer: Annotated[
        Prefer | None, typer.Option(help="Of different results of one key take this one. Default: an error.")
    ] = None,
    campaign: CampaignFile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; say what could be recovered.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Recover every result that damaged HDF5 files still hold.

    Truncated files, files of killed writers, files whose beginning is gone, flipped bits. The files themselves are only
    read, by another process with limits on time and memory; where a changed file is needed, a copy is changed.

    These ways are tried, and what any of them finds is taken: reading group by group; clearing the mark "open for
    writing" that a killed writer leaves in the newer format; extending a truncated file to the length that it states,
    and keeping only what does not depend on how it was filled; scanning the bytes for object headers, symbol tables and
    heaps, and rebuilding the datasets that they lead to.

    Each result found is verified (it has a digest, which fits) or plausible (it has none: layout and attributes are
    complete, finite, and agree with each other and with the other results; with --campaign the layout is inside its
    area and spaced, and the AEP is that of the layout). In the output plausible ones have the attributes
    `evidence="plausible"` and `recovered_by`. Results that were there once and cannot be had are named, with the
    reason; what left no trace is only known with a campaign.

    Exit codes: 0 nothing is lost, or nothing that the campaign expects; 3 something is; 1 other errors; 2 wrong use;
    4 the output cannot be written.
    """
    from leeward.cores import usable_cores
    from leeward.store import KnownCampaign, MergeRefusedError, merge
    from leeward.watch.comparison import Comparison

    demand_possible(output)
    told, problems = told_campaigns(campaign, sources)
    known = told[0] if len(told) == 1 else None
    comparison = Comparison(sources, None if campaign is None else known, known)
    try:
        with progress(quiet or as_json) as tell:
            report = merge(
                sources,
                output,
                on_bad="salvage",
                prefer=None if prefer is None else prefer.value,
                campaign=KnownCampaign(
                    recompute=known.recompute if known is not None and campaign is not None else None,
                    judge=judge_of_salvaged(known) if known is not None and campaign is not None else None,
                    compare=comparison,
                    facts=None if known is None else facts_of(known),
                    notes=lambda: [
                        *comparison.notes(),
                        *(note for note in problems if note not in comparison.problems),
                    ],
                ),
                dry_run=dry_run,
                on_progress=tell,
                processes=usable_cores(),
            )
    except MergeRefusedError as error:
        report = error.report
    if as_json:
        print(json_text(_as_data(report)))
    else:
        print("\n".join(_lines(report, dry_run)))
        print("\n".join(_next(report, sources, campaign, prefer, dry_run)))
    if report.problem:
        print(f"leeward: nothing was written: {report.problem}", file=sys.stderr)
    raise typer.Exit(0 if _is_well(report) else EXIT_INCOMPLETE)


def _is_well(report: "MergeReport") -> bool:
    """Nothing that is expected is lost; where nobody knows what is expected, no file is damaged."""
    if report.problem or report.unsettled:
        return False
    return not report.missing if report.missing is not None else not report.bad_files


def _recovered(report: "MergeReport", file: "SourceReport") -> tuple[int, int]:
    """How many of its results are verified, and how many only plausible; those that a judge refused are neither."""
    about = _salvaged(report).get(file.place)
    if about is None:
        return file.valid - file.plausible, file.plausible
    return about.verified, max(0, file.valid - about.verified)


def _salvaged(report: "MergeReport") -> "dict[str, Salvaged]":
    return {one.place: one for one in report.salvaged}


def _lines(report: "MergeReport", dry_run: bool) -> Iterator[str]:
    files = [file for file in report.files if file.copy]
    sound = len(report.files) - len(files)
    ordered = sorted(files, key=lambda file: file.is_good)  # the damaged ones first
    if files:
        rows: list[Sequence[object]] = [("file", "size", "state", "found", "verified", "plausible", "lost")]
        for file in ordered[:MOST_LISTED]:
            verified, plausible = _recovered(report, file)
            found = verified + plausible + len(file.bad)
            lost = f"{len(file.bad)}{'' if file.verdict is Verdict.VALID else '+'}"
            rows.append((file.place, size(file.size), file.verdict, found, verified, plausible, lost))
        yield table(rows, right=(1, 3, 4, 5, 6), indent="")
        if len(ordered) > MOST_LISTED:
            yield f"and {len(ordered) - MOST_LISTED} more files, in the log"
        if any(file.verdict is not Verdict.VALID for file in files):
            yield "  +: and what has left no trace in a damaged file"
    if sound:
        yield f"{count(sound, 'file')} whole, with a digest for everything"
    yield from _about_lost(ordered)
    verified = sum(_recovered(report, file)[0] for file in report.files)
    plausible = sum(_recovered(report, file)[1] for file in report.files)
    what = f"{verified} verified and {plausible} plausible"
    if report.problem:
        return
    if dry_run:
        yield f"{report.output}: would get {count(report.results, 'result')} ({what} were found)"
    else:
        yield (
            f"{report.output}: {count(report.results, 'result')}, {size(report.size)}, each verified after writing "
            f"({what} were found)"
        )
    if plausible:
        yield "  plausible: complete and consistent, but without a digest that proves it"
    remarks = (
        (len(report.duplicates), "found more than once, and the same"),
        (len(report.recomputed), "whose AEP was recomputed"),
        (report.no_aep, 'without an AEP (status "no-aep")'),
    )
    yield from (f"  {count(number, 'result')} {remark}" for number, remark in remarks if number)
    yield from (f"  note: {note}" for note in report.notes)
    if report.moved is not None:
        yield f"  the file that was there is now {report.moved}"
    yield from (f"  log: {path}" for path in report.logs)


def _about_lost(files: "Sequence[SourceReport]") -> Iterator[str]:
    lost = [(file, bad) for file in files for bad in file.bad]
    for file, bad in lost[:MOST_LISTED]:
        yield f"  lost: {bad.name} in {file.path.name}: {bad.reason}"
    if len(lost) > MOST_LISTED:
        yield f"  and {len(lost) - MOST_LISTED} more, in the log"


def _next(
    report: "MergeReport", sources: list[Path], campaign: str | None, prefer: Prefer | None, dry_run: bool
) -> Iterator[str]:
    again = ["salvage", *sources, "-o", report.output]
    told = [] if campaign is None else ["--campaign", campaign]
    preferred = [] if prefer is None else ["--prefer", prefer.value]
    refused = sum(file.refused for file in report.files)
    if refused:
        yield f"{count(refused, 'result')} refused by the campaign; is it the one that the files were made for?"
        yield f"To keep them without its judgement: {command(*again, *preferred)}"
    if report.unsettled:
        yield f"To take the newest of different results: {command(*again, '--prefer', 'newest', *told)}"
        yield f"To take the one with most energy: {command(*again, '--prefer', 'best', *told)}"
    if report.problem:
        return
    yield from _beside(sources, report.output)
    adopt = command(*run_command("layouts.h5", campaign or "CAMPAIGN"), "--adopt", report.output)
    if report.missing is None:
        yield "What was expected is not known without --campaign, and so what was lost without a trace."
        yield f"To compute all that is not there: {adopt}"
    elif report.missing:
        yield f"{count(len(report.missing), 'expected result')} missing: {listed(report.missing)}"
        yield f"To compute {'it' if len(report.missing) == 1 else 'them'}: {adopt}"
    else:
        yield "Nothing that was expected is missing."
    if not dry_run:
        yield "The files themselves are as they were: keep them until all is well."


def _beside(sources: list[Path], output: Path) -> Iterator[str]:
    """Where more may be: the run directory of a file, and the quarantine of a run."""
    from leeward.store import RunPaths

    for path in sources:
        run = path.with_suffix(".run") if path.suffix == ".h5" else path
        if run != path and run.is_dir() and run not in sources:
            yield f"{run}, beside it, may hold all of it: {command('merge', run, '-o', output)}"
        if path.suffix == ".run" and (aside := RunPaths.of(path).quarantine).is_dir() and any(aside.glob("*.h5.*")):
            yield f"{aside} has files that did not verify; to look into them too, name it as well"


def _as_data(report: "MergeReport") -> dict[str, Any]:
    files = []
    known = _salvaged(report)
    for file in report.files:
        verified, plausible = _recovered(report, file)
        lost = [{"name": bad.name, "verdict": bad.verdict, "reason": bad.reason} for bad in file.bad]
        facts = {"path": file.place, "size": file.size, "verdict": file.verdict, "reason": file.reason}
        ways = dict(known[file.place].tried) if file.place in known else {}
        files.append({**facts, "verified": verified, "plausible": plausible, "lost": lost, "ways": ways})
    return {
        "output": str(report.output),
        "results": report.results,
        "no_aep": report.no_aep,
        "recomputed": list(map(str, report.recomputed)),
        "missing": None if report.missing is None else list(map(str, report.missing)),
        "files": files,
        "notes": report.notes,
        "problem": report.problem,
        "logs": list(map(str, report.logs)),
    }
