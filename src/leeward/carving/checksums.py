"""The checksums of HDF5: lookup3 of its newer metadata, and fletcher32 of chunks."""

import ctypes
import functools
from collections.abc import Callable

import numpy as np


def lookup3(content: bytes) -> int:
    """Return Bob Jenkins' `hashlittle`, 32 bits, with the initial value 0 (section IV of the specification).

    libhdf5 hashes a hundred times faster than Python, and reads nothing but these bytes.
    """
    compiled = _lookup3_of_libhdf5()
    return _hash(content) if compiled is None else compiled(content, len(content), 0)


@functools.cache
def _lookup3_of_libhdf5() -> Callable[[bytes, int, int], int] | None:
    """Return the internal function of the library that h5py has loaded; None if it is not exported, or has changed."""
    import h5py

    try:
        function = ctypes.CDLL(h5py.h5.__file__).H5_checksum_lookup3
    except (OSError, AttributeError):
        return None
    function.argtypes = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32
    function.restype = ctypes.c_uint32
    sample = bytes(range(50))
    return function if function(sample, len(sample), 0) == _hash(sample) else None


def _hash(content: bytes) -> int:
    if not content:
        return 0xDEADBEEF
    words = np.frombuffer(content.ljust(-(-len(content) // 12) * 12, b"\0"), dtype="<u4").tolist()
    *blocks, last = zip(words[0::3], words[1::3], words[2::3], strict=True)
    a = b = c = (0xDEADBEEF + len(content)) & 0xFFFFFFFF
    for x, y, z in blocks:
        c = (c + z) & 0xFFFFFFFF
        b += y
        a = (a + x - c ^ (c << 4 | c >> 28)) & 0xFFFFFFFF
        c += b
        b = (b - a ^ (a << 6 | a >> 26)) & 0xFFFFFFFF
        a += c
        c = (c - b ^ (b << 8 | b >> 24)) & 0xFFFFFFFF
        b += a
        a = (a - c ^ (c << 16 | c >> 16)) & 0xFFFFFFFF
        c += b
        b = (b - a ^ (a << 19 | a >> 13)) & 0xFFFFFFFF
        a += c
        c = (c - b ^ (b << 4 | b >> 28)) & 0xFFFFFFFF
        b += a
    a, b, c = ((one + word) & 0xFFFFFFFF for one, word in zip((a, b, c), last, strict=True))
    c = ((c ^ b) - (b << 14 | b >> 18)) & 0xFFFFFFFF
    a = ((a ^ c) - (c << 11 | c >> 21)) & 0xFFFFFFFF
    b = ((b ^ a) - (a << 25 | a >> 7)) & 0xFFFFFFFF
    c = ((c ^ b) - (b << 16 | b >> 16)) & 0xFFFFFFFF
    a = ((a ^ c) - (c << 4 | c >> 28)) & 0xFFFFFFFF
    b = ((b ^ a) - (a << 14 | a >> 18)) & 0xFFFFFFFF
    return int(((c ^ b) - (b << 24 | b >> 8)) & 0xFFFFFFFF)


def is_whole(block: bytes) -> bool:
    """Return whether a block of metadata ends in its own checksum."""
    return len(block) > 4 and lookup3(block[:-4]) == int.from_bytes(block[-4:], "little")


def fletcher32(data: bytes) -> int:
    """Return the checksum of libhdf5's filter: two sums modulo 65535 over big-endian 16-bit words."""
    words = np.frombuffer(data + b"\0" * (len(data) % 2), dtype=">u2").astype(np.uint64)
    sums = int(words.sum()), int(words @ np.arange(len(words), 0, -1, dtype=np.uint64))
    first, second = (one % 65535 or 65535 * (one > 0) for one in sums)
    return second << 16 | first


def is_fletcher32(data: bytes, stored: bytes) -> bool:
    """Return whether data have the stored checksum, in which 0 equals 65535."""
    found, expected = fletcher32(data), int.from_bytes(stored, "little")
    return all((found >> bits & 0xFFFF) % 65535 == (expected >> bits & 0xFFFF) % 65535 for bits in (0, 16))
