"""What a farm would lose without each of its turbines, and gain from one more at many points.

Unlike maps of yield, these count what a turbine takes from those in its wake. The thrust of the others is taken to stay
as it is: good to a few per cent of the gain, and enough to choose by.
"""

import numpy as np

from leeward.wind.kernels.arrange import arrange, turn
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.curves import power_and_thrust
from leeward.wind.kernels.data import ELEMENTS, ROWS_OF_PAIR, ROWS_OF_SOURCE, ROWS_OF_VIEW
from leeward.wind.kernels.numerics import effective_speed
from leeward.wind.kernels.pairs import find_pairs, note_pair, room_for_pairs


def build_gains(add_wakes, source, propagate, new_state):
    """The kernels for one set of formulas, not yet compiled."""

    @formula
    def power_in(batch, kinds, model, g, kind, totals):
        """Weighted power (MW) in direction `g` of a turbine behind wakes of these totals, shape (1, elements)."""
        lanes = len(batch.speed) // len(batch.cosine)
        power = 0.0
        for k in range(g * lanes, (g + 1) * lanes):
            speed = effective_speed(batch.speed[k], max(totals[0, k], 0.0), model.squared)
            power += batch.weight[k] * power_and_thrust(speed, kind, kinds.curves)[0]
        return power

    def worth(places, wind, begin, end, kinds, model, counted, gain):
        """Add to `gain` (turbines,) what the counted turbines would lose without it, directions begin .. end (MW)."""
        batch = arrange(places, wind, begin, end)
        lanes = wind.speed.shape[1]
        turbines = batch.downwind.shape[1]
        pairs = find_pairs(batch, kinds, model)
        state = new_state(batch, ROWS_OF_SOURCE)
        gathered = np.empty((ROWS_OF_PAIR + ROWS_OF_SOURCE, ELEMENTS))
        views = np.empty((ROWS_OF_VIEW, ELEMENTS))
        propagate(batch, kinds, model, pairs, state, gathered, views, np.empty(ELEMENTS))
        totals = np.zeros((1, len(batch.speed)))
        for rank in range(turbines):
            for g in range(end - begin):
                i = batch.turbine[g, rank]
                for k in range(g * lanes, (g + 1) * lanes):
                    gain[i] += counted[i] * batch.weight[k] * state.power[rank, k]
            for e in range(pairs.first[rank], pairs.first[rank + 1]):
                g = pairs.direction[e]
                here, there = g * lanes, (g + 1) * lanes
                i = batch.turbine[g, rank]
                totals[0, here:there] = 0.0
                add_wakes(pairs, e, e + 1, lanes, state.sources, totals, 0, model, gathered, views)
                taken = 0.0
                for k in range(here, there):
                    totals[0, k] = state.totals[rank, k] - totals[0, k]
                    taken -= batch.weight[k] * state.power[rank, k]
                taken += power_in(batch, kinds, model, g, batch.kind[g, rank], totals)
                gain[batch.turbine[g, pairs.source[e]]] -= counted[i] * taken

    def gains(places, wind, begin, end, kinds, model, counted, at, gain):
        """Add to `gain` (points,) what one more turbine and the counted ones would yield more (MW)."""
        batch = arrange(places, wind, begin, end)
        lanes = wind.speed.shape[1]
        turbines = batch.downwind.shape[1]
        pairs = find_pairs(batch, kinds, model)
        state = new_state(batch, ROWS_OF_SOURCE)
        gathered = np.empty((ROWS_OF_PAIR + ROWS_OF_SOURCE, ELEMENTS))
        views = np.empty((ROWS_OF_VIEW, ELEMENTS))
        propagate(batch, kinds, model, pairs, state, gathered, views, np.empty(ELEMENTS))
        found = room_for_pairs(1, turbines + 1)
        totals = np.zeros((1, len(batch.speed)))
        # the new turbine, as the only one of a batch in which the others' places are seen from its wake
        own = np.empty((1, ROWS_OF_SOURCE, len(batch.speed)))
        downwind, crosswind = np.empty(len(at.x)), np.empty(len(at.x))
        for g in range(end - begin):
            here, there = g * lanes, (g + 1) * lanes
            found.direction[:] = g
            turn(at, wind, begin + g, downwind, crosswind)
            for point in range(len(at.x)):
                kind = at.kind[point]
                along, across = downwind[point], crosswind[point]
                count = 0
                rank = 0
                while rank < turbines and batch.downwind[g, rank] <= along:
                    count = note_pair(
                        along - batch.downwind[g, rank],
                        across - batch.crosswind[g, rank],
                        batch.kind[g, rank],
                        kind,
                        rank,
                        1.0,
                        kinds,
                        model,
                        found,
                        count,
                    )
                    rank += 1
                totals[0, here:there] = 0.0
                add_wakes(found, 0, count, lanes, state.sources, totals, 0, model, gathered, views)
                total = 0.0
                for k in range(here, there):
                    speed = effective_speed(batch.speed[k], totals[0, k], model.squared)
                    power, thrust = power_and_thrust(speed, kind, kinds.curves)
                    total += batch.weight[k] * power
                    own[0, 0, k], own[0, 1, k], own[0, 2, k], own[0, 3, k] = source(
                        thrust,
                        speed / batch.speed[k],
                        kinds.diameter[kind],
                        batch.turbulence_intensity[k],
                        model.parameters,
                    )
                while rank < turbines:
                    i, other = batch.turbine[g, rank], batch.kind[g, rank]
                    reached = note_pair(
                        batch.downwind[g, rank] - along,
                        batch.crosswind[g, rank] - across,
                        kind,
                        other,
                        0,
                        1.0,
                        kinds,
                        model,
                        found,
                        0,
                    )
                    if reached == 1 and counted[i] > 0.0:
                        for k in range(here, there):
                            totals[0, k] = state.totals[rank, k]
                            total -= batch.weight[k] * state.power[rank, k]
                        add_wakes(found, 0, 1, lanes, own, totals, 0, model, gathered, views)
                        total += power_in(batch, kinds, model, g, other, totals)
                    rank += 1
                gain[point] += total

    return worth, gains
