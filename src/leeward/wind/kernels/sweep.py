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


class Loops(NamedTuple):
    """The kernels of one wake model, not yet compiled."""

    reaches: Callable[..., Any]
    energy: Callable[..., Any]
    gradient: Callable[..., Any]
    points: Callable[..., Any]


@formula
def counts(batch, model, g, upstream, rank):
    """Whether the wake of turbine `upstream` reaches turbine `rank`, in direction `g`."""
    away = batch.crosswind[g, rank] - batch.crosswind[g, upstream]
    along = int((batch.downwind[g, rank] - batch.downwind[g, upstream]) * REACH_BINS / model.longest)
    return away * away < model.reaches[batch.kind[g, upstream], batch.kind[g, rank], min(along, REACH_BINS - 1)]


@formula
def mark_pairs(batch, model, place, first, source, target):
    """Number of wakes that count, and their slots by rank of the target; -1 if they are more than there is room for.

    Only turbines next to each other in order of crosswind are looked at. place: room for (directions, turbines).
    """
    directions, turbines = batch.downwind.shape
    for g in range(directions):
        for position in range(turbines):
            place[g, batch.lateral[g, position]] = position
    count = 0
    for rank in range(turbines):
        for g in range(directions):
            if count + turbines > len(source):
                return -1
            own = batch.crosswind[g, rank]
            for step in (-1, 1):
                position = place[g, rank] + step
                while 0 <= position < turbines:
                    upstream = batch.lateral[g, position]
                    if abs(batch.crosswind[g, upstream] - own) >= model.widest:
                        break
                    if upstream < rank:
                        source[count] = g * turbines + upstream
                        target[count] = g * turbines + rank
                        # no branch: a pair that does not count is overwritten by the next
                        count += counts(batch, model, g, upstream, rank)
                    position += step
        first[rank + 1] = count
    return count


@formula
def measure_pairs(batch, kinds, pairs):
    """Fill in the distances of the pairs."""
    turbines = batch.downwind.shape[1]
    for e in range(len(pairs.source)):
        g = pairs.source[e] // turbines
        i = pairs.source[e] - g * turbines
        j = pairs.target[e] - g * turbines
        height = kinds.hub_height[batch.kind[g, j]]
        source_height = kinds.hub_height[batch.kind[g, i]]
        away = batch.crosswind[g, j] - batch.crosswind[g, i]
        pairs.downwind[e] = batch.downwind[g, j] - batch.downwind[g, i]
        pairs.crosswind[e] = away
        pairs.distance[e] = math.sqrt(away * away + (height - source_height) ** 2)
        pairs.mirror_distance[e] = math.sqrt(away * away + (height + source_height) ** 2)
        pairs.radius[e] = 0.5 * kinds.diameter[batch.kind[g, j]]


@allocating
def find_pairs(batch, kinds, model):
    """The wakes that count."""
    directions, turbines = batch.downwind.shape
    first = np.zeros(turbines + 1, dtype=np.int64)
    place = np.empty((directions, turbines), dtype=np.int64)
    count = -1
    room = 2 * directions * turbines
    while count < 0:
        room = 2 * room + turbines
        source = np.empty(room, dtype=np.int64)
        target = np.empty(room, dtype=np.int64)
        count = mark_pairs(batch, model, place, first, source, target)
    pairs = Pairs(
        first,
        source[:count],
        target[:count],
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
    )
    measure_pairs(batch, kinds, pairs)
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
                own = counted[turbine] * batch.weight[g, k] * state.sources[8, slot, k]
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
            g = target // turbines
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
            gathered[ROWS_OF_PAIR + row, k] = sources[row, slot, k]


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
            gathered[ROWS_OF_PAIR + row, k] = sources[row, slot, 0]


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
                sources[0, slot, k],
                sources[1, slot, k],
                sources[2, slot, k],
                sources[3, slot, k],
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
                state.sources[0, slot, k] = s0
                state.sources[1, slot, k] = s1
                state.sources[2, slot, k] = s2
                state.sources[3, slot, k] = s3

    def energy(batch, kinds, model, mean_power, speeds):
        """Add the weighted power (MW) of each turbine to `mean_power` (turbines,); fill `speeds` (slots, lanes)."""
        directions, turbines = batch.downwind.shape
        lanes = batch.speed.shape[1]
        slots = directions * turbines
        pairs = find_pairs(batch, kinds, model)

        elements = max(lanes, ELEMENTS)
        gathered = np.empty((ROWS_OF_PAIR + ROWS_OF_SOURCE, elements))
        views = np.empty((ROWS_OF_VIEW, elements))
        state = State(
            np.zeros((slots, lanes)),
            speeds,
            np.empty((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((ROWS_OF_SOURCE, slots, lanes)),
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
            for k in range(lanes):
                power_slope, thrust_slope = power_and_thrust_slopes(state.speeds[slot, k], kind, kinds.curves)
                by_thrust_0, by_thrust_1, by_thrust_2, by_thrust_3, by_ratio_0, by_ratio_1, by_ratio_2, by_ratio_3 = (
                    source_slopes(
                        state.thrust[slot, k],
                        state.speeds[slot, k] / batch.speed[g, k],
                        kinds.diameter[kind],
                        batch.turbulence_intensity[g, k],
                        model.parameters,
                    )
                )
                ratio_slope = 1.0 / batch.speed[g, k]
                state.sources[4, slot, k] = by_thrust_0 * thrust_slope + by_ratio_0 * ratio_slope
                state.sources[5, slot, k] = by_thrust_1 * thrust_slope + by_ratio_1 * ratio_slope
                state.sources[6, slot, k] = by_thrust_2 * thrust_slope + by_ratio_2 * ratio_slope
                state.sources[7, slot, k] = by_thrust_3 * thrust_slope + by_ratio_3 * ratio_slope
                state.sources[8, slot, k] = power_slope

    def gradient(batch, kinds, model, counted, mean_power, by_x, by_y):
        """Add the weighted power (MW) of each turbine to `mean_power`, and to by_x, by_y (turbines,) the derivatives
        of the sum over the turbines that are `counted` (1.0 or 0.0) with respect to positions, MW/m.
        """
        directions, turbines = batch.downwind.shape
        lanes = batch.speed.shape[1]
        slots = directions * turbines
        pairs = find_pairs(batch, kinds, model)
        count = len(pairs.source)

        elements = max(lanes, ELEMENTS)
        gathered = np.empty((ROWS_OF_PAIR + 2 * ROWS_OF_SOURCE, elements))
        views = np.empty((ROWS_OF_VIEW_PARTIALS, elements))
        state = State(
            np.zeros((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((2 * ROWS_OF_SOURCE + 1, slots, lanes)),
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
        elements = max(lanes, ELEMENTS)
        gathered = np.empty((ROWS_OF_PAIR + ROWS_OF_SOURCE, elements))
        views = np.empty((ROWS_OF_VIEW, elements))
        state = State(
            np.zeros((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((slots, lanes)),
            np.empty((ROWS_OF_SOURCE, slots, lanes)),
        )
        for rank in range(turbines):
            begin, end = pairs.first[rank], pairs.first[rank + 1]
            add_wakes(pairs, begin, end, state.sources, state.totals, model, gathered, views)
            settle(batch, kinds, model, rank, state)

        room = turbines + 1
        found = Pairs(
            np.zeros(2, dtype=np.int64),
            np.empty(room, dtype=np.int64),
            np.zeros(room, dtype=np.int64),
            np.empty(room),
            np.empty(room),
            np.empty(room),
            np.empty(room),
            np.empty(room),
        )
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
