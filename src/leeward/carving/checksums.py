"""The checksums of HDF5: lookup3 for newer metadata, and fletcher32 for chunks."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

_WORTH_COMPILING = 20_000_000  # bytes: Python needs about 1.3 s; importing numba and compiling take half as long
_hashed = 0  # bytes that this process has hashed so far


def lookup3(content: bytes) -> int:
    """Return Bob Jenkins' `hashlittle`, 32 bits, with the initial value 0 (section IV of the specification).

    For small files, plain Python takes less time than importing numba. For large amounts of data, numba compiles the
    same function.
    """
    global _hashed
    if not content:
        return 0xDEADBEEF
    _hashed += len(content)
    words = np.frombuffer(content.ljust(-(-len(content) // 12) * 12, b"\0"), dtype="<u4")
    if _hashed > _WORTH_COMPILING:
        numbers = words.astype(np.int64)
        return int(_compiled()(numbers[0::3], numbers[1::3], numbers[2::3], len(content)))
    plain = words.tolist()
    return _hash(plain[0::3], plain[1::3], plain[2::3], len(content))


@functools.cache
def _compiled() -> Callable[..., int]:
    import numba

    compiled: Callable[..., int] = numba.njit(_hash)
    return compiled


def _hash(first: Any, second: Any, third: Any, length: int) -> int:
    """Hash 32-bit words, three per block. The words may be Python ints or int64."""
    a = b = c = (0xDEADBEEF + length) & 0xFFFFFFFF
    for x, y, z in zip(first[:-1], second[:-1], third[:-1]):  # noqa: B905 (numba has no strict)
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
    a, b, c = (a + first[-1]) & 0xFFFFFFFF, (b + second[-1]) & 0xFFFFFFFF, (c + third[-1]) & 0xFFFFFFFF
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
    """Return whether data match the stored checksum. In this checksum 0 and 65535 are equal."""
    found, expected = fletcher32(data), int.from_bytes(stored, "little")
    return all((found >> bits & 0xFFFF) % 65535 == (expected >> bits & 0xFFFF) % 65535 for bits in (0, 16))
