"""The engine inline: tasks in this process, one after the other, for debugging."""

import os
import socket
import time
import traceback

from leeward.campaign.execution import Execution
from leeward.compiling import compile_events
from leeward.engines.engine import Assignment, Done, EngineKind, Failed, Outcome, Stuck, Unstuck
from leeward.engines.worker import Worker, last_line
from leeward.errors import StorageError
from leeward.store import Key

TRY_AGAIN_S = 1.0


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
        stuck = False

        def on_rejected(error: StorageError) -> None:
            nonlocal stuck
            stuck = True
            self._on_outcome(Stuck(key, str(error)))
            time.sleep(TRY_AGAIN_S)

        began, name = time.monotonic(), self._worker.name
        outcome: Outcome
        try:
            with compile_events(self._emit):
                outcome = Done(key, self._worker.perform(key, lambda stage: None, on_rejected), name)
        except StorageError:
            raise
        except (Exception, SystemExit) as error:
            shown = "".join(traceback.format_exception(error))
            outcome = Failed(key, "exception", last_line(error), shown, time.monotonic() - began, name)
        self._next = None
        return [Unstuck(key), outcome] if stuck and isinstance(outcome, Done) else [outcome]

    def close(self) -> list[Key]:
        self._worker.close()
        return [self._next] if self._next else []
