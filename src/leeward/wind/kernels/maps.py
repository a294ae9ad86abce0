"""Loops over many points: the yield of one more turbine, the gain of the farm from it, and the wind speed.

`points` keeps its results for farms that grow turbine by turbine. A new turbine changes few others: those in its wake,
and those in their wakes. Turbines and points that no changed wake reaches keep their results, which have the same bits
as in a full computation.

`points` returns the yield of the new turbine alone. `gains` also counts the losses of turbines in its wake, and so does
`marginal`, the loss of a farm without each of its turbines. Both hold the thrust of the other turbines constant. The
error is a few per cent of the gain, which is small enough to compare positions.
"""

from typing import NamedTuple

import numpy as np

from leeward.wind.kernels.compile import allocating, formula
from leeward.wind.kernels.data import Floats, Indices, Pairs, Place, Scratch
from leeward.wind.kernels.numerics import effective_speed, power_and_thrust
from leeward.wind.kernels.pairs import (
    SAME_PLACE,
    arrange,
    ground_at,
    new_pairs,
    place_of,
    ranks_upstream,
    reach_bin,
    rotate,
    row_of,
    store_wake,
    store_wakes,
    stretch_at,
)
from leeward.wind.kernels.sweep import Sweep, lanes_of


class Buffers(NamedTuple):
    """Scratch arrays for one direction at a time.

    found: the wakes that reach a place; totals: of the contributions, shape (elements,); changed: the ranks of the
    turbines whose speeds changed, shape (turbines,).
    """

    found: Pairs
    totals: Floats
    changed: Indices
    scratch: Scratch


class Trial(NamedTuple):
    """Scratch arrays for a new turbine.

    found: the wakes that reach it, later its own wake; totals: of the contributions, shape (elements,); source: of
    its own wake, shape (1, rows, elements); scale: of its own wake, shape (1, elements), or no rows.
    """

    found: Pairs
    totals: Floats
    source: Floats
    scale: Floats


@formula
def is_reached(batch, model, g, ranks, count, place, stretch, i):
    """Return whether the wake of any of the first `count` of these turbines reaches a place; see `store_wakes`."""
    for k in range(count):
        rank = ranks[k]
        behind = (place.downwind - batch.downwind[g, rank]) * stretch_at(stretch, i, batch.turbine[g, rank])
        away = place.crosswind - batch.crosswind[g, rank]
        if behind > -SAME_PLACE:
            reach = model.reaches[batch.kind[g, rank], place.kind, reach_bin(behind, model.longest)]
            if away * away < reach:
                return True
    return False


@formula
def density_at(wind, place, direction, lane):
    """Return the relative air density at a place."""
    return wind.density[row_of(place, wind.density), direction, lane] if len(wind.density) else 1.0


@formula
def scale_in(scale, total, row, element):
    """Return a total of scaled contributions relative to the free speed at its place. scale: shape (rows, elements)."""
    return total / scale[row_of(row, scale), element] if len(scale) else total


@allocating
def flat(values):
    """Return values of shape (rows, directions, lanes) in the shape (rows, elements)."""
    return values.reshape((values.shape[0], values.shape[1] * values.shape[2]))


def make_turbine_in(source):
    @formula
    def turbine_in(free, turbulence_intensity, density, total, kind, kinds, model):
        """Return speed (m/s), power (MW) and source of a turbine, from the free wind and the total of the wakes."""
        speed = effective_speed(free, total, model.squared)
        power, thrust = power_and_thrust(speed, kind, kinds.curves)
        if density != 1.0:
            power, thrust = power * density, thrust * density
        made = source(thrust, speed / free, kinds.diameter[kind], turbulence_intensity, model.parameters)
        return speed, power, made

    return turbine_in


