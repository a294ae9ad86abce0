"""Optimisations in wind fields in the simulator of numba-cuda: a program that prints differences to the CPU as JSON.

Arguments: cases, each as mode:field, for example sampled:table. The modes: "sampled" descends by samples of the wind
and judges on a reduced rose; "whole" descends on the reduced rose and judges on the full one; "mixed" judges one farm
on the reduced rose and the other on the full one. Differences of energy are relative; positions are in metres.
"""

import json
import sys

import numpy as np

import field_cases
from field_cases import X, Y
from leeward.layout import Area, LayoutProblem, SmartStart, descent, objective
from leeward.layout.gpu import backend
from leeward.layout.gpu.backend import GpuBackend, Moving
from leeward.layout.lockstep import BatchedSearch, Descend, Estimate, Full, Judge, Measure, Place, Relocate
from leeward.layout.recipes import EFFORTS
from leeward.wind import Neighbours, WindFarm
from lockstep_cases import CpuBackend, Recording
from test_field_gradient import low_turbine, smooth_turbine

DIRECTIONS, SPEEDS = [10.0, 80.0, 150.0, 220.0, 290.0], [7.0, 11.0]
STEPS = 3
NAMES = {"descent": False, "judged descent": True}
TYPES = [smooth_turbine(), low_turbine()]


def make_small(is_sampled):
    """Make roses, samples and candidates so small that the simulator takes seconds."""
    objective.REDUCED_SPEEDS = 1
    objective.PROPOSING_DIRECTIONS = objective.REDUCED_DIRECTIONS = len(DIRECTIONS)
    objective.SMART_START_DIRECTIONS, objective.SMART_START_SPEEDS = 3, (9.0,)
    objective.SAMPLE = backend.SAMPLE = 2 if is_sampled else 100
    backend.CANDIDATES, backend.POOL = 6, 50


class Tasks:
    """Two farms at the corner of the grid, one of them of two types and the other beside an existing turbine."""

    def __init__(self, field, mode):
        case = field_cases.CASES[field]
        if case.is_table:
            case = case.replaced(case.dataset.isel(ws=slice(2, 4)))
        if case.is_series:
            case = case.replaced(case.dataset.isel(time=slice(0, 10)))
        site = case.site(DIRECTIONS, SPEEDS)
        there = Neighbours([X[0] + 900.0], [Y[0] + 1300.0], TYPES[1])
        east, north = X[0] + np.array([0.0, 1600.0, 1600.0, 0.0]), Y[0] + np.array([0.0, 0.0, 1500.0, 1500.0])
        area = Area.from_arrays(east, north)
        farms = [WindFarm(site, TYPES[0], neighbours=there), WindFarm(site, TYPES)]
        self.problems = [
            LayoutProblem(farm, area, count, spacing_m=300.0) for farm, count in zip(farms, (3, None), strict=True)
        ]
        x, y = X[0] + np.array([100.0, 600.0, 1500.0]), Y[0] + np.array([200.0, 700.0, 250.0])
        self.at = [(x, y), (x[:2] + 300.0, y[:2] + 500.0)]
        self.objectives = [Recording(problem) for problem in self.problems]
        if mode == "mixed":
            for name in ("reduced_rose", "proposing_rose"):
                setattr(self.objectives[1], name, self.objectives[1].full_rose)
        self._gpu, self._cpu = GpuBackend(self.problems), CpuBackend()
        self._cpu._objectives = dict(enumerate(self.objectives))

    def batch(self, request):
        """Return a request of each task. request: a function of the index of the task."""
        searches = [
            BatchedSearch(problem, each, np.random.default_rng(3), EFFORTS["fast"], *np.empty((2, 0)), task=i)
            for i, (problem, each) in enumerate(zip(self.problems, self.objectives, strict=True))
        ]
        return [(search, request(i)) for i, search in enumerate(searches)]

    def both(self, name, request):
        """Return the answers of the GPU and those of the CPU."""
        return [getattr(each, name)(self.batch(request)) for each in (self._gpu, self._cpu)]

    def relocate(self, request):
        return self._gpu.relocate(self.batch(request))


