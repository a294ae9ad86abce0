"""The optimiser: what it promises of every layout, of its work and of its answers to bad questions."""

import functools
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import shapely
import yaml

from conftest import DATA
from leeward.campaign import builtin
from leeward.errors import InfeasibleError, InputError, NotANumberError
from leeward.layout import Area, LayoutProblem, SmartStart, StopReason, descent, optimise
from leeward.layout.descent import Descent
from leeward.layout.objective import Objective
from leeward.layout.problem import TOLERANCE_M
from leeward.wind import Neighbours, Site, Turbine, WindFarm

FARMS = builtin._DATA / "farms.geojson"
REFERENCES = sorted(DATA.glob("farm*_t*_s*.json"))
LITTLE = 8_000_000  # pair evaluations: a descent or two of a small farm


def square(side, **options):
    return Area.from_arrays([0, side, side, 0], [0, 0, side, side], **options)


SHAPES = {
    "convex": square(6000),
    "concave": Area.from_arrays([0, 8000, 8000, 2500, 2500, 0], [0, 0, 2500, 2500, 8000, 8000]),
    "regions": Area.union(
        [square(3000), Area.from_arrays([5000, 8000, 6500], [5000, 5200, 8500]), Area.circle(7000, 1000, 1200)]
    ),
    "hole": Area.from_arrays(
        [0, 7000, 7000, 0], [0, 0, 7000, 7000], holes=[([3000, 4000, 4000, 3000], [3000, 3000, 4000, 4000])]
    ),
    "zones": square(7000).without(
        [shapely.Point(2000, 5000), shapely.LineString([(0, 0), (7000, 3000)])], buffer_m=400
    ),
    "circle": Area.circle(700_000, 6_200_000, 3500),
}


@pytest.fixture(scope="module")
def small_site():
    """Twelve directions, two speeds."""
    return Site.from_weibull(
        [0.2, 0.3, 0.4, 0.1],
        [9.0, 10.0, 11.0, 8.0],
        [2.0, 2.1, 2.2, 1.9],
        0.08,
        directions=np.arange(0, 360, 30),
        speeds=[8.0, 11.0],
    )


@pytest.fixture(scope="module")
def problem(small_site, turbine):
    return LayoutProblem(WindFarm(small_site, turbine), SHAPES["concave"], 12, spacing_m=720)


def assert_feasible(problem, x, y):
    """Measured with shapely and numpy alone."""
    assert len(x) == len(y) == problem.n_turbines
    points = shapely.points(x, y)
    inside = [shapely.distance(part.geometry, points) <= part.margin + TOLERANCE_M for part in problem.area.parts]
    assert np.any(inside, axis=0).all()
    for zone in problem.area.zones:
        assert (shapely.distance(zone.geometry, points) >= zone.margin - TOLERANCE_M).all()
    room = problem.room
    fixed = problem.farm.neighbours
    everyone_x = np.r_[x, [] if fixed is None else fixed.x]
    everyone_y = np.r_[y, [] if fixed is None else fixed.y]
    for i in range(len(x)):
        for j in range(i + 1, len(everyone_x)):
            apart = np.hypot(x[i] - everyone_x[j], y[i] - everyone_y[j])
            assert apart >= 0.5 * (room[i] + room[j]) - TOLERANCE_M


# --- SmartStart


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
        yields = WindFarm(site, turbine).next_turbine_aep(x, y, grid_x[free], grid_y[free], rotor_average=False)
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


