"""A run of very many tiny tasks: whether memory, open files and small files stay what they are.

`python tests/faults/soak.py --minutes 60` prints a line every minute, and a table in the end. The run is ended with
SIGTERM after that time; then its results are checked, merged, and the run goes on for a few tasks more.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # when started plainly: the tests' own modules

import numpy as np
from soak_samples import Lines, Process, Sample, disk_use, family_of, small_files, without_huge_pages

from run_cases import kill_group, leeward, make_campaign, start

# Of every result that is stored, a run keeps a few numbers until its end, for the summary: about 160 bytes. A worker
# keeps nothing; but Python's table of names, which the parts of all paths go through, is rebuilt now and then, and the
# first times it takes two or three megabytes more.
COORDINATOR_BYTES_PER_TASK = 400.0
WORKER_BYTES_PER_TASK = 150.0
NOISE_BYTES = 3e6  # that a short run is allowed in any case
AT_ONCE = 6  # files that a process may have open for a moment: one that it writes, one that it reads back, a folder
SAMPLES = 40  # at least, for how long it takes
WARM = 20  # tasks that each worker has done at least before it is measured: by then all that is made once was made
SMALL_FILES = 40  # in the run directory besides results: heartbeats, logs, and what is being written
MORE = 20  # tasks after the stop
SETTLED_S = 600.0  # in which a process that does nothing has closed what it does not keep open

RECIPE = """
import os, time
from pathlib import Path
import numpy as np

HERE = Path(__file__).parent
calls = 0

def place(problem, seed):
    global calls
    calls += 1
    time.sleep({pause_s})
    if (HERE / "rest").exists():
        mark = HERE / "resting" / str(os.getpid())
        mark.with_suffix(".new").write_text(str(calls))
        mark.with_suffix(".new").replace(mark)
        while (HERE / "rest").exists():
            time.sleep(0.02)
        mark.unlink()
    rng = np.random.default_rng(seed)
    x = np.array([500.0, 2500.0, 4500.0]) + rng.uniform(-400, 400, 3)
    left, low, _, _ = problem.area.bounds
    return x + left, rng.uniform(500, 4500, 3) + low
"""


@dataclass
class Soak:
    """samples: while tasks are computed, the second half of them from the number `middle` on. at_rest: before and after
    that half, when each worker was held in a task, and nothing was written. ending: while it stops and merges.
    problems: promises that were not kept.
    """

    folder: Path
    seconds: float
    tasks: int
    pause_s: float = 0.0
    every_s: float = 5.0
    tell: Callable[[str], None] = lambda text: None
    samples: list[Sample] = field(default_factory=list)
    ending: list[Sample] = field(default_factory=list)
    middle: int = 0
    at_rest: list[dict[int, Process]] = field(default_factory=list)
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
        (self.folder / "resting").mkdir()
        counter = Lines(self.run / "index.jsonl")
        process = start("run", campaign.name, cwd=self.folder, preexec_fn=without_huge_pages)
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

    def _watch(self, process: subprocess.Popen, counter: Lines) -> None:
        """Two halves; the second one begins when both workers are warm."""
        while counter.count() == 0:
            self._demand_running(process)
            time.sleep(0.1)
        began = time.monotonic()
        self._sample_for(process, counter, began)
        while min(self._rest(process)) < WARM:
            self._go_on_working()
            self._sample_for(process, counter, began, least=1, seconds=1.0)
        self.middle = len(self.samples)
        self.at_rest.append(family_of(process.pid))
        self._go_on_working()
        self._sample_for(process, counter, began)
        self._rest(process)
        self.at_rest.append(self._settled(process, self.at_rest[0]))
        self._go_on_working()

    def _sample_for(
        self,
        process: subprocess.Popen,
        counter: Lines,
        began: float,
        least: int = SAMPLES // 2,
        seconds: float | None = None,
    ) -> None:
        """As many samples as there are in the time; half of all, if nothing else is said."""
        end = time.monotonic() + (self.seconds / 2 if seconds is None else seconds)
        taken, told = 0, time.monotonic() - 60.0
        while (now := time.monotonic()) < end or taken < least:
            self._demand_running(process)
            self.samples.append(self._sample(process, counter, began))
            taken += 1
            if now - told >= 60.0:
                told = now
                self.tell(str(self.samples[-1]))
            time.sleep(self.every_s)

    def _demand_running(self, process: subprocess.Popen) -> None:
        if process.poll() is not None:
            raise RuntimeError(f"it ended by itself, with code {process.returncode}: {self._said()}")

    def _rest(self, process: subprocess.Popen) -> list[int]:
        """Hold each worker in its next task, and say how many each has begun."""
        (self.folder / "rest").touch()
        while len(marks := [mark for mark in (self.folder / "resting").iterdir() if not mark.suffix]) < 2:
            self._demand_running(process)
            time.sleep(0.05)
        return [int(mark.read_text()) for mark in marks]

    def _go_on_working(self) -> None:
        (self.folder / "rest").unlink()
        while list((self.folder / "resting").iterdir()):
            time.sleep(0.02)

    def _settled(self, process: subprocess.Popen, before: dict[int, Process]) -> dict[int, Process]:
        """All of them at rest: what is open for a moment, for a sign of life, is closed after a while."""
        end = time.monotonic() + SETTLED_S
        while True:
            now = family_of(process.pid)
            more = any(one.handles - before[pid].handles for pid, one in now.items() if pid in before)
            if not more or time.monotonic() > end:
                return now
            time.sleep(0.05)

    def _said(self) -> str:
        return (self.folder / "output.txt").read_text()[-500:]

    def _sample(self, process: subprocess.Popen, counter: Lines, began: float) -> Sample:
        small = list(small_files(self.run))
        return Sample(
            time.monotonic() - began,
            counter.count(),
            family_of(process.pid),
            len(small),
            sum(small),
            counter.read,
            (self.folder / "output.txt").stat().st_size,
        )

    # --- judging -----------------------------------------------------------------------------------------------------

    def _judge_samples(self) -> None:
        """The second half, when all that is made once has been made."""
        half = self.samples[self.middle :]
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
        """What stays open is open at rest; a busy process has some other file open whenever one looks."""
        before, after = (family[pid].handles for family in self.at_rest)
        most = max(len(sample.processes[pid].handles) for sample in half)
        told = f"{len(before)} at rest, then {len(after)}, {most} at most"
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

    def counts(self) -> dict[str, float]:
        """Return what this soak adds to the figures of several."""
        last = self.samples[-1]
        counts = {"seconds": round(last.seconds), "tasks": last.tasks, "problems": len(self.problems)}
        for one in last.processes.values():
            for what, value in (("MB in the end", round(one.own / 1e6, 1)), ("open files", len(one.handles))):
                name = f"most {what}, {one.kind}"
                counts[name] = max(value, counts.get(name, 0))
        counts["most small files"] = max(sample.small_files for sample in self.samples)
        return counts

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
            f"{disk_use(self.run) / max(last.tasks, 1):.0f} bytes of disk for the run directory"
        )
        return "\n".join([*rows, *self.figures, f"{len(self.problems)} problems", *self.problems])


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
