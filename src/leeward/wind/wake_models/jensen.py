"""Jensen's top-hat wake (1983, Risø-M-2411) with area overlap, as in `py_wake.literature.Jensen_1983`."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from leeward.wind.checks import positive
from leeward.wind.kernels.compile import formula
from leeward.wind.wake_models._induction import madsen, madsen_slope
from leeward.wind.wake_models.base import ContributionSlopes, Formulas, Range, Rotor, Table, WakeModel

ALMOST_ONE = 1.0 - 2.0 * 2.220446049250313e-16


class Parameters(NamedTuple):
    """See `Jensen`."""

    expansion: float


class Source(NamedTuple):
    """deficit: relative, just behind the rotor; radius: of the rotor, m."""

    deficit: float
    radius: float


class Wake(NamedTuple):
    """strength: relative deficit in the wake; wake_radius: m; radius, distance: as in `Rotor`."""

    strength: float
    wake_radius: float
    radius: float
    distance: float


class WakeSlopes(NamedTuple):
    """strength and wake_radius as in `Wake`, and derivatives of the strength."""

    strength: float
    wake_radius: float
    strength_by_downwind: float
    strength_by_speed: float


@formula
def source(thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters) -> Source:
    return Source(madsen(thrust), 0.5 * diameter)


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> tuple[Source, Source]:
    """Return the derivatives of `source` with respect to thrust; it does not depend on the speed ratio."""
    return Source(madsen_slope(thrust), 0.0), Source(0.0, 0.0)


@formula
def overlap(wake_radius: float, radius: float, distance: float) -> tuple[float, float, float]:
    """Return the share of the rotor in the wake, and its derivatives with respect to wake_radius and distance.

    If the rotor is the larger circle, the result is PyWake's and not the true share: a rotor that contains the whole
    wake counts as fully waked, and the triangle of a partial overlap has the wake's radius as its side.
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
    # the area of the lens of two circles changes with a radius by the arc, with the distance by the chord
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
def wake_at(rotor: Rotor, source: Source, p: Parameters) -> Wake:
    wake_radius = p.expansion * rotor.downwind + source.radius
    ratio = source.radius / wake_radius
    return Wake(source.deficit * ratio * ratio, wake_radius, rotor.radius, rotor.distance)


@formula
def contribution(wake: Wake, p: Parameters, table: Table) -> float:
    """Return the squared relative deficit, averaged over the rotor."""
    share, _, _ = overlap(wake.wake_radius, wake.radius, wake.distance)
    deficit = wake.strength * share
    return deficit * deficit


@formula
def wake_slopes(rotor: Rotor, source: Source, by_speed: Source, p: Parameters) -> WakeSlopes:
    wake_radius = p.expansion * rotor.downwind + source.radius
    ratio = source.radius / wake_radius
    square = ratio * ratio
    return WakeSlopes(
        source.deficit * square,
        wake_radius,
        -2.0 * source.deficit * square * p.expansion / wake_radius,
        by_speed.deficit * square,
    )


@formula
def contribution_slopes(wake: WakeSlopes, rotor: Rotor, p: Parameters, table: Table) -> ContributionSlopes:
    share, by_wake_radius, by_distance = overlap(wake.wake_radius, rotor.radius, rotor.distance)
    deficit = wake.strength * share
    return ContributionSlopes(
        deficit * deficit,
        2.0 * deficit * (wake.strength_by_downwind * share + wake.strength * by_wake_radius * p.expansion),
        2.0 * deficit * wake.strength * by_distance,
        0.0,
        2.0 * deficit * wake.strength_by_speed * share,
    )


@formula
def reach(at: Range, p: Parameters) -> float:
    """Return the edge of the wake plus the rotor's radius."""
    return p.expansion * at.downwind + 0.5 * at.diameter + at.radius


@dataclass(frozen=True)
class Jensen(WakeModel):
    """Options of the model. expansion: growth of the wake's radius per metre (PyWake: k)."""

    expansion: float = 0.1

    name: ClassVar[str] = "jensen"
    formulas: ClassVar[Formulas] = Formulas(
        source, wake_at, contribution, reach, source_slopes, wake_slopes, contribution_slopes
    )

    def __post_init__(self) -> None:
        positive(self.expansion, "jensen: expansion")

    @property
    def uses_speed_ratio(self) -> bool:
        return False

    @property
    def uses_turbulence(self) -> bool:
        return False

    def parameters(self) -> Parameters:
        return Parameters(float(self.expansion))
