"""The Dask workers of a cluster as the coordinator knows them, and what each has in hand."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from leeward.engines.engine import Began, Computed, Done, Failed, Outcome, Returned, Stuck, Unstuck
from leeward.store import Key

TOGETHER_S = 1.0  # tasks that are shorter travel together, up to so many seconds of work
MOST_TOGETHER = 64
MOST_UNITS_A_SECOND = 50.0  # that a scheduler and we are to bear
BRIEF_S = 5.0  # of tasks that are shorter, some wait at the worker: the way there would be felt
CAREFUL = 1.25  # tasks may take longer than the longest so far
END_MARGIN_S = 10.0


@dataclass(eq=False)
class Unit:
    """Tasks on their way to one Dask worker.

    keys: in their order. left: those without an outcome. begun: of these, by which worker process. stuck: of these, for
    want of a disk. heard: when something was, last.
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
        """A disk may take nothing before a task has begun: its attempt is recorded first."""
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
        """What becomes of tasks without an outcome: those that were begun have failed, the others go back."""
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
    ends: when its job does, on our clock, if known. unfit: why it gets no tasks. is_spent: too little time is left
    for another one. is_ending: its job is being ended. stuck_since: when a disk began to take nothing from it.
    deadline: by when more is to be heard of it, if anything was.
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
        """What its pilot says of itself."""
        self.host, self.name, self.job = facts["host"], facts["name"], facts["job"]
        self.slots, self.stores = facts["slots"], facts["unreached"] is None
        if facts["seconds_left"] is not None:
            self.ends = time.monotonic() + facts["seconds_left"]

    @property
    def is_ready(self) -> bool:
        return self.slots > 0 and self.unfit is None and not self.is_ending

    @property
    def is_heard(self) -> bool:
        """Whether anything was said of its tasks."""
        return self.deadline > 0.0

    @property
    def is_stuck(self) -> bool:
        return self.stuck_since < inf

    @property
    def held(self) -> int:
        return sum(len(unit.left) for unit in self.units.values())

    def deadline_of(self, unit: Unit) -> float:
        """One that has not begun waits behind others, for as long as these are heard of."""
        return unit.deadline if unit.begun else max(unit.deadline, self.deadline)

    def behind(self) -> list[Unit]:
        """Units that cannot have begun, as others have all its slots."""
        waiting = [unit for unit in self.units.values() if not unit.begun]
        return waiting[max(0, self.slots - (len(self.units) - len(waiting))) :]

    @property
    def is_past_its_end(self) -> bool:
        """SLURM ends a job at its time, or somewhat later."""
        return self.ends is not None and time.monotonic() > self.ends - END_MARGIN_S

    def has_time_for(self, seconds: float) -> bool:
        """Whether a task would be through before the job ends. Tasks for which every job is too short are tried."""
        if self.ends is None or 2 * seconds > self.ends - self.joined:
            return True
        return time.monotonic() + CAREFUL * seconds + END_MARGIN_S < self.ends


class Pace:
    """How long tasks take, and thus how many travel together."""

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
        """Anew, for a cluster of this size. together: tasks in a unit. depth: tasks that a slot may hold.

        Brief tasks travel together, and so do all where a cluster is so large that units would come too fast.
        """
        if self._mean_s is None:
            return
        mean = max(self._mean_s, 1e-3)
        wanted = max(int(TOGETHER_S / mean), ceil(slots / mean / MOST_UNITS_A_SECOND))
        self.together = max(1, min(MOST_TOGETHER, wanted))
        self.depth = 2 * self.together if mean < BRIEF_S else self.together

    @property
    def unit_s(self) -> float:
        """How long a unit may take."""
        is_brief = self._mean_s is not None and self._mean_s < TOGETHER_S
        return self._longest_s + (0.0 if is_brief else (self.together - 1) * (self._mean_s or 0.0))
