"""The coordinator's side of a worker process: its pipe, its log and its deadline."""

import contextlib
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from leeward.engines.work import FrozenWork
from leeward.errors import LeewardError
from leeward.files import open_regular
from leeward.store import Key, RunPaths

# signals of a crash, which processes do not send to each other
CRASHES = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS"}
REAP_S = 5.0  # time limit for a killed process to end
DEATH_S = 30.0  # time limit for a process to end after it has closed its pipe; the machine may be busy
TAIL = 4000  # bytes from the end of a log
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Launch = Callable[..., "subprocess.Popen[bytes]"]


class WorkerProcess:
    """A worker process, with the tasks that it computes.

    deadline: on the monotonic clock; then it is killed. tasks: unfinished ones, by the text of the key. at_disk: those
    that read or write the run directory. stuck: those whose writes the disk rejects. is_killed: another process has
    killed it. ending: the error that ends it, if it sent one. device: of the engine gpu.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, selector: selectors.BaseSelector) -> None:
        if process.stdin is None or process.stdout is None:
            raise LeewardError("a worker was started without pipes")
        self.process = process
        self.log = log
        self.deadline = float("inf")
        self.name = ""
        self.ready = False
        self.tasks: dict[str, Key] = {}
        self.at_disk: set[Key] = set()
        self.stuck: set[Key] = set()
        self.began = 0.0
        self.ending = ""
        self.device = ""
        self.compiles = False
        self.is_killed = False
        self.unread = bytearray()
        self._unsent = bytearray()
        self._selector = selector
        self._pipes = (process.stdin, process.stdout)
        self._commands, self._answers = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._commands, False)
        os.set_blocking(self._answers, False)
        selector.register(self._answers, selectors.EVENT_READ, self)

    def send(self, command: dict[str, Any]) -> None:
        """Send a command without waiting: a stopped worker does not read."""
        self._unsent += (json.dumps(command) + "\n").encode()
        self.flush()

    def flush(self) -> None:
        """Write as much of the commands as the pipe accepts now."""
        listening = self._commands in self._selector.get_map()
        try:
            while self._unsent:
                del self._unsent[: os.write(self._commands, self._unsent)]
        except BlockingIOError:
            if not listening:
                self._selector.register(self._commands, selectors.EVENT_WRITE, self)
            return
        except BrokenPipeError:  # the worker has died; its other pipe will report that
            self._unsent.clear()
        if listening:
            self._selector.unregister(self._commands)

    def receive(self) -> bool:
        """Read from the pipe; return False at its end."""
        try:
            piece = os.read(self._answers, 1 << 16)
        except BlockingIOError:
            return True
        self.unread += piece
        return bool(piece)

    def lines(self) -> list[bytes]:
        """Return the complete lines that were received since the last call."""
        *lines, self.unread = self.unread.split(b"\n")
        return [bytes(line) for line in lines]

    def kill(self) -> None:
        """Kill the worker and all its children."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()

    def cause_of_death(self) -> str:
        """Return the exit code or the signal that ended a process after it has closed its pipe."""
        self.kill()  # it may only have closed its pipe, or have children
        try:
            code = self.process.wait(DEATH_S)
        except subprocess.TimeoutExpired:
            return "it closed its pipe, but did not end"
        if code >= 0:
            return self.ending or f"exit code {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        self.is_killed = name not in CRASHES
        return f"{name}{' (out of memory?)' if name == 'SIGKILL' else ''}"

    def log_tail(self) -> str:
        """Return the end of its log."""
        try:
            with os.fdopen(open_regular(self.log), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
                return file.read().decode(errors="replace")
        except OSError as error:
            return f"(its log cannot be read: {error})"

    def clean_up(self, workers: Path) -> bool:
        """Close the pipes of a killed worker, and remove its heartbeat and an empty log; return whether it has ended.

        A killed process does not end while it waits for a disk that does not answer.
        """
        is_gone = True
        try:
            self.process.wait(REAP_S)
        except subprocess.TimeoutExpired:
            is_gone = False
        for pipe in self._pipes:
            if pipe.fileno() in self._selector.get_map():
                self._selector.unregister(pipe)
            pipe.close()
        with contextlib.suppress(OSError):  # the next run removes them
            if self.name:
                (workers / f"{self.name}.json").unlink(missing_ok=True)
            if self.log.stat().st_size == 0:
                self.log.unlink()
        return is_gone


@dataclass(frozen=True)
class Launcher:
    """Starts worker processes for a work.

    mark: part of the names of all workers. launch: like Popen; must run in a thread that outlives the workers, because
    the kernel ends them with that thread.
    """

    frozen: FrozenWork
    paths: RunPaths
    mark: str = ""
    launch: Launch = subprocess.Popen

    def start(self, selector: selectors.BaseSelector, variables: Mapping[str, str] | None = None) -> WorkerProcess:
        """Start a worker process. selector: watches its pipes. variables: for its environment."""
        token = self.mark + secrets.token_hex(4)
        log = self.paths.logs / f"{socket.gethostname()}-{token}.log"
        environment = {**os.environ, **dict.fromkeys(THREAD_LIMITS, "1"), "HDF5_USE_FILE_LOCKING": "FALSE"}
        environment |= variables or {}
        with _opened_log(log) as errors:
            process = self.launch(
                [sys.executable, "-P", "-m", "leeward.engines.worker_main", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the coordinator; children can be killed with it
            )
        worker = WorkerProcess(process, log, selector)
        output = os.path.abspath(self.paths.output)
        worker.send({**self.frozen._asdict(), "output": output, "token": token})
        return worker


def _opened_log(path: Path) -> IO[bytes]:
    """Open the log of a worker; its output is discarded if the disk rejects writes."""
    try:
        return os.fdopen(open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")
    except OSError:
        return open(os.devnull, "wb")
