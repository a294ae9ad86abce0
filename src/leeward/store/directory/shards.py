"""All shards of a run directory, in the order of their keys: each with its one result, or with what is wrong."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, overload

from leeward.errors import InputError, StorageError
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import read_files
from leeward.store.paths import RunPaths, is_shard, key_of_shard

_ANY = Path("layouts.h5")  # the folder of a shard is the same in all runs


class BadShard(NamedTuple):
    """A file that should be a shard and is none."""

    path: Path
    verdict: Verdict
    reason: str


class ShardPaths(Sequence[Path]):
    """The paths of all shards, as keys, of which a hundred thousand take little memory; what is no shard comes last."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        self._keys: list[Key] = []
        self._others: list[Path] = []
        for path in paths.shards():
            try:
                key = key_of_shard(path)
            except InputError:
                self._others.append(path)
                continue
            if paths.shard(key) == path:
                self._keys.append(key)
            else:
                self._others.append(path)
        self._keys.sort()
        self._others.sort()

    @property
    def keys(self) -> Sequence[Key]:
        """Of those that are where they belong, by their names."""
        return self._keys

    def __len__(self) -> int:
        return len(self._keys) + len(self._others)

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> list[Path]: ...
    def __getitem__(self, index: int | slice) -> Path | list[Path]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if index < len(self._keys):
            return self._paths.shard(self._keys[index])
        return self._others[index - len(self._keys)]


def was_packed(file: FoundFile) -> bool:
    """Whether what should have been read was a shard that is not there any more, in a run that packs its results."""
    if file.size >= 0 or not is_shard(file.path) or os.path.lexists(file.path):
        return False
    return RunPaths.of(file.path.parents[2]).packs.is_dir()


def read_shards(
    paths: Sequence[Path], *, contents: bool = False, processes: int = 1
) -> Iterator[FoundResult | BadShard]:
    """One answer for each path, in order. A StorageError where the machine cannot open a file now: it may be good."""
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
    """The one result of a file in the place of a shard, or what is wrong with it."""
    bad = next((found for found in results if not found.is_valid), None)
    if file.verdict is not Verdict.VALID:
        return BadShard(file.path, file.verdict, file.reason)
    if bad is not None:
        return BadShard(file.path, bad.verdict, f"{bad.name}: {bad.reason}")
    if len(results) != 1:
        return BadShard(file.path, Verdict.WRONG_STRUCTURE, f"it holds {len(results)} results; expected one")
    result = results[0]
    if result.key is None or file.path.name != f"{result.key}.h5":
        return BadShard(file.path, Verdict.WRONG_STRUCTURE, f"it holds {result.key}, which its name does not say")
    folder = RunPaths(_ANY).shard(result.key).parent.name
    if file.path.parent.name != folder:  # it may be there twice
        return BadShard(file.path, Verdict.WRONG_STRUCTURE, f"it belongs into the folder {folder}")
    return result
