"""No wakes at all: what the wind alone would yield."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from leeward.wind.kernels.compile import formula
from leeward.wind.wake_models.base import Formulas, WakeModel

ZEROS = (0.0,) * 11


@formula
def source(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: tuple[float, ...]
) -> tuple[float, float, float, float]:
    return 0.0, 0.0, 0.0, 0.0


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: tuple[float, ...]
) -> tuple[float, float, float, float, float, float, float, float]:
    return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0


@formula
def view(
    downwind: float,
    distance: float,
    mirror_distance: float,
    radius: float,
    s0: float,
    s1: float,
    s2: float,
    s3: float,
    p: tuple[float, ...],
) -> tuple[float, float, float, float, float, float]:
    return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0


@formula
def look(
    v0: float,
    v1: float,
    v2: float,
    v3: float,
    v4: float,
    v5: float,
    p: tuple[float, ...],
    table: npt.NDArray[np.float64],
) -> float:
    return 0.0


@formula
def view_partials(
    downwind: float,
    distance: float,
    mirror_distance: float,
    radius: float,
    s0: float,
    s1: float,
    s2: float,
    s3: float,
    d0: float,
    d1: float,
    d2: float,
    d3: float,
    p: tuple[float, ...],
) -> tuple[float, float, float, float, float, float, float, float, float, float, float]:
    return ZEROS


@formula
def look_partials(
    v0: float,
    v1: float,
    v2: float,
    v3: float,
    v4: float,
    v5: float,
    v6: float,
    v7: float,
    v8: float,
    v9: float,
    v10: float,
    distance: float,
    mirror_distance: float,
    radius: float,
    p: tuple[float, ...],
    table: npt.NDArray[np.float64],
) -> tuple[float, float, float, float, float]:
    return 0.0, 0.0, 0.0, 0.0, 0.0


@formula
def reach(
    downwind: float,
    thrust_low: float,
    thrust_high: float,
    diameter: float,
    turbulence_intensity: float,
    radius: float,
    p: tuple[float, ...],
) -> float:
    """Nowhere: no pair is ever visited."""
    return 0.0


@dataclass(frozen=True)
class NoWake(WakeModel):
    """No options."""

    name: ClassVar[str] = "no_wake"
    formulas: ClassVar[Formulas] = Formulas(source, source_slopes, view, look, view_partials, look_partials, reach)

    def parameters(self) -> tuple[float, ...]:
        return (0.0,)
