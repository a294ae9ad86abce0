"""The loops: from positions to effective wind speeds and energy, and back to gradients.

A batch is a number of wind directions, each with one or more wind speeds (*lanes*). Turbines are visited from the most
upstream one on, all directions in step; a *slot* is a turbine in a direction, numbered by its rank downwind. The wakes
that count (*pairs* of slots) are found first, sorted by the rank of the turbine they reach, so that all of one rank
can be evaluated together: `view` in a vector loop, over the lanes where a direction has several and over the pairs
where it has one, then `look` in a scalar loop. An *element* is a pair and a lane.

`build` makes the loops for one set of formulas. They are plain Python: with compilation off they run as they stand.
Only the kernels themselves allocate arrays; what they call gets its room from them (numba counts references to
arrays wherever one may be allocated, which costs more than the arithmetic).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from leeward.wind.kernels.compile import allocating, formula
from leeward.wind.kernels.curves import power_and_thrust, power_and_thrust_slopes
from leeward.wind.kernels.data import REACH_BINS, Pairs, Slopes, State
from leeward.wind.wake_models.base import Formulas

ELEMENTS = 512  # at a time: enough for long vector loops, few enough to stay in the nearest cache
SAME_PLACE = 1e-10  # m: a point this little upstream of a turbine counts as in its plane, as in PyWake
ROWS_OF_PAIR = 4
ROWS_OF_SOURCE = 4
ROWS_OF_VIEW = 6
ROWS_OF_VIEW_PARTIALS = 11
POWER_SLOPE = 2 * ROWS_OF_SOURCE
THRUST_SLOPE = 2 * ROWS_OF_SOURCE + 1


class Loops(NamedTuple):
    """The kernels of one wake model, not yet compiled."""

    reaches: Callable[..., Any]
    energy: Callable[..., Any]
    gradient: Callable[..., Any]
    points: Callable[..., Any]


@formula
def find_windows(batch, widest, window):
    """Where the turbines stand in order of crosswind that are less than `widest` away: window[0] .. window[1] - 1.

    window: shape (2, directions, turbines).
    """
    directions, turbines = batch.downwind.shape
    for g in range(directions):
        begin = 0
        end = 0
        for position in range(turbines):
            rank = batch.lateral[g, position]
            own = batch.crosswind[g, rank]
            while begin < position and own - batch.crosswind[g, batch.lateral[g, begin]] >= widest:
                begin += 1
            while end < turbines and batch.crosswind[g, batch.lateral[g, end]] - own < widest:
                end += 1
            window[0, g, rank] = begin
            window[1, g, rank] = end


@formula
def mark_pairs(batch, model, window, pairs):
    """Number of wakes that count; fill in which and how far off; -1 if they are more than `pairs` has room for."""
    directions, turbines = batch.downwind.shape
    per_metre = REACH_BINS / model.longest
    count = 0
    for rank in range(turbines):
        for g in range(directions):
            if count + turbines > len(pairs.source):
                return -1
            kind = batch.kind[g, rank]
            own_downwind = batch.downwind[g, rank]
            own_crosswind = batch.crosswind[g, rank]
            for position in range(window[0, g, rank], window[1, g, rank]):
                upstream = batch.lateral[g, position]
                downwind = own_downwind - batch.downwind[g, upstream]
                crosswind = own_crosswind - batch.crosswind[g, upstream]
                along = min(max(int(downwind * per_metre), 0), REACH_BINS - 1)
                pairs.direction[count] = g
                pairs.source[count] = g * turbines + upstream
                pairs.target[count] = g * turbines + rank
                pairs.downwind[count] = downwind
                pairs.crosswind[count] = crosswind
                # no branch: a pair that does not count is overwritten by the next
                reached = crosswind * crosswind < model.reaches[batch.kind[g, upstream], kind, along]
                count += (upstream < rank) & reached
        pairs.first[rank + 1] = count
    return count


@formula
def measure_pairs(kind_of_slot, kinds, pairs):
    """Fill in the distances from the axes, and the radius of the target."""
    for e in range(len(pairs.source)):
        kind = kind_of_slot[pairs.target[e]]
        height = kinds.hub_height[kind]
        source_height = kinds.hub_height[kind_of_slot[pairs.source[e]]]
        away = pairs.crosswind[e] * pairs.crosswind[e]
        pairs.distance[e] = math.sqrt(away + (height - source_height) ** 2)
        pairs.mirror_distance[e] = math.sqrt(away + (height + source_height) ** 2)
        pairs.radius[e] = 0.5 * kinds.diameter[kind]


@allocating
def room_for_pairs(turbines, room):
    return Pairs(
        np.zeros(turbines + 1, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty(room),
    )


@allocating
def find_pairs(batch, kinds, model):
    """The wakes that count."""
    directions, turbines = batch.downwind.shape
    window = np.empty((2, directions, turbines), dtype=np.int64)
    find_windows(batch, model.widest, window)
    room = 4 * directions * turbines + turbines
    pairs = room_for_pairs(turbines, room)
    count = mark_pairs(batch, model, window, pairs)
    while count < 0:
        room *= 2
        pairs = room_for_pairs(turbines, room)
        count = mark_pairs(batch, model, window, pairs)
    pairs = Pairs(
        pairs.first,
        pairs.direction[:count],
        pairs.source[:count],
        pairs.target[:count],
        pairs.downwind[:count],
        pairs.crosswind[:count],
        pairs.distance[:count],
        pairs.mirror_distance[:count],
        pairs.radius[:count],
    )
    measure_pairs(batch.kind.ravel(), kinds, pairs)
    return pairs


@formula
def wakes_at(batch, kinds, model, g, downwind, crosswind, kind, rotor, found):
    """Number of wakes that reach a point in direction `g`, and fill `found` with them."""
    turbines = batch.downwind.shape[1]
    height = kinds.hub_height[kind]
    count = 0
    for upstream in range(turbines):
        behind = downwind - batch.downwind[g, upstream]
        away = crosswind - batch.crosswind[g, upstream]
        if behind > -SAME_PLACE and abs(away) < model.widest:
            source_kind = batch.kind[g, upstream]
            source_height = kinds.hub_height[source_kind]
            along = min(int(max(behind, 0.0) * REACH_BINS / model.longest), REACH_BINS - 1)
            if away * away < model.reaches[source_kind, kind, along]:
                found.source[count] = g * turbines + upstream
                found.downwind[count] = behind
                found.distance[count] = math.sqrt(away * away + (height - source_height) ** 2)
                found.mirror_distance[count] = math.sqrt(away * away + (height + source_height) ** 2)
                found.radius[count] = rotor * 0.5 * kinds.diameter[kind]
                count += 1
    return count


@formula
def trace_back(batch, model, counted, pairs, state, slopes, by_x, by_y):
    """From the most downstream turbines on: what a change of each speed, then of each position, does to the power.

    When a slot's turn comes, all that its wake reaches have passed their share on to it. The share of a slot is kept
    where its power was, which is no longer needed.
    """
    directions, turbines = batch.downwind.shape
    lanes = batch.speed.shape[1]
    shares = state.power
    shares[:] = 0.0
    for rank in range(turbines - 1, -1, -1):
        for g in range(directions):
            slot = g * turbines + rank
            turbine = batch.turbine[g, rank]
            for k in range(lanes):
                own = counted[turbine] * batch.weight[g, k] * state.sources[slot, POWER_SLOPE, k]
                shares[slot, k] = (shares[slot, k] + own) * effective_speed_slope(
                    batch.speed[g, k], state.totals[slot, k], model.squared
                )
        for e in range(pairs.first[rank], pairs.first[rank + 1]):
            source = pairs.source[e]
            target = pairs.target[e]
            downwind = 0.0
            crosswind = 0.0
            for k in range(lanes):
                share = shares[target, k]
                downwind += share * slopes.downwind[e, k]
                crosswind += share * slopes.crosswind[e, k]
                shares[source, k] += share * slopes.source_speed[e, k]
            g = pairs.direction[e]
            x = crosswind * batch.sine[g] - downwind * batch.cosine[g]
            y = -crosswind * batch.cosine[g] - downwind * batch.sine[g]
            moved = batch.turbine[g, target - g * turbines]
            fixed = batch.turbine[g, source - g * turbines]
            by_x[moved] += x
            by_y[moved] += y
            by_x[fixed] -= x
            by_y[fixed] -= y


@formula
def spread(pairs, e, sources, rows, gathered):
    """Put what pair `e` depends on in each lane side by side, as `gather` does for several pairs and one lane."""
    slot = pairs.source[e]
    for k in range(sources.shape[2]):
        gathered[0, k] = pairs.downwind[e]
        gathered[1, k] = pairs.distance[e]
        gathered[2, k] = pairs.mirror_distance[e]
        gathered[3, k] = pairs.radius[e]
    for row in range(rows):
        for k in range(sources.shape[2]):
            gathered[ROWS_OF_PAIR + row, k] = sources[slot, row, k]


@formula
def gather(pairs, begin, end, sources, rows, gathered):
    """Put what the pairs begin .. end depend on side by side: their own four numbers, then `rows` of their sources'."""
    for e in range(begin, end):
        k = e - begin
        slot = pairs.source[e]
        gathered[0, k] = pairs.downwind[e]
        gathered[1, k] = pairs.distance[e]
        gathered[2, k] = pairs.mirror_distance[e]
        gathered[3, k] = pairs.radius[e]
        for row in range(rows):
            gathered[ROWS_OF_PAIR + row, k] = sources[slot, row, 0]


