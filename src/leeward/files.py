"""Files that appear whole or not at all, and reading that accepts regular files only."""

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from leeward.errors import StorageError

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)  # what file systems without hard links say
TEMPORARY = ".tmp"  # how the name of a file ends that is being written
LARGEST_SIDE_FILE = 1 << 30  # bytes; an index of ten million results has as many
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class NotAFileError(OSError):
    """Something other than a regular file stands in the place of one: a link, a pipe, a device, a folder."""


def open_regular(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file and return its handle. Raise NotAFileError for a link, a pipe, a device or a folder.

    The link itself is refused; links among the folders above it are followed.
    """
    try:
        handle = os.open(path, flags | _CAREFULLY, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise NotAFileError(error.errno, _oddity(path)) from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise NotAFileError(errno.EINVAL, _oddity(path))
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_regular(path: Path, limit: int = LARGEST_SIDE_FILE) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. Raise NotAFileError for anything else."""
    with os.fdopen(open_regular(path), "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise NotAFileError(errno.EFBIG, f"it is larger than {limit} bytes; is it leeward's?")
    return content


def kind_of(path: Path) -> str:
    """Return what stands at a path, links not followed: "folder", "file", "link", "pipe", ..., or "" for nothing."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return ""
    return next((name for test, name in _KINDS if test(mode)), "special file")


_KINDS: list[tuple[Callable[[int], bool], str]] = [
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISLNK, "link"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
]


def _oddity(path: Path) -> str:
    return f"it is a {kind_of(path) or 'vanished file'}; expected a regular file"


def replace_file(
    path: Path, content: bytes, *, durable: bool = True, check: Callable[[int], bool] | None = None
) -> None:
    """Put `content` at `path` in one step: written and synced under another name in the same folder, then renamed.

    An OSError means that `path` is what it was before; or, if only the last sync has failed, that the new content is
    there and may not survive a power cut: the same call can be made again. durable: not only whole, but there after a
    power cut. check: called with a handle to read from, before the file gets its name; whether it is as it should be.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            write_all(handle, content)
            if durable:
                sync(handle)
        finally:
            os.close(handle)
        if check is not None and not _is_good(temporary, check):
            raise StorageError(f"{temporary}: what was read back is not what was written; is the disk failing?")
        rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def _is_good(path: Path, check: Callable[[int], bool]) -> bool:
    handle = os.open(path, os.O_RDONLY)
    try:
        drop_cache(handle)
        return check(handle)
    finally:
        os.close(handle)


def rename(source: Path, target: Path) -> None:
    """Rename a file or a folder, replacing `target`. Pass over an error if the rename was done nevertheless.

    On NFS a request whose answer was lost is sent again, and the second answer may be that there is no such file.
    """
    before = os.lstat(source)
    try:
        os.replace(source, target)
    except OSError:
        if os.path.lexists(source) or not os.path.lexists(target):
            raise
        after = os.lstat(target)
        if (after.st_dev, after.st_ino) != (before.st_dev, before.st_ino):
            raise


def is_there(path: Path) -> bool:
    """Return whether there is a file of this name, also if another machine has just made it."""
    try:
        refresh(path.parent)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return os.path.lexists(path)


def refresh(folder: Path) -> None:
    """Have the names in a folder looked up afresh.

    NFS remembers for up to a minute which names are there, and which file each one stands for, until the folder is
    opened.
    """
    if os.name == "posix":
        with contextlib.suppress(PermissionError):  # a folder whose names this user may not list
            os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))


def write_all(handle: int, content: bytes) -> None:
    """To the last byte, however few of them the system takes at once."""
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def sync(handle: int) -> None:
    """Have what was written on the disk itself. After an error here the file is not to be used again."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # fsync leaves it in the disk's own memory there
    else:
        os.fsync(handle)


def drop_cache(handle: int) -> None:
    """Have a synced file read from the disk next time, not from memory: only so can reading back find a bad disk."""
    if hasattr(os, "posix_fadvise"):  # not on macOS
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; where folders cannot be opened (Windows) there is nothing to do."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
