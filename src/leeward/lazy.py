"""Packages that import their names on first use, so that a command starts quickly."""

import ast
import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


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
