"""Import names on first use, so that a command starts quickly."""

import ast
import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leeward.errors import InputError


def lazy_names(package: str, file: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose stub, `__init__.pyi`, imports its names. file: its `__file__`."""

    @functools.cache
    def homes() -> dict[str, str]:
        tree = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: node.module or "" for node in imports for alias in node.names}

    def look_up(name: str) -> Any:
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes()[name]), name)

    return look_up


def import_named(path: str, what: str) -> Any:
    """Return the function or class `module:Name`, or raise InputError. what: its role, for errors."""
    module, _, name = path.partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise InputError(f"{what} {path!r}: {module!r} is not a module name; expected 'module:Name'")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{what} {path!r} cannot be imported ({error}); expected 'module:Name', with a module on Python's path"
        ) from error
    thing = getattr(found, name, None)
    if not callable(thing):
        raise InputError(f"{what} {path!r}: {getattr(found, '__file__', module)} has no function or class {name!r}")
    return thing
