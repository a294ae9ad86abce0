"""Damaged worker files in the format of the story, and what is still in them: what `leeward salvage` is measured with.

A specimen is one file and the truth about it. Its name and its seed make it anew, byte for byte, but for the killed
writers, which die at another moment each time.

What counts as recoverable: for a file that was damaged afterwards, a result of which every byte of its own is as it was
(`hdf5_walk.Extent.own`: the headers of its group and of its datasets, what links the two, and the numbers). Not
needed: its name in the parent group, for the key is in the attributes too; its status text; and what is unused in
B-trees and heaps. For a killed writer there is no undamaged file to compare with. There a result counts if the file as
it was left holds, anywhere, a group header from which pointers lead to every number of it, all of them in the file and
equal to what was written.
"""

import contextlib
import math
import os
import signal
import struct
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from hdf5_walk import Extent, Walk
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import NO_AEP

FOLDER = "optimized_layouts"
FORMATS = {"old": None, "new": "latest"}
DAMAGES = ("whole", "truncated", "flipped", "zeroed")
ODD_KINDS = ("float32", "int32", "gzip", "chunked", "gzip in chunks")
KILLED = ("killed, never flushed", "killed, flushed at times", "killed, reopened")
CLASSES = (
    *(f"{form} {damage}" for damage in DAMAGES for form in FORMATS),
    *(f"{form} odd {damage}" for damage in DAMAGES[1:3] for form in FORMATS),
    *(f"{form} {kind}" for kind in KILLED for form in FORMATS),
)


@dataclass(frozen=True, eq=False)
class Original:
    """One result as it was written; aep: None where none was. kind: how the layout lies, "" as in the story."""

    key: Key
    layout: np.ndarray
    aep: float | None
    diameter: float
    kind: str = ""

    @property
    def has_energy(self):
        return self.aep is not None and self.aep > 0


@dataclass(frozen=True)
class Style:
    """How a script writes its file."""

    libver: str | None
    is_reopened: bool
    folder: str | None
    has_status: bool


@dataclass(frozen=True, eq=False)
class Specimen:
    """A damaged file and the truth about it.

    recoverable: keys of which everything is there. named: those of them whose link in the parent group is whole too
    (not known for killed writers). bare: keys whose layout is in the file to the last byte, whatever else is lost.
    """

    name: str
    seed: int
    data: bytes
    originals: dict[Key, Original]
    recoverable: frozenset
    named: frozenset
    bare: frozenset
    note: str


def specimen(name, seed):
    """The file of this class with this number; the name is one of CLASSES."""
    rng = np.random.default_rng([seed, CLASSES.index(name)])
    form, damage = name.split(" ", 1)
    kind = damage.removeprefix("odd ")
    if kind in KILLED:
        return killed(name, seed, rng, FORMATS[form], KILLED.index(kind))
    style = random_style(rng, FORMATS[form])
    originals = random_results(rng, int(rng.integers(1, 51)), is_odd=kind != damage)
    whole = file_bytes(style, originals)
    data, note = damaged(rng, whole, kind)
    extents = extents_of(whole)
    kept = {key for key, extent in extents.items() if is_kept(whole, data, extent.own)}
    named = {key for key in kept if is_kept(whole, data, extents[key].link)}
    bare = {key for key in extents if is_kept(whole, data, layout_ranges(extents[key]))}
    by_key = {original.key: original for original in originals}
    return Specimen(name, seed, data, by_key, *map(frozenset, (kept, named, bare)), f"{note}; {style}")


# --- files -----------------------------------------------------------------------------------------------------------


def random_style(rng, libver, is_reopened=None):
    is_reopened = bool(rng.random() < 0.5) if is_reopened is None else is_reopened
    return Style(libver, is_reopened, FOLDER if rng.random() < 0.3 else None, bool(rng.random() < 0.7))


