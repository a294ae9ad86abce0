"""The gradient: the loops of `sweep` with derivatives, then reverse mode from power to positions and free wind."""

import numpy as np

from leeward.wind.kernels.compile import allocating, formula
from leeward.wind.kernels.data import ELEMENTS, Slopes
from leeward.wind.kernels.formulas import Formulas, Rotor, result_type
from leeward.wind.kernels.numerics import effective_speed_slope, power_and_thrust_slopes
from leeward.wind.kernels.pairs import arrange, find_pairs, heights_of_pair, row_of
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

# the rows of sources in `State`, in units of the fields of a source: values, then derivatives
BY_SPEED, BY_FREE_SPEED, BY_TURBULENCE, BY_DENSITY = 1, 2, 3, 4


def make_gradient(formulas: Formulas, sweep: Sweep):
    wake_rows = tuple_rows(result_type(formulas.wake_slopes))
    source_count = sweep.source_rows.size
    new_scratch = make_new_scratch(2 * source_count, wake_rows.size)
    add_wakes_and_slopes = make_add_wakes_and_slopes(formulas, sweep, wake_rows)
    compute_rank, compute_slopes = sweep.compute_rank, make_compute_slopes(formulas, sweep.source_rows)

    def gradient(places, wind, begin, end, kinds, model, counted, mean_power, by_x, by_y, adjoints):
        """Add the weighted power (MW) of each turbine in the directions begin .. end to `mean_power` (turbines,).

        Add the derivatives of its sum over the `counted` turbines (1.0 or 0.0) to by_x and by_y (turbines,), MW/m: in
        a free wind that stays as it is at each turbine. Fill in `adjoints`, the derivatives with respect to that wind.
        """
        batch = arrange(places, wind, begin, end)
        turbines = batch.downwind.shape[1]
        lanes = lanes_of(batch)
        pairs = find_pairs(batch, kinds, model)
        state = new_state(batch, (1 + BY_DENSITY if adjoints.weight.size else 1 + BY_SPEED) * source_count)
        slopes = new_slopes(state, pairs.first[turbines], lanes, batch, model, adjoints)
        scratch = new_scratch()
        for rank in range(turbines):
            first, last = pairs.first[rank], pairs.first[rank + 1]
            add_wakes_and_slopes(batch, pairs, first, last, state, rank, kinds, model, scratch, slopes)
            compute_rank(batch, kinds, model, rank, state, scratch.spare)
            compute_slopes(batch, kinds, model, rank, state, scratch.spare, slopes)
        add_power(batch, state, mean_power)
        propagate_back(batch, model, counted, pairs, state, slopes, by_x, by_y, adjoints)

    return gradient


@allocating
def new_slopes(state, pairs, lanes, batch, model, adjoints):
    """Allocate the derivatives of so many pairs; those that `adjoints` does not need have no pairs."""
    of_turbines = state.power.shape
    has_speed = len(batch.scale) > 0 or (adjoints.speed.size > 0 and model.uses_ratio)
    return Slopes(
        np.empty((pairs, lanes)),
        np.empty((pairs, lanes)),
        np.empty((pairs, lanes)),
        np.empty(of_turbines),
        np.empty(of_turbines),
        np.zeros((pairs if has_speed else 0, lanes)),
        np.zeros((pairs if adjoints.turbulence.size else 0, lanes)),
        np.zeros((pairs if adjoints.density.size else 0, lanes)),
        np.zeros((pairs if len(adjoints.ground) else 0, lanes)),
    )


