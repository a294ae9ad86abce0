"""Studies in the simulator of numba-cuda: a program that prints the largest differences to the CPU as JSON.

Arguments: names of the cases below, each a function that returns a dict.
"""

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import field_cases
from leeward.errors import InputError
from leeward.study import Study, load_study
from leeward.study.gpu import compute_many
from leeward.wind import Site, gpu, wake_models
from leeward.wind.gpu import cases as gpu_cases
from leeward.wind.gpu.cases import GpuScenarios, Sample
from leeward.wind.scenarios import CASES, Group, ScenarioFarm
from small_studies import study_data, write_scenarios
from test_scenarios import LARGE, SMALL

FOREVER = np.iinfo(np.int64).max
DIRECTIONS = [270.0, 90.0, 0.0, 263.0, 100.0, 200.0]
# the first two are targets. West wind passes from the third to the first, to the third, and to the first again.
LAYOUTS = [
    (np.array([0.0, 2500.0, 5000.0]) + 6e5, np.array([0.0, 60.0, -80.0]) + 6.2e6, SMALL),
    (np.array([300.0, 2800.0]) + 6e5, np.array([900.0, 700.0]) + 6.2e6, LARGE),
    (np.array([-1500.0, 1200.0, 3700.0]) + 6e5, np.array([30.0, -40.0, 90.0]) + 6.2e6, LARGE),
    (np.array([1000.0, 3000.0, 5200.0]) + 6e5, np.array([-2500.0, 2600.0, 2900.0]) + 6.2e6, SMALL),
    (np.array([80e3, 80e3]) + 6e5, np.array([-2500.0, 2600.0]) + 6.2e6, SMALL),
]
# the layouts of each sample, and the first row and the end of each neighbour
SAMPLES = [
    ([0, 2, 3], [(0, FOREVER), (1, 5)]),
    ([0], []),
    ([1, 2, 4], [(2, FOREVER), (0, 3)]),
    ([0, 3], [(4, FOREVER)]),
]


def series():
    speed = np.array([8.0, 11.0, 6.0, 9.0, 13.0, 7.0])
    return Site.from_time_series(DIRECTIONS, speed, np.linspace(0.06, 0.11, len(speed)))


def rose():
    rng = np.random.default_rng(4)
    shares = rng.dirichlet(np.ones(8)).reshape(4, 2)
    return Site.from_table(np.arange(0.0, 360.0, 90.0), [7.0, 10.0], shares, 0.08, kind="exact")


def samples_of(given):
    for layouts, rows in given:
        first, end = (np.array([0, *(row[i] for row in rows)], dtype=np.int64) for i in (0, 1))
        yield Sample(np.array(layouts), first, end)


def differences(site, model, layouts=LAYOUTS, given=SAMPLES):
    """Return the largest differences of energy and power, relative to the largest value, and the external loss."""
    model = wake_models.wake_model(model)
    found = {"aep": 0.0, "farm": 0.0, "turbines": 0.0, "loss": 0.0}
    samples = list(samples_of(given))
    for sample, power in zip(samples, GpuScenarios(site, layouts, model, turbines=True).evaluate(samples), strict=True):
        x, y, turbine = layouts[sample.layouts[0]]
        farm = ScenarioFarm(site, turbine, x, y, model, types=[kind for _, _, kind in layouts])
        groups = [
            Group(*layouts[i], first, None if end == FOREVER else end)
            for i, first, end in zip(*(values.tolist()[1:] for values in sample), strict=True)
        ]
        peer = farm.evaluate(groups)
        for case in CASES:
            energy, series = farm.aep_gwh(peer[case]), peer[case][:, :, 0]
            found["aep"] = max(found["aep"], abs(power.aep_gwh[case] / energy - 1.0))
            off = np.abs(power.turbines[case] - series).max() / series.max()
            found["turbines"] = max(found["turbines"], float(off))
            off = np.abs(power.farm[case] - series.sum(axis=0)).max() / series.max()
            found["farm"] = max(found["farm"], float(off))
        found["loss"] = max(found["loss"], 1.0 - power.aep_gwh["external"] / power.aep_gwh["none"])
    return found


def in_a_series(model="nygaard_2022"):
    return differences(series(), model)


def in_a_rose():
    return differences(rose(), "bastankhah_gaussian", given=SAMPLES[:1])


def model(name):
    return lambda: differences(series(), name)


