"""The checksums of HDF5: lookup3 of its newer metadata, and fletcher32 of chunks."""

import struct

import numpy as np

_MASK = 0xFFFFFFFF


def lookup3(content: bytes) -> int:
    """Return Bob Jenkins' `hashlittle`, 32 bits, with the initial value 0 (section IV of the specification)."""
    length = len(content)
    a = b = c = (0xDEADBEEF + length) & _MASK
    if not length:
        return c
    last = (length - 1) // 12 * 12
    for first, second, third in struct.iter_unpack("<III", content[:last]):
        c = (c + third) & _MASK
        b += second
        a = (a + first - c ^ (c << 4 | c >> 28)) & _MASK
        c += b
        b = (b - a ^ (a << 6 | a >> 26)) & _MASK
        a += c
        c = (c - b ^ (b << 8 | b >> 24)) & _MASK
        b += a
        a = (a - c ^ (c << 16 | c >> 16)) & _MASK
        c += b
        b = (b - a ^ (a << 19 | a >> 13)) & _MASK
        a += c
        c = (c - b ^ (b << 4 | b >> 28)) & _MASK
        b += a
    rest = content[last:].ljust(12, b"\0")
    first, second, third = struct.unpack("<III", rest)
    a, b, c = (a + first) & _MASK, (b + second) & _MASK, (c + third) & _MASK
    c = ((c ^ b) - (b << 14 | b >> 18)) & _MASK
    a = ((a ^ c) - (c << 11 | c >> 21)) & _MASK
    b = ((b ^ a) - (a << 25 | a >> 7)) & _MASK
    c = ((c ^ b) - (b << 16 | b >> 16)) & _MASK
    a = ((a ^ c) - (c << 4 | c >> 28)) & _MASK
    b = ((b ^ a) - (a << 14 | a >> 18)) & _MASK
    return int((c ^ b) - (b << 24 | b >> 8)) & _MASK


def is_whole(block: bytes) -> bool:
    """Return whether a block of metadata ends in its own checksum."""
    return len(block) > 4 and lookup3(block[:-4]) == int.from_bytes(block[-4:], "little")


def fletcher32(data: bytes) -> int:
    """Return the checksum of libhdf5's filter: of big-endian words of 16 bits, two sums modulo 65535."""
    words = np.frombuffer(data + b"\0" * (len(data) % 2), dtype=">u2").astype(np.uint64)
    sums = int(words.sum()), int(words @ np.arange(len(words), 0, -1, dtype=np.uint64))
    first, second = (one % 65535 or 65535 * (one > 0) for one in sums)
    return second << 16 | first


def is_fletcher32(data: bytes, stored: bytes) -> bool:
    """Return whether this is the stored checksum; 0 and 65535 are the same."""
    found, expected = fletcher32(data), int.from_bytes(stored, "little")
    return all((found >> bits & 0xFFFF) % 65535 == (expected >> bits & 0xFFFF) % 65535 for bits in (0, 16))
