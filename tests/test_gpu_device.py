"""A real GPU beside the CPU: make test-gpu. Elsewhere these tests are skipped."""

import functools
import itertools
import os
import signal
import subprocess
import time

import numpy as np
import pytest

from leeward.campaign import builtin, load
from leeward.campaign.batch import TaskFailure
from leeward.campaign.gpu import compute_many
from leeward.errors import InputError
from leeward.wind import Neighbours, WindFarm, wake_models
from leeward.wind.gpu import device
from run_cases import LEEWARD, kill_group, results, until, workers_of

LAYOUTS = 50


@functools.cache
def missing():
    """Return why there is no GPU to test, or ""."""
    try:
        device.require()
    except InputError as error:
        return str(error)
    return "the GPU is simulated" if device.is_simulated() else ""


@pytest.fixture(autouse=True)
def _needs_a_gpu():
    if missing():
        pytest.skip(f"needs an NVIDIA GPU: {missing()}")


pytestmark = pytest.mark.gpu


def farms(model="nygaard_2022", **options):
    """Return the farm of the example layout on the CPU and on the GPU, and the layout. There are 8280 conditions."""
    _, turbine, x, y = builtin.example_layout()
    cpu, gpu = (WindFarm(builtin.site(), turbine, model, device=name, **options) for name in ("cpu", "cuda"))
    assert cpu.site.conditions.speed.size == 8280
    return cpu, gpu, x, y


def many(x, y, seed=0):
    """Return layouts that differ by up to 200 m from one."""
    moved = np.random.default_rng(seed).uniform(-200.0, 200.0, (2, LAYOUTS, len(x)))
    return x + moved[0], y + moved[1]


def difference(got, expected):
    """Return the largest difference of two results, relative to the largest value of `expected`."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    return np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-9)


@pytest.mark.parametrize("model", wake_models.CLASSES)
def test_the_example_layout_is_that_of_the_cpu(model):
    cpu, gpu, x, y = farms(model, threads=os.cpu_count())
    aep, *slopes = cpu.aep_gradient(x, y)
    found, *by = gpu.aep_gradient(x, y)
    assert found == pytest.approx(aep, rel=1e-9)
    assert gpu.aep_gwh(x, y) == pytest.approx(aep, rel=1e-9)
    assert difference(by, slopes) < 1e-6
    x, y = x[None], y[None]
    assert gpu.batch_aep_gwh(x, y, precision="single")[0] == pytest.approx(aep, rel=2e-5)
    single, *by = gpu.batch_aep_gradient(x, y, precision="single")
    assert single[0] == pytest.approx(aep, rel=2e-5)
    assert difference(np.array(by)[:, 0], slopes) < 1e-3


def test_types_neighbours_and_simulate():
    _, _, x, y = farms()
    types = [builtin.turbines()[k % 3] for k in range(len(x))]
    there = Neighbours(x[:5] + 15_000.0, y[:5], builtin.turbines()[4])
    cpu, gpu = (WindFarm(builtin.site(), types, neighbours=there, device=name, threads=4) for name in ("cpu", "cuda"))
    ours, theirs = gpu.simulate(x, y, per_condition=True), cpu.simulate(x, y, per_condition=True)
    for name in ("aep_gwh", "gross_aep_gwh", "effective_speed_m_s", "condition_speed_m_s", "condition_power_mw"):
        assert difference(getattr(ours, name), getattr(theirs, name)) < 1e-9
    assert gpu.wake_loss(x, y) == pytest.approx(cpu.wake_loss(x, y), rel=1e-9)
    drawn = [farm.sampled_aep_gradient(x, y, 100, np.random.default_rng(1)) for farm in (gpu, cpu)]
    assert drawn[0][0] == pytest.approx(drawn[1][0], rel=1e-9)
    assert difference(drawn[0][1], drawn[1][1]) < 1e-6


def test_many_layouts_in_one_call_are_those_of_single_calls():
    _, gpu, x, y = farms()
    each_x, each_y = many(x, y)
    aep, *slopes = gpu.batch_aep_gradient(each_x, each_y)
    one, *by = zip(*(gpu.aep_gradient(*at) for at in zip(each_x, each_y, strict=True)), strict=True)
    assert difference(aep, one) < 1e-12
    assert difference(slopes, by) < 1e-9
    assert difference(gpu.batch_aep_gwh(each_x, each_y), aep) < 1e-12
    simulated = gpu.batch_simulate(each_x, each_y)
    assert difference([each.total_aep_gwh for each in simulated], aep) < 1e-12


@pytest.mark.parametrize("precision", ["double", "single"])
def test_the_same_call_gives_the_same_bits(precision):
    _, gpu, x, y = farms()
    at = many(x, y)
    first = gpu.batch_aep_gradient(*at, precision=precision)
    other = farms()[1]
    for again in (gpu.batch_aep_gradient(*at, precision=precision), other.batch_aep_gradient(*at, precision=precision)):
        assert [values.tobytes() for values in again] == [values.tobytes() for values in first]


# --- campaigns


def computed(campaign, keys):
    """Return the results by key."""
    found = list(compute_many(campaign, keys, lambda **facts: None))
    assert not [each for each in found if isinstance(each, TaskFailure)]
    return {each.key: each for each in found}


def some_tasks(campaign, count):
    """Return tasks of different farms and types."""
    return list(itertools.islice(campaign.tasks(), 0, None, campaign.n_tasks // count))[:count]


def test_smart_start_gives_the_layouts_of_the_cpu():
    campaign = load("danish-energy-island").with_overrides(recipe="smart_start", engine="gpu")
    keys = some_tasks(campaign, 6)
    found = computed(campaign, keys)
    for key in keys:
        expected = campaign.optimise(key)
        assert found[key].layout.tobytes() == np.array([expected.x, expected.y]).tobytes()
        assert found[key].aep_gwh == pytest.approx(expected.aep_gwh, rel=1e-12)


def test_refined_layouts_are_feasible_and_their_aep_is_that_of_the_cpu():
    campaign = load("danish-energy-island").with_overrides(effort="fast", engine="gpu")
    keys = some_tasks(campaign, 12)
    found = computed(campaign, keys)
    assert len(found) == 12
    for key, result in found.items():
        problem = campaign.problem(key.farm_idx, key.type_idx)
        assert problem.violation(*result.layout).worst_m <= 1e-6
        aep, _, _ = campaign.recompute(key, *result.layout)
        assert result.aep_gwh == pytest.approx(aep, rel=1e-9)


def start_run(folder):
    command = [*LEEWARD, "run", "--engine", "gpu", "--effort", "fast", "--only", "farm=0,1 type=0,1,2"]
    return subprocess.Popen(command, cwd=folder, start_new_session=True, stdout=subprocess.DEVNULL)


def test_a_killed_run_is_resumed(tmp_path):
    """The worker is killed in its batch, then the command is killed as well."""
    process = start_run(tmp_path)
    try:
        (worker,) = until(lambda: workers_of(process), "a worker has started", 120.0)
        time.sleep(5.0)  # it loads the driver and compiles; then it computes
        os.kill(worker, signal.SIGKILL)
        until(lambda: set(workers_of(process)) - {worker}, "another has started", 120.0)
    finally:
        kill_group(process)
    assert start_run(tmp_path).wait(timeout=900.0) == 0
    found = results(tmp_path / "layouts.h5")
    assert len(found) == 6
    campaign = load("danish-energy-island")
    for result in found.values():
        aep, _, _ = campaign.recompute(result.key, *result.layout)
        assert result.aep_gwh == pytest.approx(aep, rel=1e-9)
