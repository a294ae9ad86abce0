"""The engine for the workers of a Dask cluster.

Dask only carries messages and reports which workers are present. This module assigns tasks: every unit of tasks is
pinned to one Dask worker, so that the tasks of a lost worker are known and no others are retried. It hands out no more
tasks than the workers can hold, so that scheduler and coordinator stay small.
"""

import contextlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

from leeward.compiling import COMPILE_EVENTS
from leeward.engines.cluster import pilot
from leeward.engines.cluster.crew import Crew, reason_of
from leeward.engines.cluster.links import Link
from leeward.engines.cluster.members import Member, TaskQueue, Unit
from leeward.engines.engine import (
    Assignment,
    Began,
    Done,
    EngineLostError,
    Failed,
    Outcome,
    Returned,
    Stuck,
    Unstuck,
    from_message,
)
from leeward.engines.heartbeat import RemoteHeartbeats
from leeward.engines.local import START_LIMIT_S, STORE_LIMIT_S
from leeward.engines.work import FrozenWork
from leeward.files import replace_file, storage_errors
from leeward.store import PROBE, Key, result_in

STUCK_S = 30.0  # a member is excluded if it cannot write for this long while others can
STALLED_S = 10.0  # a unit is stalled if no message about it arrives for this long


class ClusterEngine:
    """The coordinator's side of a Dask cluster."""

    def __init__(self, link: Link, assignment: Assignment) -> None:
        paths, execution = assignment.paths, assignment.work.execution
        self.mark = secrets.token_hex(4)
        self._link = link
        self._work = assignment.work
        self._left = assignment.left
        self._emit = assignment.emit
        self._silent_s = execution.timeout_s + START_LIMIT_S + STORE_LIMIT_S
        self._probe = paths.root / f"{PROBE}{link.token}"
        self._most_waiting = 0
        self._compile_events: set[str] = set()
        self._heartbeats = RemoteHeartbeats(paths.workers, self.mark)
        self._queue = TaskQueue(execution.retries, assignment.work.group)
        self._units: dict[str, Unit] = {}  # units by the key of their future
        self._is_cut_off = False  # Dask has cancelled all futures
        content = secrets.token_hex(16)
        with storage_errors(self._probe, "cannot be written"):
            replace_file(self._probe, content.encode(), durable=False)
        order = {
            "token": link.token,
            "mark": self.mark,
            "work": tuple(FrozenWork.of(assignment.work)),
            "output": str(paths.output.absolute()),
            "probe": str(self._probe.absolute()),
            "content": content,
            "timeout_s": execution.timeout_s,
        }
        self._crew = Crew(link, order, self._emit, str(paths.root))
        link.listen(self._on_message, self._crew.join, self._on_lost)
        self._crew.join_present()

    @classmethod
    def on(cls, link: Link, assignment: Assignment) -> "ClusterEngine":
        """Start an engine on a link; close the link if that fails."""
        try:
            return cls(link, assignment)
        except BaseException:
            link.close()
            raise

    @property
    def room(self) -> int:
        return max(0, self._most_waiting - len(self._queue.waiting))

    def start(self, key: Key) -> None:
        self._queue.waiting.append(key)

    def poll(self, seconds: float) -> list[Outcome]:
        if self._is_cut_off or not self._link.is_alive:  # the scheduler may come back, but has lost the tasks
            raise EngineLostError(f"the Dask scheduler at {self._link.address} is gone or cannot be reached")
        members = self._crew.members.values()
        # this may raise an error, which would lose collected outcomes: call it before collecting them
        self._crew.update(self._left(), self._queue.pace.unit_s)
        for member, keys in self._queue.units(members):
            self._send(member, keys)
        outcomes: list[Outcome] = []
        for handler, *facts in self._link.messages(seconds):
            outcomes += handler(*facts) or ()
        outcomes += self._fail_silent()
        if self._most_waiting and not self._queue.waiting:
            outcomes += self._return_stalled()
        # counted once per poll, because there may be many tasks
        self._most_waiting = self._queue.room(members) + self._queue.held_back
        return outcomes

    def close(self) -> list[Key]:
        # include tasks that have not begun: the message "Began" may not have arrived yet
        in_hand = [key for unit in self._units.values() for key in unit.left]
        for unit in self._units.values():
            unit.future.release()
        with contextlib.ExitStack() as also:  # run all steps, even if a second Ctrl-C interrupts one
            also.callback(self._heartbeats.hide)
            also.callback(self._remove_probe)
            also.callback(self._link.close)
            if self._link.is_alive:
                self._crew.tear_down()
                self._link.stop_listening()
        return in_hand

    def _remove_probe(self) -> None:
        with contextlib.suppress(OSError):  # the next run removes it
            self._probe.unlink(missing_ok=True)

    def _send(self, member: Member, keys: list[Key]) -> None:
        unit = Unit(member, keys)
        names = [str(key) for key in keys]
        unit.future = self._link.call(
            member.address, pilot.compute_unit, self._link.token, names, on_end=self._on_end, first=False
        )
        member.units.append(unit)
        self._units[unit.future.key] = unit

    def _on_message(self, message: dict[str, Any]) -> Iterator[Outcome]:
        """Yield the outcomes in a message of a pilot; show its heartbeats and events."""
        if "beats" in message:
            self._heartbeats.show(message["beats"], message.get("worker", ""))
        kind = message.get("event")
        if kind in COMPILE_EVENTS and kind not in self._compile_events:  # emit only the events of the first worker
            self._compile_events.add(kind)
            self._emit(kind, **{name: message[name] for name in ("host", "seconds") if name in message})
        unit = self._units.get(message.get("unit", ""))
        if unit is None:  # no unit, or one that was removed
            return
        unit.heard = unit.member.heard = time.monotonic()
        try:
            outcomes = [self._outcome(facts, unit.member) for facts in message["outcomes"]]
        except (KeyError, TypeError, ValueError) as error:
            self._crew.reject(unit.member, f"it sent an invalid message ({error!r:.80})")
            outcomes = []
        for outcome in outcomes:
            if outcome.key not in unit.left:  # another worker has it now
                continue
            unit.note(outcome)
            if isinstance(outcome, Done):
                self._queue.clear(outcome.key)
            yield outcome
            yield from self._compare_disks(unit.member, outcome)
        if not unit.left:
            self._remove(unit)

    def _compare_disks(self, member: Member, outcome: Outcome) -> Iterator[Outcome]:
        """Send a member no more tasks if the disk rejects the writes of this member only."""
        now = time.monotonic()
        if isinstance(outcome, Stuck):
            member.stuck_since = min(member.stuck_since, now)
            if not member.stores:
                yield from self._exclude(member, f"its local disk rejects writes: {outcome.message}")
        elif not isinstance(outcome, Began):
            member.stuck_since = inf
        if isinstance(outcome, Done) and outcome.result is None:
            for other in self._crew.members.values():
                if now - other.stuck_since > STUCK_S:
                    yield from self._exclude(other, "the disk rejects its writes, but accepts those of other workers")

    def _exclude(self, member: Member, reason: str) -> Iterator[Outcome]:
        """Send a member no more tasks; return its tasks to the queue, without a failure."""
        self._crew.reject(member, reason)
        member.stuck_since = inf
        for unit in list(member.units):
            yield from map(Unstuck, unit.stuck)
            yield from map(Returned, unit.left)
            self._remove(unit)

    def _outcome(self, facts: dict[str, Any], member: Member) -> Outcome:
        """Return the outcome in a message of a pilot. Check a result that came with it."""
        took_s, shard = facts.get("took_s", 0.0), facts.get("shard")
        outcome = from_message({name: facts[name] for name in facts if name not in ("took_s", "shard")})
        if isinstance(outcome, Began) and not member.stores:
            return replace(outcome, fingerprint=self._work.fingerprint(outcome.key))
        if not isinstance(outcome, Done):
            return outcome
        self._queue.pace.note(took_s)
        if shard is None:
            return outcome
        key, worker = outcome.key, outcome.worker
        result = result_in(shard, key)
        if result is None or result.fingerprint != self._work.fingerprint(key):
            return Failed(key, "died", "the result that its worker sent does not verify", "", took_s, worker)
        return Done(key, result.index_line(), worker, result)

    def _on_end(self, future: Any) -> list[Outcome]:
        """Return outcomes for the unfinished tasks of a unit that has ended. All its messages have arrived."""
        unit = self._units.get(future.key)
        if unit is None:
            return []
        if future.status == "cancelled":  # Dask cancels all when a connection breaks, even briefly
            self._is_cut_off = True
        if future.status not in ("finished", "error"):  # lost with its worker; another message reports that
            return []
        if not unit.left:
            self._remove(unit)
            return []
        member, reason = unit.member, reason_of(future)
        if future.status == "error":
            self._crew.reject(member, reason)
        kind, message = _failure(member, f"the Dask worker {member.name} on {member.host} ended its work", reason)
        return self._end_unit(unit, kind, message, all_heard=True)

    def _on_lost(self, address: str) -> list[Outcome]:
        """End all units of a Dask worker that is gone."""
        member = self._crew.members.pop(address, None)
        if member is None:
            return []
        if not member.is_ending:
            self._emit("lost", host=member.host, worker=member.name or address, job=member.job, tasks=member.held)
        self._link.lost(member)
        self._heartbeats.hide(member.host)
        what = f"the Dask worker {member.name or address} on {member.host} is gone"
        kind, message = _failure(member, what, "it, its node or its job has died, or the connection is lost")
        behind = member.behind()
        outcomes: list[Outcome] = []
        for unit in list(member.units):
            outcomes += self._end_unit(unit, kind, message, all_heard=unit in behind)
        return outcomes

    def _fail_silent(self) -> list[Outcome]:
        """Fail units that sent no message for longer than any task may take. Dask has not detected their loss."""
        outcomes: list[Outcome] = []
        long_ago = time.monotonic() - self._silent_s
        for unit in list(self._units.values()):
            member = unit.member
            # a unit that has not begun may wait behind others
            heard = unit.heard if unit.begun else max(unit.heard, member.heard)
            if heard < long_ago:
                self._crew.reject(member, "it has been silent for too long")
                outcomes += self._end_unit(unit, "timed-out", f"{member.name} on {member.host} is silent")
        return outcomes

    def _return_stalled(self) -> list[Outcome]:
        """Return tasks to the queue if they wait behind a long task or a stuck disk, so that idle workers get them."""
        outcomes: list[Outcome] = []
        long_ago = time.monotonic() - STALLED_S
        for member in self._crew.members.values():
            is_full = sum(len(unit.in_hand) for unit in member.units) >= member.slots
            for unit in [unit for unit in member.units if min(unit.heard, member.stuck_since) < long_ago]:
                if unit.in_hand or is_full:
                    outcomes += [Returned(key) for key in unit.left if key not in unit.in_hand]
                    unit.left = [key for key in unit.left if key in unit.in_hand]
                    if not unit.left:
                        self._remove(unit)
        return outcomes

    def _end_unit(self, unit: Unit, kind: str, message: str, all_heard: bool = False) -> list[Outcome]:
        """Return outcomes for the tasks of a unit: those that were begun have failed, the others are returned.

        Tasks that were running are suspects and will be isolated. all_heard: no message is lost, so a task that was not
        reported as begun was not begun.
        """
        member, seconds = unit.member, time.monotonic() - unit.heard
        suspects = set(unit.begun)
        if not (suspects or all_heard):
            suspects = {unit.left[0]}
            if not member.stores:  # this member does not record attempts on the disk
                unit.begun = dict.fromkeys(suspects, f"{member.host}-0-{self.mark}")
        outcomes: list[Outcome] = []
        for key in unit.left:
            if key in unit.stuck:
                outcomes.append(Unstuck(key))
            worker = unit.begun.get(key)
            outcomes.append(
                Returned(key, self.mark) if worker is None else Failed(key, kind, message, "", seconds, worker)
            )
        if kind == "died":
            self._queue.suspect(suspects)
        self._remove(unit)
        return outcomes

    def _remove(self, unit: Unit) -> None:
        """Remove a unit. Later messages about it are ignored."""
        if self._units.pop(unit.future.key, None) is not None:
            unit.left.clear()
            unit.future.release()
            unit.member.units.remove(unit)


def _failure(member: Member, what: str, why: str) -> tuple[str, str]:
    """Return the kind and the message of a failure: "cut-off" if the job has reached its time limit, else "died"."""
    if member.is_past_its_end:
        return "cut-off", f"{what}: its job has reached its time limit"
    return "died", f"{what}: {why}"
