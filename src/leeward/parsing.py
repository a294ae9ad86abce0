"""Parse text of unknown origin: its size, nesting and expansion are checked first."""

import json
import os
import re
from pathlib import Path
from typing import Any

import yaml

from leeward.errors import InputError

DEEPEST = 100  # levels of brackets; GeoJSON needs about ten
LARGEST_DATA = 256_000_000  # bytes of a GeoJSON or CSV file
MOST_VALUES = 4_000_000  # keys, numbers and words: 20 years of wind in steps of 10 minutes, 2 GB in PyYAML
MOST_COPIED = 1_000_000  # characters that all aliases (*name) may expand to, together
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def read_text(path: Path, what: str, largest: int, *, or_latin_1: bool = False) -> str:
    """Return the text of a UTF-8 file of at most `largest` bytes. what: the expected content, for errors.

    or_latin_1: read other bytes as Latin-1, for files of old programs, where only a title can have them.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected {what}")
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
        if len(content) > largest:
            raise InputError(
                f"{path}: has {os.stat(path).st_size} bytes; expected {what} of at most {largest // 10**6} MB"
            )
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            if not or_latin_1:
                raise
            return content.decode("latin-1")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); expected {what} in UTF-8") from error


def parse_json(text: str, where: str) -> Any:
    """Return the data of a JSON text. Raise InputError if it is not JSON or nested too deeply."""
    depth = 0
    for match in _BRACKETS.finditer(text):
        bracket = match[0]
        depth += (bracket in "[{") - (bracket in "]}")
        if depth > DEEPEST:
            line = text.count("\n", 0, match.start()) + 1
            raise InputError(f"{where}: line {line}: nested too deeply; expected at most {DEEPEST} levels of brackets")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"{where}: cannot be read as JSON ({error})") from error


class TooMuchError(yaml.MarkedYAMLError):
    """Raised for a text whose parsing would need too much memory or overflow the stack."""


def check_yaml(text: str) -> None:
    """Raise a TooMuchError for YAML that is nested too deeply, or too large with its aliases expanded.

    libyaml yields events without recursion; building data from them can overflow the stack.
    """
    open_anchors: list[tuple[str | None, int]] = []  # for each open collection: its anchor, and the size before it
    sizes: dict[str, int] = {}  # characters and values below each anchor, aliases expanded
    size, copied = 0, 0
    for values, event in enumerate(yaml.parse(text, Loader=_Loader)):
        size += 1
        if isinstance(event, yaml.CollectionStartEvent):
            open_anchors.append((event.anchor, size))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_anchors.pop()
            if anchor is not None:
                sizes[anchor] = size - before
        elif isinstance(event, yaml.ScalarEvent):
            size += len(event.value)
            if event.anchor is not None:
                sizes[event.anchor] = len(event.value)
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_anchors):
                raise _too_much(event, f"*{event.anchor:.60} contains itself; expected finite values")
            size += sizes.get(str(event.anchor), 0)
            copied += sizes.get(str(event.anchor), 0)
        if len(open_anchors) > DEEPEST:
            raise _too_much(event, f"nested too deeply; expected at most {DEEPEST} levels")
        if values > MOST_VALUES:
            raise _too_much(event, f"too many values; expected at most {MOST_VALUES}")
        if copied > MOST_COPIED:
            raise _too_much(event, f"aliases expand to too much text; expected at most {MOST_COPIED} characters")


def _too_much(event: Any, problem: str) -> TooMuchError:
    return TooMuchError(None, None, problem, event.start_mark)