def make_update_turbines(sweep: Sweep):
    add_wakes, turbine_in, write_source = sweep.add_wakes, make_turbine_in(sweep.source), sweep.source_rows.write

    @formula
    def update_turbines(batch, wind, direction, g, kinds, model, known, buffers):
        """Recompute the turbines that are new or that a changed wake reaches; return how many changed."""
        lanes = wind.speed.shape[2]
        here, there = direction * lanes, (direction + 1) * lanes
        totals, scale = buffers.totals, flat(wind.scale)
        changes = 0
        for rank in range(batch.downwind.shape[1]):
            i, place = batch.turbine[g, rank], place_of(batch, g, rank)
            if not (
                np.isnan(known.speeds[i, here])
                or is_reached(batch, model, g, buffers.changed, changes, place, batch.stretch, i)
            ):
                continue
            count = store_wakes(batch, g, rank, place, batch.stretch, i, True, kinds, model, buffers.found)
            totals[here:there] = 0.0
            add_wakes(buffers.found, 0, count, lanes, known.sources, scale, totals, model, buffers.scratch)
            changed = False
            for lane in range(lanes):
                k = here + lane
                free = wind.speed[row_of(i, wind.speed), direction, lane]
                turbulence_intensity = wind.turbulence_intensity[row_of(i, wind.turbulence_intensity), direction, lane]
                density, total = density_at(wind, i, direction, lane), scale_in(scale, totals[k], i, k)
                speed, _, made = turbine_in(free, turbulence_intensity, density, total, place.kind, kinds, model)
                changed |= known.speeds[i, k] != speed
                known.speeds[i, k] = speed
                write_source(known.sources[i], 0, k, made)
            if changed:
                buffers.changed[changes] = rank
                changes += 1
        return changes

    return update_turbines


def make_points(sweep: Sweep):
    add_wakes, new_scratch, update_turbines = sweep.add_wakes, sweep.new_scratch, make_update_turbines(sweep)

    def points(places, wind, begin, end, kinds, model, at, at_wind, first, rotor, known, power):
        """Update `power`, the yield (MW) of one more turbine at each point, in the directions begin .. end.

        at: Places of the points, with the type of the new turbine; at_wind: the wind there, from direction `first` on.
        rotor: 1.0 to average over the rotor, 0.0 for the wind speed at the hub.
        known: the turbines at the last update; the speeds of new ones are NaN.
        power: shape (points, directions); NaN where it was never computed.
        """
        batch = arrange(places, wind, begin, end)
        turbines = batch.downwind.shape[1]
        lanes = wind.speed.shape[2]
        scale, at_scale = flat(wind.scale), flat(at_wind.scale)
        totals, changed = np.empty(wind.speed.shape[1] * lanes), np.empty(turbines, dtype=np.uint32)
        buffers = Buffers(new_pairs(1, turbines + 1), totals, changed, new_scratch())
        downwind, crosswind = np.empty(len(at.x)), np.empty(len(at.x))
        for g in range(end - begin):
            direction = begin + g
            row = direction - first  # in at_wind
            here, there = direction * lanes, (direction + 1) * lanes
            buffers.found.direction[:] = direction
            changes = update_turbines(batch, wind, direction, g, kinds, model, known, buffers)
            rotate(at, wind, direction, downwind, crosswind)
            for point in range(len(at.x)):
                place = Place(downwind[point], crosswind[point], at.kind[point], rotor, ground_at(at.ground, point))
                if not (
                    np.isnan(power[point, direction])
                    or is_reached(batch, model, g, changed, changes, place, at.stretch, point)
                ):
                    continue
                ranks = ranks_upstream(batch, g, place.downwind)
                count = store_wakes(batch, g, ranks, place, at.stretch, point, True, kinds, model, buffers.found)
                totals[here:there] = 0.0
                add_wakes(buffers.found, 0, count, lanes, known.sources, scale, totals, model, buffers.scratch)
                total = 0.0
                free = at_wind.speed[row_of(point, at_wind.speed), row]
                weight = at_wind.weight[row_of(point, at_wind.weight), row]
                for lane in range(lanes):
                    deficits = scale_in(at_scale, totals[here + lane], point, row * lanes + lane)
                    speed = effective_speed(free[lane], deficits, model.squared)
                    produced = power_and_thrust(speed, place.kind, kinds.curves)[0]
                    if len(at_wind.density):
                        produced *= density_at(at_wind, point, row, lane)
                    total += weight[lane] * produced
                power[point, direction] = total

    return points


