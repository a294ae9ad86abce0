"""What the tests of studies share: evaluations made by hand, stored in a run directory and merged."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from leeward.store import Evaluation, EvaluationKey, RunPaths, merge_run, store_result

CASES = ("all", "external")
WINDOWS = ("first_360", "whole")
TIMES = ("2020-01-01T00:00:00", "2020-01-02T00:00:00", "2020-01-03T00:00:00")
TURBINES = {0: 4, 1: 2}  # of each target


def evaluation(target=0, scenario=0, *, steps=3, series=True, windows=WINDOWS, cases=CASES, **details):
    """Numbers that differ from one evaluation, case, step and turbine to the next."""
    turbines = TURBINES[target]
    power = 1.0 + np.random.default_rng([target, scenario]).uniform(size=(len(cases), steps, turbines))
    arrays = {}
    if series:
        arrays = {"turbine_power_mw": power, "farm_power_mw": power.sum(axis=2)}
    if windows:
        whole = power.sum(axis=2).mean(axis=1)
        arrays["window_power_mw"] = np.stack([whole + number for number in range(len(windows))], axis=1)
        details["windows"] = ",".join(windows)
    names = {"target": f"alone:farm{target}_t5_s0", "scenario": f"sample {scenario}", "weight": 0.5 + scenario}
    facts = {"n_turbines": turbines, "n_neighbours": scenario, "installed_mw": 15.0 * turbines}
    aep = power.sum(axis=(1, 2)) / 10
    key = EvaluationKey(target, scenario)
    return Evaluation(key, cases, aep, 2 * turbines * 0.3, "f" * 64, details={**names, **facts, **details}, **arrays)


def store_study(folder, evaluations, text="kind: evaluations\nname: toy\n"):
    """Store evaluations in study.run, and merge them to study.h5. Return the paths."""
    paths = RunPaths(folder / "study.h5")
    for one in evaluations:
        store_result(paths, one)
    paths.campaign.write_text(text)
    merge_run(paths, {"campaign": text, "campaign_name": "toy"})
    return paths


def neighbour(farm, first=0, *, end=None, type_idx=5, seed=0):
    turbine = SimpleNamespace(
        name="V", rated_power_mw=10.0 + (type_idx or 0), rotor_diameter_m=240.0, hub_height_m=150.0
    )
    name = "positions:scenarios[0]" if farm is None else f"alone:farm{farm}_t{type_idx}_s{seed}"
    numbers = {"farm_idx": farm, "type_idx": type_idx, "seed": seed, "first": first, "end": end}
    return SimpleNamespace(name=name, x=[0.0, 900.0], turbine=turbine, **numbers)


@dataclass
class FakeStudy:
    """The part of a study that tables show. inputs: neighbours and overrides by number of the scenario."""

    inputs: dict
    times: tuple[str, ...] = TIMES

    def __post_init__(self):
        self.targets = {target: f"alone:farm{target}_t5_s0" for target in TURBINES}
        self.scenarios = {number: f"sample {number}" for number in self.inputs}
        self.weights = {number: 0.5 + number for number in self.inputs}

    def holds(self, key, fingerprint, version):
        return key.scenario_idx in self.inputs

    def neighbours(self, scenario_idx):
        return self.inputs[scenario_idx][0]

    def overrides(self, scenario_idx):
        return self.inputs[scenario_idx][1]
