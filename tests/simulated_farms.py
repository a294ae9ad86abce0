"""Wind farms in the simulator of numba-cuda: a program that prints the largest differences to the CPU as JSON.

Arguments: cases, each as function:model. Differences are relative to the largest value of the CPU; a value of a case
that is not a difference is a message.
"""

import json
import pickle
import sys

import numpy as np

import field_cases
from leeward.errors import InputError
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from leeward.wind.conditions import GWH_PER_MW
from leeward.wind.gpu import farm as gpu_farm
from leeward.wind.gpu.engine import to_device

LARGE = Turbine.generic(rated_power_mw=15, rotor_diameter_m=240, hub_height_m=150)
SMALL = Turbine.generic(rated_power_mw=10, rotor_diameter_m=195, hub_height_m=121)
X = np.array([[0.0, 700.0, 1500.0], [0.0, -600.0, 900.0]]) + 700_000.0
Y = np.array([[0.0, 600.0, -300.0], [0.0, 1000.0, 200.0]]) + 6_240_000.0
THERE = Neighbours([699_100.0], [6_240_500.0], SMALL)
SPEEDS = [8.0, 11.0]


def weibull(speeds=SPEEDS):
    return Site.from_weibull(
        [0.2, 0.3, 0.4, 0.1],
        [9.0, 10.0, 11.0, 8.0],
        [2.0, 2.1, 2.2, 1.9],
        0.08,
        directions=[0.0, 80.0, 200.0, 270.0],
        speeds=speeds,
    )


def farms(model, site=None):
    """Return a farm of two types beside an existing turbine, on the CPU and on the GPU."""
    arguments = (site or weibull(), [LARGE, SMALL, LARGE], model)
    return [WindFarm(*arguments, neighbours=THERE, device=device) for device in ("cpu", "cuda")]