def field(name):
    """Return a case in wind that varies over the site."""

    def case():
        site = field_cases.CASES[name].site(np.arange(0.0, 360.0, 60.0), [6.0, 9.0, 12.0])
        x, y = field_cases.layout(9, 1, apart_m=600.0)
        layouts = [
            (x[part], y[part], kind) for part, kind in ((slice(3), SMALL), (slice(3, 6), LARGE), (slice(6, 9), SMALL))
        ]
        return differences(site, "jensen", layouts, [([0, 1, 2], [(0, FOREVER), (2, 4)])])

    return case


def small_study(folder, **changes):
    """Return a study with three scenarios: two neighbours, one, and one with another wake model."""
    rows = [
        {"scenario": 0, "farm": 1, "type": 1, "seed": 0, "from_step": 0, "wake_model.expansion": ""},
        {"scenario": 0, "farm": 2, "type": 0, "seed": 1, "from_step": 3, "wake_model.expansion": ""},
        {"scenario": 1, "farm": 3, "type": 0, "seed": 2, "from_step": 1, "wake_model.expansion": ""},
        {"scenario": 2, "farm": 3, "type": 0, "seed": 0, "from_step": 2, "wake_model.expansion": 0.06},
    ]
    wind = {
        "wind_direction_deg": [80.0, 190.0, 280.0, 100.0],
        "wind_speed_m_s": [9.0, 11.0, 7.0, 12.0],
        "turbulence_intensity": 0.07,
        "hours_per_step": 24,
    }
    given = {
        "wind": wind,
        "scenarios": {"file": str(write_scenarios(folder, rows, "own.csv"))},
        "windows": {"all": "all"},
    }
    keep = ["aep", "windows", "farm_power", "turbine_power"]
    return load_study(study_data(folder, **{**given, "keep": keep, "cases": list(CASES), **changes}))


def outcomes(study):
    steps = []
    found = list(compute_many(study, list(study.tasks()), lambda **facts: steps.append(facts["step"])))
    if steps != list(range(1, len(found) + 1)):
        raise ValueError(steps)
    return {outcome.key: outcome for outcome in found}


def of_a_study():
    """Compare the results of tasks, which also must not depend on how they are divided into chunks."""
    with tempfile.TemporaryDirectory() as name:
        study = small_study(Path(name))
    ours, found = outcomes(study), {}
    for key, one in ours.items():
        peer = study.evaluate(key)
        for what, values in peer.datasets.items():
            off = float(np.abs(one.datasets[what] - values).max() / np.abs(values).max())
            found[what] = max(found.get(what, 0.0), off)
        volatile = ("seconds", "created")
        if any(one.details[detail] != peer.details[detail] for detail in peer.details if detail not in volatile):
            raise ValueError(f"{one.details} differs from {peer.details}")
        if one.fingerprint != peer.fingerprint:
            raise ValueError("the fingerprints differ")
    gpu_cases.MOST_SAMPLES = 1
    again = outcomes(study)
    return {**found, "chunked": float(any(again[key].digest != one.digest for key, one in ours.items()))}


def with_a_bad_sample():
    """Return the errors of tasks: a layout of the second scenario has two turbines at one point."""
    with tempfile.TemporaryDirectory() as name:
        study = small_study(Path(name), keep=["aep"], windows={}, cases=["all"])
    layout = int(study.data.rows.layout[study.neighbour_rows(1)[0]])
    first, x, y = study.data.layouts.starts[layout], study.data.layouts.x.copy(), study.data.layouts.y.copy()
    x[first + 1], y[first + 1] = x[first], y[first]
    broken = Study(replace(study.data, layouts=replace(study.data.layouts, x=x, y=y)))
    return {str(key): str(getattr(outcome, "exception", "")) for key, outcome in outcomes(broken).items()}


def on_terrain():
    try:
        field("terrain following with speed-up")()
    except InputError as error:
        return {"error": str(error)}
    return {}


KNOWN = {
    "series": in_a_series,
    "rose": in_a_rose,
    "study": of_a_study,
    "bad": with_a_bad_sample,
    "terrain": on_terrain,
    **{name: model(name) for name in ("bastankhah_gaussian", "iea37_gaussian", "jensen", "no_wake")},
    **{
        f"field {name}": field(name)
        for name in ("weibull", "everything", "table linear", "series with speed-up", "turbulence at 15 m/s")
    },
}

if __name__ == "__main__":
    if not gpu.device.is_simulated():
        raise SystemExit("set NUMBA_ENABLE_CUDASIM=1")
    print(json.dumps({name: KNOWN[name]() for name in sys.argv[1:]}))
