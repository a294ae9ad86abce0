"""A share of a long test: LEEWARD_FAULTS_PART=2/5 asks for the second of five. All of them together are the whole."""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

PART, PARTS = map(int, (os.environ.get("LEEWARD_FAULTS_PART") or "1/1").split("/"))


def share(items: Sequence[T], part: int = PART, parts: int = PARTS) -> Sequence[T]:
    """Return the items of one part."""
    return items[part - 1 :: parts]
