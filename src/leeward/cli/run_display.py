"""Progress of `leeward run`: a bar on a terminal, lines with time stamps elsewhere, or JSON."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from leeward.cli.output import log
from leeward.cli.progress import LINE_EVERY_S
from leeward.cli.run_events import Pace, sentence
from leeward.compiling import on_compile
from leeward.events import OnEvent
from leeward.wording import json_text

if TYPE_CHECKING:
    from leeward.campaign import Campaign

MOST_FAILURES = 1000  # failures to show an event: a full disk under the log may get room again


@contextlib.contextmanager
def display(campaign: "Campaign", *, quiet: bool, as_json: bool) -> Iterator[OnEvent]:
    """Yield a callback that shows every event, those of compiling included."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_compile(lambda begins: None))
        if as_json:
            yield _shielded(lambda event: print(json_text(event), flush=True))
        elif quiet or sys.stderr is None:
            yield lambda event: None
        elif sys.stderr.isatty():
            from leeward.cli.bars import RunBar

            yield _shielded(stack.enter_context(RunBar(campaign.farms)).on_event)
        else:
            yield _shielded(_Lines().on_event)


def _shielded(show: OnEvent) -> OnEvent:
    """Return `show` with its errors ignored: a full disk under a log or a closed pipe must not stop the run."""
    failures = 0

    def on_event(event: dict[str, Any]) -> None:
        nonlocal failures
        if failures <= MOST_FAILURES:
            try:
                show(event)
            except (OSError, ValueError):  # ValueError: the stream is closed
                failures += 1

    return on_event


class _Lines:
    """Lines for a log: one for each notable event, and the state every few seconds."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._last = time.monotonic()

    def on_event(self, event: dict[str, Any]) -> None:
        self._pace.on_event(event)
        text = sentence(event)
        if text is None and event["event"] == "done":
            now = time.monotonic()
            finished = self._pace.done + self._pace.failed >= self._pace.total
            if now - self._last >= LINE_EVERY_S or finished:
                self._last = now
                text = str(self._pace)
        if text is not None:
            log(text)
