"""Read a small dataset of numbers: compact, contiguous, or in chunks with the filters of h5py.

Sections IV.A.2.i (layouts), IV.A.2.l (filters) and III.A.1 (chunks) of the specification.
"""

import functools
import itertools
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from leeward.carving.checksums import is_fletcher32, is_whole
from leeward.carving.messages import Numbers, form_of, numbers, shape_of
from leeward.carving.objects import FILTERS, LAYOUT, SPACE, TYPE, Header
from leeward.carving.pages import Doubtful, Pages, Unfamiliar

MOST_NUMBERS = 1_000_000
MOST_NUMBERS_A_CHUNK = 4_000_000

_COMPACT, _CONTIGUOUS, _CHUNKED = 0, 1, 2
_SINGLE, _FIXED_ARRAY = 1, 3  # types of chunk index
_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF = 1, 2, 3, 32000
_FIRST_NAMED = 256  # from this filter number on, every version of the message has a name
_MOST_CHUNKS = 10_000
_MOST_LEVELS = 8
_ZEROS = 4  # numbers: a chunk of at least this many zeros, and nothing else, suggests a wrong address


class Stored(NamedTuple):
    """The numbers of a dataset. place: their address if they are contiguous, else None."""

    numbers: Numbers
    place: int | None


class _Chunk(NamedTuple):
    """A chunk of a dataset. mask: the bits of the filters that were skipped."""

    offset: tuple[int, ...]
    address: int
    size: int
    mask: int = 0


def read_dataset(pages: Pages, header: Header, *, name: str = "array", most: int = MOST_NUMBERS) -> Stored:
    """Return all numbers of a dataset. Raise Unfamiliar if they cannot be read, Doubtful if they are likely wrong.

    name: the name of the dataset, for messages. most: the largest number of values that it may have.
    """
    space, kind, layout = header.one(SPACE), header.one(TYPE), header.one(LAYOUT)
    if space is None or kind is None or layout is None:
        raise Unfamiliar("not a dataset")
    shape, dtype = shape_of(space), form_of(kind).dtype
    if dtype is None or dtype.kind not in "iuf" or math.prod(shape) > most:
        raise Unfamiliar("not a small dataset of numbers")
    version, sort = layout[0], layout[1]
    size = math.prod(shape) * dtype.itemsize
    if version not in (3, 4, 5):
        raise Unfamiliar("layout")
    if sort == _COMPACT:
        return Stored(numbers(dtype, shape, layout[4:]), None)
    if sort == _CONTIGUOUS:
        place, length = struct.unpack_from("<QQ", layout, 2)
        if length < size:
            raise Unfamiliar("layout")
        return Stored(numbers(dtype, shape, pages.at(place, size)), place)
    if sort != _CHUNKED:
        raise Unfamiliar("layout")
    chunk_shape, chunks = _chunks(pages, version, layout, shape, dtype.itemsize)
    filters = _filters(header.one(FILTERS))
    return Stored(_joined(pages, np.zeros(shape, dtype=dtype), chunk_shape, chunks, filters, name), None)


def _joined(
    pages: Pages,
    whole: Numbers,
    chunk_shape: tuple[int, ...],
    chunks: Sequence[_Chunk],
    filters: Sequence[int],
    name: str,
) -> Numbers:
    """Join all chunks. Raise Unfamiliar if one is missing or too large."""
    shape, dtype = whole.shape, whole.dtype
    expected = set(_offsets(shape, chunk_shape))
    if len(chunks) != len(expected) or {chunk.offset for chunk in chunks} != expected:
        raise Unfamiliar("chunks are missing")
    ordered = sorted(chunks, key=lambda chunk: chunk.address)
    if any(one.address + one.size > other.address for one, other in itertools.pairwise(ordered)):
        raise Doubtful(f"chunks of its {name} overlap")
    for chunk in chunks:
        if chunk.size > 16 * MOST_NUMBERS_A_CHUNK:
            raise Unfamiliar("a chunk is too large")
        used = _used(filters, chunk.mask)
        data = _plain(pages.at(chunk.address, chunk.size), used, dtype.itemsize, math.prod(chunk_shape))
        part = numbers(dtype, chunk_shape, data)
        if len(chunks) > 1 and part.size >= _ZEROS and not part.any():
            raise Doubtful(f"a chunk of its {name} is all zeros and was probably lost")
        where = tuple(
            slice(start, min(start + step, length))
            for start, step, length in zip(chunk.offset, chunk_shape, shape, strict=True)
        )
        whole[where] = part[tuple(slice(one.stop - one.start) for one in where)]
    return whole


