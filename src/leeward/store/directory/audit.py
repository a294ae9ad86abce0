"""The append-only audit log of a run directory: one line per event."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leeward.files import open_regular, read_regular, storage_errors, sync, sync_folder
from leeward.wording import json_text


class Audit:
    """An audit log with a single writer. `guard` raises an error if this process is no longer the writer."""

    def __init__(self, path: Path, guard: Callable[[], None] = lambda: None) -> None:
        self.path = path
        self._guard = guard

    def record(self, event: str, **facts: Any) -> None:
        """Append one event durably."""
        self._guard()
        line = json_text({"time": utc_now(), "event": event, **facts}, default=str) + "\n"
        with storage_errors(self.path, "cannot be written"):
            append_line(self.path, line, durable=True)


def utc_now() -> str:
    """Return the current time in UTC, for example 2026-01-31T12:00:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def append_line(path: Path, line: str, *, durable: bool = False) -> None:
    """Append a line to a regular file. If a crash or a full disk left a torn line, end that line first."""
    handle = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        size = os.fstat(handle).st_size
        if durable and size == 0:  # sync the name too: this call created the file, or one that was killed
            sync_folder(path.parent)
        if size and os.pread(handle, 1, size - 1) != b"\n":
            line = "\n" + line
        content = memoryview(line.encode())
        while content:
            content = content[os.write(handle, content) :]
        if durable:
            sync(handle)
    finally:
        os.close(handle)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the intact lines and skip torn ones. Return an empty list if there is no file."""
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return []
    return list(filter(None, map(parse_line, content.split(b"\n"))))


def parse_line(text: bytes) -> dict[str, Any]:
    """Return a line of JSON as a dict. Return an empty dict if the line is torn or holds no JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # leeward never nests values so deeply
        return {}
    return found if isinstance(found, dict) else {}
