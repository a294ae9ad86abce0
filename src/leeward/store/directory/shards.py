"""Shards: small HDF5 files with one result each. A stored result is complete, durable and has its final name."""

import contextlib
import errno
import functools
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5py

from leeward.carving import MemoryPages, Pages
from leeward.errors import StorageError
from leeward.files import NotAFileError, kind_of, open_regular, replace_file, storage_errors, sync_folder
from leeward.store.directory.quarantine import quarantine
from leeward.store.format.direct import sealed_results
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.groups import LIBVER, root_attributes, write_group, write_root
from leeward.store.format.keys import Key
from leeward.store.format.kind import AnyResult, Value
from leeward.store.format.kinds import key_or_none, parse_key
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import read_files
from leeward.store.paths import RunPaths, is_shard

_ANY = RunPaths(Path("layouts.h5"))  # the folder of a shard is the same in all runs


class BadShard(NamedTuple):
    """An invalid file at the path of a shard."""

    path: Path
    verdict: Verdict
    reason: str


def key_of_shard(path: Path) -> Any:
    """Return the key in the name of a shard. Raise InputError if there is none."""
    return parse_key(path.name.removesuffix(".h5"))


class ShardPaths:
    """The paths of all shards, kept as keys to save memory. Other files come last.

    keys: the keys in the names of the shards that are in the right folder.
    """

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        self.keys: list[Key] = []
        self._others: list[Path] = []
        for path in paths.shards():
            key = key_or_none(path.name.removesuffix(".h5"))
            if key is not None and paths.shard(key) == path:
                self.keys.append(key)
            else:
                self._others.append(path)
        self.keys.sort()
        self._others.sort()

    def __len__(self) -> int:
        return len(self.keys) + len(self._others)

    def __iter__(self) -> Iterator[Path]:
        yield from map(self._paths.shard, self.keys)
        yield from self._others


def was_packed(file: FoundFile) -> bool:
    """Return whether the file was a shard that is gone now, in a run that packs its results."""
    if file.size >= 0 or not is_shard(file.path) or os.path.lexists(file.path):
        return False
    return RunPaths.of(file.path.parents[2]).packs.is_dir()


def read_shards(
    paths: Iterable[Path], *, contents: bool = False, processes: int = 1
) -> Iterator[FoundResult | BadShard]:
    """Yield one answer per path, in order. Raise StorageError if a file cannot be opened for a temporary reason."""
    results: list[FoundResult] = []
    for found in read_files(paths, contents=contents, processes=processes):
        if isinstance(found, FoundResult):
            results.append(found)
        else:
            if found.is_passing:
                raise StorageError(f"{found.path}: {found.reason}")
            yield judged(found, results)
            results = []


def judged(file: FoundFile, results: Sequence[FoundResult]) -> FoundResult | BadShard:
    """Return the only result of a shard, or a BadShard with the reason."""
    bad = next((found for found in results if not found.is_valid), None)
    if file.verdict is not Verdict.VALID:
        return BadShard(file.path, file.verdict, file.reason)
    if bad is not None:
        return BadShard(file.path, bad.verdict, f"{bad.name}: {bad.reason}")
    if len(results) != 1:
        return BadShard(file.path, Verdict.WRONG_STRUCTURE, f"it holds {len(results)} results; expected one")
    result = results[0]
    if result.key is None or file.path.name != f"{result.key}.h5":
        return BadShard(file.path, Verdict.WRONG_STRUCTURE, f"it holds {result.key}, not the key in its name")
    folder = _ANY.shard(result.key).parent.name
    if file.path.parent.name != folder:  # another copy may be in the right folder
        return BadShard(file.path, Verdict.WRONG_STRUCTURE, f"it is in the wrong folder; expected {folder}")
    return result


# --- store a result -------------------------------------------------------------------------------------------------


def shard_bytes(result: AnyResult) -> bytes:
    """Return the content of a shard."""
    return file_bytes([result], {})


def file_bytes(results: Sequence[AnyResult], attributes: Mapping[str, Value]) -> bytes:
    """Return the content of a file with these results, made in memory, because libhdf5 may crash on a full disk."""
    image = io.BytesIO()
    with h5py.File(image, "w", libver=LIBVER) as file:
        write_root(file, {**attributes, **(root_attributes(results[0]) if results else {})})
        for result in results:
            write_group(file, result)
    return image.getvalue()


def result_in(content: bytes, key: Any) -> Any:
    """Return the result of this key in the bytes of a shard from another machine; None unless it is intact."""
    return _only_result(MemoryPages(content), key)


def _only_result(pages: Pages, key: Any) -> Any:
    """Return the only result of a small file if it is intact and has this key, else None. Does not use libhdf5."""
    found = sealed_results(pages)
    return None if found is None or found[1].keys() != {str(key)} else found[1][str(key)]


def _is_stored(handle: int, result: AnyResult) -> bool:
    """Return whether a file that was just written holds the result with its seal."""
    found = _only_result(Pages(handle), result.key)
    return found is not None and found.seal == result.seal


def _holds(path: Path, key: Any) -> bool:
    """Return whether a file holds an intact result of this key."""
    try:
        handle = open_regular(path)
    except NotAFileError:
        return False
    try:
        return _only_result(Pages(handle), key) is not None
    finally:
        os.close(handle)


def _make_folder(folder: Path) -> None:
    """Create a folder durably, or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    if (kind := kind_of(folder)) != "folder":
        raise NotAFileError(errno.ENOTDIR, f"{folder} is a {kind}; expected a folder")
    try:
        sync_folder(folder.parent)
    except OSError:
        with contextlib.suppress(OSError):  # not empty: the process that put a file there syncs it
            folder.rmdir()
        raise


@functools.cache
def _sync_name(folder: Path) -> None:
    """Sync the name of a folder, once per process: its creator may have been killed before the sync."""
    sync_folder(folder.parent)


def store_result(paths: RunPaths, result: AnyResult) -> Path:
    """Store a result durably, and return its path.

    If the key already has a valid result, keep that one: two correct computations have the same digest. After a
    StorageError no incomplete file has the final name, and the same call can be repeated.
    """
    path = paths.shard(result.key)
    content = shard_bytes(result)
    with storage_errors(path, "cannot be stored"):
        if path.exists():
            if _holds(path, result.key):
                _sync_name(path.parent)
                sync_folder(path.parent)  # an earlier call may have been killed after the rename
                return path
            quarantine(paths, path, Verdict.UNREADABLE, "an invalid file at the path of a new result")
        if kind_of(path.parent) != "folder":
            _make_folder(path.parent)
        _sync_name(path.parent)
        replace_file(path, content, check=lambda handle: _is_stored(handle, result))
    return path
