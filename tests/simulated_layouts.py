"""Optimisations in the simulator of numba-cuda: a program that prints the largest differences to the CPU as JSON.

Arguments: cases, the names of functions, some with a work budget: recipe:700000. Differences of energy are relative;
positions are in metres. Candidates of relocations are drawn as the CPU draws them.
"""

import json
import sys

import numpy as np

from leeward.layout import Area, LayoutProblem, SmartStart, descent, objective, optimise, relocation
from leeward.layout.gpu import backend
from leeward.layout.gpu.backend import GpuBackend, Moving
from leeward.layout.lockstep import (
    BatchedSearch,
    Descend,
    Estimate,
    Full,
    Judge,
    Measure,
    Place,
    Relocate,
    Repair,
    optimise_all,
)
from leeward.layout.objective import Objective
from leeward.layout.recipes import EFFORTS
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from lockstep_cases import CpuBackend

LARGE = Turbine.generic(rated_power_mw=15, rotor_diameter_m=240, hub_height_m=150)
SMALL = Turbine.generic(rated_power_mw=10, rotor_diameter_m=195, hub_height_m=121)
ORIGIN = np.array([700_000.0, 6_240_000.0])
X = [np.array([100.0, 1500.0, 2500.0]), np.array([200.0, 540.0])]
Y = [np.array([200.0, 1800.0, 300.0]), np.array([500.0, 1440.0])]
AT = [(x + ORIGIN[0], y + ORIGIN[1]) for x, y in zip(X, Y, strict=True)]
STEPS = 4


def make_small(sample):
    """Make roses, samples and candidates so small that the simulator takes seconds. sample: conditions in one."""
    objective.SMART_START_DIRECTIONS, objective.SMART_START_SPEEDS = 3, (9.0,)
    objective.SAMPLE = backend.SAMPLE = sample
    backend.CANDIDATES = relocation.CANDIDATES = 6
    Moving.candidates = as_on_the_cpu


def as_on_the_cpu(moving):
    return np.array(relocation.candidates(moving.site.problem, moving._rng)) - moving.site.origin[:, None]


def problems():
    """Return a farm of one type beside an existing turbine, and one of two types."""
    site = Site.from_weibull(
        [0.2, 0.3, 0.4, 0.1],
        [9.0, 10.0, 11.0, 8.0],
        [2.0, 2.1, 2.2, 1.9],
        0.08,
        directions=[0.0, 80.0, 200.0, 270.0],
        speeds=[8.0, 11.0],
    )
    there = Neighbours([ORIGIN[0] + 5000.0], [ORIGIN[1] + 1000.0], SMALL)
    area = Area.from_arrays(ORIGIN[0] + np.array([0, 3000, 3000, 0]), ORIGIN[1] + np.array([0, 0, 2500, 2500]))
    return [
        LayoutProblem(WindFarm(site, LARGE, neighbours=there), area, 3, spacing_diameters=2),
        LayoutProblem(WindFarm(site, [SMALL, LARGE]), area, spacing_diameters=2),
    ]


def both(name, request):
    """Return the answers of the GPU and those of the CPU. request: a function of the index of the problem."""
    every = problems()

    def batch():
        return [
            (
                BatchedSearch(
                    problem,
                    Objective(problem).fresh(),
                    np.random.default_rng(3),
                    EFFORTS["fast"],
                    np.empty(0),
                    np.empty(0),
                    task=i,
                ),
                request(i, problem),
            )
            for i, problem in enumerate(every)
        ]

    return [getattr(each, name)(batch()) for each in (GpuBackend(every), CpuBackend())]


def relative(got, expected):
    """Return the largest relative difference."""
    got, expected = (np.array(each, dtype=float).ravel() for each in (got, expected))
    return float((np.abs(got - expected) / np.maximum(np.abs(expected), 1e-12)).max())


def metres(got, expected):
    """Return the largest difference of positions, which come first in each answer."""
    return max(float(np.abs(np.subtract(g[:2], e[:2])).max()) for g, e in zip(got, expected, strict=True))


