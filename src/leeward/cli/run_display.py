"""The output of `leeward run`: a bar on a terminal, lines with time stamps elsewhere, or JSON."""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from leeward.cli.output import log
from leeward.cli.progress import LINE_EVERY_S
from leeward.cli.run_events import Pace, sentence
from leeward.compiling import on_compile
from leeward.events import OnEvent
from leeward.wording import json_text

MOST_FAILURES = 1000  # events that cannot be printed before printing ends; a full disk may get space again


@contextlib.contextmanager
def display(farms: Mapping[int, str], *, quiet: bool, as_json: bool) -> Iterator[OnEvent]:
    """Yield a callback that shows every event, including compilation. farms: names by farm_idx."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_compile(lambda begins: None))
        if as_json:
            yield _shielded(lambda event: print(json_text(event), flush=True))
        elif quiet or sys.stderr is None:
            yield lambda event: None
        elif sys.stderr.isatty():
            from leeward.cli.bars import RunBar

            yield _shielded(stack.enter_context(RunBar(farms)).on_event)
        else:
            yield _shielded(_lines())


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


def _lines() -> OnEvent:
    """Return a callback for a log: it prints a line for each notable event, and the state every few seconds."""
    pace, last = Pace(), time.monotonic()

    def on_event(event: dict[str, Any]) -> None:
        nonlocal last
        pace.on_event(event)
        text = sentence(event)
        now = time.monotonic()
        if event["event"] == "done" and (now - last >= LINE_EVERY_S or pace.done + pace.failed >= pace.total):
            last, text = now, str(pace)
        if text is not None:
            log(text)

    return on_event
