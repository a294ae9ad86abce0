"""Find the groups of a file by searching its bytes for headers, names and links, not from its root."""

import os
import re
import struct
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from leeward.carving.datasets import Stored, read_dataset
from leeward.carving.messages import Raw
from leeward.carving.objects import HEAP, NEW, NODE, attributes_of, heap, members, name_at, node_entries, read_header
from leeward.carving.pages import Doubtful, Pages, Unfamiliar, next_data

# these errors mean that bytes only look like a structure
DOUBTS = (Unfamiliar, struct.error, IndexError, ValueError, OverflowError)

_ROOM_FOR_HEAPS = 1 << 28  # bytes
_WINDOW = 1 << 23
_OVERLAP = 1 << 12
_MOST_MARKS = 5_000_000
_MARKS = re.compile(rb"OHDR\x02|SNOD\x01|HEAP\x00")
# version, flags, link type, character set, length of the name
_BEFORE_NAME = rb"\x01[\x00\x08\x10\x18]\x00?[\x00\x01]?([\x01-\x40])"


@dataclass(frozen=True)
class Wanted:
    """The groups to search for.

    names: a pattern of group names, as bytes. is_name: returns whether a text is such a name; by default, whether it
    matches the pattern. is_group: returns whether a group is wanted, given the names of its members. name_in: returns
    the name that the attributes of a group state, or "".
    """

    names: bytes = rb"[ -.0-~]{1,64}"
    is_name: Callable[[str], bool] | None = None
    is_group: Callable[[Collection[str]], bool] = bool
    name_in: Callable[[Mapping[str, Raw | None]], str] = lambda attributes: ""


class Place(NamedTuple):
    """A group that may be wanted.

    name: from a link to it, else from its attributes. is_linked: a link to it was found. folder: the name of its
    parent group, if known and not the root.
    """

    name: str
    address: int
    is_linked: bool
    folder: str = ""


class CarvedGroup(NamedTuple):
    """A group that was read. arrays: its readable datasets of numbers."""

    name: str
    attributes: dict[str, Raw | None]
    arrays: dict[str, Stored]


def carve(pages: Pages, wanted: Wanted = Wanted()) -> Iterator[CarvedGroup]:
    """Yield the readable groups, with their attributes and datasets of numbers."""
    for place in find(pages, wanted):
        try:
            header = read_header(pages, place.address)
            inside = members(pages, header)
            attributes = dict(attributes_of(pages, header))
        except DOUBTS:
            continue
        arrays = {}
        for name, address in inside.items():
            try:
                arrays[name] = read_dataset(pages, read_header(pages, address), name=name)
            except (Doubtful, *DOUBTS):
                continue
        if arrays or attributes:
            yield CarvedGroup(place.name, attributes, arrays)


@dataclass
class _Groups:
    """The groups of a file, by address.

    wanted: the wanted groups, with the names in their attributes. names: the names in links to them. parents: the
    groups that hold these links. folders: the names of other groups.
    """

    wanted: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    folders: dict[int, str] = field(default_factory=dict)


def find(pages: Pages, wanted: Wanted, alive: Callable[[], None] = lambda: None) -> list[Place]:
    """Return all groups that may be wanted, linked ones first, and names whose group is lost.

    alive: called often, to send a heartbeat.
    """
    is_name = wanted.is_name or (lambda name: re.fullmatch(wanted.names, name.encode()) is not None)
    marks = _scan(pages.handle, pages.base, wanted.names, alive)
    groups = _Groups()
    for address in marks.headers:
        alive()
        _inspect(pages, address, groups, wanted, is_name)
    groups.names = {**{address: name for name, address in marks.links}, **groups.names}
    if any(address not in groups.names for address in groups.wanted):
        heaps = _heaps_of_names(pages, marks, wanted.names, alive)
        groups.names = {**_loose_names(pages, marks, heaps, groups.wanted, is_name, alive), **groups.names}
    found = []
    for address, stated in groups.wanted.items():
        name = groups.names.get(address) or stated or f"group at {address}"
        folder = groups.folders.get(groups.parents.get(address, -1), "")
        found.append(Place(name, address, address in groups.names, folder))
    linked = {place.name for place in found if place.is_linked}  # an unlinked group of the same name was deleted
    found = [place for place in found if place.is_linked or place.name not in linked]
    known = {place.name for place in found}
    found += [Place(name, address, True) for address, name in groups.names.items() if name not in known]
    return sorted(found, key=lambda place: (not place.is_linked, place.address))


