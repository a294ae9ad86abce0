"""The parent's side of the child process that writes a merged file."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from leeward.errors import StorageError
from leeward.store.isolated.reader_process import start_child

STALL_SECONDS = 600.0  # time limit while the disk does not respond
_BATCH = 1 << 16  # bytes: large writes save switches between the two processes


class WriterProcess:
    """A child process that writes frames to `path`. Every failure is a StorageError."""

    def __init__(self, path: Path, stall_seconds: float = STALL_SECONDS) -> None:
        self._path = path
        self._stall_seconds = stall_seconds
        self._stalled = False
        self._waiting_since: float | None = None  # only while this process waits for the child
        self._ended = threading.Event()
        self._lines: deque[str] = deque(maxlen=20)
        self._pending = bytearray()
        self._process = start_child("leeward.store.writer_main", path, stderr=subprocess.STDOUT)
        self._input, self._output = cast(BinaryIO, self._process.stdin), cast(BinaryIO, self._process.stdout)
        self._threads = [threading.Thread(target=task, daemon=True) for task in (self._listen, self._watch)]
        for thread in self._threads:
            thread.start()

    def send(self, frame: bytes) -> None:
        """Send a frame, possibly together with the next ones."""
        self._pending += frame
        if len(self._pending) >= _BATCH:
            self._flush()

    def finish(self) -> int:
        """Wait for the child, and return the number of results on disk."""
        self._flush()
        self._waiting_since = time.monotonic()
        self._process.wait()
        answer = self._answer()
        if self._process.returncode != 0 or "count" not in answer:
            raise self._failure()
        return int(answer["count"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self._input, self._output):
            with contextlib.suppress(BrokenPipeError):  # the child has ended; unsent data are dropped
                pipe.close()

    def _flush(self) -> None:
        left = memoryview(bytes(self._pending))
        self._pending.clear()
        self._waiting_since = time.monotonic()
        try:
            while left:
                left = left[os.write(self._input.fileno(), left) :]
                self._waiting_since = time.monotonic()
        except BrokenPipeError:
            self._process.wait()
            raise self._failure() from None
        finally:
            self._waiting_since = None

    def _listen(self) -> None:
        """Collect the answer of the child, and messages of libhdf5."""
        for line in self._output:
            self._lines.append(line.decode("utf-8", "replace").rstrip())

    def _watch(self) -> None:
        while not self._ended.wait(min(1.0, self._stall_seconds / 4)):
            since = self._waiting_since
            if since is not None and time.monotonic() - since > self._stall_seconds:
                self._stalled = True
                self._process.kill()
                return

    def _answer(self) -> dict[str, Any]:
        self._threads[0].join()  # wait for all of its output
        try:
            answer = json.loads(self._lines[-1])
        except (IndexError, ValueError):
            return {}
        return answer if isinstance(answer, dict) else {}

    def _failure(self) -> StorageError:
        error = self._answer().get("error")
        code = self._process.returncode
        if self._stalled:
            reason = f"nothing was written for {self._stall_seconds:g} s; is the disk still responding?"
        elif error is not None:
            plain = re.search(r"error message = '([^']+)'", str(error))
            reason = plain[1] if plain else str(error)
        elif code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            reason = f"the writer process was killed by {name}; is the disk full?"
        else:
            reason = f"the writer process ended with code {code}: {' '.join(self._lines)[-500:] or 'no message'}"
        return StorageError(f"{self._path}: cannot be written ({reason})")
