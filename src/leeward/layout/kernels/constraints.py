"""Compiled constraints: violations of a layout, a step of descent with penalties, and repair.

Turbines are at x, y (metres from the area's origin), shape (all,): the `count` turbines of the farm, then neighbours,
which do not move. `min_distance` (m), same shape: two turbines must be apart by at least the mean of their values.
"""

import math

from leeward.layout.kernels.data import Boundary, Floats
from leeward.layout.kernels.distance import signed_distance
from leeward.wind.kernels.compile import formula


@formula
def penalise(
    x: Floats, y: Floats, count: int, min_distance: Floats, boundary: Boundary, by_x: Floats, by_y: Floats
) -> tuple[float, float]:
    """Return the worst violations of boundary and spacing (m); fill the gradient of the sum of their squares."""
    outside = 0.0
    for i in range(count):
        distance, inwards_x, inwards_y = signed_distance(x[i], y[i], boundary)
        missing = max(-distance, 0.0)
        by_x[i] = -2.0 * missing * inwards_x
        by_y[i] = -2.0 * missing * inwards_y
        outside = max(outside, missing)
    close = 0.0
    for i in range(count):
        for j in range(i + 1, len(x)):
            east, north = x[i] - x[j], y[i] - y[j]
            apart = 0.5 * (min_distance[i] + min_distance[j])
            square = east * east + north * north
            if square < apart * apart:
                distance = math.sqrt(square)
                missing = apart - distance
                close = max(close, missing)
                # for turbines at the same point the direction is not defined; use east
                slope = -2.0 * missing
                to_east, to_north = (east / distance, north / distance) if distance > 0.0 else (1.0, 0.0)
                by_x[i] += slope * to_east
                by_y[i] += slope * to_north
                if j < count:
                    by_x[j] -= slope * to_east
                    by_y[j] -= slope * to_north
    return outside, close


def descend(
    x: Floats,
    y: Floats,
    count: int,
    min_distance: Floats,
    boundary: Boundary,
    uphill_x: Floats,
    uphill_y: Floats,
    moments: Floats,
    settings: tuple[float, float, float, float, float],
    violation: Floats,
) -> None:
    """Take one step of Adam on the energy's gradient (uphill) and the penalties; change x, y and moments in place.

    moments: shape (6, count), first and second by x and by y, and two scratch rows. settings: length of the step (m),
    weight of the penalty, decay of the first and of the second moment, number of steps, this one included.
    violation: filled with the worst violations of the boundary and of the spacing (m), before the step.
    """
    length, weight, first, second, steps = settings
    by_x, by_y = moments[4], moments[5]
    violation[0], violation[1] = penalise(x, y, count, min_distance, boundary, by_x, by_y)
    first_share, second_share = 1.0 / (1.0 - first**steps), 1.0 / (1.0 - second**steps)
    for i in range(count):
        downhill_x = weight * by_x[i] - uphill_x[i]
        downhill_y = weight * by_y[i] - uphill_y[i]
        moments[0, i] = first * moments[0, i] + (1.0 - first) * downhill_x
        moments[1, i] = first * moments[1, i] + (1.0 - first) * downhill_y
        moments[2, i] = second * moments[2, i] + (1.0 - second) * downhill_x * downhill_x
        moments[3, i] = second * moments[3, i] + (1.0 - second) * downhill_y * downhill_y
        if moments[2, i] > 0.0:
            x[i] -= length * moments[0, i] * first_share / math.sqrt(moments[2, i] * second_share)
        if moments[3, i] > 0.0:
            y[i] -= length * moments[1, i] * first_share / math.sqrt(moments[3, i] * second_share)


def violations(x: Floats, y: Floats, count: int, min_distance: Floats, boundary: Boundary, worst: Floats) -> None:
    """Fill `worst`, shape (2, count): the distance by which each turbine is outside, and too close to another (m)."""
    worst[:] = 0.0
    for i in range(count):
        worst[0, i] = max(-signed_distance(x[i], y[i], boundary)[0], 0.0)
        for j in range(i + 1, len(x)):
            missing = 0.5 * (min_distance[i] + min_distance[j]) - math.hypot(x[i] - x[j], y[i] - y[j])
            worst[1, i] = max(worst[1, i], missing)
            if j < count:
                worst[1, j] = max(worst[1, j], missing)


def repair(
    x: Floats, y: Floats, count: int, min_distance: Floats, boundary: Boundary, margin: float, sweeps: int
) -> tuple[float, int]:
    """Push turbines apart and back inside, pair by pair, until all constraints hold; changes x and y in place.

    Each push goes `margin` (m) further than needed. Return the worst violation (m) in the last sweep, 0.0 if the layout
    is feasible, and the number of sweeps.
    """
    worst = 0.0
    for sweep in range(sweeps):
        worst = 0.0
        for i in range(count):
            for j in range(i + 1, len(x)):
                east, north = x[i] - x[j], y[i] - y[j]
                apart = 0.5 * (min_distance[i] + min_distance[j])
                square = east * east + north * north
                if square < apart * apart:
                    distance = math.sqrt(square)
                    worst = max(worst, apart - distance)
                    to_east, to_north = (east / distance, north / distance) if distance > 0.0 else (1.0, 0.0)
                    push = apart - distance + margin
                    if j < count:
                        push *= 0.5
                        x[j] -= push * to_east
                        y[j] -= push * to_north
                    x[i] += push * to_east
                    y[i] += push * to_north
        for i in range(count):
            distance, inwards_x, inwards_y = signed_distance(x[i], y[i], boundary)
            if distance < 0.0:
                worst = max(worst, -distance)
                x[i] += (margin - distance) * inwards_x
                y[i] += (margin - distance) * inwards_y
        if worst == 0.0:
            return worst, sweep + 1
    return worst, sweeps
