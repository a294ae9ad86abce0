"""Tasks in lock step give the bytes of `optimise`, and one that fails ends no other."""

from dataclasses import replace

import numpy as np
import pytest

from layout_cases import SHAPES, square
from leeward.errors import InfeasibleError, InputError, NotANumberError
from leeward.layout import LayoutProblem, SmartStart, StopReason, lockstep, optimise
from leeward.layout.lockstep import optimise_all
from leeward.layout.recipes import MOST_RACED
from leeward.wind import Neighbours, WindFarm
from lockstep_cases import CpuBackend

WORK = 8_000_000


def together(problems, seeds, backend=None, **options):
    """Return the outcomes in the order of the tasks."""
    found = dict(optimise_all(problems, seeds, backend=backend or CpuBackend(), **options))
    return [found[i] for i in range(len(problems))]


def assert_same(ours, theirs):
    if isinstance(ours, Exception):
        raise ours
    for name in ("x", "y"):
        assert getattr(ours, name).tobytes() == getattr(theirs, name).tobytes()
    assert np.array_equal(ours.start, theirs.start) if theirs.start else ours.start is None
    assert [(phase.name, phase.aep_gwh) for phase in ours.phases] == [
        (phase.name, phase.aep_gwh) for phase in theirs.phases
    ]
    clockless = [replace(s, x=0, y=0, start=None, seconds=0.0, phases=()) for s in (ours, theirs)]
    assert vars(clockless[0]) == vars(clockless[1])


@pytest.fixture(scope="module")
def problems(small_site, site, turbine, turbines):
    """Small roses and a large one, several types, neighbours; different numbers of turbines."""
    large, middle = turbines[:2]
    there = Neighbours(x=[-100.0, 2000.0], y=[3000.0, 2900.0], turbine=turbine)
    return {
        "small rose": LayoutProblem(WindFarm(small_site, turbine), SHAPES["concave"], 12, spacing_m=720),
        "samples": LayoutProblem(WindFarm(site, turbine), SHAPES["regions"], 5, spacing_m=720),
        "one descent": LayoutProblem(WindFarm(site, turbine), square(6500), MOST_RACED + 1, spacing_m=720),
        "types": LayoutProblem(
            WindFarm(small_site, [large, middle] * 4), square(5000), spacing_m={large: 990, middle: 600}
        ),
        "neighbours": LayoutProblem(WindFarm(small_site, turbine, neighbours=there), square(5000), 8, spacing_m=900),
    }


@pytest.mark.parametrize("options", [
    {"work": WORK},
    {"work": 3 * WORK + 1},
    {"work": WORK, "recipe": "random+refine"},
    {"work": WORK, "smart_start": SmartStart(grid_size=4)},
    {"recipe": "smart_start"},
    {"recipe": "smart_start", "smart_start": SmartStart(9, 100.0)},
    {"recipe": "random"},
], ids=str)  # fmt: skip
def test_the_bytes_of_optimise(problems, options):
    """All problems in one call."""
    found = together(list(problems.values()), range(len(problems)), **options)
    for seed, (problem, ours) in enumerate(zip(problems.values(), found, strict=True)):
        assert_same(ours, optimise(problem, seed, **options))


@pytest.mark.slow
def test_a_whole_effort(problems):
    """Races, polish and hops, on a small rose and by samples."""
    some = [problems["small rose"], problems["small rose"], problems["types"], problems["samples"]]
    for ours, problem, seed in zip(together(some, range(4), effort="fast"), some, range(4), strict=True):
        assert_same(ours, optimise(problem, seed, effort="fast"))
        assert [phase.name for phase in ours.phases] == ["smart_start", "race", "polish", "search"]


@pytest.mark.parametrize(("name", "first", "last"), [("one descent", 104, 107), ("small rose", 160, 164)])
def test_the_work_ends_at_the_same_step(problems, name, first, last):
    """Before and after a relocation in the middle of a descent, and between two descents of a race."""
    problem, seen = problems[name], []
    optimise(problem, 3, effort="fast", callback=lambda progress: seen.append(progress) or progress.step > last)
    budgets = [seen[step].work + more for step in range(first, last) for more in (0, 1)]
    spent = np.diff([progress.work for progress in seen[first : last + 1]])
    assert spent.max() > spent.min()  # more than a step of descent
    for budget in budgets:
        (ours,) = together([problem], [3], work=budget, effort="fast")
        assert ours.stop_reason is StopReason.WORK_DONE
        assert_same(ours, optimise(problem, 3, work=budget, effort="fast"))