def energy():
    found = {
        "judge": relative(*both("judge", lambda i, problem: Judge(*AT[i]))),
        "estimate": relative(*both("estimate", lambda i, problem: Estimate([AT[i]]))),
    }
    got, expected = both("measure", lambda i, problem: Measure(*AT[i]))
    found["measure"] = relative([each.aep_gwh for each in got], [each.aep_gwh for each in expected])
    found["wake loss"] = max(abs(g.wake_loss - e.wake_loss) for g, e in zip(got, expected, strict=True))
    full, _ = both("full", lambda i, problem: Full(*AT[i]))
    found["full"] = relative(full, [problem.farm.aep_gwh(*at) for problem, at in zip(problems(), AT, strict=True)])
    return found


def place():
    got, expected = both("place", lambda i, problem: Place(SmartStart(3), 5))
    assert [list(each.places) for each in got] == [list(each.places) for each in expected]
    return {"place": metres(got, expected)}


def repair():
    """Layouts that are too dense, and partly outside."""
    at = [(ORIGIN[0] + 0.1 * X[i] - 80.0 + 50 * i, ORIGIN[1] + 0.1 * Y[i]) for i in (0, 1)]
    got, expected = both("repair", lambda i, problem: Repair(*at[i]))
    assert metres(got, [np.array(each) for each in at]) > 100.0
    return {"repair": metres(got, expected), "left": max(abs(g[2] - e[2]) for g, e in zip(got, expected, strict=True))}


def descend(sample, judged):
    make_small(sample)
    settings = descent.Descent(10, 60.0, judged=judged)
    starts = [descent.start(problem, *at) for problem, at in zip(problems(), AT, strict=True)]
    assert Objective(problems()[0]).samples == (sample < 4)
    answers = both("descend", lambda i, problem: Descend(starts[i], settings, STEPS - i))
    assert metres(*([(each.x, each.y) for each in states] for states in (answers[0], starts))) > 10.0
    values = [[(each.aep_gwh, 1.0 + each.first_gradient, 1.0 + each.violation_m) for each in some] for some in answers]
    return {"descent": metres(*([(s.x, s.y) for s in some] for some in answers)), "values": relative(*values)}


def samples():
    return descend(2, False)


def reduced():
    return descend(100, False)


def judged():
    return descend(2, True)


def relocate():
    """The turbine that moves, the number of free candidates, and the AEP afterwards; some candidates are equal."""
    got, expected = both("relocate", lambda i, problem: Relocate(*AT[i], 1, 0.3))
    assert [list(each.which) for each in got] == [list(each.which) for each in expected] == [[0], [0]]
    assert [list(each.places) for each in got] == [list(each.places) for each in expected]
    aep = [[p.farm.aep_gwh(a.x, a.y) for p, a in zip(problems(), some, strict=True)] for some in (got, expected)]
    before = [problem.farm.aep_gwh(*at) for problem, at in zip(problems(), AT, strict=True)]
    return {"aep": relative(*aep), "gain": float(np.subtract(aep[0], before).min())}


def recipe(work):
    options = {"recipe": "random+refine", "work": int(work)}
    every = problems()
    solved = dict(optimise_all(every, [1, 2], backend=GpuBackend(every), **options))
    found = {"layout": 0.0, "aep": 0.0}
    for i, problem in enumerate(every):
        expected = optimise(problem, i + 1, **options)
        if isinstance(solved[i], Exception):
            raise solved[i]
        ours = solved[i]
        assert (ours.steps, ours.work) == (expected.steps, expected.work)
        assert problem.violation(ours.x, ours.y).worst_m < 1e-6
        assert [phase.name for phase in ours.phases] == [phase.name for phase in expected.phases]
        found["layout"] = max(found["layout"], metres([(ours.x, ours.y)], [(expected.x, expected.y)]))
        found["aep"] = max(found["aep"], relative(ours.aep_gwh, expected.aep_gwh))
        found["steps"] = ours.steps
    return found


if __name__ == "__main__":
    results = {}
    for case in sys.argv[1:]:
        make_small(100)
        name, *arguments = case.split(":")
        results[case] = globals()[name](*arguments)
    print(json.dumps(results))
