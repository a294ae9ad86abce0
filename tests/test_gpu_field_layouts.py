"""Optimisations in wind fields on a GPU: equal to the CPU. A child process runs the kernels in the simulator."""

import functools

import pytest

import simulator

FAST = ("sampled:everything", "whole:everything")
IN_SINGLE_PRECISION = ("worth", "gain", "descent: values", "judged descent: values")


simulated = functools.partial(simulator.simulated, "simulated_field_layouts.py")


@functools.cache
def fast():
    return simulated(*FAST)


def assert_equal(found):
    for name in ("judge", "full", "measure", "estimate"):
        assert found.get(name, 0.0) < 1e-9
    assert found.get("place", 0.0) == 0.0
    for name in {"descent", "judged descent"} & {*found}:
        assert found[name] < 1e-3  # m, after three steps
        assert found[f"{name}: moved"] > 10.0
    for name in IN_SINGLE_PRECISION:
        assert found.get(name, 0.0) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("case", FAST)
def test_an_optimisation_in_a_wind_field_is_that_of_the_cpu(case):
    assert_equal(fast()[case])


@pytest.mark.slow
@pytest.mark.parametrize("field", ["table", "series", "elevated with speed-up", "terrain following with speed-up"])
def test_every_kind_of_field(field):
    for found in simulated(f"sampled:{field}", f"whole:{field}").values():
        assert_equal(found)


@pytest.mark.slow
def test_farms_whose_roses_differ_in_kind():
    """The AEP of one is that on the full rose; that of the other adds its gross yield to a smaller rose."""
    assert_equal(simulated("mixed:everything")["mixed:everything"])
