"""Read the members of a group: links in its header, or symbol table, B-tree and heap (III.A.1, III.B, III.D)."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from leeward.carving.checksums import is_whole
from leeward.carving.headers import ATTRIBUTE, ATTRIBUTE_INFO, LINK, SYMBOL_TABLE, Header
from leeward.carving.messages import Raw, attribute, attributes_in, link
from leeward.carving.pages import Pages, Unfamiliar

NODE, HEAP = b"SNOD", b"HEAP"

_MOST_NODES = 100_000
_LONGEST_HEAP = 1 << 26
_LONGEST_ATTRIBUTES = 1 << 22
_LONGEST_NAME = 1024
_UNDEFINED = 2**64 - 1


class Entry(NamedTuple):
    """An entry of a symbol table. name: its offset in the heap. address: of the object header."""

    name: int
    address: int


def members(pages: Pages, header: Header) -> dict[str, int]:
    """Return the names and addresses of the members of a group, as far as its table can be read."""
    found: dict[str, int] = {}
    for body in header.all(LINK):
        name, address, _ = link(body)
        found[name] = address
    table = header.one(SYMBOL_TABLE)
    if table is not None:
        tree, heap_address = struct.unpack_from("<QQ", table)
        names = heap(pages, heap_address)
        for entry in _entries(pages, tree):
            called = name_at(names, entry.name)
            if called is not None:
                found[called] = entry.address
    return found


def attributes_of(pages: Pages, header: Header) -> Iterator[tuple[str, Raw | None]]:
    """Yield the name and value of each attribute; None for a value of an unsupported type."""
    for body in header.all(ATTRIBUTE):
        name, value, _ = attribute(pages, body)
        yield name, value
    yield from attributes_in(pages, _many_attributes(pages, header))


def _many_attributes(pages: Pages, header: Header) -> bytes:
    """Return the block of a fractal heap that holds the attributes if they are many; b"" if they are few.

    Raise Unfamiliar for a heap of several blocks (III.G).
    """
    about = header.one(ATTRIBUTE_INFO)
    if about is None:
        return b""
    at = 2 + (2 if about[1] & 1 else 0)
    address = int.from_bytes(about[at : at + 8], "little")
    if address == _UNDEFINED:
        return b""
    start = pages.at(address, 146)
    size, offset_bits = struct.unpack_from("<Q8xH", start, 112)
    root, rows = struct.unpack_from("<QH", start, 132)
    if start[:5] != b"FRHP\x00" or not is_whole(start) or rows or size > _LONGEST_ATTRIBUTES:
        raise Unfamiliar("fractal heap")
    block = pages.at(root, size)
    if block[:5] != b"FHDB\x00":
        raise Unfamiliar("fractal heap")
    return block[13 + -(-offset_bits // 8) + (4 if start[9] & 2 else 0) :]


def heap(pages: Pages, address: int) -> bytes:
    """Return the local heap at an address, which holds the names of a group."""
    start = pages.at(address, 32)
    size, _, place = struct.unpack_from("<QQQ", start, 8)
    if start[:5] != b"HEAP\x00" or size > _LONGEST_HEAP:
        raise Unfamiliar("heap")
    return pages.at(place, size)


def name_at(names: bytes, place: int) -> str | None:
    """Return the name that begins at an offset, or None."""
    end = names.find(b"\0", place, place + _LONGEST_NAME)
    if not place < end:
        return None
    return names[place:end].decode("utf-8", "backslashreplace")


def _entries(pages: Pages, tree: int) -> Iterator[Entry]:
    """Yield the entries of all nodes below a B-tree. Lost nodes are skipped."""
    todo = [tree]
    seen: set[int] = set()
    while todo:
        address = todo.pop()
        if address in seen or len(seen) > _MOST_NODES:
            continue
        seen.add(address)
        try:
            if pages.at(address, 4) == NODE:
                yield from node_entries(pages, address)
            else:
                todo += _children(pages, address)
        except Unfamiliar:
            continue  # its children are lost, or found in another way


def _children(pages: Pages, address: int) -> list[int]:
    start = pages.at(address, 24)
    sign, kind, _, used = struct.unpack_from("<4sBBH", start)
    if sign != b"TREE" or kind != 0 or used > 4096:
        raise Unfamiliar("B-tree")
    body = pages.at(address + 24, 8 + 16 * used)
    return [struct.unpack_from("<Q", body, 8 + 16 * number)[0] for number in range(used)]


def node_entries(pages: Pages, address: int) -> list[Entry]:
    """Return the entries of one node of a symbol table."""
    sign, version, count = struct.unpack_from("<4sBxH", pages.at(address, 8))
    if sign != NODE or version != 1 or count > 4096:
        raise Unfamiliar("symbol table")
    body = pages.at(address + 8, 40 * count)
    return [Entry(*struct.unpack_from("<QQ", body, 40 * number)) for number in range(count)]
