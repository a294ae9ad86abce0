"""The free wind at places of a site whose wind varies, and the derivatives of a sum over it with respect to positions.

Quantities are interpolated linearly between the points of a grid, in x, y and height. Outside the grid they are
constant. The derivative at a border between two cells is that of the cell to the east or north.
"""

import math

import numpy as np

from leeward.wind.kernels.compile import allocating, formula
from leeward.wind.kernels.data import Cell, SectorValues
from leeward.wind.kernels.numerics import power_and_thrust, power_and_thrust_slopes
from leeward.wind.kernels.pairs import row_of

STEPS = 999  # of a line that follows the terrain: the default of PyWake, which counts points
NO_SHEAR, POWER_LAW, LOGARITHMIC = 0, 1, 2


@formula
def locate(axis, value):
    """Return the interval of an axis that contains a value, the position in it (0 .. 1), and its derivative (1/m)."""
    last = len(axis) - 1
    if last == 0:
        return 0, 0.0, 0.0
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if value >= axis[middle]:
            low = middle
        else:
            high = middle
    per_m = 1.0 / (axis[low + 1] - axis[low])
    share = (value - axis[low]) * per_m
    is_outside = share < 0.0 or share > 1.0
    return low, min(max(share, 0.0), 1.0), 0.0 if is_outside else per_m


@formula
def cell_at(field, x, y, height):
    """Return the cell of the grid that contains a point."""
    column, east, per_x = locate(field.x, x)
    row, north, per_y = locate(field.y, y)
    level, up, _ = locate(field.height, height)
    return Cell(row, column, level, east, north, up, per_x, per_y)


@formula
def node(values, row, column, level, index):
    """Return a value at a point of the grid. Axes of length 1 do not vary."""
    rows, columns, levels, _ = values.shape
    return values[min(row, rows - 1), min(column, columns - 1), min(level, levels - 1), index]


@formula
def corners(values, cell, index):
    """Return the values at the four corners of a cell: south-west, south-east, north-west, north-east."""
    row, column, level = cell.row, cell.column, cell.level
    south_west, south_east = node(values, row, column, level, index), node(values, row, column + 1, level, index)
    north_west, north_east = (
        node(values, row + 1, column, level, index),
        node(values, row + 1, column + 1, level, index),
    )
    if cell.up > 0.0:
        low, high = 1.0 - cell.up, cell.up
        level += 1
        south_west = low * south_west + high * node(values, row, column, level, index)
        south_east = low * south_east + high * node(values, row, column + 1, level, index)
        north_west = low * north_west + high * node(values, row + 1, column, level, index)
        north_east = low * north_east + high * node(values, row + 1, column + 1, level, index)
    return south_west, south_east, north_west, north_east


@formula
def value_in(values, cell, index):
    """Return an interpolated value. values: shape (rows, columns, levels, n)."""
    south_west, south_east, north_west, north_east = corners(values, cell, index)
    west, east = 1.0 - cell.east, cell.east
    return (1.0 - cell.north) * (west * south_west + east * south_east) + cell.north * (
        west * north_west + east * north_east
    )


@formula
def slopes_in(values, cell, index):
    """Return the derivatives of `value_in` with respect to x and y, per metre."""
    south_west, south_east, north_west, north_east = corners(values, cell, index)
    south, north = 1.0 - cell.north, cell.north
    west, east = 1.0 - cell.east, cell.east
    by_x = south * (south_east - south_west) + north * (north_east - north_west)
    by_y = west * (north_west - south_west) + east * (north_east - south_east)
    return by_x * cell.per_x, by_y * cell.per_y


@allocating
def new_sectors(field):
    """Allocate the values of all sectors at one place."""
    return SectorValues(
        np.empty(field.frequency.shape[3]),
        np.empty(field.weibull_a.shape[3]),
        np.empty(field.weibull_k.shape[3]),
        np.empty(field.cumulated.shape[3]),
        np.empty(field.speed_up.shape[3]),
        np.empty(field.turbulence.shape[3]),
        np.empty(field.density.shape[3]),
    )


@formula
def fill_sector(values, cell, found):
    for index in range(len(found)):
        found[index] = value_in(values, cell, index)


