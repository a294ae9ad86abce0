"""The loop over the rows of a scenario: the power of a target farm among neighbours that come and go.

Two cases are computed together: with all wakes, and with those of the neighbours only. In each row, the turbines that
can affect the target, directly or through others, are found first, from the most downstream target turbine upwards.
Only their wakes are computed. A neighbour that no wake of the target reaches, directly or through others, has the same
state in both cases; the wakes of such neighbours are added once.
"""

import math
from typing import NamedTuple

import numpy as np

from leeward.wind.kernels.compile import allocating, formula
from leeward.wind.kernels.data import ELEMENTS, Floats, Indices, Integers
from leeward.wind.kernels.formulas import Formulas, Rotor, result_type
from leeward.wind.kernels.numerics import effective_speed, power_and_thrust
from leeward.wind.kernels.pairs import ground_at, heights_of, reach_bin, rotate, row_of, sort_along
from leeward.wind.kernels.rows import tuple_rows
from leeward.wind.kernels.sweep import SOURCE, Sweep, read_rotor, write_rotor

EXTERNAL, ALL = 0, 1  # the cases, as indices of states
# the classes of wakes: of neighbours with one state, of neighbours with two, and of the target
SHARED, AFFECTED, TARGET = 0, 1, 2


class Order(NamedTuple):
    """All turbines in the direction of a row: downwind and crosswind coordinates (m), and their orders."""

    along: Floats
    across: Floats
    by_along: Indices
    by_across: Indices
    rank_of: Indices


class Standing(NamedTuple):
    """The turbines that stand in a row, by rank downwind; and, with `lateral_`, by crosswind coordinate.

    sort: the class of its wake. matters: 1 if the turbine can affect the target. first, last: its range of pairs.
    """

    turbine: Indices
    kind: Indices
    downwind: Floats
    crosswind: Floats
    sort: Integers
    matters: Integers
    first: Integers
    last: Integers
    lateral_rank: Indices
    lateral_kind: Indices
    lateral_downwind: Floats
    lateral_crosswind: Floats


class Wakes(NamedTuple):
    """The pairs of a row: rank of the source, downwind and crosswind distances (m). Shape (pairs,)."""

    source: Indices
    downwind: Floats
    crosswind: Floats


class States(NamedTuple):
    """totals: of contributions, by class, shape (3, lanes). sources: shape (cases, fields, turbines x lanes)."""

    totals: Floats
    sources: Floats


@allocating
def new_order(turbines):
    indices = np.arange(turbines).astype(np.uint32)
    return Order(np.empty(turbines), np.empty(turbines), indices, indices.copy(), indices.copy())


@allocating
def new_standing(turbines):
    return Standing(
        np.empty(turbines, dtype=np.uint32),
        np.empty(turbines, dtype=np.uint32),
        np.empty(turbines),
        np.empty(turbines),
        np.empty(turbines, dtype=np.int64),
        np.empty(turbines, dtype=np.int64),
        np.empty(turbines, dtype=np.int64),
        np.empty(turbines, dtype=np.int64),
        np.empty(turbines, dtype=np.uint32),
        np.empty(turbines, dtype=np.uint32),
        np.empty(turbines),
        np.empty(turbines),
    )


@allocating
def new_wakes(turbines):
    room = turbines * (turbines - 1) // 2 + 1  # a pair is written before it is known whether it counts
    return Wakes(np.empty(room, dtype=np.uint32), np.empty(room), np.empty(room))


@allocating
def new_states(turbines, lanes, fields):
    return States(np.empty((3, lanes)), np.empty((2, fields, turbines * lanes)))


@formula
def put_in_order(places, wind, row, targets, group, stands, order, standing):
    """Fill in the turbines that stand in a row. Return their number, and the rank of the last target turbine."""
    rotate(places, wind, row, order.along, order.across)
    sort_along(order.along, order.by_along)
    sort_along(order.across, order.by_across)
    count = 0
    last_target = 0
    for place in range(len(order.by_along)):
        i = order.by_along[place]
        if stands[row, group[i]]:
            order.rank_of[i] = count
            standing.turbine[count] = i
            standing.kind[count] = places.kind[i]
            standing.downwind[count] = order.along[i]
            standing.crosswind[count] = order.across[i]
            is_target = i < targets
            standing.sort[count] = TARGET if is_target else SHARED
            standing.matters[count] = 1 if is_target else 0
            if is_target:
                last_target = count
            count += 1
    position = 0
    for place in range(len(order.by_across)):
        i = order.by_across[place]
        if stands[row, group[i]]:
            rank = order.rank_of[i]
            if rank <= last_target:  # those further downstream have no effect
                standing.lateral_rank[position] = rank
                standing.lateral_kind[position] = places.kind[i]
                standing.lateral_downwind[position] = order.along[i]
                standing.lateral_crosswind[position] = order.across[i]
                position += 1
    return position, last_target


