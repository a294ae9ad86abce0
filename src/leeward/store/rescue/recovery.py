"""Recover every result that a damaged file still holds. The file itself is only read.

The methods are: read the file as it is, group by group; clear the flag that a killed writer leaves; extend the file to
its stated length; and carve results from its bytes. Only copies are changed.
"""

import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

import numpy as np

from leeward.carving import data_pieces, is_whole, lookup3, signature_place, stated_end
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.kind import Array, Value
from leeward.store.format.layout_result import SUCCESS, Result
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.hdf5_files import BadFileError, open_plain
from leeward.store.isolated.reader import Limits, Reader

AS_IT_IS, UNMARKED, EXTENDED, CARVED = "read as it is", "mark of a writer cleared", "extended", "carved"

_BLOCK = 48  # bytes: the first block of a file in the newer format
_FILLERS = (b"\0", b"\xff")
_LONGEST_EXTENSION = 1 << 30
_PIECE = 1 << 20
_FEWEST = 3  # results that must agree before another one counts as an outlier
_FAR = 10.0  # times the usual distance to the nearest turbine; optimised and published layouts stay below 4
_MOST_TURBINES = 2000  # larger layouts are not searched for stray turbines
_AEP_RATIO = 5.0  # largest plausible ratio of AEP per turbine within one type: sites differ by less


class BadResult(NamedTuple):
    """A group without a valid result. name: of the group."""

    name: str
    verdict: Verdict
    reason: str


