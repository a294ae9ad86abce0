"""Prepare the Dask workers of a run, reject unfit ones, and wait for more."""

import functools
import time
from concurrent.futures import CancelledError
from typing import Any

from leeward import __version__
from leeward.engines.cluster import pilot
from leeward.engines.cluster.links import Link
from leeward.engines.cluster.members import Member
from leeward.engines.engine import EngineLostError
from leeward.events import Emit

NO_WORKER_S = 600.0  # the run ends if it has no worker, and expects none, for this long
REMIND_S = 300.0
ANSWER_S = 15.0  # time limit for the answer of a prepared worker
CLOSE_S = 5.0  # time limit for workers to end their processes at the end of a run


class Crew:
    """The Dask workers of a run, by address. order: sent to each pilot. root: the run directory, for messages."""

    def __init__(self, link: Link, order: dict[str, Any], emit: Emit, root: str) -> None:
        self.members: dict[str, Member] = {}
        self._link = link
        self._order = order
        self._emit = emit
        self._root = root
        self._has_answer = False
        self._announced: set[str] = set()
        self._last_ready = self._last_expected = self._reminded = time.monotonic()

    def join_present(self) -> None:
        """Prepare the workers that are present."""
        for address in self._link.addresses():
            self.join(address)

    def join(self, address: str) -> None:
        """Prepare a worker for tasks."""
        if address not in self.members:
            member = self.members[address] = Member(address, joined=time.monotonic())
            on_end = functools.partial(self._prepared, member)
            member.preparing = self._link.call(address, pilot.set_up, self._order, on_end=on_end, first=True)

    def _prepared(self, member: Member, future: Any) -> None:
        """Accept or reject a worker after its answer."""
        if not self._has_answer:  # from now on events arrive; a worker may have joined before
            self._has_answer = True
            self.join_present()
        if self.members.get(member.address) is not member:
            return
        if future.status != "finished":
            self.reject(member, f"it cannot be used: {reason_of(future)}")
            return
        try:
            facts = future.result(timeout=ANSWER_S)  # Dask would wait forever for a worker that is gone
        except (OSError, CancelledError) as error:  # a TimeoutError too
            self.reject(member, f"it cannot be used: it no longer answers ({error})")
            return
        member.prepared(facts)
        member.unfit = None
        if facts["version"] != __version__:
            self.reject(member, f"it has leeward {facts['version']}; install {__version__} there, as on this machine")
            return
        self._link.joined(member)
        news = "stores" if member.stores else f"{member.host} does not store"
        shown = {"host": member.host, "worker": member.name, "slots": member.slots, "job": member.job}
        disk = {"stores": member.stores, "reason": facts["unreached"], "run": self._root}
        self._emit("joined", **shown, **disk, is_news=news not in self._announced)
        self._announced.add(news)

    def reject(self, member: Member, reason: str) -> None:
        """Send a member no more tasks."""
        member.unfit = reason
        self._emit("unfit", host=member.host, worker=member.name or member.address, reason=reason)

    def update(self, left: int, unit_s: float) -> None:
        """Adjust the number of workers to the tasks left; raise EngineLostError if no worker can be expected.

        unit_s: how long a unit of tasks may take, s.
        """
        now = time.monotonic()
        members = list(self.members.values())
        for member in members:
            if not member.slots and member.unfit is None and now - member.joined > NO_WORKER_S:
                self.reject(member, f"it has not answered for {NO_WORKER_S:g} s")  # a later answer makes it fit again
            member.is_spent = member.is_ready and not member.has_time_for(unit_s)
        self._link.adjust(left, members)
        if any(member.is_ready for member in members):
            self._last_ready = self._last_expected = self._reminded = now
            return
        preparing = sum(member.slots == 0 and member.unfit is None for member in members)
        expected = self._link.expects
        if expected is not None:  # jobs may wait in the queue for any time
            self._last_expected = now
        if preparing:
            expected = f"{preparing} worker(s) have not answered yet"
        if now - self._last_expected > NO_WORKER_S:
            unfit = next((member.unfit for member in members if member.unfit), "no worker has connected")
            raise EngineLostError(f"no worker of {self._link.address} could be used for {NO_WORKER_S:g} s: {unfit}")
        if now - self._reminded > (REMIND_S if "alone" in self._announced else 10.0):
            self._reminded = now
            self._announced.add("alone")
            self.join_present()  # a worker may have joined before events arrived
            self._emit("alone", address=self._link.address, expected=expected, seconds=round(now - self._last_ready))

    def tear_down(self) -> None:
        """End worker processes now instead of after their idle time."""
        ready = [member.address for member in self.members.values() if member.is_ready]
        futures = [self._link.call(address, pilot.tear_down, self._link.token, first=True) for address in ready]
        deadline = time.monotonic() + CLOSE_S
        while time.monotonic() < deadline and not all(future.done() for future in futures):
            time.sleep(0.05)


def reason_of(future: Any) -> str:
    """Return why a future has no result, in one line."""
    if future.status == "error":
        error = future.exception()
        lines = f"{type(error).__name__}: {error}".splitlines()
        return lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1]}"  # the last line of a log names the error
    return f"its state in Dask is {future.status}"
