"""Old names that still work for one release, with a DeprecationWarning."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(old: str, new: str) -> None:
    """Issue a DeprecationWarning to the caller of the function that calls this."""
    warnings.warn(f"{old} is now called {new}; use that name", DeprecationWarning, stacklevel=3)


def renamed_argument(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a function whose keyword argument has a new name."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def renamed(*arguments: Any, **keywords: Any) -> R:
            if old in keywords:
                warn_renamed(f"{old}=", f"{new}=")
                keywords[new] = keywords.pop(old)
            return function(*arguments, **keywords)

        return cast(Callable[P, R], renamed)

    return decorate


class Renamed:
    """A descriptor for the old name of a method or attribute. It issues a DeprecationWarning and returns the new one.

    Write `old = Renamed("new")` in the body of the class.
    """

    def __init__(self, new: str) -> None:
        self._new = new
        self._old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        warn_renamed(self._old, f"{self._old.partition('.')[0]}.{self._new}")
        return getattr(instance, self._new)