@formula
def add_power(batch, state, mean_power):
    """Add the weighted power of each turbine to `mean_power`."""
    directions, turbines = batch.downwind.shape
    for g in range(directions):
        for rank in range(turbines):
            total = 0.0
            for k in range(batch.speed.shape[1]):
                total += batch.weight[g, k] * state.power[g * turbines + rank, k]
            mean_power[batch.turbine[g, rank]] += total


@formula
def effective_speed(speed, total, squared):
    return speed * (1.0 - (math.sqrt(total) if squared else total))


@formula
def effective_speed_slope(speed, total, squared):
    """Derivative of `effective_speed` with respect to `total`; without any wake it is not needed, and 0."""
    if not squared:
        return -speed
    return -0.5 * speed / math.sqrt(total) if total > 0.0 else 0.0


@formula
def along_axis(crosswind, distance):
    """Derivative of a distance from an axis with respect to the crosswind distance: 0 on the axis."""
    return crosswind / distance if distance > 0.0 else 0.0


def build(formulas: Formulas) -> Loops:
    """The kernels for these formulas."""
    source = formulas.source
    source_slopes = formulas.source_slopes
    view = formulas.view
    look = formulas.look
    view_partials = formulas.view_partials
    look_partials = formulas.look_partials
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
    def view_pairs(count, gathered, p, views):
        """`view` of the first `count` pairs gathered."""
        for k in range(count):
            views[0, k], views[1, k], views[2, k], views[3, k], views[4, k], views[5, k] = view(
                gathered[0, k],
                gathered[1, k],
                gathered[2, k],
                gathered[3, k],
                gathered[4, k],
                gathered[5, k],
                gathered[6, k],
                gathered[7, k],
                p,
            )

    @formula
    def view_lanes(pairs, e, sources, p, views):
        """`view` of pair `e` in all lanes."""
        slot = pairs.source[e]
        downwind = pairs.downwind[e]
        distance = pairs.distance[e]
        mirror_distance = pairs.mirror_distance[e]
        radius = pairs.radius[e]
        for k in range(sources.shape[2]):
            views[0, k], views[1, k], views[2, k], views[3, k], views[4, k], views[5, k] = view(
                downwind,
                distance,
                mirror_distance,
                radius,
                sources[slot, 0, k],
                sources[slot, 1, k],
                sources[slot, 2, k],
                sources[slot, 3, k],
                p,
            )

    @formula
    def look_at(views, k, model):
        return look(
            views[0, k], views[1, k], views[2, k], views[3, k], views[4, k], views[5, k], model.parameters, model.table
        )

    @formula
    def add_wakes(pairs, begin, end, sources, totals, model, gathered, views):
        """Add the contributions of the pairs begin .. end to `totals` (slots, lanes)."""
        lanes = totals.shape[1]
        p = model.parameters
        if lanes == 1:
            for start in range(begin, end, ELEMENTS):
                stop = min(start + ELEMENTS, end)
                gather(pairs, start, stop, sources, ROWS_OF_SOURCE, gathered)
                view_pairs(stop - start, gathered, p, views)
                for k in range(stop - start):
                    totals[pairs.target[start + k], 0] += look_at(views, k, model)
        else:
            for e in range(begin, end):
                view_lanes(pairs, e, sources, p, views)
                target = pairs.target[e]
                for k in range(lanes):
                    totals[target, k] += look_at(views, k, model)

    @formula
    def settle(batch, kinds, model, rank, state):
        """Speed, power, thrust and what the wake depends on, of all slots of this rank, once their totals are known."""
        directions, turbines = batch.downwind.shape
        lanes = batch.speed.shape[1]
        for g in range(directions):
            slot = g * turbines + rank
            kind = batch.kind[g, rank]
            diameter = kinds.diameter[kind]
            for k in range(lanes):
                state.speeds[slot, k] = effective_speed(batch.speed[g, k], state.totals[slot, k], model.squared)
            for k in range(lanes):
                state.power[slot, k], state.thrust[slot, k] = power_and_thrust(
                    state.speeds[slot, k], kind, kinds.curves
                )
            for k in range(lanes):
                s0, s1, s2, s3 = source(
                    state.thrust[slot, k],
                    state.speeds[slot, k] / batch.speed[g, k],
                    diameter,
                    batch.turbulence_intensity[g, k],
                    model.parameters,
                )
                state.sources[slot, 0, k] = s0
                state.sources[slot, 1, k] = s1
                state.sources[slot, 2, k] = s2
                state.sources[slot, 3, k] = s3

    def energy(batch, kinds, model, mean_power, speeds):
        """Add the weighted power (MW) of each turbine to `mean_power` (turbines,); fill `speeds` (slots, lanes)."""
        directions, turbines = batch.downwind.shape
        lanes = batch.speed.shape[1]
        slots = directions * turbines
        pairs = find_pairs(batch, kinds, model)

        gathered = np.empty((ROWS_OF_PAIR + ROWS_OF_SOURCE, ELEMENTS))
        views = np.empty((ROWS_OF_VIEW, ELEMENTS))
        state = State(
            np.zeros((slots, lanes)),
            speeds,
            np.empty((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, ROWS_OF_SOURCE, lanes)),
        )
        for rank in range(turbines):
            begin, end = pairs.first[rank], pairs.first[rank + 1]
            add_wakes(pairs, begin, end, state.sources, state.totals, model, gathered, views)
            settle(batch, kinds, model, rank, state)
        add_power(batch, state, mean_power)

    @formula
    def add_wakes_and_slopes(pairs, begin, end, sources, totals, model, gathered, views, slopes):
        """`add_wakes`, and fill `slopes` for these pairs."""
        lanes = totals.shape[1]
        p = model.parameters
        step = ELEMENTS if lanes == 1 else 1
        for start in range(begin, end, step):
            stop = min(start + step, end)
            if lanes == 1:
                gather(pairs, start, stop, sources, 2 * ROWS_OF_SOURCE, gathered)
            else:
                spread(pairs, start, sources, 2 * ROWS_OF_SOURCE, gathered)
            elements = (stop - start) * lanes
            for k in range(elements):
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
                    gathered[4, k],
                    gathered[5, k],
                    gathered[6, k],
                    gathered[7, k],
                    gathered[8, k],
                    gathered[9, k],
                    gathered[10, k],
                    gathered[11, k],
                    p,
                )
            for e in range(start, stop):
                slot = pairs.target[e]
                direct = along_axis(pairs.crosswind[e], pairs.distance[e])
                image = along_axis(pairs.crosswind[e], pairs.mirror_distance[e])
                for lane in range(lanes):
                    k = (e - start) * lanes + lane
                    value, downwind, distance, mirror_distance, source_speed = look_partials(
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
                        pairs.distance[e],
                        pairs.mirror_distance[e],
                        pairs.radius[e],
                        p,
                        model.table,
                    )
                    totals[slot, lane] += value
                    slopes.downwind[e, lane] = downwind
                    slopes.crosswind[e, lane] = distance * direct + mirror_distance * image
                    slopes.source_speed[e, lane] = source_speed

    @formula
    def settle_slopes(batch, kinds, model, rank, state):
        """What `settle` found, differentiated with respect to the effective speed."""
        directions, turbines = batch.downwind.shape
        lanes = batch.speed.shape[1]
        for g in range(directions):
            slot = g * turbines + rank
            kind = batch.kind[g, rank]
            diameter = kinds.diameter[kind]
            for k in range(lanes):
                state.sources[slot, POWER_SLOPE, k], state.sources[slot, THRUST_SLOPE, k] = power_and_thrust_slopes(
                    state.speeds[slot, k], kind, kinds.curves
                )
            for k in range(lanes):
                t0, t1, t2, t3, r0, r1, r2, r3 = source_slopes(
                    state.thrust[slot, k],
                    state.speeds[slot, k] / batch.speed[g, k],
                    diameter,
                    batch.turbulence_intensity[g, k],
                    model.parameters,
                )
                thrust_slope = state.sources[slot, THRUST_SLOPE, k]
                ratio_slope = 1.0 / batch.speed[g, k]
                state.sources[slot, 4, k] = t0 * thrust_slope + r0 * ratio_slope
                state.sources[slot, 5, k] = t1 * thrust_slope + r1 * ratio_slope
                state.sources[slot, 6, k] = t2 * thrust_slope + r2 * ratio_slope
                state.sources[slot, 7, k] = t3 * thrust_slope + r3 * ratio_slope

    def gradient(batch, kinds, model, counted, mean_power, by_x, by_y):
        """Add the weighted power (MW) of each turbine to `mean_power`, and to by_x, by_y (turbines,) the derivatives
        of the sum over the turbines that are `counted` (1.0 or 0.0) with respect to positions, MW/m.
        """
        directions, turbines = batch.downwind.shape
        lanes = batch.speed.shape[1]
        slots = directions * turbines
        pairs = find_pairs(batch, kinds, model)
        count = len(pairs.source)

        gathered = np.empty((ROWS_OF_PAIR + 2 * ROWS_OF_SOURCE, ELEMENTS))
        views = np.empty((ROWS_OF_VIEW_PARTIALS, ELEMENTS))
        state = State(
            np.zeros((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, 2 * ROWS_OF_SOURCE + 2, lanes)),
        )
        slopes = Slopes(np.empty((count, lanes)), np.empty((count, lanes)), np.empty((count, lanes)))
        for rank in range(turbines):
            begin, end = pairs.first[rank], pairs.first[rank + 1]
            add_wakes_and_slopes(pairs, begin, end, state.sources, state.totals, model, gathered, views, slopes)
            settle(batch, kinds, model, rank, state)
            settle_slopes(batch, kinds, model, rank, state)
        add_power(batch, state, mean_power)
        trace_back(batch, model, counted, pairs, state, slopes, by_x, by_y)

    def points(batch, kinds, model, kind, rotor, downwind, crosswind, mean_power):
        """Add to `mean_power` (points,) what one more turbine of type `kind` would yield at each point (MW).

        downwind, crosswind: of the points, shape (directions, points), in the coordinates of the batch.
        rotor: 1.0 to average over the rotor, 0.0 for the wind speed at the hub.
        """
        directions, turbines = batch.downwind.shape
        lanes = batch.speed.shape[1]
        slots = directions * turbines
        pairs = find_pairs(batch, kinds, model)
        gathered = np.empty((ROWS_OF_PAIR + ROWS_OF_SOURCE, ELEMENTS))
        views = np.empty((ROWS_OF_VIEW, ELEMENTS))
        state = State(
            np.zeros((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, ROWS_OF_SOURCE, lanes)),
        )
        for rank in range(turbines):
            begin, end = pairs.first[rank], pairs.first[rank + 1]
            add_wakes(pairs, begin, end, state.sources, state.totals, model, gathered, views)
            settle(batch, kinds, model, rank, state)

        found = room_for_pairs(turbines, turbines + 1)
        found.target[:] = 0
        totals = np.empty((1, lanes))
        for g in range(directions):
            for point in range(downwind.shape[1]):
                count = wakes_at(batch, kinds, model, g, downwind[g, point], crosswind[g, point], kind, rotor, found)
                totals[:] = 0.0
                add_wakes(found, 0, count, state.sources, totals, model, gathered, views)
                for k in range(lanes):
                    speed = effective_speed(batch.speed[g, k], totals[0, k], model.squared)
                    power, _ = power_and_thrust(speed, kind, kinds.curves)
                    mean_power[point] += batch.weight[g, k] * power

    return Loops(reaches, energy, gradient, points)
