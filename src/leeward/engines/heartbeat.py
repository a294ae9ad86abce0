"""Heartbeats of workers in the run directory."""

import contextlib
import glob
import os
import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

from leeward.files import replace_file
from leeward.store import Owner, utc_now
from leeward.wording import json_text

EVERY_S = 2.0
_NAME = re.compile(r"[\w-][\w.-]{0,200}\Z")


def stamp() -> dict[str, Any]:
    """Return the time of a heartbeat, by the wall clock for other machines and the monotonic clock for this one."""
    return {"time": time.time(), "monotonic": time.monotonic(), "boot_id": Owner.myself().boot_id}


class Heartbeat:
    """A thread that writes the state of a worker every few seconds. It stops when the worker is stopped."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._worker = {"worker": name, "host": socket.gethostname(), "pid": os.getpid()}
        self._task: dict[str, Any] = {}
        self._changed = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self.begin(None)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and remove the file."""
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):  # the next run removes it
            self._path.unlink()

    def begin(self, task: str | None) -> None:
        """Show the task that begins; None if the worker is idle."""
        with self._changed:
            self._task = {"task": task, "since": utc_now(), "state": "starting" if task else "idle"}

    def show(self, **facts: Any) -> None:
        """Show more about the task. This is cheap, because it is called after every step."""
        with self._changed:
            self._task.update(facts)

    def _beat(self) -> None:
        while True:
            with self._changed:
                facts = {**self._worker, **self._task, **stamp(), "every_s": EVERY_S}
            with contextlib.suppress(OSError):  # storing results reports disk errors
                replace_file(self._path, json_text(facts).encode(), durable=False)
            if self._ended.wait(EVERY_S):
                return


class RemoteHeartbeats:
    """Writes the heartbeats of worker processes that cannot reach the run directory.

    mark: part of the names of all worker processes of this run.
    """

    def __init__(self, folder: Path, mark: str) -> None:
        self._folder = folder
        self._mark = mark
        self._shown: dict[str, set[str]] = {}

    def show(self, beats: list[dict[str, Any]], sender: str) -> None:
        """Write all heartbeats of one Dask worker, and remove those that it no longer sends."""
        known = {str(beat.get("worker")): beat for beat in beats if _NAME.match(str(beat.get("worker")))}
        with contextlib.suppress(OSError):  # storing results reports disk errors
            for name in self._shown.get(sender, set()) - known.keys():
                (self._folder / f"{name}.json").unlink(missing_ok=True)
            for name, beat in known.items():
                content = json_text({**beat, **stamp()}).encode()
                replace_file(self._folder / f"{name}.json", content, durable=False)
        self._shown[sender] = set(known)

    def hide(self, host: str | None = None) -> None:
        """Remove the heartbeats of a host or of all; those of live processes are written again."""
        names = "*" if host is None else glob.escape(host)
        with contextlib.suppress(OSError):  # the next run removes them
            for path in self._folder.glob(f"{names}-*-{self._mark}*.json"):
                path.unlink(missing_ok=True)
