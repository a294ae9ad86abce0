"""No wakes at all: what the wind alone would yield."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from leeward.wind.kernels.compile import formula
from leeward.wind.wake_models.base import NO_PARAMETERS, ContributionSlopes, Formulas, Rotor, Table, WakeModel

Parameters = tuple[float, ...]  # none is used


class Nothing(NamedTuple):
    """A tuple with a field, because the kernels need one."""

    zero: float


@formula
def source(thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters) -> Nothing:
    return Nothing(0.0)


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> tuple[Nothing, Nothing]:
    return Nothing(0.0), Nothing(0.0)


@formula
def wake_at(rotor: Rotor, source: Nothing, p: Parameters) -> Nothing:
    return Nothing(0.0)


@formula
def wake_slopes(rotor: Rotor, source: Nothing, by_speed: Nothing, p: Parameters) -> Nothing:
    return Nothing(0.0)


@formula
def contribution(wake: Nothing, p: Parameters, table: Table) -> float:
    return 0.0


@formula
def contribution_slopes(wake: Nothing, rotor: Rotor, p: Parameters, table: Table) -> ContributionSlopes:
    return ContributionSlopes(0.0, 0.0, 0.0, 0.0, 0.0)


@formula
def reach(
    downwind: float,
    thrust_low: float,
    thrust_high: float,
    diameter: float,
    turbulence_intensity: float,
    radius: float,
    p: Parameters,
) -> float:
    """Nowhere: no pair is ever visited."""
    return 0.0


@dataclass(frozen=True)
class NoWake(WakeModel):
    """No options."""

    name: ClassVar[str] = "no_wake"
    formulas: ClassVar[Formulas] = Formulas(
        source, wake_at, contribution, reach, source_slopes, wake_slopes, contribution_slopes
    )

    def parameters(self) -> Parameters:
        return NO_PARAMETERS
