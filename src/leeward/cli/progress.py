"""Progress of commands on standard error, and a line while the wake engine is compiled.

A terminal shows a bar or a line with the elapsed time. Other streams get a line every few seconds.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from leeward.cli.output import COMPILING, compiled_text, is_terminal, log, progress_text, send_control
from leeward.compiling import on_compile
from leeward.events import OnProgress

LINE_EVERY_S = 10.0
COMPILING_EVERY_S = 1.0
COMPILED_AFTER_S = 3.0  # compilation has ended if no other kernel starts within this time


@contextlib.contextmanager
def progress(quiet: bool = False) -> Iterator[OnProgress]:
    """Yield a callback that shows the progress of the command."""
    if quiet or sys.stderr is None:  # stderr was closed before Python started
        with on_compile(lambda begins: None):
            yield lambda stage, done, total: None
    elif sys.stderr.isatty():
        from leeward.cli.bars import Bar

        with Bar(transient=True) as bar, on_compile(bar.on_compile):
            yield bar.on_progress
    else:
        yield _lines()


def _lines() -> OnProgress:
    """Return a callback that logs a line every few seconds. A short command logs nothing."""
    last = time.monotonic()

    def on_progress(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LINE_EVERY_S:
            last = now
            log(f"{stage}: {progress_text(done, total)}")

    return on_progress


@contextlib.contextmanager
def compiling_shown() -> Iterator[None]:
    """Show a line while kernels are compiled within this context."""
    if sys.stderr is None:
        yield
        return
    shown = _CompilingLine()
    with on_compile(shown.on_compile):
        try:
            yield
        finally:
            shown.end()


class _CompilingLine:
    """A line while kernels are compiled, and a line with the total time after the last one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._terminal = is_terminal(sys.stderr)
        self._began: float | None = None  # when the current kernel started to compile
        self._ended = self._seconds = 0.0
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._is_over = threading.Event()

    def on_compile(self, begins: bool) -> None:
        """Record that the compilation of a kernel begins or ends."""
        with self._lock:
            now = time.monotonic()
            if begins:
                self._began = now
                self._show()
                if self._ticker.ident is None:
                    self._ticker.start()
            elif self._began is not None:
                self._seconds += now - self._began
                self._began, self._ended = None, now
                self._write("")

    def end(self) -> None:
        """End the display. Print how long compilation took."""
        self._is_over.set()
        with self._lock:
            self._conclude()

    def _tick(self) -> None:
        while not self._is_over.wait(COMPILING_EVERY_S):
            with self._lock:
                if self._terminal and self._began is not None:
                    self._show()
                elif time.monotonic() - self._ended >= COMPILED_AFTER_S:
                    self._conclude()

    def _show(self) -> None:
        if self._terminal and self._began is not None:
            self._write(f"{COMPILING} ... {self._seconds + time.monotonic() - self._began:.0f} s")
        elif self._seconds == 0.0:
            self._write(COMPILING)

    def _conclude(self) -> None:
        if self._began is None and self._seconds > 0.0:
            self._write(compiled_text(self._seconds), "\n")
            self._seconds = 0.0

    def _write(self, text: str, end: str = "") -> None:
        """Overwrite the last line on a terminal, or add a line elsewhere."""
        with contextlib.suppress(OSError, ValueError):  # a closed stream must not end the computation
            if self._terminal:
                write_over(text, end)
            elif text:
                log(text)


def write_over(text: str, end: str = "") -> None:
    """Overwrite the last line of the terminal at standard error."""
    send_control(sys.stderr, "\r\x1b[K")
    print(text, end=end, file=sys.stderr, flush=True)