def test_computations_of_one_kind_run_together(problems):
    backend = CpuBackend()
    together([problems["small rose"]] * 6, range(6), backend, effort="fast")
    assert backend.calls["place"] == 1
    assert backend.computed["place"] == 6
    assert backend.computed["descend"] > 4 * backend.calls["descend"]


def test_a_task_that_fails_ends_no_other(problems, small_site, turbine):
    """One without room, one whose wind is not a number, one that a bug of the backend ends."""

    class Broken(CpuBackend):
        def descend(self, batch):
            states = super().descend(batch)
            broken = {2: lambda state: replace(state, aep_gwh=float("nan")), 3: lambda state: ZeroDivisionError("bug")}
            return [
                broken.get(search.task, lambda state: state)(state)
                for (search, _), state in zip(batch, states, strict=True)
            ]

    good = problems["neighbours"]
    full = LayoutProblem(WindFarm(small_site, turbine), square(800), 4, spacing_m=799.9999)
    crowded = LayoutProblem(WindFarm(small_site, turbine), square(1000), 5, spacing_m=720)
    order = []
    found = {}
    for i, outcome in optimise_all([good, crowded, good, good, full], range(5), work=WORK, backend=Broken()):
        order.append(i)
        found[i] = outcome
    assert order[0] == 3  # long before the others end
    assert isinstance(found[1], InfeasibleError)
    with pytest.raises(InfeasibleError) as alone:
        optimise(crowded, 1, work=WORK)
    assert str(found[1]) == str(alone.value)
    assert found[2].stop_reason is StopReason.NOT_A_NUMBER
    assert found[2].phases[0].aep_gwh == found[2].aep_gwh
    assert isinstance(found[3], ZeroDivisionError)
    for i, problem in ((0, good), (4, full)):
        assert_same(found[i], optimise(problem, i, work=WORK))


def test_an_objective_that_is_not_finite(problems):
    class Empty(CpuBackend):
        def judge(self, batch):
            return [float("nan") for _ in batch]

    (error,) = together([problems["small rose"]], [0], Empty(), work=WORK)
    assert isinstance(error, NotANumberError)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"recipe": lambda problem, seed: None}, "expected one of smart_start"),
        ({"recipe": "my_recipes:in_rows"}, r"recipe is 'my_recipes:in_rows'; expected one of .* in lock step"),
        (
            {"recipe": "start+refine"},
            "recipe is 'start.refine'; expected one of smart_start.refine, smart_start, random",
        ),
        ({"recipe": "random", "smart_start": SmartStart()}, "recipe 'random' does not use it"),
        ({"objective": "module:Profit"}, "objective is 'module:Profit'; expected 'aep' for tasks in lock step"),
        ({"time_budget_s": 60}, "time_budget_s is 60; remove it for tasks in lock step, or give work"),
        ({"effort": "much"}, "effort is 'much'"),
        ({"work": 0}, "work is 0"),
    ],
)
def test_bad_options(problems, options, says):
    with pytest.raises(InputError, match=says):
        optimise_all([problems["types"]], [0], backend=CpuBackend(), **options)


def test_bad_tasks(problems):
    with pytest.raises(InputError, match="1 problems and 2 seeds; expected a seed for each problem"):
        optimise_all([problems["types"]], [0, 1], backend=CpuBackend())
    with pytest.raises(InputError, match="seed is -1"):
        optimise_all([problems["types"]], [-1], backend=CpuBackend())
    assert list(optimise_all([], [], backend=CpuBackend())) == []


def test_every_kind_of_request_has_a_method():
    kinds = {kind for kind in vars(lockstep).values() if isinstance(kind, type) and issubclass(kind, lockstep.Request)}
    assert set(lockstep.METHODS) == kinds - {lockstep.Request}
    assert all(callable(getattr(lockstep.Backend, name)) for name in lockstep.METHODS.values())
