"""Texts of unknown origin: their size, and the nesting of JSON, are checked before they are parsed."""

import json
import os
import re
from pathlib import Path
from typing import Any

from leeward.errors import InputError

DEEPEST = 100  # brackets within brackets; GeoJSON needs about ten
LARGEST_DATA = 256_000_000  # bytes of a GeoJSON or CSV file
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def read_text(path: Path, what: str, largest: int) -> str:
    """Return the text of a UTF-8 file of at most `largest` bytes. what: what it should be, for the error."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected {what}")
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
        if len(content) > largest:
            raise InputError(
                f"{path}: has {os.stat(path).st_size} bytes; expected {what} of at most {largest // 10**6} MB"
            )
        return content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); expected {what} in UTF-8") from error


def parse_json(text: str, where: str) -> Any:
    """Return the data of a JSON text. Raise InputError where it is not JSON or nested too deeply."""
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
