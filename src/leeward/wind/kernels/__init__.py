"""The compiled part of the wake engine."""

import functools
from typing import TYPE_CHECKING

from leeward.wind.kernels.data import Kernels

if TYPE_CHECKING:
    from leeward.wind.wake_models.base import WakeModel


@functools.cache
def kernels_of(model: "type[WakeModel]") -> Kernels:
    """The kernels of a model's formulas, shared by all farms of this process; each is compiled on its first call."""
    from leeward.wind.kernels.compile import kernel, source_file
    from leeward.wind.kernels.sweep import build

    ours = model.__module__.startswith("leeward.")
    label = model.name if ours else f"{model.name}-{model.__module__}.{model.__qualname__}"
    return Kernels(*(kernel(loop, label, source_file(model)) for loop in build(model.formulas)))
