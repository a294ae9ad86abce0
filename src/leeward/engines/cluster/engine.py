"""Tasks on the workers of a Dask cluster.

Dask carries messages and says who is there. Which task goes where is decided here: every unit is pinned to one Dask
worker, so that what a lost one had in hand is known, and nothing else is blamed or computed again. No more is handed
out than the workers hold, so that scheduler and coordinator stay small however many tasks there are.
"""

import contextlib
import itertools
import queue
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from math import inf
from typing import Any

from leeward import __version__
from leeward.campaign import Campaign, Execution
from leeward.compiling import COMPILE_EVENTS
from leeward.engines.cluster import pilot
from leeward.engines.cluster.beats import Beats
from leeward.engines.cluster.handing import Handing
from leeward.engines.cluster.links import Link
from leeward.engines.cluster.members import Member, Unit
from leeward.engines.local import START_LIMIT_S, STORE_LIMIT_S
from leeward.engines.outcomes import Began, Computed, Done, EngineLostError, Failed, Outcome, Returned, Stuck, Unstuck
from leeward.errors import StorageError
from leeward.events import Emit
from leeward.files import replace_file
from leeward.store import PROBE, Key, RunPaths, index_line, result_in

NOBODY_AFTER_S = 600.0  # a cluster without workers, none of which is to come, is given up
SAY_AGAIN_S = 300.0
STUCK_S = 30.0
STALLED_S = 10.0  # without news of a unit
ANSWER_S = 15.0  # for a worker that was just prepared
CLOSE_S = 5.0  # for workers to hear that a run is over