@formula
def power_in(batch, kinds, model, g, rank, totals):
    """Return the weighted power (MW) in direction `g` of the turbine of a rank with these totals, shape (elements,)."""
    lanes = lanes_of(batch)
    free, weight = batch.speed[row_of(rank, batch.speed)], batch.weight[row_of(rank, batch.weight)]
    kind = batch.kind[g, rank]
    power = 0.0
    for k in range(g * lanes, (g + 1) * lanes):
        speed = effective_speed(free[k], max(totals[k], 0.0), model.squared)
        produced = power_and_thrust(speed, kind, kinds.curves)[0]
        if len(batch.density):
            produced *= batch.density[row_of(rank, batch.density), k]
        power += weight[k] * produced
    return power


def make_marginal(sweep: Sweep):
    solve, add_wakes = sweep.solve, sweep.add_wakes

    def marginal(places, wind, begin, end, kinds, model, counted, gain):
        """Add to `gain` (turbines,) the loss (MW) of the counted turbines without each turbine."""
        solved = solve(places, wind, begin, end, kinds, model)
        batch, pairs, state = solved.batch, solved.pairs, solved.state
        lanes = lanes_of(batch)
        totals = np.zeros(batch.speed.shape[1])
        for rank in range(batch.downwind.shape[1]):
            weight = batch.weight[row_of(rank, batch.weight)]
            for g in range(end - begin):
                i = batch.turbine[g, rank]
                for k in range(g * lanes, (g + 1) * lanes):
                    gain[i] += counted[i] * weight[k] * state.power[rank, k]
            for e in range(pairs.first[rank], pairs.first[rank + 1]):
                g = pairs.direction[e]
                here, there = g * lanes, (g + 1) * lanes
                i = batch.turbine[g, rank]
                totals[here:there] = 0.0
                add_wakes(pairs, e, e + 1, lanes, state.sources, batch.scale, totals, model, solved.scratch)
                change = 0.0
                for k in range(here, there):
                    totals[k] = state.totals[rank, k] - scale_in(batch.scale, totals[k], rank, k)
                    change -= weight[k] * state.power[rank, k]
                change += power_in(batch, kinds, model, g, rank, totals)
                gain[batch.turbine[g, pairs.source[e]]] -= counted[i] * change

    return marginal


def make_subtract_loss(sweep: Sweep):
    add_wakes = sweep.add_wakes

    @formula
    def subtract_loss(total, solved, g, rank, place, stretch, kinds, model, counted, trial):
        """Return `total` less the loss (MW) of the turbine of this rank, if counted, to a turbine at `place`."""
        batch, state, totals = solved.batch, solved.state, trial.totals
        weight = batch.weight[row_of(rank, batch.weight)]
        lanes = lanes_of(batch)
        reached = store_wake(place, place_of(batch, g, rank), 0, stretch, kinds, model, trial.found, 0)
        if reached == 1 and counted[batch.turbine[g, rank]] > 0.0:
            is_scaled = len(batch.scale) > 0
            for k in range(g * lanes, (g + 1) * lanes):
                totals[k] = 0.0 if is_scaled else state.totals[rank, k]
                total -= weight[k] * state.power[rank, k]
            add_wakes(trial.found, 0, 1, lanes, trial.source, trial.scale, totals, model, solved.scratch)
            if is_scaled:
                for k in range(g * lanes, (g + 1) * lanes):
                    totals[k] = state.totals[rank, k] + scale_in(batch.scale, totals[k], rank, k)
            total += power_in(batch, kinds, model, g, rank, totals)
        return total

    return subtract_loss


