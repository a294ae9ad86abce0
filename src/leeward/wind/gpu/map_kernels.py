"""The GPU's loops over turbines and points: what a farm loses without a turbine, and gains from one more at a point.

See `leeward.wind.kernels.maps`.
"""

from typing import Any

import numpy as np
from numba import cuda, types

from leeward.wind.gpu.data import CROSSWIND, DOWNWIND, GROUND, HEIGHT, LANES, SHARE, THREADS
from leeward.wind.gpu.kernels import (
    element_of,
    first_pair,
    of_place,
    rank_of,
    reaches_place,
    rotor_between,
    rotor_of,
)
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.numerics import effective_speed, power_and_thrust
from leeward.wind.kernels.pairs import SAME_PLACE
from leeward.wind.kernels.rows import TupleRows


@formula
def power_with(winds, rose, i, direction, lane, kind, total, kinds, model):
    """Return the weighted power (MW) of a turbine with this total of contributions."""
    free = of_place(winds.speed, rose, i, direction, lane)
    speed = effective_speed(free, max(total, 0.0), model.squared)
    power = power_and_thrust(speed, kind, kinds.curves)[0]
    if len(winds.density):
        power *= of_place(winds.density, rose, i, direction, lane)
    return power * of_place(winds.weight, rose, i, direction, lane)


def make_worth(formulas: Any, source_rows: TupleRows) -> Any:
    wake_at, contribution, read = formulas.wake_at, formulas.contribution, source_rows.read_record

    def worth(layouts, winds, chunk, kinds, model, order, states, found):
        """Replace `found.power` by the loss of the farm without each turbine, see `marginal` in `maps`.

        After `finish`. A thread for each element.
        """
        element, row, layout, direction, lane = element_of(cuda.grid(1), chunk)
        if element >= chunk.layouts * chunk.directions * chunk.lanes:
            return
        rose, p = layouts.rose[layout], model.parameters
        farm = layouts.farm[layout]
        # upwards: what a turbine gains is complete before its own loss replaces its power
        for downwards in range(layouts.standing[layout]):
            rank = np.uint32(layouts.standing[layout] - 1 - downwards)
            i = order.turbine[row, rank]
            states.adjoints[element, rank, SHARE] = 0.0
        for downwards in range(layouts.standing[layout]):
            rank = np.uint32(layouts.standing[layout] - 1 - downwards)
            i = order.turbine[row, rank]
            kind = layouts.kind[layout, i]
            power = found.power[element, i]
            found.power[element, i] = (power if i < farm else 0.0) - states.adjoints[element, rank, SHARE]
            if i >= farm:
                continue
            here, first = rank_of(layouts, layout, order, row, rank, kinds), first_pair(rank)
            for e in range(first, first + order.count[row, rank]):
                upstream = order.source[row, np.uint32(e)]
                rotor, _, _, _ = rotor_of(here, layouts, layout, order, row, upstream)
                value = contribution(wake_at(rotor, read(states.sources, element, upstream, 0), p), p, model.table)
                if len(winds.scale):
                    value *= of_place(winds.scale, rose, order.turbine[row, upstream], direction, lane)
                    value /= of_place(winds.scale, rose, i, direction, lane)
                total = states.totals[element, rank] - value
                without = power_with(winds, rose, i, direction, lane, kind, total, kinds, model)
                states.adjoints[element, upstream, SHARE] += without - power

    return worth


@formula
def add_block(value, shared):
    """Fill shared[0] with the sum of `value` over the THREADS (a power of 2) of a block, added in a fixed order."""
    thread = cuda.threadIdx.x
    shared[thread] = value
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            shared[thread] += shared[thread + half]
        cuda.syncthreads()
        half //= 2


@formula
def way_to_point(order, row, rank, points, layout, point, along, across):
    """Return how far a point is downwind and crosswind of the turbine of a rank, m. along, across: of the point."""
    downwind = along - order.place[row, rank, DOWNWIND]
    if len(points.stretch):
        downwind *= points.stretch[layout, point, order.turbine[row, rank]]
    return downwind, across - order.place[row, rank, CROSSWIND]


