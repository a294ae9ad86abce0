"""Temporary files and folders whose names identify the process that writes them.

A killed process leaves its temporary file behind. A leftover is a temporary file whose process has ended or, if the
process was on another machine, a file that has not changed for a day.
"""

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from leeward.files import TEMPORARY, rename
from leeward.store.directory.owner import Owner, is_tag_gone

WORKSPACE = ".salvage"  # suffix of a workspace
ABANDONED_S = 86_400.0
_TAG = re.compile(r"\.([0-9a-f]{8}-[0-9a-f]{8}-[0-9]{1,10}-[0-9a-f]{8})\.[0-9a-f]{8}\.[a-z]+$")


class Temporary:
    """A new, empty file beside `target`. The end of the `with` block removes it unless it was put in place."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = _new_name(target, TEMPORARY)
        self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)

    def put_in_place(self) -> None:
        """Rename the file to its final name atomically. The caller syncs the folder."""
        if os.name == "nt":  # Windows cannot rename an open file
            self._close()
        rename(self.path, self.target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()
        self.path.unlink(missing_ok=True)

    def _close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


@contextlib.contextmanager
def workspace(target: Path) -> Iterator[Path]:
    """Make a folder for copies beside `target`, and remove it at the end. Also remove those of killed processes."""
    target = Path(os.path.realpath(target))
    for path in left_overs(target.parent, start_of(target), WORKSPACE):
        shutil.rmtree(path)
    folder = _new_name(target, WORKSPACE)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _new_name(target: Path, end: str) -> Path:
    return target.with_name(f"{start_of(target)}{Owner.myself().tag}.{secrets.token_hex(4)}{end}")


def start_of(target: Path) -> str:
    """Return the prefix of the temporary files of `target`, and of files whose names begin with its name."""
    return f".{target.name}."


def left_overs(folder: Path, start: str, end: str = TEMPORARY) -> list[Path]:
    """Return the leftover temporary files, or workspaces, whose names begin with `start`."""
    is_right = os.DirEntry.is_dir if end == WORKSPACE else os.DirEntry.is_file
    named = (entry for entry in os.scandir(folder) if entry.name.startswith(start) and entry.name.endswith(end))
    paths = sorted(folder / entry.name for entry in named if is_right(entry, follow_symlinks=False))
    return [path for path in paths if _is_left(path)]


def remove_left_overs_of(target: Path) -> list[Path]:
    """Remove the leftover temporary files of `target`, and return them."""
    return remove_left_overs(target.parent, start_of(target))


def remove_left_overs(folder: Path, start: str) -> list[Path]:
    """Remove the leftover temporary files whose names begin with `start`, and return them."""
    left = left_overs(folder, start)
    for path in left:
        path.unlink(missing_ok=True)
    return left


def _is_left(path: Path) -> bool:
    tag = _TAG.search(path.name)
    is_gone = is_tag_gone(tag[1]) if tag else None
    if is_gone is not None:
        return is_gone
    try:
        return time.time() - path.lstat().st_mtime > ABANDONED_S
    except FileNotFoundError:
        return False
