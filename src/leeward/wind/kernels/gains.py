"""The loss of a farm without each of its turbines, and its gain from one more at many points.

Unlike maps of yield, these count the losses of turbines in the wake. The thrust of the other turbines is held constant:
good to a few per cent of the gain, and enough to choose by.
"""

from typing import NamedTuple

import numpy as np

from leeward.wind.kernels.arrange import turn
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.curves import power_and_thrust
from leeward.wind.kernels.data import Floats, Pairs, Place
from leeward.wind.kernels.numerics import effective_speed
from leeward.wind.kernels.pairs import note_pair, note_wakes, room_for_pairs
from leeward.wind.kernels.sweep import Sweep, lanes_of


class Trial(NamedTuple):
    """Scratch arrays for a new turbine.

    found: the wakes that reach it, later its own wake; totals: of the contributions, shape (1, elements); source: of
    its own wake, shape (1, rows, elements).
    """

    found: Pairs
    totals: Floats
    source: Floats


@formula
def power_in(batch, kinds, model, g, kind, totals):
    """Return the weighted power (MW) in direction `g` of a turbine with these totals, shape (1, elements)."""
    lanes = lanes_of(batch)
    power = 0.0
    for k in range(g * lanes, (g + 1) * lanes):
        speed = effective_speed(batch.speed[k], max(totals[0, k], 0.0), model.squared)
        power += batch.weight[k] * power_and_thrust(speed, kind, kinds.curves)[0]
    return power


def make_marginal(sweep: Sweep):
    solve, add_wakes = sweep.solve, sweep.add_wakes

    def marginal(places, wind, begin, end, kinds, model, counted, gain):
        """Add to `gain` (turbines,) the loss (MW) of the counted turbines without each turbine."""
        solved = solve(places, wind, begin, end, kinds, model)
        batch, pairs, state = solved.batch, solved.pairs, solved.state
        lanes = wind.speed.shape[1]
        totals = np.zeros((1, len(batch.speed)))
        for rank in range(batch.downwind.shape[1]):
            for g in range(end - begin):
                i = batch.turbine[g, rank]
                for k in range(g * lanes, (g + 1) * lanes):
                    gain[i] += counted[i] * batch.weight[k] * state.power[rank, k]
            for e in range(pairs.first[rank], pairs.first[rank + 1]):
                g = pairs.direction[e]
                here, there = g * lanes, (g + 1) * lanes
                i = batch.turbine[g, rank]
                totals[0, here:there] = 0.0
                add_wakes(pairs, e, e + 1, lanes, state.sources, totals, 0, model, solved.scratch)
                taken = 0.0
                for k in range(here, there):
                    totals[0, k] = state.totals[rank, k] - totals[0, k]
                    taken -= batch.weight[k] * state.power[rank, k]
                taken += power_in(batch, kinds, model, g, batch.kind[g, rank], totals)
                gain[batch.turbine[g, pairs.source[e]]] -= counted[i] * taken

    return marginal


def make_own_power(sweep: Sweep):
    source, write_source = sweep.source, sweep.source_rows.write_turbine

    @formula
    def own_power(batch, kinds, model, g, kind, trial):
        """Return the weighted power (MW) of the new turbine in direction `g`, and fill its source."""
        lanes = lanes_of(batch)
        total = 0.0
        for k in range(g * lanes, (g + 1) * lanes):
            speed = effective_speed(batch.speed[k], trial.totals[0, k], model.squared)
            power, thrust = power_and_thrust(speed, kind, kinds.curves)
            total += batch.weight[k] * power
            made = source(
                thrust,
                speed / batch.speed[k],
                kinds.diameter[kind],
                batch.turbulence_intensity[k],
                model.parameters,
            )
            write_source(trial.source, 0, 0, k, made)
        return total

    return own_power


def make_less_taken(sweep: Sweep):
    add_wakes = sweep.add_wakes

    @formula
    def less_taken(total, solved, g, rank, place, kinds, model, counted, trial):
        """Return `total` less the power (MW) that a turbine at `place` costs the turbine of this rank, if it counts."""
        batch, state, totals = solved.batch, solved.state, trial.totals
        kind = batch.kind[g, rank]
        lanes = lanes_of(batch)
        reached = note_pair(
            batch.downwind[g, rank] - place.downwind,
            batch.crosswind[g, rank] - place.crosswind,
            place.kind,
            kind,
            0,
            1.0,
            kinds,
            model,
            trial.found,
            0,
        )
        if reached == 1 and counted[batch.turbine[g, rank]] > 0.0:
            for k in range(g * lanes, (g + 1) * lanes):
                totals[0, k] = state.totals[rank, k]
                total -= batch.weight[k] * state.power[rank, k]
            add_wakes(trial.found, 0, 1, lanes, trial.source, totals, 0, model, solved.scratch)
            total += power_in(batch, kinds, model, g, kind, totals)
        return total

    return less_taken


def make_gains(sweep: Sweep):
    solve, add_wakes, source_count = sweep.solve, sweep.add_wakes, sweep.source_rows.size
    own_power, less_taken = make_own_power(sweep), make_less_taken(sweep)

    def gains(places, wind, begin, end, kinds, model, counted, at, gain):
        """Add to `gain` (points,) the yield (MW) of one more turbine, less the losses of the counted ones."""
        solved = solve(places, wind, begin, end, kinds, model)
        batch = solved.batch
        lanes = wind.speed.shape[1]
        turbines = batch.downwind.shape[1]
        found = room_for_pairs(1, turbines + 1)
        totals = np.zeros((1, len(batch.speed)))
        trial = Trial(found, totals, np.empty((1, source_count, len(batch.speed))))
        downwind, crosswind = np.empty(len(at.x)), np.empty(len(at.x))
        for g in range(end - begin):
            found.direction[:] = g
            turn(at, wind, begin + g, downwind, crosswind)
            for point in range(len(at.x)):
                place = Place(downwind[point], crosswind[point], at.kind[point], 1.0)
                upstream = 0
                while upstream < turbines and batch.downwind[g, upstream] <= place.downwind:
                    upstream += 1
                count = note_wakes(batch, g, upstream, place, False, kinds, model, found)
                totals[0, g * lanes : (g + 1) * lanes] = 0.0
                add_wakes(found, 0, count, lanes, solved.state.sources, totals, 0, model, solved.scratch)
                total = own_power(batch, kinds, model, g, place.kind, trial)
                for rank in range(upstream, turbines):
                    total = less_taken(total, solved, g, rank, place, kinds, model, counted, trial)
                gain[point] += total

    return gains
