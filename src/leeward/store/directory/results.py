"""All results of a run directory, those in packs and those in shards: one answer for each, and what is wrong."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from leeward.errors import StorageError
from leeward.store.directory.index import told_count
from leeward.store.directory.shards import BadShard, ShardPaths, read_shards
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import read_files
from leeward.store.paths import RunPaths

_MOST_NAMED = 5


class BadPack(NamedTuple):
    """A pack that is not whole. rivals: of these keys it holds another result than the one that counts."""

    path: Path
    verdict: Verdict
    reason: str
    rivals: frozenset[Key] = frozenset()


class Doubled(NamedTuple):
    """A shard whose result a pack holds too: whoever packed it did not come to removing it."""

    key: Key
    path: Path
    pack: Path


BadFile = BadShard | BadPack
Answer = FoundResult | BadShard | BadPack | Doubled


class RunFiles:
    """The files with the results of a run directory, as they are now."""

    def __init__(self, paths: RunPaths) -> None:
        self.shards = ShardPaths(paths)
        self.packs = paths.pack_files()  # after the shards: what is packed in between is seen twice, and not missed

    def __len__(self) -> int:
        return len(self.shards) + len(self.packs)

    @property
    def likely_results(self) -> int | None:
        """How many results there are, by names and caches; None where these do not tell."""
        counts = [told_count(pack) for pack in self.packs]
        known = [count for count in counts if count is not None]
        return len(self.shards) + sum(known) if len(known) == len(counts) else None


def read_results(files: RunFiles, *, contents: bool = False, processes: int = 1) -> Iterator[Answer]:
    """Every result once: from the first pack that holds it, else from its shard; then what is bad, or there twice.

    Whoever stored a key first keeps it, as everywhere in the store: another result of the key is bad, and its file is
    named. A pack in which anything is bad is told as a whole, after all that is good in it. A StorageError where the
    machine cannot open a file now: it may be good.
    """
    packs = _Packs(files.packs)
    yield from packs.read(contents, processes)
    for found in read_shards(files.shards, contents=contents, processes=processes):
        if isinstance(found, BadShard) or found.key is None or not packs.note_again(found, found.key):
            yield found
    yield from packs.judged()


class _Again(NamedTuple):
    """A result of a key that was found before."""

    key: Key
    path: Path
    digest: str


class _Packs:
    """What packs hold, in little memory: of each key only in which pack it is."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._all = frozenset(paths)
        self._where: dict[Key, int] = {}
        self._again: dict[int, list[_Again]] = {}
        self._bad: dict[Path, BadPack] = {}

    def read(self, contents: bool, processes: int) -> Iterator[FoundResult]:
        number = 0
        reasons: list[str] = []
        for found in read_files(self._paths, contents=contents, processes=processes):
            if isinstance(found, FoundFile):
                self._note_file(found, reasons)
                number, reasons = number + 1, []
            elif not found.is_valid or not found.sealed or found.key is None:
                reasons.append(f"{found.name}: {found.verdict}, {found.reason or 'it has no seal'}")
            elif not self.note_again(found, found.key):
                self._where[found.key] = number
                yield found

    def _note_file(self, file: FoundFile, reasons: list[str]) -> None:
        if file.is_passing:
            raise StorageError(f"{file.path}: {file.reason}")
        if file.verdict is Verdict.VALID and not file.sealed:
            reasons = ["a file of other origin in the place of a pack"]
        if file.verdict is not Verdict.VALID:
            self._bad[file.path] = BadPack(file.path, file.verdict, file.reason)
        elif reasons:
            more = f" and {len(reasons) - _MOST_NAMED} more" if len(reasons) > _MOST_NAMED else ""
            reason = "; ".join(reasons[:_MOST_NAMED]) + more
            self._bad[file.path] = BadPack(file.path, Verdict.WRONG_STRUCTURE, reason)

    def note_again(self, found: FoundResult, key: Key) -> bool:
        """Whether a pack holds a result of this key already; which of them counts is told in the end."""
        number = self._where.get(key)
        if number is None:
            return False
        self._again.setdefault(number, []).append(_Again(key, found.path, found.digest))
        return True

    def judged(self) -> Iterator[BadShard | BadPack | Doubled]:
        """What is bad, and what is there twice."""
        rivals: dict[Path, list[Key]] = {}
        for number, again in self._again.items():
            pack = self._paths[number]
            digests = _digests(pack, {one.key for one in again})
            for one in again:
                if one.digest != digests.get(one.key):
                    rivals.setdefault(one.path, []).append(one.key)
                elif one.path not in self._all:
                    yield Doubled(one.key, one.path, pack)
        for path, keys in rivals.items():
            yield self._rival(path, keys)
        yield from (bad for path, bad in self._bad.items() if path not in rivals)

    def _rival(self, path: Path, keys: list[Key]) -> BadShard | BadPack:
        first = self._paths[self._where[keys[0]]]
        reason = f"another result of {min(keys)} was stored before, and is in {first}"
        if path not in self._all:
            return BadShard(path, Verdict.WRONG_STRUCTURE, reason)
        bad = self._bad.get(path, BadPack(path, Verdict.WRONG_STRUCTURE, reason))
        return bad._replace(rivals=frozenset(keys))


def _digests(pack: Path, keys: set[Key]) -> dict[Key, str]:
    found = read_files([pack], keys={pack: [str(key) for key in sorted(keys)]})
    return {one.key: one.digest for one in found if isinstance(one, FoundResult) and one.key is not None}
