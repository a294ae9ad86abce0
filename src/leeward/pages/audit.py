"""What was done to a run directory, newest first."""

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.pages.html import Child, Markup, tag
from leeward.pages.links import Links
from leeward.pages.parts import folded, pager, section, table
from leeward.wording import json_text

PAGE = 100
LONGEST = 160  # letters of a value; the rest is folded away


def audit_trail(lines: Sequence[Mapping[str, Any]], page: int, links: Links, *, live: bool = False) -> Markup:
    """Events with their facts, a page of them. lines: all of them, the oldest first."""
    if not lines:
        return section("audit", "Audit trail", tag("p", None, "There is none here."), live=live)
    shown = lines[::-1][page * PAGE : (page + 1) * PAGE]
    pages = -(-len(lines) // PAGE)
    first = len(lines) - page * PAGE - 1  # numbers of events do not change when others come
    rows = [
        [_text(line.get("time")), _text(line.get("event")), _facts(line, first - place)]
        for place, line in enumerate(shown)
    ]
    return section(
        "audit",
        f"Audit trail: {len(lines)} events",
        table(["time", "event", "facts"], rows, caption="audit trail"),
        pager("/audit", page, pages, words=("newer", "older")) if links.is_live else None,
        tag("p", None, f"These are the latest {len(shown)}.") if pages > 1 and not links.is_live else None,
        live=live,
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
