"""`leeward salvage`: recover the results that damaged files still hold."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer import Argument, Exit, Option

from leeward import store
from leeward.cli.merge import (
    PREFER,
    OnBad,
    Prefer,
    merge_counts,
    merge_notes,
    merged,
    missing_lines,
    output_line,
    ways_to_prefer,
)
from leeward.cli.options import CAMPAIGN_FILE, QUIET, Options
from leeward.cli.output import EXIT_INCOMPLETE, MOST_LISTED, first_of, picked, table
from leeward.cli.sources import campaign_words
from leeward.wording import command, count, json_text, size


class SalvageOptions(Options):
    """Recover every result that damaged HDF5 files still hold.

    Salvage handles truncated files, files of killed writers, files whose beginning is gone, and flipped bits. A child
    process with limits on time and memory reads the files. It never changes them; where needed, it changes a copy.

    It tries all of these methods and keeps every result that one of them finds: reading group by group; clearing the
    mark "open for writing" that a killed writer leaves in the newer format; extending a truncated file to its stated
    length and keeping only what does not depend on the padding; scanning the bytes for object headers, symbol tables
    and heaps, and rebuilding the datasets that they lead to.

    Each result found is verified (its checksum matches) or plausible (it has no checksum, but layout and attributes are
    complete, finite and consistent with each other and with the other results; with --campaign, the layout
    also satisfies boundary and spacing, and its AEP is the stored one). In the output, plausible results have the
    attributes `evidence="plausible"` and `recovered_by`. Lost results that left a trace are listed with the reason;
    others are known only with a campaign.

    Exit codes: 0 no expected result is missing or, without a campaign, no file is damaged; 3 otherwise; 1 other errors;
    2 usage error; 4 the output cannot be written.
    """

    sources: list[Path] = Argument(..., help="Damaged files, or folders with such files.")
    output: Path = Option(..., "--output", "-o", help="New file for the recovered results.")
    prefer: Prefer | None = PREFER
    campaign: str | None = CAMPAIGN_FILE
    dry_run: bool = Option(False, "--dry-run", help="Write nothing; print what could be recovered.")
    as_json: bool = Option(False, "--json", help="Print the report as JSON.")
    quiet: bool = QUIET


def salvage(options: SalvageOptions) -> None:
    """Recover what damaged files hold and print what was found."""
    try:
        report = merged(options, OnBad.SALVAGE, quiet=options.quiet or options.as_json)
    except store.MergeRefusedError as error:
        report = error.report
    if options.as_json:
        print(json_text(_as_data(report)))
    else:
        print("\n".join(_lines(report, options.dry_run)))
        print("\n".join(_next(report, options)))
    if report.problem:
        print(f"leeward: nothing was written: {report.problem}", file=sys.stderr)
    raise Exit(0 if _is_well(report) else EXIT_INCOMPLETE)


def _is_well(report: "store.MergeReport") -> bool:
    """Return whether no expected result is missing or, if these are not known, whether no file is damaged."""
    if report.problem or report.unresolved:
        return False
    return not report.missing if report.missing is not None else not report.bad_files


def _recovered(report: "store.MergeReport", file: "store.SourceReport") -> tuple[int, int]:
    """Return the numbers of verified and of plausible results of a file, without rejected ones."""
    about = next((one for one in report.salvaged if one.file.path == file.path), None)
    if about is None:
        return file.valid - file.plausible, file.plausible
    return about.verified, max(0, file.valid - about.verified)


def _lines(report: "store.MergeReport", dry_run: bool) -> Iterator[str]:
    files = [file for file in report.files if file.copy]
    intact = len(report.files) - len(files)
    ordered = sorted(files, key=lambda file: file.is_good)  # damaged files first
    if files:
        header = ("file", "size", "state", "found", "verified", "plausible", "lost")
        rows = []
        for file in ordered:
            verified, plausible = _recovered(report, file)
            found = verified + plausible + len(file.bad)
            lost = f"{len(file.bad)}{'' if file.verdict is store.Verdict.VALID else '+'}"
            rows.append((file.place, size(file.size), file.verdict, found, verified, plausible, lost))
        yield table(rows, header=header, right=(1, 3, 4, 5, 6), indent="", most=MOST_LISTED, rest=" files, in the log")
        if any(file.verdict is not store.Verdict.VALID for file in files):
            yield "  +: a damaged file may have held more results, which left no trace"
    if intact:
        yield f"{count(intact, 'file')} intact, with a checksum for every result"
    losses = (f"  lost: {bad.name} in {file.path.name}: {bad.reason}" for file in ordered for bad in file.bad)
    yield from first_of(losses, ", in the log")
    counts = [_recovered(report, file) for file in report.files]
    verified, plausible = (sum(each) for each in zip((0, 0), *counts, strict=True))
    if report.problem:
        return
    yield output_line(report, f"({verified} verified and {plausible} plausible were found)", dry_run)
    if plausible:
        yield "  plausible: complete and consistent, but without a checksum"
    yield from merge_counts(report)
    yield from merge_notes(report)
    yield from (f"  log: {path}" for path in report.logs)


def _next(report: "store.MergeReport", options: SalvageOptions) -> Iterator[str]:
    sources, campaign, prefer = options.sources, options.campaign, options.prefer
    again = ["salvage", *sources, "-o", report.output]
    preferred = [] if prefer is None else ["--prefer", prefer.value]
    refused = sum(file.refused for file in report.files)
    if refused:
        yield f"{count(refused, 'result')} rejected by the campaign; check that the files were made for this campaign"
        yield f"To keep them without checking against the campaign: {command(*again, *preferred)}"
    if report.unresolved:
        yield from ways_to_prefer(again, campaign_words(campaign))
    if report.problem:
        return
    yield from _beside(sources, report.output)
    yield from missing_lines(report, options, Path("layouts.h5"))
    if not options.dry_run:
        yield "The damaged files are unchanged; keep them until every result is recovered or recomputed."


def _beside(sources: list[Path], output: Path) -> Iterator[str]:
    """Yield other places that may hold results: the run directory of a file, and the quarantine of a run."""
    for path in sources:
        run = path.with_suffix(".run") if path.suffix == ".h5" else path
        if run != path and run.is_dir() and run not in sources:
            yield f"{run} may hold all results. To merge them: {command('merge', run, '-o', output)}"
        if (
            path.suffix == ".run"
            and (aside := store.RunPaths.of(path).quarantine).is_dir()
            and any(aside.glob("*.h5.*"))
        ):
            yield f"{aside} has files that failed verification; add it to the sources to include them"


def _as_data(report: "store.MergeReport") -> dict[str, Any]:
    files = []
    ways = {str(one.file.path): one.tried for one in report.salvaged}
    for file in report.files:
        verified, plausible = _recovered(report, file)
        lost = [picked(bad, "name", "verdict", "reason") for bad in file.bad]
        facts = {"path": file.place, **picked(file, "size", "verdict", "reason")}
        found = {"verified": verified, "plausible": plausible, "lost": lost, "ways": ways.get(file.place, {})}
        files.append({**facts, **found})
    return {
        "output": str(report.output),
        **picked(report, "results", "no_aep"),
        "recomputed": list(map(str, report.recomputed)),
        "missing": None if report.missing is None else list(map(str, report.missing)),
        "files": files,
        **picked(report, "notes", "problem"),
        "logs": list(map(str, report.logs)),
    }
