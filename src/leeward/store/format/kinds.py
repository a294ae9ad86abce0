"""The registered kinds of results."""

from collections.abc import Mapping
from typing import Any

from leeward.errors import InputError
from leeward.store.format.evaluation_result import Evaluation
from leeward.store.format.kind import AnyResult
from leeward.store.format.layout_result import Result

KINDS: dict[str, type[AnyResult]] = {Result.KIND: Result, Evaluation.KIND: Evaluation}


def kind_name(attributes: Mapping[str, object]) -> str:
    """Return the kind of results that the attributes of a file name; layouts if they name none."""
    return str(attributes.get("kind", Result.KIND))


def parse_key(text: str) -> Any:
    """Return the key, of any kind, that a text names. Raise InputError if it is not a key."""
    key = key_or_none(text)
    if key is None:
        examples = " or ".join(kind.EXAMPLE for kind in KINDS.values())
        raise InputError(f"{text!r:.60} is not a key; expected one like {examples}")
    return key


def key_or_none(text: str) -> Any:
    """Return the key, of any kind, that a text names, or None."""
    return next((kind.parse_key(text) for kind in KINDS.values() if kind.is_key(text)), None)
