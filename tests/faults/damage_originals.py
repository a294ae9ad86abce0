"""The sound files that are damaged: shards, merged files and worker files of other scripts, and what each consists of.

No two of them have a key in common, so that a merge of one damaged copy of each tells what became of every one.
"""

import contextlib
import io
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from foreign_files import own_result, write_foreign_group
from leeward.campaign import Campaign, load
from leeward.store.directory.shards import store_result
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import Result
from leeward.store.merging.merge import merge
from leeward.store.paths import RunPaths
from merge_cases import found_in
from run_cases import make_campaign

MANY = (60, 10, 130)  # shards, merged files, foreign files
FEW = (20, 5, 35)  # as various, for a short trial: most of its time would go into making many
TURBINES = 25  # of a foreign result; in rows of five
MOST_SEEDS = 9
FOLDER = "optimized_layouts"

Ranges = list[tuple[int, int]]  # from a byte to before another


@dataclass
class Original:
    """A sound file.

    group: shard, merged or foreign. results: what is in it, by key. shared: the bytes that everything in it hangs on.
    own: those of each result alone. Both are what libhdf5 reads, so they may be too much for a file of the old format,
    never too little. numbers: where coordinates and energies lie, where that is in plain sight. free: bytes that nobody
    reads.
    """

    group: str
    form: str
    content: bytes
    results: dict[str, Result]
    shared: Ranges = field(default_factory=list)
    own: dict[str, Ranges] = field(default_factory=dict)
    numbers: Ranges = field(default_factory=list)
    free: Ranges = field(default_factory=list)

    @property
    def is_sealed(self) -> bool:
        return self.group != "foreign"

    @property
    def blocks(self) -> Ranges:
        """All pieces that libhdf5 reads."""
        return sorted({*self.shared, *(one for ranges in self.own.values() for one in ranges)})

    def named(self, number: int) -> str:
        return f"worker_{number}.h5" if self.group == "foreign" else f"layouts_{number}.h5"


def make_originals(folder: Path, counts: tuple[int, int, int] = MANY) -> tuple[list[Original], Campaign]:
    """All of them, the kinds mixed, and the campaign that the foreign ones are of."""
    shards, merged, foreign = counts
    campaign = load(make_campaign(folder, farms=foreign, seeds=MOST_SEEDS, turbines_per_farm=TURBINES))
    made = [_shard(folder, number) for number in range(shards)]
    made += [_merged(folder, number, campaign) for number in range(merged)]
    made += [_foreign(folder, number, campaign) for number in range(foreign)]
    for original in made:
        _look_into(original)
    return [made[number * 77 % len(made)] for number in range(len(made))], campaign


# --- sealed ----------------------------------------------------------------------------------------------------------


def _shard(folder: Path, number: int) -> Original:
    turbines = (1, 5, 25, 50)[number % 4]
    result = own_result(1000 + number, number % 3, number, turbines=turbines, note="x" * (number * 29))
    path = store_result(RunPaths(folder / "shards.h5"), result)
    return Original("shard", f"{result.n_turbines} turbines", path.read_bytes(), {str(result.key): result})


def _merged(folder: Path, number: int, campaign: Campaign) -> Original:
    """From shards, and every fourth from a worker file too; with more than eight results its links lie in a heap."""
    count = (2, 3, 9, 12, 5)[number % 5]
    place = folder / f"merged{number}"
    place.mkdir()
    results = [own_result(2000 + number, 0, seed, turbines=3 + number) for seed in range(count)]
    paths = RunPaths(place / "run.h5")
    for result in results:
        store_result(paths, result)
    sources = [paths.root]
    if number % 4 == 3:
        sources.append(place / "worker.h5")
        with h5py.File(sources[-1], "w") as file:
            write_foreign_group(file, Key(3000 + number, 0, 0), aep=-5.0, optimizer="of old")
    output = place / "layouts.h5"
    merge(sources, output)
    found = found_in(output)
    if any(found[str(result.key)].seal != result.seal for result in results):
        raise RuntimeError(f"{output} does not hold what was merged")
    return Original("merged", f"{len(found)} results", output.read_bytes(), found)