# --- every layout is feasible


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("recipe", ["smart_start+refine", "smart_start", "random", "random+refine"])
def test_feasible(shape, recipe, small_site, turbine):
    problem = LayoutProblem(WindFarm(small_site, turbine), SHAPES[shape], 9, spacing_diameters=3)
    solution = optimise(problem, 1, recipe=recipe, work=LITTLE // 2)
    assert_feasible(problem, solution.x, solution.y)
    assert solution.min_spacing_m >= 720 - TOLERANCE_M
    assert problem.area.contains(solution.x, solution.y, TOLERANCE_M).all()


def test_refinement_beats_its_start(problem):
    start = optimise(problem, 0, recipe="smart_start")
    solution = optimise(problem, 0, work=LITTLE)
    assert solution.aep_gwh > start.aep_gwh
    assert solution.phases[0].aep_gwh == pytest.approx(start.aep_gwh, rel=1e-12)
    assert start.start is None
    np.testing.assert_array_equal(solution.start, (start.x, start.y))
    assert solution.phases[-1].aep_gwh == pytest.approx(solution.aep_gwh, rel=1e-12)
    aep = [phase.aep_gwh for phase in solution.phases]
    assert aep == sorted(aep)
    assert sum(phase.seconds for phase in solution.phases) <= solution.seconds
    assert solution.aep_gwh == pytest.approx(problem.farm.aep(solution.x, solution.y), rel=1e-13)
    assert solution.wake_loss == pytest.approx(problem.farm.wake_loss(solution.x, solution.y), rel=1e-12)
    assert solution.min_spacing_m == problem.min_spacing_m(solution.x, solution.y)


def test_start_from_a_layout(problem):
    start = optimise(problem, 0, recipe="smart_start")
    only_measured = optimise(problem, 0, recipe="start", start=(start.x, start.y))
    assert only_measured.x.tobytes() == start.x.tobytes()
    at_the_limit = LayoutProblem(problem.farm, square(720), 4, spacing_m=720.0000008)
    corners = np.array([[0.0, 720.0, 720.0, 0.0], [0.0, 0.0, 720.0, 720.0]])
    assert optimise(at_the_limit, 0, recipe="start", start=corners).y.tobytes() == corners[1].tobytes()
    better = optimise(problem, 0, recipe="start+refine", start=(start.x, start.y), work=LITTLE)
    assert better.aep_gwh > start.aep_gwh
    assert_feasible(problem, better.x, better.y)


def test_neighbours_count_in_wakes_and_spacing(small_site, turbine):
    there = Neighbours(x=[-100.0, 2000.0, 3000.0], y=[3000.0, 2900.0, -400.0], turbine=turbine)
    problem = LayoutProblem(WindFarm(small_site, turbine, neighbours=there), square(5000), 8, spacing_m=900)
    for recipe in ("smart_start+refine", "smart_start", "random"):
        solution = optimise(problem, 2, recipe=recipe, work=LITTLE)
        assert_feasible(problem, solution.x, solution.y)
        assert solution.aep_gwh == pytest.approx(problem.farm.aep(solution.x, solution.y), rel=1e-13)


def test_types_that_mix_have_spacings_of_their_own(small_site, turbines):
    large, middle = turbines[0], turbines[1]
    farm = WindFarm(small_site, [large, middle] * 4)
    problem = LayoutProblem(farm, square(5000), spacing_m={large: 1000, middle: 600})
    np.testing.assert_array_equal(problem.room, [1000, 600] * 4)
    for recipe in ("smart_start+refine", "smart_start", "random"):
        solution = optimise(problem, 0, recipe=recipe, work=LITTLE)
        assert_feasible(problem, solution.x, solution.y)
    in_diameters = LayoutProblem(farm, square(5000), spacing_diameters=3)
    np.testing.assert_allclose(in_diameters.room, [720, 585] * 4)


def test_turbines_move_between_regions(small_site, turbine):
    """All start in the left one of two regions; the right one is as large."""
    area = Area.union([square(4000), Area.from_arrays([9000, 13000, 13000, 9000], [0, 0, 4000, 4000])])
    problem = LayoutProblem(WindFarm(small_site, turbine), area, 8, spacing_m=720)
    x, y = (c.ravel() for c in np.meshgrid(np.linspace(500, 3500, 4), [1000.0, 3000.0]))
    solution = optimise(problem, 0, recipe="start+refine", start=(x, y), work=3 * LITTLE)
    assert (solution.x > 8000).any()
    assert_feasible(problem, solution.x, solution.y)


def test_a_farm_given_as_a_list_of_equal_turbines(small_site, turbine):
    lists = LayoutProblem(WindFarm(small_site, [turbine] * 6), square(5000), spacing_m=720)
    single = LayoutProblem(WindFarm(small_site, turbine), square(5000), 6, spacing_m=720)
    one, other = (optimise(p, 0, work=LITTLE) for p in (lists, single))
    assert one.x.tobytes() == other.x.tobytes()


@pytest.mark.parametrize("case", ["series", "lone condition", "no_wake", "half of the circle"])
def test_other_winds(case, turbine):
    rng = np.random.default_rng(0)
    site = {
        "series": Site.from_time_series(rng.uniform(0, 360, 4000), 10 * rng.weibull(2.0, 4000), 0.07),
        "lone condition": Site.from_table([270.0], [9.0], [[1.0]], 0.07),
        "no_wake": builtin.site(),
        "half of the circle": Site.from_weibull([0.5, 0.5], [9, 11], [2, 2], 0.07, directions=np.arange(180, 360, 0.5)),
    }[case]
    farm = WindFarm(site, turbine, "no_wake" if case == "no_wake" else "nygaard_2022")
    problem = LayoutProblem(farm, square(5000), 7, spacing_m=720)
    objective = Objective(problem)
    solution = optimise(problem, 0, effort="fast")
    assert_feasible(problem, solution.x, solution.y)
    start = optimise(problem, 0, recipe="smart_start")
    assert solution.aep_gwh >= start.aep_gwh * (1 - 1e-12)
    if case != "no_wake":
        assert solution.wake_loss < start.wake_loss
    # what it goes by is about what it is judged by
    x, y = start.x, start.y
    sampled = np.mean([objective.gradient(x, y, np.random.default_rng(seed))[0] for seed in range(300)])
    assert sampled == pytest.approx(start.aep_gwh, rel=0.03)


def test_very_small_farms_are_refined_too(turbine):
    farm = WindFarm(builtin.site(), turbine)
    for count in (1, 2, 4):
        problem = LayoutProblem(farm, square(3000), count, spacing_m=720)
        solution = optimise(problem, 0, effort="fast")
        assert [phase.name for phase in solution.phases][:3] == ["smart_start", "descent", "polish"]
        assert_feasible(problem, solution.x, solution.y)


def test_far_apart_regions(small_site, turbine):
    """Their common bounding box is almost empty."""
    far = Area.from_arrays([300_000, 302_000, 302_000, 300_000], [300_000, 300_000, 302_000, 302_000])
    problem = LayoutProblem(WindFarm(small_site, turbine), Area.union([square(2000), far]), 6, spacing_m=720)
    solution = optimise(problem, 0, recipe="random+refine", work=LITTLE)
    assert_feasible(problem, solution.x, solution.y)


def test_neighbours_are_taken_as_they_were(small_site, turbine):
    x = np.array([-100.0, 2000.0])
    there = Neighbours(x=x, y=[2500.0, 2500.0], turbine=(turbine for _ in range(2)))
    farm = WindFarm(small_site, turbine, neighbours=there)
    x[:] = 1e6
    problem = LayoutProblem(farm, square(5000), 3, spacing_m=720)
    assert len(problem.room) == 5
    violation = problem.violation([2000.0, 3000.0, 4500.0], [2600.0, 1000.0, 4000.0])
    assert violation.too_close_m[0] == pytest.approx(620.0)


def test_one_turbine(small_site, turbine):
    problem = LayoutProblem(WindFarm(small_site, turbine), square(2000), 1, spacing_m=720)
    solution = optimise(problem, 0, work=100_000)
    assert solution.wake_loss == pytest.approx(0.0, abs=1e-12)
    assert solution.min_spacing_m == np.inf


def test_a_tight_fit_is_found_on_a_lattice(small_site, turbine):
    """Placed one by one they block each other; a triangular lattice has room."""
    problem = LayoutProblem(WindFarm(small_site, turbine), square(3000), 22, spacing_m=720)
    solution = optimise(problem, 0, work=LITTLE)
    assert_feasible(problem, solution.x, solution.y)


def test_no_room_is_an_error_that_says_how_much_there_is(small_site, turbine):
    farm = WindFarm(small_site, turbine)
    with pytest.raises(InputError, match=r"60 turbines 720 m apart do not fit into 9 km2: there is room for \d+"):
        LayoutProblem(farm, square(3000), 60, spacing_m=720)
    most = 0
    for count in range(20, 60):
        try:
            LayoutProblem(farm, square(3000), count, spacing_m=720)
        except InputError:
            break
        most = count
    problem = LayoutProblem(farm, square(3000), most, spacing_m=720)  # not proved impossible, but it is
    with pytest.raises(InfeasibleError, match=rf"{most} turbines .* 9 km2: \d+ stand on a triangular lattice"):
        optimise(problem, 0, work=100_000)


# --- reproducible, watched, stopped


def test_same_seed_same_bytes(problem):
    one, again, other = (optimise(problem, seed, work=LITTLE) for seed in (5, 5, 6))
    assert one.x.tobytes() == again.x.tobytes()
    assert one.y.tobytes() == again.y.tobytes()
    assert (one.aep_gwh, one.work, one.steps) == (again.aep_gwh, again.work, again.steps)
    assert one.x.tobytes() != other.x.tobytes()


def test_threads_change_nothing(problem):
    farms = [WindFarm(builtin.site(), problem.farm.turbine, threads=threads) for threads in (1, 3)]
    one, three = (optimise(LayoutProblem(f, problem.area, 12, spacing_m=720), 5, effort="fast") for f in farms)
    assert [phase.name for phase in one.phases][:3] == ["smart_start", "descent", "polish"]  # blocks for all threads
    assert one.x.tobytes() == three.x.tobytes()


PROGRAM = """
from leeward.campaign import builtin
from leeward.layout import Area, LayoutProblem, optimise
from leeward.wind import WindFarm
area = Area.from_arrays([0, 8000, 8000, 2500, 2500, 0], [0, 0, 2500, 2500, 8000, 8000])
problem = LayoutProblem(WindFarm(builtin.site(), builtin.turbines()[5]), area, 7, spacing_m=720)
solution = optimise(problem, 4, effort="fast")
print(solution.x.tobytes().hex(), solution.y.tobytes().hex(), solution.work)
"""


def test_another_process_gives_the_same_bytes():
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len(said[0]) > 200


@pytest.mark.parametrize("stochastic", [False, True])
def test_the_work_of_a_time_budget_gives_the_same_bytes(problem, stochastic, turbine):
    if stochastic:
        problem = LayoutProblem(WindFarm(builtin.site(), turbine), problem.area, 12, spacing_m=720)
    timed = optimise(problem, 1, time_budget_s=1.0)
    assert timed.stop_reason is StopReason.TIME_UP
    counted = optimise(problem, 1, work=timed.work)
    assert counted.stop_reason is StopReason.WORK_DONE
    assert (counted.work, counted.steps) == (timed.work, timed.steps)
    assert counted.x.tobytes() == timed.x.tobytes()


def test_efforts_are_amounts_of_work(problem):
    fast = optimise(problem, 0, effort="fast")
    normal = optimise(problem, 0, effort="normal")
    assert 3.5 * fast.work < normal.work < 4.5 * fast.work
    assert normal.aep_gwh >= fast.aep_gwh
    assert normal.stop_reason is StopReason.WORK_DONE


def test_a_driver_sees_every_step(problem):
    seen = []
    solution = optimise(problem, 0, work=LITTLE, watch=seen.append)
    assert [progress.step for progress in seen] == list(range(1, solution.steps + 1))
    assert [phase.name for phase in solution.phases] == list(dict.fromkeys(p.phase for p in seen))
    descending = [p for p in seen if p.phase == "descent"]
    assert all(np.isfinite(p.aep_gwh) and p.violation_m >= 0 for p in descending)
    assert any(p.violation_m > 0 for p in descending)
    best = [p.best_aep_gwh for p in seen if np.isfinite(p.best_aep_gwh)]
    assert best == sorted(best)
    assert best[-1] <= solution.aep_gwh * (1 + 1e-12)
    assert [p.work for p in seen] == sorted(p.work for p in seen)


@pytest.mark.parametrize("when", [4, 40, 800])
def test_stop_on_request_with_the_best_so_far(problem, when):
    """While turbines are placed, in the descent, in the search."""
    solution = optimise(problem, 0, watch=lambda progress: progress.step >= when)
    assert solution.stop_reason is StopReason.REQUESTED
    assert solution.steps == when
    assert_feasible(problem, solution.x, solution.y)


class Broken(WindFarm):
    """Its gradients stop being numbers after a while."""

    calls = 0

    def aep_gradient(self, x, y):
        self.calls += 1
        aep, by_x, by_y = super().aep_gradient(x, y)
        return (aep, by_x, by_y) if self.calls < self.good else (float("nan"), by_x, by_y)


def test_not_a_number_is_a_reason_to_stop(small_site, turbine):
    farm = Broken(small_site, turbine)
    farm.good = 50
    problem = LayoutProblem(farm, square(5000), 6, spacing_m=720)
    solution = optimise(problem, 0)
    assert solution.stop_reason is StopReason.NOT_A_NUMBER
    assert_feasible(problem, solution.x, solution.y)
    farm.good = 0
    with pytest.raises(NotANumberError, match="left the finite numbers at its step 1"):
        list(_descent_steps(problem, farm))


def _descent_steps(problem, farm):
    from leeward.layout.recipes import EFFORTS, Search

    search = Search(problem, Objective(problem), np.random.default_rng(0), EFFORTS["fast"], np.empty(0), np.empty(0))
    search.begin("descent")
    x, y = problem.area.random_points(6, np.random.default_rng(0))
    yield from search.descend(x, y, Descent(10, 50.0))


def test_descent_goes_on_from_a_stored_state(problem):
    objective, settings = Objective(problem), Descent(60, 100.0)
    x, y = problem.area.random_points(12, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    state = descent.start(problem, x, y)
    while not descent.done(settings, state):
        if state.step == 20:
            stored = pickle.dumps((state, rng))
        state = descent.step(problem, objective, settings, state, rng)
    resumed, rng = pickle.loads(stored)
    while not descent.done(settings, resumed):
        resumed = descent.step(problem, objective, settings, resumed, rng)
    assert resumed.x.tobytes() == state.x.tobytes()
    assert resumed.aep_gwh == state.aep_gwh
    with pytest.raises(InputError, match="x has 5 coordinates; expected 12"):
        descent.start(problem, x[:5], y[:5])
    fewer = LayoutProblem(problem.farm, problem.area, 5, spacing_m=720)
    with pytest.raises(InputError, match="a descent of 12 turbines, for a problem of 5"):
        descent.step(fewer, Objective(fewer), settings, state, rng)


# --- as good as promised


def test_farm_0_beats_plain_descent():
    farm = WindFarm(builtin.site(), builtin.turbines()[5])
    problem = LayoutProblem(farm, Area.from_geojson(FARMS, farm_idx=0), 66, spacing_m=720)
    solution = optimise(problem, 0)
    assert solution.phases[0].aep_gwh == pytest.approx(5246.569, abs=1e-3)
    assert solution.aep_gwh > 5305.0  # 2000 steps of plain stochastic descent: 5296.8
    assert_feasible(problem, solution.x, solution.y)


def test_iea37_case_study_beats_published_layouts():
    figures = yaml.safe_load((DATA / "iea37-cs1.yaml").read_text())
    wind = figures["wind"]
    site = Site.from_table(wind["direction_deg"], wind["speed_m_s"], wind["probability"], wind["turbulence_intensity"])
    farm = WindFarm(site, Turbine.iea37_3_35mw(), "iea37_gaussian")
    problem = LayoutProblem(farm, Area.circle(0, 0, 1300), 16, spacing_m=figures["min_spacing_m"])
    solution = optimise(problem, 0)
    assert solution.aep_gwh * 1e3 > 418_924
    assert np.hypot(solution.x, solution.y).max() <= 1300 + TOLERANCE_M
    assert_feasible(problem, solution.x, solution.y)


# --- bring your own


def in_a_row(problem, seed):
    return np.linspace(100, 7900, problem.n_turbines), np.full(problem.n_turbines, 1000.0 + seed)


def outside(problem, seed):
    x, y = in_a_row(problem, seed)
    return x, y - 3000.0


def one_missing(problem, seed):
    x, y = in_a_row(problem, seed)
    return x[1:], y[1:]


def nothing(problem, seed):
    return None


def test_own_function(small_site, turbine):
    problem = LayoutProblem(WindFarm(small_site, turbine), SHAPES["concave"], 6, spacing_m=720)
    solution = optimise(problem, 7, recipe=f"{__name__}:in_a_row")
    np.testing.assert_array_equal(solution.y, 1007.0)
    assert solution.aep_gwh == pytest.approx(problem.farm.aep(solution.x, solution.y), rel=1e-13)
    assert solution.stop_reason is StopReason.COMPLETED
    assert solution.recipe == f"{__name__}:in_a_row"
    np.testing.assert_array_equal(optimise(problem, 7, recipe=in_a_row).x, solution.x)
    assert optimise(problem, 7, recipe=functools.partial(in_a_row)).recipe == "partial"
    with pytest.raises(InfeasibleError, match=r"outside the area: turbine 0 \(by 2000"):
        optimise(problem, 0, recipe=outside)
    with pytest.raises(InputError, match="x has 5 coordinates; expected 6"):
        optimise(problem, 0, recipe=one_missing)
    with pytest.raises(InputError, match="returned None; expected a pair"):
        optimise(problem, 0, recipe=nothing)
    by_name = [
        ("no_such_module:f", "no_such_module"),
        (f"{__name__}:no_such", "no_such"),
        (":f", "no name of a module"),
    ]
    for name, said in [*by_name, (".mod:f", "no name of a module"), ("os:no such", "no function")]:
        with pytest.raises(InputError, match=said):
            optimise(problem, 0, recipe=name)
    with pytest.raises(InputError, match="no function 'LITTLE'"):
        optimise(problem, 0, recipe=f"{__name__}:LITTLE")
    array = optimise(problem, 7, recipe=lambda problem, seed: np.array(in_a_row(problem, seed)))
    np.testing.assert_array_equal(array.x, solution.x)
    for given in ({"start": in_a_row(problem, 0)}, {"work": 10}, {"time_budget_s": 1}, {"smart_start": SmartStart()}):
        with pytest.raises(InputError, match="would not see it"):
            optimise(problem, 0, recipe=in_a_row, **given)


# --- bad input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": -1}, "seed is -1; expected a whole number from 0"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": 2**32}, "seed is 4294967296"),
        ({"effort": ["fast"]}, "effort is"),
        ({"time_budget_s": "soon"}, "time_budget_s"),
        ({"watch": 3}, "watch is 3"),
        ({"smart_start": {"grid_size": 5}}, "expected SmartStart"),
        ({"recipe": "random", "smart_start": SmartStart()}, "no use for it"),
        ({"effort": "heroic"}, "effort is 'heroic'; expected one of fast, normal, thorough"),
        ({"recipe": "smart"}, "recipe is 'smart'; expected one of smart_start"),
        ({"recipe": 3}, "recipe is 3"),
        ({"time_budget_s": 0}, "time_budget_s is 0"),
        ({"time_budget_s": 1, "work": 1}, "both given"),
        ({"work": 0}, "work is 0"),
        ({"recipe": "start+refine"}, "start missing"),
        ({"start": ([0], [0])}, "start given"),
        ({"recipe": "start", "start": 3}, "expected a pair"),
        ({"recipe": "start", "start": ([0.0], [0.0])}, "x has 1 coordinates; expected 12"),
    ],
)
def test_bad_options(problem, options, said):
    with pytest.raises(InputError, match=said):
        optimise(problem, **{"seed": 0, **options})


