"""What a storm of kills remembers between two starts of its script, in one file that is always whole."""

import dataclasses
import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

NAME = "state.json"


class StateError(Exception):
    """This storm cannot go on here."""


@dataclass
class State:
    """plan: tasks, workers and coordinators to kill, and the seed. source: the digest of the package. starts: of the
    script. merger_kills: coordinators that were killed while only merging was left. interrupted: coordinators that
    ended because the script itself was ended. computations: calls of the recipe, which `read` bytes of calls.txt tell.
    begun: the latest call, in ns, of each seed that was begun and not seen stored. stored: seeds that were seen stored.
    coordinator: the process that runs now, and when it was started. is_over: nothing is left but to compare.
    """

    plan: tuple[int, int, int, int]
    source: str
    commit: str
    starts: int = 0
    seconds: float = 0.0
    worker_kills: int = 0
    coordinator_kills: int = 0
    merger_kills: int = 0
    interrupted: int = 0
    computations: int = 0
    read: int = 0
    begun: dict[int, int] = field(default_factory=dict)
    stored: set[int] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    coordinator: tuple[int, str] | None = None
    is_over: bool = False
    is_compared: bool = False

    def hear_calls(self, calls: Sequence[tuple[int, int]]) -> None:
        """Count computations that have begun since the last look, as seed and time in ns."""
        for seed, began_ns in calls:
            if seed in self.stored:
                self.problems.append(f"seed {seed} was computed again after it had been stored")
            else:
                self.begun[seed] = max(began_ns, self.begun.get(seed, 0))
            self.computations += 1

    def hear_stored(self, seed: int, stored_ns: int) -> None:
        """Note that the result of a seed is there, written at this time.

        A computation that began later tells even then that nobody looked in between.
        """
        if self.begun.pop(seed) > stored_ns:
            self.problems.append(f"seed {seed} was computed again after it had been stored")
        self.stored.add(seed)

    def write(self, folder: Path) -> None:
        """Replace the file: whoever ends this process, the old state or the new one is there."""
        facts = dataclasses.asdict(self) | {"stored": sorted(self.stored)}
        new = folder / f"{NAME}.new"
        new.write_text(json.dumps(facts))
        os.replace(new, folder / NAME)


def read(path: Path) -> State:
    """Return the state that was written last."""
    facts = json.loads(path.read_text())
    facts["plan"], facts["stored"] = tuple(facts["plan"]), set(facts["stored"])
    facts["begun"] = {int(seed): began_ns for seed, began_ns in facts["begun"].items()}
    facts["coordinator"] = tuple(facts["coordinator"]) if facts["coordinator"] else None
    return State(**facts)


def resumed(folder: Path, plan: tuple[int, int, int, int], source: str, commit: str) -> State:
    """Return the state of the storm in this folder, or a new one. Raise StateError if it is another storm."""
    path = folder / NAME
    if not path.exists():
        return State(plan, source, commit)
    state = read(path)
    if state.plan != plan:
        raise StateError(f"{path}: this storm began with {state.plan}, not {plan}. Take another folder.")
    if state.source != source:
        raise StateError(
            f"{path}: this storm began with another source, of commit {state.commit}. "
            f"Go on with that one, or take another folder."
        )
    return state


def held(folder: Path) -> IO[bytes]:
    """Return a file that is locked as long as it is open, or raise StateError: one run at a time in a folder."""
    lock = (folder / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise StateError(f"{folder}: another run goes on here. Wait for it, or take another folder.") from None
    return lock
