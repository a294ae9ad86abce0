"""A folder of this user's, for compiled kernels and tables that take long to make.

Kernels are stored as pickles, so the folder belongs to the user alone (mode 0700) and one that does not is not used.
Everything in it can be deleted at any time. A final name means a complete file: written under another name, renamed;
and what is read is checked against a checksum. Whatever goes wrong here costs time, never a result.
"""

import contextlib
import functools
import hashlib
import io
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

_CHECKSUM = 32
_PIECE = 1 << 20


@functools.cache
def cache_folder() -> Path | None:
    """A private folder in `$LEEWARD_CACHE_DIR` or in `~/.cache/leeward`; None (with a warning) if it cannot be used."""
    try:
        named = os.environ.get("LEEWARD_CACHE_DIR")
        base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leeward"
        folder = base / f"of-user-{os.getuid() if hasattr(os, 'getuid') else 'me'}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.stat()
        if hasattr(os, "getuid") and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077):
            raise PermissionError(f"{folder} is open to others: owner {found.st_uid}, mode {found.st_mode & 0o777:o}")
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: nobody knows where the home folder is
        warnings.warn(
            f"leeward: cannot use its cache folder ({error}); compiling anew in every process. "
            "Set LEEWARD_CACHE_DIR to a folder of your own.",
            stacklevel=2,
        )
        return None
    return folder


def store(path: Path, content: bytes) -> None:
    """Put `content` and its checksum at `path` in one step, whoever else is doing the same. A failure is only said."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.write(hashlib.sha256(content).digest())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    except OSError as error:
        warnings.warn(f"leeward: cannot write {path} ({error}); it will be made again next time", stacklevel=2)


def is_whole(path: Path) -> bool:
    """Whether the file is there and fits its checksum."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size - _CHECKSUM
            while left > 0:
                piece = file.read(min(_PIECE, left))
                if not piece:
                    return False
                digest.update(piece)
                left -= len(piece)
            return file.read() == digest.digest()
    except FileNotFoundError:
        return False


def fetch(path: Path) -> bytes | None:
    """What `store` put at `path`; None if it is not there or damaged."""
    return path.read_bytes()[:-_CHECKSUM] if is_whole(path) else None


def cached_array(name: str, source_file: str, make: Callable[[], npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """What `make` returns, read-only, kept on disk under a name that changes with `source_file`."""
    folder = cache_folder()
    array = None
    if folder is not None:
        digest = hashlib.sha256(Path(source_file).read_bytes()).hexdigest()[:16]
        path = folder / f"{name}-{digest}.npy"
        if not is_whole(path):
            array = make()
            content = io.BytesIO()
            np.save(content, array)
            store(path, content.getvalue())
        if is_whole(path):
            # mapped: processes share it, and only what is used is read
            array = np.asarray(np.load(path, mmap_mode="r"))
    if array is None:
        array = make()
    array.flags.writeable = False
    return array
