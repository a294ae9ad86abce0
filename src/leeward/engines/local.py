"""Worker processes on this machine, each with a private pipe and a deadline of its own.

Nothing is shared between workers, so that whatever becomes of one (killed, stopped in the middle of a message, caught
in an endless loop) touches no other. Every pool of the usual libraries loses work or locks up under SIGKILL.
"""

import contextlib
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from leeward.compiling import COMPILE_EVENTS
from leeward.engines.outcomes import Began, Done, Failed, Outcome, Stuck, Unstuck
from leeward.errors import LeewardError
from leeward.events import Emit
from leeward.files import open_regular
from leeward.store import Key, RunPaths

START_LIMIT_S = 900.0  # until a worker says that it is ready: importing from a busy network disk, and compiling
STORE_LIMIT_S = 600.0  # for storing a result, when nothing is heard of the disk
STANDSTILL_S = 2.0  # more than usual between two looks at the workers
STARTS_IN_VAIN = 3  # workers in a row that ended by themselves before they were ready
PAUSES_S = (1.0, 5.0, 15.0, 60.0)  # before the next start, after one that was killed; then always the last
CRASHES = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS"}  # nobody sends these to others
REAP_S = 5.0  # for a killed process to be gone
DEATH_S = 30.0  # for one that has closed its files: no disk holds it any more, at most a busy machine
LONGEST_MESSAGE = 1 << 20
TAIL = 4000  # bytes of a log
ANSWERS = ("taken", "began", "computed", "stuck", "unstuck", "done", "failed")  # each names the task it is about
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Launch = Callable[..., "subprocess.Popen[bytes]"]


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    commands: int
    answers: int
    log: Path
    deadline: float
    name: str = ""
    ready: bool = False
    key: Key | None = None
    began: float = 0.0
    phase: str = "starting"
    stuck: bool = False
    compiles: bool = False
    is_killed: bool = False
    unread: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)