def make_add_wakes_and_slopes(formulas, sweep, wake_rows):
    wake_slopes, contribution_slopes, gather = formulas.wake_slopes, formulas.contribution_slopes, sweep.gather
    read_source, source_count = sweep.source_rows.read, sweep.source_rows.size
    read_wake, write_wake = wake_rows.read, wake_rows.write

    @formula
    def compute_wakes(gathered, wakes, count, p):
        """Compute wakes and their derivatives from the gathered rotors and sources."""
        for k in range(count):
            rotor, source = read_rotor(gathered, 0, k), read_source(gathered, SOURCE, k)
            by_speed = read_source(gathered, SOURCE + source_count, k)
            write_wake(wakes, 0, k, wake_slopes(rotor, source, by_speed, p))

    @formula
    def add_source_slopes(batch, pairs, start, stop, state, rank, rows, model, scratch, found):
        """Add to `found` (pairs, lanes) the derivatives along the derivatives of the sources in these rows."""
        gathered, wakes, p = scratch.gathered, scratch.wakes, model.parameters
        lanes = lanes_of(batch)
        gather(pairs, start, stop, lanes, state.sources, rows * source_count, gathered, SOURCE + source_count)
        compute_wakes(gathered, wakes, (stop - start) * lanes, p)
        for e in range(start, stop):
            rotor = Rotor(pairs.downwind[e], pairs.distance[e], pairs.mirror_distance[e], pairs.radius[e])
            for lane in range(lanes):
                wake = read_wake(wakes, 0, (e - start) * lanes + lane)
                ratio = scale_ratio(batch, pairs.source[e], rank, pairs.direction[e] * lanes + lane)
                found[e, lane] += contribution_slopes(wake, rotor, p, model.table).by_source_speed * ratio

    @formula
    def add_height_slopes(batch, pairs, start, stop, rank, kinds, model, scratch, slopes):
        """Fill in the derivatives with respect to the height of the target above the source, from computed wakes."""
        lanes = lanes_of(batch)
        for e in range(start, stop):
            rotor = Rotor(pairs.downwind[e], pairs.distance[e], pairs.mirror_distance[e], pairs.radius[e])
            above, above_image = heights_of_pair(batch, kinds, pairs.direction[e], rank, pairs.source[e])
            direct, image = along_axis(above, rotor.distance), along_axis(above_image, rotor.mirror_distance)
            for lane in range(lanes):
                wake = read_wake(scratch.wakes, 0, (e - start) * lanes + lane)
                found = contribution_slopes(wake, rotor, model.parameters, model.table)
                slopes.height[e, lane] = found.by_distance * direct + found.by_mirror_distance * image

    @formula
    def add_wakes_and_slopes(batch, pairs, begin, end, state, rank, kinds, model, scratch, slopes):
        """Add contributions, as `add_wakes` does, to the turbines of this rank, and fill `slopes` for these pairs."""
        p = model.parameters
        gathered, wakes = scratch.gathered, scratch.wakes
        lanes = lanes_of(batch)
        step = ELEMENTS if lanes == 1 else 1
        for start in range(begin, end, step):
            stop = min(start + step, end)
            gather_rotors(pairs, start, stop, lanes, gathered)
            gather(pairs, start, stop, lanes, state.sources, 0, gathered, SOURCE)
            gather(pairs, start, stop, lanes, state.sources, source_count, gathered, SOURCE + source_count)
            compute_wakes(gathered, wakes, (stop - start) * lanes, p)
            for e in range(start, stop):
                rotor = Rotor(pairs.downwind[e], pairs.distance[e], pairs.mirror_distance[e], pairs.radius[e])
                direct = along_axis(pairs.crosswind[e], rotor.distance)
                image = along_axis(pairs.crosswind[e], rotor.mirror_distance)
                at = np.uint64(pairs.direction[e]) * np.uint64(lanes)
                first = np.uint64(e - start) * np.uint64(lanes)
                if len(batch.scale):
                    for lane in range(lanes):
                        wake = read_wake(wakes, 0, first + np.uint64(lane))
                        found = contribution_slopes(wake, rotor, p, model.table)
                        slopes.downwind[e, lane] = found.by_downwind
                        slopes.crosswind[e, lane] = found.by_distance * direct + found.by_mirror_distance * image
                        slopes.source_speed[e, lane] = found.by_source_speed
                        slopes.free_speed[e, lane] = found.value
                else:  # a loop without branches: the compiler fuses the same operations in any other loop of this kind
                    for lane in range(lanes):
                        wake = read_wake(wakes, 0, first + np.uint64(lane))
                        found = contribution_slopes(wake, rotor, p, model.table)
                        state.totals[rank, at + np.uint64(lane)] += found.value
                        slopes.downwind[e, lane] = found.by_downwind
                        slopes.crosswind[e, lane] = found.by_distance * direct + found.by_mirror_distance * image
                        slopes.source_speed[e, lane] = found.by_source_speed
            if len(slopes.height):
                add_height_slopes(batch, pairs, start, stop, rank, kinds, model, scratch, slopes)
            if len(batch.scale):
                apply_scale(batch, pairs, start, stop, state, rank, model, slopes)
            if model.uses_ratio and len(slopes.free_speed):
                rows = BY_FREE_SPEED
                add_source_slopes(batch, pairs, start, stop, state, rank, rows, model, scratch, slopes.free_speed)
            if len(slopes.turbulence):
                rows = BY_TURBULENCE
                add_source_slopes(batch, pairs, start, stop, state, rank, rows, model, scratch, slopes.turbulence)
            if len(slopes.density):
                rows = BY_DENSITY
                add_source_slopes(batch, pairs, start, stop, state, rank, rows, model, scratch, slopes.density)

    return add_wakes_and_slopes


