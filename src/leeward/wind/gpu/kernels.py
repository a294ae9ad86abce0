"""The loops of the GPU: from the positions of many layouts to energy and gradient, from the formulas of a wake model.

A row is a layout in one wind direction. `arrange` sorts its turbines and finds the wakes that count. An element is a
row with one wind speed. `forward` and `backward` compute an element turbine after turbine: the same steps as in
`leeward.wind.kernels`, where `sweep` and `gradient` compute all elements of a block side by side. A team of threads
computes an element, because a turbine is in few wakes, and so that the states of all elements at work fit into the
caches. What is needed of a turbine lies side by side in memory, because the teams of a warp are at different turbines.
`backward` evaluates the wakes again instead of reading their derivatives from memory.

Sums are added in a fixed order, so that a device gives the same bits every time.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from leeward.wind.gpu.data import (
    BY_X,
    BY_Y,
    CROSSWIND,
    DOWNWIND,
    GROUND,
    GROUP,
    HEIGHT,
    SHARE,
    TEAM,
    TEAMS,
    WARP,
)
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.formulas import Rotor
from leeward.wind.kernels.numerics import (
    effective_speed,
    power_and_thrust,
    power_and_thrust_slopes,
)
from leeward.wind.kernels.pairs import reach_bin
from leeward.wind.kernels.rows import TupleRows


class Device(NamedTuple):
    """The kernels of a wake model that are started on the GPU; the functions below document their arguments."""

    arrange: Any
    forward: Any
    finish: Any
    backward: Any
    worth: Any
    points: Any
    gains: Any
    add_groups: Any
    add_all: Any


@formula
def element_of(element, chunk):
    """Return the element of a thread, its row, layout, direction and lane.

    All are unsigned: indexing then needs no check for negative values, which costs more than the access itself.
    """
    at, lanes, directions = np.uint32(element), np.uint32(chunk.lanes), np.uint32(chunk.directions)
    row = np.uint32(at // lanes)
    layout, direction = np.uint32(chunk.layout) + row // directions, np.uint32(chunk.direction) + row % directions
    return at, row, np.uint32(layout), np.uint32(direction), np.uint32(at % lanes)


@formula
def of_place(values, rose, i, direction, lane):
    """Return a value of the wind at a turbine; one place stands for all."""
    return values[rose, min(i, np.uint32(values.shape[1] - 1)), direction, lane]


@formula
def ground_of(layouts, layout, i):
    return layouts.ground[layout, i] if len(layouts.ground) else 0.0


@formula
def first_pair(rank):
    """Return the position of the first wake that reaches a rank, see `Order`."""
    return (rank * rank - rank) // 2


@formula
def is_before(value, i, other, j):
    """Return whether turbine j is upstream of turbine i; equal ones are sorted by index."""
    return other < value or (other == value and j < i)


@formula
def reaches_place(along, across, kind, model):
    """Return whether a wake reaches a rotor that is so far downwind and crosswind of its turbine, m."""
    return across * across < model.reaches[kind, reach_bin(along, model.longest)]


@formula
def rotor_between(downwind, crosswind, height, ground, source_height, source_ground, radius):
    """Return a rotor as seen from a source, and the heights of its hub above that of the source and of its image, m."""
    rise = ground - source_ground
    above, above_image = (height - source_height) + rise, (height + source_height) + rise
    away = crosswind * crosswind
    direct, image = math.sqrt(away + above * above), math.sqrt(away + above_image * above_image)
    return Rotor(downwind, direct, image, radius), above, above_image


class Here(NamedTuple):
    """A rank of a row: its place as in `Order.place`, m, and the radius of its rotor, m. i: index of the turbine."""

    i: int
    downwind: float
    crosswind: float
    height: float
    ground: float
    radius: float


@formula
def rank_of(layouts, layout, order, row, rank, kinds):
    """Return what `rotor_of` needs of a rank."""
    i, place = order.turbine[row, rank], order.place
    radius = 0.5 * kinds.diameter[layouts.kind[layout, i]]
    ground = place[row, rank, GROUND]
    return Here(i, place[row, rank, DOWNWIND], place[row, rank, CROSSWIND], place[row, rank, HEIGHT], ground, radius)


@formula
def rotor_of(here, layouts, layout, order, row, source):
    """Return the rotor of a rank as seen from a source, the crosswind distance and the heights between them, m."""
    place = order.place
    downwind, crosswind = here.downwind - place[row, source, DOWNWIND], here.crosswind - place[row, source, CROSSWIND]
    if len(layouts.stretch):
        downwind *= layouts.stretch[layout, here.i, order.turbine[row, source]]
    there = place[row, source, GROUND] if len(layouts.ground) else 0.0
    rotor, above, above_image = rotor_between(
        downwind, crosswind, here.height, here.ground, place[row, source, HEIGHT], there, here.radius
    )
    return rotor, crosswind, above, above_image


@formula
def row_of(first_row, at, most, chunk):
    """Return row, turbine, layout and direction of an item of `arrange`; unsigned, as in `element_of`."""
    item, turbines, directions = np.uint32(at), np.uint32(most), np.uint32(chunk.directions)
    row = np.uint32(first_row + item // turbines)
    layout, direction = np.uint32(chunk.layout) + row // directions, np.uint32(chunk.direction) + row % directions
    return row, np.uint32(item % turbines), np.uint32(layout), np.uint32(direction)


def make_arrange(number: Any) -> Any:
    """Return `arrange` for this type of number."""

    def arrange(layouts, winds, chunk, kinds, model, rows_of_block, order):
        """Sort the turbines of each row downwind, and find the wakes that count. A block for a number of rows.

        Its shared memory has room for two numbers for each turbine of its rows.
        """
        rows = min(rows_of_block, chunk.layouts * chunk.directions - cuda.blockIdx.x * rows_of_block)
        first_row, most = cuda.blockIdx.x * rows_of_block, layouts.x.shape[1]
        along = cuda.shared.array(0, number)[: rows * most]
        across = cuda.shared.array(0, number)[rows * most : 2 * rows * most]
        for at in range(cuda.threadIdx.x, rows * most, cuda.blockDim.x):
            row, i, layout, direction = row_of(first_row, at, most, chunk)
            rose = layouts.rose[layout]
            cosine, sine = winds.cosine[rose, direction], winds.sine[rose, direction]
            value = -cosine * layouts.x[layout, i] - sine * layouts.y[layout, i]
            along[at] = value if value == value else 0.0  # NaN must not become an index
        cuda.syncthreads()
        for at in range(cuda.threadIdx.x, rows * most, cuda.blockDim.x):
            row, i, layout, direction = row_of(first_row, at, most, chunk)
            turbines, rose = layouts.standing[layout], layouts.rose[layout]
            if i < turbines:
                value, before, begin = along[at], 0, np.uint32(at - i)
                for j in range(turbines):
                    before += is_before(value, i, along[begin + np.uint32(j)], j)
                rank = np.uint32(before)
                kind = layouts.kind[layout, i]
                cosine, sine = winds.cosine[rose, direction], winds.sine[rose, direction]
                order.turbine[row, rank] = i
                order.place[row, rank, DOWNWIND] = value
                away = sine * layouts.x[layout, i] - cosine * layouts.y[layout, i]
                order.place[row, rank, CROSSWIND] = away if away == away else 0.0
                order.place[row, rank, HEIGHT] = kinds.hub_height[kind]
                order.place[row, rank, GROUND] = ground_of(layouts, layout, i)
        cuda.syncthreads()
        for at in range(cuda.threadIdx.x, rows * most, cuda.blockDim.x):
            row, rank, _, _ = row_of(first_row, at, most, chunk)
            along[at], across[at] = order.place[row, rank, DOWNWIND], order.place[row, rank, CROSSWIND]
        cuda.syncthreads()
        for at in range(cuda.threadIdx.x, rows * most, cuda.blockDim.x):
            row, rank, layout, _ = row_of(first_row, at, most, chunk)
            if rank < layouts.standing[layout]:
                i, begin = order.turbine[row, rank], np.uint32(at - rank)
                kind, downwind, crosswind = layouts.kind[layout, i], along[at], across[at]
                first, count = first_pair(rank), 0
                for source in range(rank):
                    behind = downwind - along[begin + np.uint32(source)]
                    if len(layouts.stretch):
                        behind *= layouts.stretch[layout, i, order.turbine[row, np.uint32(source)]]
                    if reaches_place(behind, crosswind - across[begin + np.uint32(source)], kind, model):
                        order.source[row, np.uint32(first + count)] = source
                        count += 1
                order.count[row, rank] = count

    return arrange


@formula
def most_turbines(layouts, chunk, block):
    """Return the largest number of turbines in the elements of a block, so that all its threads take as many steps."""
    most = 0
    for team in range(TEAMS):
        element, _, layout, _, _ = element_of(block * TEAMS + team, chunk)
        if element < chunk.layouts * chunk.directions * chunk.lanes:
            most = max(most, layouts.standing[layout])
    return most


@formula
def sum_of_team(shared, first):
    """Return the sum of TEAM numbers, added in a fixed order."""
    total = shared[first]
    for k in range(1, TEAM):
        total += shared[first + np.uint32(k)]
    return total


def make_forward(formulas: Any, source_rows: TupleRows, number: Any) -> Any:
    wake_at, contribution, source = formulas.wake_at, formulas.contribution, formulas.source
    read, write = source_rows.read_record, source_rows.write_record

    def forward(layouts, winds, chunk, kinds, model, order, states):
        """Compute total and source of every turbine, from the most upstream one on. TEAM threads for each element.

        The threads of a team take turns at the wakes of a rank. With more elements side by side, their states would not
        stay in the cache. A block has WARP threads.
        """
        shared = cuda.shared.array(WARP, number)
        thread = np.uint32(cuda.threadIdx.x)
        member, team = np.uint32(thread % TEAM), np.uint32(thread // TEAM)
        element, row, layout, direction, lane = element_of(cuda.blockIdx.x * TEAMS + team, chunk)
        turbines, rose, p = 0, np.uint32(0), model.parameters
        if element < chunk.layouts * chunk.directions * chunk.lanes:
            turbines, rose = layouts.standing[layout], layouts.rose[layout]
        for each in range(most_turbines(layouts, chunk, cuda.blockIdx.x)):
            rank, total = np.uint32(each), 0.0
            if each < turbines:
                here = rank_of(layouts, layout, order, row, rank, kinds)
                first = first_pair(each)
                for e in range(first + member, first + order.count[row, rank], TEAM):
                    upstream = order.source[row, np.uint32(e)]
                    rotor, _, _, _ = rotor_of(here, layouts, layout, order, row, upstream)
                    value = contribution(wake_at(rotor, read(states.sources, element, upstream, 0), p), p, model.table)
                    if len(winds.scale):
                        value *= of_place(winds.scale, rose, order.turbine[row, upstream], direction, lane)
                    total += value
            shared[thread] = total
            cuda.syncthreads()
            if each < turbines:
                i = order.turbine[row, rank]
                kind = layouts.kind[layout, i]
                total = sum_of_team(shared, np.uint32(thread - member))
                if len(winds.scale):
                    total /= of_place(winds.scale, rose, i, direction, lane)
                free = of_place(winds.speed, rose, i, direction, lane)
                turbulence = of_place(winds.turbulence_intensity, rose, i, direction, lane)
                speed = effective_speed(free, total, model.squared)
                thrust = power_and_thrust(speed, kind, kinds.curves)[1]
                if len(winds.density):
                    thrust *= of_place(winds.density, rose, i, direction, lane)
                made = source(thrust, speed / free, kinds.diameter[kind], turbulence, p)
                if member == 0:
                    write(states.sources, element, rank, 0, made)
                    states.totals[element, rank] = total
            cuda.syncthreads()

    return forward


def make_finish(formulas: Any, source_rows: TupleRows) -> Any:
    write, weighted_sum, fields = source_rows.write_record, source_rows.weighted_sum, source_rows.size
    source_slopes, turbulence_slopes = formulas.source_slopes, formulas.turbulence_slopes

    def finish(layouts, winds, chunk, kinds, model, order, states, found):
        """Fill in `found` except for derivatives and, where there is room, the derivatives in `states`.

        After `forward`. A thread for each turbine of each element.
        """
        at = np.uint32(cuda.grid(1))
        most = np.uint32(layouts.x.shape[1])
        rank = np.uint32(at % most)
        element, row, layout, direction, lane = element_of(at // most, chunk)
        if element >= chunk.layouts * chunk.directions * chunk.lanes:
            return
        if rank >= layouts.standing[layout]:
            return
        rose, p, i = layouts.rose[layout], model.parameters, order.turbine[row, rank]
        kind = layouts.kind[layout, i]
        free, weight = of_place(winds.speed, rose, i, direction, lane), of_place(winds.weight, rose, i, direction, lane)
        density = of_place(winds.density, rose, i, direction, lane) if len(winds.density) else 1.0
        speed = effective_speed(free, states.totals[element, rank], model.squared)
        power, thrust = power_and_thrust(speed, kind, kinds.curves)
        if len(winds.density):
            power, thrust = power * density, thrust * density
        found.power[element, i] = weight * power
        if len(found.speeds):
            found.speeds[element, i] = speed
        if states.sources.shape[2] > fields:
            turbulence = of_place(winds.turbulence_intensity, rose, i, direction, lane)
            diameter, ratio = kinds.diameter[kind], speed / free
            power_slope, thrust_slope = power_and_thrust_slopes(speed, kind, kinds.curves)
            by_thrust, by_ratio = source_slopes(thrust, ratio, diameter, turbulence, p)
            by_speed = weighted_sum(by_thrust, thrust_slope * density, by_ratio, 1.0 / free)
            write(states.sources, element, rank, fields, by_speed)
            if states.sources.shape[2] > 2 * fields:  # the wind varies over the site
                by_free = weighted_sum(by_ratio, -ratio / free, by_ratio, 0.0)
                write(states.sources, element, rank, 2 * fields, by_free)
                by_turbulence = turbulence_slopes(thrust, ratio, diameter, turbulence, p)
                write(states.sources, element, rank, 3 * fields, by_turbulence)
                by_density = weighted_sum(by_thrust, thrust / density, by_thrust, 0.0)
                write(states.sources, element, rank, 4 * fields, by_density)
            is_counted = i < layouts.farm[layout]
            states.adjoints[element, rank, SHARE] = weight * density * power_slope if is_counted else 0.0
            states.adjoints[element, rank, BY_X] = 0.0
            states.adjoints[element, rank, BY_Y] = 0.0

    return finish


def add_groups(found, rows, elements, groups, layouts, turbines, sums):
    """Add up groups of GROUP elements of power and, with three rows, of its derivatives by x and y.

    elements: of each layout. sums: shape (rows, layouts, groups, turbines); a thread for each number.
    """
    at = cuda.grid(1)
    if at >= rows * layouts * groups * turbines:
        return
    i, group = np.uint32(at % turbines), at // turbines % groups
    layout, row = np.uint32(at // (turbines * groups) % layouts), np.uint32(at // (turbines * groups * layouts))
    values = found.power if row == 0 else found.by_x if row == 1 else found.by_y
    total = 0.0
    for element in range(group * GROUP, min((group + 1) * GROUP, elements)):
        total += values[np.uint32(layout * elements + element), i]
    sums[row, layout, np.uint32(group), i] = total


def add_all(sums, rows, groups, first, layouts, turbines, is_first, into):
    """Add the sums of all groups to into[row, first + layout, turbine]. A thread for each of its numbers.

    is_first: 1 if nothing is there yet.
    """
    at = cuda.grid(1)
    if at >= rows * layouts * turbines:
        return
    i, layout = np.uint32(at % turbines), np.uint32(at // turbines % layouts)
    row, to = np.uint32(at // (turbines * layouts)), np.uint32(first + layout)
    total = 0.0 if is_first else into[row, to, i]
    for group in range(groups):
        total += sums[row, layout, np.uint32(group), i]
    into[row, to, i] = total