@formula
def first_above(values, count, limit):
    """Return the first of `count` sorted values that is above a limit."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if values[middle] > limit:
            high = middle
        else:
            low = middle + 1
    return low


@formula
def find_wakes(standing, count, last_target, stretch, model, wakes):
    """Fill in the wakes that reach the target, directly or through others. Return the number of neighbours in them."""
    found = 0
    neighbours = 0
    for rank in range(last_target, -1, -1):
        standing.first[rank] = found
        if standing.matters[rank]:
            neighbours += standing.sort[rank] != TARGET
            kind = standing.kind[rank]
            downwind = standing.downwind[rank]
            crosswind = standing.crosswind[rank]
            position = first_above(standing.lateral_crosswind, count, crosswind - model.widest)
            while position < count and standing.lateral_crosswind[position] - crosswind < model.widest:
                upstream = standing.lateral_rank[position]
                along = downwind - standing.lateral_downwind[position]
                across = crosswind - standing.lateral_crosswind[position]
                if len(stretch):
                    along *= stretch[standing.turbine[rank], standing.turbine[upstream]]
                reach = model.reaches[standing.lateral_kind[position], kind, reach_bin(along, model.longest)]
                counts = (upstream < rank) & (across * across < reach)
                wakes.source[found] = upstream
                wakes.downwind[found] = along
                wakes.crosswind[found] = across
                standing.matters[upstream] |= counts
                found += counts
                position += 1
        standing.last[rank] = found
    return neighbours


@formula
def rotor_of(standing, wakes, pair, rank, ground, kinds):
    """Return the rotor of a turbine as seen from the source of a pair."""
    source = wakes.source[pair]
    here, there = ground_at(ground, standing.turbine[rank]), ground_at(ground, standing.turbine[source])
    above, above_image = heights_of(standing.kind[rank], here, standing.kind[source], there, kinds)
    away = wakes.crosswind[pair] * wakes.crosswind[pair]
    return Rotor(
        wakes.downwind[pair],
        math.sqrt(away + above**2),
        math.sqrt(away + above_image**2),
        0.5 * kinds.diameter[standing.kind[rank]],
    )


@formula
def classify(standing, wakes, rank):
    """Mark a neighbour as affected if a wake of the target, or of an affected neighbour, reaches it.

    Return the largest class of the wakes that reach it.
    """
    largest = SHARED
    for pair in range(standing.first[rank], standing.last[rank]):
        largest = max(largest, standing.sort[wakes.source[pair]])
    if standing.sort[rank] != TARGET and largest != SHARED:
        standing.sort[rank] = AFFECTED
    return largest


def make_add_wakes(formulas, source_rows, wake_rows):
    wake_at, contribution = formulas.wake_at, formulas.contribution
    read_source, write_source = source_rows.read, source_rows.write
    read_wake, write_wake = wake_rows.read, wake_rows.write

    @formula
    def add_gathered(gathered, columns, lanes, is_scaled, totals, model, scratch):
        """Add the contributions of the gathered wakes to `totals` (lanes,), scaled by `scratch.spare` if asked for."""
        p = model.parameters
        for k in range(columns):
            wake = wake_at(read_rotor(gathered, 0, k), read_source(gathered, SOURCE, k), p)
            write_wake(scratch.wakes, 0, k, wake)
        if is_scaled:
            for first in range(0, columns, lanes):
                for lane in range(lanes):
                    value = contribution(read_wake(scratch.wakes, 0, first + lane), p, model.table)
                    totals[lane] += value * scratch.spare[first + lane]
        else:
            for first in range(0, columns, lanes):
                for lane in range(lanes):
                    totals[lane] += contribution(read_wake(scratch.wakes, 0, first + lane), p, model.table)

    @formula
    def add_wakes(standing, wakes, rank, largest, wind, row, ground, kinds, model, states, scratch):
        """Fill in the totals of a turbine: of shared wakes, of others in the external case, and in the case `all`.

        largest: the largest class of the wakes that reach it.
        """
        gathered, scale = scratch.gathered, wind.scale
        is_scaled, lanes = len(scale) > 0, wind.speed.shape[2]
        for part in range(3):
            # shared wakes; those of affected neighbours in the external case; affected ones and the target's in `all`
            sources = states.sources[ALL if part == 2 else EXTERNAL]
            totals = states.totals[part]
            for lane in range(lanes):
                totals[lane] = 0.0
            if part > 0 and largest == SHARED:
                continue
            columns = 0
            for pair in range(standing.first[rank], standing.last[rank]):
                upstream = wakes.source[pair]
                sort = standing.sort[upstream]
                if (part == 0 and sort == SHARED) or (part == 1 and sort == AFFECTED) or (part == 2 and sort != SHARED):
                    rotor = rotor_of(standing, wakes, pair, rank, ground, kinds)
                    for lane in range(lanes):
                        write_rotor(gathered, 0, columns, rotor)
                        write_source(gathered, SOURCE, columns, read_source(sources, 0, upstream * lanes + lane))
                        if is_scaled:
                            scratch.spare[columns] = scale[row_of(standing.turbine[upstream], scale), row, lane]
                        columns += 1
                is_last = pair == standing.last[rank] - 1
                if columns > 0 and (is_last or columns + lanes > ELEMENTS):
                    add_gathered(gathered, columns, lanes, is_scaled, totals, model, scratch)
                    columns = 0

    return add_wakes


def make_add_power(formulas, source_rows):
    source, write_source = formulas.source, source_rows.write

    @formula
    def add_power(standing, rank, wind, row, kinds, model, states, external_power, all_power):
        """Compute power, thrust and source of a turbine in both cases; store the power of a target turbine."""
        kind, i, sort = standing.kind[rank], standing.turbine[rank], standing.sort[rank]
        lanes = wind.speed.shape[2]
        for case in range(2):
            if case == ALL and sort == SHARED:
                continue  # as in the external case
            for lane in range(lanes):
                free = wind.speed[row_of(i, wind.speed), row, lane]
                total = states.totals[0, lane] + states.totals[1 + case, lane]
                if len(wind.scale):
                    total /= wind.scale[row_of(i, wind.scale), row, lane]
                speed = effective_speed(free, total, model.squared)
                power, thrust = power_and_thrust(speed, kind, kinds.curves)
                if len(wind.density):
                    density = wind.density[row_of(i, wind.density), row, lane]
                    power, thrust = power * density, thrust * density
                if sort == TARGET:
                    if case == ALL:
                        all_power[i, row, lane] = power
                    else:
                        external_power[i, row, lane] = power
                if sort != TARGET or case == ALL:  # in the external case, the target has no thrust
                    turbulence = wind.turbulence_intensity[row_of(i, wind.turbulence_intensity), row, lane]
                    made = source(thrust, speed / free, kinds.diameter[kind], turbulence, model.parameters)
                    write_source(states.sources[case], 0, rank * lanes + lane, made)

    return add_power


def make_cases(formulas: Formulas, sweep: Sweep):
    source_rows = tuple_rows(result_type(formulas.source))
    wake_rows = tuple_rows(result_type(formulas.wake_at))
    fields = source_rows.size
    new_scratch = sweep.new_scratch
    add_wakes = make_add_wakes(formulas, source_rows, wake_rows)
    add_power = make_add_power(formulas, source_rows)

    def cases(places, wind, begin, end, kinds, model, targets, group, stands, reached, external_power, all_power):
        """Fill in the power (MW) of the first `targets` turbines, shape (targets, rows, lanes), in both cases.

        group: the group of each turbine; stands: 1 if a group stands in a row, shape (rows, groups). reached: 1 in rows
        to compute; it becomes 1 in rows in which a neighbour reaches the target. Other rows are skipped.
        """
        turbines, lanes = len(places.x), wind.speed.shape[2]
        order, standing, wakes = new_order(turbines), new_standing(turbines), new_wakes(turbines)
        states, scratch = new_states(turbines, lanes, fields), new_scratch()
        for row in range(begin, end):
            count, last_target = put_in_order(places, wind, row, targets, group, stands, order, standing)
            neighbours = find_wakes(standing, count, last_target, places.stretch, model, wakes)
            if neighbours > 0:
                reached[row] = 1
            if reached[row]:
                for rank in range(last_target + 1):
                    if standing.matters[rank]:
                        largest = classify(standing, wakes, rank)
                        add_wakes(
                            standing, wakes, rank, largest, wind, row, places.ground, kinds, model, states, scratch
                        )
                        add_power(standing, rank, wind, row, kinds, model, states, external_power, all_power)

    return cases
