"""Build the kernels of a wake model from its formulas."""

import functools
from typing import TYPE_CHECKING

from leeward.wind.kernels.compile import kernel, source_file
from leeward.wind.kernels.data import Kernels
from leeward.wind.kernels.differences import with_differences
from leeward.wind.kernels.gradient import make_gradient
from leeward.wind.kernels.maps import make_flow, make_gains, make_marginal, make_points
from leeward.wind.kernels.pairs import make_reaches
from leeward.wind.kernels.sweep import make_energy, make_sweep

if TYPE_CHECKING:
    from leeward.wind.wake_models.base import Formulas, WakeModel


@functools.cache
def kernels_of(model: "type[WakeModel]") -> Kernels:
    """Return the kernels of a model, shared by all farms of the process; each is compiled on its first call."""
    ours = model.__module__.startswith("leeward.")
    label = model.name if ours else f"{model.name}-{model.__module__}.{model.__qualname__}"
    return Kernels(*(kernel(loop, label, source_file(model)) for loop in build(model.formulas)))


def build(formulas: "Formulas") -> Kernels:
    """Return the loops for these formulas, not yet compiled. With compilation off they run as plain Python."""
    complete = with_differences(formulas)
    sweep = make_sweep(complete)
    return Kernels(
        make_reaches(complete.reach),
        make_energy(sweep),
        make_gradient(complete, sweep),
        make_points(sweep),
        make_marginal(sweep),
        make_gains(sweep),
        make_flow(sweep),
    )
