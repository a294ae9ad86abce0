"""Sealed groups read straight from their bytes: several times faster than by libhdf5, which is asked when in doubt.

Only the forms that leeward itself writes are understood (HDF5 file format specification, sections IV.A.1.b and IV.A.2):
version 2 object headers with all attributes and links inside, compact scalars, and arrays of one chunk with fletcher32.
Every checksum that libhdf5 would check is checked. Whatever is not as expected is Unfamiliar, never wrong: what is
wrong is for libhdf5 to say.
"""

import ctypes
import functools
import os
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from leeward.store.format.schema import (
    DATASETS,
    MOST_ATTRIBUTES,
    MOST_TURBINES,
    Array,
    BadGroupError,
    Result,
    Value,
    sealed_result,
)

_LONGEST_BLOCK = 1 << 20
_MOST_BLOCKS = 300
_BEFORE, _PAGE = 1 << 14, 1 << 16
_LARGEST_ADDRESS = 1 << 60

_NIL, _SPACE, _LINK_INFO, _TYPE, _FILL, _LINK, _LAYOUT, _GROUP_INFO, _FILTERS, _ATTRIBUTE, _MORE, _ATTRIBUTE_INFO = (
    *(0x00, 0x01, 0x02, 0x03, 0x05, 0x06, 0x08, 0x0A, 0x0B, 0x0C, 0x10, 0x15),  # the numbers of messages
)
_NOT_ELSEWHERE = b"\0\0" + b"\xff" * 16  # of links or attributes: they are all in the header
_SCALAR = b"\x02\x00\x00\x00"
_FLETCHER32 = bytes.fromhex("0201030000000000")
_WHOLE = bytes.fromhex("100800000800000000004000")  # a signed integer of 64 bits, little-endian
_FLOAT = bytes.fromhex("11203f000800000000004000340b0034ff030000")  # IEEE double, little-endian
_TRUTH = bytes.fromhex("380200000100000010080000010000000000080046414c53450054525545000001")
_TEXT = bytes.fromhex("13110000")  # of a fixed length, which follows; UTF-8, padded with NUL


class Unfamiliar(Exception):  # noqa: N818 (nothing is wrong)
    """Not in the form that leeward writes, or damaged."""


# not swallowed: libhdf5 reads the same next, and has the last word
_DOUBTS = (Unfamiliar, BadGroupError, OSError, KeyError, IndexError, ValueError, OverflowError, struct.error)


class Checksums(NamedTuple):
    metadata: Callable[[bytes, int, int], int]
    fletcher32: Callable[[bytes, int], int]


@functools.cache
def checksums() -> Checksums | None:
    """Those of the libhdf5 that h5py has loaded; None where it does not show them, and there is no direct reading."""
    try:
        with open("/proc/self/maps") as file:
            paths = {line.split(None, 5)[5].strip() for line in file if "libhdf5" in line and "_hl" not in line}
        library = ctypes.CDLL(paths.pop())
        metadata, fletcher32 = library.H5_checksum_metadata, library.H5_checksum_fletcher32
    except (OSError, KeyError, AttributeError):
        return None
    metadata.restype = fletcher32.restype = ctypes.c_uint32
    metadata.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32]
    fletcher32.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return Checksums(metadata, fletcher32)


class Pages:
    """The bytes of an open file, a stretch of them kept: what belongs together lies together.

    base: where in the file its address 0 is.
    """

    def __init__(self, handle: int, base: int = 0) -> None:
        self._handle = handle
        self._base = base
        self._start = 0
        self._page = b""

    def at(self, address: int, length: int) -> bytes:
        start = address - self._start
        if address > _LARGEST_ADDRESS:
            raise Unfamiliar("an impossible address")
        if start < 0 or start + length > len(self._page):
            self._start = max(0, address - _BEFORE)
            self._page = os.pread(self._handle, max(_PAGE, _BEFORE + length), self._base + self._start)
            start = address - self._start
        found = self._page[start : start + length]
        if len(found) != length:
            raise Unfamiliar("beyond the end of the file")
        return found


