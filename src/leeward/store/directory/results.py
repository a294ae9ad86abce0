"""Read all results of a run directory, from packs and shards, each once, and report what is wrong."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from leeward.errors import StorageError
from leeward.store.directory.index import indexed_count
from leeward.store.directory.shards import BadShard, ShardPaths, read_shards
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import read_files
from leeward.store.paths import RunPaths
from leeward.wording import listed


class BadPack(NamedTuple):
    """A pack that is invalid or holds an invalid result. superseded: keys whose valid result is in an older file."""

    path: Path
    verdict: Verdict
    reason: str
    superseded: frozenset[Key] = frozenset()


class Doubled(NamedTuple):
    """A shard whose result is also in a pack, because packing was interrupted before the removal."""

    key: Key
    path: Path
    pack: Path


BadFile = BadShard | BadPack
Answer = FoundResult | BadShard | BadPack | Doubled


class RunFiles:
    """The files with the results of a run directory, as they are now."""

    def __init__(self, paths: RunPaths) -> None:
        self.shards = ShardPaths(paths)
        self.packs = paths.pack_files()  # after the shards: a result packed in between is then seen twice, not missed

    def __len__(self) -> int:
        return len(self.shards) + len(self.packs)

    @property
    def likely_results(self) -> int | None:
        """The number of results according to file names and indexes; None if an index is missing."""
        counts = [indexed_count(pack) for pack in self.packs]
        known = [count for count in counts if count is not None]
        return len(self.shards) + sum(known) if len(known) == len(counts) else None


def read_results(files: RunFiles, *, contents: bool = False, processes: int = 1) -> Iterator[Answer]:
    """Yield every result once, from the first pack that holds it, else from its shard; then bad and doubled files.

    The first stored result of a key is the valid one. A file with a different result of the key is bad. A pack with
    bad results is reported after its good results. Raise StorageError if a file cannot be opened for a
    temporary reason.
    """
    packs = _Packs(files.packs)
    yield from packs.read(contents, processes)
    for found in read_shards(files.shards, contents=contents, processes=processes):
        if isinstance(found, BadShard) or found.key is None or not packs.note_again(found, found.key):
            yield found
    yield from packs.judged()


class _Again(NamedTuple):
    """Another result of a key that a pack holds."""

    key: Key
    path: Path
    digest: str


class _Packs:
    """The pack of each key, stored in little memory."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._all = frozenset(paths)
        self._where: dict[Key, int] = {}
        self._again: list[_Again] = []
        self._bad: dict[Path, BadPack] = {}

    def read(self, contents: bool, processes: int) -> Iterator[FoundResult]:
        number = 0
        reasons: list[str] = []
        for found in read_files(self._paths, contents=contents, processes=processes):
            if isinstance(found, FoundFile):
                self._note_file(found, reasons)
                number, reasons = number + 1, []
            elif not found.is_valid or not found.sealed or found.key is None:
                reasons.append(f"{found.name}: {found.verdict} ({found.reason or 'it has no seal'})")
            elif not self.note_again(found, found.key):
                self._where[found.key] = number
                yield found

    def _note_file(self, file: FoundFile, reasons: list[str]) -> None:
        if file.is_passing:
            raise StorageError(f"{file.path}: {file.reason}")
        if file.verdict is Verdict.VALID and not file.sealed:
            reasons = ["it was not written by leeward; expected a pack"]
        if file.verdict is not Verdict.VALID:
            self._bad[file.path] = BadPack(file.path, file.verdict, file.reason)
        elif reasons:
            self._bad[file.path] = BadPack(file.path, Verdict.WRONG_STRUCTURE, listed(reasons))

    def note_again(self, found: FoundResult, key: Key) -> bool:
        """Return whether a pack already holds this key. If so, keep the result for `judged`."""
        if key not in self._where:
            return False
        self._again.append(_Again(key, found.path, found.digest))
        return True

    def judged(self) -> Iterator[BadShard | BadPack | Doubled]:
        """Yield the bad and the doubled files."""
        names: dict[Path, list[str]] = {}
        for one in self._again:
            names.setdefault(self._pack_of(one.key), []).append(str(one.key))
        first = {found.key: found.digest for found in read_files(names, keys=names) if isinstance(found, FoundResult)}
        superseded: dict[Path, list[Key]] = {}
        for one in self._again:
            if one.digest != first.get(one.key):
                superseded.setdefault(one.path, []).append(one.key)
            elif one.path not in self._all:
                yield Doubled(one.key, one.path, self._pack_of(one.key))
        for path, keys in superseded.items():
            yield self._superseded(path, keys)
        yield from (bad for path, bad in self._bad.items() if path not in superseded)

    def _pack_of(self, key: Key) -> Path:
        return self._paths[self._where[key]]

    def _superseded(self, path: Path, keys: list[Key]) -> BadShard | BadPack:
        reason = f"{self._pack_of(min(keys))} has another result of {min(keys)}, which was stored first"
        if path not in self._all:
            return BadShard(path, Verdict.WRONG_STRUCTURE, reason)
        bad = self._bad.get(path, BadPack(path, Verdict.WRONG_STRUCTURE, reason))
        return bad._replace(superseded=frozenset(keys))