@dataclass(frozen=True, eq=False)
class Campaign:
    """What the tasks of a script share: where each farm is (m), how large each type's rotor is (m), how many turbines
    of a type a farm has.
    """

    centres: np.ndarray
    diameters: np.ndarray
    turbines: np.ndarray

    @classmethod
    def random(cls, rng):
        centres = rng.uniform([5e5, 6.1e6], [7e5, 6.3e6], (10, 2))
        return cls(centres, np.sort(rng.integers(150, 290, 6)).astype(float), rng.integers(20, 101, (10, 6)))


def random_results(rng, count, is_odd=False):
    """With the keys that a worker gets: any. In some files a few have no energy, as in the story."""
    campaign = Campaign.random(rng)
    numbers = [int(number) for number in rng.choice(10 * 6 * 200, count, replace=False)]
    without = rng.choice([0.0, 0.1])
    return [random_result(rng, campaign, Key(n % 10, n // 10 % 6, n // 60), without, is_odd) for n in numbers]


def random_result(rng, campaign, key, without, is_odd):
    """Turbines scattered around the points of a grid, as optimised layouts look; aep in GWh."""
    turbines = int(campaign.turbines[key.farm_idx, key.type_idx])
    side = math.ceil(math.sqrt(turbines))
    cells = rng.permutation(side * side)[:turbines]
    layout = 1500.0 * np.array([cells % side, cells // side]) + rng.uniform(-350, 350, (2, turbines))
    layout += campaign.centres[key.farm_idx][:, None]
    kind = str(rng.choice(ODD_KINDS)) if is_odd else ""
    if kind in ("float32", "int32"):
        layout = layout.astype(kind).astype(np.float64)
    aep = turbines * float(rng.uniform(40, 80))
    if rng.random() < without:
        aep = None if rng.random() < 0.5 else 0.0
    return Original(key, layout, aep, float(campaign.diameters[key.type_idx]), kind)


def file_bytes(style, originals):
    """A file that was closed as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "worker_1.h5"
        for _ in written(path, style, originals):
            pass
        return path.read_bytes()


def written(path, style, originals):
    """Write one after the other, as the script does; yields the open file after each."""
    file = h5py.File(path, "w", libver=style.libver)
    file["init"] = 1
    for original in originals:
        if style.is_reopened:
            file.close()
            file = h5py.File(path, "a", libver=style.libver)
        write_result(file.require_group(style.folder) if style.folder else file, original, style.has_status)
        yield file
    file.close()


def write_result(parent, original, has_status):
    group = parent.create_group(str(original.key))
    if original.kind in ("", "float32", "int32"):
        group["layout"] = original.layout.astype(original.kind or np.float64)
    else:
        gzip = "gzip" if "gzip" in original.kind else None
        chunks = original.layout.shape if original.kind == "gzip" else (1, 16)
        group.create_dataset("layout", data=original.layout, chunks=chunks, compression=gzip)
    if original.aep is not None:
        group["aep"] = original.aep
    group.attrs["farm_idx"], group.attrs["type_idx"] = original.key[:2]
    group.attrs["n_turbines"] = original.layout.shape[1]
    group.attrs["diameter"] = original.diameter
    group.attrs["ss_seed"] = original.key.seed
    if has_status:
        group.attrs["status"] = "success"


# --- damage ----------------------------------------------------------------------------------------------------------


def damaged(rng, whole, kind):
    if kind == "truncated":
        end = cut(rng, len(whole))
        return whole[:end], f"cut at {end} of {len(whole)}"
    data = bytearray(whole)
    if kind == "flipped":
        places = rng.integers(0, len(whole), rng.integers(1, 21))
        for place in places:
            data[place] ^= int(1 << rng.integers(8) if rng.random() < 0.5 else rng.integers(1, 256))
        return bytes(data), f"bytes changed at {sorted(map(int, places))} of {len(whole)}"
    if kind == "zeroed":
        pages = -(-len(whole) // 4096)
        chosen = rng.choice(pages, min(pages, int(rng.integers(1, 4))), replace=False)
        for page in chosen:
            end = min(len(whole), 4096 * (int(page) + 1))
            data[4096 * int(page) : end] = bytes(end - 4096 * int(page))
        return bytes(data), f"pages of zeros: {sorted(map(int, chosen))} of {pages}"
    return whole, "undamaged"


def cut(rng, size):
    """Most anywhere; some where file systems and disks cut; some just before the end."""
    draw = rng.random()
    if draw < 0.6:
        return int(rng.integers(0, size))
    if draw < 0.85:
        block = int(rng.choice([512, 4096]))
        return block * int(rng.integers(0, size // block + 1))
    return size - int(rng.integers(1, min(size, 64)))


# --- truth -----------------------------------------------------------------------------------------------------------


def extents_of(whole) -> dict[Key, Extent]:
    return {Key.parse(name): extent for name, extent in Walk(whole).results().items()}


def is_kept(whole, data, ranges):
    """Whether these bytes are all there and as they were."""
    return all(end <= len(data) and data[start:end] == whole[start:end] for start, end in ranges)


def layout_ranges(extent):
    """The numbers of the layout; where they lie in chunks, all that is the result's own."""
    return [extent.layout] if extent.layout else extent.own


def still_there(data, originals):
    """Keys of the results that a killed writer left whole, by their numbers: see the top of this file."""
    found = set()
    for extent in Walk(data).scan():
        key = Key(*(extent.attributes[name] for name in ("farm_idx", "type_idx", "ss_seed")))
        original = originals.get(key)
        if original is None or data[slice(*extent.layout)] != original.layout.tobytes():
            continue
        if original.aep is None or (extent.aep and data[slice(*extent.aep)] == struct.pack("<d", original.aep)):
            found.add(key)
    return found


# --- killed writers --------------------------------------------------------------------------------------------------


def killed(name, seed, rng, libver, habit):
    """A process that writes results until it is ended by SIGKILL, somewhere in the midst.

    It notes each key in another file before it writes the result, and a dot after; the numbers are known from the seed.
    habit: the place in KILLED.
    """
    style = random_style(rng, libver, is_reopened=habit == 2)
    originals = random_results(rng, 50)
    flushes = {int(i) for i in rng.choice(50, int(rng.integers(2, 20)), replace=False)} if habit == 1 else set()
    enough, extra = int(rng.integers(1, 50)), float(rng.exponential(0.002))
    with tempfile.TemporaryDirectory() as folder:
        path, notes = Path(folder) / "worker_1.h5", Path(folder) / "notes"
        child = os.fork()
        if child == 0:
            write_until_killed(path, notes, style, originals, flushes)
        kill_after(child, notes, enough, extra)
        data = path.read_bytes() if path.exists() else b""
        lines = notes.read_text().split()
    by_key = {original.key: original for original in originals if str(original.key) in lines}
    whole = still_there(data, by_key)
    bare = {key for key, original in by_key.items() if original.layout.tobytes() in data}
    note = f"{lines.count('.')} finished; flushed after {sorted(flushes)}; {style}"
    return Specimen(name, seed, data, by_key, frozenset(whole), frozenset(), frozenset(bare), note)


def write_until_killed(path, notes, style, originals, flushes):
    """In the child: does not return, and should not come to its end."""
    try:
        with open(notes, "a", buffering=1) as side:
            for number, file in enumerate(written(path, style, noted(originals, side))):
                if number in flushes:
                    file.flush()
                side.write(".\n")
                if number == len(originals) - 1:
                    time.sleep(3600)
    finally:
        traceback.print_exc()
        os._exit(1)


def noted(originals, side):
    for original in originals:
        side.write(f"{original.key}\n")
        yield original


def kill_after(child, notes, enough, extra):
    """SIGKILL once `enough` results are noted as finished, and `extra` seconds more have passed."""
    deadline = time.monotonic() + 600
    finished = 0
    while finished < enough and time.monotonic() < deadline:
        time.sleep(0.0005)
        with contextlib.suppress(FileNotFoundError):
            finished = notes.read_text().count(".")
        if os.waitpid(child, os.WNOHANG)[0]:
            raise RuntimeError(f"the writer ended by itself after {finished} results; it should have been killed")
    time.sleep(extra)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


# --- what was recovered of it ----------------------------------------------------------------------------------------


STEPS = {"layout by less than 1 mm": 1e-3, "layout by less than 1 m": 1.0, "layout by less than 1 km": 1e3}


@dataclass
class Tally:
    """Over the files of a class; wrong: a line for each result that differs from the original."""

    files: int = 0
    results: int = 0
    recoverable: int = 0
    bare: int = 0
    recovered: int = 0  # of the recoverable ones, as they were
    beyond: int = 0  # as they were, though not all of their bytes are
    without_aep: int = 0  # layout right, aep lost and said to be
    proved: int = 0  # of all that came back: called verified
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    kinds: Counter = field(default_factory=Counter)  # of what is wrong
    unlabelled: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def share(self):
        return self.recovered / self.recoverable if self.recoverable else 1.0


def count(tally, specimen, found, seconds=0.0):
    """Add what recovery found in a specimen (FoundResults that have a result)."""
    tally.files += 1
    tally.seconds += seconds
    tally.results += len(specimen.originals)
    tally.recoverable += len(specimen.recoverable)
    tally.bare += len(specimen.bare)
    right, layout_only = set(), set()
    where = f"{specimen.name}, seed {specimen.seed}"
    for one in found:
        tally.proved += one.sealed
        labelled = one.sealed or one.details.get("evidence") == "plausible"
        wrong = differences(specimen.originals.get(one.key), one)
        if not labelled:
            tally.unlabelled.append(f"{where}: {one.key} has the evidence {one.details.get('evidence')!r}")
        if wrong:
            tally.kinds.update(wrong.keys())
            label = "verified" if one.sealed else one.details.get("evidence", "nothing")
            tally.wrong.append(f"{where}: {one.key} called {label}: {'; '.join(wrong.values())}")
        elif lost_its_aep(specimen.originals[one.key], one):
            layout_only.add(one.key)
        else:
            right.add(one.key)
    tally.recovered += len(right & specimen.recoverable)
    tally.beyond += len(right - specimen.recoverable)
    tally.without_aep += len(layout_only - right)
    for key in sorted(specimen.recoverable - right):
        rest = "layout right, aep lost" if key in layout_only else "nothing"
        name = ", its name is lost" if key not in specimen.named else ""
        tally.missed.append(f"{where}: {key} ({rest}{name})")


def lost_its_aep(original, found):
    return original.has_energy and found.result.status == NO_AEP


def differences(original, found):
    """What a recovered result says that the original did not: a word for the kind, and a sentence, for each."""
    if original is None:
        return {"key": "nothing was ever stored under this key"}
    layout, said = found.result.layout, {}
    if layout.shape != original.layout.shape:
        said["shape"] = f"{layout.shape[1]} turbines instead of {original.layout.shape[1]}"
    elif layout.tobytes() != original.layout.tobytes():
        off = np.abs(layout - original.layout)
        step = next((name for name, metres in STEPS.items() if off.max() < metres), "layout by more")
        said[step] = f"{np.count_nonzero(off)} coordinates, the worst by {off.max():.3g} m"
    if found.result.status != NO_AEP and not (original.has_energy and found.result.aep_gwh == original.aep):
        said["aep"] = f"aep {found.result.aep_gwh!r} instead of {original.aep!r}"
    if not math.isnan(found.result.rotor_diameter_m) and found.result.rotor_diameter_m != original.diameter:
        said["diameter"] = f"diameter {found.result.rotor_diameter_m!r} instead of {original.diameter!r}"
    return said
