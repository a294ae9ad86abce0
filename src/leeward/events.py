"""Signatures of the callbacks for events. The library calls them; it never prints."""

from collections.abc import Callable
from typing import Any

Emit = Callable[..., None]  # emit(kind, **facts): send one event; kind is positional, as a fact may be called kind
OnEvent = Callable[[dict[str, Any]], None]  # on_event(event): the same as a dict, with its kind as "event"
OnProgress = Callable[[str, int, int], None]  # on_progress(stage, done, total); total is 0 if unknown


def ignore(kind: str, /, **facts: object) -> None:
    """Discard the event."""
