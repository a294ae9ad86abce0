"""Custom objectives and wake models: a run uses them, fingerprints know their files, other commands never import."""

import sys

import numpy as np
import pytest

import leeward
from campaign_cases import load_study
from leeward.campaign import load
from leeward.errors import InputError
from leeward.layout import optimise
from leeward.store import Key
from leeward.wind.wake_models import Jensen
from run_cases import INLINE, leeward_here, make_campaign

NOTE_IMPORT = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n"
OBJECTIVE = """
import numpy as np

class NearCorner:
    '''AEP less a cost of the distance from a corner, GWh.'''
    cost = COST

    def __init__(self, problem):
        self.x, self.y = problem.area.bounds[:2]

    def value(self, x, y, aep_gwh):
        return aep_gwh - self.cost * np.hypot(x - self.x, y - self.y).sum()

    def gradient(self, x, y, aep_gwh, by_x, by_y):
        east, north = x - self.x, y - self.y
        distance = np.hypot(east, north) + 1e-9
        return by_x - self.cost * east / distance, by_y - self.cost * north / distance
"""
WAKES = """
from dataclasses import dataclass
from typing import ClassVar
from leeward.wind.wake_models import Formulas, Jensen

@dataclass(frozen=True)
class Wide(Jensen):
    expansion: float = 0.2

@dataclass(frozen=True)
class Plain(Jensen):
    formulas: ClassVar[Formulas] = Formulas(
        Jensen.formulas.source, Jensen.formulas.wake_at, Jensen.formulas.contribution, Jensen.formulas.reach
    )
"""
MODULES = ("objectives_of_tests", "wakes_of_tests")


@pytest.fixture(autouse=True)
def _forgotten():
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


def write_modules(folder, cost=0.01):
    (folder / "objectives_of_tests.py").write_text(NOTE_IMPORT + OBJECTIVE.replace("COST", str(cost)))
    (folder / "wakes_of_tests.py").write_text(NOTE_IMPORT + WAKES)


def custom_campaign(folder, **changes):
    write_modules(folder)
    settings = {
        "optimiser": {"recipe": "random+refine", "work": 8_000_000, "objective": "objectives_of_tests:NearCorner"},
        "wake_model": {"name": "wakes_of_tests:Wide", "expansion": 0.15},
        "execution": INLINE,
    }
    return make_campaign(folder, **{"seeds": 2, **settings, **changes})


def command(*arguments, cwd):
    _ = [sys.modules.pop(name, None) for name in MODULES]
    return leeward_here(*arguments, cwd=cwd)


