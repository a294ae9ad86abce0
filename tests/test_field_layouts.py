"""Layouts optimised in wind that varies over the site."""

import numpy as np
import pytest

import field_cases as cases
from field_cases import CASES, WEIBULL, Case, X, Y
from layout_cases import assert_feasible
from leeward.layout import Area, LayoutProblem, SmartStart, optimise
from leeward.layout.objective import Objective
from leeward.layout.starts import fill_at_random
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from test_field_farm import everywhere
from test_gradient import assert_close, differences, smooth_turbine

DIRECTIONS = np.arange(0.0, 360.0, 10.0)
SPEEDS = np.arange(4.0, 17.0, 2.0)
SPACING = 700.0
LEFT, RIGHT, LOW, HIGH = X[0] + 200.0, X[0] + 4200.0, Y[0] + 300.0, Y[0] + 4300.0
FAST = {"effort": "fast", "work": 4_000_000}  # a second or less
KINDS = ("speed-up and turbulence", "table", "series", "elevated with speed-up", "terrain following with speed-up")


def area(left=LEFT, low=LOW, right=RIGHT, high=HIGH):
    return Area.from_arrays([left, right, right, left], [low, low, high, high])


def problem_of(site, turbine, count=8, *, wake_model="nygaard_2022", where=None, **farm):
    farm = WindFarm(site, turbine, wake_model, **farm)
    return LayoutProblem(farm, area() if where is None else where, count, spacing_m=SPACING)


def site_of(name):
    return CASES[name].site(DIRECTIONS, SPEEDS)


def random_layouts(problem, count, seed=0):
    """Return feasible layouts at random."""
    rng = np.random.default_rng(seed)
    nowhere = np.empty(0)
    return [problem.repaired(*fill_at_random(problem, nowhere, nowhere, rng)) for _ in range(count)]


# --- every kind of field ---


@pytest.mark.parametrize("name", KINDS)
def test_layouts_are_feasible_and_better_than_their_start(name, turbine):
    problem = problem_of(site_of(name), turbine)
    start, refined = (optimise(problem, 0, recipe=r, **FAST) for r in ("smart_start", "smart_start+refine"))
    for solution in (start, refined):
        assert_feasible(problem, solution.x, solution.y)
        assert solution.aep_gwh == pytest.approx(problem.farm.aep_gwh(solution.x, solution.y), rel=1e-14)
    assert refined.aep_gwh > 1.01 * start.aep_gwh
    assert refined.aep_gwh > 1.01 * max(problem.farm.aep_gwh(*layout) for layout in random_layouts(problem, 10))


@pytest.mark.parametrize("name", ["weibull", "terrain following with speed-up"])
@pytest.mark.parametrize("bins", ["few", "many"])
def test_a_seed_gives_one_layout(name, bins, turbine):
    """With few bins, each step uses the whole rose; with many, samples of it."""
    site = site_of(name) if bins == "few" else CASES[name].site()
    problem = problem_of(site, turbine, 5)
    assert Objective(problem).samples == (bins == "many")
    options = {**FAST, "work": 2_000_000}
    solutions = [optimise(problem_of(site, turbine, 5, threads=n), 7, **options) for n in (1, 2)]
    np.testing.assert_array_equal(*(solution.x for solution in solutions))
    np.testing.assert_array_equal(*(solution.y for solution in solutions))
    assert solutions[0].aep_gwh == solutions[1].aep_gwh
    assert not np.array_equal(optimise(problem, 8, **options).x, solutions[0].x)


def test_mixed_types_beside_neighbours(turbines):
    each = [turbines[i % 3] for i in range(6)]
    there = Neighbours([LEFT + 1500.0, RIGHT + 500.0], [LOW + 1500.0, HIGH], turbines[1])
    problem = LayoutProblem(WindFarm(site_of("everything"), each, neighbours=there), area(), spacing_diameters=3)
    solution = optimise(problem, 0, **FAST)
    assert_feasible(problem, solution.x, solution.y)
    assert solution.aep_gwh == pytest.approx(problem.farm.aep_gwh(solution.x, solution.y), rel=1e-14)


def test_an_area_that_ends_with_the_grid(turbine):
    """Turbines leave the area and the grid on their way, and come back."""
    problem = problem_of(site_of("speed-up and turbulence"), turbine, 12, where=area(X[0], Y[0], X[-1], Y[-1]))
    solution = optimise(problem, 0, **FAST)
    assert_feasible(problem, solution.x, solution.y)
    assert problem.farm.site.field.has_wind(solution.x, solution.y).all()
    assert problem.farm.site.field.is_checked


def test_a_layout_avoids_missing_values(turbine):
    """They are filled in for the optimiser, and change nothing where turbines may stand."""
    data = CASES["weibull"].dataset.copy(deep=True)
    data["Weibull_A"].values[-1, -1] = np.nan
    holed, whole = (Case(each).site(DIRECTIONS, SPEEDS) for each in (data, CASES["weibull"].dataset))
    where = area(right=X[-2] - 1.0, high=Y[-2] - 1.0)
    one, other = (optimise(problem_of(site, turbine, 5, where=where), 0, **FAST) for site in (holed, whole))
    np.testing.assert_array_equal(one.x, other.x)
    assert one.aep_gwh == other.aep_gwh


