"""The optimiser: every layout is feasible, and as good as promised."""

import json

import numpy as np
import pytest
import yaml

from conftest import DATA
from layout_cases import FARMS, LITTLE, SHAPES, assert_feasible, square
from leeward.campaign import builtin
from leeward.campaign.compute import POINTS_OF_A_PHASE, History
from leeward.errors import InfeasibleError, InputError
from leeward.layout import Area, LayoutProblem, Progress, optimise, recipes
from leeward.layout.objective import SAMPLE, Objective
from leeward.layout.problem import TOLERANCE_M
from leeward.layout.recipes import EFFORTS, MOST_RACED, Search
from leeward.wind import Neighbours, Site, Turbine, WindFarm


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
    assert solution.aep_gwh == pytest.approx(problem.farm.aep_gwh(solution.x, solution.y), rel=1e-13)
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
        assert solution.aep_gwh == pytest.approx(problem.farm.aep_gwh(solution.x, solution.y), rel=1e-13)


def test_types_that_mix_have_spacings_of_their_own(small_site, turbines):
    large, middle = turbines[0], turbines[1]
    farm = WindFarm(small_site, [large, middle] * 4)
    problem = LayoutProblem(farm, square(5000), spacing_m={large: 1000, middle: 600})
    np.testing.assert_array_equal(problem.min_distances_m, [1000, 600] * 4)
    for recipe in ("smart_start+refine", "smart_start", "random"):
        solution = optimise(problem, 0, recipe=recipe, work=LITTLE)
        assert_feasible(problem, solution.x, solution.y)
    in_diameters = LayoutProblem(farm, square(5000), spacing_diameters=3)
    np.testing.assert_allclose(in_diameters.min_distances_m, [720, 585] * 4)


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
    one, other = (optimise(p, 0, work=LITTLE // 2) for p in (lists, single))
    assert one.x.tobytes() == other.x.tobytes()


@pytest.mark.parametrize(
    "case",
    ["series", "half of the circle", *(pytest.param(c, marks=pytest.mark.slow) for c in ("lone condition", "no_wake"))],
)
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
        names = [phase.name for phase in solution.phases]
        assert names[:3] in (["smart_start", "descent", "polish"], ["smart_start", "race", "polish"])
        assert_feasible(problem, solution.x, solution.y)


def test_far_apart_regions(small_site, turbine):
    """Their common bounding box is almost empty."""
    far = Area.from_arrays([300_000, 302_000, 302_000, 300_000], [300_000, 300_000, 302_000, 302_000])
    problem = LayoutProblem(WindFarm(small_site, turbine), Area.union([square(2000), far]), 6, spacing_m=720)
    solution = optimise(problem, 0, recipe="random+refine", work=LITTLE // 2)
    assert_feasible(problem, solution.x, solution.y)


def test_neighbours_are_taken_as_they_were(small_site, turbine):
    x = np.array([-100.0, 2000.0])
    there = Neighbours(x=x, y=[2500.0, 2500.0], turbine=(turbine for _ in range(2)))
    farm = WindFarm(small_site, turbine, neighbours=there)
    x[:] = 1e6
    problem = LayoutProblem(farm, square(5000), 3, spacing_m=720)
    assert len(problem.min_distances_m) == 5
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
    with pytest.raises(InfeasibleError, match=rf"{most} turbines .* 9 km2: \d+ fit on a triangular lattice"):
        optimise(problem, 0, work=100_000)


@pytest.mark.slow
def test_farm_0_beats_plain_descent():
    farm = WindFarm(builtin.site(), builtin.turbines()[5])
    problem = LayoutProblem(farm, Area.from_geojson(FARMS, farm_idx=0), 66, spacing_m=720)
    solution = optimise(problem, 0)
    assert solution.phases[0].aep_gwh == pytest.approx(5246.569, abs=1e-3)
    assert solution.aep_gwh > 5305.0  # 2000 steps of plain stochastic descent: 5296.8
    assert_feasible(problem, solution.x, solution.y)


@pytest.mark.slow
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


def case_study_3():
    figures = json.loads((DATA / "iea37-cs3.json").read_text())
    by_direction = np.array(figures["direction_probability"])[:, None]
    probability = by_direction * np.array(figures["speed_probability_given_direction"])
    site = Site.from_table(figures["direction_deg"], figures["speed_m_s"], probability, 0.075, kind="exact")
    farm = WindFarm(site, Turbine.iea37_10mw(), "iea37_gaussian")
    area = Area.from_arrays(*np.transpose(figures["boundary_m"]["IIIa"]))
    return LayoutProblem(farm, area, figures["turbines"], spacing_m=figures["min_spacing_m"]), figures


@pytest.mark.slow
def test_the_default_effort_beats_the_best_published_layout_of_case_study_3():
    problem, figures = case_study_3()
    found = [optimise(problem, seed) for seed in range(5)]
    for solution in found:
        assert_feasible(problem, solution.x, solution.y)
    assert np.median([solution.aep_gwh for solution in found]) * 1e3 > 981_000
    assert min(solution.aep_gwh for solution in found) * 1e3 > figures["published_mwh"]["best_found_in_the_literature"]


@pytest.mark.slow
def test_a_race_finds_more_than_one_descent(monkeypatch):
    """On a rose of few directions the start decides."""
    problem, _ = case_study_3()
    race = [optimise(problem, seed, effort="fast") for seed in range(3)]
    assert race[0].phases[1].name == "race"
    monkeypatch.setattr(recipes, "MOST_STARTS", 1)
    alone = [optimise(problem, seed, effort="fast") for seed in range(3)]
    assert alone[0].phases[1].name == "descent"
    assert np.median([s.aep_gwh for s in race]) > np.median([s.aep_gwh for s in alone])


def test_polish_gains_on_the_full_rose(turbine):
    """A table of 7200 conditions: judged on some of them drawn at random, polishing once lost energy."""
    rng = np.random.default_rng(1)
    probability = rng.dirichlet(np.full(360 * 20, 1.0)).reshape(360, 20)
    site = Site.from_table(np.arange(360.0), np.linspace(1, 25, 20), probability, 0.07, kind="exact")
    problem = LayoutProblem(WindFarm(site, turbine), square(7000), MOST_RACED + 1, spacing_m=720)
    solution = optimise(problem, 0, effort="fast")
    by_phase = {phase.name: phase.aep_gwh for phase in solution.phases}
    assert by_phase["polish"] > by_phase["descent"]
    assert solution.aep_gwh == pytest.approx(problem.farm.aep_gwh(solution.x, solution.y), rel=1e-13)


@pytest.mark.slow
def test_a_good_start_is_polished_and_never_lost():
    """From the end of another run: the first descent leads away from it, the polish does not."""
    problem, _ = case_study_3()
    good = optimise(problem, 0, effort="fast")
    better = optimise(problem, 1, recipe="start+refine", start=(good.x, good.y), effort="fast")
    assert better.aep_gwh > good.aep_gwh


def test_notes_name_phases_without_a_gain(small_site, turbine):
    """A lone turbine yields the same everywhere."""
    problem = LayoutProblem(WindFarm(small_site, turbine), square(2000), 1, spacing_m=720)
    solution = optimise(problem, 0, effort="fast")
    names = [phase.name for phase in solution.phases]
    assert len(names) > 2
    assert solution.notes == tuple(f"the phase {name!r} did not improve the layout" for name in names[1:])


def test_the_full_rose_decides_if_the_judging_rose_is_in_doubt(sampled):
    """The judging rose prefers the first layout, by less than its error; the full rose prefers the second."""

    class Doubtful(Objective):
        def judge(self, x, y):
            return 100.0 - 0.001 * x[0], 100.0

        def full(self, x, y, judged):
            return 100.0 + x[0], 100.0 + x[0]

    nowhere = np.empty(0)
    search = Search(sampled, Doubtful(sampled), np.random.default_rng(0), EFFORTS["fast"], nowhere, nowhere)
    search.keep(np.array([0.0]), nowhere)
    search.keep(np.array([-1.0]), nowhere)  # judged better, and it is worse: now the error is known
    assert search.judging_error == pytest.approx(1.001)
    search.keep(np.array([1.0]), nowhere)
    assert search.best_value == 101.0


@pytest.fixture(scope="module")
def sampled(site, turbine):
    """A problem whose wind is drawn in samples."""
    return LayoutProblem(WindFarm(site, turbine), SHAPES["concave"], 12, spacing_m=720)


def test_a_sample_estimates_aep_and_gradient_better_than_plain_draws(sampled):
    """It draws conditions with much energy at stake more often, and uses the gross yield as control variate."""
    start = optimise(sampled, 0, recipe="smart_start")
    objective = Objective(sampled)
    assert objective.samples
    full = np.concatenate(sampled.farm.aep_gradient(start.x, start.y)[1:])
    plain, ours = ([np.random.default_rng(seed) for seed in range(200)] for _ in range(2))
    before = [sampled.farm.sampled_aep_gradient(start.x, start.y, SAMPLE, rng) for rng in plain]
    after = [objective.gradient(start.x, start.y, rng) for rng in ours]
    aep = [np.array([estimate[0] for estimate in estimates]) - start.aep_gwh for estimates in (before, after)]
    assert np.std(aep[1]) < 0.5 * np.std(aep[0])
    assert abs(np.mean(aep[1])) < 0.001 * start.aep_gwh
    errors = [
        np.array([np.concatenate(estimate[1:]) for estimate in estimates]) - full for estimates in (before, after)
    ]
    typical = [np.sqrt(np.mean(error**2)) for error in errors]
    assert typical[1] < 0.8 * typical[0]
    assert np.sqrt(np.mean(errors[1].mean(axis=0) ** 2)) < 0.15 * typical[1]  # no bias


def test_the_history_of_a_run_is_a_curve(site, turbine):
    """It had three points, one for each phase."""
    history = History()
    problem = LayoutProblem(WindFarm(site, turbine), SHAPES["concave"], MOST_RACED + 1, spacing_m=720)
    solution = optimise(problem, 0, effort="fast", callback=history)
    history.end(solution.steps, solution.aep_gwh)
    steps, aeps = history.curve
    ends = [phase.aep_gwh for phase in solution.phases]
    assert [phase.name for phase in solution.phases][:3] == ["smart_start", "descent", "polish"]
    assert 40 < len(steps) < 120
    assert (np.diff(steps) >= 0).all()
    assert (steps[-1], aeps[-1]) == (solution.steps, solution.aep_gwh)
    assert all(np.isclose(aeps, aep, rtol=1e-12).any() for aep in ends)
    rise = ends[1] - ends[0]
    assert aeps.min() > ends[0] - rise  # and not a tenth lower, as a coarse rose would have it
    assert aeps.max() < ends[-1] + rise


def test_a_history_has_the_best_layout_once_there_is_one():
    def at(step, phase, aep, best):
        history(Progress(step, phase, aep, 0.0, best, step))

    history = History()
    assert history.curve is None
    for step in range(1, 4):
        at(step, "smart_start", float("nan"), float("nan"))
    for step in range(4, 104):
        at(step, "descent", 100.0 + (step % 2), 90.0)
    for step in range(104, 200):
        at(step, "race" if step < 120 else "search", 5.0, 99.0 if step < 150 else 99.5)
    history.end(200, 99.5)
    steps, aeps = history.curve
    assert (steps[0], aeps[0]) == (4, 90)
    assert len(steps) == 1 + POINTS_OF_A_PHASE + 5
    assert aeps[1 : 1 + POINTS_OF_A_PHASE] == pytest.approx(100.5, abs=0.5)
    assert list(zip(steps, aeps, strict=True))[-5:] == [(104, 99), (149, 99), (150, 99.5), (199, 99.5), (200, 99.5)]
