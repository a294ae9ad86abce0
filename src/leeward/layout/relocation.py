"""Move the turbines with the smallest marginal AEP to the best free places."""

import numpy as np
import numpy.typing as npt
import shapely

from leeward.layout.area import Area
from leeward.layout.objective import Objective
from leeward.layout.problem import LayoutProblem

Array = npt.NDArray[np.float64]

CANDIDATES = 150
ON_THE_BOUNDARY = 0.4  # fraction of the candidates; good places are often on the boundary
INWARDS_M = 1e-3


def relocate(
    problem: LayoutProblem,
    objective: Objective,
    x: Array,
    y: Array,
    count: int,
    chance: float,
    rng: np.random.Generator,
) -> tuple[Array, Array, list[int]]:
    """Move up to `count` turbines, one by one, to the best places. Return x, y and the indices of those moved.

    It picks the turbines with the smallest marginal AEP, after adding noise: `chance` times the standard deviation of
    all values. A turbine stays if no place is better than its own.
    """
    x, y = x.copy(), y.copy()
    worth = objective.worth(x, y)
    which = []
    for turbine in order_to_try(worth, chance, rng)[:count]:
        at_x, at_y = candidates(problem, rng)
        others = np.delete(np.arange(problem.n_turbines), turbine)
        free = problem.free(x[others], y[others], others, int(turbine), at_x, at_y)
        if not free.any():
            continue
        gain = objective.gain(x, y, int(turbine), at_x[free], at_y[free])
        best = int(np.argmax(gain))
        if gain[best] > worth[turbine]:
            x[turbine], y[turbine] = at_x[free][best], at_y[free][best]
            which.append(int(turbine))
    return x, y, which


def order_to_try(worth: Array, chance: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the turbines by their marginal AEP, with noise; see `relocate`."""
    return np.argsort(worth + chance * worth.std() * rng.standard_normal(len(worth)))


def candidates(problem: LayoutProblem, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return random places in the area, some of them on its boundary."""
    count = int(CANDIDATES * ON_THE_BOUNDARY)
    x, y = problem.area.random_points(CANDIDATES - count, rng)
    edge_x, edge_y = boundary_points(problem.area, count, rng)
    return np.r_[x, edge_x], np.r_[y, edge_y]


def boundary_points(area: Area, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return random places just inside the boundary of an area."""
    outline = area.to_shapely().boundary
    edge = shapely.get_coordinates(shapely.line_interpolate_point(outline, rng.random(count) * outline.length))
    distance, by_x, by_y = area.signed_distance_gradient(edge[:, 0], edge[:, 1])
    inwards = INWARDS_M - distance
    return edge[:, 0] + inwards * by_x, edge[:, 1] + inwards * by_y
