"""The GPU's loops: draw wind conditions, take steps of a descent, repair layouts, find free places."""

import math

from numba import cuda

from leeward.layout.gpu.data import (
    AEP,
    FIRST_MOMENT,
    FIRST_STEP,
    GRADIENT,
    LAST_SHARE,
    PENALTY,
    SECOND_MOMENT,
    STEP,
    STEPS,
)
from leeward.layout.kernels import constraints
from leeward.layout.kernels.data import Boundary
from leeward.layout.kernels.distance import signed_distance
from leeward.wind.conditions import GOLDEN_RATIO
from leeward.wind.kernels.compile import formula

RATIO = float(GOLDEN_RATIO)
repair_layout, measure_violations = formula(constraints.repair), formula(constraints.violations)


@formula
def boundary_of(limits, problem):
    """Return the boundary of one problem."""
    every, first, last = limits.boundary, limits.part[problem], limits.part[problem + 1]
    return Boundary(
        every.start_x,
        every.start_y,
        every.end_x,
        every.end_y,
        every.inverse_square,
        every.first[first : last + 1],
        every.closed[first:last],
        every.margin[first:last],
        limits.regions[problem],
    )


@formula
def condition_of(stakes, kind, shift, step, count, layout, k):
    """Return the direction and the speed of condition k of a sample, as `roses.Stakes.draw` finds them."""
    first = (k + shift[layout, step, 0]) / count
    second = (k * RATIO + shift[layout, step, 1]) % 1.0
    directions, speeds = stakes.ratio.shape[1], stakes.ratio.shape[2]
    reached = first * stakes.by_direction[kind, directions - 1]
    low, high = 0, directions - 1
    while low < high:  # the first direction whose cumulated energy is above that
        middle = (low + high) // 2
        if stakes.by_direction[kind, middle] > reached:
            high = middle
        else:
            low = middle + 1
    row, column = stakes.order[kind, low], 0
    while column < speeds - 1 and stakes.within[kind, row, column] <= second:
        column += 1
    return row, column


def draw(stakes, problem, shifts, step, count, layouts, winds):
    """Draw `count` wind conditions for each layout, as `roses.Stakes.draw` does. A thread for each condition.

    shifts: two random numbers for each step, shape (layouts, steps, 2). winds: the result, one speed in each direction.
    """
    at = cuda.grid(1)
    layout, k = at // count, at % count
    if layout >= layouts:
        return
    kind = problem[layout]
    row, column = condition_of(stakes, kind, shifts, step, count, layout, k)
    winds.cosine[layout, k] = stakes.cosine[row]
    winds.sine[layout, k] = stakes.sine[row]
    winds.speed[layout, 0, k, 0] = stakes.speed[row, column]
    winds.weight[layout, 0, k, 0] = stakes.ratio[kind, row, column] / count
    winds.turbulence_intensity[layout, 0, k, 0] = stakes.turbulence_intensity[row, column]


def choose(stakes, problem, shifts, step, count, layouts, direction, speed, weight):
    """Fill in direction and speed (indices) and weight of the conditions of `draw`; shape (layouts, conditions)."""
    at = cuda.grid(1)
    layout, k = at // count, at % count
    if layout >= layouts:
        return
    kind = problem[layout]
    row, column = condition_of(stakes, kind, shifts, step, count, layout, k)
    direction[layout, k], speed[layout, k] = row, column
    weight[layout, k] = stakes.ratio[kind, row, column] / count


def add(sums, more):
    """Add the first rows of an array to another one of shape (rows, layouts, turbines). A thread for each number."""
    at, layouts, turbines = cuda.grid(1), sums.shape[1], sums.shape[2]
    row, layout, i = at // turbines // layouts, at // turbines % layouts, at % turbines
    if row < sums.shape[0]:
        sums[row, layout, i] += more[row, layout, i]


def note(sums, scale, farm, facts, layouts):
    """Fill in the AEP (GWh) and, in the first step of a descent, the mean gradient, GWh/m. A thread for each layout."""
    layout = cuda.grid(1)
    if layout >= layouts:
        return
    power, slopes = 0.0, 0.0
    for i in range(farm[layout]):
        power += sums[0, layout, i]
        slopes += abs(sums[1, layout, i]) + abs(sums[2, layout, i])
    facts[layout, AEP] = scale * power
    if facts[layout, GRADIENT] == 0.0:
        facts[layout, GRADIENT] = 0.5 * scale * slopes / farm[layout]


