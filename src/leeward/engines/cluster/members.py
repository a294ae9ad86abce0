"""The coordinator's data about Dask workers and the tasks that each holds."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from leeward.engines.engine import Began, Computed, Done, Failed, Outcome, Returned, Stuck, Unstuck
from leeward.store import Key

TOGETHER_S = 1.0  # shorter tasks travel together, up to so many seconds of work
MOST_TOGETHER = 64
MOST_UNITS_A_SECOND = 50.0  # limits the load of scheduler and coordinator
BRIEF_S = 5.0  # some shorter tasks wait at the worker, to hide the latency
CAREFUL = 1.25  # tasks may take longer than the longest so far
END_MARGIN_S = 10.0


@dataclass(eq=False)
class Unit:
    """Tasks that are sent together to one Dask worker.

    keys: in order. left: those without an outcome. begun: worker process of each that has begun. stuck: those whose
    writes the disk rejects. heard: time of the last message.
    """

    name: str
    keys: list[Key]
    left: set[Key]
    deadline: float
    future: Any = None
    heard: float = field(default_factory=lambda: time.monotonic())
    begun: dict[Key, str] = field(default_factory=dict)
    stuck: set[Key] = field(default_factory=set)

    @property
    def in_hand(self) -> set[Key]:
        """Return the tasks that a worker process has. One may be stuck before it has begun, recording its attempt."""
        return self.stuck | self.begun.keys()

    def note(self, outcome: Outcome) -> None:
        key = outcome.key
        if isinstance(outcome, Began):
            self.begun[key] = outcome.worker
        elif isinstance(outcome, Stuck):
            self.stuck.add(key)
        else:
            self.stuck.discard(key)
        if isinstance(outcome, Done | Computed | Failed):
            self.left.discard(key)
            self.begun.pop(key, None)

    def given_up(self, kind: str, message: str, mark: str) -> Iterable[Outcome]:
        """Yield outcomes for the tasks left: those that were begun have failed, the others are returned."""
        for key in self.keys:
            if key in self.stuck:
                yield Unstuck(key)
            if key in self.begun:
                yield Failed(key, kind, message, "", time.monotonic() - self.heard, self.begun[key])
            elif key in self.left:
                yield Returned(key, mark)


@dataclass(eq=False)
class Member:
    """A Dask worker.

    slots: how many tasks it computes at a time; 0 until it is prepared. stores: whether it reaches the run directory.
    ends: end of its job on the monotonic clock, if known. unfit: why it gets no tasks. is_spent: too little time is
    left for another task. is_ending: its job is being ended. stuck_since: since when the disk rejects its writes.
    deadline: for its next message; 0 before the first one.
    """

    address: str
    preparing: Any = None
    host: str = "?"
    name: str = ""
    job: str | None = None
    slots: int = 0
    stores: bool = True
    ends: float | None = None
    joined: float = field(default_factory=lambda: time.monotonic())
    units: dict[str, Unit] = field(default_factory=dict)
    unfit: str | None = None
    is_spent: bool = False
    is_ending: bool = False
    stuck_since: float = inf
    deadline: float = 0.0

    def prepared(self, facts: dict[str, Any]) -> None:
        """Set the facts that its pilot reports."""
        self.host, self.name, self.job = facts["host"], facts["name"], facts["job"]
        self.slots, self.stores = facts["slots"], facts["unreached"] is None
        if facts["seconds_left"] is not None:
            self.ends = time.monotonic() + facts["seconds_left"]

    @property
    def is_ready(self) -> bool:
        return self.slots > 0 and self.unfit is None and not self.is_ending

    @property
    def is_heard(self) -> bool:
        """Return whether it has sent a message about a task."""
        return self.deadline > 0.0

    @property
    def is_stuck(self) -> bool:
        return self.stuck_since < inf

    @property
    def held(self) -> int:
        return sum(len(unit.left) for unit in self.units.values())

    def deadline_of(self, unit: Unit) -> float:
        """Return the deadline of a unit; one that has not begun waits as long as others send messages."""
        return unit.deadline if unit.begun else max(unit.deadline, self.deadline)

    def behind(self) -> list[Unit]:
        """Return the units that cannot have begun, because others use all slots."""
        waiting = [unit for unit in self.units.values() if not unit.begun]
        return waiting[max(0, self.slots - (len(self.units) - len(waiting))) :]

    @property
    def is_past_its_end(self) -> bool:
        """Return whether its job has reached its time limit; SLURM ends a job then or a little later."""
        return self.ends is not None and time.monotonic() > self.ends - END_MARGIN_S

    def has_time_for(self, seconds: float) -> bool:
        """Return whether a task would finish before the job ends; True if any job is too short for it."""
        if self.ends is None or 2 * seconds > self.ends - self.joined:
            return True
        return time.monotonic() + CAREFUL * seconds + END_MARGIN_S < self.ends


class Pace:
    """The duration of tasks, and thus how many travel together."""

    def __init__(self) -> None:
        self._mean_s: float | None = None
        self._longest_s = 0.0
        self.together = 1
        self.depth = 1

    def note(self, seconds: float) -> None:
        self._longest_s = max(self._longest_s, seconds)
        mean = self._mean_s
        self._mean_s = seconds if mean is None else 0.9 * mean + 0.1 * seconds

    def count(self, slots: int) -> None:
        """Compute `together`, tasks in a unit, and `depth`, tasks that a slot may hold, for a number of slots.

        Short tasks travel together; so do all if the cluster is so large that units would come too fast.
        """
        if self._mean_s is None:
            return
        mean = max(self._mean_s, 1e-3)
        wanted = max(int(TOGETHER_S / mean), ceil(slots / mean / MOST_UNITS_A_SECOND))
        self.together = max(1, min(MOST_TOGETHER, wanted))
        self.depth = 2 * self.together if mean < BRIEF_S else self.together

    @property
    def unit_s(self) -> float:
        """Return how long a unit may take, s."""
        is_brief = self._mean_s is not None and self._mean_s < TOGETHER_S
        return self._longest_s + (0.0 if is_brief else (self.together - 1) * (self._mean_s or 0.0))
