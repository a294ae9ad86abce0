"""First layouts: at random, and on lattices."""

import numpy as np
import numpy.typing as npt

from leeward.layout.area import Area
from leeward.layout.problem import LayoutProblem

Array = npt.NDArray[np.float64]

DRAWS_AT_A_TIME = 2000
ROUNDS = 30
PACKINGS = 200


def fill_at_random(problem: LayoutProblem, x: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Put the turbines that are missing after those at x, y anywhere in the area: feasible if chance allows, else as
    far from the others as chance offers, to be repaired.
    """
    x, y = x.copy(), y.copy()
    for turbine in range(len(x), problem.n_turbines):
        for _ in range(ROUNDS):
            at_x, at_y = problem.area.random_points(DRAWS_AT_A_TIME, rng)
            free = np.flatnonzero(problem.free(x, y, np.arange(turbine), turbine, at_x, at_y))
            if len(free):
                chosen = free[0]
                break
        else:
            nearest = np.hypot(at_x[:, None] - x, at_y[:, None] - y).min(axis=1, initial=np.inf)
            chosen = int(np.argmax(nearest))
        x, y = np.r_[x, at_x[chosen]], np.r_[y, at_y[chosen]]
    return x, y


def random_lattice(problem: LayoutProblem, rng: np.random.Generator) -> tuple[Array, Array] | None:
    """Turbines in rows: a lattice of any angle, skew and proportions, as wide as the number of turbines allows.

    None if such a lattice has too few points in the area. Turbines of several types are mixed at random.
    """
    left, low, right, high = problem.area.bounds
    size = float(np.hypot(right - left, high - low))
    angle = rng.uniform(0.0, np.pi)
    skew = rng.uniform(0.25 * np.pi, 0.75 * np.pi)
    proportion = np.exp(rng.uniform(-1.2, 1.2))
    offset = rng.random(2)
    rows = np.array(
        [
            [np.cos(angle) * np.sqrt(proportion), np.sin(angle) * np.sqrt(proportion)],
            np.array([np.cos(angle + skew), np.sin(angle + skew)]) / (np.sqrt(proportion) * np.sin(skew)),
        ]
    )  # a cell of area 1

    centre = np.array([0.5 * (left + right), 0.5 * (low + high)])
    narrow, wide = 0.5 * problem.mean_spacing_m, 2.0 * problem.mean_spacing_m
    best = _lattice_points(problem.area, rows * narrow, offset, centre, size)
    for _ in range(10):
        middle = np.sqrt(narrow * wide)
        points = _lattice_points(problem.area, rows * middle, offset, centre, size)
        if len(points) >= problem.n_turbines:
            narrow, best = middle, points
        else:
            wide = middle
    if len(best) < problem.n_turbines:
        return None
    chosen = best[rng.permutation(len(best))[: problem.n_turbines]]
    return chosen[:, 0].copy(), chosen[:, 1].copy()


def densest_lattice(problem: LayoutProblem) -> tuple[Array, Array]:
    """Points of a triangular lattice, as close as the spacing allows: of many angles and offsets the one with most."""
    rng = np.random.default_rng(0)
    apart = float(problem.room.max()) * (1.0 + 1e-9) + 2e-6
    left, low, right, high = problem.area.bounds
    centre = np.array([0.5 * (left + right), 0.5 * (low + high)])
    size = float(np.hypot(right - left, high - low))
    best = np.empty((0, 2))
    for _ in range(PACKINGS):
        angle = rng.uniform(0.0, np.pi / 3.0)
        rows = apart * np.array([[np.cos(a), np.sin(a)] for a in (angle, angle + np.pi / 3.0)])
        points = _lattice_points(problem.area, rows, rng.random(2), centre, size)
        if len(points) > len(best):
            best = points
    far = problem.far_from_neighbours(best[:, 0], best[:, 1])
    return best[far, 0], best[far, 1]


def _lattice_points(area: Area, rows: Array, offset: Array, centre: Array, size: float) -> Array:
    """Points of a lattice in the area, shape (points, 2). rows: its two basis vectors, m."""
    # as many steps along each vector as reach across the area: its length over the distance of the rows
    cell = abs(float(np.linalg.det(rows)))
    steps = [int(np.ceil(0.5 * size * float(np.linalg.norm(rows[1 - k])) / cell)) + 1 for k in range(2)]
    i, j = np.meshgrid(*(np.arange(-n, n + 1) for n in steps), indexing="ij")
    points = centre + np.column_stack([i.ravel() + offset[0], j.ravel() + offset[1]]) @ rows
    left, low, right, high = area.bounds
    near = (points[:, 0] >= left) & (points[:, 0] <= right) & (points[:, 1] >= low) & (points[:, 1] <= high)
    points = points[near]
    return np.asarray(points[area.signed_distance(points[:, 0], points[:, 1]) >= 0.0])
