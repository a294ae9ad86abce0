"""Signatures of the callbacks for events. The library calls them; it never prints."""

from collections.abc import Callable
from typing import Any

Emit = Callable[
    ..., None
]  # emit(kind, **facts) sends one event; kind is positional, because a fact may have the name kind
OnEvent = Callable[
    [dict[str, Any]], None
]  # on_event(event) receives the event as a dict, whose key "event" is its kind
OnProgress = Callable[[str, int, int], None]  # on_progress(stage, done, total); total is 0 if unknown


def ignore(kind: str, /, **facts: object) -> None:
    """Discard the event."""
