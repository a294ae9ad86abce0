"""Maps of the yield of one more turbine, for farms that grow turbine by turbine.

A new turbine changes few others: those in its wake, and those in theirs. Turbines and points that no changed wake
reaches keep their results, which have the same bits as if everything was computed again.
"""

from typing import NamedTuple

import numpy as np

from leeward.wind.kernels.arrange import arrange, turn
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.curves import power_and_thrust
from leeward.wind.kernels.data import Floats, Indices, Pairs, Place, Scratch
from leeward.wind.kernels.numerics import effective_speed
from leeward.wind.kernels.pairs import SAME_PLACE, note_wakes, ranks_upstream, reach_bin, room_for_pairs
from leeward.wind.kernels.sweep import Sweep


class Buffers(NamedTuple):
    """Scratch arrays for one direction at a time.

    found: the wakes that reach a place; totals: of the contributions, shape (1, elements); changed: the ranks of the
    turbines whose speeds changed, shape (turbines,).
    """

    found: Pairs
    totals: Floats
    changed: Indices
    scratch: Scratch


@formula
def is_reached(batch, model, g, ranks, count, place):
    """Return whether the wake of any of the first `count` of these turbines reaches a place."""
    for k in range(count):
        rank = ranks[k]
        behind = place.downwind - batch.downwind[g, rank]
        away = place.crosswind - batch.crosswind[g, rank]
        if behind > -SAME_PLACE:
            reach = model.reaches[batch.kind[g, rank], place.kind, reach_bin(behind, model.longest)]
            if away * away < reach:
                return True
    return False


def make_settle_one(sweep: Sweep):
    source, write_source = sweep.source, sweep.source_rows.write_turbine

    @formula
    def settle_one(wind, direction, i, kind, kinds, model, totals, known):
        """Fill in speeds and source of one turbine in one direction; return whether its speeds changed."""
        lanes = wind.speed.shape[1]
        changed = False
        for lane in range(lanes):
            k = direction * lanes + lane
            free = wind.speed[direction, lane]
            speed = effective_speed(free, totals[0, k], model.squared)
            changed |= known.speeds[i, k] != speed
            known.speeds[i, k] = speed
            _, thrust = power_and_thrust(speed, kind, kinds.curves)
            made = source(
                thrust,
                speed / free,
                kinds.diameter[kind],
                wind.turbulence_intensity[direction, lane],
                model.parameters,
            )
            write_source(known.sources, i, 0, k, made)
        return changed

    return settle_one


def make_update_turbines(sweep: Sweep):
    add_wakes, settle_one = sweep.add_wakes, make_settle_one(sweep)

    @formula
    def update_turbines(batch, wind, direction, g, kinds, model, known, buffers):
        """Recompute the turbines that are new or that a changed wake reaches; return how many changed."""
        lanes = wind.speed.shape[1]
        here, there = direction * lanes, (direction + 1) * lanes
        changes = 0
        for rank in range(batch.downwind.shape[1]):
            i, kind = batch.turbine[g, rank], batch.kind[g, rank]
            place = Place(batch.downwind[g, rank], batch.crosswind[g, rank], kind, 1.0)
            if not (np.isnan(known.speeds[i, here]) or is_reached(batch, model, g, buffers.changed, changes, place)):
                continue
            count = note_wakes(batch, g, rank, place, True, kinds, model, buffers.found)
            buffers.totals[0, here:there] = 0.0
            add_wakes(buffers.found, 0, count, lanes, known.sources, buffers.totals, 0, model, buffers.scratch)
            if settle_one(wind, direction, i, kind, kinds, model, buffers.totals, known):
                buffers.changed[changes] = rank
                changes += 1
        return changes

    return update_turbines


def make_points(sweep: Sweep):
    add_wakes, new_scratch, update_turbines = sweep.add_wakes, sweep.new_scratch, make_update_turbines(sweep)

    def points(places, wind, begin, end, kinds, model, at, rotor, known, power):
        """Update `power`, the yield (MW) of one more turbine at each point, in the directions begin .. end.

        at: Places of the points, with the type of the new turbine.
        rotor: 1.0 to average over the rotor, 0.0 for the wind speed at the hub.
        known: the turbines at the last update; the speeds of new ones are NaN.
        power: shape (points, directions); NaN where it was never computed.
        """
        batch = arrange(places, wind, begin, end)
        turbines = batch.downwind.shape[1]
        lanes = wind.speed.shape[1]
        totals, changed = np.empty((1, wind.speed.size)), np.empty(turbines, dtype=np.uint32)
        buffers = Buffers(room_for_pairs(1, turbines + 1), totals, changed, new_scratch())
        downwind, crosswind = np.empty(len(at.x)), np.empty(len(at.x))
        for g in range(end - begin):
            direction = begin + g
            here, there = direction * lanes, (direction + 1) * lanes
            buffers.found.direction[:] = direction
            changes = update_turbines(batch, wind, direction, g, kinds, model, known, buffers)
            turn(at, wind, direction, downwind, crosswind)
            for point in range(len(at.x)):
                place = Place(downwind[point], crosswind[point], at.kind[point], rotor)
                if not (np.isnan(power[point, direction]) or is_reached(batch, model, g, changed, changes, place)):
                    continue
                ranks = ranks_upstream(batch, g, place.downwind)
                count = note_wakes(batch, g, ranks, place, True, kinds, model, buffers.found)
                totals[0, here:there] = 0.0
                add_wakes(buffers.found, 0, count, lanes, known.sources, totals, 0, model, buffers.scratch)
                total = 0.0
                for lane in range(lanes):
                    speed = effective_speed(wind.speed[direction, lane], totals[0, here + lane], model.squared)
                    total += wind.weight[direction, lane] * power_and_thrust(speed, place.kind, kinds.curves)[0]
                power[point, direction] = total

    return points
