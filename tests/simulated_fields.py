"""Wind fields in the simulator of numba-cuda: a program that prints the largest differences to the CPU as JSON.

Arguments: cases, each as function:field:model, for example energy:table:linear. Differences are relative to the
largest value; those of wake losses to the power and its derivatives.
"""

import json
import sys

import numpy as np

import field_cases
from field_cases import X, Y
from leeward.wind import Neighbours, WindFarm, wake_models
from leeward.wind.conditions import GWH_PER_MW
from leeward.wind.gpu import field as gpu_field
from leeward.wind.gpu.engine import to_device
from leeward.wind.gpu.field import FieldEngine
from leeward.wind.wake_models import BastankhahGaussian, wake_model
from test_field_gradient import low_turbine, smooth_turbine

LINEAR = BastankhahGaussian(superposition="linear", reference_speed="effective", expansion=0.02)
TYPES = [smooth_turbine(), low_turbine()]
PART = X[1:4], Y[:3]


class Target(BastankhahGaussian):
    """Deficits relative to the free wind where they act."""

    relative_to = "target"


MODELS = {
    "linear": LINEAR,
    "momentum": BastankhahGaussian(induction="momentum", reference_speed="effective"),
    "target": Target(),
    **{name: wake_model(name) for name in wake_models.CLASSES},
}


class Batch:
    """Two farms of different size beside an existing turbine, on the GPU and on the CPU."""

    def __init__(self, field, model):
        case = field_cases.CASES[field]
        if case.is_table:
            case = case.replaced(case.dataset.isel(ws=slice(2, 4)))
        self.site = case.site([10.0, 100.0, 190.0, 280.0], [7.0, 11.0]).unchecked()
        if case.is_series:
            self.site = self.site.coarser(2, [8.0])
        x, y = field_cases.layout(4, 3, *PART, border_m=20.0)
        there = Neighbours(x[3:], y[3:], TYPES[1])
        self.at = [(x[:3], y[:3]), (x[1:3] - 400.0, y[1:3] + 300.0)]
        self.farms = [
            WindFarm(self.site, [TYPES[k % 2] for k in range(len(x))], MODELS[model], neighbours=there)
            for x, _ in self.at
        ]
        self.engine = FieldEngine(self.farms[0]._engine)
        self.places = [farm._placed(*at) for farm, at in zip(self.farms, self.at, strict=True)]
        self.batch = self.engine.batch(self.places, [3, 2], [0, 1])

    def totals(self, i, work, conditions=None):
        """Return a sum of farm i over the wind, on the CPU."""
        farm = self.farms[i]
        counted = farm._counted(self.places[i])
        return farm._total(lambda block: work(farm._engine, block, counted), self.places[i], conditions)

    def values(self, i, on_gpu):
        """Return the results of the turbines of farm i."""
        return on_gpu.copy_to_host()[:, i, : len(self.at[i][0])]


def difference(got, expected, scale=None):
    """Return the largest difference of each row, relative to the largest value of the row in `scale`."""
    largest = np.maximum(np.abs(expected if scale is None else scale).max(axis=-1), 1e-7)  # MW, MW/m
    return float((np.abs(got - expected).max(axis=-1) / largest).max())


def energy(field, model, found):
    """Net and gross power and their gradients, in all conditions of the site and in others drawn at random."""
    some = Batch(field, model)
    conditions = [some.site.conditions, some.site.draw(5, np.random.default_rng(1))]
    engine, batch, winds = some.engine, some.batch, some.engine.field_winds(conditions)
    power, lost = engine.power(batch, winds), engine.lost_power(batch, winds)
    net, loss = engine.gradient(batch, winds), engine.gradient(batch, winds, of_loss=True)
    gross = engine.gross(batch, winds)
    for i, each in enumerate(conditions):
        expected = some.totals(i, lambda e, block, counted: e.gradient(block, counted), each)
        found["aep"].append(difference(some.values(i, power), expected[:1]))
        found["gradient"].append(difference(some.values(i, net), expected))
        less = some.totals(i, lambda e, block, counted: e.gradient(block, counted, of_loss=True), each)
        found["aep"].append(difference(some.values(i, lost), less[:1], expected[:1]))
        found["gradient"].append(difference(some.values(i, loss), less, expected))
        without = np.array(some.farms[i].gross_aep_gradient(*some.at[i], each)) / GWH_PER_MW
        least = np.maximum(np.abs(without), np.abs(expected))  # wind that is the same everywhere has no slopes
        found["gradient"].append(difference(some.values(i, gross), without, least))


