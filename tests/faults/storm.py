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
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from steps import quick_folder

from run_cases import calls, digests, kill_group, leeward, make_campaign, shards, start, workers_of

TASK_S = 0.2
CHANCE = 0.5  # that the worker of a task is killed


@dataclass
class Storm:
    """least_...: how many are killed at least. problems: promises that were not kept."""

    folder: Path
    tasks: int
    least_worker_kills: int
    least_coordinator_kills: int
    seed: int
    worker_kills: int = 0
    coordinator_kills: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    _seen: int = 0
    _stored: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"storm of seed {self.seed}: {self.tasks} tasks, {self.worker_kills} workers and {self.coordinator_kills} "
            f"coordinators killed, {len(calls(self.folder))} computations, {len(self.problems)} problems, "
            f"{self.seconds:.0f} s"
        )

    @property
    def run(self) -> Path:
        return self.folder / "layouts.run"

    @property
    def output(self) -> Path:
        return self.folder / "layouts.h5"

    def rage(self, limit_s: float) -> None:
        """Until the campaign is complete."""
        began = time.monotonic()
        rng = random.Random(self.seed)
        execution = {"workers": 2, "timeout_s": 60, "retries": 10_000}
        make_campaign(self.folder, seeds=self.tasks, orders={"all": f"wait={TASK_S}"}, execution=execution)
        code = None
        while code != 0:
            if time.monotonic() > began + limit_s:
                self.problems.append(f"not complete after {limit_s:.0f} s")
                break
            code = self._until_it_ends(rng)
            self._look()
            if code not in (0, -signal.SIGKILL):
                said = (self.folder / "output.txt").read_text()[-500:]
                self.problems.append(f"a coordinator that nobody killed ended with code {code}: {said}")
                break
        self.seconds = time.monotonic() - began

    def _until_it_ends(self, rng: random.Random) -> int:
        """One coordinator. It is killed when its share of workers was, at some moment soon after."""
        process = start("run", "campaign.yaml", cwd=self.folder)
        share = -(-self.least_worker_kills // max(1, self.least_coordinator_kills))
        enough = self.worker_kills + rng.randint(1, share)
        try:
            while process.poll() is None:
                if self.coordinator_kills < self.least_coordinator_kills and self.worker_kills >= enough:
                    time.sleep(rng.uniform(0.0, 2.0))
                    self._look()
                    if process.poll() is None:
                        kill_group(process)
                        self.coordinator_kills += 1
                    break
                self._kill_workers(process, rng)
                self._look()
                time.sleep(0.02)
            return process.wait()
        finally:
            kill_group(process)

    def _kill_workers(self, process: subprocess.Popen, rng: random.Random) -> None:
        """Those that have begun a task since the last look, or not: at any moment of it, and a little after."""
        begun = _begun(self.folder)
        new, self._seen = begun[self._seen :], len(begun)
        must = self.worker_kills < self.least_worker_kills and self.tasks - len(self._stored) <= 3
        chosen = [worker for worker in new if must or rng.random() < CHANCE]
        if not chosen:
            return
        for worker in set(chosen) & set(workers_of(process)):
            time.sleep(rng.uniform(0.0, 0.6 * TASK_S))
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
                self.worker_kills += 1

    def _look(self) -> None:
        """What was stored stays, and is not computed again."""
        stored = shards(self.run)
        made = Counter(calls(self.folder))
        for key in self._stored.keys() - set(stored):
            self.problems.append(f"{key} was stored, and is gone")
            del self._stored[key]
        for key in stored:
            number = made[_seed(key)]
            if self._stored.setdefault(key, number) != number:
                self.problems.append(f"{key} was computed again after it had been stored")
                self._stored[key] = number

    def compare(self, undisturbed: dict[str, str]) -> None:
        """The output, and what was left behind."""
        found = digests(self.output)
        if found != undisturbed:
            different = sorted(key for key in found.keys() | undisturbed if found.get(key) != undisturbed.get(key))
            self.problems.append(f"differ from an undisturbed run: {different}")
        records = sorted(path.name for path in (self.run / "failures").glob("*.json"))
        if records:
            self.problems.append(f"records of attempts were left behind: {records}")


def _begun(folder: Path) -> list[int]:
    """The worker of each computation, in the order in which they began."""
    path = folder / "calls.txt"
    return [int(line.split()[1]) for line in path.read_text().splitlines()] if path.exists() else []


def _seed(key: str) -> int:
    return int(key.rpartition("_s")[2])


def undisturbed_digests(folder: Path, tasks: int) -> dict[str, str]:
    make_campaign(folder, seeds=tasks, execution={"engine": "inline"})
    done = leeward("run", "campaign.yaml", cwd=folder)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return digests(folder / "layouts.h5")


def rage(folder: Path, tasks: int, worker_kills: int, coordinator_kills: int, seed: int, limit_s: float) -> Storm:
    """A storm, and the comparison with a run in calm weather."""
    calm, wild = folder / "calm", folder / "wild"
    calm.mkdir(parents=True)
    wild.mkdir()
    storm = Storm(wild, tasks, worker_kills, coordinator_kills, seed)
    storm.rage(limit_s)
    if not storm.problems:
        storm.compare(undisturbed_digests(calm, tasks))
    return storm


def main() -> None:
    tasks, workers, coordinators, seed = map(int, sys.argv[1:])
    with quick_folder() as folder:
        storm = rage(folder, tasks, workers, coordinators, seed, limit_s=86_400.0)
        print(storm, *storm.problems, sep="\n")
    sys.exit(bool(storm.problems))


if __name__ == "__main__":
    main()
