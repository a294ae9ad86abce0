"""What `leeward salvage` gets back from damaged worker files of other scripts: one table over a seeded corpus.

layouts       results whose coordinates are all still in the file, even if nothing says any more what they are
recoverable   results of which every byte of their own is still in the file, as it was: all that any method could get
recovered     of these, how many came back exactly as they were
h5py          of these, how many h5py reads once the file is filled up with zeros to the length it should have
beyond        came back exactly as they were though some of their bytes are lost
no aep        came back with the right layout, and say that their aep is lost
wrong         differ from the original in any bit of key, layout, aep or diameter; in brackets: those called verified
unlabelled    say neither that they are verified nor that they are only plausible

Below the table: what was missed and what is wrong, with the seed that makes the file anew. tests/salvage_corpus.py has
the files and the truth. Goals: of truncated files 90 % recovered, better 99 %, none wrong; of others as few as can be.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import h5py
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from leeward.store.rescue.recovery import Recoverer
from salvage_corpus import CLASSES, FOLDER, Tally, count, specimen
from wake import cpu_name

QUICK, USUAL = 24, 200
MOST_LINES = 8


def measure(name, seeds, keep=None):
    """Over the files of one class, and what h5py reads; keep: a folder for those where something is missed or wrong."""
    tally, peer = Tally(), 0
    with tempfile.TemporaryDirectory(prefix="leeward-bench-") as folder, Recoverer(Path(folder)) as recoverer:
        path = Path(folder) / "worker_1.h5"
        for seed in seeds:
            one = specimen(name, seed)
            trouble = len(tally.missed) + len(tally.wrong)
            path.write_bytes(one.data)
            began = time.perf_counter()
            found = recoverer.recover(path).results
            seconds = time.perf_counter() - began
            peer += read_by_h5py(path, one)
            count(tally, one, [result for result in found if result.result is not None], seconds)
            if keep is not None and len(tally.missed) + len(tally.wrong) > trouble:
                (keep / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}.h5").write_bytes(one.data)
    return tally, peer


def read_by_h5py(path, one):
    """How many of the recoverable results; in a process of its own, which damaged files may crash or hang."""
    place = {0: 40, 3: 28}.get(one.data[8] if len(one.data) > 48 else -1)  # of the length, in the superblock
    length = int.from_bytes(one.data[place : place + 8], "little") if place else 0
    if len(one.data) < length < 10 * len(one.data) + 10_000:
        os.truncate(path, length)
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            tell_what_h5py_reads(path, one, sender)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(sender)
    with open(receiver, "rb") as answers:
        right = len(answers.read())
    os.waitpid(child, 0)
    return right


def tell_what_h5py_reads(path, one, sender):
    """One byte for each result that is as it was."""
    try:
        file = h5py.File(path, "r")
        parent = file.get(FOLDER, file)
    except (OSError, KeyError, RuntimeError):
        return
    for key in one.recoverable:
        original = one.originals[key]
        try:
            group = parent[str(key)]
            is_right = np.array_equal(group["layout"][()], original.layout)
            is_right = is_right and (original.aep is None or group["aep"][()] == original.aep)
        except (OSError, KeyError, RuntimeError, ValueError, TypeError):
            continue
        os.write(sender, b"x" if is_right else b"")


COLUMNS = {
    "class": 29,
    "files": 5,
    "results": 7,
    "layouts": 7,
    "recoverable": 11,
    "recovered": 15,
    "h5py": 5,
    "beyond": 6,
    "no aep": 6,
    "wrong": 8,
    "unlabelled": 10,
    "a file": 7,
}


def row(name, *cells):
    first, *others = COLUMNS.values()
    print(f"{name:<{first}}", *(f"{cell:>{width}}" for cell, width in zip(cells, others, strict=True)), flush=True)


def show(name, tally, peer):
    verified = sum("called verified" in line for line in tally.wrong)
    row(
        name,
        tally.files,
        tally.results,
        tally.bare,
        tally.recoverable,
        f"{tally.recovered} ({100 * tally.share:.2f} %)" if tally.recoverable else "-",
        peer,
        tally.beyond,
        tally.without_aep,
        f"{len(tally.wrong)} ({verified})",
        len(tally.unlabelled),
        f"{1e3 * tally.seconds / max(tally.files, 1):.0f} ms",
    )


def explain(title, lines, most, kinds=()):
    if lines:
        print(f"\n{title}: {len(lines)}", *(f"{what} {number}" for what, number in sorted(kinds)), sep="; ")
    for line in lines[:most]:
        print(f"  {line}")
    if len(lines) > most:
        print(f"  and {len(lines) - most} more")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="*", help=f"parts of names; all without: {'; '.join(CLASSES)}")
    parser.add_argument("--files", type=int, default=USUAL, help="of each class")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} files of each class")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--keep", type=Path, help="put the files here that something is missed or wrong in")
    parser.add_argument("--all", action="store_true", help="name every one that is missed or wrong")
    arguments = parser.parse_args()
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    files = QUICK if arguments.quick else arguments.files
    names = [name for name in CLASSES if not arguments.classes or any(part in name for part in arguments.classes)]
    print(f"{cpu_name()}; {files} files a class, seeds from {arguments.first}")
    row(*COLUMNS)
    tallies = {}
    for name in names:
        tallies[name], peer = measure(name, range(arguments.first, arguments.first + files), arguments.keep)
        show(name, tallies[name], peer)
    most = sys.maxsize if arguments.all else MOST_LINES
    for name, tally in tallies.items():
        explain(f"{name}, missed", tally.missed, most)
        explain(f"{name}, wrong", tally.wrong, most, tally.kinds.items())
        explain(f"{name}, unlabelled", tally.unlabelled, most)


if __name__ == "__main__":
    main()
