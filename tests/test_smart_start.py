"""SmartStart: TopFarm's layouts to the point, and what happens where its grid is too small."""

import json

import numpy as np
import pytest

from conftest import DATA
from layout_cases import FARMS, assert_feasible, square
from leeward.campaign import builtin
from leeward.layout import Area, LayoutProblem, SmartStart, StopReason, optimise
from leeward.wind import WindFarm

REFERENCES = sorted(DATA.glob("farm*_t*_s*.json"))


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_smart_start_is_topfarms(path):
    reference = json.loads(path.read_text())
    farm = WindFarm(builtin.site(), builtin.turbines()[reference["type"]])
    area = Area.from_geojson(FARMS, farm_idx=reference["farm"])
    problem = LayoutProblem(farm, area, reference["n_turbines"], spacing_m=reference["spacing_m"])
    options = SmartStart(reference["grid_size"], reference["random_pct"])
    solution = optimise(problem, reference["seed"], recipe="smart_start", smart_start=options)
    np.testing.assert_array_equal(solution.x, reference["x_m"])
    np.testing.assert_array_equal(solution.y, reference["y_m"])
    assert solution.aep_gwh == pytest.approx(reference["aep_gwh"], rel=1e-9)
    assert solution.stop_reason is StopReason.COMPLETED
    assert [phase.name for phase in solution.phases] == ["smart_start"]


def test_there_are_four_references():
    assert len(REFERENCES) == 4


def test_smart_start_without_chance_takes_the_best_point_each_time(small_site, turbine):
    farm = WindFarm(small_site, turbine)
    problem = LayoutProblem(farm, square(5000), 5, spacing_m=720)
    solution = optimise(problem, 3, recipe="smart_start", smart_start=SmartStart(grid_size=9, random_pct=0))
    site = small_site.coarser(360, (6.0, 8.0, 10.0, 12.0, 14.0))
    grid_x, grid_y = (c.ravel() for c in np.meshgrid(np.linspace(0, 5000, 9), np.linspace(0, 5000, 9)))
    for count in range(1, 5):
        x, y = solution.x[:count], solution.y[:count]
        free = (np.hypot(grid_x[:, None] - x, grid_y[:, None] - y) >= 720).all(axis=1)
        yields = WindFarm(site, turbine).next_turbine_aep_gwh(x, y, grid_x[free], grid_y[free], rotor_average=False)
        there = np.hypot(grid_x[free] - solution.x[count], grid_y[free] - solution.y[count]) == 0
        assert yields[there] == pytest.approx(yields.max(), rel=1e-12)


def test_any_free_point_will_do_at_100_per_cent(problem):
    one, other = (
        optimise(problem, seed, recipe="smart_start", smart_start=SmartStart(random_pct=100)) for seed in (0, 1)
    )
    assert_feasible(problem, one.x, one.y)
    assert not np.array_equal(one.x, other.x)


def test_too_few_grid_points_are_made_up_for_and_said(problem):
    solution = optimise(problem, 0, recipe="smart_start", smart_start=SmartStart(grid_size=4))
    assert_feasible(problem, solution.x, solution.y)
    assert any("placed at random" in note and "grid" in note for note in solution.notes)
