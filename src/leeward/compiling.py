"""Callbacks for the compilation of kernels. Importing this module does not import numba."""

import contextlib
import time
from collections.abc import Callable, Iterator

from leeward.events import Emit

# called with True when compiling begins, here or in a process that this one waits for; with False when it ends
Callback = Callable[[bool], None]

COMPILE_EVENTS = ("compiling", "compiled")

_callbacks: list[Callback] = []


@contextlib.contextmanager
def on_compile(callback: Callback) -> Iterator[None]:
    """Call the callback for every kernel that this process compiles. Of nested callbacks, call the innermost."""
    _callbacks.append(callback)
    try:
        yield
    finally:
        _callbacks.remove(callback)


def notify(begins: bool) -> None:
    """Call the innermost callback, if there is one."""
    if _callbacks:
        _callbacks[-1](begins)


@contextlib.contextmanager
def compile_events(emit: Emit) -> Iterator[None]:
    """Emit "compiling" once if a kernel is compiled within the context, and "compiled" with the seconds at its end."""
    began: float | None = None
    seconds = 0.0

    def callback(begins: bool) -> None:
        nonlocal began, seconds
        now = time.monotonic()
        if not begins and began is not None:
            seconds += now - began
        elif begins:
            if began is None:
                emit("compiling")
            began = now

    with on_compile(callback):
        try:
            yield
        finally:
            if began is not None:
                emit("compiled", seconds=round(seconds, 1))


class CompiledElsewhereError(Exception):
    """Raised if another process is compiling the kernel."""


_waits: list[bool] = [True]


@contextlib.contextmanager
def without_waiting() -> Iterator[None]:
    """Within this context, raise CompiledElsewhereError instead of waiting for another process to compile a kernel."""
    _waits.append(False)
    try:
        yield
    finally:
        _waits.pop()


def waits() -> bool:
    """Return whether to wait for a kernel that another process is compiling."""
    return _waits[-1]