def _chunks(
    pages: Pages, version: int, layout: bytes, shape: tuple[int, ...], width: int
) -> tuple[tuple[int, ...], list[_Chunk]]:
    """Return the shape of the chunks, and the chunks."""
    rank = len(shape)
    if version == 3:
        if layout[2] != rank + 1:
            raise Unfamiliar("layout")
        (tree,) = struct.unpack_from("<Q", layout, 3)
        chunk_shape = struct.unpack_from(f"<{rank}I", layout, 11)
        _check_chunk_shape(chunk_shape)
        chunks = list(itertools.islice(_in_tree(pages, tree, rank), _MOST_CHUNKS + 1))
        return chunk_shape, chunks
    flags, dimensions, bytes_each = layout[2], layout[3], layout[4]
    after = 5 + bytes_each * dimensions
    if dimensions != rank + 1 or not 1 <= bytes_each <= 8:
        raise Unfamiliar("layout")
    sides = [layout[5 + bytes_each * number :][:bytes_each] for number in range(rank)]
    chunk_shape = tuple(int.from_bytes(side, "little") for side in sides)
    _check_chunk_shape(chunk_shape)
    size, mask = math.prod(chunk_shape) * width, 0
    if layout[after] == _FIXED_ARRAY:
        (address,) = struct.unpack_from("<Q", layout, after + 2)
        return chunk_shape, _in_array(pages, address, list(_offsets(shape, chunk_shape)), size)
    if layout[after] != _SINGLE:
        raise Unfamiliar("chunks of a resizable dataset")
    if flags & 2:  # the chunk has filters
        size, mask = struct.unpack_from("<QI", layout, after + 1)
        after += 12
    (address,) = struct.unpack_from("<Q", layout, after + 1)
    return chunk_shape, [_Chunk((0,) * rank, address, size, mask)]


