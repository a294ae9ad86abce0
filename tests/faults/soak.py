"""A run of very many tiny tasks: whether memory, open files and small files stay what they are.

`python tests/faults/soak.py --minutes 60` prints a line every minute, and a table in the end. The run is ended with
SIGTERM after that time; then its results are checked, merged, and the run goes on for a few tasks more.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # when started plainly: the tests' own modules

import numpy as np

from run_cases import kill_group, leeward, make_campaign, start

# Of every result that is stored, a run keeps a few numbers until its end, for the summary: about 160 bytes. A worker
# keeps nothing; but Python's table of names, which the parts of all paths go through, is rebuilt now and then, and the
# first times it takes two or three megabytes more.
COORDINATOR_BYTES_PER_TASK = 400.0
WORKER_BYTES_PER_TASK = 150.0
NOISE_BYTES = 3e6  # that a short run is allowed in any case
AT_ONCE = 6  # files that a process may have open for a moment: one that it writes, one that it reads back, a folder
SAMPLES = 40  # at least, for how long it takes
SMALL_FILES = 40  # in the run directory besides results: heartbeats, logs, and what is being written
MORE = 20  # tasks after the stop

RECIPE = """
import time
import numpy as np

def place(problem, seed):
    time.sleep({pause_s})
    rng = np.random.default_rng(seed)
    x = np.array([500.0, 2500.0, 4500.0]) + rng.uniform(-400, 400, 3)
    left, low, _, _ = problem.area.bounds
    return x + left, rng.uniform(500, 4500, 3) + low
