"""The checksum of HDF5's newer metadata: Bob Jenkins' lookup3, `hashlittle` (HDF5 file format specification, IV)."""

import struct

from leeward.store.format.direct import checksums

_MASK = 0xFFFFFFFF
_MIX = ((4, 0, 2), (6, 1, 0), (8, 2, 1), (16, 0, 2), (19, 1, 0), (4, 2, 1))
_FINAL = ((14, 2, 1), (11, 0, 2), (25, 1, 0), (16, 2, 1), (4, 0, 2), (14, 1, 0), (24, 2, 1))


def lookup3(content: bytes) -> int:
    """Of 32 bits, with the initial value 0."""
    words = [(0xDEADBEEF + len(content)) & _MASK] * 3
    if not content:
        return words[2]
    full = (len(content) - 1) // 12
    for block in struct.iter_unpack("<III", content[: 12 * full]):
        words = [(word + part) & _MASK for word, part in zip(words, block, strict=True)]
        for turn, changed, other in _MIX:
            following = (changed + 1) % 3
            words[changed] = ((words[changed] - words[other]) ^ _turned(words[other], turn)) & _MASK
            words[other] = (words[other] + words[following]) & _MASK
    last = struct.unpack("<III", content[12 * full :].ljust(12, b"\0"))
    words = [(word + part) & _MASK for word, part in zip(words, last, strict=True)]
    for turn, changed, other in _FINAL:
        words[changed] = ((words[changed] ^ words[other]) - _turned(words[other], turn)) & _MASK
    return words[2]


def _turned(word: int, places: int) -> int:
    return (word << places | word >> (32 - places)) & _MASK


def is_whole(block: bytes) -> bool:
    """Whether a block ends in its own checksum; libhdf5 computes it where it can be asked, a hundred times as fast."""
    known = checksums()
    length = len(block) - 4
    checksum = lookup3(block[:-4]) if known is None else known.metadata(block, length, 0)
    return length > 0 and checksum == int.from_bytes(block[-4:], "little")
