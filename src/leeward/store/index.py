"""Lines about results, for fast listing: caches, which resume, merge and check never trust."""

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leeward.store.audit import read_lines
from leeward.store.found import FoundResult
from leeward.store.paths import RunPaths
from leeward.store.schema import Result
from leeward.store.temporary import Temporary

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


class IndexLines:
    """The lines of many results, packed: they are needed only when all of these are written."""

    def __init__(self) -> None:
        self.count = 0
        self._packer = zlib.compressobj(1)
        self._packed: list[bytes] = []

    def add(self, result: Result) -> None:
        self.count += 1
        self._packed.append(self._packer.compress(encode_line(index_line(result))))

    def unpacked(self) -> Iterator[bytes]:
        """All of them, once."""
        unpacker = zlib.decompressobj()
        for piece in filter(None, [*self._packed, self._packer.flush()]):
            yield unpacker.decompress(piece)


def write_output_index(output: Path, lines: IndexLines) -> None:
    """Beside the output, and tied to the very file by its size and time."""
    state = output.stat()
    head = {"format": INDEX_FORMAT, "size": state.st_size, "mtime_ns": state.st_mtime_ns, "count": lines.count}
    with Temporary(RunPaths(output).output_index) as temporary:
        with open(temporary.handle, "wb", closefd=False) as file:
            file.write(encode_line(head))
            file.writelines(lines.unpacked())
        temporary.put_in_place()


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
