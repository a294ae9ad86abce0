"""Power cuts: after every call that an operation makes, every state that the disk may hold then.

`python tests/faults/power.py [OPERATION…] [--seed S] [--at CALL] [--keep FOLDER]` tries them all and prints what was
done and found; with --at only those after that call, and with --keep a copy of each state that is not as promised.

After each call (`power_disk` says what a disk may lose): no file with a final name is damaged, nothing is lost that
was there, and what was told as done is there. After the last call all that was done is there. In a choice of the states
the operation is performed again, and ends as if nothing had happened. And in a choice of the calls the process is
killed, without a power cut; the operation is performed again, and then the power is cut: what the first process left
unsynced is still unsynced.
"""

import argparse
import contextlib
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from operations import OPERATIONS, Operation, copy
from parts import share
from power_checks import ALL, Judge, Promised, Verdicts, final_part, index_problems
from power_disk import Call, Disk, State
from power_record import OperationError, Recorder, is_as_in
from steps import Server, quick_folder

OWN = "calls.txt"  # what the recipe of the tests writes
_MOST_AFTER_KILL = 24  # states after a call
# Once each that does the same without a fault; those that are under strace themselves cannot be recorded.
_DIFFERENT = {(one.prepare, one.make): name for name, one in reversed(OPERATIONS.items()) if not one.traced}
NAMES = [name for name in OPERATIONS if name in _DIFFERENT.values()]

# Other operations than the killed one itself that may come after a kill.
SEQUELS = {
    "merge, new output": ("clean --merged",),
    "merge, over an output": ("clean --merged",),
    "store, new folder": ("merge, new output",),
    "pack": ("merge, with packs",),
}


@dataclass(frozen=True)
class Plan:
    """How much is tried. most: states after a call. again: states in which it is done again. kills: calls at which it
    is killed. slow_again, slow_kills: of operations that start processes. part, parts: only this share of it. at: only
    after this call, if not 0. keep: where states with problems are kept.
    """

    seed: int = 1
    most: int = 150
    again: int = 60
    kills: int = 60
    slow_again: int = 20
    slow_kills: int = 8
    part: int = 1
    parts: int = 1
    at: int = 0
    keep: Path | None = None


@dataclass
class Outcome:
    """Of one operation. points: calls after which the power was cut. states: that were looked at. again: of these, in
    how many it was done again. kills: before which it was killed. found: problems, each with all states that show it.
    """

    operation: str
    calls: int = 0
    points: int = 0
    states: int = 0
    again: int = 0
    kills: int = 0
    seconds: float = 0.0
    found: dict[str, list[str]] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        return [f"{self.operation}; {text}: {where[0]} ({len(where)} states)" for text, where in self.found.items()]

    def __str__(self) -> str:
        return (
            f"{self.operation}: {self.calls} calls, power cut at {self.points} points, {self.states} states, done "
            f"again in {self.again}, {self.kills} kills before, {len(self.found)} problems, {self.seconds:.1f} s"
        )


@dataclass
class Tools:
    """What is costly to start, and serves for all operations."""

    recorder: Recorder
    server: Server
    verdicts: Verdicts
    folder: Path
    count: int = 0

    def new_folder(self) -> Path:
        self.count += 1
        return self.folder / str(self.count)


@contextlib.contextmanager
def tools() -> Iterator[Tools]:
    with quick_folder() as folder, Recorder() as recorder, Server() as server:
        yield Tools(recorder, server, Verdicts(folder / "verdicts"), folder)