# --- wind that increases to the north ---


def windy_north():
    """Speeds from 0.8 to 1.2 of the reference, linear from south to north."""
    factor = np.tile(np.linspace(0.8, 1.2, len(Y)), (len(X), 1))
    data = WEIBULL.assign_coords(x=X, y=Y).assign(Speedup=(("x", "y"), factor))
    return Case(data).site(DIRECTIONS, SPEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [pytest.param("smart_start+refine", marks=pytest.mark.slow), "random+refine"])
def test_without_wakes_all_turbines_move_to_the_windy_border(recipe, turbine):
    problem = problem_of(windy_north(), turbine, 5, wake_model="no_wake")
    best = 5 * problem.farm.aep_gwh([LEFT], [HIGH])
    solution = optimise(problem, 0, recipe=recipe, effort="fast")
    assert_feasible(problem, solution.x, solution.y)
    np.testing.assert_allclose(solution.y, HIGH, rtol=0, atol=1e-3)
    assert solution.aep_gwh == pytest.approx(best, rel=1e-8)
    assert optimise(problem, 0, recipe="smart_start").aep_gwh < 0.99 * best


def test_a_second_row_is_packed_behind_the_first(turbine):
    """At least as well as in equal distances: six in the first row, four in the gaps behind it."""
    problem = problem_of(windy_north(), turbine, 10, wake_model="no_wake")
    row = np.linspace(LEFT, RIGHT, 6)
    behind = 0.5 * (row[1:] + row[:-1])[:4]
    x, y = np.r_[row, behind], np.r_[np.full(6, HIGH), np.full(4, HIGH - np.sqrt(SPACING**2 - 400.0**2))]
    assert_feasible(problem, x, y)
    solution = optimise(problem, 0, effort="fast")
    assert_feasible(problem, solution.x, solution.y)
    assert solution.aep_gwh > problem.farm.aep_gwh(x, y)
    assert (solution.y > HIGH - 1.0).sum() == 6


@pytest.mark.slow
def test_wakes_and_wind_are_weighed_up(turbine):
    """With wakes, turbines stand farther apart, and still in better wind than random ones."""
    problem = problem_of(windy_north(), turbine)
    solution = optimise(problem, 0, effort="fast")
    alone = problem_of(windy_north(), turbine, wake_model="no_wake")
    free = optimise(alone, 0, effort="fast")
    assert solution.aep_gwh > problem.farm.aep_gwh(free.x, free.y)
    assert free.aep_gwh > alone.farm.aep_gwh(solution.x, solution.y)
    assert solution.y.mean() > 0.5 * (LOW + HIGH) + 800.0


# --- the objective ---

MANY_BINS = ("weibull", "weibull linear", "speed-up", "local bins", "everything", "turbulence at 15 m/s", "power shear")


def long_series(steps=3000):
    rng = np.random.default_rng(61)
    data = cases.with_speed_up(cases.series_with_speed_up().isel(time=np.zeros(steps, int)).drop_vars("time"))
    speed = 10.0 * rng.weibull(2.0, steps)
    return Case(data.assign(WD=("time", rng.uniform(0.0, 360.0, steps))).assign_coords(ws=("time", speed)))


def assert_judged(site, turbine):
    problem = problem_of(site, turbine)
    objective = Objective(problem)
    assert objective.samples
    layouts = random_layouts(problem, 6)
    full = np.array([problem.farm.aep_gwh(*layout) for layout in layouts])
    gross = np.array([problem.farm.simulate(*layout).gross_aep_gwh.sum() for layout in layouts])
    judged = [objective.judge(*layout) for layout in layouts]
    aep = np.array([aep for _, aep in judged])
    np.testing.assert_allclose(aep, full, rtol=1e-3)
    np.testing.assert_allclose(gross - aep, gross - full, rtol=0.02)  # only the wake loss is an estimate
    assert np.std(aep - full) < 0.05 * np.std(full)
    assert [objective.full(*pair)[1] for pair in zip(*np.swapaxes(layouts, 0, 1), judged, strict=True)] == full.tolist()


@pytest.mark.parametrize("name", MANY_BINS)
def test_the_judged_aep_is_nearly_the_full_one(name, turbine):
    assert_judged(CASES[name].site(), turbine)


def test_the_judged_aep_of_a_series_is_nearly_the_full_one(turbine):
    assert_judged(long_series().site(), turbine)


def test_the_judged_aep_where_the_air_density_varies_with_the_direction(turbine):
    assert_judged(CASES["density by sector"].site(), turbine)


