"""The wake of the IEA Wind Task 37 layout case studies 1 to 4: a Gaussian that starts as wide as D / sqrt(8)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.numerics import exp_below_zero
from leeward.wind.wake_models.base import (
    NEGLIGIBLE_WIDTHS,
    Eight,
    Eleven,
    Five,
    Formulas,
    Four,
    Parameters,
    Six,
    Table,
    WakeModel,
)

if TYPE_CHECKING:
    from leeward.wind.turbine import Turbine

EXPANSION = 0.0324555
INITIAL_WIDTH = 1.0 / math.sqrt(8.0)


@formula
def source(thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters) -> Four:
    """Initial width (m), thrust * D^2 / 8."""
    return INITIAL_WIDTH * diameter, thrust * diameter * diameter * 0.125, 0.0, 0.0


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> Eight:
    """Derivatives of `source` with respect to thrust; it does not depend on the speed ratio."""
    return 0.0, diameter * diameter * 0.125, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0


@formula
def view(downwind: float, distance: float, mirror_distance: float, radius: float, s: Four, p: Parameters) -> Six:
    """Relative deficit on the axis, squared, and the squared profile."""
    s0, s1, s2, s3 = s
    inverse_width = 1.0 / (EXPANSION * downwind + s0)
    square = inverse_width * inverse_width
    deficit = 1.0 - math.sqrt(1.0 - s1 * square)
    return deficit * deficit, exp_below_zero(-distance * distance * square), 0.0, 0.0, 0.0, 0.0


@formula
def look(v: Six, p: Parameters, table: Table) -> float:
    """Squared relative deficit at the hub."""
    strength, profile, _, _, _, _ = v
    return strength * profile


@formula
def view_partials(
    downwind: float, distance: float, mirror_distance: float, radius: float, s: Four, d: Four, p: Parameters
) -> Eleven:
    """`view`, then slopes of strength and exponent with downwind, strength's with speed, exponent's with distance."""
    s0, s1, s2, s3 = s
    d0, d1, d2, d3 = d
    inverse_width = 1.0 / (EXPANSION * downwind + s0)
    square = inverse_width * inverse_width
    load = s1 * square
    root = math.sqrt(1.0 - load)
    deficit = 1.0 - root
    exponent = -distance * distance * square
    narrowing = -2.0 * inverse_width * EXPANSION
    per_load = deficit / root  # d(deficit^2) / d(load)
    return (
        deficit * deficit,
        exp_below_zero(exponent),
        per_load * load * narrowing,
        exponent * narrowing,
        per_load * d1 * square,
        -2.0 * distance * square,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
    )


@formula
def look_partials(
    v: Eleven, distance: float, mirror_distance: float, radius: float, p: Parameters, table: Table
) -> Five:
    """`look` with the derivatives of the contribution."""
    strength, profile, strength_downwind, exponent_downwind, strength_speed, exponent_distance, _, _, _, _, _ = v
    contribution = strength * profile
    return (
        contribution,
        strength_downwind * profile + contribution * exponent_downwind,
        contribution * exponent_distance,
        0.0,
        strength_speed * profile,
    )


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
    """The width does not depend on thrust."""
    return NEGLIGIBLE_WIDTHS * (EXPANSION * downwind + INITIAL_WIDTH * diameter)


@dataclass(frozen=True)
class Iea37Gaussian(WakeModel):
    """The case studies fix everything: no options."""

    name: ClassVar[str] = "iea37_gaussian"
    formulas: ClassVar[Formulas] = Formulas(source, source_slopes, view, look, view_partials, look_partials, reach)

    def parameters(self) -> Parameters:
        return (0.0,)

    def check(self, turbines: Sequence["Turbine"], turbulence_intensity: npt.NDArray[np.float64]) -> None:
        for turbine in turbines:
            if turbine.highest_thrust >= 1.0:
                raise InputError(
                    f"wake model {self.name}: the thrust coefficient of {turbine.name} goes up to "
                    f"{turbine.highest_thrust:g}; just behind the rotor this model needs it below 1"
                )