def terrain(field, model, found):
    """The gradient of one small farm: the simulator is slow along the terrain."""
    some = Batch(field, model)
    batch = some.engine.batch(some.places[1:], [2], [0])
    net = some.engine.gradient(batch, some.engine.field_winds([some.site.conditions]))
    expected = some.totals(1, lambda e, block, counted: e.gradient(block, counted))
    found["gradient"].append(difference(net.copy_to_host()[:, 0, :2], expected))


def small_chunks(field, model, found):
    """Results do not depend on the division into parts."""
    some = Batch(field, model)
    engine, winds = some.engine, some.engine.field_winds([some.site.conditions] * 2)
    whole = engine.gradient(some.batch, winds).copy_to_host()
    gpu_field.MOST_ELEMENTS, gpu_field.device.SIMULATED_BYTES = 4, 1
    engine._spaces.clear()
    parts = engine.gradient(some.batch, winds).copy_to_host()
    found["gradient"] += [difference(parts[:, i, :2], whole[:, i, :2]) for i in range(2)]


def drawn(field, model, found):
    """Conditions gathered on the GPU are those gathered on the CPU."""
    some = Batch(field, model)
    conditions, engine = some.site.conditions, some.engine
    shape = conditions.speed.shape
    row, column = np.array([[3, 0, 1], [2, 2, 0]]) % shape[0], np.array([[0, 1, 1], [1, 0, 0]]) % shape[1]
    weight = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    winds = engine.field_winds([conditions, conditions])
    picked = (to_device([1, 0]), to_device(row), to_device(column), to_device(weight))
    power = engine.power(some.batch, engine.drawn(winds, *picked))
    again = engine.power(some.batch, engine.drawn(winds, *picked, into=engine.drawn(winds, *picked)))
    for i in range(2):
        each = conditions.drawn(row[i], column[i], weight[i])
        expected = some.totals(i, lambda e, block, counted: e.power(block), each)
        found["aep"].append(difference(some.values(i, power)[0], expected))
        found["aep"].append(difference(some.values(i, again)[0], expected))


def maps(field, model, found):
    """One more turbine at points, and without each turbine."""
    some = Batch(field, model)
    engine, batch, winds = some.engine, some.batch, some.engine.field_winds([some.site.conditions] * 2)
    worth = engine.worth(batch, winds)
    x, y = np.array([[2100.0, 3900.0], [2600.0, 1700.0]]) + X[0], np.array([[300.0, 2900.0], [1800.0, 1100.0]]) + Y[0]
    points = engine.points(batch, list(x), list(y), [1, 1])
    gains = engine.gains(batch, winds, points, winds).copy_to_host() * GWH_PER_MW
    yields = engine.yields(batch, winds, points, winds, True).copy_to_host() * GWH_PER_MW
    for i, farm in enumerate(some.farms):
        expected = some.totals(i, lambda e, block, counted: e.marginal(block, counted))
        found["aep"].append(difference(some.values(i, worth)[0], expected))
        at = (*some.at[i], x[i], y[i])
        found["aep"].append(difference(yields[i], farm.next_turbine_aep_gwh(*at, turbine=TYPES[1])))
        found["aep"].append(difference(gains[i], farm.next_turbine_gain(*at, turbine=TYPES[1])))


def speeds(field, model, found):
    """The effective speed of each turbine in each condition."""
    some = Batch(field, model)
    winds = some.engine.field_winds([some.site.conditions] * 2)
    ((chunk, speed, _),) = some.engine.speeds(some.batch, winds)
    every = speed.reshape(chunk.layouts, chunk.directions, chunk.lanes, -1)
    for i, farm in enumerate(some.farms):
        expected = farm.simulate(*some.at[i], per_condition=True).condition_speed_m_s
        found["aep"].append(difference(every[i, :, :, : len(expected)].transpose(2, 0, 1), expected))


if __name__ == "__main__":
    results = {}
    for name in sys.argv[1:]:
        function, field, model = name.split(":")
        results[name] = {"aep": [0.0], "gradient": [0.0]}
        globals()[function](field, model, results[name])
    print(json.dumps(results))
