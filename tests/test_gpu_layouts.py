"""Optimisations on a GPU: equal to the CPU. A child process runs the kernels in the simulator of numba-cuda."""

import functools

import pytest

import simulator

QUICK = ("energy", "repair", "samples")


simulated = functools.partial(simulator.simulated, "simulated_layouts.py")


def assert_a_descent_is_that_of_the_cpu(found):
    """In single precision."""
    assert found["descent"] < 1e-2  # m, after four steps, some of them of 60 m
    assert found["values"] < 1e-5


def test_energy_repairs_and_a_descent_are_those_of_the_cpu():
    """One child process: starting it takes as long as the cases."""
    found = simulated(*QUICK)
    assert max(found["energy"].values()) < 1e-12
    assert max(found["repair"].values()) < 1e-8
    assert_a_descent_is_that_of_the_cpu(found["samples"])


@pytest.mark.slow
def test_smart_start_places_turbines_at_the_same_points():
    assert simulated("place")["place"] == {"place": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["reduced", "judged"])
def test_a_descent_on_a_rose_is_that_of_the_cpu(case):
    assert_a_descent_is_that_of_the_cpu(simulated(case)[case])


@pytest.mark.slow
def test_a_relocation_is_that_of_the_cpu_with_the_same_candidates():
    found = simulated("relocate")["relocate"]
    assert found["aep"] < 1e-7
    assert found["gain"] > 0.1  # GWh


@pytest.mark.slow
@pytest.mark.parametrize(("work", "metres"), [(700_000, 1e-2), (3_000_000, 1e-6)])
def test_a_whole_optimisation_is_that_of_the_cpu(work, metres):
    """Both converge to the same layout, so the differences become smaller again."""
    (found,) = simulated(f"recipe:{work}").values()
    assert found["layout"] < metres
    assert found["aep"] < 1e-7
    assert found["steps"] > 10
