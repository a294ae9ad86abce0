"""First layouts, at random and on lattices, and a check whether the turbines fit."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leeward.layout.area import Area
from leeward.layout.kernels import compiled
from leeward.layout.problem import LayoutProblem

Array = npt.NDArray[np.float64]

DRAWS_AT_A_TIME = 2000
ROUNDS = 5
PACKINGS = 200
HALVINGS = 10
NONE = np.empty(0)
AS_GIVEN = (1.0, 1.0, 0, 0)  # no search for a wider lattice


@dataclass(frozen=True)
class Room:
    """The room in an area. fits: whether all turbines fit. packed: number of turbines in a quick packing if not."""

    fits: bool
    packed: int


def fill_at_random(problem: LayoutProblem, x: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the layout with missing turbines added at random places.

    A turbine for which no feasible place is drawn goes as far from the others as possible, to be repaired later.
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
    """Return a lattice of random angle, skew and proportions, as wide as the number of turbines allows.

    Return None if it has too few points in the area. Turbines of several types are mixed at random.
    """
    angle = rng.uniform(0.0, np.pi)
    skew = rng.uniform(0.25 * np.pi, 0.75 * np.pi)
    proportion = np.sqrt(np.exp(rng.uniform(-1.2, 1.2)))
    along = np.array([np.cos(angle), np.sin(angle)]) * proportion
    across = np.array([np.cos(angle + skew), np.sin(angle + skew)]) / (proportion * np.sin(skew))
    rows, offset = np.array([along, across]), rng.random(2)  # a cell of area 1

    spacing, enough = problem.mean_spacing_m, problem.n_turbines
    x, y = np.empty((2, 4 * enough + 100))
    count = _fill_lattice(problem.area, rows, offset, x, y, (0.5 * spacing, 2.0 * spacing, HALVINGS, enough))
    if count < enough:
        return None
    chosen = rng.permutation(min(count, len(x)))[:enough]
    return x[chosen] + problem.area.origin[0], y[chosen] + problem.area.origin[1]


def densest_lattice(problem: LayoutProblem) -> tuple[Array, Array]:
    """Return the densest triangular lattice of many angles and offsets, as close as the spacing allows."""
    rng = np.random.default_rng(0)
    apart = float(problem.min_distances_m.max()) * (1.0 + 1e-9) + 2e-6
    most, best = -1, (np.empty((2, 2)), np.empty(2))
    for _ in range(PACKINGS):
        angle = rng.uniform(0.0, np.pi / 3.0)
        rows = apart * np.array([[np.cos(a), np.sin(a)] for a in (angle, angle + np.pi / 3.0)])
        offset = rng.random(2)
        count = lattice_count(problem.area, rows, offset)
        if count > most:
            most, best = count, (rows, offset)
    x, y = lattice_points(problem.area, *best)
    far = problem.far_from_neighbours(x, y)
    return x[far], y[far]


def room_for(problem: LayoutProblem) -> Room:
    """Return whether all turbines fit. It tries the placements that the recipes start with."""
    count = problem.n_turbines
    apart = float(problem.min_distances_m.max())
    has_neighbours = len(problem.min_distances_m) > count
    # If no turbine can be added to a packing, discs with the spacing as radius cover the area.
    if not has_neighbours and count * np.pi * apart**2 <= problem.area.area_m2:
        return Room(True, count)
    packed = len(densest_lattice(problem)[0])
    if packed >= count:
        return Room(True, count)
    x, y = problem.repaired(*fill_at_random(problem, NONE, NONE, np.random.default_rng(0)))
    return Room(problem.violation(x, y).is_feasible, packed)


def lattice_count(area: Area, rows: Array, offset: Array) -> int:
    """Return the number of lattice points in the area. rows: basis vectors, m; offset: of a point, in these vectors."""
    return _fill_lattice(area, rows, offset, NONE, NONE)


def lattice_points(area: Area, rows: Array, offset: Array) -> tuple[Array, Array]:
    """Return the lattice points in the area; see `lattice_count`."""
    x, y = np.empty((2, lattice_count(area, rows, offset)))
    _fill_lattice(area, rows, offset, x, y)
    return x + area.origin[0], y + area.origin[1]


def _fill_lattice(
    area: Area, rows: Array, offset: Array, x: Array, y: Array, search: tuple[float, float, int, int] = AS_GIVEN
) -> int:
    return int(compiled("widest_lattice")(rows, offset, area.boxes, area.boundary, search, x, y))
