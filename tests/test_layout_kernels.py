"""The loops of the optimiser, also as plain Python, against slow twins."""

import numpy as np
import pytest

from leeward.layout import Area, LayoutProblem
from leeward.layout.kernels import constraints, lattice
from leeward.layout.starts import densest_lattice, lattice_points, random_lattice
from leeward.wind import Neighbours, WindFarm

pytestmark = pytest.mark.tiny

AREA = Area.from_arrays([0, 3000, 3000, 1000, 1000, 0], [0, 0, 1000, 1000, 3000, 3000])


@pytest.fixture(scope="module")
def problem(tiny_site, turbine):
    there = Neighbours(x=[-300.0, 1500.0], y=[500.0, 1300.0], turbine=turbine)
    return LayoutProblem(WindFarm(tiny_site, turbine, neighbours=there), AREA, 6, spacing_m=600)


def crowded(problem, seed):
    """Positions (m from the origin) of which many are outside or too close."""
    rng = np.random.default_rng(seed)
    return problem.relative(rng.uniform(-400, 3400, 6), rng.uniform(-400, 3400, 6))


def sum_of_squares(problem, x, y):
    """Violations of all constraints, squared and added up."""
    east, north = problem.area.origin
    outside = np.minimum(problem.area.signed_distance(x[:6] + east, y[:6] + north), 0.0)
    close = [
        max(0.5 * (problem.min_distances_m[i] + problem.min_distances_m[j]) - np.hypot(x[i] - x[j], y[i] - y[j]), 0.0)
        for i in range(6)
        for j in range(i + 1, len(x))
    ]
    return float((outside**2).sum() + np.square(close).sum()), float(-outside.min()), max(close)


@pytest.mark.parametrize("seed", range(4))
def test_penalties_and_their_gradient(problem, seed):
    x, y = crowded(problem, seed)
    by_x, by_y = np.empty(6), np.empty(6)
    outside, close = constraints.penalise(x, y, *problem.constraints, by_x, by_y)
    total, worst_outside, worst_close = sum_of_squares(problem, x, y)
    assert total > 0
    assert (outside, close) == pytest.approx((worst_outside, worst_close))
    for values, gradient in ((x, by_x), (y, by_y)):
        for i in range(6):
            ends = []
            for step in (-1e-3, 1e-3):
                values[i] += step
                ends.append(sum_of_squares(problem, x, y)[0])
                values[i] -= step
            assert gradient[i] == pytest.approx((ends[1] - ends[0]) / 2e-3, rel=1e-5, abs=1e-3)


def test_two_on_one_spot_are_driven_apart(problem):
    x, y = problem.relative(np.full(6, 700.0), np.full(6, 700.0))
    by_x, by_y = np.empty(6), np.empty(6)
    constraints.penalise(x, y, *problem.constraints, by_x, by_y)
    assert np.isfinite(by_x).all()
    assert np.abs(by_x).max() > 0
    worst, sweeps = constraints.repair(x, y, *problem.constraints, 1e-7, 500)
    assert worst == 0.0
    assert sweeps < 500


@pytest.mark.parametrize("seed", range(4))
def test_repair_leaves_nothing_violated_and_moves_no_neighbour(problem, seed):
    x, y = crowded(problem, seed)
    neighbours = x[6:].copy(), y[6:].copy()
    worst, _ = constraints.repair(x, y, *problem.constraints, 1e-7, 2000)
    assert worst == 0.0
    assert sum_of_squares(problem, x, y)[0] == 0.0
    np.testing.assert_array_equal(x[6:], neighbours[0])
    np.testing.assert_array_equal(y[6:], neighbours[1])


def test_what_cannot_be_repaired_is_said(problem):
    x, y = crowded(problem, 0)
    count, room, boundary = problem.constraints
    worst, sweeps = constraints.repair(x, y, count, room * 5, boundary, 1e-7, 50)
    assert worst > 1.0
    assert sweeps == 50


