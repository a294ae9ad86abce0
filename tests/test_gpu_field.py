"""Wind fields on a GPU: equal to the CPU. A child process runs the kernels in the simulator of numba-cuda."""

import functools

import pytest

import simulator
from field_cases import CASES
from leeward.wind import wake_models

SLOW = (
    "energy:table with shear:nygaard_2022",
    "terrain:terrain following:jensen",
    "drawn:series:linear",
    "maps:everything:nygaard_2022",
)
MODELS = ("linear", "momentum", "target", *wake_models.CLASSES)
HARDEST = ("everything", "power shear on a speed-up", "table linear", "series")


simulated = functools.partial(simulator.simulated, "simulated_fields.py")


def assert_equal(differences):
    assert max(differences["aep"]) < 1e-11
    assert max(differences["gradient"]) < 1e-9


def test_a_field_on_the_gpu_is_equal_to_the_cpu():
    assert_equal(simulated("energy:everything:linear")["energy:everything:linear"])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_tables_terrain_draws_and_maps(name):
    assert_equal(simulated(name)[name])


@pytest.mark.slow
@pytest.mark.parametrize("field", CASES)
def test_every_kind_of_field(field):
    assert_equal(simulated(f"energy:{field}:linear")[f"energy:{field}:linear"])


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_every_wake_model(model):
    for found in simulated(*(f"energy:{field}:{model}" for field in HARDEST)).values():
        assert_equal(found)


@pytest.mark.slow
@pytest.mark.parametrize("field", ["elevated with speed-up", "terrain following", "series", "table linear"])
def test_maps_drawn_conditions_and_speeds(field):
    for found in simulated(*(f"{of}:{field}:linear" for of in ("maps", "drawn", "speeds", "small_chunks"))).values():
        assert_equal(found)
