"""The engine inline: tasks in this process, one after the other, for debugging."""

import os
import socket
import time

from leeward.campaign.execution import Execution
from leeward.compiling import compile_events
from leeward.engines.engine import Assignment, EngineKind, Outcome
from leeward.engines.worker import Worker, failure
from leeward.errors import StorageError
from leeward.store import Key


class InlineEngine(EngineKind):
    """Computes tasks in this process. It has no time limit, and a crash ends the run."""

    mark = ""

    def __init__(self, assignment: Assignment) -> None:
        self._on_outcome = assignment.on_outcome
        self._emit = assignment.emit
        self._next: Key | None = None
        name = f"{socket.gethostname()}-{os.getpid()}-inline"
        self._worker = Worker(assignment.work, assignment.paths, name)

    @classmethod
    def open(cls, assignment: Assignment) -> "InlineEngine":
        return cls(assignment)

    @classmethod
    def worker_count(cls, execution: Execution, tasks: int) -> int:
        return 1

    @property
    def room(self) -> int:
        return 0 if self._next else 1

    def start(self, key: Key) -> None:
        self._next = key

    def poll(self, seconds: float) -> list[Outcome]:
        key = self._next
        if key is None:
            time.sleep(seconds)
            return []
        began = time.monotonic()
        outcome: Outcome
        try:
            with compile_events(self._emit):
                outcome = self._worker.perform(key, self._on_outcome, lambda key, phase: None)
        except StorageError:  # raised by `on_outcome`
            raise
        except (Exception, SystemExit) as error:
            outcome = failure(key, error, began, self._worker.name)
        self._next = None
        return [outcome]

    def close(self) -> list[Key]:
        self._worker.close()
        return [self._next] if self._next else []
