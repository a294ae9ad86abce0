"""Say on standard error that the wake engine is being compiled: with the elapsed time on a terminal, else in lines.

`leeward run` has a display of its own; this is for all other commands.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from leeward.cli.wording import is_terminal, send_control
from leeward.compiling import on_compile

if TYPE_CHECKING:
    from rich.console import RenderableType

TEXT = "compiling the wake engine (once on this machine)"
EVERY_S = 1.0
OVER_S = 3.0  # without another kernel: all are compiled


def compiled_text(seconds: float) -> str:
    """Return the line that follows at the end."""
    return f"compiled the wake engine (once on this machine) in {seconds:.0f} s"


@contextlib.contextmanager
def compiling_shown() -> Iterator[None]:
    """Show it within; nothing where nothing is compiled."""
    if sys.stderr is None:
        yield
        return
    shown = _Shown()
    with on_compile(shown.note):
        try:
            yield
        finally:
            shown.end()


class _Shown:
    """One line while compiling, and one when no kernel was compiled for a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._terminal = is_terminal(sys.stderr)
        self._began: float | None = None
        self._seconds = 0.0
        self._over = threading.Timer(OVER_S, self.end)
        self._stop = threading.Event()

    def note(self, begins: bool) -> None:
        self._over.cancel()
        with self._lock:
            if begins:
                self._begin()
            elif self._began is not None:
                self._stop.set()
                self._seconds += time.monotonic() - self._began
                self._began = None
                self._write("")
                self._over = threading.Timer(OVER_S, self.end)
                self._over.daemon = True
                self._over.start()

    def end(self) -> None:
        """Say how long it took, if it is over."""
        self._over.cancel()
        with self._lock:
            self._stop.set()
            if self._began is None and self._seconds > 0.0:
                self._write(compiled_text(self._seconds), "\n")
                self._seconds = 0.0

    def _begin(self) -> None:
        self._began = time.monotonic()
        if self._terminal:
            self._stop = threading.Event()
            threading.Thread(target=self._tick, args=(self._stop,), daemon=True).start()
        elif self._seconds == 0.0:
            self._write(TEXT, "\n")

    def _tick(self, stop: threading.Event) -> None:
        while True:
            with self._lock:
                if stop.is_set() or self._began is None:
                    return
                self._write(f"{TEXT} ... {self._seconds + time.monotonic() - self._began:.0f} s")
            stop.wait(EVERY_S)

    def _write(self, text: str, end: str = "") -> None:
        """Write a line over the last one on a terminal, below it elsewhere."""
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more, which must not end the computation
            if self._terminal:
                send_control(sys.stderr, "\r\x1b[K")
            elif text:
                text = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}"
            print(text, end=end, file=sys.stderr, flush=True)


class CompilingRow:
    """A line below a bar, with the elapsed time, while the wake engine is being compiled."""

    def __init__(self) -> None:
        from rich.progress import Progress, TextColumn, TimeElapsedColumn

        self._row = Progress(TextColumn("{task.description}"), TimeElapsedColumn())
        self._is_shown = False

    def note(self, begins: bool) -> None:
        """Begin, or go on after a pause; or end."""
        if not self._row.tasks:
            self._row.add_task(TEXT, total=None)
        self._is_shown = begins

    def below(self, bar: "RenderableType") -> "RenderableType":
        """Return the bar, with the line below it while compiling."""
        from rich.console import Group

        return Group(bar, self._row) if self._is_shown else bar
