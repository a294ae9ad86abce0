"""The engine local: worker processes on this machine, each with its own pipe and deadline.

Workers share nothing. A worker that is killed, stopped or caught in an endless loop does not affect the others. The
process pools of the usual libraries lose work or lock up when a process is killed.
"""

import json
import secrets
import selectors
import subprocess
import time
from collections import deque
from typing import Any

from leeward.campaign.execution import Execution
from leeward.compiling import COMPILE_EVENTS
from leeward.engines.engine import (
    Assignment,
    Began,
    EngineKind,
    Failed,
    Outcome,
    Stuck,
    Unstuck,
    from_message,
    processes_for,
)
from leeward.engines.work import FrozenWork
from leeward.engines.worker_process import Launcher, WorkerProcess
from leeward.errors import LeewardError
from leeward.events import Emit, ignore
from leeward.store import Key

START_LIMIT_S = 900.0  # time limit for a worker to start; it may import from a busy network disk, and compile
STORE_LIMIT_S = 600.0  # time limit for storing a result; after it, the disk counts as not answering
STOPPED_S = 2.0  # this process was stopped if a poll is later than expected by this much
MOST_FAILED_STARTS = 3  # the run ends after this many workers in a row that ended before they were ready
PAUSES_S = (1.0, 5.0, 15.0, 60.0)  # pauses before the next start, after a worker was killed while starting
LONGEST_MESSAGE = 1 << 20


