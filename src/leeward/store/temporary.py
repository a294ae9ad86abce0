"""Large files in the making: written under a temporary name that says whether somebody is still at it.

The name of a file in the making stays behind if its process is killed. Its lock does not: a left-over is a temporary
file that nobody holds a lock on. Whoever removes one holds its lock meanwhile: a writer that has just made the
file, and finds it gone when it has the lock, makes another one.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from leeward.files import TEMPORARY

if os.name == "posix":
    import fcntl

WORKSPACE = ".salvage"  # how the name of such a folder ends


class Temporary:
    """A new, empty file beside `target`, locked; gone at the end of the `with` unless it was put in place."""

    def __init__(self, target: Path) -> None:
        self.target = target
        while True:
            self.path = target.with_name(f".{target.name}.{secrets.token_hex(4)}{TEMPORARY}")
            self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
            _lock(self.handle)
            if os.fstat(self.handle).st_nlink or os.name != "posix":
                return
            self._close()  # taken for a left-over before it was locked

    def put_in_place(self) -> None:
        """Its final name, in one step. That the name is durable is left to the caller."""
        if os.name == "nt":  # where an open file cannot be renamed
            self._close()
        self.path.replace(self.target)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self.path.unlink(missing_ok=True)

    def _close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


class Workspace:
    """A folder beside `target` for copies that nobody is to keep, locked as a temporary file is; gone at the end.

    What a killed process has left of one is removed by the next.
    """

    def __init__(self, target: Path) -> None:
        self.target = Path(os.path.realpath(target))

    def __enter__(self) -> Path:
        _remove_left_workspaces(self.target)
        while True:
            self.path = self.target.with_name(f".{self.target.name}.{secrets.token_hex(4)}{WORKSPACE}")
            self.path.mkdir()
            if os.name != "posix":
                return self.path
            self._handle = os.open(self.path, os.O_RDONLY)
            _lock(self._handle)
            if os.fstat(self._handle).st_nlink:
                return self.path
            os.close(self._handle)  # taken for a left-over before it was locked

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            shutil.rmtree(self.path)
        finally:
            if os.name == "posix":
                os.close(self._handle)


def _remove_left_workspaces(target: Path) -> None:
    if os.name != "posix":
        return
    for entry in os.scandir(target.parent):
        if entry.name.startswith(start_of(target)) and entry.name.endswith(WORKSPACE) and entry.is_dir():
            _is_free(entry.path, shutil.rmtree)


def _lock(handle: int) -> None:
    if os.name == "posix":
        with contextlib.suppress(OSError):  # a file system without locks: left-overs cannot be told there, and stay
            fcntl.flock(handle, fcntl.LOCK_EX)  # who looks for left-overs has it for a moment only


def left_overs(folder: Path, start: str) -> list[Path]:
    """Temporary files, of names that start so, that nobody is writing any more."""
    if os.name != "posix":
        return []
    names = [entry for entry in os.scandir(folder) if entry.name.startswith(start) and entry.name.endswith(TEMPORARY)]
    return sorted(Path(entry.path) for entry in names if entry.is_file(follow_symlinks=False) and _is_free(entry.path))


def start_of(target: Path) -> str:
    """How the names of all temporary files start that are of `target`, or of a file named after it."""
    return f".{target.name}."


def _is_free(path: str, then: Callable[[str], None] = lambda path: None) -> bool:
    """Whether nobody is writing it; if so, `then` is called before anybody else can have it."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = True
    except OSError:  # somebody's, or no locks here: it stays
        is_free = False
    try:
        if is_free:
            then(path)
    finally:
        os.close(handle)
    return is_free


def remove_left_over(path: Path) -> bool:
    """Remove one, unless somebody is writing it after all; whether it is gone."""
    return os.name == "posix" and _is_free(str(path), os.unlink)


def remove_left_overs(folder: Path, start: str) -> list[Path]:
    """Remove them, and say which."""
    return [path for path in left_overs(folder, start) if remove_left_over(path)]
