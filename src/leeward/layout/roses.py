"""Small wind roses and random samples that tell layouts apart as the full rose does.

Wakes cost energy only in some conditions: not below cut-in, and not far above rated wind speed. The energy at stake in
a condition is what a strong wake would cost there.
"""

import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from leeward.wind import Site
from leeward.wind.conditions import Conditions, place_in, shifted_lattice
from leeward.wind.table_wind import TableWind

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

DEFICIT = 0.35  # relative: a strong wake, so that speeds somewhat above rated count too


class Stakes:
    """The energy at stake in the conditions of a site. power: of all turbines at these wind speeds (m/s), MW."""

    def __init__(self, conditions: Conditions, power: Callable[[Array], Array]) -> None:
        self._conditions = conditions
        self._power = power
        self._at_stake = conditions.weight * self._loss(conditions.speed)

    def __bool__(self) -> bool:
        """Return whether a wake costs energy in any condition."""
        return bool(self._at_stake.any())

    def reduced(self, directions: int, speeds: int) -> Site:
        """Return a site with at most this many directions, and this many speeds in each, with the same energy at stake.

        If there are more directions, neighbouring ones are merged. The energy at stake in a direction is divided into
        equal parts, from low to high speeds. Each part becomes one condition at its mean speed, with the weight that
        keeps the energy at stake. The gross yield is not kept, so only differences between layouts are meaningful.
        """
        rows = [
            self._row(members, speeds)
            for members in _groups(self._conditions.direction, directions)
            if self._at_stake[members].any()
        ]
        columns = (np.array(column) for column in zip(*rows, strict=True))
        return Site(TableWind.of(Conditions(*columns)))

    def draw(self, count: int, rng: np.random.Generator) -> Conditions:
        """Return conditions drawn at random, those with more energy at stake more often, and with less weight.

        Sums over them are unbiased estimates of sums over the conditions with energy at stake.
        """
        order, by_direction, within = self._cumulated
        first, second = shifted_lattice(count, rng)
        row = order[place_in(by_direction, first)[0]]
        column = np.minimum((within[row] <= second[:, None]).sum(axis=1), within.shape[1] - 1)
        conditions, chosen = self._conditions, (row, column)
        weight = conditions.weight[chosen] * self._at_stake.sum() / (count * self._at_stake[chosen])
        return conditions.drawn(row, column, weight)

    @functools.cached_property
    def _cumulated(self) -> tuple[Indices, Array, Array]:
        """Return the rows of conditions by direction, the energy at stake in them, and cumulated shares in each row."""
        order = np.argsort(self._conditions.direction, kind="stable")
        within = np.cumsum(self._at_stake, axis=1)
        by_direction = within[:, -1].copy()
        within /= np.where(by_direction > 0.0, by_direction, 1.0)[:, None]
        return order, by_direction[order], within

    def _loss(self, speed: Array) -> Array:
        """Return the power that a strong wake costs at these wind speeds, MW."""
        return np.maximum(self._power(speed) - self._power((1.0 - DEFICIT) * speed), 0.0)

    def _row(self, members: Indices, count: int) -> tuple[float, Array, Array, Array]:
        """Return the mean direction of some directions, and `count` speeds, weights and turbulence intensities."""
        conditions, at_stake = self._conditions, self._at_stake[members]
        speed, stake = conditions.speed[members].ravel(), at_stake.ravel()
        order = np.argsort(speed, kind="stable")
        speed, stake = speed[order], stake[order]
        total = stake.sum()
        ends = np.cumsum(stake) * (count / total)
        part = np.arange(count)[:, None]
        overlap = np.clip(np.minimum(ends, part + 1.0) - np.maximum(ends - stake * (count / total), part), 0.0, None)
        share = overlap / overlap.sum(axis=1, keepdims=True)
        mean = share @ speed
        loss = self._loss(mean)
        weight = np.where(loss > 0.0, total / count / np.where(loss > 0.0, loss, 1.0), 0.0)
        first = conditions.direction[members[0]]
        turned = (conditions.direction[members] - first + 180.0) % 360.0 - 180.0
        direction = (first + at_stake.sum(axis=1) @ turned / total) % 360.0
        return direction, mean, weight, share @ conditions.turbulence_intensity[members].ravel()[order]


def _groups(direction: Array, most: int) -> list[Indices]:
    """Return the indices of the directions in each of at most `most` groups."""
    if len(direction) <= most:
        return [np.array([i]) for i in range(len(direction))]
    sector = np.floor(direction % 360.0 * (most / 360.0) + 1e-9).astype(np.int64) % most
    order = np.argsort(sector, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(sector[order])) + 1)
