"""Maps: what one more turbine would yield at many points, for farms that grow turbine by turbine.

A new turbine changes few others: those in its wake, and those in theirs. What no changed wake reaches is left as it is,
turbines and points alike, and is the same to the last bit as if all had been worked out again.
"""

import numpy as np

from leeward.wind.kernels.arrange import arrange, turn
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.curves import power_and_thrust
from leeward.wind.kernels.data import ELEMENTS, ROWS_OF_PAIR, ROWS_OF_SOURCE, ROWS_OF_VIEW
from leeward.wind.kernels.numerics import effective_speed
from leeward.wind.kernels.pairs import SAME_PLACE, note_pair, reach_bin, room_for_pairs


@formula
def is_reached(batch, model, g, ranks, count, downwind, crosswind, kind):
    """Whether the wake of any of these turbines reaches a place."""
    for k in range(count):
        rank = ranks[k]
        behind = downwind - batch.downwind[g, rank]
        away = crosswind - batch.crosswind[g, rank]
        if behind > -SAME_PLACE:
            reach = model.reaches[batch.kind[g, rank], kind, reach_bin(behind, model.longest)]
            if away * away < reach:
                return True
    return False


def build_points(add_wakes, source):
    """The kernel for one set of formulas, not yet compiled."""

    @formula
    def settle(wind, direction, i, kind, kinds, model, totals, speeds, sources):
        """Speeds and what the wake depends on, of one turbine in one direction; whether its speeds changed."""
        lanes = wind.speed.shape[1]
        changed = False
        for lane in range(lanes):
            k = direction * lanes + lane
            free = wind.speed[direction, lane]
            speed = effective_speed(free, totals[0, k], model.squared)
            changed |= speeds[i, k] != speed
            speeds[i, k] = speed
            _, thrust = power_and_thrust(speed, kind, kinds.curves)
            sources[i, 0, k], sources[i, 1, k], sources[i, 2, k], sources[i, 3, k] = source(
                thrust,
                speed / free,
                kinds.diameter[kind],
                wind.turbulence_intensity[direction, lane],
                model.parameters,
            )
        return changed

    def points(places, wind, begin, end, kinds, model, at, rotor, speeds, sources, power):
        """Bring `power` up to date, directions begin .. end: what one more turbine would yield at each point (MW).

        at: where it would stand and of which type it would be, Places of the points.
        rotor: 1.0 to average over the rotor, 0.0 for the wind speed at the hub.
        speeds, sources: of the turbines when `power` was right, shape (turbines, all elements) and (turbines, rows, all
        elements); the speeds of new ones are not numbers. power: shape (points, directions); not a number where it was
        never worked out.
        """
        batch = arrange(places, wind, begin, end)
        turbines = batch.downwind.shape[1]
        lanes = wind.speed.shape[1]
        found = room_for_pairs(1, turbines + 1)
        changed = np.empty(turbines, dtype=np.uint32)
        totals = np.empty((1, wind.speed.size))
        gathered = np.empty((ROWS_OF_PAIR + ROWS_OF_SOURCE, ELEMENTS))
        views = np.empty((ROWS_OF_VIEW, ELEMENTS))
        downwind, crosswind = np.empty(len(at.x)), np.empty(len(at.x))
        for g in range(end - begin):
            direction = begin + g
            here, there = direction * lanes, (direction + 1) * lanes
            found.direction[:] = direction
            changes = 0
            for rank in range(turbines):
                i, kind = batch.turbine[g, rank], batch.kind[g, rank]
                along, across = batch.downwind[g, rank], batch.crosswind[g, rank]
                if not (
                    np.isnan(speeds[i, here]) or is_reached(batch, model, g, changed, changes, along, across, kind)
                ):
                    continue
                count = 0
                for upstream in range(rank):
                    count = note_pair(
                        along - batch.downwind[g, upstream],
                        across - batch.crosswind[g, upstream],
                        batch.kind[g, upstream],
                        kind,
                        batch.turbine[g, upstream],
                        1.0,
                        kinds,
                        model,
                        found,
                        count,
                    )
                totals[0, here:there] = 0.0
                add_wakes(found, 0, count, lanes, sources, totals, 0, model, gathered, views)
                if settle(wind, direction, i, kind, kinds, model, totals, speeds, sources):
                    changed[changes] = rank
                    changes += 1

            turn(at, wind, direction, downwind, crosswind)
            for point in range(len(at.x)):
                kind = at.kind[point]
                along, across = downwind[point], crosswind[point]
                if not (
                    np.isnan(power[point, direction])
                    or is_reached(batch, model, g, changed, changes, along, across, kind)
                ):
                    continue
                count = 0
                for upstream in range(turbines):
                    if along - batch.downwind[g, upstream] <= -SAME_PLACE:
                        break  # the others are further downstream still
                    count = note_pair(
                        along - batch.downwind[g, upstream],
                        across - batch.crosswind[g, upstream],
                        batch.kind[g, upstream],
                        kind,
                        batch.turbine[g, upstream],
                        rotor,
                        kinds,
                        model,
                        found,
                        count,
                    )
                totals[0, here:there] = 0.0
                add_wakes(found, 0, count, lanes, sources, totals, 0, model, gathered, views)
                total = 0.0
                for lane in range(lanes):
                    speed = effective_speed(wind.speed[direction, lane], totals[0, here + lane], model.squared)
                    total += wind.weight[direction, lane] * power_and_thrust(speed, kind, kinds.curves)[0]
                power[point, direction] = total

    return points