class Held(Pages):
    """The bytes of a file that is held in memory."""

    def __init__(self, content: bytes) -> None:
        super().__init__(-1)
        self._page = content

    def at(self, address: int, length: int) -> bytes:
        found = self._page[address : address + length]
        if len(found) != length:
            raise Unfamiliar("beyond the end of the file")
        return found


def sealed_results(pages: Pages) -> tuple[dict[str, Value], dict[str, Result]] | None:
    """Attributes and results, by name, of a small file, if all is as leeward writes it and every seal is whole."""
    try:
        attributes, places = _members(pages, _root(pages))
        return attributes, {name: sealed_result(name, *_read_group(pages, place)) for name, place in places.items()}
    except _DOUBTS:
        return None


def sealed_result_at(pages: Pages, address: int, name: str) -> Result | None:
    """The result in the group whose header is there, if all is as leeward writes it and its seal is whole."""
    try:
        return sealed_result(name, *_read_group(pages, address))
    except _DOUBTS:
        return None


def _read_group(pages: Pages, address: int) -> tuple[dict[str, Value], dict[str, Array]]:
    """The attributes and the datasets of the group whose header is there."""
    attributes, places = _members(pages, address)
    if not places.keys() <= set(DATASETS):
        raise Unfamiliar("links")
    return attributes, {name: _dataset(pages, place) for name, place in places.items()}


def _members(pages: Pages, address: int) -> tuple[dict[str, Value], dict[str, int]]:
    """The attributes of a group, and where the headers of its members are."""
    attributes: dict[str, Value] = {}
    places: dict[str, int] = {}
    for kind, body in _messages(pages, address):
        if kind == _ATTRIBUTE:
            name, value = _attribute(body)
            if name in attributes or len(attributes) > MOST_ATTRIBUTES:
                raise Unfamiliar("attributes")
            attributes[name] = value
        elif kind == _LINK:
            name, place = _link(body)
            if name in places:
                raise Unfamiliar("links")
            places[name] = place
        elif kind in (_LINK_INFO, _ATTRIBUTE_INFO):
            if body != _NOT_ELSEWHERE:
                raise Unfamiliar("not in the header")
        elif kind not in (_NIL, _MORE, _GROUP_INFO):
            raise Unfamiliar("message")
    return attributes, places


def _root(pages: Pages) -> int:
    """Where the header of the root group is, by the superblock (section II.A of the specification)."""
    block = _checked(pages.at(0, 48))
    version, *widths_and_flags = block[8:12]
    base, extension, _, root = struct.unpack_from("<QQQQ", block, 12)
    if version not in (2, 3) or widths_and_flags != [8, 8, 0] or base or extension != 2**64 - 1:
        raise Unfamiliar("superblock")
    return int(root)


def _messages(pages: Pages, address: int) -> Iterator[tuple[int, bytes]]:
    """All messages of an object header, from all of its blocks, each of which fits its checksum."""
    start = pages.at(address, 32)
    flags = start[5]
    if start[:5] != b"OHDR\x02" or flags & 0b11001100:
        raise Unfamiliar("header")
    begin = 6 + 16 * (flags >> 5 & 1) + 4 * (flags >> 4 & 1)
    width = 1 << (flags & 3)
    length = int.from_bytes(start[begin : begin + width], "little")
    blocks = [(address, begin + width, begin + width + length + 4)]
    for address, begin, length in blocks:  # which grows on the way
        if length > _LONGEST_BLOCK or len(blocks) > _MOST_BLOCKS:
            raise Unfamiliar("blocks")
        block = _checked(pages.at(address, length))
        if block[:4] != (b"OHDR" if begin > 4 else b"OCHK"):
            raise Unfamiliar("block")
        while begin + 4 <= len(block):
            kind, size, flags = struct.unpack_from("<BHB", block, begin)
            body = block[begin + 4 : begin + 4 + size]
            begin += 4 + size
            if flags & 0b10 or len(body) != size:  # shared ones lie elsewhere
                raise Unfamiliar("message")
            if kind == _MORE:
                where, length = struct.unpack("<QQ", body)
                blocks.append((where, 4, length))
            yield kind, body


