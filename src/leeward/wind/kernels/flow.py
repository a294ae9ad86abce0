"""Flow maps: how fast the wind blows at many points of a farm."""

import numpy as np

from leeward.wind.kernels.arrange import arrange, turn
from leeward.wind.kernels.data import ELEMENTS, ROWS_OF_PAIR, ROWS_OF_SOURCE, ROWS_OF_VIEW
from leeward.wind.kernels.numerics import effective_speed
from leeward.wind.kernels.pairs import SAME_PLACE, find_pairs, note_pair, room_for_pairs


def build_flow(add_wakes, propagate, new_state):
    """The kernel for one set of formulas, not yet compiled."""

    def flow(places, wind, begin, end, kinds, model, at, seen, seen_model, mean):
        """Add the weighted wind speed (m/s) at each point in the directions begin .. end to `mean` (points,).

        at: where the points are, and as what they see the wakes: Places, with the types of `seen`.
        seen, seen_model: `kinds` and `model` with further types, which have no rotor and the height of the points. The
        turbines see each other by `kinds` and `model`, to the last bit as in `energy`.
        """
        batch = arrange(places, wind, begin, end)
        turbines = batch.downwind.shape[1]
        lanes = wind.speed.shape[1]
        pairs = find_pairs(batch, kinds, model)
        state = new_state(batch, ROWS_OF_SOURCE)
        gathered = np.empty((ROWS_OF_PAIR + ROWS_OF_SOURCE, ELEMENTS))
        views = np.empty((ROWS_OF_VIEW, ELEMENTS))
        propagate(batch, kinds, model, pairs, state, gathered, views, np.empty(ELEMENTS))
        found = room_for_pairs(1, turbines + 1)
        totals = np.zeros((1, len(batch.speed)))
        downwind, crosswind = np.empty(len(at.x)), np.empty(len(at.x))
        for g in range(end - begin):
            here, there = g * lanes, (g + 1) * lanes
            found.direction[:] = g
            turn(at, wind, begin + g, downwind, crosswind)
            for point in range(len(at.x)):
                count = 0
                for upstream in range(turbines):
                    behind = downwind[point] - batch.downwind[g, upstream]
                    if behind <= -SAME_PLACE:
                        break  # the others are further downstream still
                    count = note_pair(
                        behind,
                        crosswind[point] - batch.crosswind[g, upstream],
                        batch.kind[g, upstream],
                        at.kind[point],
                        upstream,
                        0.0,
                        seen,
                        seen_model,
                        found,
                        count,
                    )
                totals[0, here:there] = 0.0
                add_wakes(found, 0, count, lanes, state.sources, totals, 0, model, gathered, views)
                total = 0.0
                for k in range(here, there):
                    total += batch.weight[k] * effective_speed(batch.speed[k], totals[0, k], model.squared)
                mean[point] += total

    return flow
