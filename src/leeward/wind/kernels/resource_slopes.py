"""Derivatives with respect to positions, through the free wind of `resource`."""

import math

import numpy as np

from leeward.wind.kernels.compile import allocating_inline, formula
from leeward.wind.kernels.resource import (
    STEPS,
    cell_at,
    fill_sectors,
    mixed,
    new_sectors,
    shear_factor,
    slopes_in,
    speed_factor,
    value_in,
)


@formula
def clear_sectors(sectors):
    sectors.frequency[:] = 0.0
    sectors.weibull_a[:] = 0.0
    sectors.weibull_k[:] = 0.0
    sectors.cumulated[:] = 0.0
    sectors.speed_up[:] = 0.0
    sectors.turbulence[:] = 0.0
    sectors.density[:] = 0.0


@formula
def unmix(adjoint, sector, next_sector, share, by_value):
    """Add the derivative with respect to the result of `mixed` to those with respect to the values."""
    last = len(adjoint) - 1
    adjoint[min(sector, last)] += (1.0 - share) * by_value
    adjoint[min(next_sector, last)] += share * by_value


@formula
def add_cumulated(adjoint, rows, g, edge, by_value):
    """Add the derivative with respect to `cumulated_at` to those with respect to the table."""
    bins = rows.bins
    column = min(int(rows.edges[g, edge]), bins - 1)
    inside = rows.edges[g, edge] - column
    here, there = rows.sector[g] * (bins + 1) + column, rows.next_sector[g] * (bins + 1) + column
    low, high = (1.0 - inside) * by_value, inside * by_value
    adjoint[here] += (1.0 - rows.share[g]) * low
    adjoint[there] += rows.share[g] * low
    adjoint[here + 1] += (1.0 - rows.share[g]) * high
    adjoint[there + 1] += rows.share[g] * high


@formula
def weibull_slopes(rows, g, factor, sectors, by_weight):
    """Return the derivatives with respect to frequency, scale, shape and the factor of the speed.

    by_weight: those with respect to the weights of one place and direction, shape (lanes,).
    """
    lanes = len(by_weight)
    sector, after, share = rows.sector[g], rows.next_sector[g], rows.share[g]
    frequency = mixed(sectors.frequency, sector, after, share)
    shape, scale = mixed(sectors.weibull_k, sector, after, share), mixed(sectors.weibull_a, sector, after, share)
    offset = -math.log(scale)
    if rows.local_bins:
        offset += math.log(factor)
    by_frequency, by_shape, by_log = 0.0, 0.0, 0.0
    for edge in range(lanes + 1):
        # the share of the time above the edge is exp(-z), z = exp(shape * distance)
        up = rows.factor[g, edge] * by_weight[edge] if edge < lanes else 0.0
        down = rows.factor[g, edge - 1] * by_weight[edge - 1] if edge > 0 else 0.0
        distance = rows.edges[g, edge] + offset
        z = math.exp(shape * distance)
        above = math.exp(-z)
        by_frequency += (up - down) * above
        if z > 0.0 and above > 0.0:
            by_z = -(up - down) * frequency * above
            by_shape += by_z * z * distance
            by_log += by_z * z * shape
    return by_frequency, -by_log / scale, by_shape, by_log / factor if rows.local_bins else 0.0


@formula
def add_weight_slopes(rows, g, factor, sectors, by_weight, adjoints):
    """Add the derivatives with respect to the values of the sectors, from those with respect to the weights (lanes,).

    Return the derivative with respect to the factor of the speed.
    """
    sector, after, share = rows.sector[g], rows.next_sector[g], rows.share[g]
    if len(sectors.weibull_a) == 0:
        for lane in range(len(by_weight)):
            by_value = rows.factor[g, lane] * by_weight[lane]
            add_cumulated(adjoints.cumulated, rows, g, lane + 1, by_value)
            add_cumulated(adjoints.cumulated, rows, g, lane, -by_value)
        return 0.0
    by_frequency, by_scale, by_shape, by_factor = weibull_slopes(rows, g, factor, sectors, by_weight)
    unmix(adjoints.frequency, sector, after, share, by_frequency)
    unmix(adjoints.weibull_k, sector, after, share, by_shape)
    unmix(adjoints.weibull_a, sector, after, share, by_scale)
    return by_factor


