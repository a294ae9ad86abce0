"""Search the bytes of a file for possible object headers, names and links, which are verified elsewhere."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from leeward.carving.groups import HEAP, NODE
from leeward.carving.headers import NEW
from leeward.carving.pages import next_data

_WINDOW = 1 << 23
_OVERLAP = 1 << 12
_MOST_MARKS = 5_000_000
_MARKS = re.compile(rb"OHDR\x02|SNOD\x01|HEAP\x00")
_BEFORE_NAME = rb"\x01[\x00\x08\x10\x18]\x00?[\x00\x01]?([\x01-\x40])"  # version, flags, kind, characters, length


@dataclass
class Marks:
    """The addresses of possible structures. links: name and address of the object."""

    headers: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    heaps: list[int] = field(default_factory=list)
    links: list[tuple[str, int]] = field(default_factory=list)


def scan(handle: int, base: int, names: bytes, alive: Callable[[], None] = lambda: None) -> Marks:
    """Return all marks of a file, in order.

    base: the position of address 0 in the file. names: the pattern of link names. alive: called for each window.
    """
    marks = Marks()
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
        if sum(map(len, (marks.headers, marks.nodes, marks.heaps, marks.links))) > _MOST_MARKS:
            break  # not a file of groups
    marks.headers.sort()
    return marks


def _windows(handle: int, base: int) -> Iterator[tuple[int, bytes]]:
    """Yield overlapping pieces of the file with their addresses. Holes are skipped: no mark begins in one."""
    start = 0
    while (place := next_data(handle, base + start)) is not None:
        start = max(start, (place - base) // _WINDOW * _WINDOW)
        yield start, os.pread(handle, _WINDOW + _OVERLAP, base + start)
        start += _WINDOW


def _old_headers(window: bytes) -> list[int]:
    """Return the places of possible headers of version 1, by plausible counts, length and first message."""
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
