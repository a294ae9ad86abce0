"""The gradient: the loops of `sweep` with derivatives, then reverse mode from power to positions."""

import numpy as np

from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.data import ELEMENTS, Slopes
from leeward.wind.kernels.formulas import Formulas, Rotor, result_type
from leeward.wind.kernels.numerics import effective_speed_slope, power_and_thrust_slopes
from leeward.wind.kernels.pairs import arrange, find_pairs
from leeward.wind.kernels.rows import tuple_rows
from leeward.wind.kernels.sweep import (
    SOURCE,
    Sweep,
    add_power,
    gather_rotors,
    lanes_of,
    make_new_scratch,
    new_state,
    read_rotor,
)


def make_gradient(formulas: Formulas, sweep: Sweep):
    wake_rows = tuple_rows(result_type(formulas.wake_slopes))
    source_count = sweep.source_rows.size
    new_scratch = make_new_scratch(2 * source_count, wake_rows.size)
    add_wakes_and_slopes = make_add_wakes_and_slopes(formulas, sweep, wake_rows)
    compute_rank, compute_slopes = sweep.compute_rank, make_compute_slopes(formulas, sweep.source_rows)

    def gradient(places, wind, begin, end, kinds, model, counted, mean_power, by_x, by_y):
        """Add the weighted power (MW) of each turbine in the directions begin .. end to `mean_power` (turbines,).

        Add the derivatives of its sum over the `counted` turbines (1.0 or 0.0) to by_x and by_y (turbines,), MW/m.
        """
        batch = arrange(places, wind, begin, end)
        turbines = batch.downwind.shape[1]
        lanes = lanes_of(batch)
        pairs = find_pairs(batch, kinds, model)
        state = new_state(batch, 2 * source_count)
        of_pairs, of_turbines = (pairs.first[turbines], lanes), state.power.shape
        slopes = Slopes(
            np.empty(of_pairs), np.empty(of_pairs), np.empty(of_pairs), np.empty(of_turbines), np.empty(of_turbines)
        )
        scratch = new_scratch()
        for rank in range(turbines):
            first, last = pairs.first[rank], pairs.first[rank + 1]
            add_wakes_and_slopes(pairs, first, last, lanes, state, rank, model, scratch, slopes)
            compute_rank(batch, kinds, model, rank, state, scratch.diameters)
            compute_slopes(batch, kinds, model, rank, state, scratch.diameters, slopes)
        add_power(batch, state, mean_power)
        propagate_back(batch, model, counted, pairs, state, slopes, by_x, by_y)

    return gradient


def make_add_wakes_and_slopes(formulas, sweep, wake_rows):
    wake_slopes, contribution_slopes, gather = formulas.wake_slopes, formulas.contribution_slopes, sweep.gather
    read_source, source_count = sweep.source_rows.read, sweep.source_rows.size
    read_wake, write_wake = wake_rows.read, wake_rows.write

    @formula
    def add_wakes_and_slopes(pairs, begin, end, lanes, state, rank, model, scratch, slopes):
        """Add contributions, as `add_wakes` does, to the turbines of this rank, and fill `slopes` for these pairs."""
        p = model.parameters
        gathered, wakes = scratch.gathered, scratch.wakes
        step = ELEMENTS if lanes == 1 else 1
        for start in range(begin, end, step):
            stop = min(start + step, end)
            gather_rotors(pairs, start, stop, lanes, gathered)
            gather(pairs, start, stop, lanes, state.sources, 0, gathered)
            gather(pairs, start, stop, lanes, state.sources, source_count, gathered)
            for k in range((stop - start) * lanes):
                rotor, source = read_rotor(gathered, 0, k), read_source(gathered, SOURCE, k)
                by_speed = read_source(gathered, SOURCE + source_count, k)
                write_wake(wakes, 0, k, wake_slopes(rotor, source, by_speed, p))
            for e in range(start, stop):
                rotor = Rotor(pairs.downwind[e], pairs.distance[e], pairs.mirror_distance[e], pairs.radius[e])
                direct = along_axis(pairs.crosswind[e], rotor.distance)
                image = along_axis(pairs.crosswind[e], rotor.mirror_distance)
                at = np.uint64(pairs.direction[e]) * np.uint64(lanes)
                first = np.uint64(e - start) * np.uint64(lanes)
                for lane in range(lanes):
                    wake = read_wake(wakes, 0, first + np.uint64(lane))
                    found = contribution_slopes(wake, rotor, p, model.table)
                    state.totals[rank, at + np.uint64(lane)] += found.value
                    slopes.downwind[e, lane] = found.by_downwind
                    slopes.crosswind[e, lane] = found.by_distance * direct + found.by_mirror_distance * image
                    slopes.source_speed[e, lane] = found.by_source_speed

    return add_wakes_and_slopes


