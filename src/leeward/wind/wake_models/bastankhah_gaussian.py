"""The Gaussian wake of Bastankhah and Porté-Agel (2014), Renewable Energy 70, 116, as PyWake has it."""

import math
from dataclasses import dataclass
from typing import ClassVar

from leeward.errors import InputError
from leeward.wind.checks import positive
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.numerics import exp_below_zero
from leeward.wind.wake_models._induction import INDUCTIONS, twice_induction, twice_induction_slope
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

SUPERPOSITIONS = ("squared", "linear")
REFERENCE_SPEEDS = ("ambient", "effective")


@formula
def source(thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters) -> Four:
    """Initial width (m), thrust * D^2 / 8, and the speed that deficits are relative to, in free wind speeds."""
    expansion, initial_width, thrust_limit, induction, effective, squared = p
    rest = math.sqrt(1.0 - min(thrust_limit, thrust))
    width = initial_width * diameter * math.sqrt(0.5 * (1.0 + rest) / rest)
    reference = speed_ratio if effective == 1.0 else 1.0
    return width, thrust * diameter * diameter * 0.125, reference, 0.0


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> Eight:
    """Derivatives of `source` with respect to thrust, then speed ratio."""
    expansion, initial_width, thrust_limit, induction, effective, squared = p
    d_width = 0.0
    if thrust < thrust_limit:
        rest = math.sqrt(1.0 - thrust)
        width = initial_width * diameter * math.sqrt(0.5 * (1.0 + rest) / rest)
        d_width = width * 0.25 / ((1.0 + rest) * rest * rest)
    return d_width, diameter * diameter * 0.125, 0.0, 0.0, 0.0, 0.0, effective, 0.0


@formula
def view(downwind: float, distance: float, mirror_distance: float, radius: float, s: Four, p: Parameters) -> Six:
    """Relative deficit on the axis, and the profile."""
    s0, s1, s2, s3 = s
    expansion, initial_width, thrust_limit, induction, effective, squared = p
    inverse_width = 1.0 / (expansion * downwind + s0)
    square = inverse_width * inverse_width
    profile = exp_below_zero(-0.5 * distance * distance * square)
    return s2 * twice_induction(s1 * square, induction), profile, 0.0, 0.0, 0.0, 0.0


@formula
def look(v: Six, p: Parameters, table: Table) -> float:
    """Relative deficit at the hub, squared if they add up that way."""
    strength, profile, _, _, _, _ = v
    deficit = strength * profile
    return deficit * deficit if p[5] == 1.0 else deficit


@formula
def view_partials(
    downwind: float, distance: float, mirror_distance: float, radius: float, s: Four, d: Four, p: Parameters
) -> Eleven:
    """`view`, slopes of strength and exponent with downwind and source speed, and minus exponent's with distance."""
    s0, s1, s2, s3 = s
    d0, d1, d2, d3 = d
    expansion, initial_width, thrust_limit, induction, effective, squared = p
    inverse_width = 1.0 / (expansion * downwind + s0)
    square = inverse_width * inverse_width
    load = s1 * square
    deficit = twice_induction(load, induction)
    slope = twice_induction_slope(load, induction)
    exponent = -0.5 * distance * distance * square
    narrowing = -2.0 * inverse_width  # d(square) / d(width), in squares
    return (
        s2 * deficit,
        exp_below_zero(exponent),
        s2 * slope * load * narrowing * expansion,
        exponent * narrowing * expansion,
        d2 * deficit + s2 * slope * (load * narrowing * d0 + d1 * square),
        exponent * narrowing * d0,
        distance * square,
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
    (
        strength,
        profile,
        strength_downwind,
        exponent_downwind,
        strength_speed,
        exponent_speed,
        minus_exponent_distance,
        _,
        _,
        _,
        _,
    ) = v
    deficit = strength * profile
    factor = 2.0 * deficit if p[5] == 1.0 else 1.0
    return (
        deficit * deficit if p[5] == 1.0 else deficit,
        factor * (strength_downwind * profile + deficit * exponent_downwind),
        -factor * deficit * minus_exponent_distance,
        0.0,
        factor * (strength_speed * profile + deficit * exponent_speed),
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
    """The wake widens with thrust."""
    width, _, _, _ = source(thrust_high, 1.0, diameter, turbulence_intensity, p)
    return NEGLIGIBLE_WIDTHS * (p[0] * downwind + width)


@dataclass(frozen=True)
class BastankhahGaussian(WakeModel):
    """Options; the defaults are those of PyWake's `BastankhahGaussianDeficit` with squared superposition.

    expansion: growth of the width per metre (PyWake: k); initial_width: PyWake's ceps; thrust_limit: its ctlim.
    induction: "madsen" or "momentum"; reference_speed: deficits relative to the "ambient" speed or to the "effective"
    one at the turbine that makes the wake; superposition: "squared" or "linear".
    """

    expansion: float = 0.0324555
    initial_width: float = 0.2
    thrust_limit: float = 0.899
    induction: str = "madsen"
    reference_speed: str = "ambient"
    superposition: str = "squared"

    name: ClassVar[str] = "bastankhah_gaussian"
    formulas: ClassVar[Formulas] = Formulas(source, source_slopes, view, look, view_partials, look_partials, reach)

    def __post_init__(self) -> None:
        for option in ("expansion", "initial_width"):
            positive(getattr(self, option), f"{self.name}: {option}")
        if not positive(self.thrust_limit, f"{self.name}: thrust_limit") < 1:
            raise InputError(f"{self.name}: thrust_limit is {self.thrust_limit}; expected a number between 0 and 1")
        for option, known in (
            ("induction", tuple(INDUCTIONS)),
            ("reference_speed", REFERENCE_SPEEDS),
            ("superposition", SUPERPOSITIONS),
        ):
            if getattr(self, option) not in known:
                raise InputError(f"{self.name}: {option} is {getattr(self, option)!r}; expected one of {known}")

    @property
    def squared(self) -> bool:
        return self.superposition == "squared"

    def parameters(self) -> Parameters:
        return (
            float(self.expansion),
            float(self.initial_width),
            float(self.thrust_limit),
            INDUCTIONS[self.induction],
            float(self.reference_speed == "effective"),
            float(self.squared),
        )
