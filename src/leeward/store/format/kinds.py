"""The registered kinds of results."""

from collections.abc import Mapping
from typing import Any

from leeward.errors import InputError
from leeward.store.format.kind import AnyResult
from leeward.store.format.layout_result import Result

KINDS: dict[str, type[AnyResult]] = {Result.KIND: Result}


def kind_told(attributes: Mapping[str, object]) -> str:
    """Return the kind of results in a file by its attributes; layouts if they name none."""
    return str(attributes.get("kind", Result.KIND))


def parse_key(text: str) -> Any:
    """Return the key, of any kind, that a text names. Raise InputError if it is not a key."""
    for kind in KINDS.values():
        try:
            return kind.parse_key(text)
        except InputError:
            continue
    raise InputError(
        f"{text!r:.60} is not a key; expected one like {' or '.join(kind.EXAMPLE for kind in KINDS.values())}"
    )


def key_or_none(text: str) -> Any:
    """Return the key, of any kind, that a text names, or None."""
    try:
        return parse_key(text)
    except InputError:
        return None
