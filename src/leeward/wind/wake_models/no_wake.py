"""A model without wakes, for the gross yield."""

from dataclasses import dataclass, replace
from typing import ClassVar

from leeward.wind.kernels.compile import formula
from leeward.wind.wake_models.base import NO_PARAMETERS, ContributionSlopes, Formulas, Range, Rotor, Table, WakeModel
from leeward.wind.wake_models.iea37_gaussian import Iea37Gaussian, Parameters, Wake, WakeSlopes


@formula
def contribution(wake: Wake, p: Parameters, table: Table) -> float:
    return 0.0


@formula
def contribution_slopes(wake: WakeSlopes, rotor: Rotor, p: Parameters, table: Table) -> ContributionSlopes:
    return ContributionSlopes(0.0, 0.0, 0.0, 0.0, 0.0)


@formula
def reach(at: Range, p: Parameters) -> float:
    """Return 0, so that no pair is ever visited."""
    return 0.0


@dataclass(frozen=True)
class NoWake(WakeModel):
    """A model without options. Its source and wake are those of another model, but contribute nothing."""

    name: ClassVar[str] = "no_wake"
    formulas: ClassVar[Formulas] = replace(
        Iea37Gaussian.formulas, contribution=contribution, contribution_slopes=contribution_slopes, reach=reach
    )

    @property
    def uses_speed_ratio(self) -> bool:
        return False

    @property
    def uses_turbulence(self) -> bool:
        return False

    def parameters(self) -> Parameters:
        return NO_PARAMETERS