@pytest.mark.parametrize("name", MANY_BINS)
def test_samples_have_the_gross_yield_of_the_full_rose(name, turbine):
    """The mean of estimates and derivatives from samples is near the full one."""
    problem = problem_of(CASES[name].site(), turbine, 4)
    objective = Objective(problem)
    (x, y), rng = random_layouts(problem, 1)[0], np.random.default_rng(3)
    exact = np.concatenate([np.atleast_1d(part) for part in problem.farm.aep_gradient(x, y)])
    found = np.array([np.r_[objective.gradient(x, y, rng)] for _ in range(100)])
    error = found.std(axis=0, ddof=1) / 10.0
    assert (np.abs(found.mean(axis=0) - exact) < 5.0 * error + 3e-3 * np.abs(exact).max() * (np.arange(9) == 0)).all()
    assert found[:, 0].std() < 0.01 * exact[0]


# --- wind that is the same everywhere, on a grid ---


@pytest.mark.parametrize("bins", ["few", pytest.param("many", marks=pytest.mark.slow)])
def test_a_grid_of_the_same_wind_gives_layouts_as_good(bins, turbine):
    options = {"directions": DIRECTIONS, "speeds": SPEEDS} if bins == "few" else {}
    values = [WEIBULL[name].values for name in ("Sector_frequency", "Weibull_A", "Weibull_k")]
    uniform = Site.from_weibull(*values, 0.08, **options)
    field = Site.from_dataset(everywhere(WEIBULL), **options)
    assert field.field.varies_weight
    best = []
    for site in (uniform, field):
        problem = problem_of(site, turbine)
        best.append(optimise(problem, 0, **FAST).aep_gwh)
    assert best[1] == pytest.approx(best[0], rel=1e-3)


# --- beside TopFarm and PyWake ---


@pytest.mark.slow
@pytest.mark.parametrize("name", ["speed-up and turbulence", "weibull linear", "local bins with shear"])
def test_smart_start_is_topfarms(name, turbine):
    """Point for point, with PyWake's map of the next turbine."""
    pytest.importorskip("topfarm")
    from topfarm.cost_models.py_wake_wrapper import PyWakeAEPCostModelComponent
    from topfarm.utils import smart_start

    import pywake_peer as peer

    count, size, seed = 8, 9, 3
    problem = problem_of(CASES[name].site(), turbine, count)
    x, y = (c.ravel() for c in np.meshgrid(np.linspace(LEFT, RIGHT, size), np.linspace(LOW, HIGH, size)))
    there = peer.peer_farm(problem.farm.wake_model, peer.peer_field(CASES[name]), [turbine])
    yields = PyWakeAEPCostModelComponent(there, count).get_aep4smart_start()
    expected = smart_start(x, y, yields, count, SPACING, random_pct=30, seed=seed, show_progress=False)
    solution = optimise(problem, seed, recipe="smart_start", smart_start=SmartStart(size, 30.0))
    np.testing.assert_array_equal(solution.x, expected[0])
    np.testing.assert_array_equal(solution.y, expected[1])


@pytest.fixture(scope="module")
def ridge():
    """PyWake's ParqueFicticio with distances along its terrain, and its turbines."""
    pytest.importorskip("py_wake")
    from py_wake.examples.data.ParqueFicticio import ParqueFicticioSite
    from py_wake.site.distance import TerrainFollowingDistance

    site = ParqueFicticioSite(distance=TerrainFollowingDistance())
    return site, *site.initial_position.T


RIDGE_TURBINE = Turbine.generic(2, 80, 70)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["nygaard_2022", "jensen"])
def test_distances_along_the_terrain(model, ridge):
    """One direction in each call: for several, PyWake 2.6.20 takes the positions in the order of the first one."""
    import pywake_peer as peer

    theirs, x, y = ridge
    directions, speeds = np.arange(0.0, 360.0, 30.0), np.arange(3.0, 26.0)
    options = {"directions": directions, "speeds": speeds, "distances": "terrain_following"}
    farm = WindFarm(Site.from_pywake(theirs, **options), RIDGE_TURBINE, model)
    there = peer.peer_farm(farm.wake_model, theirs, [RIDGE_TURBINE])
    # PyWake takes a single direction for the whole circle
    expected = sum(float(there(x, y, wd=[each], ws=speeds).aep().sum()) for each in directions) / len(directions)
    assert farm.aep_gwh(x, y) == pytest.approx(expected, rel=1e-9)
    straight = WindFarm(Site.from_pywake(theirs, **{**options, "distances": "straight"}), RIDGE_TURBINE, model)
    assert abs(straight.aep_gwh(x, y) / expected - 1.0) > 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("model", "rel"), [("nygaard_2022", 1e-3), ("jensen", 1e-6), ("bastankhah_gaussian", 1e-6)])
def test_the_gradient_along_the_terrain(model, rel, ridge):
    """Kinks are everywhere: in the table of nygaard_2022, and where a sampled point of a line passes into a cell."""
    theirs, x, y = ridge
    x, y = np.array([x, y]) + np.random.default_rng(3).uniform(-20.0, 20.0, (2, len(x)))
    options = {"directions": DIRECTIONS + 5.0, "speeds": SPEEDS, "distances": "terrain_following"}
    farm = WindFarm(Site.from_pywake(theirs, **options), smooth_turbine(), model)
    assert_close(farm.aep_gradient(x, y)[1:], differences(farm.aep_gwh, x, y, 1e-3), rel)
