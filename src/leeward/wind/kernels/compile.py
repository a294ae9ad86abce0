"""Compile kernels with numba, and cache them on disk.

numba's own cache notices a change only in the file of the function itself, not in a formula of another file, and it
identifies a function built from formulas by objects that differ between processes. So leeward has its own cache: one
file per kernel and signature, in a folder whose name depends on everything that can change the machine code (all
sources, the versions of numba and Python, the CPU).
"""

import contextlib
import functools
import hashlib
import inspect
import os
import pickle
import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
from numba.core import serialize, types
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.registry import CPUDispatcher

from leeward.compiling import CompiledElsewhereError, notify, waits
from leeward.wind.cache import cache_folder, fetch, open_private, private_folder, store

WAIT_FOR_OTHERS_S = 300.0  # longest wait for another process that compiles the same kernel; after it, compile here

# allow fused multiply-add and ignore the sign of zero, but keep the order of additions
FAST_MATH = {"contract", "nsz"}

ENVIRONMENT = "_ZN08NumbaEnv"  # prefix of the names of numba's pointers to the constants of a function

F = TypeVar("F", bound=Callable[..., Any])


def once(function: F) -> F:
    """Return a cached function that computes each result once, also if several threads ask for it at the same time."""
    lock, cached = threading.RLock(), functools.cache(function)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with lock:
            return cached(*arguments)

    return cast("F", call)


def formula(function: F) -> F:
    """Mark a scalar function or a part of a loop, to be inlined into compiled loops. Python can still call it."""
    return _piece(function, forceinline=True, _nrt=False)


def allocating(function: F) -> F:
    """Mark a function that allocates arrays: like `formula`, but not inlined."""
    return _piece(function)


def allocating_inline(function: F) -> F:
    """Mark a function that allocates arrays, inlined so that the compiler sees the constant shapes of its arrays."""
    return _piece(function, forceinline=True)


def _piece(function: F, **options: bool) -> F:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    piece: Any = Piece(function, {"error_model": "numpy", "fastmath": FAST_MATH, **options})
    return piece  # type: ignore[no-any-return]


class Piece(CPUDispatcher):
    """A function that is compiled only as part of the kernels that use it. From Python it runs as plain Python.

    By default, numba makes machine code and a Python wrapper for every function that a kernel calls. For the sixty or
    so small functions of the wake engine, that is a third of the compile time. It also compiles one version of a
    function for each constant that is passed to it, and for each first guess of a variable that starts as a constant.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        without = {"nopython": True, "boundscheck": None, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, {}, {**options, **without}, _PieceCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile the piece for the types of its arguments, also for constants."""
        plain = {name: types.unliteral(kind) for name, kind in dict(kws).items()}
        return super().get_call_template(tuple(types.unliteral(kind) for kind in args), plain)

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


class _PieceCompiler(Compiler):
    def define_pipelines(self) -> Any:
        state = self.state
        state.library = _PieceLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


class _PieceLibrary(JITCodeLibrary):
    """Optimised LLVM code for other libraries to link."""

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def _finalize_final_module(self) -> None:
        """Load only the module's pointers to constants into memory; kernels share these."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        names = [v.name for v in self._final_module.global_variables if v.name.startswith(ENVIRONMENT)]
        pointers = llvmlite.binding.parse_assembly("\n".join(f'@"{name}" = common global ptr null' for name in names))
        self._codegen._add_module(pointers)
        self._codegen._engine.finalize_object()
        self._finalized = True


def kernel(function: Callable[..., Any], label: str, source: Path | None) -> Any:
    """Return a loop for use from Python: it runs without the interpreter lock and is cached on disk under `label`.

    source: the file with its formulas; None for functions defined interactively, which are not cached.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    folder = kernel_folder(source) if source is not None else None
    cache = KernelCache(folder, f"{label}-{function.__name__}")
    # numba distinguishes functions of one name and signature by a counter per process. It confuses functions that
    # different processes compiled, unless their names differ.
    function.__qualname__ += f" of {label} in {folder.name if folder else 'memory'}"
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
    dispatcher: Any = numba.njit(function, error_model="numpy", fastmath=FAST_MATH, **options)
    dispatcher._cache = cache

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return dispatcher(*arguments)
        except BaseException:
            cache.release()
            raise

    return call


def kernel_folder(source: Path) -> Path | None:
    """Return the cache folder for kernels made from `source` and leeward's sources; None without a cache folder."""
    base = cache_folder()
    if base is None:
        return None
    wind = Path(__file__).parent.parent
    ours = sorted([*wind.glob("kernels/*.py"), *wind.glob("wake_models/*.py"), wind / "overlap.py"])
    beside = sorted(source.parent.glob("*.py")) if source.parent.name == "kernels" else [source]
    digest = hashlib.sha256()
    for path in [*ours, *beside]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for fact in (
        numba.__version__,
        platform.python_version(),
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
    ):
        digest.update(fact.encode() + b"\0")
    return private_folder(base / f"kernels-{digest.hexdigest()[:24]}")


class KernelCache(NullCache):
    """The disk cache of one kernel; an empty one without a folder. It reports when compilation starts and ends."""

    def __init__(self, folder: Path | None, label: str) -> None:
        self._folder = folder
        self._label = label
        self._locks: dict[Path, int] = {}
        self._is_compiling = False

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the stored kernel. If there is none, take its lock and return None: numba then compiles and saves."""
        if self._folder is None:
            self._report(True)
            return None
        target_context.refresh()  # cached code needs numba's runtime, which is set up on first use
        path = self._path(self._folder, signature)
        result = self._read(path, target_context)
        if result is None:
            self._report(True)
            self._lock(path)
            result = self._read(path, target_context)  # another process may have compiled it meanwhile
            if result is not None:
                self.release()
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store a compiled kernel and release its lock."""
        if self._folder is not None:
            store(self._path(self._folder, signature), serialize.dumps(result._reduce()))
        self.release()

    def release(self) -> None:
        """Release the locks, so that other processes can compile, and report the end of the compilation."""
        while self._locks:
            os.close(self._locks.popitem()[1])
        self._report(False)

    def _report(self, starts: bool) -> None:
        if starts != self._is_compiling:
            self._is_compiling = starts
            notify(starts)

    def _path(self, folder: Path, signature: Any) -> Path:
        return folder / f"{self._label}-{hashlib.sha256(str(signature).encode()).hexdigest()[:16]}.kernel"

    def _read(self, path: Path, target_context: Any) -> Any:
        stored = fetch(path)
        if stored is None:
            return None
        # a pickle of machine code and numba's metadata; `fetch` returns only files that this user wrote
        return CompileResult._rebuild(target_context, *pickle.loads(stored))

    def _lock(self, path: Path) -> None:
        """Take the lock, so that one process compiles while others wait. The lock ends with its process.

        Without file locking, or if the folder is not writable, every process compiles for itself.
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


def source_file(thing: type) -> Path | None:
    """Return the source file of a class; None if it was defined interactively."""
    try:
        path = Path(inspect.getfile(thing))
    except (TypeError, OSError):
        return None
    return path if path.is_file() else None


def _flock(handle: int) -> bool:
    """Wait for the lock and return True; False after the time limit, or without file locking.

    Raise CompiledElsewhereError instead of waiting if `waits()` is False.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    end = time.monotonic() + WAIT_FOR_OTHERS_S
    try:
        while time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            if not waits():
                raise CompiledElsewhereError
            time.sleep(0.05)
    except OSError:  # Lustre without -o flock, some FUSE and NFS mounts: ENOLCK, ENOSYS, EOPNOTSUPP, EBADF
        return False
    return False
