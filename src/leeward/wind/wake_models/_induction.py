"""Axial induction (the two relations in PyWake) and initial width of a wake, with their derivatives."""

import math

from leeward.wind.kernels.compile import formula

MADSEN = 0.0
MOMENTUM = 1.0
INDUCTIONS = {"madsen": MADSEN, "momentum": MOMENTUM}


@formula
def madsen(thrust: float) -> float:
    """Return 2 a from the polynomial of Madsen et al. (2020), Wind Energ. Sci. 5, 1."""
    return 2.0 * thrust * (0.2460 + thrust * (0.0586 + thrust * 0.0883))


@formula
def madsen_slope(thrust: float) -> float:
    return 2.0 * (0.2460 + thrust * (2.0 * 0.0586 + thrust * 3.0 * 0.0883))


@formula
def twice_induction(thrust: float, relation: float) -> float:
    """Return 2 a, the relative deficit on the axis, at most 1. MADSEN: `madsen`; MOMENTUM: thrust = 4 a (1 - a)."""
    polynomial = madsen(thrust)
    momentum = 1.0 - math.sqrt(1.0 - min(thrust, 1.0))
    return min(momentum if relation == MOMENTUM else polynomial, 1.0)


@formula
def twice_induction_slope(thrust: float, relation: float) -> float:
    """Return the derivative of `twice_induction`; 0 where it has reached 1."""
    if relation == MOMENTUM:
        return 0.5 / math.sqrt(1.0 - thrust) if thrust < 1.0 else 0.0
    return madsen_slope(thrust) if madsen(thrust) < 1.0 else 0.0


@formula
def initial_width(thrust: float, diameter: float, share: float, limit: float) -> float:
    """Return the width (m) of a Gaussian wake at its turbine: `share` of the diameter of the expanded stream tube.

    Bastankhah and Porté-Agel (2014), eq. 19 and 21. Thrust coefficients are capped at `limit`.
    """
    rest = math.sqrt(1.0 - min(limit, thrust))
    return share * diameter * math.sqrt(0.5 * (1.0 + rest) / rest)


@formula
def initial_width_slope(thrust: float, diameter: float, share: float, limit: float) -> float:
    """Return the derivative of `initial_width` with respect to thrust; 0 beyond the limit."""
    # width ~ sqrt((1 + 1 / rest) / 2), d rest / d thrust = -1 / (2 rest)
    rest = math.sqrt(1.0 - min(limit, thrust))
    width = share * diameter * math.sqrt(0.5 * (1.0 + rest) / rest)
    return width * 0.25 / ((1.0 + rest) * rest * rest) if thrust < limit else 0.0
