"""Old names that still work for one release."""

import warnings
from typing import Any


class Renamed:
    """The old name of a method or attribute. It returns the new one, with a DeprecationWarning.

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
        warnings.warn(f"{self._old} is now called {self._new}; use that name", DeprecationWarning, stacklevel=2)
        return getattr(instance, self._new)
