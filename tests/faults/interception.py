"""The system calls of this process that change files below a folder: counted, and one of them goes wrong.

What Python code calls as `os.write` and so on is replaced in this process only. Files that are opened by handle with
`open` write through here too. Calls of C libraries are not seen: see `traced_python` in `operation.py`.
"""

import builtins
import errno
import io
import os
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

_TESTS = str(Path(__file__).resolve().parents[1])
if _TESTS not in sys.path:  # a script of this folder was started plainly, and needs the tests' own modules
    sys.path.append(_TESTS)

ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EACCES", "EROFS")
KILLS = ("before", "after", "middle")
MODES = (*KILLS, *ERRORS, "short", "full")
WRITES = ("write", "pwrite")
BY_PATH = ("rename", "replace", "unlink", "remove", "link", "mkdir", "rmdir")
_BY_HANDLE = ("fsync", "ftruncate")
_FREES = ("unlink", "remove", "rmdir", "fsync")  # what a full disk still does
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Fault:
    """What happens at the call of this number, from 1.

    mode: "before", "after", "middle" (of a write: half of it is done): the process is killed there. The name of an
    error: the call fails with it, and does nothing. "short": a write writes half. "full": the same, and from then on
    everything that needs room fails. Under strace only: "lost", a write says that it wrote, and did not, or a read that
    the file ends there; "always", every child process from then on is killed there. call, when: its name, and the how
    many-th of that name it is. child: in which child process that is, from 0, where it is in one.
    """

    number: int
    mode: str
    call: str = ""
    when: int = 0
    child: int = 0

    @property
    def kills(self) -> bool:
        return self.mode in KILLS

    @property
    def is_of_use(self) -> bool:
        """Whether it is any different from another mode at such a call."""
        if self.mode == "lost":
            return self.call in ("pwrite64", "read", "pread64")
        return self.call in WRITES or self.mode not in ("middle", "short")

    def __str__(self) -> str:
        child = f" of child {self.child}" if self.child else ""
        return f"{self.mode} at call {self.number}, {self.call} number {self.when}{child}"


@dataclass
class Calls:
    """Calls that were made, in order, each with its path relative to the folder: ("fsync", "layouts.run/results")."""

    folder: Path
    fault: Fault | None = None
    all_threads: bool = False
    made: list[tuple[str, str]] = field(default_factory=list)
    _thread: int = field(default_factory=threading.get_ident)

    def install(self) -> None:
        """For the rest of this process's life."""
        self.folder = Path(os.path.realpath(self.folder))
        self._readlink = os.readlink
        self._kill = os.kill
        for name in BY_PATH:
            setattr(os, name, self._by_path(name, getattr(os, name)))
        for name in (*_BY_HANDLE, *WRITES):
            setattr(os, name, self._by_handle(name, getattr(os, name)))
        os.open = self._opening(os.open)
        builtins.open = _opening_by_handle(builtins.open)

    def _place(self, what: "int | str | os.PathLike[str]") -> str | None:
        """Relative to the folder; None for what lies elsewhere, and for pipes."""
        if threading.get_ident() != self._thread and not self.all_threads:
            return None
        path = self._readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else os.path.abspath(os.fspath(what))
        try:
            return str(Path(path.removesuffix(" (deleted)")).relative_to(self.folder))
        except ValueError:
            return None

    def _by_path(self, name, real):
        def call(path, *others, **options):
            place = self._place(path)
            return (
                real(path, *others, **options)
                if place is None
                else self._meet(name, place, lambda: real(path, *others, **options))
            )

        return call

    def _by_handle(self, name, real):
        def call(handle, *others):
            place = self._place(handle)
            if place is None:
                return real(handle, *others)
            half = None
            if name in WRITES:
                content = memoryview(others[0])

                def half():
                    return real(handle, content[: max(1, len(content) // 2)], *others[1:])

            return self._meet(name, place, lambda: real(handle, *others), half)

        return call

    def _opening(self, real):
        def call(path, flags, *others, **options):
            place = self._place(path) if flags & _WRITING else None
            return (
                real(path, flags, *others, **options)
                if place is None
                else self._meet("open", place, lambda: real(path, flags, *others, **options))
            )

        return call

    def _meet(self, name, place, real, half=None):
        self.made.append((name, place))
        fault = self.fault
        if fault is None or len(self.made) < fault.number:
            return real()
        if len(self.made) > fault.number:
            if fault.mode == "full" and name not in _FREES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)
            return real()
        if fault.mode == "before":
            self._die()
        if fault.mode in ERRORS or (fault.mode == "full" and half is None and name not in _FREES):
            number = getattr(errno, fault.mode, errno.ENOSPC)
            raise OSError(number, os.strerror(number), place)
        try:
            return half() if half is not None and fault.mode in ("middle", "short", "full") else real()
        finally:
            if fault.kills:
                self._die()

    def _die(self) -> None:
        self._kill(os.getpid(), signal.SIGKILL)


class _Raw(io.RawIOBase):
    """A handle that is written to with `os.write`, where the faults are."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def writable(self) -> bool:
        return True

    def write(self, content) -> int:
        return os.write(self._handle, content)


def _opening_by_handle(real):
    def call(file, mode="r", *others, **options):
        if isinstance(file, int) and mode == "wb" and options.get("closefd") is False:
            return io.BufferedWriter(_Raw(file))
        return real(file, mode, *others, **options)

    return call
