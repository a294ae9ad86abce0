"""Axial induction from thrust: the two relations that PyWake offers, each with its derivative."""

import math

from leeward.wind.kernels.compile import formula

MADSEN = 0.0
MOMENTUM = 1.0
INDUCTIONS = {"madsen": MADSEN, "momentum": MOMENTUM}


@formula
def madsen(thrust: float) -> float:
    """2 a by the polynomial of Madsen et al. (2020), Wind Energ. Sci. 5, 1."""
    return 2.0 * thrust * (0.2460 + thrust * (0.0586 + thrust * 0.0883))


@formula
def madsen_slope(thrust: float) -> float:
    """Derivative of `madsen`."""
    return 2.0 * (0.2460 + thrust * (2.0 * 0.0586 + thrust * 3.0 * 0.0883))


@formula
def twice_induction(thrust: float, relation: float) -> float:
    """2 a: the relative deficit on the axis, at most 1. MADSEN: as above; MOMENTUM: thrust = 4 a (1 - a)."""
    polynomial = madsen(thrust)
    momentum = 1.0 - math.sqrt(1.0 - min(thrust, 1.0))
    return min(momentum if relation == MOMENTUM else polynomial, 1.0)


@formula
def twice_induction_slope(thrust: float, relation: float) -> float:
    """Derivative of `twice_induction`; 0 where it has reached 1."""
    if relation == MOMENTUM:
        return 0.5 / math.sqrt(1.0 - thrust) if thrust < 1.0 else 0.0
    return madsen_slope(thrust) if madsen(thrust) < 1.0 else 0.0
