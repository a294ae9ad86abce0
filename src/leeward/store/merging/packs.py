"""Packs: files with many verified results each, so that a million results do not need a million files.

A pack is a merged file that never changes. A shard is removed only after its result was found in the pack on disk. If
a pack is damaged later, its valid results become shards again before it goes to quarantine.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from leeward.errors import StorageError
from leeward.events import Emit, ignore
from leeward.files import kind_of, storage_errors, sync_folder
from leeward.store.directory.index import IndexLines, indexed_count, output_index_path, write_output_index
from leeward.store.directory.results import BadPack, Doubled
from leeward.store.directory.shards import BadShard, judged, store_result
from leeward.store.directory.temporary import remove_left_overs, workspace
from leeward.store.format.found import FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.kind import Value
from leeward.store.format.layout_result import Result
from leeward.store.isolated.reader import read_files
from leeward.store.merging.contents import Contents, contents_of, read_contents
from leeward.store.merging.merge_report import Removal
from leeward.store.merging.removal import proved, remove
from leeward.store.merging.writer import Written, write_merged
from leeward.store.paths import RunPaths
from leeward.store.rescue.recovery import Recoverer

TEMPORARY_PACK = ".pack-"  # prefix of temporary names

_WORKSPACE = "unpacking"  # one name for all packs, so that the next workspace removes that of a killed process
_BATCH = 1000  # shards whose removal is announced and confirmed together


@dataclass
class Packed:
    """The outcome of packing.

    count: results in the pack. bad: invalid shards, which stay in their place. kept: shards whose results are packed,
    but that were not removed, with the reason.
    """

    path: Path
    count: int = 0
    size: int = 0
    bad: list[BadShard] = field(default_factory=list)
    kept: list[Removal] = field(default_factory=list)


def pack(
    paths: RunPaths, keys: Sequence[Key], path: Path, attributes: Mapping[str, Value], *, emit: Emit = ignore
) -> Packed:
    """Write the results of these shards to one file, and remove the shards whose results were verified in it.

    path: from `RunPaths.new_pack`. attributes: those of a merged file. After a StorageError the same call with the same
    path resumes where it was interrupted.
    """
    packed = Packed(path)
    with storage_errors(paths.packs, "cannot be created"):
        paths.packs.mkdir(parents=True, exist_ok=True)
        sync_folder(paths.root)  # even if it exists: its creator may have been killed before the sync
        remove_left_overs(paths.packs, TEMPORARY_PACK)
        known = contents_of(path) if os.path.lexists(path) else None
    shards = [paths.shard(key) for key in keys]
    if known is not None and known.is_whole:  # an earlier call wrote it
        packed.count, packed.size = len(known.pairs), known.file.size
        sources: Iterable[Contents] = read_contents(filter(os.path.lexists, shards))
    else:
        if known is not None:  # damaged: it is recovered later
            packed.path = paths.new_pack()
        sources = _write(shards, packed, attributes, emit)
        if not packed.count:
            return packed
    packed.kept = _remove(sources, packed.path, emit)
    emit("packed", pack=str(packed.path), results=packed.count, size=packed.size, kept=len(packed.kept))
    return packed


def _write(shards: Sequence[Path], packed: Packed, attributes: Mapping[str, Value], emit: Emit) -> list[Contents]:
    """Write the pack unless all shards are invalid. Return the contents of the valid ones."""
    good: list[Contents] = []
    results = _valid_results(shards, good, packed.bad)
    first = next(results, None)
    if first is None:
        return good

    def announce(written: Written) -> None:
        emit("pack", pack=str(packed.path), results=written.count, size=written.size, bad=len(packed.bad))

    written = write_merged(packed.path, chain([first], results), attributes, before=announce)
    packed.count, packed.size = written.count, written.size
    return good


def _valid_results(shards: Sequence[Path], good: list[Contents], bad: list[BadShard]) -> Iterator[Result]:
    """Yield the results of the valid shards. good: collects their contents. bad: collects the other shards."""
    for contents in read_contents(shards, results=True):
        if contents.file.is_passing:
            raise StorageError(f"{contents.path}: {contents.file.reason}")
        shard = judged(contents.file, contents.results)
        contents.results = []
        if isinstance(shard, BadShard):
            bad.append(shard)
        elif shard.result is not None:
            good.append(contents)
            yield shard.result


def _remove(shards: Iterable[Contents], pack: Path, emit: Emit) -> list[Removal]:
    """Remove the shards whose results were verified in the pack. Return the others. Events are short to save space."""

    def announce(event: str, which: list[Removal]) -> None:
        if event == "removing":
            emit(event, pack=str(pack), shards=[removal.path.stem for removal in which])
        elif event == "removed":
            emit(event, pack=str(pack), shards=len(which))

    return [removal for removal in remove(proved(shards, pack), announce, batch=_BATCH) if removal.reason]


def finish_packing(paths: RunPaths, doubled: Iterable[Doubled], emit: Emit = ignore) -> list[Removal]:
    """Finish interrupted packing: remove packed shards and write indexes. Return the kept shards, with reasons."""
    by_pack: dict[Path, list[Path]] = {}
    for one in doubled:
        by_pack.setdefault(one.pack, []).append(one.path)
    kept: list[Removal] = []
    for path, shards in by_pack.items():
        kept += _remove(read_contents(shards), path, emit)
    with storage_errors(paths.packs, "an index cannot be written"):
        packs = paths.pack_files()
        if packs:
            remove_left_overs(paths.packs, TEMPORARY_PACK)
        for path in packs:
            if indexed_count(path) is None:
                _write_index(path)
    return kept


def _write_index(path: Path) -> None:
    lines = IndexLines()
    for found in read_files([path]):
        if isinstance(found, FoundResult) and found.is_valid:
            lines.add(found.index_line())
    write_output_index(path, lines)


def unpack(paths: RunPaths, bad: BadPack, emit: Emit = ignore) -> list[FoundResult]:
    """Recover the sealed results of a bad pack, store them as shards, and return them.

    The pack stays, so that the caller can move it to quarantine. A link or a pipe at its path is ignored.
    """
    if kind_of(bad.path) != "file":
        return []
    with (
        storage_errors(bad.path, "its results cannot be recovered"),
        workspace(paths.packs / _WORKSPACE) as folder,
        Recoverer(folder) as recoverer,
    ):
        recovery = recoverer.recover(bad.path)
    found = [one for one in recovery.results if one.sealed and one.key not in bad.superseded]
    for one in found:
        if one.result is not None:
            store_result(paths, one.result)
    lost = [one.name for one in recovery.lost]
    emit("unpacked", pack=str(bad.path), results=len(found), lost=lost, other=sorted(map(str, bad.superseded)))
    with storage_errors(bad.path, "its index cannot be removed"):
        output_index_path(bad.path).unlink(missing_ok=True)
    return found