# --- foreign ---------------------------------------------------------------------------------------------------------

_OPTIONS: dict[str, dict[str, object]] = {
    "default": {},
    "default, texts": {"text": True},
    "default, chunks": {"chunks": (2, 10)},
    "default, gzip": {"chunks": (2, TURBINES), "compression": "gzip", "shuffle": True},
    "default, folder": {"folder": FOLDER},
    "latest": {"libver": "latest"},
    "latest, texts": {"libver": "latest", "text": True},
    "latest, gzip": {"libver": "latest", "chunks": (1, TURBINES), "compression": "gzip"},
    "latest, folder": {"libver": "latest", "folder": FOLDER},
}


def _foreign(folder: Path, number: int, campaign: Campaign) -> Original:
    """Real layouts of the campaign, each farm in a file of its own, with the energies that belong to them."""
    form = list(_OPTIONS)[number % len(_OPTIONS)]
    options = dict(_OPTIONS[form])
    count = (1, 2, 1, 3, 1, 2, 9)[number % 7]
    inner = options.pop("folder", None)
    has_text = options.pop("text", False)
    path = folder / f"worker_{number}.h5"
    results = {}
    with h5py.File(path, "w", libver=options.pop("libver", None)) as file:
        file["init"] = 1
        parent = file.create_group(inner) if inner else file
        for seed in range(count):
            result = _real_result(campaign, Key(number, 0, seed), {"optimizer": f"süd {seed}"} if has_text else {})
            results[str(result.key)] = result
            _write_foreign(parent, result, options)
    return Original("foreign", form, path.read_bytes(), results)


def _real_result(campaign: Campaign, key: Key, details: dict[str, str]) -> Result:
    rng = np.random.default_rng([*key])
    rows, columns = np.divmod(np.arange(TURBINES), 5)
    x = 9000.0 * key.farm_idx + 500.0 + 1000.0 * columns + rng.uniform(-150, 150, TURBINES)
    y = 500.0 + 1000.0 * rows + rng.uniform(-150, 150, TURBINES)
    aep = float(campaign.problem(key.farm_idx, 0).farm.aep_gwh(x, y))
    return Result(
        key, np.array([x, y]), aep, campaign.physics.rotor_diameter_m(0), "", "", 0, origin="foreign", details=details
    )


def _write_foreign(parent: h5py.Group, result: Result, options: dict[str, object]) -> None:
    attributes = {"diameter": result.rotor_diameter_m, **result.details}
    group = write_foreign_group(
        parent, result.key, layout=result.layout, aep=result.aep_gwh, turbines=TURBINES, **attributes
    )
    if options:
        del group["layout"]
        group.create_dataset("layout", data=result.layout, **options)


# --- what lies where -------------------------------------------------------------------------------------------------


