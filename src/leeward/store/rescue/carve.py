"""Find and read the results of a damaged file in its bytes."""

from collections.abc import Callable, Mapping

import numpy as np

from leeward.carving import (
    DOUBTS,
    Doubtful,
    Pages,
    Place,
    Raw,
    Stored,
    Unfamiliar,
    Wanted,
    attributes_of,
    find,
    members,
    read_dataset,
    read_header,
)
from leeward.store.format.direct import sealed_values
from leeward.store.format.groups import sealed_result
from leeward.store.format.keys import Key
from leeward.store.format.kind import AnyResult, Array, Value
from leeward.store.format.kinds import KINDS, key_or_none
from leeward.store.format.layout_result import Result
from leeward.store.format.verdicts import BadGroupError, Verdict, refuse
from leeward.store.rescue import foreign

_IDENTITY = ("farm_idx", "type_idx", "ss_seed")
_PAGE = 512  # bytes: the smallest unit that a disk or a file system loses


def find_results(pages: Pages, alive: Callable[[], None]) -> list[Place]:
    """Return all groups that may be results of any kind, and the names of lost groups."""
    marks = {kind.MARK for kind in KINDS.values()}
    wanted = Wanted(
        names=b"|".join(kind.NAMES for kind in KINDS.values()),
        is_name=lambda name: key_or_none(name) is not None,
        is_group=lambda inside: not marks.isdisjoint(inside),
        name_in=_key_in,
    )
    return find(pages, wanted, alive)


def _key_in(attributes: Mapping[str, Raw | None]) -> str:
    """Return the key that the attributes of a group state, or ""."""
    key = attributes.get("key")
    if isinstance(key, bytes | str):
        text = foreign.text_of(key) or ""
        return text if key_or_none(text) is not None else ""
    numbers = [attributes.get(name) for name in _IDENTITY]
    if not all(isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iuf" for value in numbers):
        return ""
    values = [value.item() for value in numbers if isinstance(value, np.ndarray)]
    if not all(value == value and 0 <= value < 2**62 and value == int(value) for value in values):
        return ""
    return str(Key(*map(int, values)))


def read(pages: Pages, place: Place, size: int, file_name: str) -> tuple[AnyResult, bool]:
    """Return the result at a place, and whether it has a seal. Raise BadGroupError if it is invalid."""
    try:
        return _read(pages, place, file_name)
    except Doubtful as error:
        raise BadGroupError(Verdict.IMPLAUSIBLE, str(error)) from error
    except DOUBTS as error:
        if place.address >= size:
            raise BadGroupError(Verdict.TRUNCATED, f"it is beyond the end of the file, at {place.address}") from error
        raise BadGroupError(Verdict.UNREADABLE, f"a part of it is damaged or lost ({error})") from error


def _read(pages: Pages, place: Place, file_name: str) -> tuple[AnyResult, bool]:
    header = read_header(pages, place.address)
    inside = members(pages, header)
    kind = next((kind for kind in KINDS.values() if kind.MARK in inside), None)
    if kind is None:
        raise Unfamiliar(Result.MARK)
    attributes = dict(attributes_of(pages, header))
    stored = {}
    for name in [name for name in kind.DATASETS if name in inside]:
        try:
            stored[name] = read_dataset(pages, read_header(pages, inside[name]), name=name, most=kind.MOST_NUMBERS)
        except DOUBTS:
            if name == kind.MARK or "seal" in attributes:
                raise
            attributes[f"{name} (damaged)"] = None  # keep the layout alone: the AEP can be recomputed
    if "seal" in attributes:
        datasets = {name: _floats(one) for name, one in stored.items()}
        return sealed_result(place.name, kind, sealed_values(attributes), datasets), True
    if place.folder not in ("", foreign.FOLDER):
        refuse(f"it is in the group {place.folder:.60}; expected the root or {foreign.FOLDER}")
    if kind is not Result:
        refuse("it has no seal")
    key = key_or_none(place.name)
    if not isinstance(key, Key):
        refuse("its name is lost, and its attributes do not state a key")
    if _lost_a_page(stored[Result.MARK]):
        raise BadGroupError(Verdict.IMPLAUSIBLE, "a part of its layout is all zeros, probably a lost page of the disk")
    kept: dict[str, Value] = {}
    ignored = [name for name in inside if name not in ("layout", "aep")]
    for name, raw in attributes.items():
        value = _foreign_value(raw)
        if value is None:
            ignored.append(name)
        else:
            kept[name] = value
    aep = _floats(stored["aep"]) if "aep" in stored else None
    return foreign.result_of(key, file_name, _floats(stored["layout"]), aep, kept, ignored), False


def _foreign_value(raw: Raw | None) -> Value | None:
    if isinstance(raw, np.ndarray):
        return foreign.number(raw) if raw.ndim <= 1 and raw.size else None
    return None if raw is None else foreign.text_of(raw)


def _floats(stored: Stored) -> Array:
    return stored.numbers.astype(np.float64)


def _lost_a_page(stored: Stored) -> bool:
    """Return whether a run of zeros looks like a lost page.

    Each end of the run is at a page boundary or at an end of the numbers, and at least one is at a page boundary.
    """
    if stored.place is None:
        return False
    flat = stored.numbers.ravel()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat == 0, [0]])))
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        at_pages = [(stored.place + flat.itemsize * int(edge)) % _PAGE == 0 for edge in (start, end)]
        at_ends = [start == 0, end == len(flat)]
        if end - start >= 2 and any(at_pages) and all(map(max, at_pages, at_ends)):
            return True
    return False
