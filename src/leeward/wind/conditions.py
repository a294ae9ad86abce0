"""Wind conditions, the input of the wake engine, and the wind distributions that they come from."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leeward.capacity import GWH_PER_MW as GWH_PER_MW
from leeward.wind.checks import Array as Array

if TYPE_CHECKING:
    from leeward.wind.local_wind import FieldConditions

GOLDEN_RATIO = (np.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True)
class Conditions:
    """Directions, each with one or more wind speeds.

    direction: degrees, where the wind comes from, clockwise from north; shape (directions,).
    speed (m/s), weight (probability or share of it) and turbulence_intensity (fraction): shape (directions, speeds).
    local: how these vary over the site; None if they do not. The speeds are then those at the reference, before
    speed-up and shear, and the weights those at the reference point.
    """

    direction: Array
    speed: Array
    weight: Array
    turbulence_intensity: Array
    local: "FieldConditions | None" = None

    def drawn(self, row: npt.NDArray[np.int64], column: npt.NDArray[np.int64], weight: Array) -> "Conditions":
        """Return some of the conditions, one speed in each direction, with these weights; shape (n,) each."""
        local = self.local
        if local is not None:
            local = local.drawn(row, column, weight / self.weight[row, column])
        return Conditions(
            self.direction[row],
            self.speed[row, column][:, None],
            np.asarray(weight)[:, None],
            self.turbulence_intensity[row, column][:, None],
            local,
        )


class Distribution(ABC):
    """The distribution of wind direction, speed and turbulence. `leeward.wind.Site` documents the methods."""

    conditions: Conditions

    @property
    def covered_degrees(self) -> float:
        return 360.0

    @property
    def turbulence_range(self) -> Array:
        return self.conditions.turbulence_intensity

    @property
    def density_range(self) -> tuple[float, float]:
        return 1.0, 1.0

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Conditions: ...

    @abstractmethod
    def coarser(self, directions: int, speeds: Array) -> "Distribution": ...

    @abstractmethod
    def settings(self) -> dict[str, Any]: ...

    @abstractmethod
    def describe(self) -> str: ...


def shifted_lattice(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return `count` points, spread evenly over the unit square and shifted at random so that each one is uniform."""
    return lattice(count, rng.random(2))


def lattice(count: int, shift: Array) -> tuple[Array, Array]:
    """Return the points of `shifted_lattice` for two random numbers."""
    steps = np.arange(count)
    return (steps + shift[0]) / count, (steps * GOLDEN_RATIO + shift[1]) % 1.0


def place_in(weights: Array, share: Array) -> tuple[npt.NDArray[np.int64], Array]:
    """Return the cell in which the cumulated weight reaches a share (0 to 1) of the total, and the position in it."""
    ends = np.cumsum(weights)
    reached = share * ends[-1]
    cell = np.searchsorted(ends, reached, side="right")
    cell = np.minimum(cell, np.flatnonzero(weights)[-1])  # rounding may move the last share past the end
    return cell, np.clip(1.0 - (ends[cell] - reached) / weights[cell], 0.0, 1.0)
