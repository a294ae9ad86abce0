"""The wake of the IEA Wind Task 37 layout case studies 1 to 4: a Gaussian that starts as wide as D / sqrt(8)."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.numerics import exp_below_zero
from leeward.wind.wake_models.base import (
    NEGLIGIBLE_WIDTHS,
    NO_PARAMETERS,
    ContributionSlopes,
    Formulas,
    Range,
    Rotor,
    Table,
    WakeModel,
)

EXPANSION = 0.0324555
INITIAL_WIDTH = 1.0 / math.sqrt(8.0)

Parameters = tuple[float, ...]  # this model uses no parameters


class Source(NamedTuple):
    """width: at the turbine, m; load: thrust coefficient * D^2 / 8, m^2."""

    width: float
    load: float


class Wake(NamedTuple):
    """strength: square of the relative deficit on the axis; profile: squared, at the hub."""

    strength: float
    profile: float


class WakeSlopes(NamedTuple):
    """`Wake`, and derivatives of the strength and of the profile's exponent."""

    strength: float
    profile: float
    strength_by_downwind: float
    exponent_by_downwind: float
    strength_by_speed: float
    exponent_by_distance: float


@formula
def source(thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters) -> Source:
    return Source(INITIAL_WIDTH * diameter, thrust * diameter * diameter * 0.125)


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> tuple[Source, Source]:
    """Return the derivatives of `source` with respect to thrust; it does not depend on the speed ratio."""
    return Source(0.0, diameter * diameter * 0.125), Source(0.0, 0.0)


@formula
def wake_at(rotor: Rotor, source: Source, p: Parameters) -> Wake:
    inverse_width = 1.0 / (EXPANSION * rotor.downwind + source.width)
    square = inverse_width * inverse_width
    deficit = 1.0 - math.sqrt(1.0 - source.load * square)
    return Wake(deficit * deficit, exp_below_zero(-rotor.distance * rotor.distance * square))


@formula
def contribution(wake: Wake, p: Parameters, table: Table) -> float:
    """Return the squared relative deficit at the hub."""
    return wake.strength * wake.profile


@formula
def wake_slopes(rotor: Rotor, source: Source, by_speed: Source, p: Parameters) -> WakeSlopes:
    inverse_width = 1.0 / (EXPANSION * rotor.downwind + source.width)
    square = inverse_width * inverse_width
    load = source.load * square
    root = math.sqrt(1.0 - load)
    deficit = 1.0 - root
    exponent = -rotor.distance * rotor.distance * square
    narrowing = -2.0 * inverse_width * EXPANSION
    per_load = deficit / root  # d(deficit^2) / d(load)
    return WakeSlopes(
        deficit * deficit,
        exp_below_zero(exponent),
        per_load * load * narrowing,
        exponent * narrowing,
        per_load * by_speed.load * square,
        -2.0 * rotor.distance * square,
    )


@formula
def contribution_slopes(wake: WakeSlopes, rotor: Rotor, p: Parameters, table: Table) -> ContributionSlopes:
    value = wake.strength * wake.profile
    return ContributionSlopes(
        value,
        wake.strength_by_downwind * wake.profile + value * wake.exponent_by_downwind,
        value * wake.exponent_by_distance,
        0.0,
        wake.strength_by_speed * wake.profile,
    )


@formula
def reach(at: Range, p: Parameters) -> float:
    """Return the reach, which does not depend on thrust."""
    return NEGLIGIBLE_WIDTHS * (EXPANSION * at.downwind + INITIAL_WIDTH * at.diameter)


@dataclass(frozen=True)
class Iea37Gaussian(WakeModel):
    """The wake model of the case studies, without options."""

    name: ClassVar[str] = "iea37_gaussian"
    formulas: ClassVar[Formulas] = Formulas(
        source, wake_at, contribution, reach, source_slopes, wake_slopes, contribution_slopes
    )

    @property
    def uses_speed_ratio(self) -> bool:
        return False

    @property
    def uses_turbulence(self) -> bool:
        return False

    def parameters(self) -> Parameters:
        return NO_PARAMETERS

    @property
    def thrust_below(self) -> float:
        return 1.0
