"""Make the response to a path and query. No path names a file on the disk.

These are the pages of layouts; `study_routes` makes those of a study.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache

from leeward.campaign import Campaign
from leeward.campaign.remarks import installed_of
from leeward.errors import InputError, LeewardError
from leeward.formats.geojson import layout_geojson
from leeward.formats.rows import layout_csv
from leeward.formats.tabular import csv_text
from leeward.pages import frame, overview, settings, task, tasks
from leeward.pages.html import Child, Markup, tag
from leeward.pages.maps import farm_map, layout_plan
from leeward.pages.parts import link, pager, section, state_mark
from leeward.pages.wind import resource_plan, wind_section
from leeward.store import Key, Result
from leeward.watch import (
    LayoutView,
    TaskFilter,
    TaskSeen,
    farm_shapes,
    neighbours_of,
    task_filter,
)
from leeward.web import study_routes
from leeward.web.model import Model
from leeward.web.responses import (
    LINKS,
    LIVE_S,
    PAGES,
    HttpError,
    Query,
    Response,
    error,
    errors_as,
    html_page,
    number,
    worker_facts,
)
from leeward.wind import WindRose, wind_rose
from leeward.wind.resource_map import varies_over_site

FEW_WORKERS, FEW_FAILURES = 10, 3  # on the first page
MOST_FARMS = 100  # most farms per map; more would be too small, and each needs to read one result
FEW_FARMS = 5  # program versions are read from the best results of this many farms


def respond(model: Model, path: str, query: Query) -> Response:
    """Return the response to a request, or a page with the error."""
    try:
        if path in _ASSETS:
            return Response(frame.asset(path[1:]), _ASSETS[path], keep_s=3600)
        pages, task_page = _KINDS[model.snapshot.KIND]
        if path.startswith("/task/"):
            return task_page(model, path.removeprefix("/task/"))
        if path not in pages:
            raise HttpError(404, "There is no such page.")
        return pages[path](model, query)
    except HttpError as found:
        return error(found.status, str(found))
    except (LeewardError, OSError) as found:  # the results cannot be read now
        return error(503, str(found))


# --- pages -----------------------------------------------------------------------------------------------------------


def _overview(model: Model, query: Query) -> Response:
    seen = model.snapshot
    page = number(query, "farms")
    waiting = tag("p", {"class": "wait"}, link("/map", "Map of all farms"))
    content: list[Child] = [
        tag("p", None, tag("small", None, seen.run or seen.output)),
        overview.progress(seen, live=True),
        overview.grid(seen, LINKS, page),
        overview.workers(seen, LINKS, FEW_WORKERS) if seen.run else None,
        overview.failures(seen, seen.failures[:FEW_FAILURES], LINKS) if seen.run else None,
        tag("section", {"id": "map", "data-load": "/map"}, tag("h2", None, "Best layouts"), waiting),
        overview.remarks(seen),
    ]
    short = str(seen.done) if seen.expected is None else f"{seen.done}/{seen.expected}"
    return html_page(model, short, "/", content)


def _map(model: Model, query: Query) -> Response:
    kind, page = _task_filter(query).type_idx, number(query, "farms")
    every = list(farm_shapes(model.campaign).values())
    shapes = every[page * MOST_FARMS : (page + 1) * MOST_FARMS]
    farms = [shape.farm_idx for shape in shapes] if every else list(model.snapshot.farms)[:MOST_FARMS]
    best = model.best_results(farms, kind)
    installed = {farm: installed_of(model.campaign, result) for farm, result in best.items()}
    types = model.snapshot.types
    choices = [_choice("/map", "all types", kind is None)]
    choices += [_choice(f"/map?type={n}", f"t{n} {name}", n == kind) for n, name in types.items()]
    which = "" if kind is None else f" with t{kind} {types.get(kind, '')}"
    if shapes:
        words = f"The best layout of each farm{which}, to scale."
        picture: Child = farm_map(shapes, best, neighbours_of(model.campaign), words, LINKS, installed)
    else:
        picture = tag("p", None, "The areas are not known, because the campaign is not known.")
    menu = tag("nav", {"class": "pager", "aria-label": "turbine types"}, *choices)
    listed = tasks.best_list(best, installed, model.snapshot, LINKS)
    kept = {} if kind is None else {"type": kind}
    pages = pager("/map", page, -(-len(every) // MOST_FARMS), name="farms", kept=kept)
    both = tag("div", {"class": "beside"}, picture, listed)
    return html_page(model, "Map", "/map", [section("map", "Best layouts", menu, both, pages, live=True)])


def _choice(address: str, words: str, is_chosen: bool) -> Markup:
    return tag("a", {"href": address, "aria-current": "true" if is_chosen else None}, words)


def _tasks(model: Model, query: Query) -> Response:
    wanted = _task_filter(query)
    table, seen = model.tasks(), model.snapshot
    rows = table.chosen(wanted)
    page = number(query, "page")
    shown = list(table.rows(rows[page * tasks.PAGE : (page + 1) * tasks.PAGE]))
    kept = {name: query[name] for name in ("farm", "type", "seed", "state", "sort") if query.get(name)}
    content: list[Child] = [
        tasks.task_form(seen, kept),
        tasks.spread(table, wanted, seen, LINKS),
        tasks.task_list(shown, len(rows), page, kept, LINKS),
        tasks.downloads(kept),
    ]
    return html_page(model, "Tasks", "/tasks", content)


def _tasks_csv(model: Model, query: Query) -> Response:
    table = model.tasks()
    header = ["key", *Key._fields, *(field.name for field in fields(TaskSeen)[1:])]
    rows = (vars(row).values() for row in table.rows(table.chosen(_task_filter(query))))
    values = ([str(key), *key, *others] for key, *others in rows)
    return Response(csv_text(header, values).encode(), "text/csv; charset=utf-8", name="tasks.csv")


def _settings(model: Model, query: Query) -> Response:
    some = model.best_results(list(model.snapshot.farms)[:FEW_FARMS]).values()
    versions = next((str(result.details.get("versions", "")) for result in some), "")
    shown = settings.settings(model.campaign, farm_shapes(model.campaign), versions)
    return html_page(model, "Settings", "/settings", [shown, _wind(model, with_map=True)])


def _wind(model: Model, *, with_map: bool = False) -> Markup | None:
    """Return the wind rose. with_map: add the map of the wind, if it varies, or a line while it is being computed."""
    campaign = model.campaign
    if campaign is None:
        return None
    resource: Child = None
    try:
        view = model.resource() if with_map and varies_over_site(campaign.physics.site) else None
    except TimeoutError:
        resource = tag("p", None, "The map of the wind is being computed.")
    else:
        if view is not None:
            shapes = list(farm_shapes(campaign).values())[:MOST_FARMS]
            best = model.best_results([shape.farm_idx for shape in shapes])
            resource = resource_plan(view, shapes, best, neighbours_of(campaign))
    return wind_section(_rose(campaign), resource, live=with_map)


@lru_cache(maxsize=1)
def _rose(campaign: Campaign) -> WindRose:
    return wind_rose(campaign.physics.site)


def _compare(model: Model, query: Query) -> Response:
    first, second = (_view(model, query.get(name, "")) for name in ("a", "b"))
    form = _compare_form(str(first.result.key), str(second.result.key))
    content: list[Child] = [task.comparison(first, second), form]
    return html_page(
        model, "Comparison", "", content, refresh_s=LIVE_S if first.is_pending or second.is_pending else None
    )


# --- one task --------------------------------------------------------------------------------------------------------


def _task(model: Model, name: str) -> Response:
    for ending, (kind, write) in _FILES.items():
        if name.endswith(ending):
            result = _result(model, name.removesuffix(ending))
            with errors_as(404):
                text = write(result, model.campaign)
            return Response(text.encode(errors="replace"), f"{kind}; charset=utf-8", name=name)
    with errors_as(404):
        key = Key.parse(name)
    row = model.tasks().find(key)
    if row is None:
        raise HttpError(404, f"{key} is neither a task of this campaign nor an existing result.")
    if row.state != "done":
        return html_page(model, name, "", _unfinished(model, row), refresh_s=LIVE_S)
    view = _view(model, name)
    return html_page(model, name, "", _finished(model, view), refresh_s=LIVE_S if view.is_pending else None)


def _geojson(result: Result, campaign: Campaign | None) -> str:
    if campaign is None:
        raise InputError("The coordinate system of this layout is not known, because its campaign is not known.")
    return layout_geojson(result, campaign)


def _finished(model: Model, view: LayoutView) -> list[Child]:
    key = view.result.key
    cell = link(LINKS.cell(key.farm_idx, key.type_idx), "all seeds of this farm and type")
    campaign = model.campaign
    is_on_earth = campaign is not None and bool(campaign.crs)  # GeoJSON needs a coordinate system
    endings = {".csv": "CSV", ".geojson": "GeoJSON"} if is_on_earth else {".csv": "CSV"}
    files = [[link(f"/task/{key}{ending}", words), " "] for ending, words in endings.items()]
    phases = task.phases(view.result)
    best = model.tasks().best_key(key.farm_idx, key.type_idx)
    compare = _compare_form(str(key), "" if best is None or best == key else str(best))
    turbines = tag("summary", None, "coordinates"), task.coordinates(view)
    plan = section("plan", "Layout", layout_plan(view), task.spacing_switch(view), live=True)
    figures = section("facts", "Figures", task.result_facts(view), live=True)
    return [
        tag("p", None, cell, " · download: ", files),
        tag("div", {"class": "columns"}, plan, figures),
        section("phases", "AEP by phase", phases) if phases is not None else None,
        _wind(model),
        section("compare", "Compare", compare),
        section("coordinates", "Turbines", tag("details", {"id": "turbines"}, *turbines), live=True),
    ]


def _unfinished(model: Model, row: TaskSeen) -> list[Child]:
    """Return the content of a page of a task without a result."""
    seen = model.snapshot
    failed = [overview.failure(each, seen, LINKS) for each in seen.failures if each.key == str(row.key)]
    doing = [worker_facts(worker) for worker in seen.workers if worker.task == str(row.key)]
    return [
        section("state", "State", tag("p", None, state_mark(row.state)), *doing, *failed, live=True),
        tag("p", None, link(LINKS.cell(row.key.farm_idx, row.key.type_idx), "all seeds of this farm and type")),
    ]


def _compare_form(first: str, second: str) -> Markup:
    fields = [
        tag("label", None, words, tag("input", {"name": name, "value": value, "size": 18, "required": True}))
        for name, words, value in (("a", "this layout", first), ("b", "with", second))
    ]
    attributes = {"method": "get", "action": "/compare", "class": "filter", "aria-label": "compare two layouts"}
    return tag("form", attributes, *fields, tag("button", {"type": "submit"}, "Compare"))


# --- requests --------------------------------------------------------------------------------------------------------


def _result(model: Model, name: str) -> Result:
    with errors_as(404):
        key = Key.parse(name)
    row = model.tasks().find(key)
    if row is None or row.state != "done":  # saves a search through all files
        raise HttpError(404, f"There is no result for {key}.")
    with errors_as(404):
        result: Result = model.result(key)
        return result


def _view(model: Model, name: str) -> LayoutView:
    return model.view(_result(model, name))


def _task_filter(query: Query) -> TaskFilter:
    with errors_as(400):
        return task_filter(query)


_ASSETS = {
    "/style.css": "text/css; charset=utf-8",
    "/live.js": "text/javascript; charset=utf-8",
    "/icon.svg": "image/svg+xml",
}
_PAGES: dict[str, Callable[[Model, Query], Response]] = {
    "/": _overview,
    "/map": _map,
    "/tasks": _tasks,
    "/tasks.csv": _tasks_csv,
    "/settings": _settings,
    "/compare": _compare,
    **PAGES,
}
_KINDS = {"layouts": (_PAGES, _task), "evaluations": (study_routes.PAGES, study_routes.task)}
_FILES: dict[str, tuple[str, Callable[[Result, Campaign | None], str]]] = {
    ".csv": ("text/csv", layout_csv),
    ".geojson": ("application/geo+json", _geojson),
}