@formula
def along_axis(crosswind, distance):
    """Return the derivative of the distance from an axis with respect to the crosswind distance; 0 on the axis."""
    return crosswind / distance if distance > 0.0 else 0.0


def make_compute_slopes(formulas, source_rows):
    source_slopes, source_count = formulas.source_slopes, source_rows.size
    write_source, weighted_sum = source_rows.write, source_rows.weighted_sum

    @formula
    def compute_slopes(batch, kinds, model, rank, state, diameters, slopes):
        """Fill in the derivatives of the results of `compute_rank` with respect to the effective speed."""
        lanes = lanes_of(batch)
        for g in range(len(batch.cosine)):
            kind = batch.kind[g, rank]
            for k in range(g * lanes, (g + 1) * lanes):
                slopes.power[rank, k], slopes.thrust[rank, k] = power_and_thrust_slopes(
                    state.speeds[rank, k], kind, kinds.curves
                )
        sources = state.sources[rank]
        for k in range(len(batch.speed)):
            by_thrust, by_ratio = source_slopes(
                state.thrust[rank, k],
                state.speeds[rank, k] / batch.speed[k],
                diameters[k],
                batch.turbulence_intensity[k],
                model.parameters,
            )
            by_speed = weighted_sum(by_thrust, slopes.thrust[rank, k], by_ratio, 1.0 / batch.speed[k])
            write_source(sources, source_count, k, by_speed)

    return compute_slopes


@formula
def propagate_back(batch, model, counted, pairs, state, slopes, by_x, by_y):
    """Add the derivatives of the power with respect to positions (reverse mode).

    The loop goes upstream, so that all turbines in the wake of a turbine have added to its share before it is used. The
    shares overwrite the power, which is no longer needed.
    """
    directions, turbines = batch.downwind.shape
    lanes = lanes_of(batch)
    shares = state.power
    shares[:] = 0.0
    for rank in range(turbines - 1, -1, -1):
        for g in range(directions):
            count = counted[batch.turbine[g, rank]]
            for k in range(g * lanes, (g + 1) * lanes):
                own = count * batch.weight[k] * slopes.power[rank, k]
                shares[rank, k] = (shares[rank, k] + own) * effective_speed_slope(
                    batch.speed[k], state.totals[rank, k], model.squared
                )
        for e in range(pairs.first[rank], pairs.first[rank + 1]):
            upstream = pairs.source[e]
            g = pairs.direction[e]
            downwind = 0.0
            crosswind = 0.0
            at = np.uint64(g) * np.uint64(lanes)
            for lane in range(lanes):
                element = at + np.uint64(lane)
                share = shares[rank, element]
                downwind += share * slopes.downwind[e, lane]
                crosswind += share * slopes.crosswind[e, lane]
                shares[upstream, element] += share * slopes.source_speed[e, lane]
            x = crosswind * batch.sine[g] - downwind * batch.cosine[g]
            y = -crosswind * batch.cosine[g] - downwind * batch.sine[g]
            by_x[batch.turbine[g, rank]] += x
            by_y[batch.turbine[g, rank]] += y
            by_x[batch.turbine[g, upstream]] -= x
            by_y[batch.turbine[g, upstream]] -= y