def difference(got, expected):
    """Return the largest relative difference."""
    got, expected = np.array(got, dtype=float).ravel(), np.array(expected, dtype=float).ravel()
    return float((np.abs(got - expected) / np.abs(expected)).max())


def energy(tasks, found):
    """Compare what layouts are judged and reported by."""
    for name, kind in (("judge", Judge), ("full", Full), ("measure", Measure)):
        if name == "full" and any(each.judges_on_the_full_rose for each in tasks.objectives):
            continue
        found[name] = difference(*tasks.both(name, lambda i, kind=kind: kind(*tasks.at[i])))
    found["estimate"] = difference(*tasks.both("estimate", lambda i: Estimate([tasks.at[i]])))


def places(tasks, found):
    """Compare the layouts of SmartStart, and the numbers of free places."""
    pairs = zip(*tasks.both("place", lambda i: Place(SmartStart(3), 5)), strict=True)
    found["place"] = max(float(np.abs(np.subtract(g, c)).max()) for pair in pairs for g, c in zip(*pair, strict=True))


def descents(tasks, found):
    """Compare descents that start outside the grid, one of them shorter than the other."""
    outside = [(x - [150.0, *np.zeros(len(x) - 1)], y) for x, y in tasks.at]
    starts = [descent.start(problem, *at) for problem, at in zip(tasks.problems, outside, strict=True)]
    names = {"judged descent": True} if tasks.objectives[0].judges_on_the_full_rose else NAMES
    for name, judged in names.items():
        settings = descent.Descent(10, 60.0, judged=judged)
        answers = tasks.both("descend", lambda i, s=settings: Descend(starts[i], s, STEPS - i))
        found[name] = max(float(np.abs([g.x - c.x, g.y - c.y]).max()) for g, c in zip(*answers, strict=True))
        values = [[(each.aep_gwh, each.first_gradient, 1.0 + each.violation_m) for each in a] for a in answers]
        found[f"{name}: values"] = difference(*values)
        found[f"{name}: moved"] = min(
            float(np.abs(c.x - at[0]).max()) for c, at in zip(answers[1], outside, strict=True)
        )


def relocations(tasks, found):
    """Compare the marginal AEP of turbines, and the gain at candidates."""
    begin, decide, seen = Moving.begin, Moving.decide, {"worth": [0.0], "gain": [0.0]}
    of = {id(problem): each for problem, each in zip(tasks.problems, tasks.objectives, strict=True)}

    def begin_and_compare(moving, worth):
        expected = of[id(moving.site.problem)].worth(moving.request.x, moving.request.y)
        seen["worth"].append(difference(worth[: len(expected)], expected))
        begin(moving, worth)

    def decide_and_compare(moving, tried, at, gain, free):
        problem, origin = moving.site.problem, moving.site.origin[:, None]
        now, there = moving.at[:, : problem.n_turbines] + origin, at[:, free] + origin
        expected = of[id(problem)].gain(*now, int(moving.order[tried]), *there)
        seen["gain"].append(difference(gain[: len(free)][free], expected))
        decide(moving, tried, at, gain, free)

    Moving.begin, Moving.decide = begin_and_compare, decide_and_compare
    tasks.relocate(lambda i: Relocate(*tasks.at[i], 1, 0.3))
    Moving.begin, Moving.decide = begin, decide
    assert [len(values) for values in seen.values()] == [3, 3]
    found.update({name: max(values) for name, values in seen.items()})


def compare(mode, field):
    """Return the largest differences of one case."""
    make_small(mode != "whole")
    tasks, found = Tasks(field, mode), {}
    first = tasks.objectives[0]
    assert first.samples == (mode != "whole")
    assert first.reduced_rose.gross is not None
    for function in (energy, descents, *((relocations,) if mode != "whole" else (places,))):
        function(tasks, found)
    return found


if __name__ == "__main__":
    print(json.dumps({case: compare(*case.split(":")) for case in sys.argv[1:]}))
