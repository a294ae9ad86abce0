"""The loops: from positions to effective wind speeds and energy, and back to gradients.

A batch is a number of wind directions, each with one or more wind speeds (*lanes*). Turbines are visited by their rank
downwind, from the most upstream one on, all directions in step. The wakes that count (*pairs*) are found first, sorted
by the rank of the turbine they reach. What a few pairs depend on is gathered side by side, an *element* for each pair
and lane; `view` runs over the elements in a vector loop, `look` in a scalar one. Where a direction has several lanes
one pair at a time is gathered, where it has one many are.

`build` makes the loops for one set of formulas. They are plain Python: with compilation off they run as they stand.
Only what is marked as allocating makes arrays; the rest gets its room from there (numba counts references to arrays
wherever one may be made, which costs more than the arithmetic). Scratch arrays have rows of a constant length, so that
the compiler can tell their rows apart and does not have to check at run time whether they overlap.
"""

from typing import TYPE_CHECKING

import numpy as np

from leeward.wind.kernels.arrange import arrange
from leeward.wind.kernels.compile import allocating, formula
from leeward.wind.kernels.curves import power_and_thrust, power_and_thrust_slopes
from leeward.wind.kernels.data import (
    ELEMENTS,
    POWER_SLOPE,
    REACH_BINS,
    ROWS_OF_PAIR,
    ROWS_OF_SOURCE,
    ROWS_OF_VIEW,
    ROWS_OF_VIEW_PARTIALS,
    THRUST_SLOPE,
    Kernels,
    Slopes,
    State,
)
from leeward.wind.kernels.flow import build_flow
from leeward.wind.kernels.gains import build_gains
from leeward.wind.kernels.maps import build_points
from leeward.wind.kernels.numerics import effective_speed, effective_speed_slope
from leeward.wind.kernels.pairs import find_pairs

if TYPE_CHECKING:
    from leeward.wind.wake_models.base import Formulas


@allocating
def new_state(batch, rows):
    """Room for what is known of each turbine, direction and lane."""
    turbines = batch.downwind.shape[1]
    shape = (turbines, len(batch.speed))
    return State(
        np.zeros(shape), np.empty(shape), np.empty(shape), np.empty(shape), np.empty((turbines, rows, len(batch.speed)))
    )


@formula
def by_turbine(batch, by_rank, values):
    """Put values of shape (turbines, elements) that are sorted by rank into the order of the turbines."""
    directions, turbines = batch.downwind.shape
    lanes = lanes_of(batch)
    for rank in range(turbines):
        for g in range(directions):
            i = batch.turbine[g, rank]
            for k in range(g * lanes, (g + 1) * lanes):
                values[i, k] = by_rank[rank, k]


@formula
def along_axis(crosswind, distance):
    """Derivative of a distance from an axis with respect to the crosswind distance: 0 on the axis."""
    return crosswind / distance if distance > 0.0 else 0.0


@formula
def lanes_of(batch):
    return len(batch.speed) // len(batch.cosine)


@formula
def gather_sources(pairs, begin, end, lanes, sources, row, gathered):
    """Put four rows of the sources of the pairs begin .. end side by side, from `row` on. With lanes, of one pair."""
    into = ROWS_OF_PAIR + row
    if lanes == 1:
        for e in range(begin, end):
            k = e - begin
            i = pairs.source[e]
            g = pairs.direction[e]
            gathered[into, k] = sources[i, row, g]
            gathered[into + 1, k] = sources[i, row + 1, g]
            gathered[into + 2, k] = sources[i, row + 2, g]
            gathered[into + 3, k] = sources[i, row + 3, g]
    else:
        i = pairs.source[begin]
        at = np.uint64(pairs.direction[begin]) * np.uint64(lanes)  # without a sign, as Indices are
        for k in range(lanes):
            lane = at + np.uint64(k)
            gathered[into, k] = sources[i, row, lane]
            gathered[into + 1, k] = sources[i, row + 1, lane]
            gathered[into + 2, k] = sources[i, row + 2, lane]
            gathered[into + 3, k] = sources[i, row + 3, lane]


