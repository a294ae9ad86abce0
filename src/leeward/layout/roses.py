"""Small wind roses and random samples that tell layouts apart as the full rose does.

Wakes cost energy only in some conditions: not below cut-in, and not far above rated wind speed. The energy at stake in
a condition is what a strong wake would cost there.
"""

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from leeward.wind import Site
from leeward.wind.conditions import Conditions, lattice, place_in

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

DEFICIT = 0.35  # relative: a strong wake, so that speeds somewhat above rated count too


class Stakes:
    """The energy at stake in the conditions of a site.

    power: of all turbines at these wind speeds (m/s), MW. represent: a function that returns typical speeds (m/s) and
    weights of conditions in the area, both of shape (directions, speeds), for wind that varies over the site.
    """

    def __init__(
        self,
        site: Site,
        power: Callable[[Array], Array],
        represent: Callable[[Conditions], tuple[Array, Array]] | None = None,
    ) -> None:
        self._site = site
        self._conditions = conditions = site.conditions
        self._power = power
        self._represent = represent
        self._speed, weight = (conditions.speed, conditions.weight) if represent is None else represent(conditions)
        self._at_stake = weight * self._loss(self._speed)

    def __bool__(self) -> bool:
        """Return whether a wake costs energy in any condition."""
        return bool(self._at_stake.any())

    def reduced(self, directions: int, speeds: int) -> Site:
        """Return a site with at most this many directions, and this many speeds in each, with the same energy at stake.

        If there are more directions, neighbouring ones are merged. The energy at stake in a direction is divided into
        equal parts, from low to high speeds. Each part becomes one condition at its mean speed, with the weight that
        keeps the energy at stake. The gross yield is not kept, so only differences between layouts are meaningful.
        """
        if self._represent is not None:
            return self._reduced_field(directions, speeds)
        rows = [
            self._row(members, speeds)
            for members in _groups(self._conditions.direction, directions)
            if self._at_stake[members].any()
        ]
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        return self._site.with_conditions(Conditions(columns[0], columns[1], columns[2], columns[3]))

    def _reduced_field(self, directions: int, speeds: int) -> Site:
        """Return `reduced` for wind that varies over the site."""
        conditions, local = self._conditions, self._conditions.local
        if local is None or len(conditions.direction) > directions or conditions.speed.shape[1] == 1:
            return self._site.with_conditions(self._typical(directions, speeds))
        kept = np.flatnonzero(self._at_stake.any(axis=1))
        # positions of the new edges of bins among the old ones, and the shares of old bins in the new ones
        ends = np.cumsum(self._at_stake[kept], axis=1)
        ends *= speeds / ends[:, -1:]
        starts = np.concatenate([np.zeros((len(kept), 1)), ends], axis=1)
        columns = np.arange(starts.shape[1])
        at = np.stack([np.interp(np.arange(speeds + 1.0), row, columns) for row in starts])
        edges = np.stack([np.interp(row, columns, local.edges[each]) for row, each in zip(at, kept, strict=True)])
        begin = np.arange(speeds)[:, None]
        overlap = np.clip(np.minimum(ends[:, None], begin + 1.0) - np.maximum(starts[:, None, :-1], begin), 0.0, None)
        share = overlap / overlap.sum(axis=2, keepdims=True)

        def mean(values: Array) -> Array:
            return np.asarray(np.einsum("dns,ds->dn", share, values[kept]))

        loss = self._loss(mean(self._speed))
        wanted = self._at_stake[kept].sum(axis=1, keepdims=True) / speeds
        weight = np.where(loss > 0.0, wanted / np.where(loss > 0.0, loss, 1.0), 0.0)
        fewer = Conditions(
            conditions.direction[kept],
            mean(conditions.speed),
            weight,
            mean(conditions.turbulence_intensity),
            replace(
                local,
                factor=np.ones(weight.shape),
                turbulence_factor=mean(local.turbulence_factor),
                edges=edges,
                step=local.step[kept],
            ),
        )
        return self._site.with_conditions(self._weighted(fewer, weight))

    def _weighted(self, conditions: Conditions, weight: Array) -> Conditions:
        """Return conditions whose typical weights are these."""
        local = conditions.local
        if local is None or self._represent is None:
            raise TypeError("the wind does not vary")
        _, found = self._represent(conditions)
        factor = np.where(found > 0.0, weight / np.where(found > 0.0, found, 1.0), 0.0)
        return replace(conditions, weight=weight, local=replace(local, factor=local.factor * factor))

    def _typical(self, directions: int, speeds: int) -> Conditions:
        """Return some of the conditions: in each group of directions, those in the middle of equal stakes."""
        rows, columns, weights = [], [], []
        for members in _groups(self._conditions.direction, directions):
            stake = self._at_stake[members].ravel()
            if not stake.any():
                continue
            order = np.argsort(self._speed[members].ravel(), kind="stable")
            order = order[stake[order] > 0.0]
            parts = min(speeds, len(order))
            middle = (np.arange(parts) + 0.5) / parts * stake.sum()
            chosen = order[np.minimum(np.searchsorted(np.cumsum(stake[order]), middle), len(order) - 1)]
            row, column = np.divmod(chosen, self._speed.shape[1])
            rows.append(members[row])
            columns.append(column)
            weights.append(stake.sum() / parts / stake[chosen])
        row, column = np.concatenate(rows), np.concatenate(columns)
        return self._conditions.drawn(row, column, np.concatenate(weights) * self._conditions.weight[row, column])

    def draw(self, count: int, rng: np.random.Generator) -> Conditions:
        """Return conditions drawn at random, those with more energy at stake more often, and with less weight.

        Sums over them are unbiased estimates of sums over the conditions with energy at stake.
        """
        return self.drawn(count, rng.random(2))

    def drawn(self, count: int, shift: Array) -> Conditions:
        """Return the conditions of `draw` for the two random numbers `shift`."""
        order, by_direction, within = self._cumulated
        first, second = lattice(count, shift)
        row = order[place_in(by_direction, first)[0]]
        column = np.minimum((within[row] <= second[:, None]).sum(axis=1), within.shape[1] - 1)
        conditions, chosen = self._conditions, (row, column)
        weight = conditions.weight[chosen] * self._at_stake.sum() / (count * self._at_stake[chosen])
        return conditions.drawn(row, column, weight)

    @property
    def tables(self) -> tuple[Indices, Array, Array, Array]:
        """Return what `drawn` needs: rows by direction, their cumulated energy, cumulated shares in each row.

        The last one is the weight of each condition relative to its chance to be drawn. Without any energy at stake,
        the weights count instead.
        """
        order, by_direction, within = self._cumulated
        chance = self._at_stake if self else self._conditions.weight
        ratio = self._conditions.weight * chance.sum() / np.where(chance > 0.0, chance, 1.0)
        return order, np.cumsum(by_direction), within, np.where(chance > 0.0, ratio, 0.0)

    @functools.cached_property
    def _cumulated(self) -> tuple[Indices, Array, Array]:
        """Return the rows of conditions by direction, the energy at stake in them, and cumulated shares in each row."""
        order = np.argsort(self._conditions.direction, kind="stable")
        within = np.cumsum(self._at_stake if self else self._conditions.weight, axis=1)
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
