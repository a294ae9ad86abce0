"""Lists of tasks, page by page, and the distribution of their AEP."""

from collections.abc import Mapping, Sequence

import numpy as np

from leeward.capacity import capacity_factor, comparison_remark, yield_words
from leeward.charts import AEP, CAPACITY_FACTOR, Array, Quantity
from leeward.pages import parts
from leeward.pages.charts import WIDTH, rank_chart, strip_chart
from leeward.pages.html import Child, Markup, tag
from leeward.pages.parts import Links
from leeward.store import Key, Result
from leeward.watch import STATES, Snapshot, TaskFilter, TaskSeen, TaskTable

PAGE = 50
FIGURES = {
    "aep_gwh": ("AEP, GWh", "{:.2f}"),
    "installed_mw": ("installed, MW", "{:.6g}"),
    "capacity_factor": ("capacity factor", "{:z.2%}"),
    "wake_loss": ("wake loss", "{:z.2%}"),
    "min_spacing_m": ("closest", "{:.0f} m"),
    "n_turbines": ("turbines", "{}"),
    "seconds": ("seconds", "{:.1f}"),
}
COLUMNS = {"key": "task", "state": "state", **{name: title for name, (title, _) in FIGURES.items()}}
NUMBERS = range(2, len(COLUMNS))  # columns of numbers


