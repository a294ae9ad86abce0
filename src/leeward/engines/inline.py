"""Tasks in this very process, one after the other: for debugging, and where processes cannot be started."""

import os
import socket
import time
import traceback
from collections.abc import Callable

from leeward.campaign import Campaign
from leeward.compiling import compile_events
from leeward.engines.compute import perform
from leeward.engines.heartbeat import Heartbeat
from leeward.engines.outcomes import Done, Failed, Outcome, Stuck, Unstuck
from leeward.errors import StorageError
from leeward.events import Emit
from leeward.store import Key, RunPaths

TRY_AGAIN_S = 1.0


class InlineEngine:
    """No time-out, and a crash is a crash of everything; what was stored stays stored.

    hear: is told at once of a disk that takes nothing; raises when it is time to give up. emit: called with the events
    of compiling.
    """

    mark = ""

    def __init__(
        self,
        campaign: Campaign,
        paths: RunPaths,
        hear: Callable[[Outcome], None],
        emit: Emit = lambda event, **facts: None,
    ) -> None:
        self._emit = emit
        self._campaign = campaign
        self._paths = paths
        self._hear = hear
        self._next: Key | None = None
        self._name = f"{socket.gethostname()}-{os.getpid()}-inline"
        self._heart = Heartbeat(paths.workers / f"{self._name}.json", self._name)
        self._heart.start()

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

        def trouble(error: StorageError) -> None:
            nonlocal stuck
            stuck = True
            self._hear(Stuck(key, str(error)))
            time.sleep(TRY_AGAIN_S)

        began = time.monotonic()
        self._heart.begin(str(key))
        try:
            with compile_events(self._emit):
                line = perform(self._campaign, self._paths, key, self._name, self._report, trouble, self._heart.watch)
        except StorageError:
            raise
        except (Exception, SystemExit) as error:
            self._next = None
            self._heart.rest()
            shown = "".join(traceback.format_exception(error))
            return [Failed(key, "exception", last_line(error), shown, time.monotonic() - began, self._name)]
        self._next = None
        self._heart.rest()
        return [*([Unstuck(key)] if stuck else []), Done(key, line, self._name)]

    def _report(self, what: str) -> None:
        self._heart.say(state="storing" if what == "computed" else "computing")

    def close(self) -> list[Key]:
        self._heart.stop()
        return [self._next] if self._next else []


def last_line(error: BaseException) -> str:
    """What a traceback ends with."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