def difference(got, expected):
    """Return the largest difference of two results, relative to the largest value of `expected`."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    return float(np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-9))


def note(found, got, expected):
    """Note the differences of AEP and gradient."""
    found["aep"].append(difference(got[0], expected[0]))
    found["gradient"] += [difference(got[i], expected[i]) for i in (1, 2)]


def batch(model, found):
    cpu, gpu = farms(model)
    expected = cpu.batch_aep_gradient(X, Y)
    note(found, gpu.batch_aep_gradient(X, Y), expected)
    found["aep"].append(difference(gpu.batch_aep_gwh(X, Y), expected[0]))
    single = gpu.batch_aep_gradient(X, Y, precision="single")
    found["single"] = [difference(gpu.batch_aep_gwh(X, Y, precision="single"), expected[0])]
    found["single"] += [difference(single[0], expected[0])]
    found["single gradient"] = [difference(single[i], expected[i]) for i in (1, 2)]


def one(model, found):
    """The methods for one layout, also after pickling and on another site."""
    cpu, gpu = farms(model)
    found["aep"].append(difference(gpu.aep_gwh(X[0], Y[0]), cpu.aep_gwh(X[0], Y[0])))
    note(found, pickle.loads(pickle.dumps(gpu)).aep_gradient(X[1], Y[1]), cpu.aep_gradient(X[1], Y[1]))
    drawn = [farm.sampled_aep_gradient(X[0], Y[0], 3, np.random.default_rng(5)) for farm in (gpu, cpu)]
    note(found, *drawn)
    found["aep"].append(difference(gpu.wake_loss(X[0], Y[0]), cpu.wake_loss(X[0], Y[0])))
    other = weibull([9.0])
    assert gpu.on(other).device == "cuda"
    found["aep"].append(difference(gpu.on(other).aep_gwh(X[0], Y[0]), cpu.on(other).aep_gwh(X[0], Y[0])))
    found["aep"].append(difference(gpu.marginal_aep_gwh(X[0], Y[0]), cpu.marginal_aep_gwh(X[0], Y[0])))


def conditions(model, found):
    """The same conditions for all layouts, others for each, and a draw for each."""
    cpu, gpu = farms(model)
    some = weibull([7.0]).conditions, gpu.site.draw(3, np.random.default_rng(1))
    note(found, gpu.batch_aep_gradient(X, Y, some[0]), cpu.batch_aep_gradient(X, Y, some[0]))
    note(found, gpu.batch_aep_gradient(X, Y, some), cpu.batch_aep_gradient(X, Y, some))
    drawn = [farm.batch_sampled_aep_gradient(X, Y, 4, np.random.default_rng(2)) for farm in (gpu, cpu)]
    note(found, *drawn)


def simulate(model, found):
    """Also with the layouts in two groups."""
    cpu, gpu = farms(model)
    for _ in range(2):
        pairs = zip(gpu.batch_simulate(X, Y, True), cpu.batch_simulate(X, Y, True), strict=True)
        for ours, theirs in pairs:
            for name, expected in vars(theirs).items():
                if name != "conditions":
                    found["aep"].append(difference(getattr(ours, name), expected))
        gpu_farm.MOST_SPEEDS = 1
    assert gpu.simulate(X[0], Y[0]).condition_speed_m_s is None


def many_speeds(model, found):
    """More speeds than the CPU computes at once."""
    table = Site.from_table([30.0], np.linspace(6.0, 12.0, 601), np.full((1, 601), 1 / 601), 0.08, kind="exact")
    cpu, gpu = farms(model, table)
    x, y = X[:1], Y[:1]
    note(found, gpu.batch_aep_gradient(x, y), cpu.batch_aep_gradient(x, y))
    ours, theirs = gpu.simulate(x[0], y[0], True), cpu.simulate(x[0], y[0], True)
    found["aep"].append(difference(ours.condition_speed_m_s, theirs.condition_speed_m_s))


def field(model, found):
    """Wind that varies over the site; conditions of the site, of all turbines alike, and drawn, in one call."""
    site = field_cases.CASES["everything"].site([10.0, 190.0], SPEEDS).unchecked()
    cpu, gpu = farms(model, site)
    x, y = X - X[0, 0] + field_cases.X[1], Y - Y[0, 0] + field_cases.Y[1]
    note(found, gpu.batch_aep_gradient(x, y), cpu.batch_aep_gradient(x, y))
    some = site.draw(2, np.random.default_rng(1)), weibull([7.0]).conditions
    note(found, gpu.batch_aep_gradient(x, y, some), cpu.batch_aep_gradient(x, y, some))
    ours, theirs = gpu.simulate(x[1], y[1], True), cpu.simulate(x[1], y[1], True)
    found["aep"].append(difference(ours.aep_gwh, theirs.aep_gwh))
    found["aep"].append(difference(ours.condition_power_mw, theirs.condition_power_mw))


def not_a_number(model, found):
    """A layout whose positions became NaN on the GPU harms no other."""
    cpu, gpu = farms(model)
    engine, winds = gpu._gpu._site_engine(False)
    some = engine.batch([gpu._placed(X[i], Y[i]) for i in (0, 1, 1)], [3] * 3, [0] * 3)
    x = some.layouts.x.copy_to_host()
    x[1, 1:] = np.nan
    changed = some._replace(layouts=some.layouts._replace(x=to_device(x)))
    power, *slopes = engine.gradient(changed, winds).copy_to_host()[:, ::2, :3] * GWH_PER_MW
    note(found, (power.sum(axis=1), *slopes), cpu.batch_aep_gradient(X, Y))


def empty(model, found):
    """Nothing to evaluate is no error."""
    gpu = WindFarm(weibull(), LARGE, model, device="cuda")
    none = np.empty((2, 0))
    assert gpu.aep_gwh([], []) == 0.0
    assert gpu.batch_aep_gwh(none, none).tolist() == [0.0, 0.0]
    assert [values.shape for values in gpu.batch_aep_gradient(none.T, none.T)] == [(0,), (0, 0), (0, 0)]
    assert [len(each.aep_gwh) for each in gpu.batch_simulate(none, none)] == [0, 0]
    found["aep"].append(difference(gpu.aep_gwh([0.0], [0.0]), WindFarm(weibull(), LARGE, model).aep_gwh([0.0], [0.0])))


def too_many(model, found):
    gpu = WindFarm(weibull(), LARGE, model, device="cuda")
    at = np.arange(3001.0)
    try:
        gpu.aep_gwh(at, at)
    except InputError as error:
        found["message"] = str(error)


if __name__ == "__main__":
    results = {}
    for name in sys.argv[1:]:
        function, model = name.split(":")
        results[name] = {"aep": [0.0], "gradient": [0.0]}
        globals()[function](model, results[name])
    print(json.dumps(results))