@formula
def gather(pairs, begin, end, lanes, sources, gathered):
    """Put what the pairs begin .. end depend on side by side: their own four numbers, then four of their sources'."""
    if lanes == 1:
        for e in range(begin, end):
            k = e - begin
            gathered[0, k] = pairs.downwind[e]
            gathered[1, k] = pairs.distance[e]
            gathered[2, k] = pairs.mirror_distance[e]
            gathered[3, k] = pairs.radius[e]
    else:
        downwind, distance = pairs.downwind[begin], pairs.distance[begin]
        mirror_distance, radius = pairs.mirror_distance[begin], pairs.radius[begin]
        for k in range(lanes):
            gathered[0, k] = downwind
            gathered[1, k] = distance
            gathered[2, k] = mirror_distance
            gathered[3, k] = radius
    gather_sources(pairs, begin, end, lanes, sources, 0, gathered)


@formula
def add_power(batch, state, mean_power):
    """Add the weighted power of each turbine to `mean_power`."""
    directions, turbines = batch.downwind.shape
    lanes = lanes_of(batch)
    for rank in range(turbines):
        for g in range(directions):
            total = 0.0
            for k in range(g * lanes, (g + 1) * lanes):
                total += batch.weight[k] * state.power[rank, k]
            mean_power[batch.turbine[g, rank]] += total


@formula
def trace_back(batch, model, counted, pairs, state, slopes, by_x, by_y):
    """From the most downstream turbines on: what a change of each speed, then of each position, does to the power.

    When a turbine's turn comes, all that its wake reaches have passed their share on to it. Its share is kept where its
    power was, which is no longer needed.
    """
    directions, turbines = batch.downwind.shape
    lanes = lanes_of(batch)
    shares = state.power
    shares[:] = 0.0
    for rank in range(turbines - 1, -1, -1):
        for g in range(directions):
            count = counted[batch.turbine[g, rank]]
            for k in range(g * lanes, (g + 1) * lanes):
                own = count * batch.weight[k] * state.sources[rank, POWER_SLOPE, k]
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