class LocalEngine:
    """As many workers as asked for, started when there is work for them.

    campaign: its frozen text. mark: letters in the names of all workers, before what makes each unique. launch: as
    Popen does, from a thread that lives as long as the workers are to: the kernel ends them with that thread. tell:
    hears of workers that compile, and of those that were killed while they started.
    """

    def __init__(
        self,
        campaign: str,
        paths: RunPaths,
        workers: int,
        timeout_s: float | None,
        mark: str = "",
        launch: Launch = subprocess.Popen,
        tell: Emit = lambda event, **facts: None,
    ) -> None:
        self._order = {
            "campaign": campaign,
            "output": os.path.abspath(paths.output),
        }
        self._paths = paths
        self.mark = mark
        self._launch = launch
        self._most = workers
        self._timeout_s = float("inf") if timeout_s is None else timeout_s
        self._workers: list[_Worker] = []
        self._waiting: deque[Key] = deque()
        self._selector = selectors.DefaultSelector()
        self._emit = tell
        self._compiling_since = 0.0
        self._in_vain = 0
        self._killed = 0
        self._not_before = 0.0
        self._polled = time.monotonic()
        self._unreaped: list[subprocess.Popen[bytes]] = []

    @property
    def room(self) -> int:
        busy = sum(worker.key is not None for worker in self._workers)
        return self._most - busy - len(self._waiting)

    def start(self, key: Key) -> None:
        self._waiting.append(key)
        self._hand_out()

    def poll(self, seconds: float) -> list[Outcome]:
        outcomes: list[Outcome] = []
        now = time.monotonic()
        nearest = min((worker.deadline for worker in self._workers), default=now + seconds)
        if self._not_before > now:
            nearest = min(nearest, self._not_before)
        for selected, events in self._selector.select(max(0.0, min(seconds, nearest - now))):
            worker: _Worker = selected.data
            if events & selectors.EVENT_WRITE:
                self._send(worker)
            if events & selectors.EVENT_READ:
                outcomes += self._receive(worker)
        now = self._allow_for_standstill(seconds)
        for worker in list(self._workers):
            if now > worker.deadline:
                outcomes += self._overdue(worker)
            elif worker.process.poll() is not None:  # a process that it has forked may hold its pipe open
                outcomes += self._receive(worker)
                if worker in self._workers:
                    outcomes += self._died(worker)
        self._hand_out()
        self._unreaped = [process for process in self._unreaped if process.poll() is None]
        return outcomes

    def _allow_for_standstill(self, usual: float) -> float:
        """Move all deadlines by the time in which this process was stopped, and return the time to compare them with.

        A later look at the clock would miss a stop in between.
        """
        now = time.monotonic()
        still = now - self._polled - usual
        self._polled = now
        if still > STANDSTILL_S:
            for worker in self._workers:
                worker.deadline += still
        return now

    def close(self) -> list[Key]:
        # also those of which nobody has said that they were begun: the news may lie in a pipe, unread
        in_hand = [worker.key for worker in self._workers if worker.key is not None]
        self._waiting.clear()
        for worker in self._workers:
            _kill(worker)
        for worker in list(self._workers):
            self._bury(worker)
        self._selector.close()
        return in_hand

    def _hand_out(self) -> None:
        idle = [worker for worker in self._workers if worker.ready and worker.key is None]
        while self._waiting and idle:
            worker = idle.pop()
            worker.key = self._waiting.popleft()
            worker.began = time.monotonic()
            worker.phase = "handed"  # until the worker says that it has it, and then until its attempt is recorded
            worker.deadline = worker.began + self._timeout_s
            self._tell(worker, {"task": str(worker.key)})
        if time.monotonic() < self._not_before:
            return
        starting = sum(not worker.ready for worker in self._workers)
        for _ in range(min(len(self._waiting) - starting, self._most - len(self._workers))):
            self._spawn()

    def _spawn(self) -> None:
        token = self.mark + secrets.token_hex(4)
        log = self._paths.logs / f"{socket.gethostname()}-{token}.log"
        environment = {**os.environ, **dict.fromkeys(THREAD_LIMITS, "1"), "HDF5_USE_FILE_LOCKING": "FALSE"}
        with _opened_log(log) as errors:
            process = self._launch(
                [sys.executable, "-P", "-m", "leeward.engines.worker_main", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the coordinator; and what it forks can be ended with it
            )
        commands, answers = process.stdin, process.stdout
        if commands is None or answers is None:
            raise LeewardError("a worker was started without pipes")
        worker = _Worker(process, commands.fileno(), answers.fileno(), log, time.monotonic() + START_LIMIT_S)
        os.set_blocking(worker.commands, False)
        os.set_blocking(worker.answers, False)
        self._workers.append(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        self._tell(worker, {**self._order, "token": token})

    def _tell(self, worker: _Worker, command: dict[str, Any]) -> None:
        """Never waits: a worker that was stopped may not read."""
        worker.unsent += (json.dumps(command) + "\n").encode()
        self._send(worker)

    def _send(self, worker: _Worker) -> None:
        listening = worker.commands in self._selector.get_map()
        try:
            while worker.unsent:
                del worker.unsent[: os.write(worker.commands, worker.unsent)]
        except BlockingIOError:
            if not listening:
                self._selector.register(worker.commands, selectors.EVENT_WRITE, worker)
            return
        except BrokenPipeError:  # it has died: its other pipe says so
            worker.unsent.clear()
        if listening:
            self._selector.unregister(worker.commands)

    def _receive(self, worker: _Worker) -> list[Outcome]:
        try:
            piece = os.read(worker.answers, 1 << 16)
        except BlockingIOError:
            return []
        if not piece:
            return self._died(worker)
        worker.unread += piece
        outcomes: list[Outcome] = []
        while (end := worker.unread.find(b"\n")) >= 0:
            line = bytes(worker.unread[:end])
            del worker.unread[: end + 1]
            try:
                answer = json.loads(line)
                outcomes += self._heard(worker, answer)
            except (ValueError, KeyError, TypeError) as error:  # never the end of more than this one
                return [*outcomes, *self._nonsense(worker, f"{error!r:.80} in {line!r:.80}")]
            if _is_about_compiling(answer):  # not within `try`: an error of the callback is not the worker's
                self._note_compiling(worker, "compiling" in answer)
        if len(worker.unread) > LONGEST_MESSAGE:
            outcomes += self._nonsense(worker, f"{len(worker.unread)} bytes without an end")
        return outcomes

    def _heard(self, worker: _Worker, answer: dict[str, Any]) -> list[Outcome]:
        key = worker.key
        if _is_about_compiling(answer):
            return []
        if "ready" in answer:
            worker.ready, worker.name, worker.deadline = True, answer["ready"], float("inf")
            self._in_vain = self._killed = 0
            return []
        (about,) = (answer[word] for word in ANSWERS if word in answer)
        if key is None or about != str(key):
            raise ValueError(f"{about} is not in its hand")
        if "taken" in answer:
            worker.phase = "recording"
            worker.deadline = time.monotonic() + STORE_LIMIT_S
        elif "began" in answer:
            worker.phase = "computing"
            worker.deadline = time.monotonic() + self._timeout_s
            return [Began(key, worker.name)]
        elif "computed" in answer:
            worker.phase = "storing"
            worker.deadline = time.monotonic() + STORE_LIMIT_S
        elif "stuck" in answer:
            worker.deadline = time.monotonic() + STORE_LIMIT_S
            worker.stuck = True
            return [Stuck(key, answer["message"])]
        elif "unstuck" in answer:
            worker.stuck = False
            return [Unstuck(key)]
        else:
            return self._finished(worker, key, answer)
        return []

    def _note_compiling(self, worker: _Worker, compiles: bool) -> None:
        """Tell when the first worker begins to compile, and when the last one has ended."""
        before = any(other.compiles for other in self._workers)
        worker.compiles = compiles
        after = any(other.compiles for other in self._workers)
        now = time.monotonic()
        if after and not before:
            self._compiling_since = now
            self._emit("compiling")
        elif before and not after:
            self._emit("compiled", seconds=round(now - self._compiling_since, 1))

    def _finished(self, worker: _Worker, key: Key, answer: dict[str, Any]) -> list[Outcome]:
        outcomes: list[Outcome] = [Unstuck(key)] if worker.stuck else []
        worker.key, worker.deadline, worker.stuck = None, float("inf"), False
        if "done" in answer:
            return [*outcomes, Done(key, answer["line"], worker.name)]
        facts = (answer["message"], answer["traceback"], answer["seconds"])
        return [*outcomes, Failed(key, "exception", *facts, worker.name)]

    def _overdue(self, worker: _Worker) -> list[Outcome]:
        _kill(worker)
        if worker.phase == "starting":
            return self._lost(worker, "died", f"a worker was not ready after {START_LIMIT_S:g} s")
        if worker.phase in ("recording", "storing"):
            return self._lost(worker, "storing", f"the disk did not answer for {STORE_LIMIT_S:g} s")
        seconds = time.monotonic() - worker.began
        message = f"killed after {seconds:.0f} s, past its time-out of {self._timeout_s:g} s"
        return self._lost(worker, "timed-out", message)

    def _nonsense(self, worker: _Worker, what: str) -> list[Outcome]:
        _kill(worker)
        return self._lost(worker, "died", f"its worker was killed, as it spoke nonsense: {what}")

    def _died(self, worker: _Worker) -> list[Outcome]:
        _kill(worker)  # should it only have closed its pipe; and what it has forked
        try:
            code = worker.process.wait(DEATH_S)
            how = _how(code)
            worker.is_killed = code < 0 and _signal_name(code) not in CRASHES
        except subprocess.TimeoutExpired:
            how = "it closed its pipe, and does not end"
        return self._lost(worker, "died", f"its worker died: {how}")

    def _lost(self, worker: _Worker, kind: str, message: str) -> list[Outcome]:
        """A worker is gone, with the task in its hand."""
        key, seconds = worker.key, time.monotonic() - worker.began
        tail = _tail(worker.log)  # before it is removed, which an empty one is
        self._bury(worker)
        if key is None:
            if not worker.ready:
                self._note_start_in_vain(worker, message, tail)
            return []
        outcomes: list[Outcome] = [Unstuck(key)] if worker.stuck else []
        return [*outcomes, Failed(key, kind, message, tail, seconds, worker.name)]

    def _note_start_in_vain(self, worker: _Worker, message: str, tail: str) -> None:
        """Pause after a worker that somebody has killed; raise LeewardError after too many that ended by themselves.

        Memory may be short for a while, and says nothing about the campaign. An import that fails does so always.
        """
        if worker.is_killed:
            pause = PAUSES_S[min(self._killed, len(PAUSES_S) - 1)]
            self._killed += 1
            self._not_before = time.monotonic() + pause
            self._emit("start-killed", message=message, again_s=pause, starts=self._killed)
            return
        self._in_vain += 1
        if self._in_vain >= STARTS_IN_VAIN:
            raise LeewardError(
                f"{STARTS_IN_VAIN} workers in a row ended before they were ready ({message}); the last one's log, "
                f"{worker.log}, ends: {tail[-500:] or 'it is empty'}"
            )

    def _bury(self, worker: _Worker) -> None:
        self._note_compiling(worker, False)
        try:
            worker.process.wait(REAP_S)
        except subprocess.TimeoutExpired:  # a disk that does not answer holds even killed processes
            self._unreaped.append(worker.process)
        for handle in (worker.answers, worker.commands):
            if handle in self._selector.get_map():
                self._selector.unregister(handle)
        for pipe in (worker.process.stdin, worker.process.stdout):
            if pipe is not None:
                pipe.close()
        self._workers.remove(worker)
        with contextlib.suppress(OSError):  # a disk that refuses is said elsewhere; the next run tidies up
            if worker.name:
                (self._paths.workers / f"{worker.name}.json").unlink(missing_ok=True)
            if worker.log.stat().st_size == 0:
                worker.log.unlink()


def _is_about_compiling(answer: dict[str, Any]) -> bool:
    return any(event in answer for event in COMPILE_EVENTS)


def _opened_log(path: Path) -> IO[bytes]:
    """What the worker prints goes there; to nowhere while the disk takes nothing."""
    try:
        return os.fdopen(open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")
    except OSError:
        return open(os.devnull, "wb")


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    name = _signal_name(code)
    return f"{name}{' (out of memory?)' if name == 'SIGKILL' else ''}"


def _signal_name(code: int) -> str:
    """Return the name of the signal that ended a process."""
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"


def _tail(log: Path) -> str:
    """What a worker said last; logs can be long."""
    try:
        with os.fdopen(open_regular(log), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return file.read().decode(errors="replace")
    except OSError as error:
        return f"(its log cannot be read: {error})"


def _kill(worker: _Worker) -> None:
    """A worker, and all that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker.process.pid, signal.SIGKILL)
    worker.process.kill()