class LocalEngine(EngineKind):
    """Runs tasks in worker processes, which start when there is work for them.

    emit: sends events about compiling, and about workers that were killed while starting.
    """

    def __init__(self, launcher: Launcher, workers: int, timeout_s: float, emit: Emit = ignore) -> None:
        self.mark = launcher.mark
        self._launcher = launcher
        self._most = workers
        self._timeout_s = timeout_s
        self._emit = emit
        self._workers: list[WorkerProcess] = []
        self._waiting: deque[list[Key]] = deque()  # the tasks of each worker
        self._selector = selectors.DefaultSelector()
        self._compiling_since = 0.0
        self._failed_starts = 0
        self._killed_starts = 0
        self._not_before = 0.0
        self._polled = time.monotonic()
        self._unreaped: list[subprocess.Popen[bytes]] = []

    @classmethod
    def open(cls, assignment: Assignment) -> "LocalEngine":
        mark = secrets.token_hex(4)  # distinguishes the attempts of its workers from others
        work = assignment.work
        launcher = Launcher(FrozenWork.of(work), assignment.paths, mark)
        count = cls.worker_count(work.execution, assignment.tasks)
        return cls(launcher, count, work.execution.timeout_s, assignment.emit)

    @classmethod
    def worker_count(cls, execution: Execution, tasks: int) -> int:
        return processes_for(execution, tasks)

    @property
    def room(self) -> int:
        return self._free

    @property
    def _free(self) -> int:
        """The number of workers without tasks, also of those that could be started."""
        return self._most - sum(bool(worker.tasks) for worker in self._workers) - len(self._waiting)

    def start(self, key: Key) -> None:
        self._waiting.append([key])
        self._assign()

    def poll(self, seconds: float) -> list[Outcome]:
        outcomes: list[Outcome] = []
        now = time.monotonic()
        nearest = min((worker.deadline for worker in self._workers), default=now + seconds)
        if self._not_before > now:
            nearest = min(nearest, self._not_before)
        for selected, events in self._selector.select(max(0.0, min(seconds, nearest - now))):
            worker: WorkerProcess = selected.data
            if events & selectors.EVENT_WRITE:
                worker.flush()
            if events & selectors.EVENT_READ:
                outcomes += self._receive(worker)
        now = self._extend_deadlines(seconds)
        for worker in list(self._workers):
            if now > worker.deadline:
                outcomes += self._overdue(worker)
            elif worker.process.poll() is not None:  # a child process of the worker may hold its pipe open
                outcomes += self._receive(worker)
                if worker in self._workers:
                    outcomes += self._lost(worker, "died", f"its worker died: {worker.cause_of_death()}")
        self._assign()
        self._unreaped = [process for process in self._unreaped if process.poll() is None]
        return outcomes

    def _extend_deadlines(self, usual: float) -> float:
        """Extend all deadlines by the time for which this process was stopped; return the time to compare them with.

        Another reading of the clock would miss a stop in between.
        """
        now = time.monotonic()
        stopped_s = now - self._polled - usual
        self._polled = now
        if stopped_s > STOPPED_S:
            for worker in self._workers:
                worker.deadline += stopped_s
        return now

    def close(self) -> list[Key]:
        # include tasks that were not reported as begun: the message may be unread in a pipe
        in_hand = [key for worker in self._workers for key in worker.tasks.values()]
        self._waiting.clear()
        for worker in self._workers:
            worker.kill()
        for worker in list(self._workers):
            self._remove(worker)
        self._selector.close()
        return in_hand

    def _assign(self) -> None:
        """Give tasks to idle workers, and start workers for the others."""
        idle = [worker for worker in self._workers if worker.ready and not worker.tasks]
        while self._waiting and idle:
            worker, keys = idle.pop(), self._waiting.popleft()
            worker.tasks = {str(key): key for key in keys}
            worker.began = time.monotonic()
            worker.deadline = worker.began + self._timeout_s
            worker.send(self._command(list(worker.tasks)))
        if time.monotonic() < self._not_before:
            return
        starting = sum(not worker.ready for worker in self._workers)
        for _ in range(min(len(self._waiting) - starting, self._most - len(self._workers))):
            worker = self._launch()
            worker.deadline = time.monotonic() + START_LIMIT_S
            self._workers.append(worker)

    def _command(self, names: list[str]) -> dict[str, Any]:
        """Return the command to compute the tasks with these keys."""
        return {"task": names[0]}

    def _launch(self) -> WorkerProcess:
        return self._launcher.start(self._selector)

    def _receive(self, worker: WorkerProcess) -> list[Outcome]:
        """Return the outcomes in the messages of a worker; kill it after an invalid one."""
        if not worker.receive():
            return self._lost(worker, "died", f"its worker died: {worker.cause_of_death()}")
        outcomes: list[Outcome] = []
        for line in worker.lines():
            try:
                answer = json.loads(line)
                is_compiling = any(event in answer for event in COMPILE_EVENTS)
                outcomes += [] if is_compiling else self._handle(worker, answer)
            except (ValueError, KeyError, TypeError) as error:  # the error ends this worker only
                return [*outcomes, *self._invalid(worker, f"{error!r:.80} in {line!r:.80}")]
            if is_compiling:  # outside `try`: an error of the callback is not the worker's fault
                self._note_compiling(worker, "compiling" in answer)
        if len(worker.unread) > LONGEST_MESSAGE:
            outcomes += self._invalid(worker, f"{len(worker.unread)} bytes without a line end")
        return outcomes

    def _handle(self, worker: WorkerProcess, answer: dict[str, Any]) -> list[Outcome]:
        if "ready" in answer:
            worker.ready, worker.name, worker.deadline = True, answer["ready"], float("inf")
            self._failed_starts = self._killed_starts = 0
            return []
        if "ending" in answer:
            worker.ending = str(answer["ending"])
            return []
        outcomes = [] if "progress" in answer else self._outcomes(worker, answer)
        if not worker.tasks:
            worker.deadline = float("inf")
        elif not worker.at_disk:
            worker.deadline = time.monotonic() + self._timeout_s
        elif "progress" not in answer:
            worker.deadline = time.monotonic() + STORE_LIMIT_S
        return outcomes

    def _outcomes(self, worker: WorkerProcess, answer: dict[str, Any]) -> list[Outcome]:
        """Return the outcome in a message about a task, and note its state."""
        key = worker.tasks.get(answer["key"])
        if key is None:
            raise ValueError(f"{answer['key']} is not its task")
        if "phase" in answer:
            worker.at_disk.add(key)
            return []
        outcome = from_message(answer)
        if isinstance(outcome, Stuck):
            worker.stuck.add(key)
            return [outcome]
        if isinstance(outcome, Unstuck):
            worker.stuck.discard(key)
            return [outcome]
        worker.at_disk.discard(key)
        if isinstance(outcome, Began):
            return [outcome]
        del worker.tasks[answer["key"]]
        before: list[Outcome] = [Unstuck(key)] if key in worker.stuck else []
        worker.stuck.discard(key)
        return [*before, outcome]

    def _note_compiling(self, worker: WorkerProcess, compiles: bool) -> None:
        """Emit an event when the first worker begins to compile, and when the last one has finished."""
        before = any(other.compiles for other in self._workers)
        worker.compiles = compiles
        after = any(other.compiles for other in self._workers)
        if after and not before:
            self._compiling_since = time.monotonic()
            self._emit("compiling")
        elif before and not after:
            self._emit("compiled", seconds=round(time.monotonic() - self._compiling_since, 1))

    def _overdue(self, worker: WorkerProcess) -> list[Outcome]:
        """Kill a worker that is past its deadline."""
        worker.kill()
        if not worker.ready:
            return self._lost(worker, "died", f"a worker was not ready after {START_LIMIT_S:g} s")
        if worker.at_disk:
            return self._lost(worker, "storing", f"the disk did not answer for {STORE_LIMIT_S:g} s")
        return self._lost(worker, "timed-out", self._late_message(time.monotonic() - worker.began))

    def _late_message(self, seconds: float) -> str:
        return f"killed after {seconds:.0f} s, past its time limit of {self._timeout_s:g} s"

    def _invalid(self, worker: WorkerProcess, what: str) -> list[Outcome]:
        worker.kill()
        return self._lost(worker, "died", f"its worker was killed after it sent an invalid message: {what}")

    def _lost(self, worker: WorkerProcess, kind: str, message: str) -> list[Outcome]:
        """Remove a dead worker; return the failures of its unfinished tasks."""
        keys, seconds = list(worker.tasks.values()), time.monotonic() - worker.began
        log_tail = worker.log_tail()  # read it now, before an empty log is removed
        self._remove(worker)
        if not keys and not worker.ready:
            self._note_failed_start(worker, message, log_tail)
        outcomes: list[Outcome] = [Unstuck(key) for key in worker.stuck]
        facts = (kind, message, log_tail, seconds, worker.name, len(keys) == 1)
        return [*outcomes, *(Failed(key, *facts) for key in keys)]

    def _note_failed_start(self, worker: WorkerProcess, message: str, log_tail: str) -> None:
        """Pause after a worker that was killed; raise LeewardError after too many that ended by themselves.

        Memory may be short for a while, but an import that fails will fail again.
        """
        if worker.is_killed:
            pause = PAUSES_S[min(self._killed_starts, len(PAUSES_S) - 1)]
            self._killed_starts += 1
            self._not_before = time.monotonic() + pause
            self._emit("start-killed", message=message, again_s=pause, starts=self._killed_starts)
            return
        self._failed_starts += 1
        if self._failed_starts >= MOST_FAILED_STARTS:
            raise LeewardError(
                f"{MOST_FAILED_STARTS} workers in a row ended before they were ready ({message}); the last log, "
                f"{worker.log}, {f'ends: {log_tail[-500:]}' if log_tail else 'is empty'}"
            )

    def _remove(self, worker: WorkerProcess) -> None:
        self._note_compiling(worker, False)
        if not worker.clean_up(self._launcher.paths.workers):
            self._unreaped.append(worker.process)
        self._workers.remove(worker)
