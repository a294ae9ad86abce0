"""Merge many sources into one file. Every result is verified in its source and in the output."""

import contextlib
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from leeward import __version__
from leeward.errors import InputError
from leeward.events import Emit, OnProgress, ignore
from leeward.files import storage_errors, sync_folder
from leeward.store.directory.audit import utc_now
from leeward.store.directory.results import BadFile, BadPack, Doubled, RunFiles, read_results
from leeward.store.directory.shards import BadShard, ShardPaths
from leeward.store.directory.sources import Source, gather
from leeward.store.format.found import PLAUSIBLE
from leeward.store.format.keys import Key
from leeward.store.format.kind import Value
from leeward.store.format.layout_result import Result
from leeward.store.format.verdicts import Verdict
from leeward.store.merging.contents import Contents, Pair, contents_of, make_pair, pair
from leeward.store.merging.merge_report import MergeRefusedError, MergeReport, write_logs
from leeward.store.merging.removal import held_runs, remove_proved, would_be_removed
from leeward.store.merging.salvage import salvaged_sources
from leeward.store.merging.selection import Compare, Judge, Recompute, Selection, both
from leeward.store.merging.writer import OutputHoldsMoreError, Written, write_merged
from leeward.store.paths import RunPaths
from leeward.wording import listed

ON_BAD = ("abort", "skip", "salvage")
PREFER = (None, "newest", "best")
_MOST_NAMED = 20
_TIMELY = ("created", "leeward_version", "successful_configs")  # these may differ although the output is up to date


# --- a run directory -------------------------------------------------------------------------------------------------


@dataclass
class RunMerge:
    """The outcome of merging a run.

    keys: of the results in the output. replaced: False if the output was up to date or there was nothing to merge.
    bad_files: shards that were left out, and packs with any bad result. moved: new path of a damaged output.
    """

    keys: set[Key] = field(default_factory=set)
    replaced: bool = False
    bad_files: list[BadFile] = field(default_factory=list)
    moved: Path | None = None

    @property
    def count(self) -> int:
        """The number of results in the output."""
        return len(self.keys)


def merge_run(paths: RunPaths, attributes: Mapping[str, Value], *, emit: Emit = ignore, processes: int = 1) -> RunMerge:
    """Write the output of a run from its packs and shards, unless it is up to date.

    Bad results are left out, and their files are reported. Raise OutputHoldsMoreError, with the bad files, if the
    output holds results that packs and shards lack. After a StorageError the same call can be repeated.
    """
    files = RunFiles(paths)
    merged = RunMerge()
    known = contents_of(paths.output) if paths.output.is_file() else None
    current = None if known is None else _keys_if_up_to_date(known, files, attributes, processes)
    if known is not None and current is not None:
        with storage_errors(paths.output.parent, "cannot be synced"):
            sync_folder(paths.output.parent)  # an earlier call may have been killed after the rename
        return RunMerge(current)
    results = _results_of_run(files, merged, processes)
    first = next(results, None)
    if first is None:
        return merged

    def announce(written: Written) -> None:
        counts = {"shards": len(files.shards), "packs": len(files.packs), "bad": len(merged.bad_files)}
        emit("merge", output=str(paths.output), results=written.count, size=written.size, **counts)

    try:
        written = write_merged(paths.output, chain([first], results), attributes, known=known, before=announce)
    except OutputHoldsMoreError as error:
        error.bad_files = merged.bad_files
        raise
    merged.replaced, merged.moved = True, written.moved
    moved = None if written.moved is None else str(written.moved)
    emit("merged", output=str(paths.output), results=written.count, size=written.size, moved=moved)
    return merged


def _keys_if_up_to_date(
    known: Contents, files: RunFiles, attributes: Mapping[str, Value], processes: int
) -> set[Key] | None:
    """Return all keys if the output holds the same results as packs and shards, else None.

    Packs and shards are read only if their number of results may match.
    """
    if not known.is_whole or files.likely_results not in (None, len(known.pairs)):
        return None
    if any(known.file.attributes.get(name) != value for name, value in attributes.items() if name not in _TIMELY):
        return None
    keys: set[Key] = set()
    for found in read_results(files, processes=processes):
        if isinstance(found, BadShard | BadPack):
            return None
        if isinstance(found, Doubled) or found.key is None:
            continue
        if pair(found) not in known.pairs:
            return None
        keys.add(found.key)
    return keys if len(keys) == len(known.pairs) else None