@pytest.mark.slow  # 35 s from a cold kernel cache
def test_a_campaign_with_custom_code_runs_and_resumes(tmp_path):
    path = custom_campaign(tmp_path, execution={"workers": 1})
    assert command("run", path, "--dry-run", cwd=tmp_path).returncode == 0
    done = command("run", path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    fingerprint = load(path).fingerprint(0, 0)
    again = command("run", path, "--seeds", 3, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    with leeward.open_layouts(tmp_path / "layouts.h5") as layouts:
        assert [str(key) for key in layouts] == ["farm0_t0_s0", "farm0_t0_s1", "farm0_t0_s2"]
        first = layouts["farm0_t0_s0"]
        cost = 0.01 * np.hypot(first.x, first.y).sum()
        assert first.details["objective_value"] == pytest.approx(first.aep_gwh - cost, rel=1e-9)
    (tmp_path / "imported").unlink()
    for words in (["status"], ["check"], ["merge", "layouts.run", "-o", "merged.h5"], ["report"], ["show", "0,0,1"]):
        read = command(*words, cwd=tmp_path)
        assert read.returncode == 0, (words, read.stderr)
    deep = command("check", "--deep", cwd=tmp_path)
    assert deep.returncode == 0, deep.stdout
    assert "AEP is not recomputed: the wake model wakes_of_tests:Wide is custom code" in deep.stdout
    assert not (tmp_path / "imported").exists()
    write_modules(tmp_path, cost=0.02)
    assert load(path).fingerprint(0, 0) != fingerprint
    assert not (tmp_path / "imported").exists()
    changed = command("run", "layouts.run/campaign.yaml", "--seeds", 4, cwd=tmp_path)
    assert changed.returncode == 2
    assert "the file of the objective objectives_of_tests:NearCorner" in changed.stderr


@pytest.mark.slow
def test_a_run_says_that_a_custom_wake_model_has_no_derivatives(tmp_path):
    settings = {"optimiser": {"recipe": "random"}, "seeds": 1, "execution": INLINE}
    path = custom_campaign(tmp_path, wake_model="wakes_of_tests:Plain", **settings)
    done = command("run", path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wake model Plain does not define derivatives" in done.stderr


def test_the_objective_is_what_is_maximised(tmp_path):
    campaign = load(custom_campaign(tmp_path, wake_model="jensen"))
    plain = load(make_campaign(tmp_path, name="plain.yaml", optimiser={"recipe": "random+refine", "work": 8_000_000}))
    custom, by_aep = campaign.optimise(Key(0, 0, 0)), plain.optimise(Key(0, 0, 0))
    assert np.hypot(custom.x, custom.y).sum() < 0.5 * np.hypot(by_aep.x, by_aep.y).sum()
    cost = 0.01 * np.hypot(custom.x, custom.y).sum()
    assert custom.value == pytest.approx(custom.aep_gwh - cost, rel=1e-9)
    assert custom.aep_gwh == pytest.approx(campaign.problem(0, 0).farm.aep_gwh(custom.x, custom.y), rel=1e-12)
    assert (custom.objective, by_aep.objective) == ("objectives_of_tests:NearCorner", "aep")
    assert by_aep.value == pytest.approx(by_aep.aep_gwh, rel=1e-12)


def test_the_wake_model_is_imported_only_when_asked(tmp_path):
    campaign = load(custom_campaign(tmp_path))
    x, y = [500.0, 1500.0, 4000.0], [500.0, 600.0, 700.0]
    assert campaign.physics.constraints(0, 0).violation(x, y).is_feasible
    with pytest.raises(InputError, match=r"wake_model is wakes_of_tests:Wide, custom code that only `leeward run`"):
        campaign.problem(0, 0)
    assert not (tmp_path / "imported").exists()
    campaign.import_custom()
    aep = campaign.problem(0, 0).farm.aep_gwh(x, y)
    assert aep == campaign.physics.wind_farm(0, wake_model=Jensen(expansion=0.15)).aep_gwh(x, y)
    assert campaign.judge.notes == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wake_model": "nowhere_at_all:Wide"}, r"wake_model: no module nowhere_at_all was found in .*put the file"),
        ({"wake_model": "wakes_of_tests:Narrow"}, r"wakes_of_tests.py has no function or class 'Narrow'"),
        (
            {"wake_model": "wakes_of_tests:dataclass"},
            r"wake_model: .*: expected a class derived from leeward.wind.WakeModel",
        ),
        (
            {"wake_model": {"name": "wakes_of_tests:Wide", "width": 2}},
            r"wakes_of_tests:Wide: .*unexpected keyword argument 'width'",
        ),
        ({"wake_model": "wakes_of_tests:2"}, r"wake_model is 'wakes_of_tests:2'; expected module:Class"),
        (
            {"optimiser": {"objective": "yield"}},
            r"optimiser.objective is 'yield'; allowed: aep, or custom code as module:",
        ),
        ({"optimiser": {"objective": "objectives_of_tests:np"}}, r"has no function or class 'np'"),
        ({"optimiser": {"objective": "wakes_of_tests:Wide"}}, r"expected a class with the methods value and gradient"),
        ({"optimiser": {"recipe": "a:b", "objective": "c:d"}}, r"has an objective, which the custom recipe a:b"),
    ],
)
def test_what_is_wrong_with_custom_code_is_said(tmp_path, changes, message):
    changes = {"wake_model": "jensen", "optimiser": {"recipe": "random"}, **changes}
    with pytest.raises(InputError, match=message):
        load(custom_campaign(tmp_path, **changes)).optimise(Key(0, 0, 0))


def test_objectives_of_the_library(tmp_path):
    campaign = load_study(tmp_path, more="optimiser: {recipe: random, objective: aep}\n")
    problem = campaign.problem(0, 0)
    assert campaign.fingerprint(0, 0) == load_study(tmp_path, more="optimiser: {recipe: random}\n").fingerprint(0, 0)
    assert "objective" not in campaign.frozen_text()
    with pytest.raises(InputError, match="objective is 'profit'; expected one of aep"):
        optimise(problem, 0, recipe="random", objective="profit")

    class Short:
        def __init__(self, problem):
            pass

        def value(self, x, y, aep_gwh):
            return -aep_gwh

        def gradient(self, x, y, aep_gwh, by_x, by_y):
            return by_x[:2], by_y[:2]

    assert optimise(problem, 0, recipe="random", objective=Short).value < 0
    with pytest.raises(InputError, match=r"the gradient of the objective has the shapes \(2,\) and \(2,\); expected"):
        optimise(problem, 0, recipe="random+refine", objective=Short)


def test_old_names_still_work_and_warn(tmp_path):
    campaign = load_study(tmp_path)
    with pytest.warns(DeprecationWarning, match="Campaign.n_turbines is now called Campaign.physics.n_turbines"):
        assert campaign.n_turbines(0, 0) == 12
    with pytest.warns(DeprecationWarning, match=r"room is now called LayoutProblem\.min_distances_m"):
        assert campaign.problem(0, 0).room[0] == 720
    with pytest.warns(DeprecationWarning, match="watch= is now called callback="):
        optimise(campaign.problem(0, 0), 0, recipe="random", watch=lambda progress: True)
    with pytest.raises(AttributeError, match="no attribute 'unheard_of'"):
        _ = campaign.unheard_of
