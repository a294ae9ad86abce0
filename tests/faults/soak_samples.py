"""What a run looks like from outside while it goes on: memory and open files of its processes, and its small files."""

import ctypes
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_SET_NO_HUGE_PAGES = 41  # of prctl


@dataclass(frozen=True)
class Process:
    """kind: "coordinator", "worker", "reader", "writer". own, resident: bytes of memory. handles: number and file."""

    kind: str
    own: int
    resident: int
    handles: frozenset[tuple[str, str]]
    threads: int


@dataclass(frozen=True)
class Sample:
    """processes: by process id. small_files, small_bytes: in the run directory besides results and the index."""

    seconds: float
    tasks: int
    processes: dict[int, Process]
    small_files: int
    small_bytes: int
    index_bytes: int
    said_bytes: int

    def of(self, kind: str) -> dict[int, Process]:
        return {pid: process for pid, process in self.processes.items() if process.kind == kind}

    def __str__(self) -> str:
        parts = [f"{self.seconds:6.0f} s  {self.tasks:7d} tasks"]
        for pid, process in sorted(self.processes.items(), key=lambda item: (item[1].kind, item[0])):
            parts.append(f"{process.kind} {pid}: {process.own / 1e6:.1f} MB, {len(process.handles)} files")
        parts.append(f"{self.small_files} small files, {self.small_bytes / 1e3:.0f} kB")
        return "  ".join(parts)


class Lines:
    """Of a file that grows; only what is new is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = self.read = 0

    def count(self) -> int:
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self.read)
                while piece := file.read(1 << 20):
                    self._count += piece.count(b"\n")
                    self.read += len(piece)
        return self._count


def family_of(coordinator: int) -> dict[int, Process]:
    """It, its children and theirs."""
    parents, found = {coordinator}, {}
    if (one := _process(coordinator, "coordinator")) is not None:
        found[coordinator] = one
    stats = sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    for pid in stats:
        try:
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent in parents:
            parents.add(pid)
            kinds = {b"engines.worker_main": "worker", b"store.reader_main": "reader", b"store.writer_main": "writer"}
            kind = next((kind for mark, kind in kinds.items() if mark in command), "other")
            if (one := _process(pid, kind)) is not None:
                found[pid] = one
    return found


def _process(pid: int, kind: str) -> Process | None:
    """None if it is gone, or going."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        handles = frozenset(_handles(Path(f"/proc/{pid}/fd")))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    facts = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    if "VmRSS" not in facts:
        return None
    own, swapped, resident = (1024 * int(facts.get(name, "0").split()[0]) for name in ("RssAnon", "VmSwap", "VmRSS"))
    own += swapped  # wherever the machine keeps it
    return Process(kind, own, resident, handles, int(facts["Threads"]))


def without_huge_pages() -> None:
    """For this process and all that it starts: the machine gives whole ones for a part, whenever it likes."""
    ctypes.CDLL(None).prctl(_SET_NO_HUGE_PAGES, 1, 0, 0, 0)


def _handles(folder: Path) -> Iterable[tuple[str, str]]:
    for number in os.listdir(folder):
        try:
            yield number, os.readlink(folder / number)
        except FileNotFoundError:  # closed in between
            continue


def small_files(run: Path) -> Iterable[int]:
    """Sizes of all files in the run directory but results and the index."""
    for folder, names, files in os.walk(run):
        if "results" in names:
            names.remove("results")
        for name in files:
            if name != "index.jsonl":
                try:
                    yield os.stat(os.path.join(folder, name)).st_size
                except FileNotFoundError:
                    continue


def disk_use(run: Path) -> int:
    return int(subprocess.run(["du", "-sB1", run], capture_output=True, text=True).stdout.split()[0])