@formula
def fill_sectors(field, cell, sectors):
    """Fill in the values of all sectors at one place."""
    fill_sector(field.frequency, cell, sectors.frequency)
    fill_sector(field.weibull_a, cell, sectors.weibull_a)
    fill_sector(field.weibull_k, cell, sectors.weibull_k)
    fill_sector(field.cumulated, cell, sectors.cumulated)
    fill_sector(field.speed_up, cell, sectors.speed_up)
    fill_sector(field.turbulence, cell, sectors.turbulence)
    fill_sector(field.density, cell, sectors.density)


@formula
def mixed(values, sector, next_sector, share):
    """Return a value between two sectors. One value stands for all sectors."""
    last = len(values) - 1
    return (1.0 - share) * values[min(sector, last)] + share * values[min(next_sector, last)]


@formula
def shear_factor(rows, g, height):
    """Return the wind speed at a height relative to that at the reference height."""
    if rows.shear == POWER_LAW:
        return math.exp(rows.shear_value[g] * math.log(height / rows.shear_height))
    if rows.shear == LOGARITHMIC:
        return math.log(height / rows.shear_value[g]) / math.log(rows.shear_height / rows.shear_value[g])
    return 1.0


@formula
def speed_factor(rows, g, height, sectors):
    """Return the factor of the reference speed: speed-up and shear."""
    factor = shear_factor(rows, g, height)
    if len(sectors.speed_up):
        factor *= mixed(sectors.speed_up, rows.sector[g], rows.next_sector[g], rows.share[g])
    return factor


@formula
def fill_weights(rows, g, factor, sectors, weight):
    """Fill in the weights of one place and direction, shape (lanes,). factor: of the speed."""
    lanes = len(weight)
    sector, after, share = rows.sector[g], rows.next_sector[g], rows.share[g]
    if len(sectors.weibull_a):
        frequency = mixed(sectors.frequency, sector, after, share)
        shape = mixed(sectors.weibull_k, sector, after, share)
        offset = -math.log(mixed(sectors.weibull_a, sector, after, share))
        if rows.local_bins:
            offset += math.log(factor)
        before = math.exp(-math.exp(shape * (rows.edges[g, 0] + offset)))
        for lane in range(lanes):
            above = math.exp(-math.exp(shape * (rows.edges[g, lane + 1] + offset)))
            weight[lane] = rows.factor[g, lane] * frequency * (before - above)
            before = above
    else:
        before = cumulated_at(sectors.cumulated, rows, g, 0)
        for lane in range(lanes):
            below = cumulated_at(sectors.cumulated, rows, g, lane + 1)
            weight[lane] = rows.factor[g, lane] * (below - before)
            before = below


@formula
def cumulated_at(cumulated, rows, g, edge):
    """Return the cumulated probability of a table below the edge of a bin."""
    bins = rows.bins
    column = min(int(rows.edges[g, edge]), bins - 1)
    inside = rows.edges[g, edge] - column
    here, there = rows.sector[g] * (bins + 1) + column, rows.next_sector[g] * (bins + 1) + column
    low = (1.0 - rows.share[g]) * cumulated[here] + rows.share[g] * cumulated[there]
    high = (1.0 - rows.share[g]) * cumulated[here + 1] + rows.share[g] * cumulated[there + 1]
    return (1.0 - inside) * low + inside * high


@formula
def turbulence_of(field, rows, g, cell, sectors):
    """Return the turbulence intensity of a direction or step, before the factor of the speed."""
    if field.series_turbulence.shape[3]:
        return value_in(field.series_turbulence, cell, rows.step[g])
    return mixed(sectors.turbulence, rows.smooth_sector[g], rows.smooth_next[g], rows.smooth_share[g])


@formula
def fill_speeds(field, rows, g, factor, cell, speed):
    """Fill in the speeds of one place and direction, shape (lanes,). factor: of the reference speed."""
    has_series = field.series_speed.shape[3] > 0
    series = value_in(field.series_speed, cell, rows.step[g]) if has_series else 0.0
    for lane in range(len(speed)):
        speed[lane] = factor * (series if has_series else rows.speed[g, lane])


@formula
def fill_turbulence(field, rows, g, cell, sectors, turbulence):
    """Fill in the turbulence intensity of one place and direction, shape (lanes,)."""
    intensity = turbulence_of(field, rows, g, cell, sectors)
    for lane in range(len(turbulence)):
        turbulence[lane] = intensity * rows.turbulence_factor[g, lane]


@formula
def fill_density(rows, g, sectors, density):
    """Fill in the relative air density of one place and direction, shape (lanes,)."""
    relative = mixed(sectors.density, rows.smooth_sector[g], rows.smooth_next[g], rows.smooth_share[g])
    for lane in range(len(density)):
        density[lane] = relative


