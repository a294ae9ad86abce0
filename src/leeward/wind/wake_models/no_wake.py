"""No wakes at all: what the wind alone would yield."""

from dataclasses import dataclass, replace
from typing import ClassVar

from leeward.wind.kernels.compile import formula
from leeward.wind.wake_models.base import NO_PARAMETERS, Formulas, Range, WakeModel
from leeward.wind.wake_models.iea37_gaussian import Iea37Gaussian


@formula
def reach(at: Range, p: tuple[float, ...]) -> float:
    """Nowhere: no pair is ever visited."""
    return 0.0


@dataclass(frozen=True)
class NoWake(WakeModel):
    """No options. The other formulas are never evaluated."""

    name: ClassVar[str] = "no_wake"
    formulas: ClassVar[Formulas] = replace(Iea37Gaussian.formulas, reach=reach)

    def parameters(self) -> tuple[float, ...]:
        return NO_PARAMETERS
