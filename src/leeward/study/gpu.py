"""Compute the tasks of a study on a GPU, many at once."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from leeward.campaign.batch import TaskFailure
from leeward.errors import InputError
from leeward.store import Evaluation, EvaluationKey
from leeward.study.data import NEVER
from leeward.study.study import Setting, Study

if TYPE_CHECKING:
    from leeward.wind.gpu.cases import CasePower, GpuScenarios, Sample


def compute_many(
    study: Study, keys: Sequence[EvaluationKey], show_progress: Callable[..., None]
) -> Iterator[Evaluation | TaskFailure]:
    """Yield the result of each task, in any order. Tasks with the same wind and wake model are computed together."""
    settings: dict[Setting, list[EvaluationKey]] = {}
    for key in keys:
        try:
            if key not in study:
                raise InputError(f"{key} is not a task of {study!r}")
            settings.setdefault(study.setting(key.scenario_idx), []).append(key)
        except Exception as error:  # one bad task does not stop the others
            yield _failure(key, error)
    computed = 0
    for setting, some in settings.items():
        for outcome in _of_setting(study, setting, some):
            computed += 1
            show_progress(step=computed)
            yield outcome


def _failure(key: EvaluationKey, error: Exception) -> TaskFailure:
    return TaskFailure(key, error)  # type: ignore[arg-type]  # of any kind of key


def _of_setting(study: Study, setting: Setting, keys: Sequence[EvaluationKey]) -> Iterator[Evaluation | TaskFailure]:
    """Yield the results of tasks that have the same setting."""
    from leeward.wind.gpu.cases import GpuScenarios

    layouts = study.data.layouts
    places = [(*layouts.place(i), study.turbines[layouts.turbine[i]]) for i in range(len(layouts))]
    try:
        model, keeps_turbines = study.wake_model(setting), "turbine_power" in study.keep
        scenarios = GpuScenarios(study.site(setting), places, model, turbines=keeps_turbines)
    except InputError as error:
        yield from (_failure(key, error) for key in keys)
        return
    samples: dict[EvaluationKey, Sample] = {}
    for key in keys:
        try:
            samples[key] = _sample(study, key, scenarios)
        except Exception as error:  # one bad task does not stop the others
            yield _failure(key, error)
    for key, power in zip(samples, scenarios.evaluate(list(samples.values())), strict=True):
        try:
            yield _evaluation(study, key, power)
        except Exception as error:
            yield _failure(key, error)


def _sample(study: Study, key: EvaluationKey, scenarios: "GpuScenarios") -> "Sample":
    """Return the target and the neighbours of a task, in the order in which a CPU takes them."""
    from leeward.wind.gpu.cases import Sample

    rows, which = study.data.rows, study.neighbour_rows(key.scenario_idx)
    end = np.where(rows.end[which] == NEVER, np.iinfo(np.int64).max, rows.end[which])
    sample = Sample(
        np.r_[study.data.targets[key.target_idx], rows.layout[which]], np.r_[0, rows.first[which]], np.r_[0, end]
    )
    scenarios.check(sample)
    return sample


def _evaluation(study: Study, key: EvaluationKey, power: "CasePower") -> Evaluation:
    farm = np.array([power.farm[case] for case in study.cases]) if study.n_steps else None
    turbines = np.array([power.turbines[case] for case in study.cases]) if power.turbines else None
    return study.result(key, power.aep_gwh, farm, turbines, power.seconds)