def _checked(block: bytes) -> bytes:
    known = checksums()
    if known is None or known.metadata(block, len(block) - 4, 0) != int.from_bytes(block[-4:], "little"):
        raise Unfamiliar("checksum")
    return block[:-4]


def _attribute(body: bytes) -> tuple[str, Value]:
    version, flags, name_size, type_size, space_size, _ = struct.unpack_from("<BBHHHB", body)
    if version != 3 or flags:
        raise Unfamiliar("attribute")
    after_name = 9 + name_size
    after_type = after_name + type_size
    name = body[9 : after_name - 1].decode()
    form, space = body[after_name:after_type], body[after_type : after_type + space_size]
    data = body[after_type + space_size :]
    if space != _SCALAR:
        if form != _FLOAT:
            raise Unfamiliar("array")
        return name, np.frombuffer(data, dtype="<f8", count=_shape(space, 1)[0]).astype(np.float64)
    return name, _scalar(form, data)


def _scalar(form: bytes, data: bytes) -> Value:
    if form[:4] == _TEXT and form[4:] == struct.pack("<I", len(data)):
        return data.rstrip(b"\0").decode()
    if form == _WHOLE and len(data) == 8:
        return int.from_bytes(data, "little", signed=True)
    if form == _FLOAT and len(data) == 8:
        return float(struct.unpack("<d", data)[0])
    if form == _TRUTH and data in (b"\0", b"\1"):
        return data == b"\1"
    raise Unfamiliar("type")


def _shape(space: bytes, dimensions: int) -> tuple[int, ...]:
    """Of a simple dataspace; the largest that it may grow to follows, and does not matter."""
    if space[:2] != bytes((2, dimensions)) or space[2] > 1 or space[3] != 1:
        raise Unfamiliar("dataspace")
    return struct.unpack_from(f"<{dimensions}Q", space, 4)


def _link(body: bytes) -> tuple[str, int]:
    """A hard link with a short name."""
    if body[:2] != b"\x01\x00" or len(body) != 11 + body[2]:
        raise Unfamiliar("link")
    return body[3:-8].decode(), int.from_bytes(body[-8:], "little")


def _dataset(pages: Pages, address: int) -> Array:
    found: dict[int, bytes] = {}
    for kind, body in _messages(pages, address):
        if kind in (_SPACE, _TYPE, _LAYOUT, _FILTERS) and kind not in found:
            found[kind] = body
        elif kind not in (_NIL, _MORE, _FILL) and not (kind == _ATTRIBUTE_INFO and body == _NOT_ELSEWHERE):
            raise Unfamiliar("message")
    space, layout = found[_SPACE], found[_LAYOUT]
    if found[_TYPE] != _FLOAT:
        raise Unfamiliar("type")
    if space == _SCALAR:
        if layout[:4] != b"\x03\x00\x08\x00" or len(layout) != 12:
            raise Unfamiliar("scalar")
        return np.array(struct.unpack("<d", layout[4:])[0])
    if found[_FILTERS] != _FLETCHER32:
        raise Unfamiliar("filters")
    return _chunk(pages, _shape(space, 2), layout)


def _chunk(pages: Pages, shape: tuple[int, ...], layout: bytes) -> Array:
    """The only chunk of an array, as large as the array, with fletcher32 behind it."""
    width = layout[4]
    dimensions = b"".join(length.to_bytes(width, "little") for length in (*shape, 8))
    size, mask, address = struct.unpack_from("<QIQ", layout, 6 + len(dimensions))
    numbers = shape[0] * shape[1]
    if layout[:4] != b"\x04\x02\x02\x03" or layout[5:-20] != dimensions + b"\x01":
        raise Unfamiliar("layout")
    if mask or size != 8 * numbers + 4 or not 1 <= numbers <= 2 * MOST_TURBINES:
        raise Unfamiliar("chunk")
    block = pages.at(address, size)
    known = checksums()
    if known is None or known.fletcher32(block, size - 4) != int.from_bytes(block[-4:], "little"):
        raise Unfamiliar("checksum")
    return np.frombuffer(block, dtype="<f8", count=numbers).astype(np.float64).reshape(shape)
