"""Values over seeds, optimiser steps and wind directions."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from leeward.wind import WindRose

Array = npt.NDArray[np.float64]

FEW_POINTS = 20  # a curve with at most this many points is dashed


class Quantity(NamedTuple):
    """A quantity to compare layouts by. order: its column in tables of tasks. scale: from the column to the unit."""

    name: str
    unit: str
    order: Literal["aep", "capacity_factor"]
    scale: float


AEP = Quantity("AEP", "GWh", "aep", 1.0)
CAPACITY_FACTOR = Quantity("capacity factor", "%", "capacity_factor", 100.0)


def above_median(values: Array) -> Array:
    """Return by how many per cent the values exceed their median."""
    return np.asarray(100.0 * (values / np.median(values) - 1.0))


def is_curve(history: Array | None) -> bool:
    """Return whether a history, shape (2, steps), has at least two known points."""
    return history is not None and int(np.isfinite(history).all(axis=0).sum()) > 1


def class_name(speed_classes: Sequence[float], level: int, unit: str = "") -> str:
    """Return the name of a wind speed class."""
    low, *higher = speed_classes[level : level + 2]
    return f"{low:g} to {higher[0]:g}{unit}" if higher else f"{low:g}{unit} or more"


def uncovered(rose: WindRose) -> str:
    """Return a sentence on the fraction of time that a wind rose does not cover; "" if it covers all."""
    rest = 1.0 - float(rose.frequency.sum())
    return f"{100.0 * rest:.1f} % of the time is not covered by the site's conditions" if rest >= 5e-4 else ""
