"""Every way to damage a file that is tried: each draws one case from a random generator, and says what it did."""

import gzip
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from damage_originals import Original, Ranges

from leeward.carving import SIGNATURE, fletcher32, lookup3

Make = Callable[[Path], None]
_NOWHERE = 2**64 - 1
_CHECKED = (b"OHDR", b"OCHK", b"FRHP", b"BTHD")  # blocks whose last four bytes are their checksum


@dataclass(frozen=True)
class Damaged:
    """what: was done, in words. content: what the file has now; None if `make` puts something else in its place.

    is_coherent: checksums were made to fit again, or all was only moved: bytes differ, and a result may be what it was.
    """

    what: str
    content: bytes | None = None
    make: Make | None = None
    is_coherent: bool = False

    def put(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.make is not None:
            self.make(path)
        elif self.content is not None:
            path.write_bytes(self.content)


Kind = Callable[[Original, Random], Damaged]


# --- lost ------------------------------------------------------------------------------------------------------------


def truncated(original: Original, rng: Random) -> Damaged:
    """At every class of lengths: within the signature, the superblock, at and beside the ends of blocks, at pages."""
    size = len(original.content)
    edge = rng.choice([edge for block in original.blocks for edge in block])
    classes = {
        "within the signature": rng.randrange(1, 8),
        "after the signature": 8,
        "within the superblock": rng.randrange(9, 48),
        "after the superblock": rng.choice([48, 96]),
        "at the edge of a block": edge + rng.choice([-1, 0, 0, 1]),
        "at a sector": 512 * rng.randrange(1, size // 512 + 1),
        "at a page": 4096 * rng.randrange(1, max(size // 4096, 1) + 1),
        "in the middle": size // 2,
        "shortly before the end": size - rng.randrange(1, 17),
        "anywhere": rng.randrange(1, size),
    }
    name = rng.choice(list(classes))
    length = min(max(classes[name], 1), size - 1)
    return Damaged(f"{name}, to {length} of {size} bytes", original.content[:length])


def zeroed(original: Original, rng: Random) -> Damaged:
    """Pages and sectors that never reached the disk; sometimes all ones, as worn flash memory gives."""
    size = len(original.content)
    unit = rng.choice([4096, 512, 512])
    start = unit * rng.randrange((size + unit - 1) // unit)
    block = rng.choice(original.blocks)
    stretch = {
        f"{unit} bytes": (start, start + unit),
        "all from there on": (start, size),
        "a block": block,
        "any stretch": (start := rng.randrange(size), start + rng.randrange(1, 300)),
    }
    name = rng.choice(list(stretch))
    start, end = stretch[name]
    end = min(end, size)
    fill = b"\0" if rng.random() < 0.85 else b"\xff"
    content = original.content[:start] + fill * (end - start) + original.content[end:]
    return Damaged(f"{name}, {start} to {end}, filled with {fill!r}", content)


# --- changed ---------------------------------------------------------------------------------------------------------


def flipped_bit(original: Original, rng: Random) -> Damaged:
    return _flipped(original, [rng.randrange(len(original.content))], rng)


def flipped_number(original: Original, rng: Random) -> Damaged:
    """A bit of a coordinate or an energy, where these lie in plain sight."""
    start, end = rng.choice(original.numbers)
    return _flipped(original, [rng.randrange(start, end)], rng)


def flipped_bits(original: Original, rng: Random) -> Damaged:
    """Several, near each other or far apart."""
    size = len(original.content)
    count = rng.randrange(2, 20)
    if rng.random() < 0.5:
        return _flipped(original, [rng.randrange(size) for _ in range(count)], rng)
    start, end = rng.choice(original.blocks)
    return _flipped(original, [rng.randrange(start, end) for _ in range(count)], rng)


def _flipped(original: Original, places: list[int], rng: Random) -> Damaged:
    content = bytearray(original.content)
    bits = []
    for place in places:
        bit = rng.randrange(8)
        content[place] ^= 1 << bit
        bits.append(f"{place}.{bit}")
    return Damaged(f"the bits {', '.join(bits)}", bytes(content))


def swapped(original: Original, rng: Random) -> Damaged:
    """Two blocks of one length in each other's place: sectors, or things of the file, checksums and all."""
    size = len(original.content)
    lengths: dict[int, Ranges] = {}
    for start, end in original.blocks:
        lengths.setdefault(end - start, []).append((start, end))
    pairs = [ranges for ranges in lengths.values() if len(ranges) > 1]
    if pairs and rng.random() < 0.5:
        (first, end), (second, _) = sorted(rng.sample(rng.choice(pairs), 2))
        length = min(end - first, second - first)
    else:
        length = rng.choice([n for n in (16, 64, 512, 4096) if 2 * n <= size])
        first, second = sorted(length * n for n in rng.sample(range(size // length), 2))
    content = bytearray(original.content)
    content[first : first + length], content[second : second + length] = (
        original.content[second : second + length],
        original.content[first : first + length],
    )
    return Damaged(f"{length} bytes at {first} and {second}", bytes(content))


def superblock(original: Original, rng: Random) -> Damaged:
    """Another version, other widths, flags and addresses; half of them with a checksum that fits."""
    content = bytearray(original.content)
    size = len(content)
    is_new = content[8] >= 2
    addresses = (12, 20, 28, 36) if is_new else (24, 32, 40, 48, 56, 64, 80, 88)
    if rng.random() < 0.4:
        place, length = rng.randrange(8, 12 if is_new else 24), 1
        value = rng.choice([0, 1, 2, 3, 4, 8, 16, 255, rng.randrange(256)])
    else:
        place, length = rng.choice(addresses), 8
        block = rng.choice(original.blocks)[0]
        choices = [0, 1, 48, 96, size, size - 1, size + 1, 2 * size, 2**32, 2**63, _NOWHERE, block, rng.randrange(size)]
        value = rng.choice(choices)
    content[place : place + length] = value.to_bytes(length, "little")
    is_coherent = is_new and rng.random() < 0.5
    if is_coherent:
        _make_fit(content, 0, 48)
    what = f"{length} bytes at {place} are {value}" + (", with a checksum that fits" if is_coherent else "")
    return Damaged(what, bytes(content), is_coherent=is_coherent)


def pointers(original: Original, rng: Random) -> Damaged:
    """An address in the file leads elsewhere: to another thing, to itself, out of the file; checksums fit again."""
    content = bytearray(original.content)
    starts = sorted({start for start, _ in original.blocks if start})
    for _ in range(200):
        begin, end = rng.choice(original.blocks)
        places = [place for place in range(begin, end - 7) if _number(content, place) in starts]
        if places:
            break
    else:
        return flipped_bits(original, rng)
    place = rng.choice(places)
    value = rng.choice([*rng.sample(starts, min(4, len(starts))), begin, place, 0, _NOWHERE, len(content), 2**40])
    content[place : place + 8] = struct.pack("<Q", value)
    is_coherent = _make_fit(content, begin, end)
    return Damaged(f"the address at {place} is {value}", bytes(content), is_coherent=is_coherent)


def forged(original: Original, rng: Random) -> Damaged:
    """Bits flipped where a checksum stands behind them, and the checksum made to fit again: only the seal can tell."""
    content = bytearray(original.content)
    candidates = [(start, end) for start, end in original.blocks if bytes(content[start : start + 4]) in _CHECKED]
    if original.is_sealed:
        candidates += original.numbers
    if not candidates:
        return flipped_bits(original, rng)
    start, end = rng.choice(candidates)
    is_header = (start, end) not in original.numbers
    places = [rng.randrange(start + 4 * is_header, end - 4) for _ in range(rng.choice([1, 1, 1, 2, 4]))]
    for place in places:
        content[place] ^= 1 << rng.randrange(8)
    if is_header:
        _make_fit(content, start, end)
    else:
        content[end - 4 : end] = struct.pack("<I", fletcher32(bytes(content[start : end - 4])))
    return Damaged(f"bits at {places} in the block {start} to {end}", bytes(content), is_coherent=True)


def _make_fit(content: bytearray, start: int, end: int) -> bool:
    """The checksum of a block of metadata, if it has one in its last four bytes."""
    if start and bytes(content[start : start + 4]) not in _CHECKED:
        return False
    if start == 0 and (content[8] < 2 or end != 48):
        return False
    content[end - 4 : end] = struct.pack("<I", lookup3(bytes(content[start : end - 4])))
    return True


def _number(content: bytearray, place: int) -> int:
    return int.from_bytes(content[place : place + 8], "little")


# --- more than there was ---------------------------------------------------------------------------------------------


def appended(original: Original, rng: Random) -> Damaged:
    """Nothing that a result consists of is touched."""
    size = len(original.content)
    junk = {
        "a byte": rng.randbytes(1),
        "zeros": bytes(rng.randrange(1, 10_000)),
        "noise": rng.randbytes(rng.randrange(1, 10_000)),
        "text": b"slurmstepd: error: *** JOB 4711 CANCELLED ***\n" * rng.randrange(1, 50),
        "a signature": SIGNATURE,
        "itself": original.content,
    }
    name = rng.choice([*junk, "a hole"])
    if name == "a hole":
        length = rng.choice([10**6, 10**8])

        def make(path: Path) -> None:
            path.write_bytes(original.content)
            os.truncate(path, size + length)

        return Damaged(f"a hole of {length} bytes", original.content, make)
    return Damaged(f"{name}, {len(junk[name])} bytes", original.content + junk[name])


def in_free_space(original: Original, rng: Random) -> Damaged:
    """Junk where nothing of the file lies, if it has such places."""
    if not original.free:
        return appended(original, rng)
    content = bytearray(original.content)
    start, end = rng.choice(original.free)
    first = rng.randrange(start, end)
    last = rng.randrange(first, end) + 1
    content[first:last] = rng.randbytes(last - first)
    return Damaged(f"noise from {first} to {last}", bytes(content))


def prepended(original: Original, rng: Random) -> Damaged:
    """HDF5 allows for 512 bytes, or twice, four times … as many, before a file."""
    length = rng.choice([1, 8, 100, 512, 1024, 2048, 4096, 513])
    content = rng.choice([bytes(length), rng.randbytes(length)]) + original.content
    return Damaged(f"{length} bytes", content, is_coherent=True)


# --- something else altogether ---------------------------------------------------------------------------------------


def not_hdf5(original: Original, rng: Random) -> Damaged:
    noise = rng.randbytes(rng.randrange(1, 5000))
    contents = {
        "noise": noise,
        "text": b"Traceback (most recent call last):\n" * 20,
        "JSON": b'{"layout": [[0, 1], [2, 3]], "aep": 100.0}',
        "gzip of itself": gzip.compress(original.content, mtime=0),
        "zeros": bytes(len(original.content)),
        "the signature alone": SIGNATURE,
        "the signature and noise": SIGNATURE + noise,
        "the signature, a version and noise": SIGNATURE + bytes([rng.randrange(4)]) + noise,
        "the superblock and noise": original.content[:96] + rng.randbytes(len(original.content) - 96),
        "noise, and a signature at 512": rng.randbytes(512) + SIGNATURE + noise,
        "without its signature": original.content[8:],
        "a netCDF file": b"CDF\x01" + noise,
    }
    name = rng.choice(list(contents))
    return Damaged(name, contents[name])


def empty(original: Original, rng: Random) -> Damaged:
    return Damaged("0 bytes", b"")


def no_file(original: Original, rng: Random) -> Damaged:
    """Something of another kind in its place."""

    def fifo(path: Path) -> None:
        os.mkfifo(path)

    def folder(path: Path) -> None:
        path.mkdir()
        (path / "note.txt").write_text("what is this doing here")

    def link(target: str) -> Make:
        return lambda path: path.symlink_to(target)

    def a_socket(path: Path) -> None:
        with socket.socket(socket.AF_UNIX) as made:  # its name may be short only
            here = os.getcwd()
            os.chdir(path.parent)
            try:
                made.bind(path.name)
            finally:
                os.chdir(here)

    makers = {
        "a named pipe": fifo,
        "a folder": folder,
        "a link to nowhere": lambda path: path.symlink_to(f"nothing-like-{path.name}"),
        "a link to itself": lambda path: path.symlink_to(path.name),
        "a link to a device": link("/dev/zero"),
        "a link to a folder": link(".."),
        "a socket": a_socket,
    }
    name = rng.choice(list(makers))
    return Damaged(name, None, makers[name])


# name: how often it is drawn, and what does it
KINDS: dict[str, tuple[int, Kind]] = {
    "truncated": (14, truncated),
    "zeroed": (14, zeroed),
    "flipped bit": (16, flipped_bit),
    "flipped number": (8, flipped_number),
    "flipped bits": (10, flipped_bits),
    "swapped": (10, swapped),
    "superblock": (6, superblock),
    "pointers": (5, pointers),
    "forged": (5, forged),
    "appended": (5, appended),
    "in free space": (2, in_free_space),
    "prepended": (1, prepended),
    "not HDF5": (2, not_hdf5),
    "empty": (1, empty),
    "no file": (2, no_file),
}

IN_TURN = 6  # so often each kind comes before they are drawn by weight


def drawn(original: Original, rng: Random, number: int) -> tuple[str, Damaged]:
    """A kind, in turn for the first numbers, and a case of it that makes a difference."""
    name = rng.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]
    if number < IN_TURN * len(KINDS):
        name = list(KINDS)[number % len(KINDS)]
    while True:
        damaged = KINDS[name][1](original, rng)
        if damaged.make is not None or damaged.content != original.content:
            return name, damaged
