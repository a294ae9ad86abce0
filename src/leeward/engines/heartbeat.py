"""Signs of life of a worker, for whoever looks at the run directory."""

import contextlib
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

from leeward.files import replace_file
from leeward.layout import Progress
from leeward.store import Owner, utc_now
from leeward.wording import json_text

EVERY_S = 2.0


def stamp() -> dict[str, Any]:
    """Return the time of a heartbeat: for other machines, and by a clock of this one that never jumps."""
    return {"time": time.time(), "monotonic": time.monotonic(), "boot_id": Owner.myself().boot_id}


class Heartbeat:
    """A thread that says every few seconds what the worker is doing. It stands still when the worker does."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._facts: dict[str, Any] = {"worker": name, "host": socket.gethostname(), "pid": os.getpid()}
        self._changed = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self.rest()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No more beats; what was said last is removed."""
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):  # one that stays is tidied away by the next run
            self._path.unlink()

    def begin(self, key: str) -> None:
        """A task is in hand."""
        self.say(task=key, since=utc_now(), state="starting", step=0, phase="", best_aep_gwh=None)

    def rest(self) -> None:
        """None is."""
        self.say(task=None, since=utc_now(), state="idle", step=0, phase="", best_aep_gwh=None)

    def watch(self, progress: Progress) -> None:
        """Called by the optimiser after every step: cheap."""
        best = progress.best_aep_gwh
        self.say(step=progress.step, phase=progress.phase, best_aep_gwh=best if best == best else None)

    def say(self, **facts: Any) -> None:
        with self._changed:
            self._facts.update(facts)

    def _beat(self) -> None:
        while True:
            with self._changed:
                facts = {**self._facts, **stamp(), "every_s": EVERY_S}
            with contextlib.suppress(OSError):  # a full or lost disk is said by whoever stores results
                replace_file(self._path, json_text(facts).encode(), durable=False)
            if self._ended.wait(EVERY_S):
                return