def _results_of_run(files: RunFiles, merged: RunMerge, processes: int) -> Iterator[Result]:
    for found in read_results(files, contents=True, processes=processes):
        if isinstance(found, BadShard | BadPack):
            merged.bad_files.append(found)
        elif not isinstance(found, Doubled) and found.result is not None and found.key is not None:
            merged.keys.add(found.key)
            yield found.result


# --- any sources -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownCampaign:
    """The known facts about the campaign of the sources.

    recompute: for layouts without an AEP. judge: returns what is wrong with a result that has no digest in its file, or
    None. compare: returns why a result does not match the campaign of its file, or None. attributes: of the output, in
    addition to those of the sources. expected: the keys of all tasks; None if unknown. campaigns: known number of
    different campaigns. notes: called once all sources are read, returns further lines for the log.
    """

    recompute: Recompute | None = None
    judge: Judge | None = None
    compare: Compare | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)
    expected: Collection[Key] | None = None
    campaigns: int = 1
    notes: Callable[[], Iterable[str]] = tuple


def merge(
    sources: Sequence[Path],
    output: Path,
    *,
    campaign: KnownCampaign = KnownCampaign(),
    on_bad: str = "abort",
    prefer: str | None = None,
    remove_sources: bool = False,
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
    processes: int = 1,
) -> MergeReport:
    """Write `output` from all valid results of the sources: files, folders and run directories.

    All sources are read first. on_bad: the reaction to an invalid file or result: "abort", "skip" it, or "salvage" what
    it holds. prefer: which of several different results of a key to take, "newest" or "best"; None makes them an error.
    remove_sources: remove each source whose results are all found in the output. The lock of its run directory is held
    meanwhile. dry_run: only report. Raise MergeRefusedError, after writing the log, if the sources cannot be merged.
    Raise HeldError if a live process holds a run directory that would lose shards.
    """
    _demand_options(output, on_bad, prefer)
    found = gather(sources)
    on_progress = on_progress or (lambda what, done, total: None)
    with contextlib.ExitStack() as stack:
        audits = stack.enter_context(held_runs(found if remove_sources and not dry_run else ()))
        report = MergeReport(output, utc_now(), on_bad, prefer)
        doubt = both(campaign.compare, _judge_of_unproved(campaign.judge))
        selection = Selection(report, doubt, campaign.recompute, on_progress, processes, campaign.campaigns)
        places = _expanded(found)
        if on_bad == "salvage":
            beside = Path(tempfile.gettempdir()) / output.name if dry_run else output
            salvaged = salvaged_sources(places, beside, processes, on_progress)
            places, selection.salvaged = stack.enter_context(salvaged)
        selection.read(map(Path, places), len(places))
        late = _packed_since(found, places)
        selection.read(late, len(places) + len(late))
        selection.resolve(prefer)
        _complete(report, selection, campaign)
        if dry_run:
            report.results = len(selection.chosen)
            report.removals = would_be_removed(report) if remove_sources and not report.problem else []
            return report
        if report.problem:
            report.logs = write_logs(report)
            raise MergeRefusedError(report)
        _write(report, selection, _attributes(selection, campaign))
        if remove_sources:
            folders = [source for source in sources if source.is_dir()]
            report.removals = remove_proved(report, folders, audits, processes)
    return report


def _judge_of_unproved(judge: Judge | None) -> Judge | None:
    """Restrict a judge to results that had no digest in their source. `check --deep` judges the others too."""
    if judge is None:
        return None
    return lambda result: judge(result) if result.details.get("evidence") == PLAUSIBLE else None


def _write(report: MergeReport, selection: Selection, attributes: dict[str, Value]) -> None:
    """Write the output, then the logs. A refused merge has logs too."""
    try:
        written = write_merged(report.output, selection.results(), attributes, expendable=_expendable(report))
    except OutputHoldsMoreError as error:
        report.problem = str(error)
        report.logs = write_logs(report)
        raise
    report.results, report.no_aep = written.count, written.no_aep
    report.size, report.moved = written.size, written.moved
    if written.index:
        report.notes.append(f"the index could not be written: {written.index}")
    report.logs = write_logs(report)


