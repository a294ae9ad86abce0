"""Loops over turbines, edges and lattices, compiled on first use."""

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

_HOMES = {
    "violations": "constraints",
    "repair": "constraints",
    "descend": "constraints",
    "widest_lattice": "lattice",
    "signed_distances": "distance",
}


@functools.cache
def compiled(name: str) -> Callable[..., Any]:
    """Return a compiled loop by its name."""
    from leeward.wind.kernels.compile import kernel

    module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    group = "area" if name == "signed_distances" else "layout"
    loop: Callable[..., Any] = kernel(getattr(module, name), group, source=Path(str(module.__file__)))
    return loop