def make_gains(sweep: Sweep):
    solve, add_wakes, source_rows = sweep.solve, sweep.add_wakes, sweep.source_rows
    source_count, write_source = source_rows.size, source_rows.write
    turbine_in, subtract_loss = make_turbine_in(sweep.source), make_subtract_loss(sweep)

    def gains(places, wind, begin, end, kinds, model, counted, at, at_wind, gain):
        """Add to `gain` (points,) the yield (MW) of one more turbine, less the losses of the counted ones.

        at: Places of the points, with the type of the new turbine; at_wind: the wind there.
        """
        solved = solve(places, wind, begin, end, kinds, model)
        batch = solved.batch
        lanes = lanes_of(batch)
        turbines, elements = batch.downwind.shape[1], batch.speed.shape[1]
        found = new_pairs(1, turbines + 1)
        totals = np.zeros(elements)
        trial = Trial(found, totals, np.empty((1, source_count, elements)), np.empty((len(batch.scale[:1]), elements)))
        source = trial.source[0]
        downwind, crosswind = np.empty(len(at.x)), np.empty(len(at.x))
        for g in range(end - begin):
            here, there = g * lanes, (g + 1) * lanes
            found.direction[:] = g
            rotate(at, wind, begin + g, downwind, crosswind)
            for point in range(len(at.x)):
                place = Place(downwind[point], crosswind[point], at.kind[point], 1.0, ground_at(at.ground, point))
                upstream = 0
                while upstream < turbines and batch.downwind[g, upstream] <= place.downwind:
                    upstream += 1
                count = store_wakes(batch, g, upstream, place, at.stretch, point, False, kinds, model, found)
                totals[here:there] = 0.0
                add_wakes(found, 0, count, lanes, solved.state.sources, batch.scale, totals, model, solved.scratch)
                total = 0.0
                free = at_wind.speed[row_of(point, at_wind.speed), begin + g]
                weight = at_wind.weight[row_of(point, at_wind.weight), begin + g]
                turbulence_intensity = at_wind.turbulence_intensity[
                    row_of(point, at_wind.turbulence_intensity), begin + g
                ]
                if len(at_wind.scale):
                    for lane in range(lanes):
                        k = here + lane
                        trial.scale[0, k] = at_wind.scale[row_of(point, at_wind.scale), begin + g, lane]
                        totals[k] /= trial.scale[0, k]
                for lane in range(lanes):
                    k = here + lane
                    density = density_at(at_wind, point, begin + g, lane)
                    _, power, made = turbine_in(
                        free[lane], turbulence_intensity[lane], density, totals[k], place.kind, kinds, model
                    )
                    total += weight[lane] * power
                    write_source(source, 0, k, made)
                for rank in range(upstream, turbines):
                    factor = stretch_at(at.stretch, point, batch.turbine[g, rank])
                    total = subtract_loss(total, solved, g, rank, place, factor, kinds, model, counted, trial)
                gain[point] += total

    return gains


def make_flow(sweep: Sweep):
    solve, add_wakes = sweep.solve, sweep.add_wakes

    def flow(places, wind, begin, end, kinds, model, at, at_wind, point_kinds, point_model, mean):
        """Add the weighted wind speed (m/s) at each point in the directions begin .. end to `mean` (points,).

        at: Places of the points, with types of `point_kinds`; at_wind: the wind there.
        point_kinds, point_model: `kinds` and `model` with further types: no rotor, and the height of the points.
        Turbines still use `kinds` and `model`, so that their results have the same bits as in `energy`.
        """
        solved = solve(places, wind, begin, end, kinds, model)
        batch, sources = solved.batch, solved.state.sources
        lanes = lanes_of(batch)
        at_scale = flat(at_wind.scale)
        found = new_pairs(1, batch.downwind.shape[1] + 1)
        totals = np.zeros(batch.speed.shape[1])
        downwind, crosswind = np.empty(len(at.x)), np.empty(len(at.x))
        for g in range(end - begin):
            here, there = g * lanes, (g + 1) * lanes
            found.direction[:] = g
            rotate(at, wind, begin + g, downwind, crosswind)
            for point in range(len(at.x)):
                place = Place(downwind[point], crosswind[point], at.kind[point], 0.0, ground_at(at.ground, point))
                ranks = ranks_upstream(batch, g, place.downwind)
                count = store_wakes(batch, g, ranks, place, at.stretch, point, False, point_kinds, point_model, found)
                totals[here:there] = 0.0
                add_wakes(found, 0, count, lanes, sources, batch.scale, totals, model, solved.scratch)
                total = 0.0
                free = at_wind.speed[row_of(point, at_wind.speed), begin + g]
                weight = at_wind.weight[row_of(point, at_wind.weight), begin + g]
                if len(at_scale):
                    for lane in range(lanes):
                        k = begin * lanes + here + lane
                        totals[here + lane] = scale_in(at_scale, totals[here + lane], point, k)
                for lane in range(lanes):
                    total += weight[lane] * effective_speed(free[lane], totals[here + lane], model.squared)
                mean[point] += total

    return flow
