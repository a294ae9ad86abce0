"""Compile kernels with numba, and keep what was compiled on disk.

numba's own cache notices a change only in the file of the function itself, not in a formula of another file, and
identifies a function built from given formulas by objects that differ from process to process. So the kernels have a
cache of their own: one file per kernel and signature, in a folder named by everything that can change the machine
code (all sources, the versions of numba and Python, the CPU).
"""

import contextlib
import functools
import hashlib
import inspect
import os
import pickle
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding
import numba
from numba.core import serialize
from numba.core.compiler import CompileResult

from leeward.compiling import CompiledElsewhereError, notify, waits
from leeward.wind.cache import cache_folder, fetch, open_private, private_folder, store
from leeward.wind.kernels.pieces import Piece

WAIT_FOR_OTHERS_S = 300.0  # for another process that is compiling the same; after that, do it ourselves

# fused multiply-add and no care for the sign of zero; nothing that changes the order of additions
FAST_MATH = {"contract", "nsz"}

F = TypeVar("F", bound=Callable[..., Any])


def formula(function: F) -> F:
    """Mark a scalar function or a piece of a loop: it is inlined into the loops that use it, and stays callable."""
    return _piece(function, forceinline=True, _nrt=False)


def allocating(function: F) -> F:
    """Like `formula`, for a function that makes arrays. It is not inlined."""
    return _piece(function)


def allocating_inline(function: F) -> F:
    """Like `allocating`, but inlined: so the loops know the shapes of its arrays, where these are constant."""
    return _piece(function, forceinline=True)


def _piece(function: F, **options: bool) -> F:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    piece: Any = Piece(function, {"error_model": "numpy", "fastmath": FAST_MATH, **options})
    return piece  # type: ignore[no-any-return]


def kernel(function: Callable[..., Any], label: str, source: Path | None) -> Any:
    """A loop that Python calls: runs without the interpreter lock, and is kept on disk under `label`.

    source: the file with the formulas it uses; None if there is none (typed by hand), then nothing is kept.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    folder = kernel_folder(source) if source is not None else None
    cache = NoCache() if folder is None else KernelCache(folder, f"{label}-{function.__name__}")
    # Functions of one name and signature are told apart by a number that counts up in each process. Where several are
    # loaded that other processes have compiled, numba takes one for another, unless their names differ.
    function.__qualname__ += f" of {label} in {folder.name if folder else 'memory'}"
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
    dispatcher: Any = numba.njit(function, error_model="numpy", fastmath=FAST_MATH, **options)
    dispatcher._cache = cache

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return dispatcher(*arguments)
        except BaseException:
            cache.give_up()
            raise

    return call


def kernel_folder(source: Path) -> Path | None:
    """Where kernels made from this and our own sources are kept; None without a cache folder."""
    base = cache_folder()
    if base is None:
        return None
    wind = Path(__file__).parent.parent
    own = sorted([*wind.glob("kernels/*.py"), *wind.glob("wake_models/*.py"), wind / "overlap.py"])
    beside = sorted(source.parent.glob("*.py")) if source.parent.name == "kernels" else [source]
    digest = hashlib.sha256()
    for path in [*own, *beside]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for fact in (
        numba.__version__,
        platform.python_version(),
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
    ):
        digest.update(fact.encode() + b"\0")
    return private_folder(base / f"kernels-{digest.hexdigest()[:24]}")


class NoCache:
    """An empty cache, as a numba dispatcher asks for one (`numba.core.caching._Cache`). It tells of compiling."""

    cache_path = ""
    _is_compiling = False

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return None: the dispatcher compiles, and then saves."""
        self._note(True)

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep nothing."""
        self._note(False)

    def give_up(self) -> None:
        """End a call that failed."""
        self._note(False)

    def enable(self) -> None:
        """Do nothing: always on."""

    def disable(self) -> None:
        """Do nothing: always on."""

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def _note(self, begins: bool) -> None:
        if begins != self._is_compiling:
            self._is_compiling = begins
            notify(begins)


class KernelCache(NoCache):
    """The disk cache of one kernel."""

    def __init__(self, folder: Path, label: str) -> None:
        self.cache_path = str(folder)
        self._folder = folder
        self._label = label
        self._locks: dict[Path, int] = {}

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        target_context.refresh()  # stored code refers to numba's runtime, which is set up on first use
        path = self._path(signature)
        result = self._read(path, target_context)
        if result is None:
            self._note(True)
            self._lock(path)
            result = self._read(path, target_context)  # whoever held the lock may have made it
            if result is not None:
                self._unlock(path)
                self._note(False)
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        path = self._path(signature)
        store(path, serialize.dumps(result._reduce()))
        self._unlock(path)
        self._note(False)

    def give_up(self) -> None:
        """Let others compile what was not compiled here after all."""
        for path in list(self._locks):
            self._unlock(path)
        self._note(False)

    def _path(self, signature: Any) -> Path:
        return self._folder / f"{self._label}-{hashlib.sha256(str(signature).encode()).hexdigest()[:16]}.kernel"

    def _read(self, path: Path, target_context: Any) -> Any:
        stored = fetch(path)
        if stored is None:
            return None
        # machine code with numba's description of it, pickled; `fetch` returns only what this user has written
        return CompileResult._rebuild(target_context, *pickle.loads(stored))

    def _lock(self, path: Path) -> None:
        """Let one process compile while the others wait. The lock goes with its owner, however that ends.

        Where there is no locking, or the folder cannot be written, every process compiles for itself.
        """
        try:
            handle = open_private(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR)
        except OSError:  # `store` warns if it cannot write either
            return
        held = False
        try:
            held = _flock(handle)
        finally:
            if held:
                self._locks[path] = handle
            else:
                os.close(handle)

    def _unlock(self, path: Path) -> None:
        handle = self._locks.pop(path, None)
        if handle is not None:
            os.close(handle)


def source_file(thing: type) -> Path | None:
    """The file in which a class was written; None if it was typed by hand."""
    try:
        path = Path(inspect.getfile(thing))
    except (TypeError, OSError):
        return None
    return path if path.is_file() else None


def _until(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.05)


def _flock(handle: int) -> bool:
    """Take the lock once nobody else has it, and return True; False if that takes too long, or there is no locking.

    Raise CompiledElsewhereError instead of waiting, where that was asked for.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        for _ in _until(WAIT_FOR_OTHERS_S):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            if not waits():
                raise CompiledElsewhereError
    except OSError:  # Lustre without -o flock, some FUSE and NFS mounts: ENOLCK, ENOSYS, EOPNOTSUPP, EBADF
        return False
    return False
