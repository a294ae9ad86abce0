"""Which tasks go to which Dask worker, and how many at a time."""

import itertools
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from math import inf

from leeward.engines.cluster.members import MOST_TOGETHER, Member, Pace
from leeward.store import Key

MOST_AHEAD = 50_000  # tasks that have left the coordinator
NEAREST = 4 * MOST_TOGETHER  # waiting tasks, of those that may go, among which those for a unit are looked for


class Handing:
    """Tasks that wait to be handed out.

    retries: how often a task whose worker died is tried again. group: returns what tasks have in common that are best
    computed by one worker.

    Tasks that were in hand when a worker died are suspects: one of them may have done it, and would do it again.
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
        """It has a result."""
        self._deaths.pop(key, None)

    def room(self, members: Collection[Member]) -> int:
        """How many tasks may wait: no more than are wanted at once."""
        self.pace.count(sum(member.slots for member in members if member.is_ready))
        free = sum(self._room_of(member) for member in members)
        return min(free, MOST_AHEAD - sum(member.held for member in members))

    def _room_of(self, member: Member) -> int:
        """None until there is room for a whole unit: otherwise units would become ever smaller."""
        if not member.is_ready or member.is_spent or member.is_stuck:
            return 0
        free = member.slots * self.pace.depth - member.held
        return free if free >= self.pace.together else 0

    def units(self, members: Iterable[Member]) -> Iterator[tuple[Member, list[Key]]]:
        """Tasks that go together, and where; those who hold least come first. They are to be sent at once."""
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
        """How many of those that wait are suspects: they are not to keep others from what is free."""
        return sum(key in self._deaths for key in self.waiting) if self._deaths else 0

    def _pick(self, member: Member, most: int) -> list[Key]:
        """Return tasks for one unit, of the same group where there are any; a suspect has one for itself."""
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
        """Of a suspect that it may get: suspects meet few of their kind, and none any more on their last try."""
        beside = [self._deaths[key] for unit in member.units.values() for key in unit.left if key in self._deaths]
        if not beside:
            return inf
        is_one_more = len(beside) < max(1, member.slots // 4) and max(beside) < self._retries
        return self._retries - 1 if is_one_more else 0
