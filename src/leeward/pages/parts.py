"""Pieces that many pages have: tables, numbers, links, commands to copy."""

import math
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode

from leeward.pages.html import Child, Markup, tag

MARKS = {"done": "✓", "failed": "✗", "again": "↻", "running": "▶", "missing": "·"}
WORDS = {"done": "done", "failed": "failed", "again": "to be tried again", "running": "in work", "missing": "not begun"}
SCOPES = {"th": "col", "td": None}
RINGS = "Rings: turbines that stand already."


def section(name: str, title: str, *children: Child, live: bool = False) -> Markup:
    """A part of a page, with a heading; live: it is brought up to date while somebody looks."""
    return tag(
        "section",
        {"id": name, "data-live": live, "aria-labelledby": f"{name}-title"},
        tag("h2", {"id": f"{name}-title"}, title),
        *children,
    )


def table(
    header: Sequence[Child], rows: Iterable[Sequence[Child]], *, right: Sequence[int] = (), caption: str = ""
) -> Markup:
    """Columns with their names; `right`: those of numbers. Wide ones scroll within their own box."""

    def line(row: Sequence[Child], name: str) -> Markup:
        looks = ({"class": "number" if i in right else None, "scope": SCOPES[name]} for i in range(len(row)))
        return tag("tr", None, [tag(name, look, cell) for look, cell in zip(looks, row, strict=True)])

    title = tag("caption", {"class": "hidden"}, caption) if caption else None
    body = tag("tbody", None, [line(row, "td") for row in rows])
    inner = tag("table", None, title, tag("thead", None, line(header, "th")), body)
    return tag("div", {"class": "wide", "tabindex": 0, "role": "group", "aria-label": caption or "table"}, inner)


def facts(pairs: Iterable[tuple[Child, Child]]) -> Markup:
    """Names and values."""
    return tag("dl", {"class": "facts"}, [tag("div", None, tag("dt", None, a), tag("dd", None, b)) for a, b in pairs])


def link(address: str | None, *children: Child, title: str | None = None) -> Markup:
    """A link, or just what it would say."""
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
    """Links to the pages before and after; none where there is one page only. name: of the page in the address."""

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
    """A sign and a word: the colour alone tells nothing."""
    return f"{MARKS[state]} {WORDS[state]}"


def state_mark(state: str) -> Markup:
    """A sign and a word in the colour of the state."""
    return tag("span", {"class": f"state state-{state}"}, state_words(state))


def folded(title: str, *children: Child, name: str | None = None) -> Markup:
    """Return what a click on its title unfolds. name: its id, by which the dashboard keeps it open."""
    return tag("details", {"id": name}, tag("summary", None, title), *children)


def to_copy(command: str) -> Markup:
    """A command for a shell."""
    return tag("code", {"class": "command", "tabindex": 0}, command)


def figure_with(picture: Markup, *caption: Child) -> Markup:
    """A drawing and what it shows."""
    return tag("figure", None, picture, tag("figcaption", None, *caption))


def gwh(value: float | None, digits: int = 2) -> str:
    """AEP, or a dash."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def megawatts(value: float | None) -> str:
    """Installed power without its unit, or a dash."""
    return "–" if value is None or math.isnan(value) else f"{value:.6g}"


def percent(value: float | None) -> str:
    """A share, or a dash."""
    return "–" if value is None or math.isnan(value) else f"{value:z.2%}"


def metres(value: float | None) -> str:
    """A length, or a dash."""
    return "–" if value is None or math.isnan(value) else f"{value:.0f} m"