class ClusterEngine:
    """left: how many tasks are left in all, for a cluster that grows and shrinks with them."""

    def __init__(
        self,
        campaign: Campaign,
        execution: Execution,
        paths: RunPaths,
        link: Link,
        tell: Emit,
        left: Callable[[], int],
    ) -> None:
        self._campaign = campaign
        self._execution = execution
        self._paths = paths
        self._link = link
        self._tell = tell
        self._left = left
        self._token = f"leeward-{secrets.token_hex(8)}"
        self.mark = secrets.token_hex(4)
        self._messages: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._members: dict[str, Member] = {}
        self._units: dict[str, Member] = {}
        self._handing = Handing(execution.retries)
        self._most_waiting = 0
        self._is_cut_off = self._is_heard = False
        self._numbers = itertools.count()
        self._probe = paths.root / f"{PROBE}{self._token}"
        self._order = self._make_order()
        self._said: set[str] = set()
        self._beats = Beats(paths.workers, self.mark)
        self._somebody = self._hoped = self._said_alone = time.monotonic()
        self._listen()

    def _make_order(self) -> dict[str, Any]:
        content = secrets.token_hex(16)
        try:
            replace_file(self._probe, content.encode(), durable=False)
        except OSError as error:
            raise StorageError(f"{self._probe}: cannot be written ({error})") from error
        return {
            "token": self._token,
            "mark": self.mark,
            "campaign": self._campaign.frozen_text(),
            "output": str(self._paths.output.absolute()),
            "probe": str(self._probe.absolute()),
            "content": content,
            "timeout_s": self._execution.timeout_s,
        }

    def _listen(self) -> None:
        client = self._link.client
        client.subscribe_topic(self._token, lambda event: self._messages.put(("said", event[1])))
        client.subscribe_topic("all", self._hear_of_workers)
        self._join_present()

    def _join_present(self) -> None:
        for address in self._link.addresses():
            self._join(address)

    def _hear_of_workers(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if isinstance(message, dict) and message.get("action") in ("add-worker", "remove-worker"):
            self._messages.put((message["action"], message["worker"]))

    # --- what every engine does --------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        return max(0, self._most_waiting - len(self._handing.waiting))

    def start(self, key: Key) -> None:
        self._handing.waiting.append(key)

    def poll(self, seconds: float) -> list[Outcome]:
        self._look_after()  # raises when there is no hope: before outcomes are taken, which would be lost
        for member, keys in self._handing.units(self._members.values()):
            self._send(member, keys)
        outcomes: list[Outcome] = []
        with contextlib.suppress(queue.Empty):
            message = self._messages.get(timeout=seconds)
            while True:
                outcomes += self._handle(*message)
                message = self._messages.get_nowait()
        outcomes += self._give_up_silent()
        outcomes += self._free_stalled()
        free = self._handing.room(self._members.values())  # counted once a look: tasks are many
        self._most_waiting = free + self._handing.held_back
        return outcomes

    def close(self) -> list[Key]:
        units = [unit for member in self._members.values() for unit in member.units.values()]
        in_hand = [key for unit in units for key in unit.left]  # the news that one was begun may be on its way
        for unit in units:
            unit.future.release()
        with contextlib.ExitStack() as also:  # where somebody does not want to wait for the one before
            also.callback(self._leave_nothing)
            also.callback(self._link.close)
            if self._link.is_alive:
                self._say_farewell()
                for topic in (self._token, "all"):
                    self._link.client.unsubscribe_topic(topic)
        return in_hand

    def _leave_nothing(self) -> None:
        with contextlib.suppress(OSError):  # what stays is tidied away by the next run
            self._probe.unlink(missing_ok=True)
        self._beats.hide()

    def _say_farewell(self) -> None:
        """So that worker processes end now, and not when they have been idle for a while."""
        ready = [member for member in self._members.values() if member.is_ready]
        farewells = [self._submit(member, "end", pilot.tear_down, self._token) for member in ready]
        deadline = time.monotonic() + CLOSE_S
        while time.monotonic() < deadline and not all(farewell.done() for farewell in farewells):
            time.sleep(0.05)

    # --- messages ----------------------------------------------------------------------------------------------------

    def _handle(self, what: str, *facts: Any) -> list[Outcome]:
        if what == "said":
            return list(self._said_by_worker(*facts))
        if what == "ended":
            return self._ended(*facts)
        if what == "remove-worker":
            return self._lost(*facts)
        if what == "add-worker":
            self._join(*facts)
        elif what == "prepared":
            self._prepared(*facts)
        return []

    def _said_by_worker(self, message: dict[str, Any]) -> Iterator[Outcome]:
        if "beats" in message:
            self._beats.show(message["beats"], message.get("worker", ""))
        event = message.get("event")
        if event in COMPILE_EVENTS and event not in self._said:  # of the first worker: others do the same
            self._said.add(event)
            self._tell(event, **{name: message[name] for name in ("host", "seconds") if name in message})
        name = message.get("unit", "")
        if name in self._units:
            member = self._units[name]
            unit = member.units[name]
            unit.deadline = member.deadline = self._deadline()
            unit.heard = time.monotonic()
            try:
                heard = [self._outcome(facts, member) for facts in message["outcomes"]]
            except (KeyError, TypeError, ValueError) as error:
                self._refuse(member, f"it speaks nonsense ({error!r:.80})")
                heard = []
            for outcome in heard:
                if outcome.key not in unit.left:  # another worker has it by now
                    continue
                unit.note(outcome)
                if isinstance(outcome, Done | Computed):
                    self._handing.clear(outcome.key)
                yield outcome
                yield from self._compare_disks(member, outcome)
            if not unit.left and name in self._units:
                self._drop(member, unit)

    def _compare_disks(self, member: Member, outcome: Outcome) -> Iterator[Outcome]:
        """A disk that takes nothing stops the run, unless it is that of one member only."""
        now = time.monotonic()
        if isinstance(outcome, Stuck):
            member.stuck_since = min(member.stuck_since, now)
            if not member.stores:
                yield from self._put_away(member, f"its own disk takes nothing: {outcome.message}")
        elif not isinstance(outcome, Began):
            member.stuck_since = inf
        if isinstance(outcome, Done):
            for other in [other for other in self._members.values() if now - other.stuck_since > STUCK_S]:
                yield from self._put_away(other, "the disk takes nothing from there, and results from elsewhere")

    def _put_away(self, member: Member, reason: str) -> Iterator[Outcome]:
        """No more tasks for it; those that it has go elsewhere, and are not blamed."""
        self._refuse(member, reason)
        member.stuck_since = inf
        for unit in list(member.units.values()):
            yield from (Unstuck(key) for key in unit.stuck)
            yield from (Returned(key) for key in unit.left)
            self._drop(member, unit)

    def _outcome(self, facts: dict[str, Any], member: Member) -> Outcome:
        """What a pilot has said; the opposite of its `_message`."""
        key, worker, what = Key.parse(facts["key"]), facts.get("worker", ""), facts["what"]
        if what == "Began":
            fingerprint = None if member.stores else self._campaign.fingerprint(key.farm_idx, key.type_idx)
            return Began(key, worker, fingerprint)
        if what == "Failed":
            return Failed(key, facts["kind"], facts["message"], facts["traceback"], facts["seconds"], worker)
        if what == "Stuck":
            return Stuck(key, facts["message"])
        if what == "Unstuck":
            return Unstuck(key)
        self._handing.pace.hear(facts["took_s"])
        if what == "Done":
            return Done(key, facts["line"], worker)
        result = result_in(facts["shard"], key)
        if result is None or result.fingerprint != self._campaign.fingerprint(key.farm_idx, key.type_idx):
            return Failed(key, "died", "the result that its worker sent does not verify", "", facts["took_s"], worker)
        return Computed(key, result, index_line(result), worker)

    # --- workers come and go -----------------------------------------------------------------------------------------

    def _join(self, address: str) -> None:
        if address in self._members:
            return
        member = self._members[address] = Member(address, joined=time.monotonic())
        member.preparing = self._submit(member, "set-up", pilot.set_up, self._order)
        member.preparing.add_done_callback(lambda future: self._messages.put(("prepared", member, future)))

    def _prepared(self, member: Member, future: Any) -> None:
        if not self._is_heard:  # from now on we are told of everybody; one may have come before, and after our question
            self._is_heard = True
            self._join_present()
        if self._members.get(member.address) is not member:
            return
        if future.status != "finished":
            self._refuse(member, f"it cannot be used: {_reason(future)}")
            return
        try:
            facts = future.result(timeout=ANSWER_S)  # Dask itself would wait for ever for a worker that is gone by now
        except (OSError, CancelledError) as error:  # a TimeoutError too
            self._refuse(member, f"it cannot be used: it does not answer any more ({error})")
            return
        member.prepared(facts)
        member.unfit = None
        if facts["version"] != __version__:
            self._refuse(member, f"it has leeward {facts['version']}; expected {__version__}, as here")
            return
        self._link.joined(member)
        news = f"{member.host} {member.stores}" if not member.stores else "stores"
        self._tell(
            "joined",
            host=member.host,
            worker=member.name,
            slots=member.slots,
            job=member.job,
            stores=member.stores,
            reason=facts["unreached"],
            run=str(self._paths.root),
            is_news=news not in self._said,
        )
        self._said.add(news)

    def _refuse(self, member: Member, reason: str) -> None:
        member.unfit = reason
        self._tell("unfit", host=member.host, worker=member.name or member.address, reason=reason)

    def _lost(self, address: str) -> list[Outcome]:
        member = self._members.pop(address, None)
        if member is None:
            return []
        why = "it, its node or its job has died, or is cut off"
        kind, message = self._fate(member, f"the Dask worker {member.name or address} on {member.host} is gone", why)
        if not member.is_ending:
            self._tell("lost", host=member.host, worker=member.name or address, job=member.job, tasks=member.held)
        self._link.lost(member)
        self._beats.hide(member.host)
        behind = member.behind()
        outcomes: list[Outcome] = []
        for unit in list(member.units.values()):
            outcomes += self._give_up(member, unit, kind, message, all_said=unit in behind)
        return outcomes

    def _give_up(self, member: Member, unit: Unit, kind: str, message: str, all_said: bool = False) -> list[Outcome]:
        """The tasks of a unit that are left. Several may have been in hand, of which one did it: they part ways.

        all_said: of which nothing was said, nothing was begun: it was not its turn yet, or all of it has been heard.
        """
        suspects = set(unit.begun)
        if not (suspects or all_said):
            suspects = {next(key for key in unit.keys if key in unit.left)}
            if not member.stores:  # no attempt on the disk would tell
                unit.begun = dict.fromkeys(suspects, f"{member.host}-0-{self.mark}")
        outcomes = list(unit.given_up(kind, message, self.mark))
        if kind == "died":
            self._handing.suspect(suspects)
        self._drop(member, unit)
        return outcomes

    def _drop(self, member: Member, unit: Unit) -> None:
        """It has no tasks any more: what is still said of them, in the same breath even, is not heard."""
        unit.left.clear()
        unit.begun.clear()
        unit.future.release()
        del member.units[unit.name]
        del self._units[unit.name]

    def _ended(self, name: str, future: Any) -> list[Outcome]:
        """All that was said in it has been heard; what is left has been left."""
        if name not in self._units:
            return []
        if future.status == "cancelled":  # Dask cancels all when a connection breaks, also for a moment
            self._is_cut_off = True
        if future.status not in ("finished", "error"):  # or it was lost with its worker: we are told of that too
            return []
        member = self._units[name]
        unit = member.units[name]
        if not unit.left:
            self._drop(member, unit)
            return []
        reason = _reason(future)
        if future.status == "error":
            self._refuse(member, reason)
        kind, message = self._fate(member, f"the Dask worker {member.name} on {member.host} gave up", reason)
        return self._give_up(member, unit, kind, message, all_said=True)

    def _fate(self, member: Member, what: str, why: str) -> tuple[str, str]:
        """The kind of a failure, and what is said of it: the end of a job at its time was known before."""
        if member.is_past_its_end:
            return "cut-off", f"{what}: its job has reached its time limit"
        return "died", f"{what}: {why}"

    def _give_up_silent(self) -> list[Outcome]:
        """Units of which nothing was heard for longer than any task may take: Dask itself did not notice."""
        outcomes: list[Outcome] = []
        now = time.monotonic()
        for member in list(self._members.values()):
            for unit in [unit for unit in member.units.values() if now > member.deadline_of(unit)]:
                self._refuse(member, "it has not been heard for too long")
                outcomes += self._give_up(member, unit, "timed-out", f"{member.name} on {member.host} is silent")
        return outcomes

    def _free_stalled(self) -> list[Outcome]:
        """Tasks that wait behind one that takes long, or for a disk, while others have nothing to do, go to these."""
        if self._handing.waiting or not self._most_waiting:
            return []
        outcomes: list[Outcome] = []
        long_ago = time.monotonic() - STALLED_S
        for member in self._members.values():
            is_full = sum(len(unit.in_hand) for unit in member.units.values()) >= member.slots
            for unit in [unit for unit in member.units.values() if min(unit.heard, member.stuck_since) < long_ago]:
                if unit.in_hand or is_full:
                    outcomes += [Returned(key) for key in unit.left - unit.in_hand]
                    unit.left &= unit.in_hand
                    if not unit.left:
                        self._drop(member, unit)
        return outcomes

    def _deadline(self) -> float:
        return time.monotonic() + self._execution.timeout_s + START_LIMIT_S + STORE_LIMIT_S

    # --- handing out -------------------------------------------------------------------------------------------------

    def _send(self, member: Member, keys: list[Key]) -> None:
        name = f"{self._token}-{next(self._numbers)}"
        unit = Unit(name, keys, set(keys), self._deadline())
        member.units[name] = unit
        self._units[name] = member
        unit.future = self._link.client.submit(
            pilot.work_off,
            self._token,
            name,
            [str(key) for key in keys],
            key=name,
            workers=[member.address],
            allow_other_workers=False,
            pure=False,
        )
        unit.future.add_done_callback(lambda future: self._messages.put(("ended", name, future)))

    def _submit(self, member: Member, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._link.client.submit(
            function,
            *arguments,
            key=f"{self._token}-{what}-{next(self._numbers)}",
            workers=[member.address],
            allow_other_workers=False,
            pure=False,
            priority=10,
        )

    # --- from time to time -------------------------------------------------------------------------------------------

    def _look_after(self) -> None:
        if self._is_cut_off or not self._link.is_alive:  # it may come back, but not to what it had in hand
            raise EngineLostError(f"the Dask scheduler at {self._link.address} is gone, or the way to it")
        now = time.monotonic()
        members = list(self._members.values())
        for member in members:
            if not member.slots and member.unfit is None and now - member.joined > NOBODY_AFTER_S:
                self._refuse(member, f"it has not answered for {NOBODY_AFTER_S:g} s")  # it still may
            member.is_spent = member.is_ready and not member.has_time_for(self._handing.pace.unit_s)
        self._link.tend(self._left(), members)
        if any(member.is_ready for member in members):
            self._somebody = self._hoped = self._said_alone = now
            return
        preparing = sum(member.slots == 0 and member.unfit is None for member in members)
        expected = self._link.expects
        if expected is not None:  # however long a queue is
            self._hoped = now
        if preparing:
            expected = f"{preparing} worker(s) do not answer yet"
        if now - self._hoped > NOBODY_AFTER_S:
            unfit = next((member.unfit for member in members if member.unfit), "none is there")
            raise EngineLostError(f"no worker of {self._link.address} could be used for {NOBODY_AFTER_S:g} s: {unfit}")
        if now - self._said_alone > (SAY_AGAIN_S if "alone" in self._said else 10.0):
            self._said_alone = now
            self._said.add("alone")
            self._join_present()  # one may have come while we began to listen
            self._tell("alone", address=self._link.address, expected=expected, seconds=round(now - self._somebody))


def _reason(future: Any) -> str:
    """Why a future has no result, in one line."""
    if future.status == "error":
        error = future.exception()
        lines = f"{type(error).__name__}: {error}".splitlines()
        return lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1]}"  # a log ends with what went wrong
    return f"Dask says {future.status}"