def test_a_start_outside_names_the_turbines_and_the_way_out(problem):
    x, y = in_a_row(problem, 0)
    x = np.linspace(0, 12 * 730, 12)
    with pytest.raises(InputError, match=r"outside the area: turbine 11 \(by .*problem.repaired") as caught:
        optimise(problem, 0, recipe="start", start=(x, y))
    assert "turbine 11" in str(caught.value)
    moved = problem.repaired(x, y)
    assert_feasible(problem, *moved)
    optimise(problem, 0, recipe="start", start=moved)
    with pytest.raises(InputError, match="too close to another: turbine 0"):
        optimise(problem, 0, recipe="start", start=(np.full(12, 1000.0), np.linspace(500, 1000, 12)))


@pytest.mark.parametrize("question", ["violation", "repaired", "min_spacing_m"])
def test_a_problem_is_asked_about_all_its_turbines(problem, question):
    with pytest.raises(InputError, match="x has 5 coordinates; expected 12"):
        getattr(problem, question)(np.arange(5.0) * 1000, np.arange(5.0) * 1000)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_turbines": 0}, "n_turbines is 0"),
        ({"n_turbines": 2.5}, "n_turbines is 2.5"),
        ({"n_turbines": None}, "n_turbines is missing"),
        ({"spacing_m": None}, "one of spacing_m and spacing_diameters"),
        ({"spacing_diameters": 3}, "one of spacing_m and spacing_diameters"),
        ({"spacing_m": -5}, "spacing_m is -5"),
        ({"spacing_m": [500, 600]}, "expected a number, or a dict"),
        ({"spacing_m": {}}, "says nothing about"),
        ({"area": square(100)}, "less than a rotor of 240 m"),
        ({"area": "farms.geojson"}, "expected an Area"),
        ({"farm": 3}, "expected a WindFarm"),
    ],
)
def test_bad_problems(small_site, turbine, options, said):
    arguments = {"farm": WindFarm(small_site, turbine), "area": square(5000), "n_turbines": 4, "spacing_m": 720}
    with pytest.raises(InputError, match=said):
        LayoutProblem(**{**arguments, **options})


def test_a_list_of_turbines_is_counted(small_site, turbine):
    farm = WindFarm(small_site, [turbine] * 5)
    assert LayoutProblem(farm, square(5000), spacing_m=720).n_turbines == 5
    with pytest.raises(InputError, match="list of 5 turbines"):
        LayoutProblem(farm, square(5000), 6, spacing_m=720)


@pytest.mark.parametrize(
    "options", [{"random_pct": -1}, {"random_pct": 101}, {"random_pct": "30"}, {"grid_size": 1}, {"grid_size": 2.5}]
)
def test_bad_smart_start_options(options):
    with pytest.raises(InputError, match=next(iter(options))):
        SmartStart(**options)
