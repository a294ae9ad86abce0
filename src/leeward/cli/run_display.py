"""The output of `leeward run`: a bar on a terminal, lines with time stamps elsewhere, or JSON."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leeward.cli.bars import Bar
from leeward.cli.output import COMPILING, compiled_text, log
from leeward.cli.progress import LINE_EVERY_S
from leeward.compiling import on_compile
from leeward.events import OnEvent
from leeward.wording import count, json_text, printable

MOST_FARMS = 12
MOST_FAILURES = 1000  # printing ends after this many errors, not at the first: a full disk may get space again


@contextlib.contextmanager
def display(farms: Mapping[int, str], noun: str = "layout", *, quiet: bool, as_json: bool) -> Iterator[OnEvent]:
    """Yield a callback that shows every event, including compilation.

    farms: names by farm_idx, whose best AEP is shown; empty for none. noun: of one result.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_compile(lambda begins: None))
        if as_json:
            yield _shielded(lambda event: print(json_text(event), flush=True))
        elif quiet or sys.stderr is None:
            yield lambda event: None
        elif sys.stderr.isatty():
            yield _shielded(stack.enter_context(RunBar(farms, noun)).on_event)
        else:
            yield _shielded(_lines(noun))


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


def _lines(noun: str) -> OnEvent:
    """Return a callback for a log: it prints a line for each notable event, and the state every few seconds."""
    pace, last = Pace(), time.monotonic()

    def on_event(event: dict[str, Any]) -> None:
        nonlocal last
        pace.on_event(event)
        text = sentence(event, noun)
        now = time.monotonic()
        if event["event"] == "done" and (now - last >= LINE_EVERY_S or pace.done + pace.failed >= pace.total):
            last, text = now, str(pace)
        if text is not None:
            log(text)

    return on_event


class RunBar(Bar):
    """The progress bar of a run, above a table of the best AEP of each farm. farms: names by farm_idx."""

    def __init__(self, farms: Mapping[int, str], noun: str) -> None:
        self._names = farms
        self._noun = noun
        self._pace = Pace()
        self._best: dict[int, tuple[float, str]] = {}
        super().__init__(refresh_per_second=4)

    def on_event(self, event: dict[str, Any]) -> None:
        """Show an event of the run."""
        kind, pace = event["event"], self._pace
        pace.on_event(event)
        if kind in ("compiling", "compiled"):
            self.on_compile(kind == "compiling")
        text = None if kind == "compiling" else sentence(event, self._noun)  # the bar has a row for it
        if text is not None:
            self.console.print(printable(text), highlight=False, markup=False)
        if kind == "done" and self._names and event.get("aep_gwh") is not None:
            farm = int(event["key"].partition("_")[0].removeprefix("farm"))
            if event["aep_gwh"] > self._best.get(farm, (0.0, ""))[0]:
                # replace the dict, because another thread may be drawing the table
                self._best = {**self._best, farm: (event["aep_gwh"], event["key"])}
        if kind in ("began", "done", "failed", "again"):
            done = pace.done + pace.failed
            self.update(self._task, description=f"{self._noun}s", total=pace.total, completed=done, state=str(pace))

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


class Pace:
    """Counts, rate and time left of a run. Compiling at the start does not count."""

    def __init__(self) -> None:
        self.total = self.done = self.failed = self._before = 0
        self._began = time.monotonic()

    def on_event(self, event: dict[str, Any]) -> None:
        if event["event"] == "began":
            self.total, self.failed = event["total"], event["failed"]
            self.done = self._before = event["done"]
            self._began = time.monotonic()
        elif event["event"] == "done":
            self.done += 1
        elif event["event"] == "failed":
            self.failed += 1
        elif event["event"] == "again":
            self.done -= event["lost"]
        elif event["event"] == "compiled" and not self.is_known:
            self._began = time.monotonic()

    @property
    def is_known(self) -> bool:
        """Return whether a task of this run has finished, so that the rate is known."""
        return self.done > self._before

    @property
    def _per_second(self) -> float:
        return (self.done - self._before) / max(time.monotonic() - self._began, 1e-9)

    def __str__(self) -> str:
        """Return the counts, the rate and the time left."""
        counts = f"{self.done} done, {self.failed} failed of {self.total}"
        left = self.total - self.done - self.failed
        if left <= 0:
            return counts
        if not self.is_known:
            return f"{counts}; time left not known yet"
        seconds = int(left / self._per_second)
        clock = f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return f"{counts}; {60.0 * self._per_second:.1f} a minute, {clock} left"


def sentence(event: dict[str, Any], noun: str = "layout") -> str | None:
    """Return the line for an event; None for one that only moves the bar. noun: of one result."""
    event = {**event, "noun": noun}
    template = SENTENCES.get(event["event"])
    if template is None or callable(template):
        return None if template is None else template(event)
    return template.format(**event)


def _host(event: dict[str, Any]) -> str:
    """Return the host of an event as a prefix; "" if the event has none."""
    return f"{event['host']}: " if "host" in event else ""


