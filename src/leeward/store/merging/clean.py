"""Clean a run directory: quarantine bad files, and remove files whose results were verified in the output."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from leeward.events import Emit, OnProgress, ignore
from leeward.files import storage_errors
from leeward.store.directory.quarantine import quarantine
from leeward.store.directory.results import BadFile, BadPack, RunFiles, read_results
from leeward.store.directory.shards import BadShard, ShardPaths
from leeward.store.directory.temporary import left_overs, start_of
from leeward.store.merging.contents import read_contents
from leeward.store.merging.merge_report import Removal
from leeward.store.merging.packs import TEMPORARY_PACK, unpack
from leeward.store.merging.removal import proved, remove, remove_empty_folders
from leeward.store.paths import RunPaths


@dataclass
class CleanReport:
    """The actions of `clean`. With `dry_run` they are only planned.

    bad: invalid shards, and packs with any invalid result. quarantined: their new paths. unpacked: number of results of
    bad packs that became shards again. temporary: leftover temporary files. removed: shards and packs whose results are
    in the output. kept: the others, with the reason. folders: removed empty folders.
    """

    dry_run: bool
    bad: list[BadFile] = field(default_factory=list)
    quarantined: list[Path] = field(default_factory=list)
    unpacked: int = 0
    temporary: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)
    kept: list[Removal] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)


def clean(
    paths: RunPaths,
    *,
    merged: bool = False,
    dry_run: bool = False,
    emit: Emit = ignore,
    on_progress: OnProgress | None = None,
    processes: int = 1,
) -> CleanReport:
    """Clean a run directory whose lock the caller holds.

    Move invalid files to quarantine and remove leftover temporary files. Before that, store the valid results of a bad
    pack as shards. With `merged`, instead remove the shards and packs whose results are all in the verified output on
    disk. dry_run: only report. Raise InputError if a link, pipe or device is where a folder or file of the run belongs.
    """
    report = CleanReport(dry_run)
    on_progress = on_progress or (lambda what, done, total: None)
    with storage_errors(paths.root, "cannot be cleaned"):
        paths.check_own_places()
        if merged:
            _remove_merged(paths, report, emit, on_progress, processes)
        else:
            _move_bad(paths, report, emit, on_progress, processes)
            _remove_temporary(paths, report, emit)
    return report


def _move_bad(paths: RunPaths, report: CleanReport, emit: Emit, on_progress: OnProgress, processes: int) -> None:
    files = RunFiles(paths)
    total = files.likely_results or 0
    for done, found in enumerate(read_results(files, processes=processes), 1):
        on_progress("checking", done, total)
        if isinstance(found, BadShard | BadPack):
            report.bad.append(found)
    if report.dry_run:
        return
    for bad in report.bad:
        if isinstance(bad, BadPack):
            report.unpacked += len(unpack(paths, bad, emit))
        report.quarantined.append(quarantine(paths, bad.path, bad.verdict, bad.reason, emit))


def _remove_temporary(paths: RunPaths, report: CleanReport, emit: Emit) -> None:
    of_shards = sorted(paths.temporary_shards())
    of_output = left_overs(paths.output.parent, start_of(paths.output)) if paths.output.parent.is_dir() else []
    of_packs = left_overs(paths.packs, TEMPORARY_PACK) if paths.packs.is_dir() else []
    report.temporary = of_shards + of_packs + of_output
    if report.dry_run or not report.temporary:
        return
    emit("remove-temporary", paths=list(map(str, report.temporary)))
    for path in report.temporary:
        path.unlink(missing_ok=True)


def _remove_merged(paths: RunPaths, report: CleanReport, emit: Emit, on_progress: OnProgress, processes: int) -> None:
    shards, packs = ShardPaths(paths), paths.pack_files()
    places = chain(shards, packs)
    total = len(shards) + len(packs)

    def proofs() -> Iterator[Removal]:
        for done, removal in enumerate(proved(read_contents(places, processes), paths.output), 1):
            on_progress("comparing", done, total)
            yield removal

    def announce(event: str, which: list[Removal]) -> None:
        if event != "kept":
            emit(event, paths=[str(removal.path) for removal in which])

    removals = list(proofs()) if report.dry_run else remove(proofs(), announce)
    report.kept = [removal for removal in removals if removal.reason]
    report.removed = [removal.path for removal in removals if not removal.reason]
    if not report.dry_run:
        report.folders = remove_empty_folders((path.parent for path in report.removed), [paths.results, paths.packs])
