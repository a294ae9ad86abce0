"""Responses, and what the pages of every kind of work share."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from leeward.errors import LeewardError
from leeward.pages import frame, overview
from leeward.pages.html import Child, Markup, tag
from leeward.pages.parts import Links, facts, gwh, link, pager, yes_or_no
from leeward.watch import WorkerSeen, audit_events, whole_number
from leeward.web.model import Model
from leeward.wording import duration

LINKS = Links(is_live=True)
LIVE_S, CALM_S = 2.0, 10.0  # update interval of a page during a run, and otherwise
MOST_FAILURES = 100  # most failures per page
MOST_PAGES = 1_000_000
COMMON = ("Tasks", "Workers", "Failures", "Settings", "Audit")  # pages that every kind of work has
MENUS = {"layouts": frame.MENU, "evaluations": COMMON}

Query = Mapping[str, str]


class HttpError(LeewardError):
    """An error response to a request."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


@dataclass(frozen=True)
class Response:
    """A response. kind: content type. name: file name of a download. keep_s: how long a browser may cache it."""

    body: bytes
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    name: str = ""
    keep_s: int = 0


def error(status: int, words: str) -> Response:
    content = [tag("h1", None, f"{status}"), tag("p", None, words), tag("p", None, link("/", "Overview"))]
    again_s = CALM_S if status == 503 else None  # the storage may come back
    return Response(frame.live_page(str(status), "", "leeward", content, again_s, COMMON).encode(), status=status)


def html_page(model: Model, title: str, here: str, content: list[Child], *, refresh_s: float | None = None) -> Response:
    """Return a page headed by its title; the first page is headed by the campaign's name, and its title is a count."""
    seen = model.snapshot
    pace = refresh_s or (LIVE_S if seen.is_running else CALM_S)
    name = seen.campaign or ("study not known" if seen.KIND == "evaluations" else "campaign not known")
    heading = tag("h1", None, name if here == "/" else title)
    seen_at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seen.time))
    age = tag("p", {"id": "as-of", "data-live": True, "class": "as-of"}, f"Updated {seen_at}{model.remark()}.")
    return Response(frame.live_page(title, here, name, [heading, *content, age], pace, MENUS[seen.KIND]).encode())


def workers(model: Model, query: Query) -> Response:
    return html_page(model, "Workers", "/workers", [overview.workers(model.snapshot, LINKS)])


def failures(model: Model, query: Query) -> Response:
    seen = model.snapshot
    page = number(query, "page")
    shown = seen.failures[page * MOST_FAILURES : (page + 1) * MOST_FAILURES]
    pages = -(-len(seen.failures) // MOST_FAILURES)
    listed = overview.failures(seen, shown, LINKS)
    return html_page(model, "Failures", "/failures", [listed, pager("/failures", page, pages)])


def audit(model: Model, query: Query) -> Response:
    trail = overview.audit_trail(audit_events(model.path), number(query, "page"), LINKS)
    return html_page(model, "Audit", "/audit", [trail])


def worker_facts(worker: WorkerSeen) -> Markup:
    return facts(
        [
            ("worker", worker.name),
            ("phase", worker.phase or worker.state),
            ("step", worker.step),
            ("best so far, GWh", gwh(worker.best_aep_gwh)),
            ("for", "–" if worker.task_s is None else duration(worker.task_s)),
            ("looks hung", yes_or_no(worker.looks_hung)),
        ]
    )


@contextmanager
def errors_as(status: int) -> Iterator[None]:
    """Turn an error into a response with this status."""
    try:
        yield
    except LeewardError as error:
        raise HttpError(status, str(error)) from error


def number(query: Query, name: str) -> int:
    with errors_as(400):
        return min(whole_number(query, name) or 0, MOST_PAGES)


PAGES: dict[str, Callable[[Model, Query], Response]] = {  # of every kind of work
    "/workers": workers,
    "/failures": failures,
    "/audit": audit,
}
