"""Read the object headers of groups and datasets: version 1, and version 2 with checksums.

Sections IV.A.1.a and IV.A.1.b of the HDF5 file format specification.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from leeward.carving.checksums import is_whole
from leeward.carving.pages import Pages, Unfamiliar

SPACE, LINK_INFO, TYPE, LINK, LAYOUT, FILTERS, ATTRIBUTE = 0x01, 0x02, 0x03, 0x06, 0x08, 0x0B, 0x0C
CONTINUATION, SYMBOL_TABLE, ATTRIBUTE_INFO = 0x10, 0x11, 0x15
NEW = b"OHDR"

_LARGEST_KIND = 0x18
_LONGEST_BLOCK = 1 << 20
_MOST_BLOCKS = 300
_SHARED = 0b10


class Header(NamedTuple):
    """An object header. messages: kind and body of each, without shared messages, which lie elsewhere."""

    address: int
    messages: list[tuple[int, bytes]]

    def all(self, kind: int) -> list[bytes]:
        return [body for one, body in self.messages if one == kind]

    def one(self, kind: int) -> bytes | None:
        """Return the body of the first message of this kind, or None."""
        for one, body in self.messages:
            if one == kind:
                return body
        return None

    @property
    def is_group(self) -> bool:
        return any(kind in (SYMBOL_TABLE, LINK_INFO, LINK) for kind, _ in self.messages)


def read_header(pages: Pages, address: int) -> Header:
    """Return the object header at an address. Raise Unfamiliar if there is none."""
    start = pages.at(address, 16)
    return _new(pages, address) if start[:4] == NEW else _old(pages, address, start)


def _old(pages: Pages, address: int, start: bytes) -> Header:
    version, _, count, _, length = struct.unpack_from("<BBHII", start)
    if version != 1:
        raise Unfamiliar("header")
    blocks = [(address + 16, length)]
    messages: list[tuple[int, bytes]] = []
    seen = 0
    for place, length in blocks:  # grows in the loop
        block = _block(pages, place, length, blocks)
        at = 0
        while at + 8 <= length:
            kind, size, flags = struct.unpack_from("<HHB", block, at)
            at += 8 + size
            seen += 1
            if at > length or kind > _LARGEST_KIND:
                raise Unfamiliar("message")
            if kind == CONTINUATION:
                blocks.append(struct.unpack_from("<QQ", block, at - size))
            if not flags & _SHARED:
                messages.append((kind, block[at - size : at]))
    if seen != count:
        raise Unfamiliar("the number of messages")  # a block of zeros would look like many empty ones
    return Header(address, messages)


def _new(pages: Pages, address: int) -> Header:
    start = pages.at(address, 6)
    flags = start[5]
    if start[4] != 2:
        raise Unfamiliar("header")
    before = 6 + 16 * (flags >> 5 & 1) + 4 * (flags >> 4 & 1)  # times, and limits for attributes
    width = 1 << (flags & 3)
    length = int.from_bytes(pages.at(address + before, width), "little")
    order = 2 * (flags >> 2 & 1)  # creation order of attributes
    blocks = [(address, before + width + length + 4)]
    messages: list[tuple[int, bytes]] = []
    at = before + width
    for place, length in blocks:  # grows in the loop
        block = _block(pages, place, length, blocks)
        if block[:4] != (b"OCHK" if messages else NEW) or not is_whole(block):
            raise Unfamiliar("checksum")
        end = length - 4
        while at + 4 + order <= end:
            kind, size, flags = struct.unpack_from("<BHB", block, at)
            at += 4 + order + size
            if at > end or kind > _LARGEST_KIND:
                raise Unfamiliar("message")
            if kind == CONTINUATION:
                blocks.append(struct.unpack_from("<QQ", block, at - size))
            if not flags & _SHARED:
                messages.append((kind, block[at - size : at]))
        at = 4
    return Header(address, messages)


def _block(pages: Pages, place: int, length: int, blocks: Sequence[tuple[int, int]]) -> bytes:
    if not 8 <= length <= _LONGEST_BLOCK or len(blocks) > _MOST_BLOCKS:
        raise Unfamiliar("blocks")
    return pages.at(place, length)
