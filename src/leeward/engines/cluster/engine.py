"""The engine for the workers of a Dask cluster.

Dask only carries messages and reports which workers are present. This module assigns tasks: every unit is pinned to one
Dask worker, so that the tasks of a lost worker are known and no others are retried. It hands out no more tasks than the
workers can hold, so that scheduler and coordinator stay small.
"""

import contextlib
import secrets
import time
from collections.abc import Iterator
from math import inf
from typing import Any

from leeward.compiling import COMPILE_EVENTS
from leeward.engines.cluster.crew import Crew
from leeward.engines.cluster.links import Link, Wire
from leeward.engines.cluster.members import Member
from leeward.engines.cluster.units import Handing, Units
from leeward.engines.engine import Assignment, Began, Computed, Done, EngineLostError, Failed, Outcome, Stuck, Unstuck
from leeward.engines.heartbeat import ForeignHeartbeats
from leeward.engines.work import FrozenWork
from leeward.files import replace_file, storage_errors
from leeward.store import PROBE, Key, index_line, result_in

STUCK_S = 30.0


class ClusterEngine:
    """The coordinator's side of a Dask cluster."""

    def __init__(self, link: Link, assignment: Assignment) -> None:
        paths, execution = assignment.paths, assignment.work.execution
        self.mark = secrets.token_hex(4)
        self._link = link
        self._work = assignment.work
        self._left = assignment.left
        self._emit = assignment.emit
        self._wire = Wire(link)
        self._probe = paths.root / f"{PROBE}{self._wire.token}"
        self._most_waiting = 0
        self._compiling_said: set[str] = set()
        self._heartbeats = ForeignHeartbeats(paths.workers, self.mark)
        self._handing = Handing(execution.retries, assignment.work.group)
        order = {
            "token": self._wire.token,
            "mark": self.mark,
            "work": tuple(FrozenWork.of(assignment.work)),
            "output": str(paths.output.absolute()),
            "probe": str(self._probe.absolute()),
            "content": self._write_probe(),
            "timeout_s": execution.timeout_s,
        }
        self._crew = Crew(link, self._wire, order, self._emit, str(paths.root))
        self._units = Units(self._wire, self._crew, self._handing, self.mark, execution.timeout_s)
        self._wire.listen()
        self._crew.join_present()

    @classmethod
    def on(cls, link: Link, assignment: Assignment) -> "ClusterEngine":
        """Start an engine on a link; close the link if that fails."""
        try:
            return cls(link, assignment)
        except BaseException:
            link.close()
            raise

    def _write_probe(self) -> str:
        """Write a file that shows workers whether they see the run directory; return its content."""
        content = secrets.token_hex(16)
        with storage_errors(self._probe, "cannot be written"):
            replace_file(self._probe, content.encode(), durable=False)
        return content

    @property
    def room(self) -> int:
        return max(0, self._most_waiting - len(self._handing.waiting))

    def start(self, key: Key) -> None:
        self._handing.waiting.append(key)

    def poll(self, seconds: float) -> list[Outcome]:
        if self._units.is_cut_off or not self._link.is_alive:  # it may come back, but without its tasks
            raise EngineLostError(f"the Dask scheduler at {self._link.address} is gone or cannot be reached")
        members = self._crew.members
        # this may raise, so it comes before outcomes are collected, which would be lost
        self._crew.look_after(self._left(), self._handing.pace.unit_s)
        for member, keys in self._handing.units(members.values()):
            self._units.send(member, keys)
        outcomes: list[Outcome] = []
        for message in self._wire.messages(seconds):
            outcomes += self._handle(*message)
        outcomes += self._units.give_up_silent()
        if self._most_waiting and not self._handing.waiting:
            outcomes += self._units.free_stalled()
        free = self._handing.room(members.values())  # counted once per poll, as there may be many tasks
        self._most_waiting = free + self._handing.held_back
        return outcomes

    def close(self) -> list[Key]:
        units = [unit for member in self._crew.members.values() for unit in member.units.values()]
        in_hand = [key for unit in units for key in unit.left]  # the message that one was begun may be on its way
        for unit in units:
            unit.future.release()
        with contextlib.ExitStack() as also:  # run all steps, even if a second Ctrl-C interrupts one
            also.callback(self._leave_nothing)
            also.callback(self._link.close)
            if self._link.is_alive:
                self._crew.say_farewell()
                self._wire.hang_up()
        return in_hand

    def _leave_nothing(self) -> None:
        with contextlib.suppress(OSError):  # the next run removes it
            self._probe.unlink(missing_ok=True)
        self._heartbeats.hide()

    def _handle(self, what: str, *facts: Any) -> list[Outcome]:
        if what == "said":
            return list(self._said_by_worker(*facts))
        if what == "ended":
            return self._units.ended(*facts)
        if what == "remove-worker":
            return self._lost(*facts)
        if what == "add-worker":
            self._crew.join(*facts)
        elif what == "prepared":
            self._crew.prepared(*facts)
        return []

    def _said_by_worker(self, message: dict[str, Any]) -> Iterator[Outcome]:
        if "beats" in message:
            self._heartbeats.show(message["beats"], message.get("worker", ""))
        kind = message.get("event")
        if kind in COMPILE_EVENTS and kind not in self._compiling_said:  # of the first worker only
            self._compiling_said.add(kind)
            self._emit(kind, **{name: message[name] for name in ("host", "seconds") if name in message})
        found = self._units.heard(message.get("unit", ""))
        if found is None:
            return
        member, unit = found
        try:
            outcomes = [self._outcome(facts, member) for facts in message["outcomes"]]
        except (KeyError, TypeError, ValueError) as error:
            self._crew.refuse(member, f"it sent an invalid message ({error!r:.80})")
            outcomes = []
        for outcome in outcomes:
            if outcome.key not in unit.left:  # another worker has it now
                continue
            unit.note(outcome)
            if isinstance(outcome, Done | Computed):
                self._handing.clear(outcome.key)
            yield outcome
            yield from self._compare_disks(member, outcome)
        if not unit.left:
            self._units.drop(member, unit)

    def _compare_disks(self, member: Member, outcome: Outcome) -> Iterator[Outcome]:
        """Give a member no more tasks if the disk rejects the writes of this member only."""
        now = time.monotonic()
        if isinstance(outcome, Stuck):
            member.stuck_since = min(member.stuck_since, now)
            if not member.stores:
                yield from self._units.put_away(member, f"its local disk rejects writes: {outcome.message}")
        elif not isinstance(outcome, Began):
            member.stuck_since = inf
        if isinstance(outcome, Done):
            for other in [other for other in self._crew.members.values() if now - other.stuck_since > STUCK_S]:
                reason = "the disk rejects its writes, but accepts those of other workers"
                yield from self._units.put_away(other, reason)

    def _outcome(self, facts: dict[str, Any], member: Member) -> Outcome:
        """Return the outcome in a message of a pilot, the inverse of its `_message`."""
        key, worker, what = self._work.parse_key(facts["key"]), facts.get("worker", ""), facts["what"]
        if what == "Began":
            return Began(key, worker, None if member.stores else self._work.fingerprint(key))
        if what == "Failed":
            return Failed(key, facts["kind"], facts["message"], facts["traceback"], facts["seconds"], worker)
        if what == "Stuck":
            return Stuck(key, facts["message"])
        if what == "Unstuck":
            return Unstuck(key)
        self._handing.pace.note(facts["took_s"])
        if what == "Done":
            return Done(key, facts["line"], worker)
        result = result_in(facts["shard"], key)
        if result is None or result.fingerprint != self._work.fingerprint(key):
            return Failed(key, "died", "the result that its worker sent does not verify", "", facts["took_s"], worker)
        return Computed(key, result, index_line(result), worker)

    def _lost(self, address: str) -> list[Outcome]:
        member = self._crew.members.pop(address, None)
        if member is None:
            return []
        if not member.is_ending:
            self._emit("lost", host=member.host, worker=member.name or address, job=member.job, tasks=member.held)
        self._link.lost(member)
        self._heartbeats.hide(member.host)
        return self._units.lost(member)