@formula
def scale_ratio(batch, source, rank, element):
    """Return the factor from contributions relative to the free speed at the source to those at the turbine `rank`."""
    if len(batch.scale) == 0:
        return 1.0
    scale = batch.scale
    return scale[row_of(source, scale), element] / scale[row_of(rank, scale), element]


@formula
def apply_scale(batch, pairs, begin, end, state, rank, model, slopes):
    """Scale the derivatives of these pairs, and add their contributions, which are in `slopes.free_speed`."""
    lanes = lanes_of(batch)
    exponent = 2.0 if model.squared else 1.0
    for e in range(begin, end):
        free = batch.speed[row_of(pairs.source[e], batch.speed)]
        for lane in range(lanes):
            element = pairs.direction[e] * lanes + lane
            ratio = scale_ratio(batch, pairs.source[e], rank, element)
            value = slopes.free_speed[e, lane] * ratio
            state.totals[rank, element] += value
            slopes.downwind[e, lane] *= ratio
            slopes.crosswind[e, lane] *= ratio
            slopes.source_speed[e, lane] *= ratio
            if len(slopes.height):
                slopes.height[e, lane] *= ratio
            slopes.free_speed[e, lane] = exponent * value / free[element]


@formula
def along_axis(crosswind, distance):
    """Return the derivative of the distance from an axis with respect to the crosswind distance; 0 on the axis."""
    return crosswind / distance if distance > 0.0 else 0.0


def make_compute_slopes(formulas, source_rows):
    source_slopes, turbulence_slopes = formulas.source_slopes, formulas.turbulence_slopes
    source_count = source_rows.size
    write_source, weighted_sum = source_rows.write, source_rows.weighted_sum

    @formula
    def compute_slopes(batch, kinds, model, rank, state, diameters, slopes):
        """Fill in the derivatives of the results of `compute_rank` with respect to the effective speed.

        Fill in the derivatives of the sources with respect to the free wind, if `slopes` has room for them.
        """
        lanes = lanes_of(batch)
        elements = batch.speed.shape[1]
        free = batch.speed[row_of(rank, batch.speed)]
        turbulence_intensity = batch.turbulence_intensity[row_of(rank, batch.turbulence_intensity)]
        for g in range(len(batch.cosine)):
            kind = batch.kind[g, rank]
            for k in range(g * lanes, (g + 1) * lanes):
                slopes.power[rank, k], slopes.thrust[rank, k] = power_and_thrust_slopes(
                    state.speeds[rank, k], kind, kinds.curves
                )
        if len(batch.density):
            density = batch.density[row_of(rank, batch.density)]
            for k in range(elements):
                slopes.power[rank, k] *= density[k]
                slopes.thrust[rank, k] *= density[k]
        sources = state.sources[rank]
        for k in range(elements):
            by_thrust, by_ratio = source_slopes(
                state.thrust[rank, k],
                state.speeds[rank, k] / free[k],
                diameters[k],
                turbulence_intensity[k],
                model.parameters,
            )
            by_speed = weighted_sum(by_thrust, slopes.thrust[rank, k], by_ratio, 1.0 / free[k])
            write_source(sources, source_count, k, by_speed)
        if len(slopes.free_speed) or len(slopes.density) or len(slopes.turbulence):
            compute_local_slopes(batch, model, rank, state, diameters, slopes)

    @formula
    def compute_local_slopes(batch, model, rank, state, diameters, slopes):
        """Fill in the derivatives of the sources with respect to free speed, turbulence intensity and air density."""
        free = batch.speed[row_of(rank, batch.speed)]
        turbulence_intensity = batch.turbulence_intensity[row_of(rank, batch.turbulence_intensity)]
        sources = state.sources[rank]
        for k in range(batch.speed.shape[1]):
            thrust, ratio, p = state.thrust[rank, k], state.speeds[rank, k] / free[k], model.parameters
            by_thrust, by_ratio = source_slopes(thrust, ratio, diameters[k], turbulence_intensity[k], p)
            by_free = weighted_sum(by_ratio, -ratio / free[k], by_ratio, 0.0)
            write_source(sources, BY_FREE_SPEED * source_count, k, by_free)
            by_turbulence = turbulence_slopes(thrust, ratio, diameters[k], turbulence_intensity[k], p)
            write_source(sources, BY_TURBULENCE * source_count, k, by_turbulence)
            if len(batch.density):
                per_density = thrust / batch.density[row_of(rank, batch.density), k]
                write_source(
                    sources, BY_DENSITY * source_count, k, weighted_sum(by_thrust, per_density, by_thrust, 0.0)
                )

    return compute_slopes


