"""No wakes at all: what the wind alone would yield."""

from dataclasses import dataclass
from typing import ClassVar

from leeward.wind.kernels.compile import formula
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

ZEROS = (0.0,) * 11


@formula
def source(thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters) -> Four:
    return 0.0, 0.0, 0.0, 0.0


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> Eight:
    return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0


@formula
def view(downwind: float, distance: float, mirror_distance: float, radius: float, s: Four, p: Parameters) -> Six:
    return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0


@formula
def look(v: Six, p: Parameters, table: Table) -> float:
    return 0.0


@formula
def view_partials(
    downwind: float, distance: float, mirror_distance: float, radius: float, s: Four, d: Four, p: Parameters
) -> Eleven:
    return ZEROS


@formula
def look_partials(
    v: Eleven, distance: float, mirror_distance: float, radius: float, p: Parameters, table: Table
) -> Five:
    return 0.0, 0.0, 0.0, 0.0, 0.0


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
    formulas: ClassVar[Formulas] = Formulas(source, source_slopes, view, look, view_partials, look_partials, reach)

    def parameters(self) -> Parameters:
        return (0.0,)