def _offsets(shape: Sequence[int], chunk_shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Return the offsets of the chunks of an array, in index order."""
    if math.prod(shape) == 0 or math.prod(-(-a // b) for a, b in zip(shape, chunk_shape, strict=True)) > _MOST_CHUNKS:
        raise Unfamiliar("no chunks, or too many")
    sides = zip(shape, chunk_shape, strict=True)
    return itertools.product(*(range(0, length, step) for length, step in sides))


def _in_array(pages: Pages, address: int, offsets: Sequence[tuple[int, ...]], size: int) -> list[_Chunk]:
    """Return the chunks in a fixed array index (section VII.C). size: the size of a chunk without filters."""
    head = pages.at(address, 28)
    filtered, entry, page_bits, count, block = struct.unpack_from("<BBBQQ", head, 5)
    if head[:5] != b"FAHD\x00" or not is_whole(head) or count != len(offsets) or count > 1 << min(page_bits, 16):
        raise Unfamiliar("an invalid index of chunks")
    body = pages.at(block, 14 + entry * count + 4)
    if body[:5] != b"FADB\x00" or not is_whole(body) or entry < (14 if filtered else 8):
        raise Unfamiliar("an invalid index of chunks")
    chunks = []
    for number, offset in enumerate(offsets):
        one = body[14 + entry * number :][:entry]
        stored = int.from_bytes(one[8 : entry - 4], "little") if filtered else size
        mask = int.from_bytes(one[entry - 4 :], "little") if filtered else 0
        chunks.append(_Chunk(offset, int.from_bytes(one[:8], "little"), stored, mask))
    return chunks


def _check_chunk_shape(chunk_shape: Sequence[int]) -> None:
    if not 1 <= math.prod(chunk_shape) <= MOST_NUMBERS_A_CHUNK:
        raise Unfamiliar("an invalid chunk size")


def _in_tree(pages: Pages, address: int, rank: int, levels: int = _MOST_LEVELS) -> Iterator[_Chunk]:
    start = pages.at(address, 24)
    sign, kind, level, used = struct.unpack_from("<4sBBH", start)
    if sign != b"TREE" or kind != 1 or used > 4096 or level >= levels:
        raise Unfamiliar("B-tree")
    key = 8 + 8 * (rank + 1)
    body = pages.at(address + 24, used * (key + 8))
    for number in range(used):
        at = number * (key + 8)
        size, mask = struct.unpack_from("<II", body, at)
        offset = struct.unpack_from(f"<{rank}Q", body, at + 8)
        (child,) = struct.unpack_from("<Q", body, at + key)
        if level:
            yield from _in_tree(pages, child, rank, level)
        else:
            yield _Chunk(offset, child, size, mask)


@functools.lru_cache(maxsize=1024)
def _filters(body: bytes | None) -> Sequence[int]:
    """Return the filters of a dataset, in order."""
    if body is None:
        return []
    version, count = body[0], body[1]
    if version not in (1, 2) or count > 8:
        raise Unfamiliar("an invalid list of filters")
    at = 8 if version == 1 else 2
    found = []
    for _ in range(count):
        kind = int.from_bytes(body[at : at + 2], "little")
        if kind not in (_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF):
            raise Unfamiliar("an unknown filter")
        is_named = version == 1 or kind >= _FIRST_NAMED
        name = int.from_bytes(body[at + 2 : at + 4], "little") if is_named else 0
        at += 6 if is_named else 4
        values = int.from_bytes(body[at : at + 2], "little")
        if version == 1:  # this version pads both
            name, values = -(-name // 8) * 8, values + (values & 1)
        at += 2 + name + 4 * values
        found.append(kind)
    return found


def _used(filters: Sequence[int], mask: int) -> list[int]:
    """Return the filters applied to a chunk. Only LZF may be skipped, for numbers that it cannot compress."""
    left_out = [kind for number, kind in enumerate(filters) if mask >> number & 1]
    if mask >> len(filters) or any(kind != _LZF for kind in left_out):
        raise Unfamiliar("a chunk without a required filter")
    return [kind for kind in filters if kind not in left_out]


def _plain(data: bytes, filters: Sequence[int], width: int, count: int) -> bytes:
    for kind in reversed(filters):
        if kind == _FLETCHER32:
            if len(data) < 4 or not is_fletcher32(data[:-4], data[-4:]):
                raise Unfamiliar("checksum")
            data = data[:-4]
        elif kind == _DEFLATE:
            inflating = zlib.decompressobj()
            try:
                data = inflating.decompress(data, width * count + 4)
            except zlib.error as error:
                raise Unfamiliar("compressed numbers") from error
        elif kind == _LZF:
            data = _from_lzf(data, width * count + 4)
        else:
            whole = len(data) // width * width
            turned = np.frombuffer(data, dtype=np.uint8, count=whole).reshape(width, -1).T.tobytes()
            data = turned + data[whole:]
    return data


def _from_lzf(data: bytes, most: int) -> bytes:
    """Decompress LZF data. LZF is a filter of h5py. Raise Unfamiliar if they are invalid."""
    plain = bytearray()
    at = 0
    try:
        while at < len(data) and len(plain) <= most:
            control = data[at]
            at += 1
            if control < 32:  # a literal of control + 1 bytes
                plain += data[at : at + control + 1]
                at += control + 1
                continue
            length, distance = control >> 5, (control & 31) << 8
            if length == 7:
                length += data[at]
                at += 1
            start = len(plain) - distance - data[at] - 1
            at += 1
            if start < 0:
                raise Unfamiliar("compressed numbers")
            for place in range(start, start + length + 2):  # they may overlap
                plain.append(plain[place])
    except IndexError as error:
        raise Unfamiliar("compressed numbers") from error
    return bytes(plain)