def local_wind(field, rows, begin, end, x, y, height, speed, weight, turbulence, density):
    """Fill in the free wind at each place in the directions begin .. end.

    x, y, height: of the places, m. speed, weight, turbulence, density: shape (places, directions, lanes); a quantity
    that does not vary has no rows.
    """
    sectors = new_sectors(field)
    lanes = rows.speed.shape[1]
    for i in range(len(x)):
        cell = cell_at(field, x[i], y[i], height[i])
        fill_sectors(field, cell, sectors)
        for g in range(end - begin):
            at = begin + g
            factor = speed_factor(rows, at, height[i], sectors)
            if len(speed):
                fill_speeds(field, rows, at, factor, cell, speed[i, g])
            if len(weight):
                if g > 0 and rows.repeats[at]:
                    for lane in range(lanes):
                        weight[i, g, lane] = weight[i, g - 1, lane]
                else:
                    fill_weights(rows, at, factor, sectors, weight[i, g])
            if len(turbulence):
                fill_turbulence(field, rows, at, cell, sectors, turbulence[i, g])
            if len(density):
                fill_density(rows, at, sectors, density[i, g])


def fill_values(field, values, x, y, height, found):
    """Fill in values of shape (rows, columns, levels, n) at each place; found: shape (places, n)."""
    for i in range(len(x)):
        fill_sector(values, cell_at(field, x[i], y[i], height[i]), found[i])


def fill_ground(field, x, y, ground, by_x, by_y):
    """Fill in the elevation of the terrain (m) at each place, and its slopes to the east and north."""
    for i in range(len(x)):
        cell = cell_at(field, x[i], y[i], 0.0)
        ground[i] = value_in(field.elevation, cell, 0)
        by_x[i], by_y[i] = slopes_in(field.elevation, cell, 0)


@formula
def ground_height(field, x, y):
    """Return the elevation of the terrain at a point, m."""
    return value_in(field.elevation, cell_at(field, x, y, 0.0), 0)


@formula
def stretch_between(field, x, y, to_x, to_y):
    """Return the length of a straight line when it follows the terrain, relative to its horizontal length.

    The terrain is taken at STEPS + 1 points of the line, as in PyWake's `TerrainFollowingDistance`.
    """
    east, north = to_x - x, to_y - y
    distance = math.sqrt(east * east + north * north)
    if distance == 0.0:
        return 1.0
    step = distance / STEPS
    before, length = ground_height(field, x, y), 0.0
    for k in range(1, STEPS + 1):
        share = k / STEPS
        height = ground_height(field, x + share * east, y + share * north)
        length += math.sqrt(step * step + (height - before) ** 2)
        before = height
    return length / distance


def fill_stretch(field, x, y, to_x, to_y, first, is_square, stretch):
    """Fill in `stretch` (places, turbines) from each place to the turbines `first` and later.

    is_square: True if the places are the turbines.
    """
    for i in range(len(x)):
        for j in range(i if is_square else first, len(to_x)):
            stretch[i, j] = stretch_between(field, x[i], y[i], to_x[j], to_y[j])
            if is_square:
                stretch[j, i] = stretch[i, j]


def gross_power(speed, weight, density, kind, curves, factor, mean_power, adjoints):
    """Add the weighted power (MW) of a turbine at each place, without wakes, to `mean_power` (places,).

    speed, weight, density: as in `Wind`. kind: type of the turbine. factor: of its power; shape (places,). Add the
    derivatives with respect to speed, weight and density to `adjoints`, if they have rows.
    """
    _, directions, lanes = weight.shape
    for i in range(len(kind)):
        total = 0.0
        for g in range(directions):
            free, share = speed[row_of(i, speed), g], weight[row_of(i, weight), g]
            for lane in range(lanes):
                relative = density[row_of(i, density), g, lane] if len(density) else 1.0
                power = power_and_thrust(free[lane], kind[i], curves)[0]
                total += share[lane] * power * relative
                k = g * lanes + lane
                if adjoints.weight.size:
                    adjoints.weight[i, k] += factor[i] * power * relative
                if adjoints.speed.size:
                    slope = power_and_thrust_slopes(free[lane], kind[i], curves)[0]
                    adjoints.speed[i, k] += factor[i] * share[lane] * slope * relative
                if adjoints.density.size:
                    adjoints.density[i, k] += factor[i] * share[lane] * power
        mean_power[i] += factor[i] * total