"""


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


@dataclass
class Soak:
    """samples: while tasks are computed. ending: while it stops and merges. problems: promises that were not kept."""

    folder: Path
    seconds: float
    tasks: int
    pause_s: float = 0.0
    every_s: float = 5.0
    tell: Callable[[str], None] = lambda text: None
    samples: list[Sample] = field(default_factory=list)
    ending: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)

    @property
    def run(self) -> Path:
        return self.folder / "layouts.run"

    def soak(self) -> None:
        """Until the time is over; then stop, look, and go on a little."""
        campaign = make_campaign(
            self.folder,
            seeds=self.tasks,
            optimiser={"recipe": "tiny_recipe:place"},
            execution={"workers": 2, "timeout_s": 600},
        )
        (self.folder / "tiny_recipe.py").write_text(RECIPE.format(pause_s=self.pause_s))
        counter = _Lines(self.run / "index.jsonl")
        process = start("run", campaign.name, cwd=self.folder)
        try:
            self._watch(process, counter)
            process.send_signal(signal.SIGTERM)
            stopped = time.monotonic()
            while process.poll() is None:
                self.ending.append(self._sample(process, counter, stopped))
                time.sleep(0.2)
        finally:
            kill_group(process)
        self._judge_samples()
        self._look_at_end(process.returncode)

    def _watch(self, process: subprocess.Popen, counter: "_Lines") -> None:
        while counter.count() == 0 and process.poll() is None:
            time.sleep(0.1)
        began, told = time.monotonic(), -60.0
        while (now := time.monotonic()) < began + self.seconds or len(self.samples) < SAMPLES:
            if process.poll() is not None:
                raise RuntimeError(f"it ended by itself, with code {process.returncode}: {self._said()}")
            self.samples.append(self._sample(process, counter, began))
            if now - told >= 60.0:
                told = now
                self.tell(str(self.samples[-1]))
            time.sleep(self.every_s)

    def _said(self) -> str:
        return (self.folder / "output.txt").read_text()[-500:]

    def _sample(self, process: subprocess.Popen, counter: "_Lines", began: float) -> Sample:
        small = list(_small_files(self.run))
        return Sample(
            time.monotonic() - began,
            counter.count(),
            _family(process.pid),
            len(small),
            sum(small),
            counter.read,
            (self.folder / "output.txt").stat().st_size,
        )

    # --- judging -----------------------------------------------------------------------------------------------------

    def _judge_samples(self) -> None:
        """The second half, when all that is made once has been made."""
        half = self.samples[len(self.samples) // 2 :]
        families = [{pid: one.kind for pid, one in sample.processes.items()} for sample in half]
        lasting = {pid: kind for pid, kind in families[0].items() if all(pid in family for family in families)}
        if sorted(lasting.values()) != ["coordinator", "worker", "worker"]:
            self.problems.append(f"not one coordinator and two workers all the time: {lasting}")
        if any(family != lasting for family in families):
            self.problems.append(f"processes came and went: {[family for family in families if family != lasting][:3]}")
        for pid, kind in sorted(lasting.items(), key=lambda item: item[::-1]):
            self._judge_memory(half, pid, kind)
            self._judge_handles(half, pid, kind)
        most = max(sample.small_files for sample in half)
        if most > SMALL_FILES:
            self.problems.append(f"{most} small files in the run directory")

    def _judge_memory(self, half: Sequence[Sample], pid: int, kind: str) -> None:
        tasks = np.array([sample.tasks for sample in half], dtype=float)
        memory = np.array([sample.processes[pid].own for sample in half], dtype=float)
        slope = float(np.polyfit(tasks, memory, 1)[0]) if np.ptp(tasks) else 0.0
        growth = slope * np.ptp(tasks)
        allowed = COORDINATOR_BYTES_PER_TASK if kind == "coordinator" else WORKER_BYTES_PER_TASK
        self.figures.append(
            f"{kind} {pid}: {slope:.0f} bytes a task, {slope / 100:.1f} MB in 10 000 tasks "
            f"(allowed: {allowed:.0f} bytes); {growth / 1e6:.1f} MB in {np.ptp(tasks):.0f} tasks of the second half"
        )
        if growth > max(allowed * np.ptp(tasks), NOISE_BYTES):
            self.problems.append(f"the memory of a {kind} grows by {slope:.0f} bytes a task")

    def _judge_handles(self, half: Sequence[Sample], pid: int, kind: str) -> None:
        """What stays open is the same file in every sample; a busy process has some other one open in each of them."""
        handles = [sample.processes[pid].handles for sample in half]
        middle = len(handles) // 2
        before, after = frozenset.intersection(*handles[:middle]), frozenset.intersection(*handles[middle:])
        most = max(map(len, handles))
        told = f"{len(before)}, then {len(after)} that stay, {most} at most"
        self.figures.append(f"{kind} {pid}: open files: {told}")
        if after - before or most > len(before) + AT_ONCE:
            self.problems.append(f"open files of a {kind}: {told}: {sorted(after - before)}")

    def _look_at_end(self, code: int) -> None:
        """The exit code, the store, and the way on."""
        if code != 128 + signal.SIGTERM:
            self.problems.append(f"exit code {code} after SIGTERM: {self._said()}")
        stored = sum(1 for _ in self.run.glob("results/*/*.h5"))
        self.figures.append(f"stored when it was stopped: {stored}")
        for what in ("layouts.run", "layouts.h5"):
            self._expect_all(stored, "check", what, "--json")
        merged = self._command("merge", "layouts.run", "-o", "merged.h5")
        if merged.returncode != 3:  # merged, with tasks missing
            self.problems.append(f"merge: exit code {merged.returncode}: {merged.stderr[-300:]}")
        else:
            self._expect_all(stored, "check", "merged.h5", "--json")
        self._go_on(stored)

    def _go_on(self, stored: int) -> None:
        wanted = stored + MORE
        before = self._stored_seeds()
        missing = wanted - sum(seed < wanted for seed in before)
        done = self._command("run", "campaign.yaml", "--seeds", wanted, "--json")
        summary = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
        if summary.get("computed") != missing or summary.get("done") != wanted:
            self.problems.append(f"going on with {missing} tasks: {done.returncode}, {summary}, {done.stderr[-300:]}")

    def _stored_seeds(self) -> set[int]:
        return {int(path.stem.rpartition("_s")[2]) for path in self.run.glob("results/*/*.h5")}

    def _expect_all(self, count: int, *arguments: str) -> None:
        done = self._command(*arguments)
        valid = _valid_results(done.stdout)
        if done.returncode != 0 or valid != count:
            self.problems.append(
                f"{' '.join(arguments)}: exit code {done.returncode}, {valid} of {count} results: {done.stderr[-300:]}"
            )

    def _command(self, *arguments: object) -> subprocess.CompletedProcess:
        began = time.monotonic()
        done = leeward(*arguments, cwd=self.folder, timeout=3600)
        self.figures.append(f"leeward {' '.join(map(str, arguments))}: {time.monotonic() - began:.1f} s")
        return done

    def table(self) -> str:
        """At a tenth, at half and at the end of the time."""
        last = self.samples[-1]
        rows = [f"{last.tasks} tasks in {last.seconds:.0f} s: {last.tasks / last.seconds:.1f} a second"]
        for share in (0.1, 0.5, 1.0):
            rows.append(str(min(self.samples, key=lambda sample: abs(sample.seconds - share * last.seconds))))
        most = max(self.ending, key=lambda sample: sum(one.own for one in sample.processes.values()), default=None)
        if most is not None:
            rows.append(f"while it stopped and merged, at most: {most}")
        rows.append(
            f"a task: {last.index_bytes / max(last.tasks, 1):.0f} bytes of index, "
            f"{last.said_bytes / max(last.tasks, 1):.1f} bytes said; "
            f"{_disk_use(self.run) / max(last.tasks, 1):.0f} bytes of disk for the run directory"
        )
        return "\n".join([*rows, *self.figures, f"{len(self.problems)} problems", *self.problems])


class _Lines:
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


def _family(coordinator: int) -> dict[int, Process]:
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
            kinds = {b"engine.worker": "worker", b"store.reading": "reader", b"store.writing": "writer"}
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
    own, resident = (1024 * int(facts[name].split()[0]) for name in ("RssAnon", "VmRSS"))
    return Process(kind, own, resident, handles, int(facts["Threads"]))


def _handles(folder: Path) -> Iterable[tuple[str, str]]:
    for number in os.listdir(folder):
        try:
            yield number, os.readlink(folder / number)
        except FileNotFoundError:  # closed in between
            continue


def _small_files(run: Path) -> Iterable[int]:
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


def _disk_use(run: Path) -> int:
    return int(subprocess.run(["du", "-sB1", run], capture_output=True, text=True).stdout.split()[0])


def _valid_results(text: str) -> int | None:
    """As `leeward check --json` counts them."""
    try:
        return json.loads(text)["result_verdicts"]["valid"]
    except (ValueError, KeyError, TypeError):
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--tasks", type=int, default=500_000, help="more than the time is enough for")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds that a task sleeps")
    parser.add_argument("--folder", type=Path, help="for the run; a temporary one on the disk if none is given")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leeward-soak-", dir=chosen.folder) as folder:
        every_s = max(0.5, min(5.0, chosen.minutes))
        soak = Soak(
            Path(folder),
            60.0 * chosen.minutes,
            chosen.tasks,
            chosen.pause,
            every_s,
            lambda text: print(text, flush=True),
        )
        soak.soak()
        print(soak.table(), flush=True)
    sys.exit(bool(soak.problems))


if __name__ == "__main__":
    main()
