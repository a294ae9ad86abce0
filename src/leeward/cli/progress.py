"""How far a command is: a bar on a terminal, a line now and then elsewhere, on standard error."""

import contextlib
import sys
import time
from collections.abc import Iterator

from leeward.cli.compiling import CompilingRow
from leeward.compiling import on_compile
from leeward.events import OnProgress
from leeward.wording import printable

LINE_EVERY_S = 10.0
BAR_EVERY_S = 0.1


@contextlib.contextmanager
def progress(quiet: bool = False) -> Iterator[OnProgress]:
    """A function that is told how far things are, and shows it."""
    if quiet or sys.stderr is None:  # closed before Python started
        with on_compile(lambda begins: None):
            yield lambda what, done, total: None
    elif sys.stderr.isatty():
        with _bar() as tell:
            yield tell
    else:
        yield _Lines().tell


@contextlib.contextmanager
def _bar() -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    last = 0.0
    # not redirected: rich would write its control sequences to our stream, which escapes them
    bar, compiling = Progress(*columns), CompilingRow()
    live = Live(
        get_renderable=lambda: compiling.below(bar),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with live, on_compile(compiling.note):
        shown = bar.add_task("looking", total=None, state="")

        def tell(what: str, done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= BAR_EVERY_S or done == total:
                last = now
                bar.update(
                    shown, description=printable(what), completed=done, total=total or None, state=_state(done, total)
                )

        yield tell


def _state(done: int, total: int) -> str:
    return f"{done} of {total}" if total else str(done)


class _Lines:
    """Nothing for what is done within a few seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def tell(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= LINE_EVERY_S:
            self._last = now
            print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {what}: {_state(done, total)}", file=sys.stderr, flush=True)
