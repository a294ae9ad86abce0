"""Compact contents of files, to compare two files before one is replaced or removed."""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from leeward.errors import StorageError
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import Result
from leeward.store.isolated.reader import Limits, read_files

Pair = bytes  # the text of a key, then a digest: one object saves memory if there are a hundred thousand
Identity = tuple[int, int, int, int]
_DIGEST = 32  # bytes


@dataclass(eq=False)
class Contents:
    """The results in one file.

    pairs: keys and digests of the valid results. foreign: a digest of the other attributes of foreign results. names:
    group names that differ from the key. beyond: content that a result does not include. results: all of them, if
    requested. identity: of the file before it was read; None if it could not be determined.
    """

    pairs: set[Pair] = field(default_factory=set)
    foreign: dict[Pair, bytes] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    bad: list[FoundResult] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)
    results: list[FoundResult] = field(default_factory=list)
    file: FoundFile = field(init=False)
    identity: Identity | None = field(init=False)

    def add(self, found: FoundResult) -> None:
        if not found.is_valid:
            self.bad.append(found)
            return
        self.pairs.add(pair(found))
        if other := found.type.details_digest(found.attributes):
            self.foreign[pair(found)] = other
        if found.name != str(found.key):
            self.names.setdefault(str(found.key), []).append(found.name)
        if not found.sealed and "ignored" in found.attributes:
            self.beyond.append(f"{found.name}: {found.attributes['ignored']}")

    def names_of(self, keys: Iterable[str]) -> list[str]:
        return [name for key in keys for name in self.names.get(key, [key])]

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def is_whole(self) -> bool:
        """True if leeward made the file, it is readable to its end, and every result is valid."""
        return self.file.sealed and self.file.is_valid


def file_identity(path: Path) -> Identity | None:
    """Return values that change if the file is replaced or changed; None if there is no file."""
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def make_pair(key: Key | None, digest: str) -> Pair:
    """Return a key and a digest as one object."""
    return str(key).encode() + bytes.fromhex(digest)


def pair(found: FoundResult) -> Pair:
    """Return the key and the digest of a result."""
    return make_pair(found.key, found.digest)


def keys_of(pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield the texts of the keys."""
    return (one[:-_DIGEST].decode() for one in pairs)


def read_contents(paths: Iterable[Path], processes: int = 1, *, results: bool = False) -> Iterator[Contents]:
    """Yield the contents of each file in turn. No path may occur twice. results: also keep all results."""
    identities: dict[Path, Identity | None] = {}

    def identified() -> Iterator[Path]:
        for path in paths:
            with contextlib.suppress(OSError):  # the reader reports the problem
                identities[path] = file_identity(path)
            yield path

    contents = Contents()
    for found in read_files(identified(), contents=results, processes=processes):
        if isinstance(found, FoundFile):
            contents.file, contents.identity = found, identities.pop(found.path, None)
            yield contents
            contents = Contents()
        else:
            contents.add(found)
            if results:
                contents.results.append(found)


def read_groups(
    names: Mapping[Path, Collection[str]],
    limits: Limits = Limits(),  # noqa: B008 (it is frozen)
) -> Iterator[tuple[FoundResult, Result]]:
    """Yield the valid results among the named groups of some files."""
    for found in read_files(names, contents=True, keys=names, limits=limits):
        if isinstance(found, FoundResult) and found.result is not None:
            yield found, found.result


def contents_of(path: Path) -> Contents:
    """Return the contents of one file."""
    return next(iter(read_contents([path])))


def uncovered(old: Contents, new: Contents, *, to_the_letter: bool = False) -> set[Pair]:
    """Return the results of `old` that `new` neither holds nor makes redundant.

    to_the_letter: also require the other attributes of a foreign result, beyond its layout and AEP.
    """
    missing = old.pairs - new.pairs
    if to_the_letter:
        missing |= {one for one, about in old.foreign.items() if new.foreign.get(one) != about}
    if not missing:  # the usual case: many small files are compared with a large one
        return missing
    keys = set(keys_of(missing))
    keys &= {key for key in keys_of(new.pairs) if key in keys}
    if not keys:
        return missing
    names = {new.path: new.names_of(keys), old.path: old.names_of(keys)}
    newer: dict[str, Result] = {}
    for found, result in read_groups(names):
        key = str(found.key)
        if found.path == new.path:
            newer[key] = result
        elif key in newer and newer[key].covers(result, to_the_letter=to_the_letter):
            missing.discard(pair(found))
    return missing


def demand(contents: Contents, expected: set[Pair]) -> None:
    """Raise StorageError unless the file holds exactly these results with intact seals."""
    if contents.is_whole and contents.pairs == expected:
        return
    why = contents.file.reason or next((f"{found.name}: {found.reason}" for found in contents.bad), "")
    if not why:
        lacking, beyond = len(expected - contents.pairs), len(contents.pairs - expected)
        why = f"{lacking} results are missing, {beyond} have changed"
    raise StorageError(f"{contents.path}: the data read back differ from those written ({why}); is the disk failing?")
