"""Jensen's top-hat wake (1983, Risø-M-2411) with area overlap, as `py_wake.literature.Jensen_1983` has it."""

import math
from dataclasses import dataclass
from typing import ClassVar

from leeward.wind.checks import positive
from leeward.wind.kernels.compile import formula
from leeward.wind.wake_models._induction import madsen, madsen_slope
from leeward.wind.wake_models.base import (
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

ALMOST_ONE = 1.0 - 2.0 * 2.220446049250313e-16


@formula
def source(thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters) -> Four:
    """Relative deficit just behind the rotor, and the rotor's radius."""
    return madsen(thrust), 0.5 * diameter, 0.0, 0.0


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> Eight:
    """Derivatives of `source` with respect to thrust; it does not depend on the speed ratio."""
    return madsen_slope(thrust), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0


@formula
def overlap(wake_radius: float, radius: float, distance: float) -> tuple[float, float, float]:
    """Share of the rotor within the wake, and its derivatives with respect to wake_radius and distance.

    Where the rotor is the larger circle this is not the share, but it is what PyWake computes: a rotor that holds the
    whole wake counts as fully waked, and the triangle of a partial overlap has the wake's radius as its side.
    """
    if radius == 0.0:
        return (1.0 if wake_radius > distance else 0.0), 0.0, 0.0
    large = max(wake_radius, radius)
    small = min(wake_radius, radius)
    if distance <= large - small:
        return 1.0, 0.0, 0.0
    if distance >= large + small:
        return 0.0, 0.0, 0.0
    cosine_large = (large * large + distance * distance - small * small) / (2.0 * large * distance)
    cosine_small = (small * small + distance * distance - large * large) / (2.0 * small * distance)
    cosine_large = min(max(cosine_large, -ALMOST_ONE), ALMOST_ONE)
    cosine_small = min(max(cosine_small, -ALMOST_ONE), ALMOST_ONE)
    angle_large = math.acos(cosine_large)
    angle_small = math.acos(cosine_small)
    sine_large = math.sin(angle_large)
    area = angle_large * large * large + angle_small * small * small - sine_large * wake_radius * distance
    # the lens of two circles: its area changes by the arc with a radius, by the chord with the distance
    by_wake_radius = 2.0 * wake_radius * (angle_large if wake_radius >= radius else angle_small)
    by_distance = -2.0 * large * sine_large
    if wake_radius < radius:
        excess = large - small
        cosine_by_distance = (distance * distance + small * small - large * large) / (2.0 * large * distance * distance)
        cosine_by_small = -small / (large * distance)
        cotangent = cosine_large / sine_large
        by_distance += excess * (sine_large - distance * cotangent * cosine_by_distance)
        by_wake_radius += -distance * sine_large - excess * distance * cotangent * cosine_by_small
    per_area = 1.0 / (math.pi * radius * radius)
    if area <= 0.0:
        return 0.0, 0.0, 0.0
    return area * per_area, by_wake_radius * per_area, by_distance * per_area


@formula
def view(downwind: float, distance: float, mirror_distance: float, radius: float, s: Four, p: Parameters) -> Six:
    """Relative deficit in the wake, its radius, and what the overlap depends on."""
    s0, s1, s2, s3 = s
    wake_radius = p[0] * downwind + s1
    ratio = s1 / wake_radius
    return s0 * ratio * ratio, wake_radius, radius, distance, 0.0, 0.0


@formula
def look(v: Six, p: Parameters, table: Table) -> float:
    """Squared relative deficit, averaged over the rotor."""
    strength, wake_radius, radius, distance, _, _ = v
    share, _, _ = overlap(wake_radius, radius, distance)
    deficit = strength * share
    return deficit * deficit


@formula
def view_partials(
    downwind: float, distance: float, mirror_distance: float, radius: float, s: Four, d: Four, p: Parameters
) -> Eleven:
    """`view` (strength, wake radius), the slopes of the strength with downwind and with the speed at the source."""
    s0, s1, s2, s3 = s
    d0, d1, d2, d3 = d
    wake_radius = p[0] * downwind + s1
    ratio = s1 / wake_radius
    square = ratio * ratio
    return (
        s0 * square,
        wake_radius,
        -2.0 * s0 * square * p[0] / wake_radius,
        d0 * square,
        0.0,
        0.0,
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
    strength, wake_radius, strength_downwind, strength_speed, _, _, _, _, _, _, _ = v
    share, by_wake_radius, by_distance = overlap(wake_radius, radius, distance)
    deficit = strength * share
    return (
        deficit * deficit,
        2.0 * deficit * (strength_downwind * share + strength * by_wake_radius * p[0]),
        2.0 * deficit * strength * by_distance,
        0.0,
        2.0 * deficit * strength_speed * share,
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
    """The wake has an edge."""
    return p[0] * downwind + 0.5 * diameter + radius


@dataclass(frozen=True)
class Jensen(WakeModel):
    """expansion: growth of the wake's radius per metre (PyWake: k)."""

    expansion: float = 0.1

    name: ClassVar[str] = "jensen"
    formulas: ClassVar[Formulas] = Formulas(source, source_slopes, view, look, view_partials, look_partials, reach)

    def __post_init__(self) -> None:
        positive(self.expansion, "jensen: expansion")

    def parameters(self) -> Parameters:
        return (float(self.expansion),)