def take_step(x, y, farm, standing, limits, sums, scale, moments, settings, facts, step, out_x, out_y):
    """Take one step of Adam, as `descend` does. A block for each layout.

    x, y: m from the area's origin, neighbours last; out_x, out_y: the same in another precision. sums: of power and its
    derivatives; scale: from MW to GWh. settings, facts: shape (layouts, columns). step: since `settings` were set.
    """
    layout = cuda.blockIdx.x
    problem, count, turbines = limits.problem[layout], farm[layout], standing[layout]
    boundary, min_distance = boundary_of(limits, problem), limits.min_distance[problem]
    outside, close = 0.0, 0.0
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        distance, inwards_x, inwards_y = signed_distance(x[layout, i], y[layout, i], boundary)
        missing = max(-distance, 0.0)
        outside = max(outside, missing)
        by_x, by_y = -2.0 * missing * inwards_x, -2.0 * missing * inwards_y
        for j in range(turbines):
            east, north = x[layout, i] - x[layout, j], y[layout, i] - y[layout, j]
            apart = 0.5 * (min_distance[i] + min_distance[j])
            square = east * east + north * north
            if j != i and square < apart * apart:
                between = math.sqrt(square)
                missing = apart - between
                close = max(close, missing)
                # for turbines at the same point the direction is not defined; the first one goes east
                to_east, to_north = (1.0 if i < j else -1.0), 0.0
                if between > 0.0:
                    to_east, to_north = east / between, north / between
                by_x -= 2.0 * missing * to_east
                by_y -= 2.0 * missing * to_north
        moments[layout, 4, i], moments[layout, 5, i] = by_x, by_y
    cuda.syncthreads()
    taken, steps = settings[layout, STEP] + step, settings[layout, STEPS]
    length = settings[layout, FIRST_STEP] * max(1.0 - taken / steps, settings[layout, LAST_SHARE])
    gradient = facts[layout, GRADIENT]
    weight = settings[layout, PENALTY] * (gradient if gradient != 0.0 else 1.0) / length
    first, second = settings[layout, FIRST_MOMENT], settings[layout, SECOND_MOMENT]
    first_share, second_share = 1.0 / (1.0 - first ** (taken + 1.0)), 1.0 / (1.0 - second ** (taken + 1.0))
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        for axis in range(2):
            downhill = weight * moments[layout, 4 + axis, i] - scale * sums[1 + axis, layout, i]
            mean = first * moments[layout, axis, i] + (1.0 - first) * downhill
            square = second * moments[layout, 2 + axis, i] + (1.0 - second) * downhill * downhill
            moments[layout, axis, i], moments[layout, 2 + axis, i] = mean, square
            move = length * mean * first_share / math.sqrt(square * second_share) if square > 0.0 else 0.0
            if axis == 0:
                x[layout, i] -= move
            else:
                y[layout, i] -= move
        out_x[layout, i], out_y[layout, i] = x[layout, i], y[layout, i]
        moments[layout, 4, i] = max(outside, close)  # of this thread's turbines


def repair(x, y, farm, standing, limits, margin, sweeps, worst, layouts):
    """Repair layouts, and fill in the violations that are left, shape (layouts, 2, turbines). A thread for each."""
    layout = cuda.grid(1)
    if layout >= layouts:
        return
    problem, count, turbines = limits.problem[layout], farm[layout], standing[layout]
    boundary, min_distance = boundary_of(limits, problem), limits.min_distance[problem, :turbines]
    east, north = x[layout, :turbines], y[layout, :turbines]
    repair_layout(east, north, count, min_distance, boundary, margin, sweeps)
    measure_violations(east, north, count, min_distance, boundary, worst[layout, :, :count])


def remove(layouts, which, count, rest):
    """Copy layouts without one turbine each. A thread for each turbine."""
    at = cuda.grid(1)
    turbines = layouts.x.shape[1]
    layout, i = at // turbines, at % turbines
    if layout >= count:
        return
    source = min(i + 1, turbines - 1) if i >= which[layout] else i
    rest.x[layout, i], rest.y[layout, i] = layouts.x[layout, source], layouts.y[layout, source]
    rest.kind[layout, i] = layouts.kind[layout, source]
    if i == 0:
        rest.farm[layout], rest.standing[layout] = layouts.farm[layout] - 1, layouts.standing[layout] - 1


def find_free(x, y, standing, limits, which, points, count):
    """Fill in which points are far enough from all turbines but the one that moves. A thread for each point."""
    at = cuda.grid(1)
    layout, point = at // points.x.shape[1], at % points.x.shape[1]
    if layout >= count:
        return
    min_distance, moved = limits.min_distance[limits.problem[layout]], which[layout]
    is_free = True
    for j in range(standing[layout]):
        east, north = points.x[layout, point] - x[layout, j], points.y[layout, point] - y[layout, j]
        apart = 0.5 * (min_distance[moved] + min_distance[j])
        if j != moved and east * east + north * north < apart * apart:
            is_free = False
    points.free[layout, point] = 1 if is_free else 0
