"""A fault at every step: each system call of an operation in turn, and after each whether all is as was promised.

`python tests/faults/steps.py [OPERATION…]` tries them all and prints what was done and found.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from interception import BY_PATH, ERRORS, Fault
from operations import OPERATIONS, Operation, copy, run_paths

from leeward.store.directory.audit import read_lines
from leeward.store.directory.lock import read_owner
from leeward.store.directory.records import BadRecordError, read_record
from leeward.store.format.found import FoundFile
from leeward.store.merging.check import check

Choose = Callable[[list[Fault]], Sequence[Fault]]  # those faults of all that are tried


class Server:
    """The process that performs operations in forks of itself."""

    def __enter__(self) -> Self:
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **single, "PYTHONPATH": os.pathsep.join(sys.path)},  # where the tests' own modules are
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def perform(self, operation: str, folder: Path, fault: Fault | None = None, turn: str = "first") -> dict[str, Any]:
        order = {"operation": operation, "folder": str(folder), "turn": turn, "fault": fault and asdict(fault)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server is gone, at {operation}, {fault}")
        return json.loads(line)


@dataclass
class Outcome:
    """Of one operation. injected: faults by mode. possible: how many there are in all. problems: promises not kept."""

    operation: str
    calls: list[tuple[str, str]]
    possible: int
    injected: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        modes = ", ".join(f"{mode} {count}" for mode, count in self.injected.items())
        return (
            f"{self.operation}: {len(self.calls)} calls, {self.injected.total()} of {self.possible} faults injected "
            f"({modes}), {len(self.problems)} problems, {self.seconds:.1f} s"
        )


@dataclass
class _Try:
    """One fault, the folder that it happened in, and how that went. is_done: in the end, perhaps at the second try."""

    fault: Fault
    folder: Path
    answer: dict[str, Any]
    is_done: bool = True


def faults_at(
    calls: Sequence[tuple[str, str]], operation: Operation, moments: Sequence[tuple[int, int]] = ()
) -> list[Fault]:
    """Every fault that makes a difference; moments: of traced calls, as `traced_calls` tells them."""
    seen: Counter[str] = Counter()
    faults = []
    for number, (call, _) in enumerate(calls[: operation.most], 1):
        seen[call] += 1
        child, when = moments[number - 1] if moments else (0, seen[call])
        if number % operation.every == 0:
            faults += [Fault(number, mode, call, when, child) for mode in operation.modes]
    return [fault for fault in faults if fault.is_of_use]


def try_operation(server: Server, name: str, folder: Path, choose: Choose = lambda faults: faults) -> Outcome:
    """Perform it without a fault, then once for each chosen fault, and see what each left behind."""
    began = time.monotonic()
    operation = OPERATIONS[name]
    template = folder / "template"
    template.mkdir(parents=True)
    operation.prepare(template)
    undisturbed = copy(template, folder / "undisturbed")
    answer = server.perform(name, undisturbed)
    if answer["ended"] != "done":
        raise RuntimeError(f"{name} goes wrong without any fault: {answer}")
    operation.expect(undisturbed)
    possible = faults_at(answer["calls"], operation, answer.get("moments", ()))
    outcome = Outcome(name, answer["calls"], len(possible))
    tries = []
    for fault in choose(possible):
        place = copy(template, folder / f"{fault.number}-{fault.mode}")
        tries.append(_Try(fault, place, server.perform(name, place, fault)))
        outcome.injected[fault.mode] += 1
    problems = _Problems(outcome, template, undisturbed, tries)
    problems.look_at_answers(tries)
    for one in tries:
        if one.answer["ended"].startswith("SIG"):
            again = server.perform(name, one.folder, turn="anew")
            if again["ended"] != "done":
                one.is_done = False
                problems.add(one, f"cannot be done again in a new process: {again}")
    problems.look_at_end(tries)
    outcome.seconds = time.monotonic() - began
    return outcome


class _Problems:
    """What is looked at after each fault, many at a time: a child process reads the files of all."""

    def __init__(self, outcome: Outcome, template: Path, undisturbed: Path, tries: Sequence[_Try]) -> None:
        self._outcome = outcome
        self._operation = OPERATIONS[outcome.operation]
        held = _holdings([template, undisturbed, *(one.folder for one in tries)])
        self._before, self._end = held[template], held[undisturbed]
        self._has_output = run_paths(template).output.exists()
        self._torn = _torn_lines(template)
        self._bad = [_digest(template / path) for path in self._before.bad]
        for one in tries:
            self._look_at_files(one, held[one.folder])

    def add(self, one: _Try, text: str) -> None:
        place = self._outcome.calls[one.fault.number - 1][1]
        text = text.replace(f"{one.folder}/", "")
        self._outcome.problems.append(f"{self._outcome.operation}; {one.fault}, {place}: {text}")

    def look_at_answers(self, tries: Iterable[_Try]) -> None:
        """Errors are StorageErrors, leave nothing open, and the same call can be made again."""
        for one in tries:
            answer, fault = one.answer, one.fault
            if answer["ended"] == "done":
                if fault.kills and not self._operation.traced:
                    self.add(one, "it should have been killed, and ended well")
                continue
            if answer["ended"] != "raised":
                if not (fault.kills and answer["ended"] == "SIGKILL"):
                    self.add(one, f"it ended by {answer['ended']}")
                continue
            if self._operation.raises not in answer["kinds"]:
                self.add(one, f"a bare {answer['kinds'][0]}: {answer['message']}")
            if answer["more_handles"] > 0:
                self.add(one, f"{answer['more_handles']} handles stay open")
            again = answer["again"]
            if again["ended"] != "done":
                one.is_done = False
                self.add(one, f"cannot be done again in the same process: {again['kinds'][0]}: {again['message']}")
            elif fault.call == "fsync" and not self._operation.traced:
                self._look_at_sync(one, again["calls"])

    def _look_at_sync(self, one: _Try, calls: list[list[str]]) -> None:
        """A new name whose folder could not be synced is not durable because somebody tries again and finds it there.

        What was moved to quarantine, or removed, may as well come back.
        """
        before = self._outcome.calls[: one.fault.number - 1]
        latest, named = next((call for call in reversed(before) if call[0] in BY_PATH), ("", ""))
        place = self._outcome.calls[one.fault.number - 1][1]
        is_new = latest in ("link", "mkdir") or (latest == "replace" and named.endswith(".tmp"))
        is_at_stake = is_new and (one.folder / place).is_dir()
        if one.fault.mode in ERRORS and is_at_stake and ["fsync", place] not in calls:
            self.add(one, "done again, and the folder was not synced")

    def look_at_end(self, tries: Sequence[_Try]) -> None:
        """After it was done again: as if nothing had happened."""
        held = _holdings([one.folder for one in tries])
        for one in tries:
            now = held[one.folder]
            self._look_at_files(one, now)
            if not one.is_done:  # which is a problem already
                continue
            if now.results != self._end.results:
                self.add(one, f"ends with other results: {sorted(now.results ^ self._end.results)}")
            try:
                self._operation.expect(one.folder)
                if not one.fault.kills:
                    self._operation.retried(one.folder)
            except AssertionError as error:
                self.add(one, f"ends in another way: {error!r:.200}")

    def _look_at_files(self, one: _Try, now: "_Holdings") -> None:
        """What has a final name is whole, and nothing is lost that was there before."""
        for path in sorted(now.bad.keys() - self._before.bad.keys()):
            self.add(one, f"{path}: {now.bad[path]}")
        lost = self._before.results - now.results
        if lost:
            self.add(one, f"lost: {sorted(key for key, _ in lost)}")
        if self._has_output and self._operation.keeps_output and not run_paths(one.folder).output.exists():
            self.add(one, "there is no output any more")
        for text in (*self._bad_files_lost(one.folder), *_small_files(one.folder)):
            self.add(one, text)
        if _torn_lines(one.folder) > self._torn + 1:
            self.add(one, f"{_torn_lines(one.folder)} torn lines in the audit log")

    def _bad_files_lost(self, folder: Path) -> list[str]:
        if not self._bad:
            return []
        there = {_digest(path) for path in folder.rglob("*") if path.is_file()}
        return ["a bad file is gone" for digest in self._bad if digest not in there]


@dataclass
class _Holdings:
    """results: key and digest of every valid one in a folder. bad: files that are not, with the reason."""

    results: set[tuple[str, str]] = field(default_factory=set)
    bad: dict[str, str] = field(default_factory=dict)


def _holdings(folders: Sequence[Path]) -> dict[Path, _Holdings]:
    """Of all files with a final name; what is in quarantine is not asked to be whole."""
    held = {folder: _Holdings() for folder in folders}
    homes = {}
    for folder in folders:
        for path in folder.rglob("*.h5"):
            if "quarantine" not in path.parts:
                homes[path] = folder

    def hear(found: Any) -> None:
        home = homes[found.path]
        if not found.is_valid:
            held[home].bad[str(found.path.relative_to(home))] = f"{found.verdict} ({found.reason})"
        elif not isinstance(found, FoundFile):
            held[home].results.add((found.name.rpartition("/")[2], found.digest))

    if homes:
        check(homes, on_found=hear)
    return held


def _small_files(folder: Path) -> list[str]:
    """What else has a final name."""
    paths = run_paths(folder)
    problems = []
    for path in paths.failures.glob("*.json"):
        try:
            read_record(path)
        except BadRecordError as error:
            problems.append(str(error))
    for path in paths.quarantine.glob("*.reason.json"):
        try:
            json.loads(path.read_bytes())
        except ValueError as error:
            problems.append(f"{path.name}: {error}")
    owner, _ = read_owner(paths.lock)
    if owner is not None and not owner.pid:
        problems.append(f"the lock cannot be read: {paths.lock.read_bytes()!r:.80}")
    return problems


def _torn_lines(folder: Path) -> int:
    """Of the audit log."""
    path = run_paths(folder).audit
    return sum(bool(line) for line in path.read_bytes().split(b"\n")) - len(read_lines(path)) if path.exists() else 0


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextlib.contextmanager
def quick_folder() -> Iterator[Path]:
    """In memory where that is possible: thousands of real fsyncs take long, and show nothing here."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="leeward-faults-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def main() -> None:
    """All faults of these operations, or of all."""
    with quick_folder() as folder, Server() as server:
        for number, name in enumerate(sys.argv[1:] or OPERATIONS):
            outcome = try_operation(server, name, folder / str(number))
            print(outcome, flush=True)
            for problem in outcome.problems:
                print("   ", problem, flush=True)


if __name__ == "__main__":
    main()
