"""A study under random SIGKILL of its workers and of its coordinator, resumed until it is complete.

`python tests/faults/study_storm.py SCENARIOS WORKER_KILLS COORDINATOR_KILLS SEED` prints what happened, and ends with 1
if a promise was broken: a stored result changed or vanished, or the digests differ from those of an undisturbed run.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from steps import quick_folder

from leeward.store.paths import RunPaths
from run_cases import digests, kill_group, start, workers_of
from small_studies import write_study, write_wind

CHANCE = 0.04  # that a worker is killed when it is looked at, twenty times a second
LONGEST_S = 3600.0
# Plain Python and a long series make tasks last a second, so that they are hit.
STEPS = 3000
ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1"}


class StudyStorm:
    """A study that is evaluated under kills. stored: inode of each result that was seen on disk."""

    def __init__(self, folder: Path, scenarios: int, worker_kills: int, coordinator_kills: int, seed: int) -> None:
        self.wild, self.calm = folder / "wild", folder / "calm"
        for place, execution in ((self.wild, {"engine": "local", "workers": 2, "retries": 10_000}), (self.calm, {})):
            place.mkdir()
            write_study(place, scenarios, execution={"engine": "inline", **execution})
            write_wind(place, STEPS)
        self.scenarios, self.goal = scenarios, {"worker": worker_kills, "coordinator": coordinator_kills}
        self.kills: Counter[str] = Counter()
        self.stored: dict[Path, int] = {}
        self.problems: list[str] = []
        self.last_code: int | None = None
        self._paths, self._rng = RunPaths(self.wild / "study.h5"), random.Random(seed)

    def rage(self) -> None:
        """Kill until there were enough kills and the study is complete; then compare."""
        end = time.monotonic() + LONGEST_S
        while not self.problems and self.last_code != 0:
            if time.monotonic() > end:
                self.problems.append(f"not complete after {LONGEST_S:.0f} s")
                break
            self._one_coordinator()
        if self._left("coordinator") or self._left("worker"):
            self.problems.append("the study was complete before all kills; give it more scenarios")
        if not self.problems:
            self._compare()

    def _left(self, what: str) -> int:
        return max(self.goal[what] - self.kills[what], 0)

    def _one_coordinator(self) -> None:
        """Start a coordinator, kill its workers, and then, if some are left to be killed, itself."""
        environment = {**os.environ, **ENVIRONMENT}
        process = start("evaluate", "study.yaml", cwd=self.wild, env=environment, start_new_session=True)
        share = -(-self._left("worker") // max(self._left("coordinator"), 1))
        limit = self.kills["worker"] + share
        patience = time.monotonic() + self._rng.uniform(0.5, 4.0)
        try:
            while process.poll() is None:
                self._look()
                is_enough = self.kills["worker"] >= limit or time.monotonic() > patience + 10.0
                if self._left("coordinator") and is_enough and time.monotonic() > patience:
                    self.kills["coordinator"] += 1
                    break
                self._kill_workers(process, limit)
                time.sleep(0.05)
        finally:
            kill_group(process)
        self.last_code = process.returncode
        self._look()
        if self.last_code not in (0, -signal.SIGKILL):
            said = (self.wild / "output.txt").read_text()[-500:]
            self.problems.append(f"a coordinator that nobody killed ended with code {self.last_code}: {said}")

    def _kill_workers(self, process: subprocess.Popen, limit: int) -> None:
        for worker in workers_of(process):
            if self.kills["worker"] < limit and self._rng.random() < CHANCE:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    self.kills["worker"] += 1

    def _look(self) -> None:
        """What was stored stays, and is not written again: that would give its file another inode."""
        there = {path: path.stat().st_ino for path in self._paths.results.rglob("*.h5")}
        for path, inode in self.stored.items():
            if there.get(path) != inode:
                self.problems.append(f"{path.name} was stored, and is gone or was computed again")
        self.stored |= there

    def _compare(self) -> None:
        process = start("evaluate", "study.yaml", cwd=self.calm, env={**os.environ, **ENVIRONMENT})
        if process.wait() != 0:
            self.problems.append((self.calm / "output.txt").read_text()[-1000:])
            return
        found, expected = digests(self.wild / "study.h5"), digests(self.calm / "study.h5")
        if found != expected or len(found) != self.scenarios:
            self.problems.append(f"{len(found)} results differ from an undisturbed run")

    def __str__(self) -> str:
        return (
            f"study storm: {self.scenarios} scenarios, {self.kills['worker']} workers and {self.kills['coordinator']} "
            f"coordinators killed, {len(self.stored)} stored, {len(self.problems)} problems"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("scenarios", "worker_kills", "coordinator_kills", "seed"):
        parser.add_argument(name, type=int)
    chosen = parser.parse_args()
    with quick_folder() as folder:
        storm = StudyStorm(folder, chosen.scenarios, chosen.worker_kills, chosen.coordinator_kills, chosen.seed)
        storm.rage()
        print(storm, *storm.problems, sep="\n")
    sys.exit(bool(storm.problems))


if __name__ == "__main__":
    main()
