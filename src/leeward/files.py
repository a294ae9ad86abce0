"""Files that appear whole or not at all."""

import errno
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from leeward.errors import StorageError

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)  # what file systems without hard links say
TEMPORARY = ".tmp"  # how the name of a file ends that is being written


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
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def _is_good(path: Path, check: Callable[[int], bool]) -> bool:
    handle = os.open(path, os.O_RDONLY)
    try:
        return check(handle)
    finally:
        os.close(handle)


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


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; where folders cannot be opened (Windows) there is nothing to do."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