def test_violations_by_turbine(problem):
    x, y = crowded(problem, 1)
    worst = np.empty((2, 6))
    constraints.violations(x, y, *problem.constraints, worst)
    for i in range(6):
        others = [j for j in range(len(x)) if j != i]
        close = max(
            0.5 * (problem.min_distances_m[i] + problem.min_distances_m[j]) - np.hypot(x[i] - x[j], y[i] - y[j])
            for j in others
        )
        assert worst[1, i] == pytest.approx(max(close, 0.0))
    east, north = problem.area.origin
    outside = -problem.area.signed_distance(x[:6] + east, y[:6] + north)
    np.testing.assert_allclose(worst[0], np.maximum(outside, 0.0))


def test_a_step_of_adam(problem):
    """Against the textbook, without constraints in the way."""
    x, y = problem.relative(np.array([500.0, 500, 500, 1500, 2300, 700]), np.array([2900.0, 2000, 300, 300, 300, 1200]))
    moments, violation = np.zeros((6, 6)), np.empty(2)
    rng = np.random.default_rng(0)
    first, second = np.zeros(6), np.zeros(6)
    expected = x[:6].copy()
    for step in range(1, 4):
        uphill_x, uphill_y = rng.normal(size=(2, 6))
        settings = (2.0, 0.0, 0.6, 0.9, float(step))
        constraints.descend(x, y, *problem.constraints, uphill_x, uphill_y, moments, settings, violation)
        first = 0.6 * first - 0.4 * uphill_x
        second = 0.9 * second + 0.1 * uphill_x**2
        expected -= 2.0 * (first / (1 - 0.6**step)) / np.sqrt(second / (1 - 0.9**step))
    np.testing.assert_allclose(x[:6], expected, rtol=1e-12)
    assert (violation == 0.0).all()


def test_penalties_push_back(problem):
    """With no energy to gain, steps go down the penalties' gradient."""
    x, y = crowded(problem, 2)
    before = sum_of_squares(problem, x, y)
    moments, violation, nothing = np.zeros((6, 6)), np.empty(2), np.zeros(6)
    for step in range(1, 301):
        settings = (10.0 * (1 - step / 301), 1.0, 0.5, 0.9, float(step))
        constraints.descend(x, y, *problem.constraints, nothing, nothing, moments, settings, violation)
        if step == 1:
            assert violation == pytest.approx(before[1:])
    assert sum_of_squares(problem, x, y)[0] < 1e-3 * before[0]


@pytest.mark.parametrize("seed", range(3))
def test_lattice_points_are_all_that_lie_inside(seed):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-100, 100, (2, 2)) + np.array([[300, 0], [0, 300]])
    offset = rng.random(2)
    i, j = (c.ravel() for c in np.meshgrid(np.arange(-60, 61), np.arange(-60, 61)))
    every = np.array(AREA.origin) + (np.column_stack([i, j]) + offset) @ rows
    inside = every[AREA.signed_distance(*every.T) >= 0]
    x, y = lattice_points(AREA, rows, offset)
    found = np.column_stack([x, y])
    assert len(found) == len(inside) > 0
    order = [np.lexsort(np.round(points, 6).T) for points in (found, inside)]
    np.testing.assert_allclose(found[order[0]], inside[order[1]], atol=1e-6)
    assert (
        lattice.lattice_points(
            rows, offset @ rows, np.array([[0.0, 0.0, -1.0, -1.0]]), AREA.boundary, np.empty(0), np.empty(0)
        )
        == 0
    )


def test_lattices_have_as_many_places_as_turbines(problem):
    rng = np.random.default_rng(0)
    layouts = [random_lattice(problem, rng) for _ in range(20)]
    found = [layout for layout in layouts if layout is not None]
    assert len(found) >= 10
    for x, y in found:
        assert len(x) == 6
        assert AREA.contains(x, y, 1e-9).all()


def test_densest_lattice_keeps_its_distance(problem):
    x, y = densest_lattice(problem)
    apart = np.hypot(x[:, None] - x, y[:, None] - y)
    np.fill_diagonal(apart, np.inf)
    assert apart.min() >= 600
    assert np.hypot(x[:, None] - [-300, 1500], y[:, None] - [500, 1300]).min() >= 600
    assert len(x) >= 8
