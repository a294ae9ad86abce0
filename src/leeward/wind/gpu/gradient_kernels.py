"""The GPU's loop of the gradient: from power back to positions and free wind, as in `leeward.wind.kernels.gradient`."""

from typing import Any

import numpy as np
from numba import cuda

from leeward.wind.gpu.data import BY_X, BY_Y, SHARE, SUMS, TEAM, TEAMS, WARP
from leeward.wind.gpu.kernels import (
    element_of,
    first_pair,
    most_turbines,
    of_place,
    rank_of,
    rotor_of,
    sum_of_team,
)
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.gradient import along_axis
from leeward.wind.kernels.numerics import effective_speed, effective_speed_slope, power_and_thrust
from leeward.wind.kernels.rows import TupleRows


def make_backward(formulas: Any, source_rows: TupleRows, number: Any) -> Any:
    wake_slopes, contribution_slopes = formulas.wake_slopes, formulas.contribution_slopes
    read, fields = source_rows.read_record, source_rows.size

    @formula
    def slope_along(states, element, upstream, part, rotor, p, table):
        """Return the derivative of a contribution along that part of `States.sources`."""
        by = read(states.sources, element, upstream, part * fields)
        wake = wake_slopes(rotor, read(states.sources, element, upstream, 0), by, p)
        return contribution_slopes(wake, rotor, p, table).by_source_speed

    @formula
    def add_free_slopes(
        winds,
        rose,
        j,
        direction,
        lane,
        element,
        upstream,
        above,
        above_image,
        rotor,
        slopes,
        factor,
        model,
        states,
        free_slopes,
    ):
        """Add the effect of a wake on the derivatives with respect to the free wind and the elevation at its source j.

        Return the derivative with respect to the elevation of the turbine that it reaches.
        """
        if len(winds.scale) and len(free_slopes.speed):
            free_there = of_place(winds.speed, rose, j, direction, lane)
            exponent = 2.0 if model.squared else 1.0
            free_slopes.speed[element, j] += factor * exponent * slopes.value / free_there
        if model.uses_ratio and len(free_slopes.speed):
            along = slope_along(states, element, upstream, 2, rotor, model.parameters, model.table)
            free_slopes.speed[element, j] += factor * along
        if len(free_slopes.turbulence):
            along = slope_along(states, element, upstream, 3, rotor, model.parameters, model.table)
            free_slopes.turbulence[element, j] += factor * along
        if len(free_slopes.density):
            along = slope_along(states, element, upstream, 4, rotor, model.parameters, model.table)
            free_slopes.density[element, j] += factor * along
        if len(free_slopes.ground):
            by_height = factor * (
                slopes.by_distance * along_axis(above, rotor.distance)
                + slopes.by_mirror_distance * along_axis(above_image, rotor.mirror_distance)
            )
            free_slopes.ground[element, j] -= by_height
            return by_height
        return 0.0

    @formula
    def begin_free_slopes(
        layouts, layout, winds, rose, i, direction, lane, element, kind, kinds, speed, share, free_slopes
    ):
        """Add the derivatives of the turbine's own power with respect to the free wind."""
        weight, power = of_place(winds.weight, rose, i, direction, lane), power_and_thrust(speed, kind, kinds.curves)[0]
        density = of_place(winds.density, rose, i, direction, lane) if len(winds.density) else 1.0
        counted = 1.0 if i < layouts.farm[layout] else 0.0
        free_slopes.weight[element, i] += counted * power * density
        if len(free_slopes.density):
            free_slopes.density[element, i] += counted * weight * power
        if len(free_slopes.speed):
            free = of_place(winds.speed, rose, i, direction, lane)
            free_slopes.speed[element, i] += share * (1.0 if len(winds.scale) else speed / free)

    def backward(layouts, winds, chunk, kinds, model, order, states, found, free_slopes):
        """Compute the derivatives of the farm's power, from the most downstream turbine on. TEAM threads an element.

        They are those in a free wind that stays as it is at each turbine. Add those with respect to it to
        `free_slopes`, where it has elements. After `finish`; see `forward`.
        """
        shared = cuda.shared.array(SUMS, number)
        thread = np.uint32(cuda.threadIdx.x)
        member, team = np.uint32(thread % TEAM), np.uint32(thread // TEAM)
        element, row, layout, direction, lane = element_of(cuda.blockIdx.x * TEAMS + team, chunk)
        turbines, rose, p, adjoints = 0, np.uint32(0), model.parameters, states.adjoints
        cosine, sine = 0.0, 0.0
        if element < chunk.layouts * chunk.directions * chunk.lanes:
            turbines, rose = layouts.standing[layout], layouts.rose[layout]
            cosine, sine = winds.cosine[rose, direction], winds.sine[rose, direction]
        most = most_turbines(layouts, chunk, cuda.blockIdx.x)
        for back in range(most):
            each = most - 1 - back
            rank = np.uint32(each)
            by_x, by_y, by_ground = 0.0, 0.0, 0.0
            if each < turbines:
                here = rank_of(layouts, layout, order, row, rank, kinds)
                total = states.totals[element, rank]
                free = of_place(winds.speed, rose, here.i, direction, lane)
                share = adjoints[element, rank, SHARE]
                if len(free_slopes.weight) and member == 0:
                    speed, kind = effective_speed(free, total, model.squared), layouts.kind[layout, here.i]
                    begin_free_slopes(
                        layouts,
                        layout,
                        winds,
                        rose,
                        here.i,
                        direction,
                        lane,
                        element,
                        kind,
                        kinds,
                        speed,
                        share,
                        free_slopes,
                    )
                share *= effective_speed_slope(free, total, model.squared)
                first = first_pair(each)
                for e in range(first + member, first + order.count[row, rank], TEAM):
                    upstream = order.source[row, np.uint32(e)]
                    rotor, across, above, above_image = rotor_of(here, layouts, layout, order, row, upstream)
                    by_speed = read(states.sources, element, upstream, fields)
                    wake = wake_slopes(rotor, read(states.sources, element, upstream, 0), by_speed, p)
                    slopes = contribution_slopes(wake, rotor, p, model.table)
                    factor = share
                    if len(winds.scale):
                        j = order.turbine[row, upstream]
                        factor *= of_place(winds.scale, rose, j, direction, lane)
                        factor /= of_place(winds.scale, rose, here.i, direction, lane)
                    downwind = factor * slopes.by_downwind
                    crosswind = factor * (
                        slopes.by_distance * along_axis(across, rotor.distance)
                        + slopes.by_mirror_distance * along_axis(across, rotor.mirror_distance)
                    )
                    if len(free_slopes.weight):
                        j = order.turbine[row, upstream]
                        by_ground += add_free_slopes(
                            winds,
                            rose,
                            j,
                            direction,
                            lane,
                            element,
                            upstream,
                            above,
                            above_image,
                            rotor,
                            slopes,
                            factor,
                            model,
                            states,
                            free_slopes,
                        )
                        if len(free_slopes.stretch):
                            stretch = layouts.stretch[layout, here.i, j]
                            by_stretch = downwind * rotor.downwind / stretch
                            by_x += by_stretch * free_slopes.stretch[layout, here.i, j, 0]
                            by_y += by_stretch * free_slopes.stretch[layout, here.i, j, 1]
                            adjoints[element, upstream, BY_X] += by_stretch * free_slopes.stretch[layout, here.i, j, 2]
                            adjoints[element, upstream, BY_Y] += by_stretch * free_slopes.stretch[layout, here.i, j, 3]
                            downwind *= stretch
                    x, y = crosswind * sine - downwind * cosine, -crosswind * cosine - downwind * sine
                    by_x += x
                    by_y += y
                    # no other thread writes here now: the wakes of a rank have different sources
                    adjoints[element, upstream, SHARE] += factor * slopes.by_source_speed
                    adjoints[element, upstream, BY_X] -= x
                    adjoints[element, upstream, BY_Y] -= y
            shared[thread], shared[WARP + thread], shared[2 * WARP + thread] = by_x, by_y, by_ground
            cuda.syncthreads()
            if each < turbines and member == 0:
                i, first = order.turbine[row, rank], np.uint32(thread - member)
                found.by_x[element, i] = adjoints[element, rank, BY_X] + sum_of_team(shared, first)
                found.by_y[element, i] = adjoints[element, rank, BY_Y] + sum_of_team(shared, np.uint32(WARP + first))
                if len(free_slopes.ground):
                    free_slopes.ground[element, i] += sum_of_team(shared, np.uint32(2 * WARP + first))
            cuda.syncthreads()

    return backward
