"""The audit trail of a run directory, newest first."""

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.pages.html import Child, Markup, tag
from leeward.pages.parts import Links, folded, pager, section, table
from leeward.wording import json_text

PAGE = 100
LONGEST = 160  # characters of a value; longer ones are folded


def audit_trail(lines: Sequence[Mapping[str, Any]], page: int, links: Links) -> Markup:
    """Return a page of events with their details. lines: all events, oldest first."""
    if not lines:
        return section("audit", "Audit trail", tag("p", None, "There is no audit trail."), live=links.is_live)
    shown = lines[::-1][page * PAGE : (page + 1) * PAGE]
    pages = -(-len(lines) // PAGE)
    first = len(lines) - page * PAGE - 1  # newer events do not change the number of an event
    rows = [
        [_text(line.get("time")), _text(line.get("event")), _facts(line, first - place)]
        for place, line in enumerate(shown)
    ]
    return section(
        "audit",
        f"Audit trail: {len(lines)} events",
        table(["time", "event", "details"], rows, caption="audit trail"),
        pager("/audit", page, pages, words=("newer", "older")) if links.is_live else None,
        tag("p", None, f"Only the latest {len(shown)} are shown.") if pages > 1 and not links.is_live else None,
        live=links.is_live,
    )


def _facts(line: Mapping[str, Any], number: int) -> list[Child]:
    facts = ((name, value) for name, value in line.items() if name not in ("time", "event") and value is not None)
    return [_fact(name, value, f"event-{number}-{place}") for place, (name, value) in enumerate(facts)]


def _fact(name: str, value: object, identity: str) -> Markup:
    text = _text(value)
    title = f"{name.replace('_', ' ')}: "
    if len(text) <= LONGEST:
        return tag("span", {"class": "fact"}, title, text)
    return folded(f"{title}{len(text)} characters", tag("pre", None, text), name=identity)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)
