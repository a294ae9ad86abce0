"""Wind farms on a GPU: equal to the CPU. A child process runs the kernels in the simulator of numba-cuda."""

import functools

import numpy as np
import pytest

import simulator
from leeward.errors import InputError
from leeward.wind import WindFarm, wake_models
from leeward.wind.gpu import device

QUICK = ("batch:nygaard_2022", "conditions:jensen", "not_a_number:jensen", "too_many:jensen")
SLOW = (
    *(f"batch:{model}" for model in wake_models.CLASSES if model != "nygaard_2022"),
    "one:jensen",
    "simulate:nygaard_2022",
    "field:jensen",
    "empty:jensen",
)
X, Y = np.array([[0.0, 900.0, 1800.0], [0.0, 800.0, -900.0]]), np.array([[0.0, 200.0, -300.0], [0.0, 900.0, 100.0]])


simulated = functools.partial(simulator.simulated, "simulated_farms.py")


def assert_equal(found):
    assert max(found["aep"]) < 1e-12
    assert max(found["gradient"]) < 1e-11
    assert max(found.get("single", [0.0])) < 2e-5
    assert max(found.get("single gradient", [0.0])) < 1e-3


def test_farms_on_the_gpu_are_equal_to_the_cpu():
    """One child process: starting it takes as long as the cases."""
    found = simulated(*QUICK)
    for name in QUICK:
        assert_equal(found[name])
    assert found["too_many:jensen"]["message"] == "a layout has 3001 turbines; the GPU takes at most 3000"


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_every_kind_of_farm(name):
    assert_equal(simulated(name)[name])


@pytest.mark.slow
def test_more_speeds_than_the_cpu_computes_at_once():
    (found,) = simulated("many_speeds:jensen").values()
    assert max(found["aep"]) < 1e-12
    assert max(found["gradient"]) < 1e-11


# --- the CPU


@pytest.fixture
def farm(small_site, turbine):
    return WindFarm(small_site, turbine)


def test_batches_are_equal_to_single_layouts(small_site, turbines):
    farm = WindFarm(small_site, turbines, threads=2)
    every = [farm.aep_gradient(*at) for at in zip(X, Y, strict=True)]
    assert farm.batch_aep_gwh(X, Y).tolist() == [farm.aep_gwh(*at) for at in zip(X, Y, strict=True)]
    assert farm.batch_aep_gwh(X, Y, precision="single").tolist() == farm.batch_aep_gwh(X, Y).tolist()
    for got, expected in zip(farm.batch_aep_gradient(X, Y), zip(*every, strict=True), strict=True):
        assert np.array_equal(got, expected)
    for got, each in zip(farm.batch_simulate(X, Y, per_condition=True), zip(X, Y, strict=True), strict=True):
        expected = farm.simulate(*each, per_condition=True)
        assert got.aep_gwh.tolist() == expected.aep_gwh.tolist()
        assert np.array_equal(got.condition_power_mw, expected.condition_power_mw)


def test_each_layout_has_conditions_of_its_own(farm):
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    every = [farm.sampled_aep_gradient(*at, 20, one) for at in zip(X, Y, strict=True)]
    for got, expected in zip(farm.batch_sampled_aep_gradient(X, Y, 20, other), zip(*every, strict=True), strict=True):
        assert np.array_equal(got, expected)
    some = [farm.site.draw(n, np.random.default_rng(n)) for n in (3, 5)]
    aep, _, _ = farm.batch_aep_gradient(X, Y, some)
    assert aep[1] == farm.aep_gradient(X[1], Y[1], some[1])[0]
    same, _, _ = farm.batch_aep_gradient(X, Y, some[0])
    assert same[1] == farm.aep_gradient(X[1], Y[1], some[0])[0]


NAN = [[0.0, 900.0], [0.0, float("nan")]]
TWO = [[0.0, 900.0], [0.0, 900.0]]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda farm: farm.batch_aep_gwh([0, 9], [0, 9]), r"x has the shape \(2,\); expected \(layouts, turbines\)"),
        (lambda farm: farm.batch_aep_gwh([[0], [0, 9]], TWO), "x: the layouts have 1 to 2 turbines; expected the same"),
        (lambda farm: farm.batch_aep_gwh(TWO, [[0, 9]]), r"x has the shape \(2, 2\) and y \(1, 2\); expected the same"),
        (lambda farm: farm.batch_aep_gwh(TWO, NAN), r"layout 1: y\[1\] is nan; expected a finite number"),
        (lambda farm: farm.batch_aep_gwh([["a"]], [[0]]), "x: expected numbers"),
        (lambda farm: farm.batch_simulate([[0, 9], [3, 3]], [[0, 9], [2, 2]]), "layout 1: turbines 0 and 1 are at the"),
        (lambda farm: farm.batch_aep_gwh(TWO, TWO, precision="half"), "precision is 'half'; expected one of double"),
        (lambda farm: farm.batch_aep_gradient(TWO, TWO, 7), "conditions is 7; expected Conditions, or a sequence"),
        (
            lambda farm: farm.batch_aep_gradient(TWO, TWO, [farm.site.conditions]),
            "1 conditions for 2 layouts; expected one for each, or one for all",
        ),
        (
            lambda farm: farm.batch_sampled_aep_gradient(TWO, TWO, 0, np.random.default_rng(0)),
            "count is 0; expected a whole number",
        ),
        (lambda farm: WindFarm(farm.site, [farm.turbine] * 3).batch_aep_gwh(TWO, TWO), "layout 0: 3 turbines for 2"),
        (lambda farm: WindFarm(farm.site, farm.turbine, device="gpu"), "device is 'gpu'; expected one of cpu, cuda"),
    ],
)
def test_wrong_input(farm, call, says):
    with pytest.raises(InputError, match=says):
        call(farm)


def test_a_missing_gpu_is_reported_at_once(farm, monkeypatch):
    def require():
        raise InputError("no NVIDIA driver is installed")

    monkeypatch.setattr(device, "require", require)
    with pytest.raises(InputError, match="no NVIDIA driver is installed"):
        WindFarm(farm.site, farm.turbine, device="cuda")
