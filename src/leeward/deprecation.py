"""Warn of names that have changed."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(old: str, new: str) -> None:
    """Issue a DeprecationWarning to the caller of the function that calls this."""
    warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=3)


def renamed_argument(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for functions of which a keyword argument has a new name."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def renamed(*arguments: Any, **keywords: Any) -> R:
            if old in keywords:
                warn_renamed(f"{old}=", f"{new}=")
                keywords[new] = keywords.pop(old)
            return function(*arguments, **keywords)

        return cast(Callable[P, R], renamed)

    return decorate
