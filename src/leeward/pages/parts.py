"""Elements that many pages share: tables, links, numbers, commands to copy."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from leeward.errors import InputError
from leeward.pages.html import Child, Markup, tag
from leeward.store import parse_key

MARKS = {"done": "✓", "failed": "✗", "again": "↻", "running": "▶", "missing": "·"}
WORDS = {"done": "done", "failed": "failed", "again": "to be retried", "running": "running", "missing": "not started"}
SCOPES = {"th": "col", "td": None}


@dataclass(frozen=True)
class Links:
    """Addresses of links: pages of the dashboard (is_live), or anchors in a report. None if there is no target.

    keys: the tasks in a report.
    """

    is_live: bool
    keys: frozenset[Any] = frozenset()

    def task(self, key: Any) -> str | None:
        """Return the address of a task."""
        if self.is_live:
            return f"/task/{key}"
        return f"#{key}" if key in self.keys else None

    def tasks(self, wanted: Mapping[str, str | int | None]) -> str | None:
        """Return the address of a filtered list of tasks."""
        given = {name: value for name, value in wanted.items() if value not in (None, "")}
        return f"/tasks?{urlencode(given)}" if self.is_live else None

    def cell(self, farm_idx: int, type_idx: int | None = None) -> str | None:
        """Return the address of the tasks of a farm, or of a farm and a turbine type."""
        if self.is_live:
            return self.tasks({"farm": farm_idx, "type": type_idx, "sort": "-aep_gwh"})
        return f"#farm{farm_idx}"


def key_or_none(name: str) -> Any:
    """Return the key, of any kind of work, that a text names; None if it is not a key."""
    try:
        return parse_key(name)
    except InputError:
        return None


def section(name: str, title: str, *children: Child, live: bool = False) -> Markup:
    """Return a section with a heading. live: the script of the page updates it."""
    return tag(
        "section",
        {"id": name, "data-live": live, "aria-labelledby": f"{name}-title"},
        tag("h2", {"id": f"{name}-title"}, title),
        *children,
    )


def table(
    header: Sequence[Child], rows: Iterable[Sequence[Child]], *, caption: str, right: Sequence[int] = ()
) -> Markup:
    """Return a table that scrolls sideways if it is wide.

    caption: for screen readers. right: indices of right-aligned columns.
    """

    def line(row: Sequence[Child], name: str) -> Markup:
        looks = ({"class": "number" if i in right else None, "scope": SCOPES[name]} for i in range(len(row)))
        return tag("tr", None, [tag(name, look, cell) for look, cell in zip(looks, row, strict=True)])

    title = tag("caption", {"class": "hidden"}, caption)
    body = tag("tbody", None, [line(row, "td") for row in rows])
    inner = tag("table", None, title, tag("thead", None, line(header, "th")), body)
    return tag("div", {"class": "wide", "tabindex": 0, "role": "group", "aria-label": caption}, inner)


def facts(pairs: Iterable[tuple[Child, Child]]) -> Markup:
    """Return a list of names and values."""
    return tag("dl", {"class": "facts"}, [tag("div", None, tag("dt", None, a), tag("dd", None, b)) for a, b in pairs])


def link(address: str | None, *children: Child, title: str | None = None) -> Markup:
    """Return a link, or its content alone if there is no address."""
    return tag("span" if address is None else "a", {"href": address, "title": title}, *children)


def pager(
    path: str,
    page: int,
    pages: int,
    *,
    name: str = "page",
    kept: Mapping[str, int] | None = None,
    words: tuple[str, str] = ("previous", "next"),
) -> Markup | None:
    """Return links to the previous and next page; None if there is only one page.

    name: query parameter of the page. kept: other query parameters. words: names of the two links.
    """

    def to(other: int) -> str:
        return f"{path}?{urlencode({**(kept or {}), name: other})}"

    if pages <= 1:
        return None
    return tag(
        "nav",
        {"class": "pager", "aria-label": "pages"},
        link(to(page - 1), f"‹ {words[0]}") if page else None,
        tag("span", None, f"page {page + 1} of {pages}"),
        link(to(page + 1), f"{words[1]} ›") if page + 1 < pages else None,
    )


def yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def state_words(state: str) -> str:
    """Return the symbol and the name of a state, so that readers can distinguish states without colour."""
    return f"{MARKS[state]} {WORDS[state]}"


def state_mark(state: str) -> Markup:
    """Return the symbol and the name of a state, in its colour."""
    return tag("span", {"class": f"state state-{state}"}, state_words(state))


def folded(title: str, *children: Child, name: str | None = None) -> Markup:
    """Return collapsed content; a click on the title opens it. name: an id, needed to keep it open during updates."""
    return tag("details", {"id": name}, tag("summary", None, title), *children)


def to_copy(command: str) -> Markup:
    """Return a shell command to copy."""
    return tag("code", {"class": "command", "tabindex": 0}, command)


def captioned(picture: Markup, *caption: Child) -> Markup:
    """Return a drawing with its caption."""
    return tag("figure", None, picture, tag("figcaption", None, *caption))


def number(value: object) -> float:
    """Return a detail of a result as a number; NaN if it is not a finite number."""
    if isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return math.nan


def shown(value: float | None, form: str) -> str:
    """Return a number in this format; a dash if it is unknown."""
    return "–" if value is None or math.isnan(value) else form.format(value)


def gwh(value: float | None) -> str:
    """Return an AEP without its unit."""
    return shown(value, "{:.2f}")


def megawatts(value: float | None) -> str:
    """Return installed power without its unit."""
    return shown(value, "{:.6g}")


def percent(value: float | None) -> str:
    """Return a fraction in per cent."""
    return shown(value, "{:z.2%}")
