"""The parent's side of a reader process. It uses private pipes and never blocks on the child."""

import json
import os
import queue
import subprocess
import sys
import threading
from typing import Any, ClassVar

from leeward.errors import LeewardError
from leeward.store.isolated.frames import Frame, decode, frame_length

_PIECE = 1 << 16
_PIECES = 8  # most pieces that wait here; then the child waits
_START_SECONDS = 60.0  # for a child to start, even from a slow disk
_END_SECONDS = 5.0  # a child that waits for a dead network disk cannot be killed


class ChildLostError(LeewardError):
    """The child has ended, hangs, or sent an invalid message."""

    def __init__(self, reason: str, *, is_timeout: bool = False, has_started: bool = True) -> None:
        super().__init__(reason)
        self.is_timeout = is_timeout
        self.has_started = has_started


class Child:
    """A process that reads files.

    Two threads do what may block, writing to it and reading from it, so that a child suspended in the middle of a
    message does not block the parent. This works on every platform.
    """

    MODULE: ClassVar[str] = "leeward.store.reader_main"

    def __init__(self, seconds: float, memory_mb: int) -> None:
        # -P: do not import from the current folder, which may hold anything
        command = [sys.executable, "-P", "-m", self.MODULE, str(os.getpid()), str(seconds), str(memory_mb)]
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **single, "HDF5_USE_FILE_LOCKING": "FALSE"},
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for the parent
        )
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._pieces: queue.Queue[bytes] = queue.Queue(_PIECES)
        self._buffer = bytearray()
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
            self._next(max(seconds, _START_SECONDS))  # its greeting
            self._has_started = True
        return self._next(seconds)

    def close(self) -> int | None:
        """End the process and its threads. Return its exit code, or None if it could not be ended."""
        self._process.kill()
        self._requests.put(None)
        try:
            while self._pieces.get(timeout=_END_SECONDS):
                pass  # lets the reading thread reach the end
            return self._process.wait(_END_SECONDS)
        except (queue.Empty, subprocess.TimeoutExpired):
            return None

    def _next(self, seconds: float) -> Frame:
        try:
            while (length := frame_length(self._buffer)) is None or len(self._buffer) < length:
                self._fill(seconds)
            frame = decode(bytes(self._buffer[:length]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._lost("it answered nonsense") from error
        del self._buffer[:length]
        return frame

    def _fill(self, seconds: float) -> None:
        try:
            piece = self._pieces.get(timeout=seconds)
        except queue.Empty:
            raise self._lost(f"silent for {seconds:g} s", is_timeout=True) from None
        if not piece:
            self._pieces.put(piece)  # later calls see the end too
            raise self._lost("it ended")
        self._buffer += piece

    def _lost(self, reason: str, *, is_timeout: bool = False) -> ChildLostError:
        return ChildLostError(reason, is_timeout=is_timeout, has_started=self._has_started)

    def _write(self) -> None:
        assert self._process.stdin is not None
        with self._process.stdin as pipe:
            while (request := self._requests.get()) is not None:
                left = memoryview(request)
                try:
                    while left:
                        left = left[pipe.write(left) or 0 :]
                except OSError:
                    return  # the child has ended; the reading thread reports it

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            while piece := pipe.read(_PIECE):
                self._pieces.put(piece)
        self._pieces.put(b"")
