"""The loops of the GPU over places of wind that varies: as in `kernels.resource`, with a thread for each direction.

The derivatives of a sum over the wind with respect to positions need no sums over sectors: as interpolation is linear,
the derivative of a value between two sectors is that between the derivatives.
"""

from typing import Any, NamedTuple

from numba import cuda

from leeward.wind.gpu.kernels import of_place
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.data import SectorValues
from leeward.wind.kernels.numerics import power_and_thrust, power_and_thrust_slopes
from leeward.wind.kernels.resource import (
    cell_at,
    cumulated_at,
    fill_density,
    fill_speeds,
    fill_turbulence,
    fill_weights,
    mixed,
    slopes_in,
    speed_factor,
    stretch_between,
    value_in,
)
from leeward.wind.kernels.resource_slopes import (
    ground_slopes,
    speed_slopes,
    stretch_slopes_between,
    total_of,
    turbulence_slopes,
    weibull_slopes,
)


class FieldDevice(NamedTuple):
    """The kernels that are started on the GPU; the functions below document their arguments."""

    locate_turbines: Any
    locate_points: Any
    fill_places: Any
    fill_terrain: Any
    fill_stretch: Any
    fill_stretch_at: Any
    fill_stretch_slopes: Any
    find_longest: Any
    fill_winds: Any
    begin_free: Any
    add_slopes: Any
    draw: Any


def locate_turbines(layouts, origin_x, origin_y, kinds, count, located):
    """Fill in the places of turbines. origin_x, origin_y: of each layout, m. A thread for each layout and turbine."""
    at = cuda.grid(1)
    layout, i = at // layouts.x.shape[1], at % layouts.x.shape[1]
    if layout >= count:
        return
    located.x[layout, i] = origin_x[layout] + layouts.x[layout, i]
    located.y[layout, i] = origin_y[layout] + layouts.y[layout, i]
    located.height[layout, i] = kinds.hub_height[layouts.kind[layout, i]]
    if i == 0:
        located.count[layout] = layouts.standing[layout]


def locate_points(points, origin_x, origin_y, kinds, count, located):
    """Fill in the places of points, as `locate_turbines`. A thread for each layout and point."""
    at = cuda.grid(1)
    layout, i = at // points.x.shape[1], at % points.x.shape[1]
    if layout >= count:
        return
    located.x[layout, i] = origin_x[layout] + points.x[layout, i]
    located.y[layout, i] = origin_y[layout] + points.y[layout, i]
    located.height[layout, i] = kinds.hub_height[points.kind[layout]]
    if i == 0:
        located.count[layout] = points.x.shape[1]


@formula
def fill_value(values, cell, layout, i, index, found, by_x, by_y):
    """Fill in a value of a sector and, where there is room, its derivatives."""
    if index < values.shape[3]:
        found[layout, i, index] = value_in(values, cell, index)
        if len(by_x):
            east, north = slopes_in(values, cell, index)
            by_x[layout, i, index] = east
            by_y[layout, i, index] = north


def fill_places(field, located, count, most, sectors, by_x, by_y):
    """Fill in the values of all sectors at each place. most: sectors of a quantity.

    A thread for each layout, place and sector.
    """
    at, places = cuda.grid(1), located.x.shape[1]
    index, i, layout = at % most, at // most % places, at // most // places
    if layout >= count or i >= located.count[layout]:
        return
    cell = cell_at(field, located.x[layout, i], located.y[layout, i], located.height[layout, i])
    fill_value(field.frequency, cell, layout, i, index, sectors.frequency, by_x.frequency, by_y.frequency)
    fill_value(field.weibull_a, cell, layout, i, index, sectors.weibull_a, by_x.weibull_a, by_y.weibull_a)
    fill_value(field.weibull_k, cell, layout, i, index, sectors.weibull_k, by_x.weibull_k, by_y.weibull_k)
    fill_value(field.cumulated, cell, layout, i, index, sectors.cumulated, by_x.cumulated, by_y.cumulated)
    fill_value(field.speed_up, cell, layout, i, index, sectors.speed_up, by_x.speed_up, by_y.speed_up)
    fill_value(field.turbulence, cell, layout, i, index, sectors.turbulence, by_x.turbulence, by_y.turbulence)
    fill_value(field.density, cell, layout, i, index, sectors.density, by_x.density, by_y.density)


def fill_terrain(field, located, count, ground, east, north):
    """Fill in the elevation of the terrain (m) at each place and, where there is room, its slopes.

    A thread for each layout and place.
    """
    at, places = cuda.grid(1), located.x.shape[1]
    layout, i = at // places, at % places
    if layout >= count or i >= located.count[layout]:
        return
    height, by_x, by_y = ground_slopes(field, located.x[layout, i], located.y[layout, i])
    ground[layout, i] = height
    if len(east):
        east[layout, i] = by_x
        north[layout, i] = by_y


