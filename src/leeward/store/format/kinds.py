"""The kinds of results that there are."""

from collections.abc import Mapping
from typing import Any

from leeward.errors import InputError
from leeward.store.format.kind import AnyResult
from leeward.store.format.layout_result import Result

KINDS: dict[str, type[AnyResult]] = {Result.KIND: Result}


def kind_told(attributes: Mapping[str, object]) -> str:
    """Return the name of the kind that the attributes of a file tell; without one it holds layouts."""
    return str(attributes.get("kind", Result.KIND))


def parse_key(text: str) -> Any:
    """Return the key of whatever kind that this text names. Raise InputError if it names none."""
    for kind in KINDS.values():
        try:
            return kind.parse_key(text)
        except InputError:
            continue
    raise InputError(
        f"{text!r:.60} is not a key; expected one like {' or '.join(kind.EXAMPLE for kind in KINDS.values())}"
    )


def key_or_none(text: str) -> Any:
    """Return the key of whatever kind that this text names, or None."""
    try:
        return parse_key(text)
    except InputError:
        return None
