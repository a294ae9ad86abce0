"""A folder of this user's, for compiled kernels and tables that take long to make.

Kernels are stored as pickles, so the folder belongs to the user alone (mode 0700) and one that does not is not used.
Everything in it can be deleted at any time. A final name means a complete file: written under another name, renamed.
"""

import contextlib
import functools
import hashlib
import io
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt


@functools.cache
def cache_folder() -> Path | None:
    """`$LEEWARD_CACHE_DIR`, or `leeward` in the user's cache folder; None (with a warning) if it cannot be used."""
    named = os.environ.get("LEEWARD_CACHE_DIR")
    if named:
        folder = Path(named)
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leeward"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        owner = folder.stat().st_uid
        if hasattr(os, "getuid") and owner != os.getuid():
            raise PermissionError(f"it belongs to user {owner}, not to you")
        if hasattr(os, "getuid"):
            folder.chmod(0o700)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        warnings.warn(
            f"leeward: cannot use the cache folder {folder} ({error}); compiling anew in every process. "
            "Set LEEWARD_CACHE_DIR to a folder of your own.",
            stacklevel=2,
        )
        return None
    return folder


def write_atomically(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step, whoever else is doing the same."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def cached_array(name: str, source_file: str, make: Callable[[], npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """What `make` returns, read-only, kept on disk under a name that changes with `source_file`."""
    folder = cache_folder()
    if folder is None:
        array = make()
    else:
        digest = hashlib.sha256(Path(source_file).read_bytes()).hexdigest()[:16]
        path = folder / f"{name}-{digest}.npy"
        if not path.exists():
            content = io.BytesIO()
            np.save(content, make())
            write_atomically(path, content.getvalue())
        array = np.asarray(np.load(path, mmap_mode="r"))  # mapped: processes share it, and only what is used is read
    array.flags.writeable = False
    return array
