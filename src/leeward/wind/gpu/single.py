"""Turn functions into ones for single precision: their constants become 32-bit numbers."""

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from leeward.wind.kernels.compile import Piece, formula


def in_single_precision(function: Callable[..., Any]) -> Any:
    """Return a copy of a function in which all constants are 32-bit numbers, also in the pieces that it calls.

    With such arguments it computes in single precision: a 64-bit constant would turn each result into a 64-bit number.
    """
    return _Copies().of(function)


class _Copies:
    """The copies made so far, of functions and of the global names of their modules."""

    def __init__(self) -> None:
        self._functions: dict[int, Any] = {}
        self._globals: dict[int, dict[str, Any]] = {}

    def of(self, function: Callable[..., Any]) -> Any:
        if id(function) not in self._functions:
            self._functions[id(function)] = self._copy(function)
        return self._functions[id(function)]

    def _copy(self, function: Callable[..., Any]) -> Any:
        plain: Any = function.py_func if isinstance(function, Piece) else function
        code, given = plain.__code__, plain.__globals__
        known = self._globals.setdefault(id(given), dict(given))
        known.update({name: self._single(given[name]) for name in code.co_names if name in given})
        copied = types.FunctionType(
            code.replace(co_consts=self._single(code.co_consts)),
            known,
            plain.__name__,
            plain.__defaults__,
            tuple(types.CellType(self._single(cell.cell_contents)) for cell in plain.__closure__ or ()),
        )
        return formula(copied) if isinstance(function, Piece) else copied

    def _single(self, value: Any) -> Any:
        if type(value) is float:
            return np.float32(value)
        if type(value) is tuple:
            return tuple(self._single(each) for each in value)
        return self.of(value) if isinstance(value, Piece) else value
