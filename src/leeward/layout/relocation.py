"""Move the turbines with the smallest marginal AEP to the best free places."""

import numpy as np
import numpy.typing as npt
import shapely

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
    blurred = worth + chance * worth.std() * rng.standard_normal(len(worth))
    which = []
    for turbine in np.argsort(blurred)[:count]:
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


def candidates(problem: LayoutProblem, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return random places in the area, some of them on its boundary."""
    count = int(CANDIDATES * ON_THE_BOUNDARY)
    x, y = problem.area.random_points(CANDIDATES - count, rng)
    outline = problem.area.to_shapely().boundary
    edge = shapely.get_coordinates(shapely.line_interpolate_point(outline, rng.random(count) * outline.length))
    distance, by_x, by_y = problem.area.signed_distance_gradient(edge[:, 0], edge[:, 1])
    inwards = INWARDS_M - distance
    return np.r_[x, edge[:, 0] + inwards * by_x], np.r_[y, edge[:, 1] + inwards * by_y]
