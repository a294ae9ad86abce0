"""Progress bars on standard error. This module imports rich, which is slow."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from leeward.cli.output import COMPILING, progress_text
from leeward.cli.run_events import Pace, sentence
from leeward.wording import printable

MOST_FARMS = 12
EVERY_S = 0.1


class Bar(Progress):
    """A progress bar, with a row below it while the wake engine is compiled."""

    def __init__(self, **settings: Any) -> None:
        description, state = TextColumn("{task.description}"), TextColumn("{task.fields[state]}")
        # if redirected, rich would write control sequences to our stream, which escapes them
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
        """Show the row, with the elapsed time, or hide it."""
        if self._compiling is None:
            self._compiling = self.add_task(COMPILING, total=None, state="")
        self.update(self._compiling, visible=begins, refresh=True)


class RunBar(Bar):
    """The progress bar of a run, above a table of the best AEP of each farm. farms: names by farm_idx."""

    def __init__(self, farms: Mapping[int, str]) -> None:
        self._names = farms
        self._pace = Pace()
        self._best: dict[int, tuple[float, str]] = {}
        super().__init__(refresh_per_second=4)

    def on_event(self, event: dict[str, Any]) -> None:
        """Show an event of the run."""
        kind, pace = event["event"], self._pace
        pace.on_event(event)
        if kind in ("compiling", "compiled"):
            self.on_compile(kind == "compiling")
        text = None if kind == "compiling" else sentence(event)  # shown as a row of its own
        if text is not None:
            self.console.print(printable(text), highlight=False, markup=False)
        if kind == "done" and event.get("aep") is not None:
            farm = int(event["key"].partition("_")[0].removeprefix("farm"))
            if event["aep"] > self._best.get(farm, (0.0, ""))[0]:
                # a copy, because another thread may be drawing the table
                self._best = {**self._best, farm: (event["aep"], event["key"])}
        if kind in ("began", "done", "failed", "again"):
            done = pace.done + pace.failed
            self.update(self._task, description="layouts", total=pace.total, completed=done, state=str(pace))

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bar and the table."""
        yield from super().get_renderables()
        shown = sorted(self._best.items())
        if shown:
            table = Table("farm", "best so far", "", box=None, padding=(0, 2))
            for farm, (aep, key) in shown[:MOST_FARMS]:
                table.add_row(Text(printable(f"{farm} {self._names.get(farm, '')}")), f"{aep:.2f} GWh", key)
            if len(shown) > MOST_FARMS:
                table.add_row(f"and {len(shown) - MOST_FARMS} more", "", "")
            yield table

    def stop(self) -> None:
        """End the display and clear the table, which the summary repeats."""
        self._best = {}
        super().stop()