class _Noted(io.RawIOBase):
    """A file in memory that notes what is read of it."""

    def __init__(self, content: bytes) -> None:
        self._inner = io.BytesIO(content)
        self.reads: set[tuple[int, int]] = set()

    def readinto(self, buffer: memoryview) -> int:
        start = self._inner.tell()
        count = self._inner.readinto(buffer)
        self.reads.add((start, start + count))
        return count

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        return self._inner.seek(place, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


@contextlib.contextmanager
def _opened(content: bytes) -> Iterator[tuple[h5py.File, _Noted]]:
    noted = _Noted(content)
    with h5py.File(noted, "r") as file:
        for parent in (file, file.get(FOLDER)):
            if parent is not None:
                list(parent)
                dict(parent.attrs)
        yield file, noted


def _look_into(original: Original) -> None:
    """By what libhdf5 reads for each result; nothing of leeward has a part in it."""
    content = original.content
    with _opened(content) as (_, noted):
        shared = set(_trimmed(content, noted.reads))
    for key in original.results:
        with _opened(content) as (file, noted):
            group = file[f"{FOLDER}/{key}" if FOLDER in file else key]
            _read_all(group)
            original.own[key] = sorted(set(_trimmed(content, noted.reads)) - shared)
            original.numbers += [one for one in map(_place, group.values()) if one is not None]
    original.shared = sorted(shared)
    used = np.zeros(len(content), dtype=bool)
    with _opened(content) as (file, noted):
        file.visititems(lambda _, thing: _read_all(thing))
        for start, end in noted.reads:
            used[start:end] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[True], used, [True]]).astype(int)))
    original.free = [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def _read_all(thing: h5py.Group | h5py.Dataset) -> None:
    dict(thing.attrs)
    if isinstance(thing, h5py.Dataset):
        thing[()]
    else:
        for inner in thing.values():
            _read_all(inner)


def _place(dataset: h5py.Dataset) -> tuple[int, int] | None:
    """Where the numbers lie, if they lie in one piece as they are; a compact scalar lies in its header."""
    if dataset.chunks is None:
        start = dataset.id.get_offset()
        return None if start is None else (start, start + dataset.nbytes)
    if dataset.compression is not None or dataset.id.get_num_chunks() != 1:
        return None
    chunk = dataset.id.get_chunk_info(0)
    return chunk.byte_offset, chunk.byte_offset + chunk.size


def _trimmed(content: bytes, reads: set[tuple[int, int]]) -> Ranges:
    """libhdf5 reads 512 bytes where it expects a header, whose length it does not know yet: only the header counts."""
    return [(start, min(end, start + _length(content, start, end))) for start, end in reads]


def _length(content: bytes, start: int, end: int) -> int:
    """Of the header that begins there, by the HDF5 file format specification, sections III.D and IV.A.1."""
    if content[start : start + 5] == b"OHDR\x02":
        return header_length(content, start)
    if end - start == 512 and content[start : start + 4] == b"HEAP":
        size, _, address = struct.unpack_from("<QQQ", content, start + 8)
        return 32 + (size if address == start + 32 else 0)
    if end - start == 512 and content[start : start + 2] == b"\x01\x00":
        return 16 + struct.unpack_from("<I", content, start + 8)[0]
    return end - start


def header_length(content: bytes, start: int) -> int:
    """Of the first block of an object header of version 2, with its checksum."""
    flags = content[start + 5]
    begin = 6 + 16 * (flags >> 5 & 1) + 4 * (flags >> 4 & 1)
    width = 1 << (flags & 3)
    return begin + width + int.from_bytes(content[start + begin : start + begin + width], "little") + 4


class Hits:
    """Which bytes of an original a damage has changed. content: what the file has now; None: there is none."""

    def __init__(self, original: Original, content: bytes | None) -> None:
        old, new = original.content, content or b""
        common = min(len(old), len(new))
        self._original = original
        self._is_changed = np.ones(len(old), dtype=bool)
        self._is_changed[:common] = np.frombuffer(old, "u1", common) != np.frombuffer(new, "u1", common)
        self._is_shared_hit = self._any(original.shared)

    def touches(self, key: str) -> bool:
        return self._any(self._original.own[key])

    def leaves(self, key: str) -> bool:
        """Whether neither the result nor anything that it hangs on was touched."""
        return not (self._is_shared_hit or self.touches(key))

    def _any(self, ranges: Ranges) -> bool:
        return any(self._is_changed[start:end].any() for start, end in ranges)


def is_same(expected: Result, found: Result, exactly: bool) -> bool:
    """In every number, bit by bit, and in all else that is said; a foreign result gets notes where it is read."""
    expected_arrays, found_arrays = expected.datasets, found.datasets
    if expected_arrays.keys() != found_arrays.keys():
        return False
    if any(array.tobytes() != found_arrays[name].tobytes() for name, array in expected_arrays.items()):
        return False
    mine, theirs = _plain(expected), _plain(found)
    return mine == theirs if exactly else mine.items() <= theirs.items()


def _plain(result: Result) -> dict[str, str]:
    return {
        name: repr(value.tolist() if isinstance(value, np.ndarray) else value)
        for name, value in result.attributes.items()
    }
