"""Studies on a GPU: equal to those on CPUs. A child process runs the kernels in the simulator of numba-cuda."""

import functools

import pytest

import field_cases
import simulator
from leeward.errors import InputError
from leeward.study.study import Study
from leeward.study.work import StudyWork
from leeward.wind import Site

ROUNDING = 1e-12  # the results agree to 1e-9 in any case: neglected wakes differ by less
FAST = ("study", "bad", "terrain")
SLOW = ("rose", "bastankhah_gaussian", "iea37_gaussian", "jensen", "no_wake")
FIELDS = ("weibull", "everything", "table linear", "series with speed-up", "turbulence at 15 m/s")


simulated = functools.partial(simulator.simulated, "simulated_study.py")


@functools.cache
def fast():
    return simulated(*FAST)


def test_every_case_is_equal_to_the_cpu():
    """Neighbours begin and end, are of several types, and reach the target through its own wakes and each other's."""
    found = simulated("series")["series"]
    assert found.pop("loss") > 0.02
    assert max(found.values()) < ROUNDING


@pytest.mark.slow
def test_tasks_of_a_study_are_equal_to_the_cpu():
    found = fast()["study"]
    assert set(found) == {
        "aep_gwh",
        "gross_aep_gwh",
        "window_power_mw",
        "farm_power_mw",
        "turbine_power_mw",
        "chunked",
    }
    assert max(found.values()) < ROUNDING


@pytest.mark.slow
def test_a_bad_sample_fails_alone():
    found = fast()["bad"]
    assert "neighbours: turbines 0 and 1 are at the same point" in found.pop("target0_scenario1")
    assert found == {"target0_scenario0": "", "target0_scenario2": ""}


@pytest.mark.slow
def test_distances_along_the_terrain_are_rejected():
    assert fast()["terrain"]["error"] == (
        "the wind field has distances along the terrain, which a GPU does not compute in a study; use the engine local"
    )


@pytest.mark.parametrize("distances", ["terrain_following", "elevated"])
def test_a_run_rejects_them_before_it_starts(distances, monkeypatch):
    case = field_cases.CASES["terrain following with speed-up"]
    site = Site.from_dataset(case.dataset, directions=[0.0, 180.0], speeds=[8.0, 9.0], distances=distances)
    study = object.__new__(Study)
    vars(study).update(device="cuda", scenarios={0: "one"}, setting=lambda number: None, site=lambda setting: site)
    work = object.__new__(StudyWork)
    work.source = study
    if distances == "elevated":
        assert work.check() == ()
    else:
        with pytest.raises(InputError, match="distances along the terrain"):
            work.check()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SLOW, *(f"field {name}" for name in FIELDS)])
def test_all_models_and_winds_are_equal_to_the_cpu(name):
    found = simulated(name)[name]
    assert (found.pop("loss") > 0.0) == (name != "no_wake")
    assert max(found.values()) < ROUNDING
