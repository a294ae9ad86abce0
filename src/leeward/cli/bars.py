"""The progress bar on standard error. This module imports rich, which is slow."""

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from leeward.cli.output import COMPILING, progress_text
from leeward.wording import printable

EVERY_S = 0.1


class Bar(Progress):
    """A progress bar, with a row below it while the wake engine is compiled."""

    def __init__(self, **settings: Any) -> None:
        description, state = TextColumn("{task.description}"), TextColumn("{task.fields[state]}")
        # if rich redirected the streams, its control sequences would pass through `Printable`, which escapes them
        settings |= {"console": Console(stderr=True), "redirect_stdout": False, "redirect_stderr": False}
        super().__init__(description, BarColumn(), state, TimeElapsedColumn(), **settings)
        self._task = self.add_task("preparing", total=None, state="")
        self._last = 0.0
        self._compiling: TaskID | None = None

    def on_progress(self, stage: str, done: int, total: int) -> None:
        """Show the progress of a stage. total: 0 if not known."""
        now = time.monotonic()
        if now - self._last >= EVERY_S or done == total:
            self._last = now
            state = progress_text(done, total)
            self.update(self._task, description=printable(stage), completed=done, total=total or None, state=state)

    def on_compile(self, begins: bool) -> None:
        """Show or hide the row with the elapsed time of the compilation."""
        if self._compiling is None:
            self._compiling = self.add_task(COMPILING, total=None, state="")
        self.update(self._compiling, visible=begins, refresh=True)