@formula
def rotor_at(downwind, crosswind, order, row, rank, points, layout, point, rotor, kinds):
    """Return the rotor of a turbine at a point as seen from the turbine of a rank.

    rotor: 1.0 to average over the rotor, 0.0 for the wind at its hub.
    """
    kind, place = points.kind[layout], order.place
    ground = points.ground[layout, point] if len(points.ground) else 0.0
    height, radius = kinds.hub_height[kind], rotor * 0.5 * kinds.diameter[kind]
    there, ground_there = place[row, rank, HEIGHT], place[row, rank, GROUND]
    return rotor_between(downwind, crosswind, height, ground, there, ground_there, radius)[0]


@formula
def rotor_behind(downwind, crosswind, order, row, rank, points, layout, point, kind, kinds):
    """Return the rotor of the turbine of a rank as seen from one at a point. kind: type of the former."""
    place, there = order.place, kinds.hub_height[points.kind[layout]]
    ground_there = points.ground[layout, point] if len(points.ground) else 0.0
    height, ground, radius = place[row, rank, HEIGHT], place[row, rank, GROUND], 0.5 * kinds.diameter[kind]
    return rotor_between(downwind, crosswind, height, ground, there, ground_there, radius)[0]


def make_points(formulas: Any, source_rows: TupleRows, number: Any) -> Any:
    wake_at, contribution, read = formulas.wake_at, formulas.contribution, source_rows.read_record

    @formula
    def add_wakes(
        totals,
        first,
        lanes,
        layouts,
        layout,
        winds,
        direction,
        order,
        row,
        states,
        points,
        point,
        along,
        across,
        rotor,
        lanes_of_row,
        kinds,
        model,
    ):
        """Fill `totals` with the contributions at a point in some lanes of a row, from `first` on."""
        kind, rose, p = points.kind[layout], layouts.rose[layout], model.parameters
        for lane in range(lanes):
            totals[lane] = 0.0
        for each in range(layouts.standing[layout]):
            rank = np.uint32(each)
            if along - order.place[row, rank, DOWNWIND] <= -SAME_PLACE:
                break
            downwind, crosswind = way_to_point(order, row, rank, points, layout, point, along, across)
            if reaches_place(downwind, crosswind, kind, model):
                seen = rotor_at(downwind, crosswind, order, row, rank, points, layout, point, rotor, kinds)
                for lane in range(lanes):
                    element = np.uint32(row * lanes_of_row + first + lane)
                    value = contribution(wake_at(seen, read(states.sources, element, rank, 0), p), p, model.table)
                    if len(winds.scale):
                        at = np.uint32(first + lane)
                        value *= of_place(winds.scale, rose, order.turbine[row, rank], direction, at)
                    totals[lane] += value

    def points_yield(layouts, winds, chunk, kinds, model, order, states, points, at_winds, rotor, gain):
        """Add the yield (MW) of one more turbine at each point to gain[layout, point], see `points` in `maps`.

        After `forward`. A block of THREADS for each layout and point, a thread for each direction: most wakes do not
        reach the point, in all lanes.
        """
        shared, totals = cuda.shared.array(THREADS, types.float64), cuda.local.array(LANES, number)
        block, count = np.uint32(cuda.blockIdx.x), np.uint32(points.x.shape[1])
        layout, point = np.uint32(chunk.layout + block // count), np.uint32(block % count)
        rose, kind, total_power = layouts.rose[layout], points.kind[layout], 0.0
        if points.free[layout, point]:
            x, y = points.x[layout, point], points.y[layout, point]
            for g in range(cuda.threadIdx.x, chunk.directions, THREADS):
                direction = np.uint32(chunk.direction + g)
                row = np.uint32((layout - chunk.layout) * chunk.directions + g)
                cosine, sine = winds.cosine[rose, direction], winds.sine[rose, direction]
                along, across = -cosine * x - sine * y, sine * x - cosine * y
                for first in range(0, chunk.lanes, LANES):
                    lanes = min(LANES, chunk.lanes - first)
                    add_wakes(
                        totals,
                        first,
                        lanes,
                        layouts,
                        layout,
                        winds,
                        direction,
                        order,
                        row,
                        states,
                        points,
                        point,
                        along,
                        across,
                        rotor,
                        chunk.lanes,
                        kinds,
                        model,
                    )
                    for k in range(lanes):
                        lane, total = np.uint32(first + k), totals[k]
                        if len(at_winds.scale):
                            total /= of_place(at_winds.scale, rose, point, direction, lane)
                        total_power += power_with(at_winds, rose, point, direction, lane, kind, total, kinds, model)
        add_block(total_power, shared)
        if cuda.threadIdx.x == 0:
            gain[layout, point] += shared[0]

    return points_yield


def make_gains(formulas: Any, source_rows: TupleRows) -> Any:
    wake_at, contribution, read = formulas.wake_at, formulas.contribution, source_rows.read_record
    source = formulas.source

    def gains(layouts, winds, chunk, kinds, model, order, states, found, points, at_winds, gain):
        """Add what the farm gains (MW) from one more turbine at each point to gain[layout, point], as in `maps`.

        After `finish`. A block of THREADS for each layout and point.
        """
        shared = cuda.shared.array(THREADS, types.float64)
        block, count = np.uint32(cuda.blockIdx.x), np.uint32(points.x.shape[1])
        layout, point = np.uint32(chunk.layout) + block // count, block % count
        rose, p, turbines = layouts.rose[layout], model.parameters, layouts.standing[layout]
        kind, total_gain = points.kind[layout], 0.0
        if points.free[layout, point]:
            for k in range(cuda.threadIdx.x, chunk.directions * chunk.lanes, THREADS):
                g, lane = np.uint32(k // chunk.lanes), np.uint32(k % chunk.lanes)
                direction = np.uint32(chunk.direction + g)
                row = np.uint32((layout - chunk.layout) * chunk.directions + g)
                element = np.uint32(row * chunk.lanes + lane)
                cosine, sine = winds.cosine[rose, direction], winds.sine[rose, direction]
                x, y = points.x[layout, point], points.y[layout, point]
                along, across = -cosine * x - sine * y, sine * x - cosine * y
                total, upstream = 0.0, np.uint32(0)
                while upstream < turbines and order.place[row, upstream, DOWNWIND] <= along:
                    downwind, crosswind = way_to_point(order, row, upstream, points, layout, point, along, across)
                    if reaches_place(downwind, crosswind, kind, model):
                        seen = rotor_at(downwind, crosswind, order, row, upstream, points, layout, point, 1.0, kinds)
                        wake = wake_at(seen, read(states.sources, element, upstream, 0), p)
                        value = contribution(wake, p, model.table)
                        if len(winds.scale):
                            value *= of_place(winds.scale, rose, order.turbine[row, upstream], direction, lane)
                        total += value
                    upstream = np.uint32(upstream + 1)
                own_scale = of_place(at_winds.scale, rose, point, direction, lane) if len(at_winds.scale) else 1.0
                total /= own_scale
                free = of_place(at_winds.speed, rose, point, direction, lane)
                turbulence = of_place(at_winds.turbulence_intensity, rose, point, direction, lane)
                speed = effective_speed(free, total, model.squared)
                power, thrust = power_and_thrust(speed, kind, kinds.curves)
                if len(at_winds.density):
                    density = of_place(at_winds.density, rose, point, direction, lane)
                    power, thrust = power * density, thrust * density
                total_gain += power * of_place(at_winds.weight, rose, point, direction, lane)
                made = source(thrust, speed / free, kinds.diameter[kind], turbulence, p)
                for each in range(upstream, turbines):
                    rank = np.uint32(each)
                    i = order.turbine[row, rank]
                    if i >= layouts.farm[layout]:
                        continue
                    downwind, crosswind = way_to_point(order, row, rank, points, layout, point, along, across)
                    behind = layouts.kind[layout, i]
                    if reaches_place(-downwind, crosswind, behind, model):
                        seen = rotor_behind(
                            -downwind, crosswind, order, row, rank, points, layout, point, behind, kinds
                        )
                        value = contribution(wake_at(seen, made, p), p, model.table) * own_scale
                        if len(winds.scale):
                            value /= of_place(winds.scale, rose, i, direction, lane)
                        total = states.totals[element, rank] + value
                        total_gain += power_with(winds, rose, i, direction, lane, behind, total, kinds, model)
                        total_gain -= found.power[element, i]
        add_block(total_gain, shared)
        if cuda.threadIdx.x == 0:
            gain[layout, point] += shared[0]

    return gains
