"""`leeward check`: verify files and every result in them."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer import Argument, Exit, Option

from leeward import store, watch
from leeward.cli.options import CAMPAIGN_FILE, QUIET, Options
from leeward.cli.output import EXIT_INCOMPLETE, counted, first_of, picked, table
from leeward.cli.progress import progress
from leeward.cli.sources import (
    adopt_words,
    campaign_words,
    demanded_work,
    given_place,
    given_work,
    kind_of_sources,
)
from leeward.events import OnProgress
from leeward.processes import usable_cores
from leeward.wording import command, compute_command, count, json_text, listed, run_command, size

RECOMPUTED = {"layouts": "AEP, spacing and boundary", "evaluations": "AEP and power"}  # by --deep, of each kind
MOST_FILES_OF_A_FOLDER = 40  # with more valid files than this, a folder gets one line


class CheckOptions(Options):
    """Verify files and every result in them, without writing anything.

    Every file and every result gets a verdict: `valid`, `empty`, `not-hdf5`, `truncated`, `unreadable`,
    `wrong-structure`, `bad-seal`, `implausible`, `crashed-reader` or `timed-out-reader`. Many valid files in one folder
    share a line; every bad file is listed with the reason. A child process opens the files, so a damaged file cannot
    crash the command.

    A valid result from another script is called plausible: it is complete and consistent, but has no checksum. --deep
    compares its AEP with its layout.

    Each result is compared with its campaign: the one given with --campaign, else that of its run directory, else the
    one stored in its file. A result is bad if its fingerprint or its number of turbines differs, or if a turbine is
    outside the area of its farm. Adopted results have no fingerprint. Results of another method version are compared
    under that version and counted. Results that are not in the campaign are counted and listed; they are not errors.

    --complete also reads the merged file beside a run directory. --deep checks each layout against the campaign: it
    must be inside the area to the millimetre, respect the spacing, and have the AEP that the wake engine computes. The
    AEP of another method version is not compared. In a study, --deep computes each evaluation again; its AEP and power
    must agree to 1e-9.

    Exit codes: 0 no errors; 3 something is damaged, in conflict or missing, or nothing was found; 1 other errors;
    2 usage error; 4 the storage is unavailable.
    """

    paths: list[Path] | None = Argument(
        None,
        help="Files, folders, run directories, layouts.h5, study.h5, worker files of other scripts. Default: the only "
        "run in the current folder, with its merged file.",
    )
    complete: bool = Option(False, "--complete", help="Also require a result for every task.")
    deep: bool = Option(False, "--deep", help="Also recompute each result: AEP, spacing and boundary.")
    campaign: str | None = CAMPAIGN_FILE
    as_json: bool = Option(False, "--json", help="Print all verdicts as JSON.")
    quiet: bool = QUIET


def check(options: CheckOptions) -> None:
    """Check files and print the verdicts."""
    paths = options.paths or [given_place(None)]
    store.demand_possible(*paths)
    if options.complete or not options.paths:  # cleaned results are only in layouts.h5
        outputs = [path.with_suffix(".h5") for path in paths if path.suffix == ".run"]
        paths = paths + [output for output in outputs if output.is_file() and output not in paths]
    deep, complete, campaign = options.deep, options.complete, options.campaign
    why = "--deep" if deep else "--complete" if complete else None
    chosen = demanded_work(campaign, paths, why) if why else given_work(campaign, paths)
    comparison = watch.Comparison(paths, None if campaign is None else chosen, chosen)
    with progress(options.quiet or options.as_json) as on_progress:
        listing = _Listing(on_progress, keep_all=options.as_json)
        report = store.check(
            paths,
            judge=chosen.judge if chosen is not None and deep else None,
            compare=comparison,
            campaign=chosen,
            expected=set(chosen.tasks()) if chosen is not None and complete else None,
            on_found=listing.add,
            processes=usable_cores(),
        )
    notes = [*comparison.notes(), *(chosen.judge.notes if chosen is not None and deep else [])]
    if options.as_json:
        print(json_text({**_as_data(report, listing), "notes": notes}))
    else:
        print("\n".join(_lines(report, listing, options.quiet)))
        print("".join(f"{note}\n" for note in notes), end="")
        print("\n".join(_next(report, listing, paths, campaign, deep)))
    raise Exit(0 if report.is_well else EXIT_INCOMPLETE)


Home = tuple[Path, bool]  # a run directory or the folder of other files, and whether it is a run directory


def _home(file: Path) -> Home:
    """Return the run directory of a shard or pack, or the folder of any other file."""
    if store.is_shard(file):
        return file.parents[2], True
    return (file.parents[1], True) if store.is_pack(file) else (file.parent, False)


class _Listing:
    """Collect findings. To save memory, valid files are only counted if their folder has many."""

    def __init__(self, on_progress: OnProgress, *, keep_all: bool) -> None:
        self._on_progress = on_progress
        self._keep_all = keep_all
        self._results: list[store.FoundResult] = []
        self._files = 0
        self.totals: dict[Home, Counter[str]] = defaultdict(Counter)
        self.valid: dict[Home, list[store.FoundFile]] = defaultdict(list)
        self.bad: list[tuple[store.FoundFile, list[store.FoundResult]]] = []
        self.all: list[dict[str, Any]] = []

    def add(self, found: "store.FoundFile | store.FoundResult") -> None:
        """Add a result, or the file that the previous results belong to."""
        if isinstance(found, store.FoundResult):
            if self._keep_all or not found.is_valid:
                self._results.append(found)
            return
        results, self._results = self._results, []
        home = _home(found.path)
        facts = {"packs": store.is_pack(found.path), "results": found.valid, "bad": not found.is_valid}
        self.totals[home].update(files=1, size=max(found.size, 0), **facts)
        self._files += 1
        self._on_progress("checking files", self._files, 0)
        if found.is_valid and not home[1] and len(self.valid[home]) <= MOST_FILES_OF_A_FOLDER:
            self.valid[home].append(found)
        bad = [result for result in results if not result.is_valid]
        if bad or not found.is_valid:
            self.bad.append((found, bad))
        if self._keep_all:
            self.all.append(_file_data(found, results))

    def bad_homes(self) -> dict[Path, Home]:
        """Return the run directory or folder of each bad file."""
        return {found.path: _home(found.path) for found, _ in self.bad}


def _file_data(found: "store.FoundFile", results: "list[store.FoundResult]") -> dict[str, Any]:
    def evidence(result: "store.FoundResult") -> str | None:
        return ("verified" if result.is_verified else "plausible") if result.is_valid else None

    each = [
        {**picked(result, "name", "verdict", "reason", "status"), "evidence": evidence(result)} for result in results
    ]
    return {"path": str(found.path), **picked(found, "size", "verdict", "reason", "valid", "bad"), "results": each}


def _as_data(report: "store.CheckReport", listing: _Listing) -> dict[str, Any]:
    places = {"conflicts": report.conflicts, "duplicates": report.duplicates}
    return {
        "is_well": report.is_well,
        "files": listing.all,
        "file_verdicts": dict(report.file_verdicts),
        "result_verdicts": dict(report.result_verdicts),
        **picked(report, "size", "no_aep", "plausible"),
        "missing": list(map(str, report.missing)),
        "extra": list(map(str, report.extra)),
        **{name: {str(key): list(map(str, paths)) for key, paths in each.items()} for name, each in places.items()},
    }


def _lines(report: "store.CheckReport", listing: _Listing, quiet: bool) -> Iterator[str]:
    rows = [] if quiet else [row for home in listing.totals for row in _valid_rows(listing, home)]
    rows += [row for found, results in listing.bad for row in _bad_rows(found, results)]
    if rows:
        yield table(rows, header=["file", "results", "size", "verdict"], right=(1, 2))
        yield ""
    valid, results = report.result_verdicts[store.Verdict.VALID], report.results
    yield (
        f"{count(report.files, 'file')}, {len(listing.bad)} of them bad; {count(results, 'result')}, "
        f"{results - valid} of them bad; {size(report.size)}"
    )
    yield from _remarks(report)


def _valid_rows(listing: _Listing, home: Home) -> Iterator[list[str]]:
    """Yield a row for each valid file in a folder, or one row for a run directory or many files."""
    (path, is_run), totals, valid = home, listing.totals[home], listing.valid[home]
    if is_run or len(valid) > MOST_FILES_OF_A_FOLDER:
        what = f"{path}: {count(totals['files'] - totals['packs'], 'shard' if is_run else 'file')}"
        what += f", {count(totals['packs'], 'pack')}" if totals["packs"] else ""
        verdict = f"valid, except {totals['bad']} listed below" if totals["bad"] else "valid"
        yield [what, str(totals["results"]), size(totals["size"]), verdict]
        return
    for found in valid:
        more = f" ({found.reason})" if found.reason else ""
        yield [str(found.path), str(found.valid), size(found.size), f"{found.verdict}{more}"]


def _bad_rows(found: "store.FoundFile", results: "list[store.FoundResult]") -> Iterator[list[str]]:
    verdict = f"{found.verdict}: {found.reason}" if found.reason else str(found.verdict)
    if found.bad:
        verdict += f", {found.bad} of {found.valid + found.bad} results bad"
    yield [str(found.path), str(found.valid), size(found.size), verdict]
    for result in results:
        yield [f"  {result.name}", "", "", f"{result.verdict}: {result.reason}"]


def _remarks(report: "store.CheckReport") -> Iterator[str]:
    same = len(report.duplicates) - len(report.conflicts)
    yield from counted(
        (report.plausible, "result", "only plausible: complete and consistent, but without a checksum"),
        (report.no_aep, "layout", "without a valid AEP; the layout itself is valid"),
        (same, "result", "found in more than one place, identical everywhere"),
    )
    whole = "study" if any(not isinstance(key, store.Key) for key in report.extra) else "campaign"
    conflicts = report.conflicts.items()
    lines = (f"conflict: {key} differs between {' and '.join(map(str, paths))}" for key, paths in conflicts)
    yield from first_of(lines, " conflicts; --json lists all")
    yield from counted(
        (len(report.missing), "expected result", f"missing: {listed(report.missing)}"),
        (len(report.extra), "result", f"not in the {whole}: {listed(report.extra)}"),
    )


def _next(
    report: "store.CheckReport", listing: _Listing, paths: list[Path], campaign: str | None, deep: bool
) -> Iterator[str]:
    if not report.files:
        yield f"Nothing found: {', '.join(map(str, paths))} has no .h5 or .hdf5 file and no result of a run."
    kind = kind_of_sources(paths)
    if report.is_well:
        if report.expected:
            whole = "study" if kind == "evaluations" else "campaign"
            yield f"Complete: all {report.expected} results that the {whole} expects are present."
        yield "No errors." if deep else f"No errors. To also recompute {RECOMPUTED[kind]}: --deep"
    unfit = set(report.unfit)
    bad_runs = dict.fromkeys((home, file in unfit) for file, (home, is_run) in listing.bad_homes().items() if is_run)
    for run, is_unfit in sorted(bad_runs, key=lambda found: found[1]):
        again = run_command(run.with_suffix(".h5"), kind=watch.kind_of(run))
        if not is_unfit:
            yield f"{run}: `{command(*again)}` moves bad files to quarantine and recomputes their tasks."
            continue
        yield (  # a run would keep or reject them
            f"{run}: the implausible results are intact, but do not match the campaign. Move their files out of the "
            f"run directory, and `{command(*again)}` recomputes their tasks; or start over, which keeps the old "
            f"results under another name: {command(*again, '--new')}"
        )
    named = campaign_words(campaign)
    sources = [path for path in paths if path not in {run for run, _ in bad_runs}]
    if sources and not all(is_run for _, is_run in listing.bad_homes().values()):
        kept = command("merge", *sources, "-o", "merged.h5", "--on-bad", "skip")
        yield f"To keep every valid result: {kept}"
        rescued = command("salvage", *sources, "-o", "salvaged.h5", *named)
        yield f"To also recover what damaged files still hold: {rescued}"
        if kind == "layouts":  # a study adopts nothing
            yield f"To also compute the rest: {command('run', campaign or 'CAMPAIGN', *adopt_words(sources))}"
    if report.conflicts:
        yield "To resolve conflicts, run `leeward merge` with --prefer newest or --prefer best."
    if report.missing:
        yield f"To list what is missing: {command('missing', paths[0], *named, '--csv', 'missing.csv')}"
        yield f"Then, to compute it: {compute_command(paths[0], campaign, 'missing.csv', kind)}"
