"""Flow maps: the wind speed at many points of a farm."""

import numpy as np

from leeward.wind.kernels.arrange import turn
from leeward.wind.kernels.data import Place
from leeward.wind.kernels.numerics import effective_speed
from leeward.wind.kernels.pairs import note_wakes, ranks_upstream, room_for_pairs
from leeward.wind.kernels.sweep import Sweep


def make_flow(sweep: Sweep):
    solve, add_wakes = sweep.solve, sweep.add_wakes

    def flow(places, wind, begin, end, kinds, model, at, seen, seen_model, mean):
        """Add the weighted wind speed (m/s) at each point in the directions begin .. end to `mean` (points,).

        at: Places of the points, with types of `seen`.
        seen, seen_model: `kinds` and `model` with further types, which have no rotor and the height of the points.
        Turbines still use `kinds` and `model`, so that their results have the same bits as in `energy`.
        """
        solved = solve(places, wind, begin, end, kinds, model)
        batch, sources = solved.batch, solved.state.sources
        lanes = wind.speed.shape[1]
        found = room_for_pairs(1, batch.downwind.shape[1] + 1)
        totals = np.zeros((1, len(batch.speed)))
        downwind, crosswind = np.empty(len(at.x)), np.empty(len(at.x))
        for g in range(end - begin):
            here, there = g * lanes, (g + 1) * lanes
            found.direction[:] = g
            turn(at, wind, begin + g, downwind, crosswind)
            for point in range(len(at.x)):
                place = Place(downwind[point], crosswind[point], at.kind[point], 0.0)
                ranks = ranks_upstream(batch, g, place.downwind)
                count = note_wakes(batch, g, ranks, place, False, seen, seen_model, found)
                totals[0, here:there] = 0.0
                add_wakes(found, 0, count, lanes, sources, totals, 0, model, solved.scratch)
                total = 0.0
                for k in range(here, there):
                    total += batch.weight[k] * effective_speed(batch.speed[k], totals[0, k], model.squared)
                mean[point] += total

    return flow
