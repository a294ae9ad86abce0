"""Remove sources. A file is removed only after all its results were found in the output on disk."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from leeward.files import storage_errors, sync, sync_folder
from leeward.store.directory.audit import Audit
from leeward.store.directory.index import output_index_path
from leeward.store.directory.lock import Lock
from leeward.store.directory.sources import Source
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.merging.contents import (
    Contents,
    contents_of,
    file_identity,
    keys_of,
    read_contents,
    uncovered,
)
from leeward.store.merging.merge_report import MergeReport, Removal, SourceReport, append_removals
from leeward.store.paths import RunPaths, is_pack, is_run
from leeward.store.rescue.recovery import BadResult
from leeward.wording import listed

_BATCH = 100

Announce = Callable[[str, list[Removal]], None]  # first argument: "removing", "removed" or "kept"


def remove_proved(
    report: MergeReport, folders: Iterable[Path], audits: Iterable[Audit] = (), processes: int = 1
) -> list[Removal]:
    """Remove the sources of a merge whose results are in the output. Log each removal before and after it is done.

    folders: the folders that were given as sources. audits: of the run directories of the sources, whose locks the
    caller holds.
    """
    by_root: dict[Path | None, Audit] = {Path(os.path.realpath(audit.path.parent)): audit for audit in audits}

    def announce(event: str, which: list[Removal]) -> None:
        append_removals(report.logs, event, which)
        if event == "kept":
            return
        paths: dict[Path | None, list[str]] = {}
        for one in which:
            paths.setdefault(_run_root(one.path), []).append(str(one.path))
        for root in paths.keys() & by_root.keys():
            by_root[root].record(event, paths=paths[root], output=str(report.output))

    places = dict.fromkeys(file.place for file in report.files)
    removals = remove(proved(read_contents(map(Path, places), processes), report.output), announce)
    remove_empty_folders((removal.path.parent for removal in removals if not removal.reason), folders)
    return removals


def would_be_removed(report: MergeReport) -> list[Removal]:
    """Return the removals that `remove_proved` would do after this merge, as far as the report shows."""
    output = file_identity(report.output)
    return [
        Removal(file.path, "it is the output" if output and file_identity(file.path) == output else _why_kept(file))
        for file in report.files
    ]


def _why_kept(file: SourceReport) -> str:
    return (_first_problem(file, file.bad) if not file.is_good else "") or file.reason or file.more


def _first_problem(file: SourceReport | FoundFile, bad: Sequence[BadResult | FoundResult]) -> str:
    """Return the verdict on the first bad result of a file, or on the file itself."""
    return f"{bad[0].name}: {bad[0].verdict} ({bad[0].reason})" if bad else f"{file.verdict} ({file.reason})"


@contextlib.contextmanager
def held_runs(sources: Iterable[Source]) -> Iterator[list[Audit]]:
    """Hold the lock of every run directory that contains a source or is beside it. Yield their audit logs.

    Raise HeldError if a live process holds one of the locks, so that no active run loses a shard.
    """
    roots = {root for source in sources if (root := _run_root(source.path)) is not None}
    with contextlib.ExitStack() as stack:
        audits = []
        for root in sorted(roots):
            paths = RunPaths.of(root)
            paths.check_own_places()
            lock = Lock.take(paths.lock)
            stack.callback(lock.release)
            audits.append(Audit(paths.audit, lock.check))
        yield audits


def _run_root(path: Path) -> Path | None:
    """Return the run directory at this path, above it, or beside it if it is an output; None if there is none."""
    real = Path(os.path.realpath(path))
    beside = [real.with_suffix(".run")] if real.suffix == ".h5" else []
    return next((folder for folder in (real, *real.parents, *beside) if is_run(folder)), None)


def proved(sources: Iterable[Contents], output: Path) -> Iterator[Removal]:
    """Yield whether each source can be removed: the output, read from the disk now, must hold all its results."""
    _sync(output)
    proof = contents_of(output)
    for contents in sources:
        yield Removal(contents.path, _why_not(contents, proof), contents.identity)


def _sync(output: Path) -> None:
    """Sync the output: a merge may have been killed after its rename, or a user may have copied the file there."""
    with (
        storage_errors(output, "cannot be synced, so nothing is removed"),
        contextlib.suppress(FileNotFoundError),  # without an output nothing is removed
        output.open("rb") as file,
    ):
        sync(file.fileno())
        sync_folder(output.parent)


def _why_not(contents: Contents, proof: Contents) -> str:
    if contents.identity and proof.identity and contents.identity[:2] == proof.identity[:2]:
        return "it is the output"
    if not proof.is_whole:
        return f"the output could not be verified ({proof.file.reason or 'it holds bad results'})"
    if not contents.file.is_valid:
        return _first_problem(contents.file, contents.bad)
    if contents.file.reason or contents.beyond:
        return contents.file.reason or f"it has content that no result includes: {contents.beyond[0]}"
    lacking = uncovered(contents, proof, to_the_letter=True)
    absent = lacking - proof.pairs
    named = listed(sorted(keys_of(absent or lacking)))
    if absent:
        return f"not in the output: {named}"
    return f"the attributes differ from those in the output: {named}" if lacking else ""


def remove(proofs: Iterable[Removal], announce: Announce, batch: int = _BATCH) -> list[Removal]:
    """Remove the files that have no reason to be kept. Announce each removal before it is done.

    batch: number of files whose removal is announced and confirmed together.
    """
    proofs = iter(proofs)
    removals: list[Removal] = []
    while some := list(islice(proofs, batch)):
        if going := [one for one in some if not one.reason]:
            announce("removing", going)
        done = [one if one.reason else _remove_one(one) for one in some]
        if gone := [one for one in done if not one.reason]:
            announce("removed", gone)
        if kept := [one for one in done if one.reason]:
            announce("kept", kept)
        removals += done
    return removals


def _remove_one(removal: Removal) -> Removal:
    with storage_errors(removal.path, "cannot be removed"):
        if file_identity(removal.path) not in (removal.identity, None):
            return replace(removal, reason="it changed after it was read")
        if is_pack(removal.path):  # remove the index first, so that it is never left without its pack
            output_index_path(removal.path).unlink(missing_ok=True)
        removal.path.unlink(missing_ok=True)
    return removal


def remove_empty_folders(emptied: Iterable[Path], tops: Iterable[Path]) -> list[Path]:
    """Remove the emptied folders, and empty folders above them up to `tops`. Return the removed folders."""
    highest = {Path(os.path.realpath(top)) for top in tops}
    removed = []
    for folder in sorted({Path(os.path.realpath(path)) for path in emptied}, reverse=True):
        while any(map(folder.is_relative_to, highest)) and folder.is_dir() and not any(folder.iterdir()):
            with storage_errors(folder, "cannot be removed"):
                folder.rmdir()
                sync_folder(folder.parent)
            removed.append(folder)
            folder = folder.parent
    return removed