def _demand_options(output: Path, on_bad: str, prefer: str | None) -> None:
    RunPaths(output)
    for name, value, allowed in (("on_bad", on_bad, ON_BAD), ("prefer", prefer, PREFER)):
        if value not in allowed:
            raise InputError(f"{name} is {value!r}; allowed: {', '.join(map(str, allowed))}")
    if not output.parent.is_dir():
        raise InputError(f"{output.parent} is not a folder; create it first, or name another output")


def _expanded(sources: Iterable[Source]) -> list[str]:
    """Return all files, each once, as text to save memory, because there may be a hundred thousand."""
    places: list[str] = []
    for source in sources:
        files = [source.path] if source.run is None else chain(ShardPaths(source.run), source.run.pack_files())
        places += map(str, files)
    return places


def _packed_since(sources: Iterable[Source], places: Sequence[str]) -> list[Path]:
    """Return packs that appeared while the sources were read: an active run may have packed shards."""
    known = set(places)
    runs = [source.run for source in sources if source.run is not None]
    return [pack for run in runs for pack in run.pack_files() if str(pack) not in known]


def _complete(report: MergeReport, selection: Selection, campaign: KnownCampaign) -> None:
    """Add missing results, notes and the problem to the report, once all sources are read."""
    if campaign.expected is not None:
        report.missing = sorted(set(campaign.expected) - selection.chosen.keys())
    elif len(selection.studies) > 1:
        count = len(selection.studies)
        report.notes.append(f"the sources have {count} different campaigns; the output stores the newest")
    report.salvaged = list(selection.salvaged.values())
    report.notes += [f"{one.file.path}: {note}" for one in report.salvaged for note in one.notes]
    damaged = [file for file in report.bad_files if file.verdict in (Verdict.TRUNCATED, Verdict.UNREADABLE)]
    if damaged and report.on_bad != "salvage":
        report.notes.append(f"{len(damaged)} damaged files may still hold results: keep them, and try --on-bad salvage")
    report.notes += campaign.notes()
    report.problem = _problem(report, selection)


def _problem(report: MergeReport, selection: Selection) -> str:
    """Return why nothing can be written, or ""."""
    if len(selection.kinds) > 1:
        return f"the sources hold results of different kinds ({listed(sorted(selection.kinds))}); merge each kind alone"
    lines = []
    if report.on_bad == "abort":
        for file in report.bad_files:
            if file.verdict is not Verdict.VALID:
                lines.append(f"{file.path}: {file.verdict} ({file.reason})")
            lines += [f"{file.path}: {bad.name}: {bad.verdict} ({bad.reason})" for bad in file.bad]
    way_out = "leave them out with --on-bad skip" if lines else ""
    for conflict in report.unresolved:
        where = " and ".join(str(report.files[one.source].path) for one in conflict.alternatives)
        lines.append(f"{conflict.key}: {conflict.why}, in {where}")
    if report.unresolved:
        way_out += ("; " if way_out else "") + "choose between different results with --prefer newest or best"
    if lines:
        named = lines[:_MOST_NAMED] + ([f"and {len(lines) - _MOST_NAMED} more"] if len(lines) > _MOST_NAMED else [])
        return "\n".join([f"{len(lines)} files or results cannot be merged ({way_out}):", *named])
    if not selection.chosen:
        return f"no valid result was found in {len(report.files)} files; run leeward check to see the reasons"
    return ""


def _expendable(report: MergeReport) -> set[Pair]:
    """Return the results that may be lost because `prefer` chose another one."""
    return {
        make_pair(conflict.key, one.digest)
        for conflict in report.conflicts
        for number, one in enumerate(conflict.alternatives)
        if conflict.kept is not None and number != conflict.kept
    }


def _attributes(selection: Selection, campaign: KnownCampaign) -> dict[str, Value]:
    """Return the attributes of the output, from the campaign, else from the newest source that has one."""
    own = ("format_version", "created", "successful_configs", "leeward_version")
    attributes = {name: value for name, value in selection.attributes.items() if name not in own}
    attributes |= campaign.attributes
    campaigns = max(selection.campaigns, len(selection.studies) if campaign.expected is None else 1)
    if campaigns > 1:
        attributes["campaigns"] = campaigns  # tells `check` not to compare all results with a single campaign
    total = attributes.get("total_configs") if campaign.expected is None else len(campaign.expected)
    count = len(selection.chosen)
    attributes["total_configs"] = max(total, count) if isinstance(total, int) else count
    return {**attributes, "leeward_version": __version__}
