"""Parse the messages of an object header: shapes, types, attributes, links (section IV.A.2 of the specification)."""

import functools
import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leeward.carving.pages import Pages, Unfamiliar

Numbers = npt.NDArray[np.generic]
Raw = Numbers | str | bytes  # a stored value: variable-length text as str, fixed-length text as bytes

_MOST_DIMENSIONS = 4
_WHOLE_NUMBER, _REAL_NUMBER, _TEXT, _CHOICE, _VARIABLE = 0, 1, 3, 8, 9
_IEEE = {8: bytes.fromhex("000040 00 34 0b 00 34 ff030000"), 4: bytes.fromhex("000020 00 17 08 00 17 7f000000")}
_REFERENCE = 16  # bytes of a reference to variable-length text
_LARGEST_HEAP = 1 << 24
_BOOL = b"FALSE\0", b"TRUE\0"


class Form(NamedTuple):
    """A data type: numbers (`dtype`), or text of `size` bytes. size is 0 for variable-length text."""

    dtype: np.dtype[np.generic] | None
    size: int


@functools.lru_cache(maxsize=1024)
def shape_of(space: bytes) -> tuple[int, ...]:
    version, rank = space[0], space[1]
    if version not in (1, 2) or rank > _MOST_DIMENSIONS:
        raise Unfamiliar("an unsupported dataspace")
    if version == 2 and space[3] == 2:
        raise Unfamiliar("an empty dataspace")
    return struct.unpack_from(f"<{rank}Q", space, 8 if version == 1 else 4)


@functools.lru_cache(maxsize=1024)
def form_of(kind: bytes) -> Form:
    version, sort = kind[0] >> 4, kind[0] & 15
    bits = kind[1]
    size = int.from_bytes(kind[4:8], "little")
    if not 1 <= version <= 5:
        raise Unfamiliar("an unsupported type")
    order = ">" if bits & 1 else "<"
    if sort == _WHOLE_NUMBER and size in (1, 2, 4, 8):
        return Form(np.dtype(f"{order}{'i' if bits & 8 else 'u'}{size}"), size)
    if sort == _REAL_NUMBER and bits & 0x40 == 0 and kind[8:20] == _IEEE.get(size):
        return Form(np.dtype(f"{order}f{size}"), size)
    if sort == _TEXT and 1 <= size <= 1 << 16:
        return Form(None, size)
    if sort == _CHOICE and size == 1 and all(name in kind for name in _BOOL):
        return Form(np.dtype(bool), 1)
    if sort == _VARIABLE and bits & 15 == 1:
        return Form(None, 0)
    raise Unfamiliar("an unsupported type")


def attribute(pages: Pages, body: bytes) -> tuple[str, Raw | None, int]:
    """Return the name, value and length of an attribute. The value is None if its type is unsupported."""
    version, flags, *lengths = struct.unpack_from("<BBHHH", body)
    if version == 1:
        at = 8 + sum(-(-length // 8) * 8 for length in lengths)
    else:
        at = (9 if version == 3 else 8) + sum(lengths)
    if at > len(body):
        raise Unfamiliar("an invalid attribute")
    name, form, shape = _attribute_start(body[:at])
    if form is None:
        return name, None, len(body)
    end = at + (form.size or _REFERENCE) * math.prod(shape)
    if end > len(body):
        raise Unfamiliar("an invalid attribute")
    try:
        return name, None if version > 1 and flags else _value(pages, form, shape, body[at:end]), end
    except Unfamiliar:  # the text is lost
        return name, None, end


@functools.lru_cache(maxsize=4096)  # the attributes of many groups differ only in their values
def _attribute_start(start: bytes) -> tuple[str, Form | None, tuple[int, ...]]:
    """Return the name, form and shape of an attribute from the bytes before its value. An unsupported form is None."""
    version, *lengths = struct.unpack_from("<BxHHH", start)
    if version not in (1, 2, 3):
        raise Unfamiliar("an invalid attribute")
    at = 9 if version == 3 else 8
    parts = []
    for length in lengths:
        parts.append(start[at : at + length])
        at += -(-length // 8) * 8 if version == 1 else length
    name = parts[0].rstrip(b"\0").decode("utf-8", "backslashreplace")
    if not name:
        raise Unfamiliar("an invalid attribute")
    try:
        return name, form_of(parts[1]), shape_of(parts[2])
    except Unfamiliar:
        return name, None, ()


def attributes_in(pages: Pages, block: bytes) -> Iterator[tuple[str, Raw | None]]:
    """Yield the names and values of consecutive attributes."""
    while block[:1] in (b"\x01", b"\x02", b"\x03"):  # the version of an attribute; zeros follow the last one
        name, value, length = attribute(pages, block)
        yield name, value
        block = block[length:]


def _value(pages: Pages, form: Form, shape: tuple[int, ...], data: bytes) -> Raw:
    if form.dtype is not None:
        return numbers(form.dtype, shape, data)
    if math.prod(shape) != 1:
        raise Unfamiliar("an array of texts")
    return data if form.size else vlen_text(pages, data)


def numbers(dtype: np.dtype[np.generic], shape: tuple[int, ...], data: bytes) -> Numbers:
    """Return the numbers in data. Raise Unfamiliar if there are too few."""
    count = math.prod(shape) if shape else 1
    if len(data) < count * dtype.itemsize:
        raise Unfamiliar("too few numbers")
    return np.frombuffer(data, dtype, count).reshape(shape)


def link(body: bytes) -> tuple[str, int, int]:
    """Return the name, address and length of a hard link."""
    version, flags = body[0], body[1]
    if version != 1 or flags & 0b11100000:
        raise Unfamiliar("an invalid link")
    at = 2
    if flags & 0b1000:
        if body[at] != 0:
            raise Unfamiliar("a soft or external link")
        at += 1
    at += 8 * (flags >> 2 & 1) + (flags >> 4 & 1)
    width = 1 << (flags & 3)
    length = int.from_bytes(body[at : at + width], "little")
    at += width
    name, address = body[at : at + length], body[at + length : at + length + 8]
    if not 1 <= length <= 255 or len(address) < 8:
        raise Unfamiliar("an invalid link")
    return name.decode("utf-8", "backslashreplace"), int.from_bytes(address, "little"), at + length + 8


def vlen_text(pages: Pages, reference: bytes) -> str:
    """Return the variable-length text that an attribute refers to, from the global heap (section III.E).

    reference: the length of the text, the address of a heap collection, and an index in it.
    """
    length, address, number = struct.unpack_from("<IQI", reference)
    if length == 0:
        return ""
    start = pages.at(address, 16)
    size = int.from_bytes(start[8:], "little")
    if start[:5] != b"GCOL\x01" or size > _LARGEST_HEAP:
        raise Unfamiliar("an invalid global heap")
    block = pages.at(address, size)
    at = 16
    while at + 16 <= size:
        this, held = struct.unpack_from("<H6xQ", block, at)
        if this == number:
            text = block[at + 16 : at + 16 + length]
            if held < length or len(text) < length:
                raise Unfamiliar("an invalid global heap")
            return text.decode("utf-8", "replace")
        if this == 0:
            break  # the rest is free space
        at += 16 + -(-held // 8) * 8
    raise Unfamiliar("an invalid global heap")
