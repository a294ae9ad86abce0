"""Arguments of the GPU's kernels: tuples of arrays. Importing this module does not import numba."""

from typing import Any, NamedTuple

Values = Any  # an array on the GPU

DOWNWIND, CROSSWIND, HEIGHT, GROUND = 0, 1, 2, 3  # columns of `Order.place`
SHARE, BY_X, BY_Y = 0, 1, 2  # columns of `States.adjoints`
WARP, TEAM, TEAMS = 32, 4, 8  # threads of a block, threads that compute an element, elements of a block
SUMS = 3 * WARP  # numbers that the threads of a block share
GROUP = 64  # elements that one thread adds up
LANES = 8  # that one thread computes together at a point
THREADS = 128  # of a block that adds up the conditions at a point


class Layouts(NamedTuple):
    """Layouts to evaluate together; shape (layouts, turbines), padded to the largest number of turbines.

    x, y: m, relative to a point near the layout; kind: type. Neighbours follow the turbines of the farm.
    farm: number of turbines of the farm; standing: with neighbours; rose: index of its wind; shape (layouts,).
    ground, stretch: as in `Places`, shape (layouts, turbines) and (layouts, turbines, turbines), or no layouts.
    """

    x: Values
    y: Values
    kind: Values
    farm: Values
    standing: Values
    rose: Values
    ground: Values
    stretch: Values


class Winds(NamedTuple):
    """Wind roses, as in `Wind`, with one more axis in front.

    cosine, sine: shape (roses, directions). The others: (roses, places, directions, lanes), with one place for all
    turbines or one for each. density, scale: no roses if they are not needed.
    """

    cosine: Values
    sine: Values
    speed: Values
    weight: Values
    turbulence_intensity: Values
    density: Values
    scale: Values


class Points(NamedTuple):
    """Points at which one more turbine could stand; x, y: m, as in `Layouts`, shape (layouts, points), padded.

    free: 1 at those to evaluate, shape (layouts, points). kind: type of that turbine, shape (layouts,). ground,
    stretch: as in `Places`, shape (layouts, points) and (layouts, points, turbines), or no layouts.
    """

    x: Values
    y: Values
    free: Values
    kind: Values
    ground: Values
    stretch: Values


class Chunk(NamedTuple):
    """Some layouts, all in the same wind directions: as many as fit into the GPU's memory."""

    layout: int
    layouts: int
    direction: int
    directions: int
    lanes: int


class Order(NamedTuple):
    """The turbines in each row, which is a layout in one direction; sorted downwind. Shape (rows, turbines).

    place: downwind and crosswind coordinate, height of the hub and elevation of the terrain of each rank, m, shape
    (rows, turbines, 4); turbine: index of each rank. count: number of wakes that reach each rank; source: the ranks
    that they come from, those of rank r from r (r - 1) / 2 on, shape (rows, pairs).
    """

    place: Values
    turbine: Values
    count: Values
    source: Values


class States(NamedTuple):
    """The state of the turbines in each element, which is a row and a lane. Shape (elements, turbines, ...), by rank.

    sources: the fields of a source; for a gradient, then those of its derivative with respect to the effective speed;
    for wind that varies over the site, then those with respect to free speed, turbulence intensity and air density.
    totals: of the contributions. adjoints: of the farm's power with respect to the speed, and by x and y.
    """

    sources: Values
    totals: Values
    adjoints: Values


class Found(NamedTuple):
    """Results of each element, by index of the turbine; shape (elements, turbines), or no elements.

    power: weighted, MW. by_x, by_y: derivatives of the farm's power, MW/m. speeds: effective, m/s.
    """

    power: Values
    by_x: Values
    by_y: Values
    speeds: Values


class Free(NamedTuple):
    """Derivatives of the farm's power with respect to the free wind at each turbine, as in `Adjoints`.

    speed, weight, turbulence, density, ground: shape (elements, turbines); no elements if they are not needed. stretch:
    given, the derivatives of that of `Layouts` by x and y of the first and of the second turbine, shape (layouts,
    turbines, turbines, 4); no layouts if distances are straight.
    """

    speed: Values
    weight: Values
    turbulence: Values
    density: Values
    ground: Values
    stretch: Values
