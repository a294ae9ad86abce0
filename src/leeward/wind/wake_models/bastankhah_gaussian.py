"""The Gaussian wake of Bastankhah and Porté-Agel (2014), Renewable Energy 70, 116, as in PyWake."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from leeward.errors import InputError
from leeward.wind.checks import one_of, positive
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.numerics import exp_below_zero
from leeward.wind.wake_models._induction import (
    INDUCTIONS,
    initial_width,
    initial_width_slope,
    twice_induction,
    twice_induction_slope,
)
from leeward.wind.wake_models.base import (
    NEGLIGIBLE_WIDTHS,
    ContributionSlopes,
    Formulas,
    Range,
    Rotor,
    Table,
    WakeModel,
)

SUPERPOSITIONS = ("squared", "linear")
REFERENCE_SPEEDS = ("ambient", "effective")


class Parameters(NamedTuple):
    """The options of `BastankhahGaussian`; effective, squared: 1.0 or 0.0."""

    expansion: float
    initial_width: float
    thrust_limit: float
    induction: float
    effective: float
    squared: float


class Source(NamedTuple):
    """width: at the turbine, m; load: thrust coefficient * D^2 / 8, m^2; reference: see `source`."""

    width: float
    load: float
    reference: float


class Wake(NamedTuple):
    """strength: relative deficit on the axis; profile: at the hub."""

    strength: float
    profile: float


class WakeSlopes(NamedTuple):
    """`Wake`, and derivatives of the strength and of the profile's exponent."""

    strength: float
    profile: float
    strength_by_downwind: float
    exponent_by_downwind: float
    strength_by_speed: float
    exponent_by_speed: float
    minus_exponent_by_distance: float


@formula
def source(thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters) -> Source:
    """Return the source. Its reference is the speed that deficits are relative to, as a share of the free wind."""
    width = initial_width(thrust, diameter, p.initial_width, p.thrust_limit)
    reference = speed_ratio if p.effective == 1.0 else 1.0
    return Source(width, thrust * diameter * diameter * 0.125, reference)


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> tuple[Source, Source]:
    """Return the derivatives of `source` with respect to thrust, then speed ratio."""
    by_thrust = initial_width_slope(thrust, diameter, p.initial_width, p.thrust_limit)
    return Source(by_thrust, diameter * diameter * 0.125, 0.0), Source(0.0, 0.0, p.effective)


@formula
def wake_at(rotor: Rotor, source: Source, p: Parameters) -> Wake:
    inverse_width = 1.0 / (p.expansion * rotor.downwind + source.width)
    square = inverse_width * inverse_width
    profile = exp_below_zero(-0.5 * rotor.distance * rotor.distance * square)
    return Wake(source.reference * twice_induction(source.load * square, p.induction), profile)


@formula
def contribution(wake: Wake, p: Parameters, table: Table) -> float:
    """Return the relative deficit at the hub, squared for squared superposition."""
    deficit = wake.strength * wake.profile
    return deficit * deficit if p.squared == 1.0 else deficit


@formula
def wake_slopes(rotor: Rotor, source: Source, by_speed: Source, p: Parameters) -> WakeSlopes:
    inverse_width = 1.0 / (p.expansion * rotor.downwind + source.width)
    square = inverse_width * inverse_width
    load = source.load * square
    deficit = twice_induction(load, p.induction)
    slope = twice_induction_slope(load, p.induction)
    exponent = -0.5 * rotor.distance * rotor.distance * square
    narrowing = -2.0 * inverse_width  # d(square) / d(width), in squares
    strength_by_speed = source.reference * slope * (load * narrowing * by_speed.width + by_speed.load * square)
    return WakeSlopes(
        source.reference * deficit,
        exp_below_zero(exponent),
        source.reference * slope * load * narrowing * p.expansion,
        exponent * narrowing * p.expansion,
        strength_by_speed + by_speed.reference * deficit if p.effective == 1.0 else strength_by_speed,
        exponent * narrowing * by_speed.width,
        rotor.distance * square,
    )


@formula
def contribution_slopes(wake: WakeSlopes, rotor: Rotor, p: Parameters, table: Table) -> ContributionSlopes:
    deficit = wake.strength * wake.profile
    factor = 2.0 * deficit if p.squared == 1.0 else 1.0
    return ContributionSlopes(
        deficit * deficit if p.squared == 1.0 else deficit,
        factor * (wake.strength_by_downwind * wake.profile + deficit * wake.exponent_by_downwind),
        -factor * deficit * wake.minus_exponent_by_distance,
        0.0,
        factor * (wake.strength_by_speed * wake.profile + deficit * wake.exponent_by_speed),
    )


@formula
def reach(at: Range, p: Parameters) -> float:
    """Return the reach at the highest thrust: the wake widens with thrust."""
    width = source(at.thrust_high, 1.0, at.diameter, at.turbulence_intensity, p).width
    return NEGLIGIBLE_WIDTHS * (p.expansion * at.downwind + width)


@dataclass(frozen=True)
class BastankhahGaussian(WakeModel):
    """Options of the model; the defaults are those of PyWake's `BastankhahGaussianDeficit` with squared superposition.

    expansion: growth of the width per metre (PyWake: k); initial_width: PyWake's ceps; thrust_limit: its ctlim.
    induction: "madsen" or "momentum"; reference_speed: deficits relative to the "ambient" or the "effective" speed
    at the turbine that makes the wake; superposition: "squared" or "linear".
    """

    expansion: float = 0.0324555
    initial_width: float = 0.2
    thrust_limit: float = 0.899
    induction: str = "madsen"
    reference_speed: str = "ambient"
    superposition: str = "squared"

    name: ClassVar[str] = "bastankhah_gaussian"
    formulas: ClassVar[Formulas] = Formulas(
        source, wake_at, contribution, reach, source_slopes, wake_slopes, contribution_slopes
    )

    def __post_init__(self) -> None:
        for option in ("expansion", "initial_width"):
            positive(getattr(self, option), f"{self.name}: {option}")
        if not positive(self.thrust_limit, f"{self.name}: thrust_limit") < 1:
            raise InputError(f"{self.name}: thrust_limit is {self.thrust_limit}; expected a number between 0 and 1")
        one_of(self.induction, tuple(INDUCTIONS), f"{self.name}: induction")
        one_of(self.reference_speed, REFERENCE_SPEEDS, f"{self.name}: reference_speed")
        one_of(self.superposition, SUPERPOSITIONS, f"{self.name}: superposition")

    @property
    def squared(self) -> bool:
        return self.superposition == "squared"

    @property
    def uses_speed_ratio(self) -> bool:
        return self.reference_speed == "effective"

    @property
    def uses_turbulence(self) -> bool:
        return False

    def parameters(self) -> Parameters:
        return Parameters(
            float(self.expansion),
            float(self.initial_width),
            float(self.thrust_limit),
            INDUCTIONS[self.induction],
            float(self.reference_speed == "effective"),
            float(self.squared),
        )