@formula
def speed_slopes(field, rows, g, cell, height, sectors, by_speed, by_factor):
    """Return the derivatives of one direction with respect to x and y of a series, and to the speed-up.

    by_speed: those with respect to the speeds, shape (lanes,), or empty. by_factor: the one with respect to the factor
    of the speed, so far.
    """
    by_x, by_y = 0.0, 0.0
    if len(by_speed):
        if field.series_speed.shape[3]:
            by_x, by_y = slopes_in(field.series_speed, cell, rows.step[g])
            factor = speed_factor(rows, g, height, sectors)
            by_factor += by_speed[0] * value_in(field.series_speed, cell, rows.step[g])
            by_x, by_y = by_x * factor * by_speed[0], by_y * factor * by_speed[0]
        else:
            for lane in range(len(by_speed)):
                by_factor += by_speed[lane] * rows.speed[g, lane]
    return by_x, by_y, by_factor * shear_factor(rows, g, height) if len(sectors.speed_up) else 0.0


@formula
def add_speed_slopes(field, rows, g, cell, height, sectors, by_speed, by_factor, adjoints):
    """Add the derivatives of one direction with respect to the speed-up; see `speed_slopes`.

    Return the derivatives with respect to x and y of a series.
    """
    by_x, by_y, by_speed_up = speed_slopes(field, rows, g, cell, height, sectors, by_speed, by_factor)
    if len(sectors.speed_up):
        unmix(adjoints.speed_up, rows.sector[g], rows.next_sector[g], rows.share[g], by_speed_up)
    return by_x, by_y


@formula
def turbulence_slopes(field, rows, g, cell, by_turbulence):
    """Return the derivatives of one direction with respect to x and y of a series, and to the turbulence intensity.

    by_turbulence: those with respect to that of each lane, shape (lanes,) or empty.
    """
    by_x, by_y, total = 0.0, 0.0, 0.0
    for lane in range(len(by_turbulence)):
        total += by_turbulence[lane] * rows.turbulence_factor[g, lane]
    if len(by_turbulence) and field.series_turbulence.shape[3]:
        by_x, by_y = slopes_in(field.series_turbulence, cell, rows.step[g])
        by_x, by_y = by_x * total, by_y * total
    return by_x, by_y, total


@formula
def total_of(values):
    """Return the sum of an array, added one by one."""
    total = 0.0
    for lane in range(len(values)):
        total += values[lane]
    return total


@formula
def add_other_slopes(field, rows, g, cell, by_turbulence, by_density, adjoints):
    """Add the derivatives of one direction with respect to turbulence and air density, shape (lanes,) or empty.

    Return the derivatives with respect to x and y of a series of turbulence.
    """
    sector, after, share = rows.smooth_sector[g], rows.smooth_next[g], rows.smooth_share[g]
    by_x, by_y, total = turbulence_slopes(field, rows, g, cell, by_turbulence)
    if len(by_turbulence) and not field.series_turbulence.shape[3]:
        unmix(adjoints.turbulence, sector, after, share, total)
    if len(by_density):
        unmix(adjoints.density, sector, after, share, total_of(by_density))
    return by_x, by_y


@formula
def add_sector_slopes(values, cell, adjoint, by_x, by_y):
    """Return the derivatives with respect to x and y, with those through the values of all sectors added."""
    if values.shape[0] > 1 or values.shape[1] > 1:
        for index in range(len(adjoint)):
            if adjoint[index] != 0.0:
                x, y = slopes_in(values, cell, index)
                by_x += adjoint[index] * x
                by_y += adjoint[index] * y
    return by_x, by_y


@allocating_inline
def lanes_in(values, i, g, lanes):
    """Return the values of one place and direction, of shape (elements,) in the second axis; empty without rows."""
    return values[i, g * lanes : (g + 1) * lanes] if len(values) else values.reshape(values.size)


