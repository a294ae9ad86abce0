"""A small study of two targets and six scenarios, with invented numbers, for the tests of commands and pages."""

import functools
import tempfile
from pathlib import Path

import numpy as np

from leeward.store import Evaluation, EvaluationKey, RunPaths, merge_run, store_result
from leeward.study import load_study
from leeward.study.work import StudyWork

STEPS = 40
N_SCENARIOS = 6


def grid(farm):
    """Four turbines of a farm, 12 km east of the farm before."""
    x0 = 12_000.0 * farm
    return [(x0 + 1500.0 * (i % 2), 1500.0 * (i // 2)) for i in range(4)]


@functools.cache
def small_study():
    """The study; farm 0 with two seeds is the target, farms 1 and 2 are built in mid-series."""
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        layouts = Path(folder) / "layouts.csv"
        rows = ["key,x_m,y_m"]
        for name, shift in (("farm0_t0_s0", 0.0), ("farm0_t0_s1", 300.0)):
            rows += [f"{name},{x + shift},{y}" for x, y in grid(0)]
        rows += [f"farm{farm}_t1_s0,{x},{y}" for farm in (1, 2) for x, y in grid(farm)]
        layouts.write_text("\n".join(rows) + "\n")
        farms = [{"farm": 1, "type": 1, "seed": 0}, {"farm": 2, "type": 1, "seed": 0}]
        return load_study(
            {
                "name": "small",
                "layouts": {"alone": {"file": str(layouts), "campaign": "danish-energy-island"}},
                "targets": ["alone:farm0_t0_s0", "alone:farm0_t0_s1"],
                "wind": {
                    "wind_direction_deg": rng.uniform(0, 360, STEPS).tolist(),
                    "wind_speed_m_s": rng.uniform(4, 16, STEPS).tolist(),
                    "turbulence_intensity": 0.08,
                    "hours_per_step": 24,
                    "start": "2030-01-01",
                },
                "scenarios": [
                    {
                        "name": f"sample <{number}>",
                        "weight": 1.0 + number,
                        "neighbours": [
                            {**farm, "from_step": 3 * number + 8 * place}
                            for place, farm in enumerate(farms[: 1 + number % 2 if number else 0])
                        ],
                    }
                    for number in range(N_SCENARIOS)
                ],
                "cases": ["all", "external", "internal", "none"],
                "keep": ["aep", "windows", "farm_power"],
                "windows": {"first": "0:20", "whole": ":"},
            }
        )


def evaluated(key, scale=1.0):
    """An evaluation with the settings of the study and invented numbers; later scenarios lose more. scale: of all."""
    study = small_study()
    gross = np.random.default_rng(key.target_idx).uniform(20.0, 60.0, STEPS)
    lost = {
        "all": 0.1 + 0.01 * key.scenario_idx,
        "external": 0.02 + 0.01 * key.scenario_idx,
        "internal": 0.08,
        "none": 0,
    }
    farm = scale * np.array([(1.0 - lost[case]) * gross for case in study.cases])
    aep = farm.mean(axis=1) * 8.76
    neighbours = study.neighbours(key.scenario_idx)
    return Evaluation(
        key=key,
        cases=study.cases,
        aep_gwh=aep,
        gross_aep_gwh=float(scale * gross.mean() * 8.76),
        fingerprint=study.fingerprint(key),
        window_power_mw=np.array([farm[:, :20].mean(axis=1), farm.mean(axis=1)]).T,
        farm_power_mw=farm,
        details={
            "target": study.targets[key.target_idx],
            "scenario": study.scenarios[key.scenario_idx],
            "weight": study.weights[key.scenario_idx],
            "windows": ",".join(study.windows),
            "n_turbines": 4,
            "n_neighbours": sum(len(one.x) for one in neighbours),
            "installed_mw": 60.0,
            "seconds": 0.25,
            "host": "node",
            "created": "2026-11-18T10:00:00Z",
            "versions": "leeward 1.0",
            "method_version": study.method_version,
        },
    )


def run_of_study(folder, left_out=(), *, merged=False):
    """A run directory of the study, without some tasks."""
    study, paths = small_study(), RunPaths(folder / "study.h5")
    for place in paths.folders():
        place.mkdir(parents=True, exist_ok=True)
    for key in study.tasks():
        if key not in left_out:
            store_result(paths, evaluated(key))
    paths.campaign.write_text(study.frozen_text())
    if merged:
        merge_run(paths, StudyWork(study).attributes())
    return paths


ABSENT = (EvaluationKey(1, 4), EvaluationKey(1, 5))
