"""The optimiser's driver: the same bytes again, watching, stopping, functions of one's own, bad options."""

import contextlib
import functools
import importlib
import io
import itertools
import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from layout_cases import LITTLE, SHAPES, assert_feasible, square
from leeward.campaign import builtin
from leeward.errors import InfeasibleError, InputError, NotANumberError
from leeward.layout import LayoutProblem, SmartStart, StopReason, descent, optimise
from leeward.layout.descent import Descent
from leeward.layout.objective import Objective
from leeward.wind import WindFarm


def test_same_seed_same_bytes(problem):
    one, again, other = (optimise(problem, seed, work=LITTLE) for seed in (5, 5, 6))
    assert one.x.tobytes() == again.x.tobytes()
    assert one.y.tobytes() == again.y.tobytes()
    assert (one.aep_gwh, one.work, one.steps) == (again.aep_gwh, again.work, again.steps)
    assert one.x.tobytes() != other.x.tobytes()


@pytest.mark.slow
def test_threads_change_nothing(problem):
    farms = [WindFarm(builtin.site(), problem.farm.turbine, threads=threads) for threads in (1, 3)]
    one, three = (optimise(LayoutProblem(f, problem.area, 12, spacing_m=720), 5, effort="fast") for f in farms)
    assert [phase.name for phase in one.phases][:3] == ["smart_start", "race", "polish"]  # blocks for all threads
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
    """The other process has another seed for its hashes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    with contextlib.redirect_stdout(io.StringIO()) as here:
        exec(PROGRAM, {})
    assert done.stdout == here.getvalue()
    assert len(done.stdout) > 200


@pytest.fixture
def clock(monkeypatch):
    """Let a millisecond pass whenever the optimiser looks at the clock, which it does after each step."""
    ticks = itertools.count()
    moved = SimpleNamespace(perf_counter=lambda: next(ticks) / 1000)
    monkeypatch.setattr(importlib.import_module("leeward.layout.driver"), "time", moved)


@pytest.mark.slow
@pytest.mark.parametrize("stochastic", [False, True])
def test_the_work_of_a_time_budget_gives_the_same_bytes(problem, stochastic, turbine, clock):
    if stochastic:
        problem = LayoutProblem(WindFarm(builtin.site(), turbine), problem.area, 12, spacing_m=720)
    timed = optimise(problem, 1, time_budget_s=1.0)
    assert timed.stop_reason is StopReason.TIME_UP
    assert timed.steps > 900
    counted = optimise(problem, 1, work=timed.work)
    assert counted.stop_reason is StopReason.WORK_DONE
    assert (counted.work, counted.steps) == (timed.work, timed.steps)
    assert counted.x.tobytes() == timed.x.tobytes()


@pytest.mark.slow
def test_efforts_are_amounts_of_work(small_site, turbine):
    problem = LayoutProblem(WindFarm(small_site, turbine), SHAPES["concave"], 6, spacing_m=720)
    fast, normal = (optimise(problem, 0, recipe="random+refine", effort=effort) for effort in ("fast", "normal"))
    assert 3.5 * fast.work < normal.work < 4.5 * fast.work
    assert normal.aep_gwh >= fast.aep_gwh
    assert normal.stop_reason is StopReason.WORK_DONE


def test_a_driver_sees_every_step(problem):
    seen = []
    solution = optimise(problem, 0, work=LITTLE, callback=seen.append)
    assert [progress.step for progress in seen] == list(range(1, solution.steps + 1))
    assert [phase.name for phase in solution.phases] == list(dict.fromkeys(p.phase for p in seen))
    descending = [p for p in seen if p.phase == "race"]
    assert all(np.isfinite(p.aep_gwh) and p.violation_m >= 0 for p in descending)
    assert any(p.violation_m > 0 for p in descending)
    best = [p.best_aep_gwh for p in seen if np.isfinite(p.best_aep_gwh)]
    assert best == sorted(best)
    assert best[-1] <= solution.aep_gwh * (1 + 1e-12)
    assert [p.work for p in seen] == sorted(p.work for p in seen)


@pytest.mark.parametrize("when", [4, 40, 800])
def test_stop_on_request_with_the_best_so_far(problem, when):
    """While turbines are placed, in the descent, in the search."""
    solution = optimise(problem, 0, callback=lambda progress: progress.step >= when)
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
    with pytest.raises(NotANumberError, match="not finite at step 1"):
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
    with pytest.raises(InputError, match="the descent has 12 turbines, the problem 5"):
        descent.step(fewer, Objective(fewer), settings, state, rng)


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
    assert solution.aep_gwh == pytest.approx(problem.farm.aep_gwh(solution.x, solution.y), rel=1e-13)
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
        (":f", "not a module name"),
    ]
    for name, said in [*by_name, (".mod:f", "not a module name"), ("os:no such", "no function")]:
        with pytest.raises(InputError, match=said):
            optimise(problem, 0, recipe=name)
    with pytest.raises(InputError, match="no function or class 'LITTLE'"):
        optimise(problem, 0, recipe=f"{__name__}:LITTLE")
    array = optimise(problem, 7, recipe=lambda problem, seed: np.array(in_a_row(problem, seed)))
    np.testing.assert_array_equal(array.x, solution.x)
    for given in ({"start": in_a_row(problem, 0)}, {"work": 10}, {"time_budget_s": 1}, {"smart_start": SmartStart()}):
        with pytest.raises(InputError, match="a custom recipe cannot use"):
            optimise(problem, 0, recipe=in_a_row, **given)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": -1}, "seed is -1; expected a whole number from 0"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": 2**32}, "seed is 4294967296"),
        ({"effort": ["fast"]}, "effort is"),
        ({"time_budget_s": "soon"}, "time_budget_s"),
        ({"callback": 3}, "callback is 3"),
        ({"smart_start": {"grid_size": 5}}, "expected SmartStart"),
        ({"recipe": "random", "smart_start": SmartStart()}, "does not use it; remove it"),
        ({"effort": "heroic"}, "effort is 'heroic'; expected one of fast, normal, thorough"),
        ({"recipe": "smart"}, "recipe is 'smart'; expected one of smart_start"),
        ({"recipe": 3}, "recipe is 3"),
        ({"time_budget_s": 0}, "time_budget_s is 0"),
        ({"time_budget_s": 1, "work": 1}, "both given"),
        ({"work": 0}, "work is 0"),
        ({"recipe": "start+refine"}, "needs a start layout"),
        ({"start": ([0], [0])}, "does not use a start layout"),
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
        ({"spacing_m": None}, "as spacing_m or as spacing_diameters, not both"),
        ({"spacing_diameters": 3}, "as spacing_m or as spacing_diameters, not both"),
        ({"spacing_m": -5}, "spacing_m is -5"),
        ({"spacing_m": [500, 600]}, "expected a number, or a dict"),
        ({"spacing_m": {}}, "has no entry for"),
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
    with pytest.raises(InputError, match="the farm has 5 turbines"):
        LayoutProblem(farm, square(5000), 6, spacing_m=720)


@pytest.mark.parametrize(
    "options", [{"random_pct": -1}, {"random_pct": 101}, {"random_pct": "30"}, {"grid_size": 1}, {"grid_size": 2.5}]
)
def test_bad_smart_start_options(options):
    with pytest.raises(InputError, match=next(iter(options))):
        SmartStart(**options)
