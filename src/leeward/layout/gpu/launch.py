"""Start the GPU's loops of optimisations. Importing this module does not import numba."""

import functools
from typing import Any

THREADS = 64  # of a block


@functools.cache
def kernel(name: str) -> Any:
    """Return a compiled loop by its name."""
    from leeward.layout.gpu import kernels
    from leeward.wind.gpu.build import compiled

    return compiled(getattr(kernels, name), False)


def start(name: str, threads: int, *arguments: object) -> None:
    """Start a loop with so many threads."""
    kernel(name)[-(-threads // THREADS), THREADS](*arguments)
