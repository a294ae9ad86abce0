"""The pages of a study."""

from collections.abc import Callable

from leeward.formats.tabular import csv_text
from leeward.pages import overview, study
from leeward.pages.html import Child, tag
from leeward.pages.parts import link, section, state_mark
from leeward.store import Evaluation, EvaluationKey
from leeward.watch import evaluation_view, whole_number
from leeward.web import responses
from leeward.web.model import Model
from leeward.web.responses import LINKS, LIVE_S, HttpError, Query, Response, errors_as, html_page, number, worker_facts

FEW_WORKERS, FEW_FAILURES = 10, 3  # on the first page
FILTER = ("target", "from", "to", "state")  # query parameters of the list of tasks


def _overview(model: Model, query: Query) -> Response:
    seen = model.snapshot
    content: list[Child] = [
        tag("p", None, tag("small", None, seen.run or seen.output)),
        overview.progress(seen, live=True),
        study.grid(seen, LINKS, number(query, "targets")),
        study.losses(model.observation(), LINKS),
        overview.workers(seen, LINKS, FEW_WORKERS) if seen.run else None,
        overview.failures(seen, seen.failures[:FEW_FAILURES], LINKS) if seen.run else None,
        overview.remarks(seen),
    ]
    short = str(seen.done) if seen.expected is None else f"{seen.done}/{seen.expected}"
    return html_page(model, short, "/", content)


def _chosen(model: Model, query: Query) -> tuple[study.Tasks, list[EvaluationKey]]:
    with errors_as(400):
        target, first, last = (whole_number(query, name) for name in FILTER[:3])
    state = query.get("state", "")
    if state and state not in study.STATES:
        raise HttpError(400, f"state is {state!r:.40}; expected one of {', '.join(study.STATES)}")
    tasks = model.evaluations()
    return tasks, tasks.chosen(target, first, last, state)


def _tasks(model: Model, query: Query) -> Response:
    tasks, keys = _chosen(model, query)
    kept = {name: query[name] for name in FILTER if query.get(name)}
    address = (LINKS.tasks(kept) or "").replace("/tasks?", "/tasks.csv?", 1)
    content: list[Child] = [
        study.task_form(model.snapshot, kept),
        study.task_list(tasks, keys, number(query, "page"), kept, LINKS),
        tag("p", None, link(address, "Download this table as CSV")),
    ]
    return html_page(model, "Tasks", "/tasks", content)


def _tasks_csv(model: Model, query: Query) -> Response:
    tasks, keys = _chosen(model, query)
    text = csv_text(study.CSV_COLUMNS, map(tasks.csv_row, keys))
    return Response(text.encode(), "text/csv; charset=utf-8", name="tasks.csv")


def _settings(model: Model, query: Query) -> Response:
    return html_page(model, "Settings", "/settings", [study.settings(model.campaign)])


def task(model: Model, name: str) -> Response:
    """Return the page of one evaluation."""
    with errors_as(404):
        key = EvaluationKey.parse(name)
    state = model.evaluations().state(key)
    if state is None:
        raise HttpError(404, f"{key} is neither a task of this study nor an existing result.")
    if state != "done":
        return html_page(model, name, "", _unfinished(model, key, state), refresh_s=LIVE_S)
    with errors_as(404):
        result = model.result(key)
    if not isinstance(result, Evaluation):
        raise HttpError(404, f"{key} is not an evaluation.")
    target = link(LINKS.tasks({"target": key.target_idx}), "all scenarios of this target")
    content = study.evaluation(evaluation_view(model.campaign, result), live=True)
    return html_page(model, name, "", [tag("p", None, target), *content])


def _unfinished(model: Model, key: EvaluationKey, state: str) -> list[Child]:
    """Return the content of the page of a task without a result."""
    seen = model.snapshot
    failed = [overview.failure(each, seen, LINKS) for each in seen.failures if each.key == str(key)]
    doing = [worker_facts(worker) for worker in seen.workers if worker.task == str(key)]
    return [
        section("state", "State", tag("p", None, state_mark(state)), *doing, *failed, live=True),
        tag("p", None, link(LINKS.tasks({"target": key.target_idx}), "all scenarios of this target")),
    ]


PAGES: dict[str, Callable[[Model, Query], Response]] = {
    "/": _overview,
    "/tasks": _tasks,
    "/tasks.csv": _tasks_csv,
    "/settings": _settings,
    **responses.PAGES,
}
