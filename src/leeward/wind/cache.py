"""A private folder for compiled kernels and tables that take long to compute.

Kernels are stored as pickles, and reading a pickle can run code. So the folder is first opened and checked (it belongs
to the user, has mode 0700 and is not a link), and its files are opened relative to its handle. Another user who renames
a parent folder can remove the cache, but cannot replace it. An unsafe folder is not used.

Everything in it can be deleted at any time. A file is written under a temporary name and renamed when complete, and
verified against its checksum when read. An error here costs time, but no result is lost.
"""

import contextlib
import functools
import hashlib
import io
import os
import secrets
import stat
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from leeward.files import kind_of, write_all

T = TypeVar("T")

_CHECKSUM = 32
_PIECE = 1 << 20
_FOLDERS_OPEN = os.open in os.supports_dir_fd  # not on Windows, where a user's profile is private
_SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@functools.cache
def cache_folder() -> Path | None:
    """Return a private folder in `$LEEWARD_CACHE_DIR` or in `~/.cache/leeward`; None (with a warning) if unsafe."""
    try:
        named = os.environ.get("LEEWARD_CACHE_DIR")
        base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leeward"
        base = base.absolute()  # a custom recipe may change the working directory
        # other users must not write here, even if the umask allows it; see _check_parents
        base.mkdir(parents=True, exist_ok=True, mode=0o775)
        folder = base / f"of-user-{os.getuid() if hasattr(os, 'getuid') else 'me'}"
        _check_parents(folder)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        _warn(str(error))
        return None
    return private_folder(folder)


def private_folder(folder: Path) -> Path | None:
    """Return the folder, created if it is missing; None (with a warning) if other users have access to it."""
    try:
        folder.mkdir(exist_ok=True, mode=0o700)
        with _opened(folder):
            return folder
    except OSError as error:
        _warn(str(error))
        return None


def open_private(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file that only this user can write, and return its handle; raise OSError for any other."""
    with _opened(path.parent) as folder:
        return folder.open(path.name, flags)


def store(path: Path, content: bytes) -> None:
    """Write `content` and its checksum to `path` atomically. A failure only causes a warning."""
    temporary = f"{path.name}.{secrets.token_hex(8)}"
    try:
        with _opened(path.parent) as folder:
            handle = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                try:
                    write_all(handle, content)
                    write_all(handle, hashlib.sha256(content).digest())
                    os.fsync(handle)
                finally:
                    os.close(handle)
                folder.rename(temporary, path.name)
            except BaseException:
                folder.remove(temporary)
                raise
    except OSError as error:
        _warn(_reason(path.parent, error))


def fetch(path: Path) -> bytes | None:
    """Return the content that `store` wrote to `path`; None if it is missing, damaged or not safe to read."""
    return _read(path, lambda file: file.read()[:-_CHECKSUM])


def cached_array(name: str, source_file: str, make: Callable[[], npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Return the array of `make`, read-only, cached on disk under a name that changes with `source_file`."""
    folder = cache_folder()
    array = None
    if folder is not None:
        digest = hashlib.sha256(Path(source_file).read_bytes()).hexdigest()[:16]
        path = folder / f"{name}-{digest}.npy"
        array = _read(path, _mapped)
    if array is None:
        array = make()
        if folder is not None:
            content = io.BytesIO()
            np.save(content, array)
            store(path, content.getvalue())
            mapped = _read(path, _mapped)
            array = array if mapped is None else mapped
    array.flags.writeable = False
    return array


def _read(path: Path, use: Callable[[BinaryIO], T]) -> T | None:
    """Return `use(file)`; None if the file is missing, damaged, or (with a warning) cannot be read."""
    try:
        with os.fdopen(open_private(path), "rb") as file:
            return use(file) if _matches_checksum(file) else None
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(_reason(path.parent, error))
        return None


def _matches_checksum(file: BinaryIO) -> bool:
    """Return whether the file matches its checksum, and rewind it."""
    digest = hashlib.sha256()
    left = os.fstat(file.fileno()).st_size - _CHECKSUM
    while left > 0:
        piece = file.read(min(_PIECE, left))
        if not piece:
            return False
        digest.update(piece)
        left -= len(piece)
    fits = file.read() == digest.digest()
    file.seek(0)
    return fits


def _mapped(file: BinaryIO) -> npt.NDArray[np.float64]:
    """Return the array of an .npy file as a memory map, which processes share."""
    np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return np.asarray(np.memmap(file, dtype, "r", file.tell(), shape))


@dataclass(frozen=True)
class _Folder:
    """An open, private folder: its names refer to the same files even if its path is renamed."""

    path: Path
    handle: int | None  # None on Windows

    def open(self, name: str, flags: int) -> int:
        """Open a regular file that only this user can write, and return its handle."""
        handle = os.open(self._at(name), flags | _SAFE_FLAGS, 0o600, dir_fd=self.handle)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise PermissionError(f"{self.path / name} is not a regular file")
            _check_owner(self.path / name, found, stat.S_IWGRP | stat.S_IWOTH)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def rename(self, old: str, new: str) -> None:
        os.replace(self._at(old), self._at(new), src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(name), dir_fd=self.handle)

    def _at(self, name: str) -> str | Path:
        return self.path / name if self.handle is None else name


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[_Folder]:
    """Open a folder; raise PermissionError if it is a link or open to other users.

    The folder is opened for each use, because a process that becomes a daemon may close open handles.
    """
    if not _FOLDERS_OPEN:
        yield _Folder(path, None)
        return
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if kind_of(path) == "link":  # the error differs: not a folder, or too many links
            raise PermissionError(f"{path} is a link") from error
        raise
    try:
        _check_owner(path, os.fstat(handle), stat.S_IRWXG | stat.S_IRWXO)
        yield _Folder(path, handle)
    finally:
        os.close(handle)


def _check_owner(path: Path, found: os.stat_result, forbidden: int) -> None:
    """Raise PermissionError if another user owns the path or its mode has a forbidden bit."""
    if not hasattr(os, "getuid"):
        return
    if found.st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to user {found.st_uid}, not to you ({os.getuid()})")
    if found.st_mode & forbidden:
        raise PermissionError(f"{path} is open to others: mode {stat.S_IMODE(found.st_mode):o}")


def _check_parents(folder: Path) -> None:
    """Raise PermissionError if any user can rename a parent of this folder.

    A sticky folder such as /tmp is accepted: other users cannot rename our files in it. A folder that a group can write
    is accepted too, because many home and project folders are; a file of another member has the wrong owner.
    """
    for parent in _parents(folder) if hasattr(os, "getuid") else ():
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise PermissionError(f"{folder} lies in {parent}, which everybody can write: mode {stat.S_IMODE(mode):o}")


def _parents(path: Path) -> Iterator[Path]:
    """Yield the parents of an absolute path, and those of the targets of links among them."""
    for parent in path.parents:
        yield parent
        if parent.is_symlink():
            yield from _parents(parent.parent / parent.readlink())


def _reason(folder: Path, error: OSError) -> str:
    """Return the error with the name of the folder instead of the file, so that `_warn` prints it once."""
    return f"{folder}: {error.strerror}" if error.strerror else str(error)


@functools.cache
def _warn(reason: str) -> None:
    """Issue a warning, once in a process."""
    warnings.warn(
        f"leeward: cannot use its cache folder ({reason}); compiling without it. "
        "Set LEEWARD_CACHE_DIR to a folder that only you can write.",
        stacklevel=3,
    )