class _Trial:
    """One operation: recorded once, and then the power is cut in all sorts of ways."""

    def __init__(self, tools: Tools, name: str, plan: Plan) -> None:
        self._tools, self._name, self._plan = tools, name, plan
        self._is_slow = ALL[name].sample < Operation.sample
        self.outcome = Outcome(name)
        self._template = tools.new_folder()
        self._template.mkdir()
        ALL[name].prepare(self._template)
        if (self._template / "campaign.yaml").exists():
            (self._template / OWN).touch()
        self._undisturbed = copy(self._template, tools.new_folder())
        self._calls = self._record(name, self._undisturbed)
        self._points = self._changing([], self._calls, self._undisturbed)
        self.outcome.calls = len(self._points)
        end = Disk(self._undisturbed).live()
        tools.verdicts.learn([end])
        self._end_results = tools.verdicts.results(end)

    def _record(self, name: str, folder: Path, turn: str = "first") -> list[Call]:
        """With the record of the tests themselves synced: it is to tell what was computed, whatever is lost."""
        calls: list[Call] = []
        for call in self._tools.recorder.record(name, folder, turn):
            calls += [call, Call("sync", OWN)] if call.name == "write" and call.path == OWN else [call]
        return calls

    def _disk(self, calls: Sequence[Call]) -> Disk:
        disk = Disk(self._template)
        for call in calls:
            disk.apply(call)
        return disk

    def _changing(self, before: Sequence[Call], calls: Sequence[Call], folder: Path) -> list[int]:
        """How many calls were made after each that counts. That the model knows them all is proved by what there is."""
        disk = self._disk(before)
        points = [number for number, call in enumerate(calls, 1) if disk.apply(call)]
        if not is_as_in(disk, folder):
            raise RuntimeError(f"{self._name}: the recorded calls do not explain what is in the folder now")
        return points

    def cut_power(self) -> list[State]:
        """Once after each call."""
        return self._look([], self._calls, self._name)

    def _look(self, before: Sequence[Call], calls: Sequence[Call], name: str, killed: str = "") -> list[State]:
        """At all states after each of the calls, which come after those before; all that are different."""
        tools, plan = self._tools, self._plan
        disk = Disk(self._template)
        start, end = disk.live(), self._disk([*before, *calls]).live()
        judge = Judge(tools.verdicts, tools.new_folder(), start, end, name)
        cuts: list[_Cut] = []
        for number, call in enumerate([*before, *calls]):
            is_change = disk.apply(call)
            live = disk.live()
            judge.allow(live)
            if is_change and number >= len(before) and self._is_in_part(disk.count, killed):
                rng = random.Random(f"{plan.seed} {self._name} {name} {len(before)} {disk.count}")
                states = list(disk.states(rng, plan.most if not killed else min(plan.most, _MOST_AFTER_KILL)))
                cuts.append(_Cut(disk.count, call, Promised.by(live, start), live, states))
        if not killed:
            disk.take_times(self._undisturbed)
        if plan.at:
            cuts = [cut for cut in cuts if cut.at == plan.at]
        tools.verdicts.learn(state for cut in cuts for state in (cut.live, *cut.states))
        self.outcome.points += len(cuts)
        for cut in cuts:
            self.outcome.states += len(cut.states)
            for state in cut.states:
                problems = list(judge.problems(state, cut.promised))
                if cut.at == disk.count:
                    problems += judge.end_problems(state, cut.live, self._name if killed else "")
                self._add(problems, state, f"{killed}{cut}, {state}", killed)
        return list({state.signature: state for cut in cuts for state in cut.states}.values())

    def _is_in_part(self, count: int, killed: str) -> bool:
        """Return whether this call is in the share that is tried; after a kill, which is in it, all of them are."""
        return bool(killed) or count % self._plan.parts == self._plan.part - 1

    def _add(self, problems: Sequence[str], state: State, where: str, killed: str = "") -> None:
        for text in problems:
            if killed:
                text = f"after a kill: {text}"
            found = self.outcome.found.setdefault(text, [])
            found.append(where)
            if self._plan.keep is not None and len(found) == 1:
                state.rebuild(self._plan.keep / f"{self._name} {len(self.outcome.found)}")

    def do_again(self, states: Sequence[State]) -> None:
        """In as many as planned, those first that differ in what has a final name."""
        tools, name = self._tools, self._name
        rng = random.Random(f"{self._plan.seed} {name} again")
        mixed = rng.sample(states, len(states))
        distinct = {final_part(state): state for state in mixed}
        others = {state.signature: state for state in mixed if distinct[final_part(state)] is not state}
        count = self._plan.slow_again if self._is_slow else self._plan.again
        ends: list[tuple[State, State]] = []
        for state in [*distinct.values(), *others.values()][: -(-count // self._plan.parts)]:
            folder = state.rebuild(tools.new_folder())
            problems = list(index_problems(folder, state, tools.verdicts))
            answer = tools.server.perform(name, folder, turn="anew")
            if answer["ended"] == "done":
                problems += _unexpected(name, folder)
                ends.append((state, Disk(folder).live()))
            else:
                problems.append(f"cannot be done again: {answer.get('message', answer['ended'])}")
            self._add([text.replace(f"{folder}/", "") for text in problems], state, f"after call {state.at}, {state}")
            self.outcome.again += 1
            shutil.rmtree(folder)
        tools.verdicts.learn(end for _, end in ends)
        for state, end in ends:
            if other := tools.verdicts.results(end) ^ self._end_results:
                text = f"done again, it ends with other results: {sorted(other)}"
                self._add([text], state, f"after call {state.at}, {state}")

    def kill_before(self) -> None:
        """A kill, which loses nothing that was written, then the operation or a sequel, then a power cut.

        First after calls that change names: what is written is synced, or never gets a final name.
        """
        rng = random.Random(f"{self._plan.seed} {self._name} kills")
        points = rng.sample(self._points[:-1], len(self._points) - 1)
        points.sort(key=lambda made: self._calls[made - 1].name in ("write", "truncate", "sync", "open"))
        for then in (self._name, *SEQUELS.get(self._name, ())):
            is_slow = self._is_slow or then != self._name
            count = self._plan.slow_kills if is_slow else self._plan.kills
            for made in share(points[:count], self._plan.part, self._plan.parts):
                self._kill(made, then)

    def _kill(self, made: int, then: str) -> None:
        disk = self._disk(self._calls[:made])
        folder = disk.live().rebuild(self._tools.new_folder())
        killed = f"killed after call {disk.count}, {self._calls[made - 1]}; then {then}; "
        self.outcome.kills += 1
        try:
            calls = self._record(then, folder, "anew")
        except OperationError as error:
            self._add([f"{error}".replace(f"{folder}/", "")], disk.live(), killed, killed)
            return
        if self._changing(self._calls[:made], calls, folder):
            self._look(self._calls[:made], calls, then, killed)


def _unexpected(name: str, folder: Path) -> list[str]:
    if name == "run --new":  # each new start puts the one before aside, and only one is expected there
        return []
    try:
        OPERATIONS[name].expect(folder)
    except AssertionError as error:
        return [f"done again, it ends in another way: {error!r:.200}"]
    return []


@dataclass(frozen=True)
class _Cut:
    """Of the power, after this call; and what the disk may hold then."""

    at: int
    call: Call
    promised: Promised
    live: State
    states: list[State]

    def __str__(self) -> str:
        return f"after call {self.at}, {self.call}"


def try_power(tools: Tools, name: str, plan: Plan) -> Outcome:
    began = time.monotonic()
    trial = _Trial(tools, name, plan)
    states = trial.cut_power()
    if not plan.at and name in OPERATIONS:
        trial.do_again(states)
        trial.kill_before()
    trial.outcome.seconds = time.monotonic() - began
    return trial.outcome


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("operations", nargs="*", metavar="OPERATION")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at", type=int, default=0, metavar="CALL")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    plan = Plan(options.seed, at=options.at, keep=options.keep)
    print(f"seed {options.seed}")
    with tools() as all_tools:
        for name in options.operations or NAMES:
            outcome = try_power(all_tools, name, plan)
            print(outcome, flush=True)
            for problem in outcome.problems:
                print("   ", problem, flush=True)


if __name__ == "__main__":
    main()
