"""A campaign of small tasks under random SIGKILL of its workers and of its coordinator, resumed until it is complete.

`python tests/faults/storm.py TASKS WORKER_KILLS COORDINATOR_KILLS SEED` prints what happened. With `--folder DIR` the
storm keeps its state there: end it in any way, or with `--minutes N`, and run the same command again to resume. It ends
with 0 if all promises were kept, with 1 if not, with 2 if the folder holds another storm or one of another source, and
with 3 if it is not complete yet.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from source import commit_of, digest_of
from steps import quick_folder
from storm_state import State, StateError, held, resumed

import leeward
from leeward.store.directory.owner import process_start
from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths
from run_cases import INLINE, RECIPE, digests, kill_group, make_campaign, shards, start, until, workers_of

TASK_S = 0.2
CHANCE = 0.5  # that the worker of a task is killed
LOOK_AT_ALL_S = 2.0
WHILE_MERGING = 20  # of so many coordinators that are killed, one is killed when only merging is left
TELL_EVERY_S = 60.0
HELD = 3  # tasks that come to their end only when enough workers were killed, however slowly this goes
REFUSED, UNFINISHED = 2, 3  # exit codes

# Each call is told with its time, which shows whether it was before or after its result was stored.
TIMED_RECIPE = RECIPE.replace("{os.getpid()}", "{os.getpid()} {time.time_ns()}")
# Three turbines are computed as quickly by plain Python, and each worker starts sooner.
ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1"}


class Storm:
    """is_due: whether to stop, and leave the rest to the next start."""

    def __init__(
        self, folder: Path, state: State, is_due: Callable[[], bool] = lambda: False, is_told: bool = False
    ) -> None:
        self.folder, self.state = folder, state
        self.tasks, self.least_worker_kills, self.least_coordinator_kills, self.seed = state.plan
        self._wild, self._calm = folder / "wild", folder / "calm"
        self._is_due, self._is_told = is_due, is_told
        self._new: list[tuple[int, int]] = []  # seed and worker of computations that may be hit
        self._held = range(self.tasks - HELD, self.tasks)
        self._began = time.monotonic() - state.seconds
        self._looked_at_all = self._told = 0.0

    def __str__(self) -> str:
        state = self.state
        return (
            f"storm of seed {self.seed}: {self.tasks} tasks, {state.worker_kills} workers and "
            f"{state.coordinator_kills} coordinators killed, {state.merger_kills} of these while only merging was "
            f"left, {state.computations} computations, {len(state.stored)} stored, {len(state.problems)} problems, "
            f"{state.seconds:.0f} s in {state.starts} starts, which ended {state.interrupted} more coordinators"
        )

    @property
    def run(self) -> Path:
        return self._wild / "layouts.run"

    @property
    def output(self) -> Path:
        return self._wild / "layouts.h5"

    def rage(self, limit_s: float) -> bool:
        """Return whether the storm is complete, the comparison with a run in calm weather included.

        limit_s: without anything new.
        """
        self._begin()
        if not self.state.is_over:
            self.state.is_over = self._kill_until_complete(limit_s)
            self._save()
        if self.state.is_over and not self.state.problems and not self.state.is_compared:
            self._compare()
        return self.state.is_over and (self.state.is_compared or bool(self.state.problems))

    def _begin(self) -> None:
        """Look at what happened since the state was written, before anything else does."""
        self.state.starts += 1
        if not (self._wild / "campaign.yaml").exists():
            execution = {"workers": 2, "timeout_s": 600, "retries": 10_000}
            orders = {"all": f"wait={TASK_S}"} | dict.fromkeys(self._held, f"wait={TASK_S} until=enough")
            self._make(self._wild, execution, orders)
        if self.state.coordinator is not None:
            _end(*self.state.coordinator)
            self.state.coordinator = None
            self.state.interrupted += 1
            self._look()
            self._look_at_all()
        self._save()

    def _make(self, folder: Path, execution: dict[str, object], orders: dict[object, str]) -> None:
        folder.mkdir(exist_ok=True)
        make_campaign(folder, name="new.yaml", seeds=self.tasks, orders=orders, execution=execution)
        (folder / "own_recipe_of_tests.py").write_text(TIMED_RECIPE)
        (folder / "new.yaml").rename(folder / "campaign.yaml")

    def _start(self, folder: Path) -> subprocess.Popen[bytes]:
        """Start a coordinator that ends with this process, and that no key of the terminal interrupts."""
        before = f"from leeward.processes import exit_with_parent; exit_with_parent({os.getpid()}); "
        environment = {**os.environ, **ENVIRONMENT}
        return start("run", "campaign.yaml", cwd=folder, before=before, env=environment, start_new_session=True)

    def _save(self) -> None:
        self.state.seconds = time.monotonic() - self._began
        self.state.write(self.folder)

    def _kill_until_complete(self, limit_s: float) -> bool:
        """Go on until the campaign is complete, and enough coordinators were killed, the last with only merging left.

        Return whether it is over: with a problem that leaves no way on, too.
        """
        rng = random.Random(f"{self.seed} {self.state.starts}")
        code = None
        news, since = self._news, time.monotonic()
        while code != 0 or self.state.coordinator_kills < self.least_coordinator_kills:
            if self._is_told and time.monotonic() > self._told + TELL_EVERY_S:
                self._told = time.monotonic()
                print(self, flush=True)
            if self._news != news:
                news, since = self._news, time.monotonic()
            if time.monotonic() - since > limit_s:
                self.state.problems.append(f"nothing new for {limit_s:.0f} s")
                return True
            code = self._until_it_ends(rng)
            self._look()
            self._look_at_all()
            if code is None:
                return False
            if code not in (0, -signal.SIGKILL):
                said = (self._wild / "output.txt").read_text()[-500:]
                self.state.problems.append(f"a coordinator that nobody killed ended with code {code}: {said}")
                return True
        return True

    @property
    def _news(self) -> tuple[int, int, int]:
        return self.state.computations, self.state.worker_kills, self.state.coordinator_kills

    def _until_it_ends(self, rng: random.Random) -> int | None:
        """Start one coordinator, and kill it when its share of workers was killed, at some moment soon after.

        Return its exit code, None if it was ended because the storm is to be resumed later.
        """
        process = self._start(self._wild)
        self.state.coordinator = (process.pid, process_start(process.pid) or "")
        self._save()
        share = -(-self.least_worker_kills // max(1, self.least_coordinator_kills))
        enough, delay_s = self.state.worker_kills + rng.randint(1, share), rng.uniform(0.0, 2.0)
        end = float("inf")
        try:
            while process.poll() is None:
                if self._is_due():
                    return self._interrupt(process)
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
            self.state.coordinator = None

    def _interrupt(self, process: subprocess.Popen[bytes]) -> int | None:
        """End the coordinator; if it has ended by itself meanwhile, return its exit code, which is to be judged."""
        kill_group(process)
        if process.returncode == -signal.SIGKILL:
            self.state.interrupted += 1
            return None
        return process.returncode

    def _is_next(self, enough: int) -> bool:
        """Return whether it is time for the coordinator to die: some are left for when all tasks are done."""
        left = self.least_coordinator_kills - self.state.coordinator_kills
        kept = max(1, self.least_coordinator_kills // WHILE_MERGING) - self.state.merger_kills
        if len(self.state.stored) == self.tasks:
            return left > 0
        return left > kept and self.state.worker_kills >= enough

    def _kill_coordinator(self, process: subprocess.Popen[bytes]) -> None:
        self._look()
        if process.poll() is None:
            kill_group(process)
            self.state.coordinator = None
            self.state.coordinator_kills += 1
            self.state.merger_kills += len(self.state.stored) == self.tasks
            self._save()

    def _kill_workers(self, process: subprocess.Popen[bytes], rng: random.Random) -> None:
        """Kill workers that have begun a task since the last look, or not: at any moment of it, and a little after."""
        self._look()
        new, self._new = self._new, []
        if self.state.worker_kills >= self.least_worker_kills:
            (self._wild / "enough").touch()
            self._held = range(0)
        must = self.state.worker_kills < self.least_worker_kills and self.tasks - len(self.state.stored) <= HELD
        chosen = {worker for _, worker in new if must or rng.random() < CHANCE}
        self._new = [(seed, worker) for seed, worker in new if seed in self._held and worker not in chosen]
        if not chosen:
            return
        for worker in chosen & set(workers_of(process)):
            time.sleep(rng.uniform(0.0, 0.6 * TASK_S))
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
                self.state.worker_kills += 1
                self._save()

    def _look(self) -> None:
        """What was stored is not computed again. Done often: only at tasks that were begun and not seen stored."""
        paths = RunPaths(self.output)
        there = {seed: shard for seed in self.state.begun if (shard := paths.shard(Key(0, 0, seed))).exists()}
        new = self._new_calls()
        self.state.hear_calls([(seed, began_ns) for seed, _, began_ns in new])
        self._new += [(seed, worker) for seed, worker, _ in new]
        for seed, shard in there.items():
            with contextlib.suppress(FileNotFoundError):  # which the look at all will tell
                self.state.hear_stored(seed, shard.stat().st_mtime_ns)
        if new or there:
            self._save()

    def _new_calls(self) -> list[tuple[int, int, int]]:
        """Return seed, process and time in ns of each computation that has begun since the last look."""
        path = self._wild / "calls.txt"
        if not path.exists():
            return []
        with path.open("rb") as calls:
            calls.seek(self.state.read)
            new = calls.read()
        new = new[: new.rfind(b"\n") + 1]
        self.state.read += len(new)
        return [(int(seed), int(worker), int(ns)) for seed, worker, ns in map(bytes.split, new.splitlines())]

    def _look_at_all(self) -> None:
        """What was stored stays."""
        known = set(self.state.stored)
        gone = known - set(map(_seed, shards(self.run)))
        self._looked_at_all = time.monotonic()
        if gone:
            self.state.problems += [f"seed {seed} was stored, and is gone" for seed in sorted(gone)]
            self.state.stored -= gone
            self._save()

    def _compare(self) -> None:
        """Compare the output with that of a run in calm weather, and look at what was left behind."""
        if not (self._calm / "campaign.yaml").exists():
            self._make(self._calm, INLINE, {})
        process = self._start(self._calm)
        try:
            while process.poll() is None:
                if self._is_due():
                    return
                time.sleep(0.02)
        finally:
            kill_group(process)
        if process.returncode != 0:
            raise RuntimeError((self._calm / "output.txt").read_text()[-3000:])
        found, undisturbed = digests(self.output), digests(self._calm / "layouts.h5")
        if found != undisturbed:
            different = sorted(key for key in found.keys() | undisturbed if found.get(key) != undisturbed.get(key))
            self.state.problems.append(f"differ from an undisturbed run: {different}")
        records = sorted(path.name for path in (self.run / "failures").glob("*.json"))
        if records:
            self.state.problems.append(f"records of attempts were left behind: {records}")
        self.state.is_compared = True
        self._save()


def _seed(key: str) -> int:
    return int(key.rpartition("_s")[2])


def _end(pid: int, born: str) -> None:
    """End the coordinator of an earlier start, if it is there, and wait until it is gone."""
    if process_start(pid) == born:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: process_start(pid) != born, "the former coordinator ends")


def new_storm(folder: Path, plan: tuple[int, int, int, int], **options: object) -> Storm:
    """Return the storm that this folder holds, or begin one there."""
    package = Path(leeward.__file__).parent
    return Storm(folder, resumed(folder, plan, digest_of(package), commit_of(package)), **options)


class _Deadline:
    """Says when to stop: after some minutes, or after a signal."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60.0 * minutes
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        self._end = 0.0

    def __call__(self) -> bool:
        return time.monotonic() > self._end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tasks", "worker_kills", "coordinator_kills", "seed"):
        parser.add_argument(name, type=int)
    parser.add_argument("--folder", type=Path, help="of the storm and its state (default: a temporary one)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after about so many (default: never)")
    chosen = parser.parse_args()
    plan = (chosen.tasks, chosen.worker_kills, chosen.coordinator_kills, chosen.seed)
    is_due = _Deadline(chosen.minutes)
    with contextlib.ExitStack() as stack:
        folder = chosen.folder or stack.enter_context(quick_folder())
        folder.mkdir(parents=True, exist_ok=True)
        try:
            stack.enter_context(held(folder))
            storm = new_storm(folder, plan, is_due=is_due, is_told=True)
        except StateError as error:
            print(error, file=sys.stderr)
            sys.exit(REFUSED)
        is_complete = storm.rage(limit_s=86_400.0)
        print(storm, *storm.state.problems, sep="\n")
    if storm.state.problems:
        sys.exit(1)
    if not is_complete:
        print("not complete; run it again to resume")
        sys.exit(UNFINISHED)


if __name__ == "__main__":
    main()