def build(formulas: "Formulas") -> Kernels:
    """The kernels for these formulas, not yet compiled."""
    source, source_slopes = formulas.source, formulas.source_slopes
    view, look = formulas.view, formulas.look
    view_partials, look_partials = formulas.view_partials, formulas.look_partials
    reach = formulas.reach

    def reaches(kinds, parameters, radii, longest, turbulence_low, turbulence_high):
        """Crosswind distance (m) that a wake reaches, squared; shape (types, radii, REACH_BINS) over 0 .. longest m."""
        squares = np.empty((len(kinds.diameter), len(radii), REACH_BINS))
        for kind in range(len(kinds.diameter)):
            for target in range(len(radii)):
                for i in range(REACH_BINS):
                    widest = 0.0
                    for end in (i, i + 1):
                        for turbulence in (turbulence_low, turbulence_high):
                            at_end = reach(
                                end * longest / REACH_BINS,
                                kinds.thrust_low[kind],
                                kinds.thrust_high[kind],
                                kinds.diameter[kind],
                                turbulence,
                                radii[target],
                                parameters,
                            )
                            widest = max(widest, at_end)
                    squares[kind, target, i] = widest * widest
        return squares

    @formula
    def add_wakes(pairs, begin, end, lanes, sources, totals, target, model, gathered, views):
        """Add the contributions of the pairs begin .. end to row `target` of `totals`."""
        p = model.parameters
        step = ELEMENTS if lanes == 1 else 1
        for start in range(begin, end, step):
            stop = min(start + step, end)
            gather(pairs, start, stop, lanes, sources, gathered)
            for k in range((stop - start) * lanes):
                views[0, k], views[1, k], views[2, k], views[3, k], views[4, k], views[5, k] = view(
                    gathered[0, k],
                    gathered[1, k],
                    gathered[2, k],
                    gathered[3, k],
                    (gathered[4, k], gathered[5, k], gathered[6, k], gathered[7, k]),
                    p,
                )
            for e in range(start, stop):
                at = np.uint64(pairs.direction[e]) * np.uint64(lanes)
                first = np.uint64(e - start) * np.uint64(lanes)
                for lane in range(lanes):
                    i = first + np.uint64(lane)
                    totals[target, at + np.uint64(lane)] += look(
                        (views[0, i], views[1, i], views[2, i], views[3, i], views[4, i], views[5, i]), p, model.table
                    )

    @formula
    def settle(batch, kinds, model, rank, state, diameters):
        """Speed, power, thrust and what the wake depends on, of all turbines of this rank, once their totals are known.

        diameters: room for one row of elements.
        """
        lanes = lanes_of(batch)
        elements = len(batch.speed)
        for k in range(elements):
            state.speeds[rank, k] = effective_speed(batch.speed[k], state.totals[rank, k], model.squared)
        for g in range(len(batch.cosine)):
            kind = batch.kind[g, rank]
            for k in range(g * lanes, (g + 1) * lanes):
                diameters[k] = kinds.diameter[kind]
                speed = state.speeds[rank, k]
                state.power[rank, k], state.thrust[rank, k] = power_and_thrust(speed, kind, kinds.curves)
        for k in range(elements):
            s0, s1, s2, s3 = source(
                state.thrust[rank, k],
                state.speeds[rank, k] / batch.speed[k],
                diameters[k],
                batch.turbulence_intensity[k],
                model.parameters,
            )
            state.sources[rank, 0, k] = s0
            state.sources[rank, 1, k] = s1
            state.sources[rank, 2, k] = s2
            state.sources[rank, 3, k] = s3

    @formula
    def propagate(batch, kinds, model, pairs, state, gathered, views, diameters):
        """Fill `state`, from the most upstream turbines on."""
        lanes = lanes_of(batch)
        for rank in range(batch.downwind.shape[1]):
            begin, end = pairs.first[rank], pairs.first[rank + 1]
            add_wakes(pairs, begin, end, lanes, state.sources, state.totals, rank, model, gathered, views)
            settle(batch, kinds, model, rank, state, diameters)

    def energy(places, wind, begin, end, kinds, model, mean_power, speeds):
        """Add the weighted power (MW) of each turbine in the directions begin .. end to `mean_power` (turbines,).

        Fill `speeds` (m/s), shape (turbines, elements), if there is any of it.
        """
        batch = arrange(places, wind, begin, end)
        pairs = find_pairs(batch, kinds, model)
        state = new_state(batch, ROWS_OF_SOURCE)
        gathered = np.empty((ROWS_OF_PAIR + ROWS_OF_SOURCE, ELEMENTS))
        views = np.empty((ROWS_OF_VIEW, ELEMENTS))
        propagate(batch, kinds, model, pairs, state, gathered, views, np.empty(ELEMENTS))
        add_power(batch, state, mean_power)
        if speeds.size:
            by_turbine(batch, state.speeds, speeds)

    @formula
    def add_wakes_and_slopes(pairs, begin, end, lanes, state, rank, model, gathered, views, slopes):
        """`add_wakes` to the turbines of this rank, and fill `slopes` for these pairs."""
        p = model.parameters
        step = ELEMENTS if lanes == 1 else 1
        for start in range(begin, end, step):
            stop = min(start + step, end)
            gather(pairs, start, stop, lanes, state.sources, gathered)
            gather_sources(pairs, start, stop, lanes, state.sources, ROWS_OF_SOURCE, gathered)
            for k in range((stop - start) * lanes):
                (
                    views[0, k],
                    views[1, k],
                    views[2, k],
                    views[3, k],
                    views[4, k],
                    views[5, k],
                    views[6, k],
                    views[7, k],
                    views[8, k],
                    views[9, k],
                    views[10, k],
                ) = view_partials(
                    gathered[0, k],
                    gathered[1, k],
                    gathered[2, k],
                    gathered[3, k],
                    (gathered[4, k], gathered[5, k], gathered[6, k], gathered[7, k]),
                    (gathered[8, k], gathered[9, k], gathered[10, k], gathered[11, k]),
                    p,
                )
            for e in range(start, stop):
                pair_distance = pairs.distance[e]
                pair_mirror_distance = pairs.mirror_distance[e]
                radius = pairs.radius[e]
                direct = along_axis(pairs.crosswind[e], pair_distance)
                image = along_axis(pairs.crosswind[e], pair_mirror_distance)
                at = np.uint64(pairs.direction[e]) * np.uint64(lanes)
                first = np.uint64(e - start) * np.uint64(lanes)
                for lane in range(lanes):
                    i = first + np.uint64(lane)
                    value, downwind, distance, mirror_distance, source_speed = look_partials(
                        (
                            views[0, i],
                            views[1, i],
                            views[2, i],
                            views[3, i],
                            views[4, i],
                            views[5, i],
                            views[6, i],
                            views[7, i],
                            views[8, i],
                            views[9, i],
                            views[10, i],
                        ),
                        pair_distance,
                        pair_mirror_distance,
                        radius,
                        p,
                        model.table,
                    )
                    state.totals[rank, at + np.uint64(lane)] += value
                    slopes.downwind[e, lane] = downwind
                    slopes.crosswind[e, lane] = distance * direct + mirror_distance * image
                    slopes.source_speed[e, lane] = source_speed

    @formula
    def settle_slopes(batch, kinds, model, rank, state, diameters):
        """What `settle` found, differentiated with respect to the effective speed."""
        lanes = lanes_of(batch)
        for g in range(len(batch.cosine)):
            kind = batch.kind[g, rank]
            for k in range(g * lanes, (g + 1) * lanes):
                state.sources[rank, POWER_SLOPE, k], state.sources[rank, THRUST_SLOPE, k] = power_and_thrust_slopes(
                    state.speeds[rank, k], kind, kinds.curves
                )
        for k in range(len(batch.speed)):
            t0, t1, t2, t3, r0, r1, r2, r3 = source_slopes(
                state.thrust[rank, k],
                state.speeds[rank, k] / batch.speed[k],
                diameters[k],
                batch.turbulence_intensity[k],
                model.parameters,
            )
            thrust_slope = state.sources[rank, THRUST_SLOPE, k]
            ratio_slope = 1.0 / batch.speed[k]
            state.sources[rank, 4, k] = t0 * thrust_slope + r0 * ratio_slope
            state.sources[rank, 5, k] = t1 * thrust_slope + r1 * ratio_slope
            state.sources[rank, 6, k] = t2 * thrust_slope + r2 * ratio_slope
            state.sources[rank, 7, k] = t3 * thrust_slope + r3 * ratio_slope

    def gradient(places, wind, begin, end, kinds, model, counted, mean_power, by_x, by_y):
        """Add the weighted power (MW) of each turbine in the directions begin .. end to `mean_power`, and to by_x, by_y
        (turbines,) the derivatives of the sum over the turbines that are `counted` (1.0 or 0.0) with respect to
        positions, MW/m.
        """
        batch = arrange(places, wind, begin, end)
        turbines = batch.downwind.shape[1]
        lanes = lanes_of(batch)
        pairs = find_pairs(batch, kinds, model)
        count = pairs.first[turbines]
        state = new_state(batch, THRUST_SLOPE + 1)
        slopes = Slopes(np.empty((count, lanes)), np.empty((count, lanes)), np.empty((count, lanes)))
        gathered = np.empty((ROWS_OF_PAIR + 2 * ROWS_OF_SOURCE, ELEMENTS))
        views = np.empty((ROWS_OF_VIEW_PARTIALS, ELEMENTS))
        diameters = np.empty(ELEMENTS)
        for rank in range(turbines):
            begin, end = pairs.first[rank], pairs.first[rank + 1]
            add_wakes_and_slopes(pairs, begin, end, lanes, state, rank, model, gathered, views, slopes)
            settle(batch, kinds, model, rank, state, diameters)
            settle_slopes(batch, kinds, model, rank, state, diameters)
        add_power(batch, state, mean_power)
        trace_back(batch, model, counted, pairs, state, slopes, by_x, by_y)

    worth, gains = build_gains(add_wakes, source, propagate, new_state)
    flow = build_flow(add_wakes, propagate, new_state)
    return Kernels(reaches, energy, gradient, build_points(add_wakes, source), worth, gains, flow)
