"""Whole pages: header, menu and footer."""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources

from leeward import __version__
from leeward.pages.html import Child, Markup, join, tag

MENU = ("Map", "Tasks", "Workers", "Failures", "Settings", "Audit")


@cache
def asset(name: str) -> bytes:
    """Return the bytes of a file in the folder `assets`."""
    return resources.files("leeward.pages").joinpath("assets", name).read_bytes()


def live_page(
    title: str,
    here: str,
    campaign: str,
    content: Iterable[Child],
    refresh_s: float | None,
    pages: Sequence[str] = MENU,
) -> str:
    """Return a page of the dashboard. here: its address in the menu. refresh_s: update interval; None: no updates.

    pages: the names of the other pages in the menu.
    """
    head = [
        tag("link", {"rel": "stylesheet", "href": "/style.css"}),
        tag("link", {"rel": "icon", "href": "/icon.svg", "type": "image/svg+xml"}),
        tag("script", {"src": "/live.js", "defer": True}),
    ]
    menu = _menu("pages of the campaign", [("/", "Overview"), *((f"/{name.lower()}", name) for name in pages)], here)
    top = tag("header", None, tag("a", {"href": "/", "class": "brand"}, "leeward"), tag("span", None, campaign), menu)
    skip = tag("a", {"href": "#content", "class": "skip"}, "Skip to content")
    main = tag("main", {"id": "content", "data-refresh": refresh_s}, *content)
    status = tag("p", {"id": "news", "role": "status", "aria-live": "polite"})
    foot = tag("footer", None, status, f"leeward {__version__}; read-only: this dashboard does not change the run.")
    return _document(f"{title} – {campaign}", head, [skip, top, main, foot])


def report_page(title: str, parts: Sequence[tuple[str, str, Child]]) -> str:
    """Return the report as one self-contained page. parts: id, title and content of each section; None is left out."""
    shown = [(name, words, content) for name, words, content in parts if content is not None]
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    head = [
        tag("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        tag("style", None, Markup(asset("style.css").decode())),
    ]
    menu = _menu("contents", [(f"#{name}", words) for name, words, _ in shown])
    top = tag("header", None, tag("span", {"class": "brand"}, "leeward"), tag("span", None, title), menu)
    foot = tag("footer", None, f"Made by leeward {__version__}.")
    return _document(title, head, [top, tag("main", {"id": "content"}, *(content for *_, content in shown)), foot])


def _menu(label: str, entries: Iterable[tuple[str, str]], here: str = "") -> Markup:
    """Return a menu of addresses and their titles. here: the address of the current page."""
    items = []
    for address, words in entries:
        current = "page" if address == here else None
        items.append(tag("li", None, tag("a", {"href": address, "aria-current": current}, words)))
    return tag("nav", {"aria-label": label}, tag("ul", None, *items))


def _document(title: str, head: Sequence[Child], body: Sequence[Child]) -> str:
    start = [
        tag("meta", {"charset": "utf-8"}),
        tag("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        tag("meta", {"name": "color-scheme", "content": "light dark"}),
        tag("title", None, title),
    ]
    page = tag("html", {"lang": "en"}, tag("head", None, start, head), tag("body", None, *body))
    return f"<!doctype html>\n{join([page])}\n"
