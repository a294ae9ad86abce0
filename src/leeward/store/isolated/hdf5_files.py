"""Check without libhdf5 that a file is a regular file and has the HDF5 signature and its stated length."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from leeward.carving import signature_place, stated_end
from leeward.errors import LeewardError
from leeward.files import NotAFileError, open_regular, refresh
from leeward.store.format.verdicts import Verdict
from leeward.store.paths import is_run

# temporary errors of the machine, the disk or the permissions, which do not depend on the content of the file
_PASSING = ("EIO", "ESTALE", "ENFILE", "EMFILE", "ENOMEM", "ETIMEDOUT", "EAGAIN", "EACCES", "EPERM", "ENOTCONN")
PASSING = tuple(getattr(errno, name) for name in _PASSING if hasattr(errno, name))


class BadFileError(LeewardError):
    """A file that cannot be read further. is_passing: the reason is temporary and does not depend on the content."""

    def __init__(self, verdict: Verdict, reason: str, *, is_passing: bool = False) -> None:
        super().__init__(reason)
        self.verdict = verdict
        self.is_passing = is_passing


@contextlib.contextmanager
def open_plain(path: str) -> Iterator[tuple[int, int]]:
    """Yield a handle of the file and its size. Never wait for a pipe, or follow a link in a run directory."""
    target = path
    try:
        if not os.path.lexists(path):
            refresh(Path(path).parent)  # another machine may have created it
        if os.path.islink(path):
            _refuse_if_in_run(path)
            target = os.path.realpath(path)
        handle = open_regular(Path(target), os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except NotAFileError as error:
        raise BadFileError(Verdict.UNREADABLE, str(error.strerror)) from error
    except OSError as error:
        is_passing = error.errno in PASSING
        raise BadFileError(Verdict.UNREADABLE, _open_failure(path, error), is_passing=is_passing) from error
    try:
        yield handle, os.fstat(handle).st_size
    finally:
        os.close(handle)


def _refuse_if_in_run(link: str) -> None:
    """Raise BadFileError for a link in a run directory, which leeward never makes. Elsewhere a user chose the link."""
    if any(is_run(folder) for folder in Path(link).parents[:3]):
        reason = f"it is a link to {os.readlink(link)}; leeward does not follow links in a run directory"
        raise BadFileError(Verdict.UNREADABLE, reason)


def _open_failure(path: str, error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "it is a broken link" if os.path.islink(path) else "no such file"
    return f"it cannot be opened: {error.strerror}"


def check_start(handle: int, size: int) -> int:
    """Return the position of the signature. Raise BadFileError if there is none or the file is too short."""
    if size == 0:
        raise BadFileError(Verdict.EMPTY, "0 bytes")
    place = signature_place(handle, size)
    if place is None:
        raise BadFileError(Verdict.NOT_HDF5, "no HDF5 signature")
    end = stated_end(handle, place)
    if end is None:
        raise BadFileError(Verdict.TRUNCATED, f"{size} bytes: it ends within its superblock")
    if end > size:
        raise BadFileError(Verdict.TRUNCATED, f"{size} of {end} bytes")
    return place


def library_message(error: BaseException) -> tuple[Verdict, str]:
    """Return the verdict on a file that libhdf5 rejects, and its message."""
    text = " ".join(str(error.args[0] if error.args else error).split())
    if "truncated file" in text:
        return Verdict.TRUNCATED, text[:300]
    if "already open for" in text:
        return Verdict.UNREADABLE, "it is marked as open for writing; its writer was probably killed"
    return Verdict.UNREADABLE, text[:300] or type(error).__name__
