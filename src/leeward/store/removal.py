"""Sources that are needed no more: a file goes only when all it holds was found again in the output on the disk."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from leeward.errors import StorageError
from leeward.files import sync_folder
from leeward.store.contents import Contents, contents_of, identity, keys_of, read_contents, uncovered
from leeward.store.merge_log import append_removals
from leeward.store.merge_report import MergeReport, Removal

_BATCH = 100  # files whose removal is announced, and confirmed, in one go

Announce = Callable[[str, list[Removal]], None]  # "removing", "removed" or "kept", and which


def remove_proved(report: MergeReport, folders: Iterable[Path], processes: int = 1) -> list[Removal]:
    """The sources of a merge, each recorded in its logs before and after; folders: those that were given as sources."""
    places = dict.fromkeys(file.place for file in report.files)
    judged = proved(map(Path, places), report.output, processes)
    removals = remove(judged, lambda event, which: append_removals(report.logs, event, which))
    remove_empty_folders((removal.path.parent for removal in removals if not removal.reason), folders)
    return removals


def proved(paths: Iterable[Path], output: Path, processes: int = 1) -> Iterator[tuple[Removal, Contents]]:
    """What each file holds, and why it has to stay; both are read from the disk now."""
    proof = contents_of(output)
    for contents in read_contents(paths, processes):
        yield Removal(contents.path, _why_not(contents, proof)), contents


def _why_not(contents: Contents, proof: Contents) -> str:
    if contents.identity[:2] == proof.identity[:2]:
        return "it is the output"
    if not proof.is_whole:
        return f"the output could not be verified ({proof.file.reason or 'it holds bad results'})"
    if not contents.file.is_valid:
        bad = next((f"{found.name}: {found.verdict} ({found.reason})" for found in contents.bad), "")
        return bad or f"{contents.file.verdict} ({contents.file.reason})"
    if contents.file.reason or contents.beyond:
        return contents.file.reason or f"there is more in {contents.beyond[0]}"
    lacking = sorted(keys_of(uncovered(contents, proof)))
    return f"not in the output: {', '.join(lacking[:5])}{', …' * (len(lacking) > 5)}" if lacking else ""


def remove(judged: Iterable[tuple[Removal, Contents]], announce: Announce) -> list[Removal]:
    """Remove what has no reason to stay; a StorageError ends it, with all that is gone announced before."""
    removals: list[Removal] = []
    batch: list[tuple[Removal, Contents]] = []
    for removal, contents in judged:
        if removal.reason:
            announce("kept", [removal])
            removals.append(removal)
            continue
        batch.append((removal, contents))
        if len(batch) >= _BATCH:
            removals += _remove_batch(batch, announce)
            batch = []
    return removals + _remove_batch(batch, announce)


def _remove_batch(batch: list[tuple[Removal, Contents]], announce: Announce) -> list[Removal]:
    if not batch:
        return []
    announce("removing", [removal for removal, _ in batch])
    removals = [_remove_one(removal, contents) for removal, contents in batch]
    announce("removed", [removal for removal in removals if not removal.reason])
    kept = [removal for removal in removals if removal.reason]
    if kept:
        announce("kept", kept)
    return removals


def _remove_one(removal: Removal, contents: Contents) -> Removal:
    try:
        if identity(removal.path) != contents.identity:
            return Removal(removal.path, "it changed while it was looked at")
        removal.path.unlink()
    except FileNotFoundError:
        return removal
    except OSError as error:
        raise StorageError(f"{removal.path}: cannot be removed ({error})") from error
    return removal


def remove_empty_folders(emptied: Iterable[Path], tops: Iterable[Path]) -> list[Path]:
    """Those in which something was removed, and the ones above them, as far as `tops`; which of them are gone."""
    highest = {Path(os.path.realpath(top)) for top in tops}
    removed = []
    for folder in sorted({Path(os.path.realpath(path)) for path in emptied}, reverse=True):
        while _is_within(folder, highest) and folder.is_dir() and not any(folder.iterdir()):
            try:
                folder.rmdir()
                sync_folder(folder.parent)
            except OSError as error:
                raise StorageError(f"{folder}: cannot be removed ({error})") from error
            removed.append(folder)
            folder = folder.parent
    return removed


def _is_within(folder: Path, highest: set[Path]) -> bool:
    return folder in highest or any(parent in highest for parent in folder.parents)
