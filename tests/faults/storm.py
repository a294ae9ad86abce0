"""A campaign of small tasks under random SIGKILL of its workers and of its coordinator, resumed until it is complete.

`python tests/faults/storm.py TASKS WORKER_KILLS COORDINATOR_KILLS SEED` prints what happened.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from steps import quick_folder

from leeward.store.keys import Key
from leeward.store.paths import RunPaths
from run_cases import INLINE, digests, kill_group, leeward_here, make_campaign, shards, start, workers_of

TASK_S = 0.2
CHANCE = 0.5  # that the worker of a task is killed
LOOK_AT_ALL_S = 2.0
WHILE_MERGING = 20  # of so many coordinators that are killed, one is killed when only merging is left
TELL_EVERY_S = 60.0
HELD = 3  # tasks that come to their end only when enough workers were killed, however slowly this goes


@dataclass
class Storm:
    """least_...: how many are killed at least. problems: promises that were not kept. is_told: now and then."""

    folder: Path
    tasks: int
    least_worker_kills: int
    least_coordinator_kills: int
    seed: int
    is_told: bool = False
    worker_kills: int = 0
    coordinator_kills: int = 0
    merger_kills: int = 0
    computations: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    _begun: list[tuple[int, int]] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)
    _stored: set[int] = field(default_factory=set)
    _read: int = 0
    _looked_at_all: float = 0.0
    _told: float = 0.0
    _held: range = range(0)

    def __post_init__(self) -> None:
        self._held = range(self.tasks - HELD, self.tasks)

    def __str__(self) -> str:
        return (
            f"storm of seed {self.seed}: {self.tasks} tasks, {self.worker_kills} workers and {self.coordinator_kills} "
            f"coordinators killed, {self.merger_kills} of these while only merging was left, {self.computations} "
            f"computations, {len(self._stored)} stored, {len(self.problems)} problems, {self.seconds:.0f} s"
        )

    @property
    def run(self) -> Path:
        return self.folder / "layouts.run"

    @property
    def output(self) -> Path:
        return self.folder / "layouts.h5"

    def rage(self, limit_s: float) -> None:
        """Until the campaign is complete, and enough coordinators were killed, the last with only merging left.

        limit_s: without anything new.
        """
        began = time.monotonic()
        rng = random.Random(self.seed)
        execution = {"workers": 2, "timeout_s": 600, "retries": 10_000}
        orders = {"all": f"wait={TASK_S}"} | dict.fromkeys(self._held, f"wait={TASK_S} until=enough")
        make_campaign(self.folder, seeds=self.tasks, orders=orders, execution=execution)
        code = None
        news, since = self._news, began
        while code != 0 or self.coordinator_kills < self.least_coordinator_kills:
            self.seconds = time.monotonic() - began
            if self.is_told and self.seconds > self._told + TELL_EVERY_S:
                self._told = self.seconds
                print(self, flush=True)
            if self._news != news:
                news, since = self._news, time.monotonic()
            if time.monotonic() - since > limit_s:
                self.problems.append(f"nothing new for {limit_s:.0f} s")
                break
            code = self._until_it_ends(rng)
            self._look()
            self._look_at_all()
            if code not in (0, -signal.SIGKILL):
                said = (self.folder / "output.txt").read_text()[-500:]
                self.problems.append(f"a coordinator that nobody killed ended with code {code}: {said}")
                break
        self.seconds = time.monotonic() - began

    @property
    def _news(self) -> tuple[int, int, int]:
        return self.computations, self.worker_kills, self.coordinator_kills

    def _until_it_ends(self, rng: random.Random) -> int:
        """One coordinator. It is killed when its share of workers was, at some moment soon after."""
        process = start("run", "campaign.yaml", cwd=self.folder)
        share = -(-self.least_worker_kills // max(1, self.least_coordinator_kills))
        enough, delay_s = self.worker_kills + rng.randint(1, share), rng.uniform(0.0, 2.0)
        end = float("inf")
        try:
            while process.poll() is None:
                if time.monotonic() > end:
                    self._kill_coordinator(process)
                    break
                if end == float("inf") and self._is_next(enough):
                    end = time.monotonic() + delay_s
                self._kill_workers(process, rng)
                if time.monotonic() > self._looked_at_all + LOOK_AT_ALL_S:
                    self._look_at_all()
                time.sleep(0.02)
            return process.wait()
        finally:
            kill_group(process)

    def _is_next(self, enough: int) -> bool:
        """Whether it is time for the coordinator to die: some are left for when all tasks are done."""
        left = self.least_coordinator_kills - self.coordinator_kills
        kept = max(1, self.least_coordinator_kills // WHILE_MERGING) - self.merger_kills
        if len(self._stored) == self.tasks:
            return left > 0
        return left > kept and self.worker_kills >= enough

    def _kill_coordinator(self, process: subprocess.Popen) -> None:
        self._look()
        if process.poll() is None:
            kill_group(process)
            self.coordinator_kills += 1
            self.merger_kills += len(self._stored) == self.tasks

    def _kill_workers(self, process: subprocess.Popen, rng: random.Random) -> None:
        """Those that have begun a task since the last look, or not: at any moment of it, and a little after."""
        self._look()
        new, self._begun = self._begun, []
        if self.worker_kills >= self.least_worker_kills:
            (self.folder / "enough").touch()
            self._held = range(0)
        must = self.worker_kills < self.least_worker_kills and self.tasks - len(self._stored) <= HELD
        chosen = {worker for _, worker in new if must or rng.random() < CHANCE}
        self._begun = [(seed, worker) for seed, worker in new if seed in self._held and worker not in chosen]
        if not chosen:
            return
        for worker in chosen & set(workers_of(process)):
            time.sleep(rng.uniform(0.0, 0.6 * TASK_S))
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
                self.worker_kills += 1

    def _look(self) -> None:
        """What was stored is not computed again. Done often: only at tasks that were begun and not seen stored."""
        paths = RunPaths(self.output)
        stored = {seed for seed in self._open if paths.shard(Key(0, 0, seed)).exists()}
        for seed, worker in self._new_calls():
            if seed in self._stored:
                self.problems.append(f"seed {seed} was computed again after it had been stored")
            else:
                self._open.add(seed)
            self._begun.append((seed, worker))
            self.computations += 1
        self._open -= stored
        self._stored |= stored

    def _new_calls(self) -> list[tuple[int, int]]:
        """Seed and process of each computation that has begun since the last look."""
        path = self.folder / "calls.txt"
        if not path.exists():
            return []
        with path.open("rb") as calls:
            calls.seek(self._read)
            new = calls.read()
        new = new[: new.rfind(b"\n") + 1]
        self._read += len(new)
        return [(int(seed), int(worker)) for seed, worker in map(bytes.split, new.splitlines())]

    def _look_at_all(self) -> None:
        """What was stored stays."""
        known = set(self._stored)
        gone = known - set(map(_seed, shards(self.run)))
        self.problems += [f"seed {seed} was stored, and is gone" for seed in sorted(gone)]
        self._stored -= gone
        self._looked_at_all = time.monotonic()

    def compare(self, undisturbed: dict[str, str]) -> None:
        """The output, and what was left behind."""
        found = digests(self.output)
        if found != undisturbed:
            different = sorted(key for key in found.keys() | undisturbed if found.get(key) != undisturbed.get(key))
            self.problems.append(f"differ from an undisturbed run: {different}")
        records = sorted(path.name for path in (self.run / "failures").glob("*.json"))
        if records:
            self.problems.append(f"records of attempts were left behind: {records}")


def _seed(key: str) -> int:
    return int(key.rpartition("_s")[2])


def undisturbed_digests(folder: Path, tasks: int) -> dict[str, str]:
    make_campaign(folder, seeds=tasks, execution=INLINE)
    done = leeward_here("run", "campaign.yaml", cwd=folder)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return digests(folder / "layouts.h5")


def rage(
    folder: Path,
    tasks: int,
    worker_kills: int,
    coordinator_kills: int,
    seed: int,
    limit_s: float,
    is_told: bool = False,
) -> Storm:
    """A storm, and the comparison with a run in calm weather."""
    calm, wild = folder / "calm", folder / "wild"
    calm.mkdir(parents=True)
    wild.mkdir()
    storm = Storm(wild, tasks, worker_kills, coordinator_kills, seed, is_told)
    storm.rage(limit_s)
    if not storm.problems:
        storm.compare(undisturbed_digests(calm, tasks))
    return storm


def main() -> None:
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    tasks, workers, coordinators, seed = map(int, sys.argv[1:])
    with quick_folder() as folder:
        storm = rage(folder, tasks, workers, coordinators, seed, limit_s=86_400.0, is_told=True)
        print(storm, *storm.problems, sep="\n")
    sys.exit(bool(storm.problems))


if __name__ == "__main__":
    main()