def task_list(rows: Sequence[TaskSeen], total: int, page: int, query: Mapping[str, str], links: Links) -> Markup:
    """Return one page of tasks, with links that sort by column. query: filter and order, from the address."""
    header = [_sort_link(name, title, query, links) for name, title in COLUMNS.items()]
    shown = f"{page * PAGE + 1 if rows else 0} to {page * PAGE + len(rows)} of {total}"
    return parts.section(
        "tasks",
        f"{total} tasks" if total != 1 else "1 task",
        parts.table(header, [task_row(row, links) for row in rows], right=NUMBERS, caption="tasks"),
        _pager(page, -(-total // PAGE), shown, query, links),
        live=links.is_live,
    )


def task_row(row: TaskSeen, links: Links) -> list[Child]:
    """Return the table row of a task."""
    figures = [parts.shown(getattr(row, name), form) for name, (_, form) in FIGURES.items()]
    return [parts.link(links.task(row.key), str(row.key)), parts.state_mark(row.state), *figures]


def task_form(seen: Snapshot, query: Mapping[str, str]) -> Markup:
    """Return a form to filter tasks."""
    farms = {str(number): f"{number} {name}".strip() for number, name in seen.farms.items()}
    types = {str(number): f"t{number} {name}".strip() for number, name in seen.types.items()}
    seed = tag("input", {"name": "seed", "value": query.get("seed", ""), "inputmode": "numeric", "size": 6})
    return tag(
        "form",
        {"method": "get", "action": "/tasks", "class": "filter", "role": "search", "aria-label": "filter tasks"},
        _choice("farm", "farm", farms, query),
        _choice("type", "turbine type", types, query),
        tag("label", None, "seed", seed),
        _choice("state", "state", {state: parts.WORDS[state] for state in STATES}, query),
        tag("input", {"type": "hidden", "name": "sort", "value": query["sort"]}) if query.get("sort") else None,
        tag("button", {"type": "submit"}, "Show"),
    )


def spread(tasks: TaskTable, wanted: TaskFilter, seen: Snapshot, links: Links) -> Markup | None:
    """Return the distribution of AEP over the seeds of a farm and type, or of all types of a farm; None if unknown."""
    if wanted.farm_idx is None:
        return None
    title = f"{wanted.farm_idx} {seen.farms.get(wanted.farm_idx, '')}".strip()
    if wanted.type_idx is not None:
        keys, aeps = best_first(tasks, wanted.farm_idx, wanted.type_idx)
        if not len(aeps):
            return None
        kind = f"t{wanted.type_idx} {seen.types.get(wanted.type_idx, '')}".strip()
        best = parts.link(links.task(keys[0]), f"seed {keys[0].seed}")
        power = yield_words(float(aeps[0]), seen.installed_mw(wanted.farm_idx, wanted.type_idx))
        about = f", {parts.gwh(float(aeps[0]))} GWh{f' ({power})' if power else ''}; the band spans the quartiles."
        picture = parts.captioned(rank_chart(keys, aeps, links), "Best: ", best, about)
        return parts.section("spread", f"{title}, {kind}: AEP over seeds", picture, live=links.is_live)
    names = {kind: f"t{kind} {name}".strip() for kind, name in seen.types.items()}
    charts = farm_strips(tasks, wanted.farm_idx, names, seen, links)
    if not charts:
        return None
    of = quantity_of(seen, wanted.farm_idx)
    words = "By turbine type. Boxes span the quartiles, with a line at the median; the ringed dot is the best seed."
    words += f" {comparison_remark([title], 1)}" if of is CAPACITY_FACTOR else ""
    captions = (words, "The same as per cent above the median of each type.")
    pictures = [parts.captioned(*pair) for pair in zip(charts, captions, strict=False)]
    return parts.section("spread", f"{title}: {of.name} over seeds", *pictures, live=links.is_live)


def quantity_of(seen: Snapshot, farm_idx: int) -> Quantity:
    """Return the quantity by which the turbine types of a farm are compared."""
    return CAPACITY_FACTOR if farm_idx in seen.by_capacity_factor else AEP


def farm_strips(
    tasks: TaskTable, farm_idx: int, names: Mapping[int, str], seen: Snapshot, links: Links, width: float = WIDTH
) -> list[Markup]:
    """Return a chart of the seeds of a farm by turbine type, and one of per cent above the median if types differ.

    names: of the types. width: pixels. The list is empty if there are no results.
    """
    of = quantity_of(seen, farm_idx)
    columns = {name: best_first(tasks, farm_idx, kind, of) for kind, name in names.items()}
    known = [values for _, values in columns.values() if len(values)]
    charts = [strip_chart(columns, links, width, of=of)] if known else []
    if len(known) > 1 and any(len(values) > 1 for values in known) and all(np.median(values) > 0 for values in known):
        charts.append(strip_chart(columns, links, width, relative=True, of=of))  # a common scale hides the spread
    return charts


def best_first(tasks: TaskTable, farm_idx: int, type_idx: int, of: Quantity = AEP) -> tuple[list[Key], Array]:
    """Return keys and AEPs (GWh), or capacity factors (%), of the results of a farm and turbine type, best first."""
    rows = tasks.chosen(TaskFilter(farm_idx, type_idx, state="done", order=of.order, backwards=True))
    values = of.scale * getattr(tasks, of.order)[rows]
    known = ~np.isnan(values)
    return [task.key for task in tasks.rows(rows[known])], values[known]


def best_list(best: Mapping[int, Result], installed: Mapping[int, float], seen: Snapshot, links: Links) -> Markup:
    """Return a table of the best layout of each farm, with a remark if types differ. installed: MW, by farm."""
    if not best:
        return tag("p", None, "There are no layouts yet.")
    rows: list[list[Child]] = [
        [
            f"{result.key.farm_idx} {seen.farms.get(result.key.farm_idx, '')}",
            f"t{result.key.type_idx} {seen.types.get(result.key.type_idx, '')}",
            parts.link(links.task(result.key), str(result.key)),
            parts.gwh(result.aep_gwh),
            parts.megawatts(installed.get(farm)),
            parts.percent(capacity_factor(result.aep_gwh, installed.get(farm))),
            parts.percent(parts.number(result.details.get("wake_loss"))),
            result.n_turbines,
        ]
        for farm, result in best.items()
    ]
    header = ["farm", "turbine type", "layout", "AEP, GWh", "installed, MW", "capacity factor", "wake loss", "turbines"]
    remark = tag("p", None, seen.comparison_remark) if seen.comparison_remark else None
    return tag("div", None, parts.table(header, rows, right=range(3, 8), caption="best layouts"), remark)


def downloads(query: Mapping[str, str]) -> Markup:
    """Return a link that downloads the same tasks as CSV."""
    wanted = {name: value for name, value in query.items() if name != "page"}
    address = (Links(is_live=True).tasks(wanted) or "").replace("/tasks?", "/tasks.csv?", 1)
    return tag("p", None, parts.link(address, "Download this table as CSV"))


def _choice(name: str, title: str, options: Mapping[str, str], query: Mapping[str, str]) -> Markup:
    chosen = query.get(name, "")
    entries = [tag("option", {"value": ""}, "all")]
    entries += [tag("option", {"value": v, "selected": v == chosen}, words) for v, words in options.items()]
    return tag("label", None, title, tag("select", {"name": name}, *entries))


def _sort_link(name: str, title: str, query: Mapping[str, str], links: Links) -> Markup:
    """Return a column title that links to the sorted table; the first click puts the best value on top."""
    now = query.get("sort") or "key"
    if name == now.removeprefix("-"):
        arrow, then = (" ↓", name) if now.startswith("-") else (" ↑", f"-{name}")
    else:
        arrow, then = "", f"-{name}" if name in ("aep_gwh", "capacity_factor") else name
    wanted = {**query, "sort": then, "page": ""}
    return parts.link(links.tasks(wanted), title, arrow)


def _pager(page: int, pages: int, shown: str, query: Mapping[str, str], links: Links) -> Markup:
    def to(other: int, words: str) -> Markup | None:
        is_other = 0 <= other < pages and other != page
        return parts.link(links.tasks({**query, "page": other}), words) if is_other else None

    before, after = (to(0, "« first"), to(page - 1, "‹ previous")), (to(page + 1, "next ›"), to(pages - 1, "last »"))
    return tag("nav", {"class": "pager", "aria-label": "pages"}, *before, tag("span", None, shown), *after)
