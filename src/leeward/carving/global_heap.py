"""Text of a variable length, which lies in a heap of its own (section III.E of the specification)."""

import struct

from leeward.store.format.direct import Pages, Unfamiliar

_LARGEST = 1 << 24


def vlen_text(pages: Pages, reference: bytes) -> str:
    """The text that an attribute refers to: its length, the address of a collection, and a number in it."""
    length, address, number = struct.unpack_from("<IQI", reference)
    if length == 0:
        return ""
    start = pages.at(address, 16)
    size = int.from_bytes(start[8:], "little")
    if start[:5] != b"GCOL\x01" or size > _LARGEST:
        raise Unfamiliar("global heap")
    block = pages.at(address, size)
    at = 16
    while at + 16 <= size:
        this, held = struct.unpack_from("<H6xQ", block, at)
        if this == number:
            text = block[at + 16 : at + 16 + length]
            if held < length or len(text) < length:
                raise Unfamiliar("global heap")
            return text.decode("utf-8", "replace")
        if this == 0:
            break  # the rest is free
        at += 16 + -(-held // 8) * 8
    raise Unfamiliar("global heap")
