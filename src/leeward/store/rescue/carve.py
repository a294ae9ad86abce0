"""The results of a file, found in its bytes and not by the way from its root."""

import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from leeward.carving.datasets import Stored, read_dataset
from leeward.carving.groups import heap, many_attributes, members, name_at, node_entries
from leeward.carving.headers import ATTRIBUTE, Header, read_header
from leeward.carving.messages import Raw, attribute, attributes_in
from leeward.carving.scan import Marks, scan
from leeward.store.format.direct import Pages, Unfamiliar
from leeward.store.format.keys import Key, is_key
from leeward.store.format.schema import DATASETS, Array, BadGroupError, Result, Value, sealed_result
from leeward.store.format.verdicts import Verdict
from leeward.store.rescue import foreign

_IDENTITY = ("farm_idx", "type_idx", "ss_seed")
_PAGE = 512  # bytes that a disk, or a file system, loses together at least
_ROOM_FOR_HEAPS = 1 << 28  # bytes
_PULSE_S = 0.5
# what bytes that are not what they seem can lead to
_DOUBTS = (Unfamiliar, struct.error, IndexError, ValueError, OverflowError)


class Place(NamedTuple):
    """A group that may be a result.

    name: its key as text, if that is known. is_linked: something leads to it still. folder: the name of the group that
    it is in, where that is known and no place for results.
    """

    name: str
    address: int
    is_linked: bool
    folder: str = ""


@dataclass
class _Groups:
    """Of a file, by address.

    results: with a layout in them, and the key that their attributes say. names: that are keys. parents: the group that
    leads to each of these. folders: names that are no keys.
    """

    results: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    folders: dict[int, str] = field(default_factory=dict)

    def folder_of(self, address: int) -> str:
        """The group that a result is in, if it is known and is neither the root nor a place for results."""
        folder = self.folders.get(self.parents.get(address, -1), "")
        return "" if folder == foreign.FOLDER else folder


def find(pages: Pages, handle: int, base: int, alive: Callable[[], None]) -> list[Place]:
    """All groups that may be results: those that something leads to first. And names that lead nowhere any more."""
    pulse = _Pulse(alive)
    marks = scan(handle, base, alive)
    groups = _Groups()
    for address in marks.headers:
        pulse.beat()
        _look(pages, address, groups)
    groups.names = {**{address: name for name, address in marks.links}, **groups.names}
    if any(address not in groups.names for address in groups.results):
        groups.names = {**_loose_names(pages, marks, groups.results, pulse), **groups.names}
    found = []
    for address, key in groups.results.items():
        name = groups.names.get(address) or key or f"group at {address}"
        found.append(Place(name, address, address in groups.names, groups.folder_of(address)))
    linked = {place.name for place in found if place.is_linked}
    found = [place for place in found if place.is_linked or place.name not in linked]  # others of a key were deleted
    told = {place.name for place in found}
    found += [Place(name, address, True) for address, name in groups.names.items() if name not in told]
    return sorted(found, key=lambda place: (not place.is_linked, place.address))


def _look(pages: Pages, address: int, groups: _Groups) -> None:
    try:
        header = read_header(pages, address)
        if not header.is_group:
            return
        inside = members(pages, header)
        if "layout" in inside:
            groups.results[address] = _key_in(dict(_attributes(pages, header)))
            return
        for name, place in inside.items():
            (groups.names if is_key(name) else groups.folders)[place] = name
            groups.parents[place] = address
    except _DOUBTS:
        return  # it only looked like one, or is lost


class _Pulse:
    """Signs of life, now and then."""

    def __init__(self, alive: Callable[[], None]) -> None:
        self._alive = alive
        self._last = time.monotonic()

    def beat(self) -> None:
        if time.monotonic() - self._last > _PULSE_S:
            self._last = time.monotonic()
            self._alive()


def _loose_names(pages: Pages, marks: Marks, wanted: Mapping[int, object], pulse: _Pulse) -> dict[int, str]:
    """Names from nodes of symbol tables that nothing leads to: from whichever heap has a key there, if only one has."""
    heaps = _heaps_of_keys(pages, marks, pulse)
    found = {}
    for node in marks.nodes:
        pulse.beat()
        try:
            entries = node_entries(pages, node)
        except _DOUBTS:
            continue
        for entry in entries:
            if entry.address in wanted:
                called = {name for names in heaps if (name := name_at(names, entry.name)) and is_key(name)}
                if len(called) == 1:
                    found[entry.address] = called.pop()
    return found


