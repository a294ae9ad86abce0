"""The coordinator's data: Dask workers, the tasks that each holds, and the queue of tasks for them."""

import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from leeward.engines.engine import Began, Done, Failed, Outcome, Stuck
from leeward.store import Key

TOGETHER_S = 1.0  # shorter tasks share a unit, which takes about this long
MOST_TOGETHER = 64
MOST_UNITS_A_SECOND = 50.0  # limits the load of scheduler and coordinator
BRIEF_S = 5.0  # shorter tasks are sent ahead to the worker, to hide the latency
SAFETY_FACTOR = 1.25  # a task may take longer than the longest one so far
END_MARGIN_S = 10.0
MOST_AHEAD = 50_000  # most tasks that workers hold without an outcome
NEAREST = 4 * MOST_TOGETHER  # a unit is chosen from this many waiting tasks


@dataclass(eq=False)
class Unit:
    """Tasks that are sent together to one Dask worker, the member.

    left: tasks without an outcome, in order. begun: worker process of each task that has begun. stuck: tasks whose
    writes the disk rejects. heard: time of the last message.
    """

    member: "Member"
    left: list[Key]
    future: Any = None
    heard: float = field(default_factory=lambda: time.monotonic())
    begun: dict[Key, str] = field(default_factory=dict)
    stuck: set[Key] = field(default_factory=set)

    @property
    def in_hand(self) -> set[Key]:
        """Return the tasks of worker processes. A task can be stuck before it begins, while its attempt is recorded."""
        return self.stuck | self.begun.keys()

    def note(self, outcome: Outcome) -> None:
        """Update the state of a task."""
        key = outcome.key
        if isinstance(outcome, Began):
            self.begun[key] = outcome.worker
        elif isinstance(outcome, Stuck):
            self.stuck.add(key)
        else:
            self.stuck.discard(key)
        if isinstance(outcome, Done | Failed):
            self.left.remove(key)
            self.begun.pop(key, None)


@dataclass(eq=False)
class Member:
    """A Dask worker.

    slots: how many tasks it computes at a time; 0 until it is prepared. stores: it can reach the run directory.
    ends: end of its job on the monotonic clock, if known. unfit: why it gets no tasks. is_spent: too little time is
    left for another task. is_ending: its job is being ended. stuck_since: time of the first rejected write, if the
    disk still rejects them. heard: time of its last message about a task; 0 before the first one.
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
    units: list[Unit] = field(default_factory=list)
    unfit: str | None = None
    is_spent: bool = False
    is_ending: bool = False
    stuck_since: float = inf
    heard: float = 0.0

    def prepared(self, facts: dict[str, Any]) -> None:
        """Store the facts that its pilot reports."""
        self.host, self.name, self.job = facts["host"], facts["name"], facts["job"]
        self.slots, self.stores = facts["slots"], facts["unreached"] is None
        if facts["seconds_left"] is not None:
            self.ends = time.monotonic() + facts["seconds_left"]

    @property
    def is_ready(self) -> bool:
        return self.slots > 0 and self.unfit is None and not self.is_ending

    @property
    def is_stuck(self) -> bool:
        return self.stuck_since < inf

    @property
    def held(self) -> int:
        return sum(len(unit.left) for unit in self.units)

    def behind(self) -> list[Unit]:
        """Return the units that cannot have begun because others use all slots."""
        waiting = [unit for unit in self.units if not unit.begun]
        return waiting[max(0, self.slots - (len(self.units) - len(waiting))) :]

    @property
    def is_past_its_end(self) -> bool:
        """Return whether its job has reached its time limit. SLURM ends a job then or a little later."""
        return self.ends is not None and time.monotonic() > self.ends - END_MARGIN_S

    def has_time_for(self, seconds: float) -> bool:
        """Return whether a task would finish before the job ends; also True if every job is too short for it."""
        if self.ends is None or 2 * seconds > self.ends - self.joined:
            return True
        return time.monotonic() + SAFETY_FACTOR * seconds + END_MARGIN_S < self.ends


class Pace:
    """The duration of tasks, and how many of them share a unit."""

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
        """Compute `together`, the tasks in a unit, and `depth`, the tasks that a slot may hold.

        Short tasks share a unit. Longer tasks share one too if the cluster has so many slots that more
        than MOST_UNITS_A_SECOND would be sent.
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


class TaskQueue:
    """The tasks that wait for a Dask worker.

    retries: how often to retry a task whose worker died. group: returns the group of a task; tasks of one group are
    best computed by one worker.

    Tasks that were running when a worker died are suspects: one of them may have killed it and may kill another one.
    """

    def __init__(self, retries: int, group: Callable[[Key], Hashable]) -> None:
        self.waiting: deque[Key] = deque()
        self.pace = Pace()
        self._retries = retries
        self._group = group
        self._deaths: Counter[Key] = Counter()

    def suspect(self, keys: Iterable[Key]) -> None:
        self._deaths.update(keys)

    def clear(self, key: Key) -> None:
        """Remove a task from the suspects, because it has a result."""
        self._deaths.pop(key, None)

    def room(self, members: Collection[Member]) -> int:
        """Return how many tasks the members can accept now."""
        self.pace.count(sum(member.slots for member in members if member.is_ready))
        free = sum(self._room_of(member) for member in members)
        return min(free, MOST_AHEAD - sum(member.held for member in members))

    def _room_of(self, member: Member) -> int:
        """Return how many tasks a member can accept; 0 below a whole unit, because units would become ever smaller."""
        if not member.is_ready or member.is_spent or member.is_stuck:
            return 0
        free = member.slots * self.pace.depth - member.held
        return free if free >= self.pace.together else 0

    def units(self, members: Iterable[Member]) -> Iterator[tuple[Member, list[Key]]]:
        """Yield members and the tasks to send to each at once, as one unit; the least loaded members come first."""
        free = sorted(
            (member for member in members if self._room_of(member)), key=lambda member: member.held / member.slots
        )
        idle = sum(max(0, member.slots - member.held) for member in free)
        most = min(self.pace.together, -(-len(self.waiting) // idle)) if idle else self.pace.together
        for member in free:
            while self.waiting and self._room_of(member):
                keys = self._pick(member, min(most, self._room_of(member)))
                if not keys:
                    break
                yield member, keys

    @property
    def held_back(self) -> int:
        """Return how many waiting tasks are suspects. They must not block others."""
        return sum(key in self._deaths for key in self.waiting) if self._deaths else 0

    def _pick(self, member: Member, most: int) -> list[Key]:
        """Return tasks for one unit, of the same group if possible; a suspect gets a unit of its own."""
        deaths, most_deaths = self._deaths, self._most_deaths(member)
        may_go = (key for key in self.waiting if key not in deaths or deaths[key] <= most_deaths)
        allowed = list(itertools.islice(may_go, NEAREST))
        if not allowed:
            return []
        first = allowed[0]
        if first in self._deaths:
            chosen = [first]
        else:
            others = [key for key in allowed if key not in self._deaths]
            group = self._group(first)
            chosen = sorted(others, key=lambda key: self._group(key) != group)[:most]
        for key in chosen:
            self.waiting.remove(key)
        return chosen

    def _most_deaths(self, member: Member) -> float:
        """Return how many deaths a suspect may have to be sent to a member, so that few suspects share one.

        A suspect on its last attempt shares a member with no other suspect.
        """
        beside = [self._deaths[key] for unit in member.units for key in unit.left if key in self._deaths]
        if not beside:
            return inf
        is_one_more = len(beside) < max(1, member.slots // 4) and max(beside) < self._retries
        return self._retries - 1 if is_one_more else 0
