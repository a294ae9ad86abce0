"""Make the report of a run directory or a file of results."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leeward import __version__
from leeward.campaign import Campaign
from leeward.campaign.remarks import installed_of
from leeward.capacity import capacity_factor
from leeward.charts import loss_range
from leeward.deprecation import warn_renamed
from leeward.errors import LeewardError
from leeward.events import OnEvent
from leeward.pages import frame, overview, settings, task, tasks
from leeward.pages.html import Child, Markup, tag
from leeward.pages.maps import farm_map, layout_plan, loss_scale
from leeward.pages.parts import Links, facts, folded, gwh, megawatts, percent, section, table, to_copy
from leeward.pages.wind import resource_plan, wind_section
from leeward.report.study import study_html
from leeward.store import Key, Result
from leeward.watch import (
    FarmShape,
    LayoutView,
    ResourceView,
    Snapshot,
    TaskFilter,
    TaskTable,
    audit_events,
    best_of_all,
    best_of_farms,
    farm_shapes,
    find_result,
    find_results,
    kind_of,
    layout_view,
    neighbours_of,
    observe,
    resource_view,
)
from leeward.wind import wind_rose
from leeward.wording import command, count, run_command

CHART = 380.0  # width, pixels
MOST_DRAWN = 72  # layouts; with more cells, only the best of each farm
MOST_TASKS = 2000  # most rows in the table of all tasks
MOST_FAILURES = 50
MOST_MISSING = 200


@dataclass(frozen=True, eq=False)
class _Content:
    """The data of a report.

    views: the layouts to draw, by key, of each farm and type, or of each farm if these are too many. best: by farm.
    unread: error messages of layouts that cannot be drawn. resource: None if the wind is the same everywhere.
    """

    seen: Snapshot
    campaign: Campaign | None
    tasks: TaskTable
    shapes: Mapping[int, FarmShape]
    views: Mapping[Key, LayoutView]
    is_of_types: bool
    best: Mapping[int, Result]
    unread: Sequence[str]
    resource: ResourceView | None

    @property
    def installed(self) -> dict[int, float]:
        """Return the installed power (MW) of the best layouts, by farm."""
        return {farm: installed_of(self.campaign, result) for farm, result in self.best.items()}


def report_html(
    path: Path,
    campaign: Any = None,
    on_event: OnEvent | None = None,
    *,
    tell: Callable[[str], None] | None = None,
) -> str:
    """Return the report of a run directory or a file of results as HTML.

    campaign: replaces the campaign or study found with the results. on_event: called at each stage with an event, a
    dict whose key "event" is its kind, and whose key "text" describes the stage. tell: the old name; called with the
    text alone.
    """
    if tell is not None:
        warn_renamed("tell=", "on_event=")

    def emit(kind: str, text: str) -> None:
        if on_event is not None:
            on_event({"event": kind, "text": text})
        if tell is not None:
            tell(text)

    if kind_of(path) == "evaluations":
        return study_html(path, campaign, emit)
    found = _read(path, campaign, emit)
    seen = found.seen
    links = Links(is_live=False, keys=frozenset(found.views))
    parts = [
        ("summary", "Summary", _summary(found, links)),
        ("map", "Best layouts", _map(found, links)),
        ("grid", "Farms and types", overview.grid(seen, links)),
        ("spread", "AEP over seeds", _spread(found, links)),
        ("layouts", "Layouts", _layouts(found)),
        ("settings", "Method", _method(found)),
        ("figures", "Tables", _tables(found, links)),
        ("missing", "Missing", _missing(found, links)),
        ("audit", "Audit", overview.audit_trail(audit_events(path), 0, links)),
        ("loading", "Loading", _loading(seen)),
    ]
    name = seen.campaign or Path(seen.output).name
    return frame.report_page(f"{name}: report", parts)


def _read(path: Path, campaign: Campaign | None, emit: Callable[[str, str], None]) -> _Content:
    observation = observe(path, campaign=campaign)
    seen, campaign = observation.snapshot, observation.campaign
    cells = [Key.parse(cell.best_key) for cell in seen.cells if cell.best_key is not None]
    farms = best_of_farms(seen.cells)
    is_of_types = len(cells) <= MOST_DRAWN
    wanted = cells if is_of_types else list(farms.values())[:MOST_DRAWN]
    emit("reading", f"reading {count(len(wanted), 'layout')}")
    found = find_results(path, wanted)
    unread = []
    for key in wanted:
        if key not in found:
            try:
                found[key] = find_result(path, key)
            except LeewardError as error:
                unread.append(str(error))
    results = {key: found[key].result for key in wanted if key in found}
    emit("simulating", "computing their wake losses")
    views = {key: layout_view(campaign, result) for key, result in results.items()}
    best = {farm: results[key] for farm, key in farms.items() if key in results}
    table, shapes, resource = TaskTable(observation), farm_shapes(campaign), resource_view(campaign)
    return _Content(seen, campaign, table, shapes, views, is_of_types, best, unread, resource)


# --- parts -----------------------------------------------------------------------------------------------------------


def _summary(found: _Content, links: Links) -> Markup:
    seen = found.seen
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seen.time))
    return tag(
        "div",
        {"id": "summary"},
        tag("h1", None, seen.campaign or Path(seen.output).name),
        tag("p", None, f"State of {Path(seen.run or seen.output).name} at {made}. Results are counted, not verified: "),
        tag("p", None, to_copy(command("check", Path(seen.output).name)), " verifies every result."),
        overview.progress(seen),
        tasks.best_list(found.best, found.installed, seen, links),
    )


def _map(found: _Content, links: Links) -> Markup | None:
    if not found.shapes:
        return None
    is_all = len(found.shapes) <= MOST_DRAWN
    shown = [shape for farm, shape in found.shapes.items() if is_all or farm in found.best]
    words = f"The best layout of each farm{_first_of(len(shown), len(found.shapes))}, to scale."
    picture = farm_map(shown, found.best, neighbours_of(found.campaign), words, links, found.installed)
    return section("map", "Best layouts", picture)


def _first_of(shown: int, there: int) -> str:
    return "" if shown >= there else f", the first {shown} of {there}"


def _spread(found: _Content, links: Links) -> Markup | None:
    seen = found.seen
    charts, has_closer = [], False
    for farm, name in list(seen.farms.items())[:MOST_DRAWN]:
        strips = tasks.farm_strips(found.tasks, farm, {kind: f"t{kind}" for kind in seen.types}, seen, links, CHART)
        if strips:
            head = tag("h3", {"id": f"farm{farm}"}, f"{farm} {name}".strip())
            has_closer |= len(strips) > 1
            charts.append(tag("div", None, head, *strips))
    if not charts:
        return None
    types = ", ".join(f"t{kind} {title}".strip() for kind, title in seen.types.items())
    words = f"Boxes span the quartiles, with a line at the median; the ringed dot is the best seed. Types: {types}."
    words += " Second chart: per cent above the median of each type." if has_closer else ""
    words += f" Shown: the first {len(charts)} of {len(seen.farms)} farms." if len(seen.farms) > MOST_DRAWN else ""
    words += f" {seen.comparison_remark}" if seen.comparison_remark else ""
    return section("spread", "AEP over seeds", tag("p", None, words), tag("div", {"class": "gallery"}, *charts))


def _layouts(found: _Content) -> Markup | None:
    """Return a section with every layout that was read, on one colour scale."""
    left_out = [tag("p", None, f"Left out: {words}") for words in found.unread]
    if not found.views:
        return section("layouts", "Layouts", *left_out) if left_out else None
    losses = loss_range(view.wake_loss for view in found.views.values())
    shown = [_layout(view, losses) for view in found.views.values()]
    there = len(best_of_farms(found.seen.cells))
    what = "The best layout of each farm and turbine type" if found.is_of_types else "The best layout of each farm"
    what += "" if found.is_of_types else _first_of(min(there, MOST_DRAWN), there)
    first = next(iter(found.views.values()))
    return section(
        "layouts",
        "Layouts",
        tag("p", None, f"{what}. Turbines are coloured by wake loss, on the same scale in all figures."),
        *left_out,
        loss_scale(losses) if losses is not None else None,
        task.spacing_switch(first, "circles of the minimum spacing"),
        tag("div", {"class": "gallery"}, *shown),
    )


def _layout(view: LayoutView, losses: tuple[float, float] | None) -> Markup:
    result = view.result
    loss = result.details.get("wake_loss")
    lines = [
        ("AEP", f"{gwh(result.aep_gwh)} GWh"),
        ("installed", f"{megawatts(view.installed_mw)} MW"),
        ("capacity factor", percent(view.capacity_factor)),
        ("wake loss", percent(loss if isinstance(loss, float) else None)),
        ("turbines", f"{result.n_turbines}, {view.kind}" if view.kind else str(result.n_turbines)),
    ]
    head = tag("h3", None, f"{result.key} {view.farm}".strip())
    phases = task.phases(result)
    plan = layout_plan(view, losses, side=330.0, with_scale=False)
    rise = None if phases is None else folded("AEP by phase", phases)
    return tag("article", {"id": str(result.key)}, head, plan, facts(lines), rise)


def _method(found: _Content) -> Markup:
    versions = sorted({str(view.result.details.get("versions", "")) for view in found.views.values()} - {""})
    about = settings.settings(found.campaign, found.shapes, "; ".join(versions))
    prints = sorted({(key.farm_idx, key.type_idx, view.result.fingerprint) for key, view in found.views.items()})
    rows: list[list[Child]] = [[farm, f"t{kind}", tag("code", None, mark)] for farm, kind, mark in prints]
    listed = table(["farm", "type", "SHA-256 of all settings"], rows, caption="fingerprints")
    return tag("div", None, about, folded("fingerprints", listed) if rows else None, _wind(found))


def _wind(found: _Content) -> Markup | None:
    if found.campaign is None:
        return None
    view, shapes, others = found.resource, list(found.shapes.values()), neighbours_of(found.campaign)
    resource = None if view is None else resource_plan(view, shapes, found.best, others)
    return wind_section(wind_rose(found.campaign.physics.site), resource)


def _tables(found: _Content, links: Links) -> Markup:
    seen = found.seen
    rows = [_cell_row(found, cell.farm_idx, cell.type_idx) for cell in seen.cells[:MOST_TASKS]]
    energies = [f"{what}, GWh" for what in ("best", "median", "worst", "standard deviation")]
    header = ["farm", "turbine type", "done", *energies, "installed, MW", "capacity factor of the best"]
    every = found.tasks.chosen(TaskFilter())
    listed: Child
    if len(every) <= MOST_TASKS:
        names = list(tasks.COLUMNS.values())
        lines = [tasks.task_row(row, links) for row in found.tasks.rows(every)]
        inner = table(names, lines, right=tasks.NUMBERS, caption="all tasks")
        listed = folded(f"all {count(len(every), 'task')}", inner)
    else:
        export = command("export", Path(seen.path).name, "-o", "layouts.csv", "--per", "layout")
        listed = tag("p", None, f"All {len(every)} tasks as a table: ", to_copy(export))
    cut = len(seen.cells) - len(rows)
    left_out = tag("p", None, f"{cut} more farms and types are not shown.") if cut else None
    aeps = table(header, rows, right=range(2, 9), caption="AEP by farm and type")
    return section("figures", "Tables", aeps, left_out, listed)


def _cell_row(found: _Content, farm: int, kind: int) -> list[Child]:
    seen = found.seen
    _, aeps = tasks.best_first(found.tasks, farm, kind)
    names = [f"{farm} {seen.farms[farm]}".strip(), f"t{kind} {seen.types[kind]}".strip()]
    installed = seen.installed_mw(farm, kind)
    if not len(aeps):
        return [*names, 0, "–", "–", "–", "–", megawatts(installed), "–"]
    figures = (aeps.max(), np.median(aeps), aeps.min())
    spread = gwh(float(aeps.std(ddof=1))) if len(aeps) > 1 else "–"
    power = [megawatts(installed), percent(capacity_factor(float(aeps.max()), installed))]
    return [*names, len(aeps), *(gwh(float(value)) for value in figures), spread, *power]


def _missing(found: _Content, links: Links) -> Markup:
    seen = found.seen
    if not seen.missing:
        unknown, none = "The number of expected layouts is not known.", "None. All expected layouts exist."
        return section("missing", "Missing layouts", tag("p", None, unknown if seen.missing is None else none))
    by_state = found.tasks.rows(found.tasks.chosen(TaskFilter(order="state")))
    absent = [str(row.key) for row in by_state if row.state != "done"]
    more = len(absent) - MOST_MISSING
    words = f"{seen.missing} of {seen.expected} layouts are missing; {seen.failed} of them failed. To compute them: "
    return section(
        "missing",
        "Missing layouts",
        tag("p", None, words, to_copy(command(*run_command(Path(seen.output).name)))),
        tag("p", None, ", ".join(absent[:MOST_MISSING]), f" and {more} more" if more > 0 else None),
        overview.failures(seen, seen.failures[:MOST_FAILURES], links) if seen.failures else None,
    )


def _loading(seen: Snapshot) -> Markup:
    """Return a section with a five-line program, which a test runs."""
    best = best_of_all(seen.cells) or "farm0_t0_s0"
    file = Path(seen.output if seen.output_exists else seen.run or seen.output).name
    program = (
        "import leeward\n"
        f"with leeward.open_layouts({file!r}) as layouts:\n"
        '    table = layouts.to_pandas()          # one row per layout; per="turbine": one per turbine\n'
        f'    best = layouts["{best}"]\n'
        '    print(table["aep_gwh"].describe(), best.aep_gwh, best.x, best.y)\n'
    )
    about = tag("p", None, f"With leeward {__version__} or newer (any HDF5 program can read the file too):")
    return section("loading", "How to load the data", about, tag("pre", None, tag("code", None, program)))