def position_slopes(field, rows, begin, end, x, y, height, adjoints, by_x, by_y):
    """Add to by_x and by_y (places,) the derivatives of a sum with respect to the positions, through the free wind.

    adjoints: the derivatives of the sum with respect to the free wind in the directions begin .. end, see `Adjoints`.
    """
    sectors, by_sector = new_sectors(field), new_sectors(field)
    lanes = rows.speed.shape[1]
    together = np.empty(lanes)
    for i in range(len(x)):
        cell = cell_at(field, x[i], y[i], height[i])
        fill_sectors(field, cell, sectors)
        clear_sectors(by_sector)
        together[:] = 0.0
        for g in range(end - begin):
            at = begin + g
            by_factor = 0.0
            factor = speed_factor(rows, at, height[i], sectors)
            if adjoints.weight.size:
                # directions with the same weights are added up first
                for lane in range(lanes):
                    together[lane] += adjoints.weight[i, g * lanes + lane]
                if g == end - begin - 1 or not rows.repeats[at + 1]:
                    by_factor = add_weight_slopes(rows, at, factor, sectors, together, by_sector)
                    together[:] = 0.0
            by_speed = lanes_in(adjoints.speed, i, g, lanes)
            east, north = add_speed_slopes(field, rows, at, cell, height[i], sectors, by_speed, by_factor, by_sector)
            by_x[i] += east
            by_y[i] += north
            by_turbulence, by_density = (
                lanes_in(adjoints.turbulence, i, g, lanes),
                lanes_in(adjoints.density, i, g, lanes),
            )
            east, north = add_other_slopes(field, rows, at, cell, by_turbulence, by_density, by_sector)
            by_x[i] += east
            by_y[i] += north
        east, north = add_sector_slopes(field.frequency, cell, by_sector.frequency, 0.0, 0.0)
        east, north = add_sector_slopes(field.weibull_a, cell, by_sector.weibull_a, east, north)
        east, north = add_sector_slopes(field.weibull_k, cell, by_sector.weibull_k, east, north)
        east, north = add_sector_slopes(field.cumulated, cell, by_sector.cumulated, east, north)
        east, north = add_sector_slopes(field.speed_up, cell, by_sector.speed_up, east, north)
        east, north = add_sector_slopes(field.turbulence, cell, by_sector.turbulence, east, north)
        east, north = add_sector_slopes(field.density, cell, by_sector.density, east, north)
        by_x[i] += east
        by_y[i] += north


@formula
def ground_slopes(field, x, y):
    """Return the elevation of the terrain at a point (m), and its slopes to the east and north."""
    cell = cell_at(field, x, y, 0.0)
    east, north = slopes_in(field.elevation, cell, 0)
    return value_in(field.elevation, cell, 0), east, north


@formula
def stretch_slopes_between(field, x, y, to_x, to_y, by_stretch):
    """Return the derivatives of `stretch_between` with respect to x, y, to_x and to_y, times `by_stretch`."""
    east, north = to_x - x, to_y - y
    distance = math.sqrt(east * east + north * north)
    step = distance / STEPS
    before, slope_x, slope_y = ground_slopes(field, x, y)
    length, by_step, last_rise = 0.0, 0.0, 0.0
    begin_x, begin_y, end_x, end_y = 0.0, 0.0, 0.0, 0.0
    for k in range(1, STEPS + 2):
        # the rise of the step after point k - 1, relative to its length
        rise, height, next_x, next_y = 0.0, before, slope_x, slope_y
        if k <= STEPS:
            share = k / STEPS
            height, next_x, next_y = ground_slopes(field, x + share * east, y + share * north)
            part = math.sqrt(step * step + (height - before) ** 2)
            length += part
            by_step += step / part
            rise = (height - before) / part
        by_height, share = last_rise - rise, (k - 1) / STEPS
        end_x += by_height * share * slope_x
        end_y += by_height * share * slope_y
        begin_x += by_height * (1.0 - share) * slope_x
        begin_y += by_height * (1.0 - share) * slope_y
        before, slope_x, slope_y, last_rise = height, next_x, next_y, rise
    by_distance = (by_step / STEPS - length / distance) / distance
    factor = by_stretch / distance
    return (
        factor * begin_x - by_stretch * by_distance * east / distance,
        factor * begin_y - by_stretch * by_distance * north / distance,
        factor * end_x + by_stretch * by_distance * east / distance,
        factor * end_y + by_stretch * by_distance * north / distance,
    )


def stretch_slopes(field, x, y, by_stretch, by_x, by_y):
    """Add to by_x and by_y (turbines,) the derivatives through `stretch` in `Places`. by_stretch: see `Adjoints`."""
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            total = by_stretch[i, j] + by_stretch[j, i]
            if total != 0.0:
                begin_x, begin_y, end_x, end_y = stretch_slopes_between(field, x[i], y[i], x[j], y[j], total)
                by_x[j] += end_x
                by_y[j] += end_y
                by_x[i] += begin_x
                by_y[i] += begin_y
