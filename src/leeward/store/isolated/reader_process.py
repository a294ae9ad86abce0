"""The parent's side of a reader process. It uses private pipes and never blocks on the child."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from typing import Any, ClassVar

from leeward.errors import LeewardError
from leeward.store.isolated.frames import INVALID, Frame, read_frame

_MOST_ANSWERS = 64  # in the queue; when it is full, the child waits
_START_SECONDS = 60.0  # time limit for the start of a child, even from a slow disk
_END_SECONDS = 5.0  # time limit for its end: a child that waits for a dead network disk cannot be killed


class ChildLostError(LeewardError):
    """The child has ended, hangs, or sent an invalid message."""

    def __init__(self, reason: str, *, is_timeout: bool = False, has_started: bool = True) -> None:
        super().__init__(reason)
        self.is_timeout = is_timeout
        self.has_started = has_started


def start_child(module: str, *arguments: object, stderr: int) -> "subprocess.Popen[bytes]":
    """Start a Python module in a child process, with pipes to its standard input and output.

    Its arguments are the process id of this process, and `arguments`.
    """
    # -P: do not import from the current folder, which may hold anything
    command = [sys.executable, "-P", "-m", module, str(os.getpid()), *map(str, arguments)]
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, **single, "HDF5_USE_FILE_LOCKING": "FALSE"},
        start_new_session=True,  # only the parent handles Ctrl-C
    )


class Child:
    """A process that reads files.

    Two threads write to it and read from it, so that a child that is suspended in the middle of a message does not
    block the parent. This works on every platform.
    """

    MODULE: ClassVar[str] = "leeward.store.reader_main"

    def __init__(self, seconds: float, memory_mb: int) -> None:
        self._process = start_child(self.MODULE, seconds, memory_mb, stderr=subprocess.DEVNULL)
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._answers: queue.Queue[Frame | str] = queue.Queue(_MOST_ANSWERS)  # the last is why the child ended
        self._has_started = False
        for work in (self._write, self._read):
            threading.Thread(target=work, name="leeward-reader", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, request: dict[str, Any]) -> None:
        self._requests.put(json.dumps(request).encode() + b"\n")

    def receive(self, seconds: float) -> Frame:
        """Return the next frame. Raise ChildLostError if none comes in time."""
        if not self._has_started:
            self._next(max(seconds, _START_SECONDS))  # its first message
            self._has_started = True
        return self._next(seconds)

    def close(self) -> int | None:
        """End the process and its threads. Return its exit code, or None if it could not be ended."""
        self._process.kill()
        self._requests.put(None)
        try:
            while not isinstance(self._answers.get(timeout=_END_SECONDS), str):
                pass  # empty the queue, so that the reading thread can end
            return self._process.wait(_END_SECONDS)
        except (queue.Empty, subprocess.TimeoutExpired):
            return None

    def _next(self, seconds: float) -> Frame:
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise ChildLostError(f"silent for {seconds:g} s", is_timeout=True, has_started=self._has_started) from None
        if isinstance(answer, str):
            self._answers.put(answer)  # `close` needs it too
            raise ChildLostError(answer, has_started=self._has_started)
        return answer

    def _write(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._process.stdin as pipe:  # the reading thread reports the child's end
            while (request := self._requests.get()) is not None:
                pipe.write(request)
                pipe.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            try:
                while True:
                    self._answers.put(read_frame(pipe))
            except EOFError:
                self._answers.put("it ended")
            except INVALID:
                self._answers.put("it sent an invalid message")