@formula
def propagate_back(batch, model, counted, pairs, state, slopes, by_x, by_y, adjoints):
    """Add the derivatives of the power with respect to positions and to the free wind (reverse mode).

    The loop goes upstream, so that all turbines in the wake of a turbine have added to its share before it is used. The
    shares overwrite the power, which is no longer needed.
    """
    directions, turbines = batch.downwind.shape
    lanes = lanes_of(batch)
    if adjoints.weight.size:
        start_adjoints(batch, counted, state, adjoints)
    shares = state.power
    shares[:] = 0.0
    for rank in range(turbines - 1, -1, -1):
        weight, free = batch.weight[row_of(rank, batch.weight)], batch.speed[row_of(rank, batch.speed)]
        for g in range(directions):
            i = batch.turbine[g, rank]
            count = counted[i]
            if adjoints.speed.size:
                for k in range(g * lanes, (g + 1) * lanes):
                    own = shares[rank, k] + count * weight[k] * slopes.power[rank, k]
                    # of the effective speed: deficits are either speeds, or relative to the free speed
                    adjoints.speed[i, k] += own * (1.0 if len(batch.scale) else state.speeds[rank, k] / free[k])
            for k in range(g * lanes, (g + 1) * lanes):
                own = count * weight[k] * slopes.power[rank, k]
                shares[rank, k] = (shares[rank, k] + own) * effective_speed_slope(
                    free[k], state.totals[rank, k], model.squared
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
            if len(batch.stretch):
                here, there = batch.turbine[g, rank], batch.turbine[g, upstream]
                stretch = batch.stretch[here, there]
                adjoints.stretch[here, there] += downwind * pairs.downwind[e] / stretch
                downwind *= stretch
            x = crosswind * batch.sine[g] - downwind * batch.cosine[g]
            y = -crosswind * batch.cosine[g] - downwind * batch.sine[g]
            by_x[batch.turbine[g, rank]] += x
            by_y[batch.turbine[g, rank]] += y
            by_x[batch.turbine[g, upstream]] -= x
            by_y[batch.turbine[g, upstream]] -= y
            if adjoints.weight.size:
                add_adjoints(batch.turbine[g, upstream], g * lanes, lanes, e, shares[rank], slopes, adjoints)
                for lane in range(lanes if len(slopes.height) else 0):
                    by_height = shares[rank, at + np.uint64(lane)] * slopes.height[e, lane]
                    adjoints.ground[batch.turbine[g, rank]] += by_height
                    adjoints.ground[batch.turbine[g, upstream]] -= by_height


@formula
def start_adjoints(batch, counted, state, adjoints):
    """Fill in the derivatives with respect to weights, and those of the turbines' own power to the air density."""
    directions, turbines = batch.downwind.shape
    lanes = lanes_of(batch)
    for rank in range(turbines):
        for g in range(directions):
            i = batch.turbine[g, rank]
            for k in range(g * lanes, (g + 1) * lanes):
                power = counted[i] * state.power[rank, k]
                adjoints.weight[i, k] = power
                if adjoints.density.size:
                    weight = batch.weight[row_of(rank, batch.weight), k]
                    adjoints.density[i, k] = weight * power / batch.density[row_of(rank, batch.density), k]


@formula
def add_adjoints(source, at, lanes, e, shares, slopes, adjoints):
    """Add the effect of a pair on the adjoints of its source, the turbine with this index, from element `at` on."""
    for lane in range(lanes):
        share = shares[at + lane]
        if len(slopes.free_speed):
            adjoints.speed[source, at + lane] += share * slopes.free_speed[e, lane]
        if len(slopes.turbulence):
            adjoints.turbulence[source, at + lane] += share * slopes.turbulence[e, lane]
        if len(slopes.density):
            adjoints.density[source, at + lane] += share * slopes.density[e, lane]
