"""Units of tasks: their assignment to Dask workers, and their outcomes.

A unit is pinned to one Dask worker, and given up if that is lost.
"""

import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from math import inf
from typing import Any

from leeward.engines.cluster import pilot
from leeward.engines.cluster.crew import Crew, reason_of
from leeward.engines.cluster.links import Wire
from leeward.engines.cluster.members import MOST_TOGETHER, Member, Pace, Unit
from leeward.engines.engine import Outcome, Returned, Unstuck
from leeward.engines.local import START_LIMIT_S, STORE_LIMIT_S
from leeward.store import Key

MOST_AHEAD = 50_000  # tasks at the workers
NEAREST = 4 * MOST_TOGETHER  # waiting tasks to choose those of a unit from
STALLED_S = 10.0  # without a message about a unit


class Handing:
    """The queue of tasks to hand out.

    retries: how often to retry a task whose worker died. group: returns the group of a task; tasks of one group are
    best computed by one worker.

    Tasks that were running when a worker died are suspects: one of them may have killed it, and may do so again.
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
        """Clear a task of suspicion, because it has a result."""
        self._deaths.pop(key, None)

    def room(self, members: Collection[Member]) -> int:
        """Return how many tasks the members can accept now."""
        self.pace.count(sum(member.slots for member in members if member.is_ready))
        free = sum(self._room_of(member) for member in members)
        return min(free, MOST_AHEAD - sum(member.held for member in members))

    def _room_of(self, member: Member) -> int:
        """Return how many tasks a member can accept; 0 below a whole unit, as units would become ever smaller."""
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
        """Return how many waiting tasks are suspects: they must not block others."""
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
        """Return the most deaths of a suspect that a member may get, so that few suspects share a member.

        On its last attempt a suspect shares it with none.
        """
        beside = [self._deaths[key] for unit in member.units.values() for key in unit.left if key in self._deaths]
        if not beside:
            return inf
        is_one_more = len(beside) < max(1, member.slots // 4) and max(beside) < self._retries
        return self._retries - 1 if is_one_more else 0


class Units:
    """Units at the workers. mark: in the names of worker processes. timeout_s: of a task. is_cut_off: Dask has
    cancelled all.
    """

    def __init__(self, wire: Wire, crew: Crew, handing: Handing, mark: str, timeout_s: float) -> None:
        self.is_cut_off = False
        self._wire = wire
        self._crew = crew
        self._handing = handing
        self._mark = mark
        self._timeout_s = timeout_s
        self._members: dict[str, Member] = {}  # of each unit, by its name

    def send(self, member: Member, keys: list[Key]) -> None:
        name = self._wire.new_name()
        unit = Unit(name, keys, set(keys), self._deadline())
        member.units[name] = unit
        self._members[name] = member
        names = [str(key) for key in keys]
        unit.future = self._wire.submit(member.address, name, pilot.work_off, self._wire.token, name, names)
        self._wire.announce(unit.future, "ended", name)

    def heard(self, name: str) -> tuple[Member, Unit] | None:
        """Return the member and the unit of a message, with new deadlines; None if the unit was given up."""
        member = self._members.get(name)
        if member is None:
            return None
        unit = member.units[name]
        unit.deadline = member.deadline = self._deadline()
        unit.heard = time.monotonic()
        return member, unit

    def ended(self, name: str, future: Any) -> list[Outcome]:
        """Return outcomes for the tasks that an ended unit has left; all its messages have arrived."""
        if name not in self._members:
            return []
        if future.status == "cancelled":  # Dask cancels all when a connection breaks, even briefly
            self.is_cut_off = True
        if future.status not in ("finished", "error"):  # lost with its worker, which is another message
            return []
        member = self._members[name]
        unit = member.units[name]
        if not unit.left:
            self.drop(member, unit)
            return []
        reason = reason_of(future)
        if future.status == "error":
            self._crew.refuse(member, reason)
        kind, message = fate(member, f"the Dask worker {member.name} on {member.host} gave up", reason)
        return self._give_up(member, unit, kind, message, all_said=True)

    def lost(self, member: Member) -> list[Outcome]:
        """Give up all units of a Dask worker that is gone."""
        why = "it, its node or its job has died, or the connection is lost"
        what = f"the Dask worker {member.name or member.address} on {member.host} is gone"
        kind, message = fate(member, what, why)
        behind = member.behind()
        outcomes: list[Outcome] = []
        for unit in list(member.units.values()):
            outcomes += self._give_up(member, unit, kind, message, all_said=unit in behind)
        return outcomes

    def put_away(self, member: Member, reason: str) -> list[Outcome]:
        """Give a member no more tasks; return its tasks for others, without a failure."""
        self._crew.refuse(member, reason)
        member.stuck_since = inf
        outcomes: list[Outcome] = []
        for unit in list(member.units.values()):
            outcomes += [*(Unstuck(key) for key in unit.stuck), *(Returned(key) for key in unit.left)]
            self.drop(member, unit)
        return outcomes

    def drop(self, member: Member, unit: Unit) -> None:
        """Forget a unit; later messages about it are ignored."""
        if self._members.pop(unit.name, None) is None:
            return
        unit.left.clear()
        unit.begun.clear()
        unit.future.release()
        del member.units[unit.name]

    def give_up_silent(self) -> list[Outcome]:
        """Give up units that were silent for longer than any task may take; Dask did not notice their loss."""
        outcomes: list[Outcome] = []
        now = time.monotonic()
        for member in list(self._crew.members.values()):
            for unit in [unit for unit in member.units.values() if now > member.deadline_of(unit)]:
                self._crew.refuse(member, "it has been silent for too long")
                outcomes += self._give_up(member, unit, "timed-out", f"{member.name} on {member.host} is silent")
        return outcomes

    def free_stalled(self) -> list[Outcome]:
        """Return tasks that wait behind a long task or for a disk, so that idle workers get them."""
        outcomes: list[Outcome] = []
        long_ago = time.monotonic() - STALLED_S
        for member in self._crew.members.values():
            is_full = sum(len(unit.in_hand) for unit in member.units.values()) >= member.slots
            for unit in [unit for unit in member.units.values() if min(unit.heard, member.stuck_since) < long_ago]:
                if unit.in_hand or is_full:
                    outcomes += [Returned(key) for key in unit.left - unit.in_hand]
                    unit.left &= unit.in_hand
                    if not unit.left:
                        self.drop(member, unit)
        return outcomes

    def _give_up(self, member: Member, unit: Unit, kind: str, message: str, all_said: bool = False) -> list[Outcome]:
        """Give up the tasks that a unit has left. Those that were running are suspects and will be isolated.

        all_said: no message is lost, so a task that was not reported as begun was not begun.
        """
        suspects = set(unit.begun)
        if not (suspects or all_said):
            suspects = {next(key for key in unit.keys if key in unit.left)}
            if not member.stores:  # no attempt on the disk would tell
                unit.begun = dict.fromkeys(suspects, f"{member.host}-0-{self._mark}")
        outcomes = list(unit.given_up(kind, message, self._mark))
        if kind == "died":
            self._handing.suspect(suspects)
        self.drop(member, unit)
        return outcomes

    def _deadline(self) -> float:
        return time.monotonic() + self._timeout_s + START_LIMIT_S + STORE_LIMIT_S


def fate(member: Member, what: str, why: str) -> tuple[str, str]:
    """Return the kind and the message of a failure: "cut-off" if the job has reached its time limit, else "died"."""
    if member.is_past_its_end:
        return "cut-off", f"{what}: its job has reached its time limit"
    return "died", f"{what}: {why}"
