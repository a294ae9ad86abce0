"""Lines about results, for fast listing: caches, which resume, merge and check never trust."""

import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from leeward.files import NotAFileError, open_regular, read_regular
from leeward.store.directory.temporary import Temporary
from leeward.store.paths import INDEX, is_pack as is_in_packs
from leeward.wording import json_text

if TYPE_CHECKING:  # `leeward status` reads indexes, and does without h5py
    from leeward.store.format.found import FoundResult
    from leeward.store.format.kind import AnyResult

INDEX_FORMAT = 1


def index_line(result: "AnyResult | FoundResult") -> dict[str, Any]:
    """Return what lists and pages show of a result."""
    return result.index_line()


def encode_line(line: dict[str, Any]) -> bytes:
    return json_text(line, separators=(",", ":")).encode() + b"\n"


class Brief(NamedTuple):
    """What a run keeps in memory of each result. aep: GWh; both not a number where they are not known."""

    aep: float
    wake_loss: float

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> "Brief":
        """From an index line."""
        aep, loss = line.get("aep"), line.get("wake_loss")
        return cls(math.nan if aep is None else float(aep), math.nan if loss is None else float(loss))


class IndexLines:
    """The lines of many results, packed: they are needed only when all of these are written."""

    def __init__(self) -> None:
        self.count = 0
        self._packer = zlib.compressobj(1)
        self._packed: list[bytes] = []

    def add(self, line: dict[str, Any]) -> None:
        self.count += 1
        self._packed.append(self._packer.compress(encode_line(line)))

    def unpacked(self) -> Iterator[bytes]:
        """All of them, once."""
        unpacker = zlib.decompressobj()
        for piece in filter(None, [*self._packed, self._packer.flush()]):
            yield unpacker.decompress(piece)


def output_index_path(output: Path) -> Path:
    """Beside the file itself, which may lie behind a link unless it is a pack."""
    real = output if is_in_packs(output) else Path(os.path.realpath(output))
    return real.with_name(f"{real.name}{INDEX}")


def write_output_index(output: Path, lines: IndexLines) -> None:
    """Beside the output, and tied to the very file by its size and time."""
    state = output.stat()
    head = {"format": INDEX_FORMAT, "size": state.st_size, "mtime_ns": state.st_mtime_ns, "count": lines.count}
    with Temporary(output_index_path(output)) as temporary:
        with open(temporary.handle, "wb", closefd=False) as file:
            file.write(encode_line(head))
            file.writelines(lines.unpacked())
        temporary.put_in_place()


def output_index(output: Path, *, is_pack: bool = False) -> bytes | None:
    """All lines about the results of a merged file; None if there are none, or none of the very file that is there.

    is_pack: no other file ever gets its name, so that one of the same size is the very file, copied or not.
    """
    try:
        state = output.stat()
        content = read_regular(output_index_path(output))
    except (FileNotFoundError, NotAFileError):  # a cache: what is no file is no help either
        return None
    start = content.find(b"\n") + 1
    head = parsed(content[:start])
    fits = head.get("format"), head.get("size"), head.get("count")
    if fits != (INDEX_FORMAT, state.st_size, content.count(b"\n") - 1):
        return None
    return content[start:] if is_pack or head.get("mtime_ns") == state.st_mtime_ns else None


def told_count(output: Path) -> int | None:
    """How many results the index beside a file tells of, whether it fits or not; None without one."""
    try:
        with os.fdopen(open_regular(output_index_path(output)), "rb") as file:
            count = parsed(file.readline(1000)).get("count")
    except (FileNotFoundError, NotAFileError):
        return None
    return count if isinstance(count, int) else None


def whole_lines(content: bytes) -> Iterator[dict[str, Any]]:
    """All that the lines say; torn ones are left out."""
    for text in content.split(b"\n"):
        line = parsed(text)
        if "key" in line:
            yield line


def parsed(text: bytes) -> dict[str, Any]:
    """A line of JSON; empty if it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # nested too deeply to be one of ours
        return {}
    return found if isinstance(found, dict) else {}
