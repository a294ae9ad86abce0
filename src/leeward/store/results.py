"""The results of one kind in a file or a run directory, as a mapping."""

import abc
import copy
import difflib
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from leeward.errors import BadSourceError, InputError, LeewardError, StorageError
from leeward.files import NotAFileError, read_regular
from leeward.store.directory.shards import was_packed
from leeward.store.directory.sources import gather
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.kind import AnyResult, Value
from leeward.store.format.kinds import kind_name
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import Reader, read_files
from leeward.store.paths import LONGEST_CAMPAIGN, RunPaths, is_run

AnyKey = TypeVar("AnyKey", bound=tuple[int, ...])
OneResult = TypeVar("OneResult", bound=AnyResult)

_OPENED_BY = {"layouts": "leeward.open_layouts", "evaluations": "leeward.open_study"}
_KIND = re.compile(r"^kind: *(\w+)", re.MULTILINE)


class NoResultError(LeewardError, KeyError):
    """No result has this key."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show it in quotes


class BadResultError(LeewardError):
    """The result of this key is damaged."""


class Results(Mapping[AnyKey, OneResult], Generic[AnyKey, OneResult], abc.ABC):
    """A mapping from keys to results, sorted by key. A child process reads each result on access.

    attributes: of the file itself. campaign_text: the frozen campaign of the results, "" if unknown. bad: damaged files
    and results. Of several results of a key, the first one found counts. also: a second path, read after `path`.

    Each kind is a subclass. KIND: its name in files.
    """

    KIND: ClassVar[str]

    def __init__(self, path: Path, also: Path | None = None) -> None:
        self.path = path
        self.attributes: Mapping[str, Value] = {}
        self.bad: list[FoundResult | FoundFile] = []
        self._places: dict[AnyKey, tuple[Path, str]] = {}
        self._reader = Reader(contents=True)
        places = [path] if also is None else [path, also]
        for found in read_files(file for source in gather(places) for file in source.files):
            self._add(found)
        self._places = dict(sorted(self._places.items()))
        self.campaign_text = self._find_campaign()
        named = _KIND.search(self.campaign_text)
        if not self._places and named is not None:
            self._demand_kind(path, named[1])
        if self.bad:
            first = self.bad[0]
            where = first.name if isinstance(first, FoundResult) else first.path.name
            warnings.warn(
                f"{path}: left out {len(self.bad)} damaged entries; first: {where} ({first.verdict}: {first.reason}); "
                f"run leeward check {path}",
                stacklevel=4,  # the caller of the function that makes the mapping
            )

    def _add(self, found: FoundResult | FoundFile) -> None:
        if isinstance(found, FoundFile) and was_packed(found):
            return  # its pack is read later
        if found.verdict is not Verdict.VALID:
            self.bad.append(found)
        elif isinstance(found, FoundFile):
            if found.sealed:
                self._demand_kind(found.path, kind_name(found.attributes))
            self.attributes = self.attributes or found.attributes
        elif found.key is not None:
            self._demand_kind(found.path, found.kind)
            key: Any = found.key
            if key not in self._places:
                name = "" if found.name == str(key) else found.name
                self._places[key] = (found.path, name)
                self._note(key, found)

    def _note(self, key: AnyKey, found: FoundResult) -> None:
        """Keep what a subclass needs of a result that was found."""
        return

    def _demand_kind(self, path: Path, kind: str) -> None:
        """Raise InputError if a file holds results of another kind."""
        if kind != self.KIND and kind in _OPENED_BY:
            raise InputError(f"{path}: holds {kind}, not {self.KIND}; open it with {_OPENED_BY[kind]}")

    def _find_campaign(self) -> str:
        if is_run(self.path):
            frozen = RunPaths.of(self.path).campaign
            try:
                return read_regular(frozen, LONGEST_CAMPAIGN).decode()
            except FileNotFoundError:
                return ""
            except NotAFileError as error:
                raise BadSourceError(f"{frozen}: {error.strerror}, the campaign of the run") from error
            except OSError as error:
                raise StorageError(f"{frozen}: cannot be read ({error})") from error
        return str(self.attributes.get("campaign", ""))

    @classmethod
    @abc.abstractmethod
    def _key(cls, key: object) -> AnyKey:
        """Return the key that the user gave. Raise InputError if it is not a key."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the reader process. The next access starts it again."""
        self._reader.close()

    def __repr__(self) -> str:
        return f"<{len(self)} {self.KIND} in {self.path}{f', {len(self.bad)} damaged' if self.bad else ''}>"

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[AnyKey]:
        return iter(self._places)

    def __contains__(self, key: object) -> bool:
        try:
            return self._key(key) in self._places
        except InputError:
            return False

    def __getitem__(self, key: Any) -> OneResult:
        known = self._key(key)
        if known not in self._places:
            raise self._absent(known)
        path, name = self._places[known]
        for found in self._reader.read(path, [name or str(known)]):
            if isinstance(found, FoundResult) and found.result is not None:
                result: Any = found.result
            elif found.verdict is not Verdict.VALID:
                raise BadResultError(f"{path}: {known} can no longer be read ({found.verdict}: {found.reason})")
        return result  # type: ignore[no-any-return]

    def _absent(self, key: AnyKey) -> LeewardError:
        for found in self.bad:
            if isinstance(found, FoundResult) and found.key == key:
                return BadResultError(f"{found.path}: {key} is damaged ({found.verdict}: {found.reason})")
        near = difflib.get_close_matches(str(key), map(str, list(self._places)[:10_000]), n=3)
        there = f"the nearest: {', '.join(near)}" if near else f"it has {len(self)} results"
        return NoResultError(f"{self.path}: no result {key}; {there}")

    def only(self, keys: Iterable[AnyKey]) -> Self:
        """Return a copy with only these results."""
        fewer = copy.copy(self)
        fewer._reader = Reader(contents=True)
        fewer._places = {key: self._places[key] for key in sorted(keys)}
        return fewer

    def results(self) -> Iterator[OneResult]:
        """Yield all results in file order. This is the fast way to read many."""
        names = self._by_file(self)
        for found in read_files(names, contents=True, keys=names):
            result = self._result_in(found)
            if result is not None:
                yield result

    def _by_file(self, keys: Iterable[AnyKey]) -> dict[Path, list[str]]:
        """Return the files that hold these results, and the names of the results in them."""
        names: dict[Path, list[str]] = {}
        for key in keys:
            path, name = self._places[key]
            names.setdefault(path, []).append(name or str(key))
        return names

    @staticmethod
    def _result_in(found: FoundResult | FoundFile) -> OneResult | None:
        """Return the result that was read, or None for the end of a file. Raise BadResultError if it is damaged."""
        if found.verdict is not Verdict.VALID:
            where = f": {found.name}" if isinstance(found, FoundResult) else ""
            raise BadResultError(f"{found.path}{where} can no longer be read ({found.verdict}: {found.reason})")
        result: Any = found.result if isinstance(found, FoundResult) else None
        return result  # type: ignore[no-any-return]
