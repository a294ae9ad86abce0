"""Read the objects of a file: their headers, and the attributes and members of groups.

Sections IV.A.1.a and b (headers), III.A.1, III.B and III.D (symbol tables) of the HDF5 file format specification.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from leeward.carving.checksums import is_whole
from leeward.carving.messages import Raw, attribute, attributes_in, link
from leeward.carving.pages import Pages, Unfamiliar

SPACE, LINK_INFO, TYPE, LINK, LAYOUT, FILTERS, ATTRIBUTE = 0x01, 0x02, 0x03, 0x06, 0x08, 0x0B, 0x0C
CONTINUATION, SYMBOL_TABLE, ATTRIBUTE_INFO = 0x10, 0x11, 0x15
NEW, NODE, HEAP = b"OHDR", b"SNOD", b"HEAP"

_LARGEST_KIND = 0x18
_LONGEST_BLOCK = 1 << 20
_MOST_BLOCKS = 300
_SHARED = 0b10
_MOST_NODES = 100_000
_LONGEST_HEAP = 1 << 26
_LONGEST_ATTRIBUTES = 1 << 22
_LONGEST_NAME = 1024
_UNDEFINED = 2**64 - 1


class Header(NamedTuple):
    """An object header. messages: kind and body of each message that is not stored elsewhere (shared)."""

    messages: list[tuple[int, bytes]]

    def all(self, kind: int) -> list[bytes]:
        return [body for one, body in self.messages if one == kind]

    def one(self, kind: int) -> bytes | None:
        """Return the body of the first message of this kind, or None."""
        return next((body for one, body in self.messages if one == kind), None)

    @property
    def is_group(self) -> bool:
        return any(kind in (SYMBOL_TABLE, LINK_INFO, LINK) for kind, _ in self.messages)


def read_header(pages: Pages, address: int, *, is_checked: bool = False) -> Header:
    """Return the object header at an address. Raise Unfamiliar if there is none.

    is_checked: True if libhdf5 has verified its checksums. In Python this is slow.
    """
    start = pages.at(address, 16)
    if start[:4] == NEW:
        version, flags = start[4:6]
        if version != 2:
            raise Unfamiliar("an unsupported header")
        before = 6 + 16 * (flags >> 5 & 1) + 4 * (flags >> 4 & 1)  # times, and limits for attributes
        width = 1 << (flags & 3)
        length = before + width + int.from_bytes(pages.at(address + before, width), "little") + 4
        order = 2 * (flags >> 2 & 1)  # creation order of attributes
        found = _messages(pages, address, length, "<BHB", 4 + order, before + width, True, is_checked)
    else:
        version, _, count, _, length = struct.unpack_from("<BBHII", start)
        if version != 1:
            raise Unfamiliar("an unsupported header")
        found = _messages(pages, address + 16, length, "<HHB", 8)
        if len(found) != count:
            raise Unfamiliar("a wrong number of messages")  # zeros look like many empty messages
    return Header([(kind, body) for kind, flags, body in found if not flags & _SHARED])


def _messages(
    pages: Pages,
    address: int,
    length: int,
    form: str,
    start: int,
    at: int = 0,
    has_checksum: bool = False,
    is_checked: bool = False,
) -> list[tuple[int, int, bytes]]:
    """Return the kind, flags and body of each message in a header and its continuations.

    length: of the first block. form, start: struct format and length of the prefix of each message. at: the offset of
    the first message.
    """
    blocks = [(address, length)]
    found: list[tuple[int, int, bytes]] = []
    for place, end in blocks:  # the loop appends continuation blocks
        if not 8 <= end <= _LONGEST_BLOCK or len(blocks) > _MOST_BLOCKS:
            raise Unfamiliar("an invalid header block")
        block = pages.at(place, end)
        if has_checksum:
            if block[:4] != (b"OCHK" if found else NEW) or not (is_checked or is_whole(block)):
                raise Unfamiliar("a checksum does not match")
            end -= 4
        while at + start <= end:
            kind, size, flags = struct.unpack_from(form, block, at)
            at += start + size
            if at > end or kind > _LARGEST_KIND:
                raise Unfamiliar("an invalid header message")
            if kind == CONTINUATION:
                blocks.append(struct.unpack_from("<QQ", block, at - size))
            found.append((kind, flags, block[at - size : at]))
        at = 4 if has_checksum else 0
    return found


# --- groups ----------------------------------------------------------------------------------------------------------


def members(pages: Pages, header: Header) -> dict[str, int]:
    """Return the names and addresses of the members of a group, as far as its table is readable."""
    found: dict[str, int] = {}
    for body in header.all(LINK):
        name, address, _ = link(body)
        found[name] = address
    table = header.one(SYMBOL_TABLE)
    if table is not None:
        tree, heap_address = struct.unpack_from("<QQ", table)
        names = heap(pages, heap_address)
        for offset, address in _entries(pages, tree):
            called = name_at(names, offset)
            if called is not None:
                found[called] = address
    return found


def attributes_of(pages: Pages, header: Header) -> Iterator[tuple[str, Raw | None]]:
    """Yield the name and value of each attribute; None for a value of an unsupported type."""
    for body in header.all(ATTRIBUTE):
        name, value, _ = attribute(pages, body)
        yield name, value
    yield from attributes_in(pages, _many_attributes(pages, header))


def _many_attributes(pages: Pages, header: Header) -> bytes:
    """Return the block of the fractal heap that holds the attributes; b"" if the header holds them.

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
        raise Unfamiliar("an invalid fractal heap")
    block = pages.at(root, size)
    if block[:5] != b"FHDB\x00":
        raise Unfamiliar("an invalid fractal heap")
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


def _entries(pages: Pages, tree: int) -> Iterator[tuple[int, int]]:
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
            continue  # its children are lost, or the search finds them by their own marks


def _children(pages: Pages, address: int) -> list[int]:
    start = pages.at(address, 24)
    sign, kind, _, used = struct.unpack_from("<4sBBH", start)
    if sign != b"TREE" or kind != 0 or used > 4096:
        raise Unfamiliar("an invalid B-tree")
    body = pages.at(address + 24, 8 + 16 * used)
    return [struct.unpack_from("<Q", body, 8 + 16 * number)[0] for number in range(used)]


def node_entries(pages: Pages, address: int) -> list[tuple[int, int]]:
    """Return the entries of one node of a symbol table: the offset of a name in the heap, and the object's address."""
    sign, version, count = struct.unpack_from("<4sBxH", pages.at(address, 8))
    if sign != NODE or version != 1 or count > 4096:
        raise Unfamiliar("an invalid symbol table")
    body = pages.at(address + 8, 40 * count)
    return [struct.unpack_from("<QQ", body, 40 * number) for number in range(count)]
