"""Read the bytes of a file, and find where the HDF5 file begins and how long it should be."""

import errno
import os
from collections.abc import Iterator

SIGNATURE = b"\x89HDF\r\n\x1a\n"

_BEFORE, _PAGE = 1 << 14, 1 << 16
_LARGEST_ADDRESS = 1 << 60


class Unfamiliar(Exception):  # noqa: N818 (the file may be valid)
    """The bytes are damaged, lost, or of an unsupported form."""


class Doubtful(Exception):  # noqa: N818 (it can be read)
    """The numbers can be read, but most likely differ from those that were written."""


class Pages:
    """The bytes of an open file. One piece is cached, because related structures are close together.

    base: the position of address 0 in the file.
    """

    def __init__(self, handle: int, base: int = 0) -> None:
        self.handle = handle
        self.base = base
        self._start = 0
        self._page = b""

    def at(self, address: int, length: int) -> bytes:
        """Return the bytes at an address. Raise Unfamiliar beyond the end of the file."""
        start = address - self._start
        if address > _LARGEST_ADDRESS:
            raise Unfamiliar("an impossible address")
        if self.handle >= 0 and (start < 0 or start + length > len(self._page)):
            self._start = max(0, address - _BEFORE)
            self._page = os.pread(self.handle, max(_PAGE, _BEFORE + length), self.base + self._start)
            start = address - self._start
        found = self._page[start : start + length]
        if len(found) != length:
            raise Unfamiliar("beyond the end of the file")
        return found


class MemoryPages(Pages):
    """The bytes of a file in memory."""

    def __init__(self, content: bytes) -> None:
        super().__init__(-1)
        self._page = content


def signature_place(handle: int, size: int) -> int | None:
    """Return the position of the HDF5 signature (0, 512, 1024, 2048, …); None if there is none."""
    place = 0
    while place + len(SIGNATURE) <= size:
        if os.pread(handle, len(SIGNATURE), place) == SIGNATURE:
            return place
        place = max(512, 2 * place)
    return None


def stated_end(handle: int, place: int) -> int | None:
    """Return the file length that the superblock states (section II.A of the specification).

    place: the position of the signature. Return 0 for an unknown superblock, None if the file ends within it.
    """
    superblock = os.pread(handle, 64, place)
    if len(superblock) < 14:
        return None
    version = superblock[8]
    if version in (0, 1):
        width, start = superblock[13], 24 if version == 0 else 28
    elif version in (2, 3):
        width, start = superblock[9], 12
    else:
        return 0
    if width not in (2, 4, 8):
        return 0
    end = superblock[start + 2 * width : start + 3 * width]
    return int.from_bytes(end, "little") if len(end) == width else None


def next_data(handle: int, place: int) -> int | None:
    """Return the position of the next data at or after `place`; None if only a hole follows."""
    if not hasattr(os, "SEEK_DATA"):
        return place if place < os.fstat(handle).st_size else None
    try:
        return os.lseek(handle, place, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None


def data_pieces(handle: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each piece of a file that is not a hole."""
    end = 0
    while (start := next_data(handle, end)) is not None:
        size = os.fstat(handle).st_size
        end = os.lseek(handle, start, os.SEEK_HOLE) if hasattr(os, "SEEK_HOLE") else size
        yield start, end