def _inspect(pages: Pages, address: int, groups: _Groups, wanted: Wanted, is_name: Callable[[str], bool]) -> None:
    try:
        header = read_header(pages, address)
        if not header.is_group:
            return
        inside = members(pages, header)
        is_wanted = wanted.is_group(inside)
        if is_wanted:
            groups.wanted[address] = wanted.name_in(dict(attributes_of(pages, header)))
        for name, place in inside.items():
            if is_name(name):
                groups.names[place] = name
            elif not is_wanted:
                groups.folders[place] = name
            else:
                continue
            groups.parents[place] = address
    except DOUBTS:
        return  # not a header, or lost


def _loose_names(
    pages: Pages,
    marks: "_Marks",
    heaps: Collection[bytes],
    wanted: Container[int],
    is_name: Callable[[str], bool],
    alive: Callable[[], None],
) -> dict[int, str]:
    """Return the names in unlinked nodes of symbol tables. Skip a group if the heaps give it several names."""
    found = {}
    for node in marks.nodes:
        alive()
        try:
            entries = node_entries(pages, node)
        except DOUBTS:
            continue
        for offset, address in entries:
            if address in wanted:
                called = {name for names in heaps if (name := name_at(names, offset)) and is_name(name)}
                if len(called) == 1:
                    found[address] = called.pop()
    return found


def _heaps_of_names(pages: Pages, marks: "_Marks", names: bytes, alive: Callable[[], None]) -> list[bytes]:
    """Return the heaps that hold names of wanted groups, within a memory limit."""
    pattern = re.compile(names)
    found: list[bytes] = []
    room = _ROOM_FOR_HEAPS
    for address in marks.heaps:
        alive()
        try:
            held = heap(pages, address)
        except DOUBTS:
            continue
        if len(held) <= room and pattern.search(held):
            found.append(held)
            room -= len(held)
    return found


# --- marks ------------------------------------------------------------------------------------------------------------


@dataclass
class _Marks:
    """The addresses of possible structures. links: name and address of the object."""

    headers: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    heaps: list[int] = field(default_factory=list)
    links: list[tuple[str, int]] = field(default_factory=list)


def _scan(handle: int, base: int, names: bytes, alive: Callable[[], None] = lambda: None) -> _Marks:
    """Return all marks of a file, in order.

    base: the position of address 0 in the file. names: the pattern of link names. alive: called for each window.
    """
    marks = _Marks()
    found_by_sign = {NEW: marks.headers, NODE: marks.nodes, HEAP: marks.heaps}
    link = re.compile(_BEFORE_NAME + b"(" + names + b")")
    for start, window in _windows(handle, base):
        alive()
        # a mark in the overlap is found again, complete, in the next window
        end = _WINDOW if len(window) > _WINDOW else len(window)
        marks.headers += [start + place for place in _old_headers(window) if place < end]
        for found in _MARKS.finditer(window, 0, end + 4):  # a mark has five bytes
            found_by_sign[found.group()[:4]].append(start + found.start())
        marks.links += [(name, address) for place, name, address in _links(link, window) if place < end]
        if len(marks.headers) + len(marks.nodes) + len(marks.heaps) + len(marks.links) > _MOST_MARKS:
            break  # too many for a file of groups
    marks.headers.sort()
    return marks


def _windows(handle: int, base: int) -> Iterator[tuple[int, bytes]]:
    """Yield overlapping pieces of the file with their addresses. Skip holes: no mark begins in one."""
    start = 0
    while (place := next_data(handle, base + start)) is not None:
        start = max(start, (place - base) // _WINDOW * _WINDOW)
        yield start, os.pread(handle, _WINDOW + _OVERLAP, base + start)
        start += _WINDOW


def _old_headers(window: bytes) -> list[int]:
    """Return the places where counts, length and first message look like a header of version 1."""
    words = np.frombuffer(window, dtype="<u8", count=len(window) // 8)
    if len(words) < 3:
        return []
    first, second, third = words[:-2], words[1:-1], words[2:]
    count, references = first >> np.uint64(16) & np.uint64(0xFFFF), first >> np.uint64(32)
    is_one = (first & np.uint64(0xFFFF)) == 1
    is_one &= (count >= 1) & (count <= 1000) & (references >= 1) & (references <= 1000)
    is_one &= (second >= 8) & (second <= 1 << 16) & (second % np.uint64(8) == 0)
    is_one &= ((third & np.uint64(0xFFFF)) <= 0x18) & ((third >> np.uint64(16) & np.uint64(0xFFFF)) <= second)
    return [8 * int(place) for place in np.flatnonzero(is_one)]


def _links(link: re.Pattern[bytes], window: bytes) -> Iterator[tuple[int, str, int]]:
    """Yield the place, name and address of links in the newer format."""
    for found in link.finditer(window):
        length = found.group(1)[0]
        name = found.group(2)[:length]
        end = found.start(2) + length
        if len(name) == length and end + 8 <= len(window):
            yield found.start(), name.decode(), int.from_bytes(window[end : end + 8], "little")
