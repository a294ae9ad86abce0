"""Lines about results, for fast listing: caches, which resume, merge and check never trust."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leeward.files import replace_file
from leeward.store.audit import read_lines
from leeward.store.found import FoundResult
from leeward.store.paths import RunPaths
from leeward.store.schema import Result

INDEX_FORMAT = 1
_DETAILS = ("wake_loss", "min_spacing_m", "seconds", "created", "aep_source")


def index_line(result: Result | FoundResult) -> dict[str, Any]:
    """What lists and pages show of a result."""
    line: dict[str, Any] = {
        "key": str(result.key),
        "aep": result.aep if result.aep == result.aep else None,  # JSON knows no NaN
        "n_turbines": result.n_turbines,
        "diameter": result.diameter if result.diameter == result.diameter else None,
        "status": result.status,
        "origin": result.origin,
        "fingerprint": result.fingerprint,
    }
    for name in _DETAILS:
        value = result.details.get(name)
        if isinstance(value, str | bool | int | float) and value == value:
            line[name] = value
    return line


def read_index(path: Path) -> list[dict[str, Any]]:
    """The lines of an index.jsonl; a torn last one is left out. Empty if there is no such file."""
    return [line for line in read_lines(path) if "key" in line]


def encode_line(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def write_output_index(output: Path, lines: Iterable[bytes], count: int) -> None:
    """Beside the output; lines: encoded. Tied to the very file by its size and time."""
    state = output.stat()
    head = {"format": INDEX_FORMAT, "size": state.st_size, "mtime_ns": state.st_mtime_ns, "count": count}
    replace_file(RunPaths(output).output_index, b"".join([encode_line(head), *lines]), durable=False)


def read_output_index(output: Path) -> list[dict[str, Any]] | None:
    """None if there is none, or if it is not of the file that is there now."""
    try:
        state = output.stat()
        lines = read_lines(RunPaths(output).output_index)
    except FileNotFoundError:
        return None
    if not lines:
        return None
    head = lines[0]
    fits = (head.get("format"), head.get("size"), head.get("mtime_ns"), head.get("count"))
    if fits != (INDEX_FORMAT, state.st_size, state.st_mtime_ns, len(lines) - 1):
        return None
    return lines[1:]