def _stopping(event: dict[str, Any]) -> str:
    if not event["in_hand"]:
        return "stopping when this step is done; a second Ctrl-C or SIGTERM stops it now"
    tasks, limit = count(event["in_hand"], "running task"), f"{event['grace_s']:g} s"
    return f"stopping: waiting for {tasks}, at most {limit}; a second Ctrl-C or SIGTERM stops it now"


def _began(event: dict[str, Any]) -> str:
    left = event["total"] - event["done"] - event["failed"]
    known = f", {event['failed']} failed before" if event["failed"] else ""
    noun = "GPU" if event["engine"] == "gpu" else "worker"
    by = count(event["workers"], noun) if event["workers"] else f"engine {event['engine']}"
    return f"{event['campaign']}: {left} of {count(event['total'], event['noun'])} to compute{known}, {by}"


def _joined(event: dict[str, Any]) -> str | None:
    """Return a line on where results are stored: one for all hosts, and one for each host that cannot store them."""
    if not event["is_news"]:
        return None
    if event["stores"]:
        return f"workers store their results in {event['run']} themselves: {event['host']} sees the probe file there"
    return (
        f"{event['host']} does not see the run directory ({event['reason']}): it sends its results to this process, "
        "which stores them"
    )


def _adopted(event: dict[str, Any]) -> str:
    parts = [f"{event['adopted']} results adopted"]
    if event["recomputed"]:
        parts.append(f"{event['recomputed']} of them with their AEP recomputed")
    if event["present"]:
        parts.append(f"{event['present']} existed before")
    if event["not_the_best"]:
        parts.append(f"{event['not_the_best']} left out, because a better one has the same key")
    if event["violating"]:
        worst = max(event["violating"].values())
        parts.append(f"{len(event['violating'])} violate constraints, by up to {worst:.3g} m (leeward check --deep)")
    for what in ("refused", "bad_files"):
        if event[what]:
            parts.append(f"{len(event[what])} {what.replace('_', ' ')}, for example {event[what][0]}")
    if event["disagreeing"]:
        parts.append(f"{len(event['disagreeing'])} had an AEP that differs from the computed one, which is used")
    disagreements = (
        f"{one['file']}: {one['key']}: {one['claimed_aep_gwh']:.9g} GWh stored, {one['aep_gwh']:.9g} GWh computed"
        for one in event["disagreeing"]
    )
    return "\n  ".join(["; ".join(parts), *disagreements])


SENTENCES: dict[str, str | Callable[[dict[str, Any]], str | None]] = {
    "waiting": "{message}",
    "file-system": "{message}",
    "note": "{message}",
    "put-aside": "the old run is now {run}",
    "checking": "checking {shards} results of an earlier run",
    "checked": "{valid} results of an earlier run are valid, {bad} files are not",
    "adopting": lambda event: f"adopting results from {', '.join(event['sources'])}",
    "adopted": _adopted,
    "began": _began,
    "compiling": lambda event: _host(event) + COMPILING,
    "compiled": lambda event: _host(event) + compiled_text(event["seconds"]),
    "not-encrypted": "warning: {address} is not encrypted: anyone who reaches its port can run programs as its user; "
    "see docs/cluster.md",
    "joined": _joined,
    "unfit": "the Dask worker {worker} gets no tasks: {reason}",
    "lost": lambda event: (
        f"the Dask worker {event['worker']} on {event['host']} is gone, with {count(event['tasks'], 'task')} assigned"
    ),
    "alone": lambda event: (
        f"{event['address']} has had no worker for {event['seconds']} s; {event['expected'] or 'none is expected'}"
    ),
    "not-closed": lambda event: (
        f"the cluster did not close cleanly ({event['message']}); remaining jobs end by themselves: "
        f"{', '.join(event['jobs']) or 'none known'}"
    ),
    "slurm-refuses": "a SLURM command failed ({message}); retrying in {again_s:g} s",
    "jobs-in-vain": "{message}; other jobs are working, and the next one is submitted in {again_s:g} s",
    "start-killed": "a worker did not start: {message}; the next one starts in {again_s:g} s",
    "engine-lost": "{message}; merging the stored results",
    "failed": "{key} failed: {message}",
    "retry": lambda event: (  # "batch-lost" has told of all tasks of a batch
        "{key}: {message}; retrying".format(**event) if event.get("alone", True) else None
    ),
    "batch-lost": "{message}; retrying them in smaller batches",
    "quarantined": "{file}: {verdict}, {reason}; moved to {where}",
    "storage-refuses": "the disk rejects writes ({message}); no new tasks start until it accepts them",
    "storage-accepts": "the disk accepts writes again, after {seconds:.0f} s",
    "stopping": _stopping,
    "stopped": "stopped; all finished results are stored",
    "again": lambda event: (
        f"{count(event['lost'], 'result')} damaged or gone; recomputing {count(event['tasks'], 'task')}"
    ),
    "merging": "merging {results} results",
    "merged": "{output}: {results} results",
}
