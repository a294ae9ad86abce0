"""Write files atomically, and read regular files only."""

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from leeward.errors import StorageError

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)  # errors of file systems without hard links
TEMPORARY = ".tmp"  # suffix of temporary files
_KINDS = {"-": "file", "d": "folder", "l": "link", "p": "pipe", "s": "socket", "c": "device", "b": "device"}
LARGEST_SIDE_FILE = 1 << 30  # bytes; enough for the index of ten million results
_SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class NotAFileError(OSError):
    """Raised for a link, a pipe, a device or a folder where a regular file is expected."""


def open_regular(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file and return its handle. Raise NotAFileError for a link, a pipe, a device or a folder.

    Links among the folders above it are followed.
    """
    try:
        handle = os.open(path, flags | _SAFE_FLAGS, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise NotAFileError(error.errno, _not_regular(path)) from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise NotAFileError(errno.EINVAL, _not_regular(path))
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_regular(path: Path, limit: int = LARGEST_SIDE_FILE) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. Raise NotAFileError for anything else."""
    with os.fdopen(open_regular(path), "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise NotAFileError(errno.EFBIG, f"it is larger than {limit} bytes; was it written by leeward?")
    return content


def kind_of(path: Path) -> str:
    """Return the kind of file at a path, links not followed: "folder", "file", "link", "pipe", ..., or "" for none."""
    try:
        return _KINDS.get(stat.filemode(os.lstat(path).st_mode)[0], "special file")
    except FileNotFoundError:
        return ""


def _not_regular(path: Path) -> str:
    kind = kind_of(path)
    return f"it is a {kind}; expected a regular file" if kind else "it was removed while it was opened"


def replace_file(
    path: Path, content: bytes, *, durable: bool = True, check: Callable[[int], bool] | None = None
) -> None:
    """Replace a file in one step: write and sync a temporary file in the same folder, then rename it.

    After an OSError `path` is unchanged, except if only the last sync failed: then it has the new content, which may
    not survive a power cut. The call can be repeated. durable: the content survives a power cut. check: called with a
    handle to read from, before the rename; it returns whether the content is right.
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
        if check is not None and not _passes(temporary, check):
            raise StorageError(f"{temporary}: the content read back is not what was written; is the disk failing?")
        rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def _passes(path: Path, check: Callable[[int], bool]) -> bool:
    handle = os.open(path, os.O_RDONLY)
    try:
        drop_cache(handle)
        return check(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def storage_errors(place: Path, what: str) -> Iterator[None]:
    """Turn an OSError within this context into a StorageError with the message `place: what (reason)`."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{place}: {what} ({error})") from error


def rename(source: Path, target: Path) -> None:
    """Rename a file or a folder, replacing `target`. Ignore an error if the file was renamed nevertheless.

    NFS repeats a request whose answer was lost, and the second answer may be that there is no such file.
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
    """Return whether a file exists, also on NFS, where another machine may just have created it."""
    try:
        refresh(path.parent)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return os.path.lexists(path)


def refresh(folder: Path) -> None:
    """Make the system look up the names in a folder again.

    NFS caches the names and their files for up to a minute. Opening the folder refreshes the cache.
    """
    if os.name == "posix":
        with contextlib.suppress(PermissionError):  # a folder whose names this user may not list
            os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))


def write_all(handle: int, content: bytes) -> None:
    """Write all bytes. This may take several system calls, because one may write only some of them."""
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def sync(handle: int) -> None:
    """Flush a file to the disk itself. After an error the file must not be used again."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # on macOS, fsync leaves the data in the disk's cache
    else:
        os.fsync(handle)


def drop_cache(handle: int) -> None:
    """Drop a synced file from the cache, so that the next read comes from the disk and can detect a bad one."""
    if hasattr(os, "posix_fadvise"):  # macOS does not have it
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Do nothing on Windows, where folders cannot be opened."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