@formula
def pair_of(at, places):
    """Return layout and indices of a pair; there are places x (places // 2) numbers for each layout.

    The first index is the lower one. Of an even number of places, the last ones occur twice.
    """
    half = places // 2
    i = at % places
    j = (i + 1 + at // places % half) % places
    return at // places // half, min(i, j), max(i, j)


def fill_stretch(field, located, count, stretch):
    """Fill in `stretch` of `Layouts`. A thread for each number of `pair_of`."""
    at, places = cuda.grid(1), located.x.shape[1]
    if places < 2:
        return
    layout, i, j = pair_of(at, places)
    if layout >= count or j >= located.count[layout]:
        return
    x, y = located.x, located.y
    value = stretch_between(field, x[layout, i], y[layout, i], x[layout, j], y[layout, j])
    stretch[layout, i, j] = value
    stretch[layout, j, i] = value


def fill_stretch_at(field, located, turbines, count, stretch):
    """Fill in `stretch` of `Points`. turbines: their places. A thread for each layout, point and turbine."""
    at, points, most = cuda.grid(1), located.x.shape[1], turbines.x.shape[1]
    j, i, layout = at % most, at // most % points, at // most // points
    if layout >= count or i >= located.count[layout] or j >= turbines.count[layout]:
        return
    stretch[layout, i, j] = stretch_between(
        field, located.x[layout, i], located.y[layout, i], turbines.x[layout, j], turbines.y[layout, j]
    )


def fill_stretch_slopes(field, located, count, slopes):
    """Fill in `stretch` of `Free`. A thread for each number of `pair_of`."""
    at, places = cuda.grid(1), located.x.shape[1]
    if places < 2:
        return
    layout, i, j = pair_of(at, places)
    if layout >= count or j >= located.count[layout]:
        return
    x, y, to_x, to_y = located.x[layout, i], located.y[layout, i], located.x[layout, j], located.y[layout, j]
    begin_x, begin_y, end_x, end_y = 0.0, 0.0, 0.0, 0.0
    if x != to_x or y != to_y:
        begin_x, begin_y, end_x, end_y = stretch_slopes_between(field, x, y, to_x, to_y, 1.0)
    slopes[layout, i, j, 0], slopes[layout, i, j, 1] = begin_x, begin_y
    slopes[layout, i, j, 2], slopes[layout, i, j, 3] = end_x, end_y
    slopes[layout, j, i, 0], slopes[layout, j, i, 1] = end_x, end_y
    slopes[layout, j, i, 2], slopes[layout, j, i, 3] = begin_x, begin_y


def find_longest(stretch, located, turbines, count, is_square, longest):
    """Fill in the largest stretch from each place to any turbine, at least 1. A thread for each layout and place.

    is_square: True if the places are the turbines.
    """
    at, places = cuda.grid(1), located.x.shape[1]
    layout, i = at // places, at % places
    if layout >= count:
        return
    most = 1.0
    if i < located.count[layout]:
        for j in range(turbines.count[layout]):
            if not (is_square and i == j):
                most = max(most, stretch[layout, i, j])
    longest[layout, i] = most


@formula
def sectors_of(sectors, layout, i):
    """Return the values of all sectors at one place."""
    return SectorValues(
        sectors.frequency[layout, i],
        sectors.weibull_a[layout, i],
        sectors.weibull_k[layout, i],
        sectors.cumulated[layout, i],
        sectors.speed_up[layout, i],
        sectors.turbulence[layout, i],
        sectors.density[layout, i],
    )


@formula
def copy_lanes(reference, rose, direction, winds, layout, g):
    for lane in range(reference.shape[3]):
        winds[layout, 0, g, lane] = reference[rose, 0, direction, lane]


def fill_winds(field, rows, reference, roses, varies, located, sectors, count, begin, directions, winds):
    """Fill in the free wind at each place in some directions, from `begin` on.

    A thread for each layout, place and direction.
    """
    at, places = cuda.grid(1), located.x.shape[1]
    g, i, layout = at % directions, at // directions % places, at // directions // places
    if layout >= count or i >= max(1, located.count[layout]):
        return
    rose, direction = roses[layout], begin + g
    if i == 0:
        winds.cosine[layout, g] = reference.cosine[rose, direction]
        winds.sine[layout, g] = reference.sine[rose, direction]
        if not varies.speed:
            copy_lanes(reference.speed, rose, direction, winds.speed, layout, g)
        if not varies.weight:
            copy_lanes(reference.weight, rose, direction, winds.weight, layout, g)
        if not varies.turbulence:
            copy_lanes(reference.turbulence_intensity, rose, direction, winds.turbulence_intensity, layout, g)
    if i >= located.count[layout]:
        return
    row, height = rose * reference.cosine.shape[1] + direction, located.height[layout, i]
    cell = cell_at(field, located.x[layout, i], located.y[layout, i], height)
    here = sectors_of(sectors, layout, i)
    factor = speed_factor(rows, row, height, here)
    if varies.speed:
        fill_speeds(field, rows, row, factor, cell, winds.speed[layout, i, g])
        if varies.is_squared:
            for lane in range(winds.scale.shape[3]):
                speed = winds.speed[layout, i, g, lane]
                winds.scale[layout, i, g, lane] = speed * speed
    if varies.weight:
        fill_weights(rows, row, factor, here, winds.weight[layout, i, g])
    if varies.turbulence:
        fill_turbulence(field, rows, row, cell, here, winds.turbulence_intensity[layout, i, g])
    if len(winds.density):
        fill_density(rows, row, here, winds.density[layout, i, g])


def begin_free(layouts, winds, chunk, kinds, factor, is_alone, found, free_slopes):
    """Add the power without wakes, times a factor, to `found.power`, and start `free_slopes` with its derivatives.

    Only the farm's turbines count. is_alone: True replaces the results in `found`. A thread for each turbine of each
    element.
    """
    at, turbines = cuda.grid(1), layouts.x.shape[1]
    element, i = at // turbines, at % turbines
    if element >= chunk.layouts * chunk.directions * chunk.lanes:
        return
    row, lane = element // chunk.lanes, element % chunk.lanes
    layout = chunk.layout + row // chunk.directions
    direction = chunk.direction + row % chunk.directions
    if i >= layouts.standing[layout]:
        return
    rose, kind = layouts.rose[layout], layouts.kind[layout, i]
    share = factor if i < layouts.farm[layout] else 0.0
    free, weight = of_place(winds.speed, rose, i, direction, lane), of_place(winds.weight, rose, i, direction, lane)
    density = of_place(winds.density, rose, i, direction, lane) if len(winds.density) else 1.0
    power = power_and_thrust(free, kind, kinds.curves)[0]
    if is_alone:
        found.power[element, i] = share * (weight * power * density)
        if len(found.by_x):
            found.by_x[element, i] = 0.0
            found.by_y[element, i] = 0.0
    elif share != 0.0:
        found.power[element, i] += share * (weight * power * density)
    if len(free_slopes.weight):
        free_slopes.weight[element, i] = share * power * density
    if len(free_slopes.speed):
        slope = power_and_thrust_slopes(free, kind, kinds.curves)[0]
        free_slopes.speed[element, i] = share * weight * slope * density
    if len(free_slopes.turbulence):
        free_slopes.turbulence[element, i] = 0.0
    if len(free_slopes.density):
        free_slopes.density[element, i] = share * weight * power
    if len(free_slopes.ground):
        free_slopes.ground[element, i] = 0.0


@formula
def weight_slopes(rows, row, factor, here, by_x, by_y, by_weight):
    """Return the derivatives by x and y through the weights of one direction, and the one by the factor of the speed.

    here, by_x, by_y: values of the sectors and their derivatives. by_weight: those by the weights, shape (lanes,).
    """
    sector, after, share = rows.sector[row], rows.next_sector[row], rows.share[row]
    east, north = 0.0, 0.0
    if len(here.weibull_a):
        by_frequency, by_scale, by_shape, by_factor = weibull_slopes(rows, row, factor, here, by_weight)
        east += by_frequency * mixed(by_x.frequency, sector, after, share)
        east += by_scale * mixed(by_x.weibull_a, sector, after, share)
        east += by_shape * mixed(by_x.weibull_k, sector, after, share)
        north += by_frequency * mixed(by_y.frequency, sector, after, share)
        north += by_scale * mixed(by_y.weibull_a, sector, after, share)
        north += by_shape * mixed(by_y.weibull_k, sector, after, share)
        return east, north, by_factor
    for lane in range(len(by_weight)):
        by_value = rows.factor[row, lane] * by_weight[lane]
        below, above = cumulated_at(by_x.cumulated, rows, row, lane), cumulated_at(by_x.cumulated, rows, row, lane + 1)
        east += by_value * (above - below)
        below, above = cumulated_at(by_y.cumulated, rows, row, lane), cumulated_at(by_y.cumulated, rows, row, lane + 1)
        north += by_value * (above - below)
    return east, north, 0.0


@formula
def other_slopes(field, rows, row, cell, by_x, by_y, by_turbulence, by_density):
    """Return the derivatives by x and y through turbulence and air density, from those by them, shape (lanes,)."""
    sector, after, share = rows.smooth_sector[row], rows.smooth_next[row], rows.smooth_share[row]
    east, north, total = turbulence_slopes(field, rows, row, cell, by_turbulence)
    if len(by_turbulence) and not field.series_turbulence.shape[3]:
        east += total * mixed(by_x.turbulence, sector, after, share)
        north += total * mixed(by_y.turbulence, sector, after, share)
    if len(by_density):
        total = total_of(by_density)
        east += total * mixed(by_x.density, sector, after, share)
        north += total * mixed(by_y.density, sector, after, share)
    return east, north


def add_slopes(field, rows, rose_directions, roses, varies, local, chunk, begin, terrain, free_slopes, found):
    """Add the derivatives of each row with respect to positions, through the free wind, to `found`.

    They go to the first element of the row. After `backward`. begin: the first direction of the chunk in the roses,
    which have `rose_directions`. A thread for each turbine of each row.
    """
    located = local.located
    at, turbines = cuda.grid(1), located.x.shape[1]
    i, g, layout = at % turbines, at // turbines % chunk.directions, at // turbines // chunk.directions
    if layout >= chunk.layouts or i >= located.count[layout]:
        return
    lanes, height = chunk.lanes, located.height[layout, i]
    first = (layout * chunk.directions + g) * lanes
    end = first + lanes
    row = roses[layout] * rose_directions + begin + g
    cell = cell_at(field, located.x[layout, i], located.y[layout, i], height)
    here = sectors_of(local.sectors, layout, i)
    by_x, by_y = sectors_of(local.by_x, layout, i), sectors_of(local.by_y, layout, i)
    factor = speed_factor(rows, row, height, here)
    east, north, by_factor = 0.0, 0.0, 0.0
    if varies.weight:
        by_weight = free_slopes.weight[first:end, i]
        east, north, by_factor = weight_slopes(rows, row, factor, here, by_x, by_y, by_weight)
    by_speed = free_slopes.speed[first:end, i]
    more_x, more_y, by_speed_up = speed_slopes(field, rows, row, cell, height, here, by_speed, by_factor)
    if len(here.speed_up):
        sector, after, share = rows.sector[row], rows.next_sector[row], rows.share[row]
        more_x += by_speed_up * mixed(by_x.speed_up, sector, after, share)
        more_y += by_speed_up * mixed(by_y.speed_up, sector, after, share)
    by_turbulence = free_slopes.turbulence[first:end, i]
    by_density = free_slopes.density[first:end, i]
    other_x, other_y = other_slopes(field, rows, row, cell, by_x, by_y, by_turbulence, by_density)
    east, north = east + more_x + other_x, north + more_y + other_y
    if len(free_slopes.ground):
        by_height = total_of(free_slopes.ground[first:end, i])
        east += by_height * terrain.east[layout, i]
        north += by_height * terrain.north[layout, i]
    found.by_x[first, i] += east
    found.by_y[first, i] += north


def draw(rows, reference, parts, speeds, rose, which, column, weight, into, at_reference):
    """Fill in some conditions of roses, with other weights: one speed in each direction.

    rows, reference, parts, speeds: of `FieldWinds`; into, at_reference: the drawn ones. rose: of each layout, shape
    (layouts,). which, column, weight: direction, speed and new weight of each condition, shape (layouts, conditions).
    A thread for each layout and condition.
    """
    at, conditions = cuda.grid(1), which.shape[1]
    layout, k = at // conditions, at % conditions
    if layout >= which.shape[0]:
        return
    direction, lane = which[layout, k] * parts + column[layout, k] // speeds, column[layout, k] % speeds
    source = rose[layout] * reference.cosine.shape[1] + direction
    share = weight[layout, k] / reference.weight[rose[layout], 0, direction, lane]
    into.sector[at], into.next_sector[at] = rows.sector[source], rows.next_sector[source]
    into.share[at] = rows.share[source]
    into.smooth_sector[at], into.smooth_next[at] = rows.smooth_sector[source], rows.smooth_next[source]
    into.smooth_share[at], into.step[at] = rows.smooth_share[source], rows.step[source]
    into.shear_value[at] = rows.shear_value[source]
    into.factor[at, 0] = rows.factor[source, lane] * share
    into.speed[at, 0] = rows.speed[source, lane]
    into.turbulence_factor[at, 0] = rows.turbulence_factor[source, lane]
    into.edges[at, 0], into.edges[at, 1] = rows.edges[source, lane], rows.edges[source, lane + 1]
    at_reference.cosine[layout, k] = reference.cosine[rose[layout], direction]
    at_reference.sine[layout, k] = reference.sine[rose[layout], direction]
    at_reference.speed[layout, 0, k, 0] = reference.speed[rose[layout], 0, direction, lane]
    at_reference.weight[layout, 0, k, 0] = weight[layout, k]
    intensity = reference.turbulence_intensity[rose[layout], 0, direction, lane]
    at_reference.turbulence_intensity[layout, 0, k, 0] = intensity