def _heaps_of_keys(pages: Pages, marks: Marks, pulse: _Pulse) -> list[bytes]:
    """Those with the names of results in them, as far as there is room for them."""
    found: list[bytes] = []
    room = _ROOM_FOR_HEAPS
    for address in marks.heaps:
        pulse.beat()
        try:
            names = heap(pages, address)
        except _DOUBTS:
            continue
        if b"farm" in names and len(names) <= room:
            found.append(names)
            room -= len(names)
    return found


def _key_in(attributes: Mapping[str, Raw | None]) -> str:
    """What the attributes of a group say it is, "" if they do not."""
    key = attributes.get("key")
    if isinstance(key, bytes | str):
        text = foreign.text_of(key) or ""
        return text if is_key(text) else ""
    numbers = [attributes.get(name) for name in _IDENTITY]
    if not all(isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iuf" for value in numbers):
        return ""
    values = [value.item() for value in numbers if isinstance(value, np.ndarray)]
    if not all(value == value and 0 <= value < 2**62 and value == int(value) for value in values):
        return ""
    return str(Key(*map(int, values)))


# --- one result ------------------------------------------------------------------------------------------------------


def read(pages: Pages, place: Place, size: int, file_name: str) -> tuple[Result, bool]:
    """The result at a place, and whether it has a seal, which is whole then. Raises BadGroupError."""
    try:
        return _read(pages, place, file_name)
    except _DOUBTS as error:
        if place.address >= size:
            raise BadGroupError(Verdict.TRUNCATED, f"it lies beyond the end, at {place.address}") from error
        raise BadGroupError(Verdict.UNREADABLE, f"what belongs to it is damaged or lost ({error})") from error


def _read(pages: Pages, place: Place, file_name: str) -> tuple[Result, bool]:
    header = read_header(pages, place.address)
    inside = members(pages, header)
    if "layout" not in inside:
        raise Unfamiliar("layout")
    attributes = dict(_attributes(pages, header))
    wanted = [name for name in DATASETS if name in inside]
    stored = {}
    for name in wanted:
        try:
            stored[name] = read_dataset(pages, read_header(pages, inside[name]))
        except _DOUBTS:
            if name == "layout" or "seal" in attributes:
                raise
            attributes[f"{name} (damaged)"] = None  # a layout is worth keeping without it: an AEP can be recomputed
    if "seal" in attributes:
        values = {name: _sealed_value(value) for name, value in attributes.items()}
        return sealed_result(place.name, values, {name: _floats(one) for name, one in stored.items()}), True
    if place.folder:
        raise BadGroupError(Verdict.WRONG_STRUCTURE, f"it lies in {place.folder:.60}, which is no place for results")
    if not is_key(place.name):
        reason = "its name is lost, and no attributes say which result it is"
        raise BadGroupError(Verdict.WRONG_STRUCTURE, reason)
    if _lost_a_page(stored["layout"]):
        raise BadGroupError(Verdict.IMPLAUSIBLE, "a piece of its layout is zeros, as a lost page of the disk is")
    return foreign.result_of(_foreign(attributes, stored, inside), Key.parse(place.name), file_name), False


def _attributes(pages: Pages, header: Header) -> Iterator[tuple[str, Raw | None]]:
    for body in header.all(ATTRIBUTE):
        name, value, _ = attribute(pages, body)
        yield name, value
    yield from attributes_in(pages, many_attributes(pages, header))


def _sealed_value(value: Raw | None) -> Value:
    """As it was before it was stored; what is not of leeward's kinds breaks the seal."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode("utf-8", "backslashreplace")
    if not isinstance(value, np.ndarray):
        raise BadGroupError(Verdict.WRONG_STRUCTURE, "an attribute that leeward does not write")
    return value.astype(np.float64) if value.ndim else value.item()


def _foreign(
    attributes: Mapping[str, Raw | None], stored: Mapping[str, Stored], inside: Mapping[str, int]
) -> foreign.Group:
    kept: dict[str, Value] = {}
    ignored = [name for name in inside if name not in ("layout", "aep")]
    for name, raw in attributes.items():
        value = _foreign_value(raw)
        if value is None:
            ignored.append(name)
        else:
            kept[name] = value
    aep = _floats(stored["aep"]) if "aep" in stored else None
    return foreign.Group(_floats(stored["layout"]), aep, kept, ignored)


def _foreign_value(raw: Raw | None) -> Value | None:
    if isinstance(raw, np.ndarray):
        return foreign.number(raw) if raw.ndim <= 1 and raw.size else None
    return None if raw is None else foreign.text_of(raw)


def _floats(stored: Stored) -> Array:
    return stored.numbers.astype(np.float64)


def _lost_a_page(stored: Stored) -> bool:
    """Whether several zeros in a row begin or end where a page of the disk does, and at the end of the numbers."""
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