@dataclass
class Recovery:
    """The results recovered from a file.

    file: the file as it is. Its attributes may come from a copy. results: the detail "recovered_by" names the method.
    verified, plausible: number of results with and without a checksum. lost: groups of which only traces were found.
    tried: the methods that found results, and how many, including those of earlier methods. notes: why a method ended
    early, so that the file may hold more.
    """

    file: FoundFile = field(init=False)
    results: list[FoundResult] = field(default_factory=list)
    verified: int = 0
    plausible: int = 0
    lost: list[BadResult] = field(default_factory=list)
    tried: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Recoverer:
    """Recovers files one after another with the same child processes.

    workspace: a folder for temporary copies. limits: of the child processes.
    """

    def __init__(self, workspace: Path, limits: Limits = Limits()) -> None:  # noqa: B008 (it is frozen)
        self._workspace = workspace
        self._plain = Reader(contents=True, limits=limits, sha256=True)
        self._carving = Reader(contents=True, limits=limits, carve=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._plain.close()
        self._carving.close()

    def recover(self, path: Path) -> Recovery:
        """Recover all results of a file. Neither damage nor a copy that cannot be written raises an error."""
        harvest = _Harvest()
        harvest.take(AS_IT_IS, self._plain.read(path))
        file = harvest.recovery.file
        if file.size > 0 and not (file.is_valid and file.sealed):
            start = _start_of(path)
            if start is not None and start.changes:
                harvest.take(start.changes, self._completed(path, start, harvest.recovery.notes))
            harvest.take(CARVED, self._carving.read(path))
        return harvest.finished()

    def _completed(self, path: Path, start: "_Start", notes: list[str]) -> Iterator[FoundResult | FoundFile]:
        """Yield the results that are the same in all copies, and so do not depend on the filler."""
        agreed: dict[str, FoundResult] = {}
        for number, filler in enumerate(_FILLERS if start.missing else _FILLERS[:1]):
            copy = self._workspace / "copy.h5"
            try:
                _write_copy(path, start, copy, filler)
                *found, last = self._plain.read(copy)
            except OSError as error:  # usually a full disk; methods without a copy are still tried
                notes.append(
                    f"{start.changes}: no copy could be written to {self._workspace.parent} ({error.strerror})"
                )
                return
            finally:
                copy.unlink(missing_ok=True)
            here = {one.name: _of_original(one, path) for one in found if isinstance(one, FoundResult)}
            if number == 0:
                agreed = here
            agreed = {name: one for name, one in agreed.items() if _is_same(one, here.get(name))}
        yield from agreed.values()
        yield last


class _Harvest:
    """Collects the results of all methods. A later result replaces an earlier one only if it alone has a seal."""

    def __init__(self) -> None:
        self.recovery = Recovery()
        self._found: dict[Key, FoundResult] = {}
        self._lost: dict[str, BadResult] = {}
        self._doubts: dict[Key, str] = {}
        self._ambiguous: set[Key] = set()

    def take(self, method: str, all_found: Iterable[FoundResult | FoundFile]) -> None:
        """Add the findings of a method."""
        count = 0
        for found in all_found:
            if isinstance(found, FoundFile):
                self._add_file(method, found)
            elif found.is_valid and found.key is not None and found.result is not None:
                count += 1
                self._add(method, found, found.key)
            else:
                bad = BadResult(found.name, found.verdict, found.reason)
                if method != CARVED:
                    self._lost.setdefault(found.name, bad)
                    continue
                self._lost[found.name] = bad  # carving gives the more precise reason
                if found.verdict is Verdict.IMPLAUSIBLE and found.key is not None:
                    self._doubts.setdefault(found.key, found.reason)  # applies to the results of all methods
        if count or method == AS_IT_IS:
            self.recovery.tried[method] = count

    def _add_file(self, method: str, found: FoundFile) -> None:
        recovery = self.recovery
        if method == CARVED and found.verdict is not Verdict.VALID:
            recovery.notes.append(f"{method}: ended early, {found.verdict} ({found.reason}); the file may hold more")
        if method == AS_IT_IS:
            recovery.file = found
        elif not recovery.file.attributes and found.verdict is Verdict.VALID:
            recovery.file = replace(recovery.file, attributes=found.attributes)

    def _add(self, method: str, found: FoundResult, key: Key) -> None:
        old = self._found.get(key)
        if old is None and method == CARVED and self.recovery.file.is_valid:
            return  # the file is intact: the script deleted this group, or it is not in a place for results
        if old is not None and (old.sealed or not found.sealed):
            is_carved_twice = method == CARVED == old.attributes.get("recovered_by")
            if is_carved_twice and not old.sealed and old.digest != found.digest:
                self._ambiguous.add(key)
            return
        self._found[key] = found if found.sealed else _with_details(found, {"recovered_by": method})

    def finished(self) -> Recovery:
        """Return the recovery, without doubtful results."""
        recovery = self.recovery
        doubts = doubtful(self._found.values()) | self._doubts | self._unclear()
        for key, found in sorted(self._found.items()):
            if key in doubts and not found.sealed:
                recovery.lost.append(BadResult(found.name, Verdict.IMPLAUSIBLE, doubts[key]))
            else:
                recovery.results.append(found)
        recovery.verified = sum(found.is_verified for found in recovery.results)
        recovery.plausible = len(recovery.results) - recovery.verified
        known = set(map(str, self._found))
        recovery.lost += [bad for name, bad in self._lost.items() if name.rpartition("/")[2] not in known]
        return recovery

    def _unclear(self) -> dict[Key, str]:
        """Return the carved results whose key has two layouts; if these are at least half, all carved results."""
        unclear = dict.fromkeys(
            self._ambiguous, "the file holds two different layouts of this key, and nothing shows which one is valid"
        )
        carved = [key for key, found in self._found.items() if found.attributes.get("recovered_by") == CARVED]
        if 2 * len(self._ambiguous) >= len(carved) > 0:
            reason = "most keys of this file have two different layouts, so this layout may be the invalid one"
            unclear = {**dict.fromkeys(carved, reason), **unclear}
        return unclear


# --- copies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Start:
    """The first block of a file.

    place: of its signature. unmarked: the block without the flag of a writer, None if the flag is not set. missing:
    number of bytes that the file lacks, 0 if they are too many to extend it.
    """

    place: int
    unmarked: bytes | None
    missing: int

    @property
    def changes(self) -> str:
        """The changes that make a copy readable, or ""."""
        changes = [UNMARKED] * (self.unmarked is not None) + [EXTENDED] * (self.missing > 0)
        return " and ".join(changes)


def _start_of(path: Path) -> _Start | None:
    """Return the first block of a file; None if it cannot be read or has no signature."""
    try:
        with open_plain(str(path)) as (handle, size):
            place = signature_place(handle, size)
            if place is None:
                return None
            end = stated_end(handle, place) or 0
            block = os.pread(handle, _BLOCK, place)
    except BadFileError:
        return None
    is_marked = len(block) == _BLOCK and block[8] in (2, 3) and block[11] != 0 and is_whole(block)
    missing = end - size if 0 < end - size <= _LONGEST_EXTENSION else 0
    return _Start(place, _without_mark(block) if is_marked else None, missing)


def _without_mark(block: bytes) -> bytes:
    """Return the first block without the flag of a writer (section II.A of the HDF5 file format specification)."""
    plain = block[:11] + b"\0" + block[12:-4]
    return plain + lookup3(plain).to_bytes(4, "little")


def _of_original(found: FoundResult, path: Path) -> FoundResult:
    """Return a result from a copy as if read from the original."""
    if found.sealed or found.result is None:
        return replace(found, path=path)
    return _with_details(replace(found, path=path), {"source": path.name.encode("utf-8", "replace").decode()})


def _with_details(found: FoundResult, more: Mapping[str, Value]) -> FoundResult:
    result = None if found.result is None else replace(found.result, details={**found.result.details, **more})
    return replace(found, attributes={**found.attributes, **more}, result=result)


def _is_same(one: FoundResult, other: FoundResult | None) -> bool:
    return other is not None and one.digest == other.digest and repr(one.attributes) == repr(other.attributes)


def _copy_data(source: int, target: BinaryIO) -> None:
    """Copy a file and keep its holes, which may be larger than the disk."""
    for start, end in data_pieces(source):
        target.seek(start)
        for place in range(start, end, _PIECE):
            target.write(os.pread(source, min(_PIECE, end - place), place))
    target.truncate(os.fstat(source).st_size)
    target.seek(0, os.SEEK_END)


def _write_copy(path: Path, start: _Start, copy: Path, filler: bytes) -> None:
    """Write a copy of the stated length, without the flag of a writer."""
    with path.open("rb") as source, copy.open("wb") as target:
        _copy_data(source.fileno(), target)
        if filler == b"\0":
            target.truncate(target.tell() + start.missing)  # zeros that take no space
        else:
            for left in range(start.missing, 0, -_PIECE):
                target.write(filler * min(left, _PIECE))
        if start.unmarked is not None:
            target.seek(start.place)
            target.write(start.unmarked)


# --- outliers: a flipped bit rarely gives a plausible value ----------------------------------------------------------


def doubtful(all_found: Iterable[FoundResult]) -> dict[Key, str]:
    """Return the implausible results and the reasons. Only results without a seal are examined."""
    results = [found.result for found in all_found if not found.sealed and found.result is not None]
    types: dict[int, list[Result]] = defaultdict(list)
    for result in results:
        types[result.key.type_idx].append(result)
    doubts: dict[Key, str] = {}
    for alike in types.values():
        doubts |= _odd_diameter(alike) | _odd_aep(alike)
    for result in results:
        turbine = _stray(result.layout)
        if turbine is not None:
            place = ", ".join(f"{coordinate:.6g}" for coordinate in result.layout[:, turbine])
            doubts[result.key] = f"turbine {turbine} is at ({place}) m, far from all others"
    return doubts


def _odd_diameter(results: Sequence[Result]) -> dict[Key, str]:
    """Return the one result of a type whose rotor diameter differs from all others, with the reason."""
    diameters = Counter(result.rotor_diameter_m for result in results)
    (usual, count), *others = diameters.most_common()
    if count < _FEWEST or len(others) != 1 or others[0][1] != 1:
        return {}
    reason = f"its rotor diameter is {others[0][0]:g} m; all others of its type have {usual:g} m"
    return {result.key: reason for result in results if result.rotor_diameter_m == others[0][0]}


def _odd_aep(results: Sequence[Result]) -> dict[Key, str]:
    """Return the results whose AEP per turbine is far from the median of their type, with the reasons."""
    yields = {result.key: result.aep_gwh / result.n_turbines for result in results if result.status == SUCCESS}
    if len(yields) <= _FEWEST:
        return {}
    usual = statistics.median(yields.values())
    return {
        key: f"its AEP is {each:.6g} GWh per turbine; the median of its type is {usual:.6g} GWh"
        for key, each in yields.items()
        if not usual / _AEP_RATIO <= each <= usual * _AEP_RATIO
    }


def _stray(layout: Array) -> int | None:
    """Return the index of a turbine that is far from all others, or None."""
    if not 4 <= layout.shape[1] <= _MOST_TURBINES:
        return None
    distances = np.hypot(*(layout[:, :, None] - layout[:, None, :]))
    np.fill_diagonal(distances, np.inf)
    nearest = distances.min(axis=0)
    worst = int(nearest.argmax())
    return worst if nearest[worst] > _FAR * float(np.median(nearest)) else None
