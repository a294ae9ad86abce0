"""The state of a run: totals, the grid of farms and turbine types, workers, failures, notes, audit trail."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leeward.capacity import capacity_factor, yield_words
from leeward.pages import parts
from leeward.pages.charts import share_bar
from leeward.pages.html import Child, Markup, join, tag
from leeward.pages.parts import Links
from leeward.store import Key
from leeward.watch import MAKE_ROOM, Cell, FailedTask, Progress, Snapshot, WorkerSeen, best_cell, is_out_of_room, key_of
from leeward.wording import command, count, duration, json_text, run_command

MOST_CELLS = 3000  # most cells in the grid of one page
AUDIT_PAGE = 100  # events of the audit trail on one page
LONGEST_VALUE = 160  # characters of a value in the audit trail; longer ones are folded


def progress(seen: Progress, *, live: bool = False) -> Markup:
    """Return the progress of all tasks, as a bar and as a list of counts."""
    waiting = None if seen.missing is None else max(seen.missing - seen.failed - seen.running, 0)
    counts = {"done": seen.done, "failed": seen.failed, "running": seen.running}
    total = seen.expected if seen.expected is not None else seen.done
    share = f"{100 * seen.done / total:.1f}".removesuffix(".0") if total else "0"
    headline = count(seen.done, seen.NOUN)
    if seen.expected is not None:
        headline = f"{seen.done} of {seen.expected} {seen.NOUN}s"
    lines: list[tuple[Child, Child]] = [
        (parts.state_mark(state) if number else parts.state_words(state), number) for state, number in counts.items()
    ]
    to_do = tag("span", {"class": "state"}, f"{parts.MARKS['missing']} left to do")
    lines.append(("expected", "not known") if waiting is None else (to_do, waiting))
    if seen.rate_per_hour is not None and seen.is_running:
        lines.append(("rate", f"{seen.rate_per_hour:{'.0f' if seen.rate_per_hour >= 10 else '.2g'}} per hour"))
    if seen.missing and seen.owner is not None and seen.owner.state == "alive":
        left = "not known yet" if seen.seconds_left is None else duration(seen.seconds_left)
        lines.append(("time left", left))
    if seen.beyond:
        lines.append((f"not in the {'study' if seen.KIND == 'evaluations' else 'campaign'}", seen.beyond))
    if isinstance(seen, Snapshot) and seen.optimiser:
        lines.append(("optimiser", seen.optimiser))
    return parts.section(
        "progress",
        headline,
        tag("p", {"class": "share"}, tag("strong", None, f"{share} %"), f" {seen.activity}"),
        share_bar(counts, total, f"{share} % done"),
        parts.facts(lines),
        live=live,
    )


def grid(seen: Snapshot, links: Links, page: int = 0) -> Markup:
    """Return a grid of farms (rows) and turbine types (columns); a cell shows its progress and links to its tasks."""
    if not seen.farms:
        words = "There are no results yet, and the campaign is not known."
        return parts.section("grid", "Farms and turbine types", tag("p", None, words), live=links.is_live)
    cells = {(cell.farm_idx, cell.type_idx): cell for cell in seen.cells}
    rows = max(1, MOST_CELLS // max(1, len(seen.types)))
    farms = list(seen.farms)
    shown = farms[page * rows : (page + 1) * rows]
    pages = -(-len(farms) // rows)
    types = [tag("span", {"title": name}, f"t{kind}", tag("small", None, name)) for kind, name in seen.types.items()]
    header = ["farm", *types, "best, GWh", "installed, MW", "capacity factor"]
    numbers = range(len(header) - 3, len(header))
    lines = [_grid_line(seen, cells, farm, links) for farm in shown]
    legend = [
        tag("li", None, tag("span", {"class": f"swatch fill-{state}"}), f" {parts.state_words(state)}")
        for state in ("done", "failed", "running", "missing")
    ]
    rest = f"This is part 1 of {pages} of the grid; `leeward status` shows all."
    return parts.section(
        "grid",
        "Farms and turbine types",
        parts.table(header, lines, right=numbers, caption="results by farm and turbine type"),
        tag("ul", {"class": "key-list"}, *legend),
        [tag("p", None, remark) for remark in seen.remarks],
        parts.pager("/", page, pages, name="farms", words=("previous farms", "next farms")) if links.is_live else None,
        tag("p", None, rest) if not links.is_live and pages > 1 else None,
        live=links.is_live,
    )


def _grid_line(seen: Snapshot, cells: dict[tuple[int, int], Cell], farm: int, links: Links) -> list[Child]:
    row = [cells[farm, kind] for kind in seen.types]
    best = best_cell(row, farm in seen.by_capacity_factor)
    key = None if best is None else key_of(best.best_key or "")
    name = parts.link(links.cell(farm), f"{farm} {seen.farms[farm]}")
    cells_of_farm = [_cell(cell, links) for cell in row]
    if best is None or key is None:
        return [name, *cells_of_farm, "–", "–", "–"]
    found = parts.link(links.task(key), parts.gwh(best.best_aep_gwh), title=str(key))
    return [name, *cells_of_farm, found, parts.megawatts(best.installed_mw), parts.percent(best.capacity_factor)]


def _cell(cell: Cell, links: Links) -> Markup:
    expected = cell.done + cell.failed + cell.running if cell.expected is None else cell.expected
    counts = {"done": cell.done, "failed": cell.failed, "running": cell.running}
    known = [
        f"farm {cell.farm_idx}, type {cell.type_idx}: {cell.done} of {expected} done",
        f"{cell.failed} failed" if cell.failed else "",
        f"{cell.running} running" if cell.running else "",
        f"best {parts.gwh(cell.best_aep_gwh)} GWh" if cell.best_aep_gwh is not None else "",
        yield_words(cell.best_aep_gwh, cell.installed_mw),
    ]
    words = ", ".join(filter(None, known))
    marks = [
        tag("span", {"class": f"state-{state}"}, f" {parts.MARKS[state]}{number}")
        for state, number in (("failed", cell.failed), ("running", cell.running))
        if number
    ]
    text = f"{cell.done}/{expected}" if cell.expected is not None else str(cell.done)
    inner = [share_bar(counts, expected, words), tag("span", {"class": "cell-text"}, text, *marks)]
    address = links.cell(cell.farm_idx, cell.type_idx)
    return tag("span" if address is None else "a", {"class": "cell", "href": address, "title": words}, *inner)


def workers(seen: Progress, links: Links, most: int | None = None) -> Markup:
    """Return a table of the workers and their tasks; those that look hung come first."""
    if not seen.workers:
        return parts.section("workers", "Workers", tag("p", None, "There are no live workers."), live=links.is_live)
    order = sorted(seen.workers, key=lambda worker: (not worker.looks_hung, worker.host, worker.name))
    shown = order[:most]
    words = "{0.host}: {1}, {0.busy} busy, {0.hung} possibly hung"
    hosts = [tag("li", None, words.format(host, count(host.workers, "worker"))) for host in seen.hosts]
    header = ["worker", "task", "activity", "step", "best so far, GWh", "capacity factor", "for", "last heartbeat"]
    rows = [_worker_row(worker, seen, links) for worker in shown]
    more = len(order) - len(shown)
    return parts.section(
        "workers",
        count(len(seen.workers), "live worker"),
        tag("ul", {"class": "plain"}, *hosts) if len(hosts) > 1 else None,
        parts.table(header, rows, right=(3, 4, 5, 6), caption="live workers"),
        tag("p", None, parts.link("/workers", f"and {more} more")) if more > 0 else None,
        live=links.is_live,
    )


def _worker_row(worker: WorkerSeen, seen: Progress, links: Links) -> list[Child]:
    key = parts.key_or_none(worker.task or "")
    task = worker.task or "–" if key is None else parts.link(links.task(key), str(key))
    age = f"{duration(worker.age_s)} ago"
    sign = tag("strong", {"class": "state-failed"}, f"⚠ looks hung: {age}") if worker.looks_hung else age
    factor = None
    if isinstance(seen, Snapshot) and isinstance(key, Key):
        factor = capacity_factor(worker.best_aep_gwh, seen.installed_mw(*key[:2]))
    doing = (worker.phase or worker.state) if worker.task else worker.state
    since = "" if worker.task_s is None else duration(worker.task_s)
    step = worker.step if worker.task else ""
    return [worker.name, task, doing, step, parts.gwh(worker.best_aep_gwh), parts.percent(factor), since, sign]


def failures(seen: Progress, shown: Sequence[FailedTask], links: Links) -> Markup:
    """Return the failed tasks, with tracebacks and the command that retries them."""
    if not seen.failures:
        return parts.section("failures", "Failures", tag("p", None, "None."), live=links.is_live)
    more = len(seen.failures) - len(shown)
    retry = command(*run_command(seen.output, kind=seen.KIND), "--retry-failed")
    out_of_room = sum(failed.final and is_out_of_room(failed.message) for failed in seen.failures)
    no_room = f"In {count(out_of_room, 'task')} the turbines do not fit. {MAKE_ROOM}"
    return parts.section(
        "failures",
        f"{count(seen.failed, 'task')} failed",
        tag("p", None, no_room) if out_of_room else None,
        tag("p", None, "To retry failed tasks: ", parts.to_copy(retry)) if seen.failed > out_of_room else None,
        [failure(failed, seen, links) for failed in shown],
        tag("p", None, parts.link("/failures", f"and {more} more")) if more > 0 and links.is_live else None,
        tag("p", None, f"and {more} more, not shown here") if more > 0 and not links.is_live else None,
        live=links.is_live,
    )


def failure(failed: FailedTask, seen: Progress, links: Links) -> Markup:
    key = parts.key_or_none(failed.key)
    name = failed.key if key is None else parts.link(links.task(key), failed.key)
    state = "failed" if failed.final else "again"
    took = "" if failed.seconds is None else f", after {duration(failed.seconds)}"
    trace = parts.folded("traceback", tag("pre", None, failed.traceback), name=f"trace-{failed.key}")
    times = f"{failed.kind}, attempt {failed.attempts}{took}, {failed.time}, {failed.worker}"
    return tag(
        "article",
        {"class": "failure", "id": f"failure-{failed.key}"},
        tag("h3", None, name, " ", parts.state_mark(state)),
        tag("p", None, tag("strong", None, failed.message), tag("br"), tag("small", None, times)),
        trace if failed.traceback else None,
        _advice(failed, key, seen) if failed.final else None,
    )


def _advice(failed: FailedTask, key: Any, seen: Progress) -> Markup | None:
    """Return advice on a task that is not retried automatically."""
    if is_out_of_room(failed.message) or key is None:
        return tag("p", None, MAKE_ROOM) if is_out_of_room(failed.message) else None
    names = (name.removesuffix("_idx") for name in key._fields)
    only = " ".join(f"{name}={number}" for name, number in zip(names, key, strict=True))
    retry = command(*run_command(seen.output, kind=seen.KIND), "--retry-failed", "--only", only)
    return tag("p", None, "To retry: ", parts.to_copy(retry))


def remarks(seen: Progress) -> Markup:
    """Return a list of problems, and of commands to run next."""
    lines = [tag("li", None, line) for line in _remarks(seen)]
    return parts.section("remarks", "Notes", tag("ul", None, lines), live=True)


def _remarks(seen: Progress) -> Iterator[Child]:
    yield from seen.notes
    if seen.quarantined:
        yield f"{count(seen.quarantined, 'file')} in quarantine"
    if seen.unreadable_lines:
        yield f"{count(seen.unreadable_lines, 'line')} of the index cannot be read; the next run repairs the index"
    if seen.run and seen.output_exists and seen.output_results is not None:
        yield f"{seen.output}: {count(seen.output_results, 'result')}, as of the last merge"
    if seen.run and not seen.is_running and (seen.missing or 0) > seen.failed:
        yield join(["To resume: ", parts.to_copy(command(*run_command(seen.output, kind=seen.KIND)))])
    if seen.missing and not seen.run:
        yield join(["To list the missing results: ", parts.to_copy(command("missing", seen.path))])
    places = [*([seen.run] if seen.run else []), *([seen.output] if seen.output_exists else [])]
    yield join(["Counted, not verified; to verify: ", parts.to_copy(command("check", *places))])


# --- audit trail ------------------------------------------------------------------------------------------------------


def audit_trail(lines: Sequence[Mapping[str, Any]], page: int, links: Links) -> Markup:
    """Return one page of events, newest first, with their details. lines: all events, oldest first."""
    if not lines:
        return parts.section("audit", "Audit trail", tag("p", None, "There is no audit trail."), live=links.is_live)
    shown = lines[::-1][page * AUDIT_PAGE : (page + 1) * AUDIT_PAGE]
    pages = -(-len(lines) // AUDIT_PAGE)
    first = len(lines) - page * AUDIT_PAGE - 1  # numbers of events stay the same when new events arrive
    rows = [
        [_text(line.get("time")), _text(line.get("event")), _details(line, first - place)]
        for place, line in enumerate(shown)
    ]
    return parts.section(
        "audit",
        f"Audit trail: {len(lines)} events",
        parts.table(["time", "event", "details"], rows, caption="audit trail"),
        parts.pager("/audit", page, pages, words=("newer", "older")) if links.is_live else None,
        tag("p", None, f"Only the latest {len(shown)} are shown.") if pages > 1 and not links.is_live else None,
        live=links.is_live,
    )


def _details(event: Mapping[str, Any], number: int) -> Iterator[Markup]:
    """Yield the details of an event; long ones are folded."""
    known = ((name, value) for name, value in event.items() if name not in ("time", "event") and value is not None)
    for place, (name, value) in enumerate(known):
        text, title = _text(value), f"{name.replace('_', ' ')}: "
        if len(text) <= LONGEST_VALUE:
            yield tag("span", {"class": "fact"}, title, text)
        else:
            content = tag("pre", None, text)
            yield parts.folded(f"{title}{len(text)} characters", content, name=f"event-{number}-{place}")


def _text(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)
