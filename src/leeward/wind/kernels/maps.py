"""Maps: what one more turbine would yield at many points, for farms that grow turbine by turbine.

A new turbine changes few others: those in its wake, and those in theirs. What no changed wake reaches is left as it is,
turbines and points alike, and is the same to the last bit as if all had been worked out again.
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


class Room(NamedTuple):
    """Room for one direction at a time.

    found: the wakes that reach a place; totals: of the contributions, shape (1, elements); changed: the ranks of the
    turbines whose speeds changed, shape (turbines,).
    """

    found: Pairs
    totals: Floats
    changed: Indices
    scratch: Scratch


@formula
def is_reached(batch, model, g, ranks, count, place):
    """Whether the wake of any of the first `count` of these turbines reaches a place."""
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
        """Speeds and what the wake depends on, of one turbine in one direction; whether its speeds changed."""
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
    def update_turbines(batch, wind, direction, g, kinds, model, known, room):
        """Work out again the turbines that are new, or that a changed wake reaches; return how many changed."""
        lanes = wind.speed.shape[1]
        here, there = direction * lanes, (direction + 1) * lanes
        changes = 0
        for rank in range(batch.downwind.shape[1]):
            i, kind = batch.turbine[g, rank], batch.kind[g, rank]
            place = Place(batch.downwind[g, rank], batch.crosswind[g, rank], kind, 1.0)
            if not (np.isnan(known.speeds[i, here]) or is_reached(batch, model, g, room.changed, changes, place)):
                continue
            count = note_wakes(batch, g, rank, place, True, kinds, model, room.found)
            room.totals[0, here:there] = 0.0
            add_wakes(room.found, 0, count, lanes, known.sources, room.totals, 0, model, room.scratch)
            if settle_one(wind, direction, i, kind, kinds, model, room.totals, known):
                room.changed[changes] = rank
                changes += 1
        return changes

    return update_turbines


def make_points(sweep: Sweep):
    add_wakes, new_scratch, update_turbines = sweep.add_wakes, sweep.new_scratch, make_update_turbines(sweep)

    def points(places, wind, begin, end, kinds, model, at, rotor, known, power):
        """Bring `power` up to date, directions begin .. end: what one more turbine would yield at each point (MW).

        at: where it would stand and of which type it would be, Places of the points.
        rotor: 1.0 to average over the rotor, 0.0 for the wind speed at the hub.
        known: of the turbines when `power` was right; the speeds of new ones are not numbers.
        power: shape (points, directions); not a number where it was never worked out.
        """
        batch = arrange(places, wind, begin, end)
        turbines = batch.downwind.shape[1]
        lanes = wind.speed.shape[1]
        totals, changed = np.empty((1, wind.speed.size)), np.empty(turbines, dtype=np.uint32)
        room = Room(room_for_pairs(1, turbines + 1), totals, changed, new_scratch())
        downwind, crosswind = np.empty(len(at.x)), np.empty(len(at.x))
        for g in range(end - begin):
            direction = begin + g
            here, there = direction * lanes, (direction + 1) * lanes
            room.found.direction[:] = direction
            changes = update_turbines(batch, wind, direction, g, kinds, model, known, room)
            turn(at, wind, direction, downwind, crosswind)
            for point in range(len(at.x)):
                place = Place(downwind[point], crosswind[point], at.kind[point], rotor)
                if not (np.isnan(power[point, direction]) or is_reached(batch, model, g, changed, changes, place)):
                    continue
                ranks = ranks_upstream(batch, g, place.downwind)
                count = note_wakes(batch, g, ranks, place, True, kinds, model, room.found)
                totals[0, here:there] = 0.0
                add_wakes(room.found, 0, count, lanes, known.sources, totals, 0, model, room.scratch)
                total = 0.0
                for lane in range(lanes):
                    speed = effective_speed(wind.speed[direction, lane], totals[0, here + lane], model.squared)
                    total += wind.weight[direction, lane] * power_and_thrust(speed, place.kind, kinds.curves)[0]
                power[point, direction] = total

    return points
