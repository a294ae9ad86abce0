"""Pieces: functions that are compiled only as part of the kernels that use them.

By default, numba makes machine code and a Python wrapper for every function that a kernel calls. For the sixty or so
small functions of the wake engine, that is a third of the compile time. It also compiles one version of a function for
each constant that is passed to it, and for each first guess of a variable that starts as a constant.
"""

import functools
from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numba
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

ENVIRONMENT = "_ZN08NumbaEnv"  # prefix of the names of numba's pointers to the constants of a function


class Piece(CPUDispatcher):
    """A function for use in kernels. A call from Python compiles it separately."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._alone = options
        without = {"nopython": True, "boundscheck": None, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, {}, {**options, **without}, _PieceCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile the piece for the types of its arguments, also for constants."""
        plain = {name: types.unliteral(kind) for name, kind in dict(kws).items()}
        return super().get_call_template(tuple(types.unliteral(kind) for kind in args), plain)

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    @functools.cached_property
    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = numba.njit(self.py_func, **self._alone)
        return function


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
