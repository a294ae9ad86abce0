"""Index lines of results, for fast listing. They are a cache: resume, merge and check never trust them."""

import math
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from leeward.files import NotAFileError, open_regular, read_regular
from leeward.store.directory.audit import parse_line
from leeward.store.directory.temporary import Temporary
from leeward.store.paths import INDEX, is_pack as is_in_packs
from leeward.wording import json_text

INDEX_FORMAT = 1

_OUTSIDE = {"aep": "aep_gwh", "diameter": "rotor_diameter_m"}  # index lines have the names of HDF5 files


def encode_line(line: dict[str, Any]) -> bytes:
    """Return an index line as JSON."""
    return json_text(line, separators=(",", ":")).encode() + b"\n"


def event_facts(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an index line under the names that events and JSON output have."""
    return {_OUTSIDE.get(name, name): value for name, value in line.items()}


class Brief(NamedTuple):
    """The values of a result that a run keeps in memory. A value is NaN if it is unknown."""

    aep_gwh: float
    wake_loss: float

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> "Brief":
        """Return the values in an index line."""
        aep, loss = line.get("aep"), line.get("wake_loss")
        return cls(math.nan if aep is None else float(aep), math.nan if loss is None else float(loss))


class IndexLines:
    """The index lines of many results, compressed until all of them are written."""

    def __init__(self) -> None:
        self.count = 0
        self._packer = zlib.compressobj(1)
        self._packed: list[bytes] = []

    def add(self, line: dict[str, Any]) -> None:
        self.count += 1
        self._packed.append(self._packer.compress(encode_line(line)))

    def unpacked(self) -> Iterator[bytes]:
        """Yield all lines. Call this only once."""
        unpacker = zlib.decompressobj()
        for piece in filter(None, [*self._packed, self._packer.flush()]):
            yield unpacker.decompress(piece)


def output_index_path(output: Path) -> Path:
    """Return the path of the index, beside the file itself. Follow links, except at the path of a pack."""
    real = output if is_in_packs(output) else Path(os.path.realpath(output))
    return real.with_name(f"{real.name}{INDEX}")


def write_output_index(output: Path, lines: IndexLines) -> None:
    """Write the index beside the output. The index records the size and modification time of the output."""
    state = output.stat()
    head = {"format": INDEX_FORMAT, "size": state.st_size, "mtime_ns": state.st_mtime_ns, "count": lines.count}
    with Temporary(output_index_path(output)) as temporary:
        with open(temporary.handle, "wb", closefd=False) as file:
            file.write(encode_line(head))
            file.writelines(lines.unpacked())
        temporary.put_in_place()


def output_index(output: Path, *, is_pack: bool = False) -> bytes | None:
    """Return the index lines of a merged file, or None if there is no index or it is out of date.

    is_pack: compare the size only. The name of a pack is never reused, so a copy of the same size is the same file.
    """
    try:
        state = output.stat()
        content = read_regular(output_index_path(output))
    except (FileNotFoundError, NotAFileError):  # the index is only a cache
        return None
    start = content.find(b"\n") + 1
    head = parse_line(content[:start])
    stated = head.get("format"), head.get("size"), head.get("count")
    if stated != (INDEX_FORMAT, state.st_size, content.count(b"\n") - 1):
        return None
    return content[start:] if is_pack or head.get("mtime_ns") == state.st_mtime_ns else None


def indexed_count(output: Path) -> int | None:
    """Return the number of results in the index of a file, even if it is out of date; None if there is no index."""
    try:
        with os.fdopen(open_regular(output_index_path(output)), "rb") as file:
            count = parse_line(file.readline(1000)).get("count")
    except (FileNotFoundError, NotAFileError):
        return None
    return count if isinstance(count, int) else None


def whole_lines(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the intact lines, parsed."""
    for text in content.split(b"\n"):
        line = parse_line(text)
        if "key" in line:
            yield line
