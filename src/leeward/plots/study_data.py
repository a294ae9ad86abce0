"""Read the data of figures from the results of a study."""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from leeward.errors import BadSourceError, InputError
from leeward.plots.study import LOSSES, BuiltFarm, Losses
from leeward.store import EvaluationKey, Evaluations
from leeward.study import Placed, Study
from leeward.study.comparison import ALPHA, Comparison, compare, matrix_of
from leeward.study.reading import open_study


def opened(path: Path) -> tuple[Evaluations, list[str]]:
    """Return the results of a study, and a sentence for each warning about them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = open_study(path)
        _ = results.study  # reading it may warn
    if not results:
        raise BadSourceError(f"{path}: has no results; compute the study with `leeward evaluate`")
    return results, [str(warning.message) for warning in caught]


def comparison_of(
    results: Evaluations, case: str = "all", *, alpha: float = ALPHA, only_complete: bool = False
) -> Comparison:
    """Return the comparison of the layouts of a study. Weights and tasks are those of the study, if it is known."""
    study = cast(Study | None, results.study)
    weights, expected = (None, ()) if study is None else (study.weights, tuple(study.tasks()))
    matrix = matrix_of(results.results(), case, weights=weights, expected=expected, only_complete=only_complete)
    return compare(matrix, alpha)


def losses_of(results: Evaluations, target_idx: int | None = None) -> list[Losses]:
    """Return the losses of each layout over its scenarios. target_idx: only this layout."""
    study = cast(Study | None, results.study)
    by_target: dict[int, list[tuple[dict[str, float], float]]] = {}
    for key, numbers in results.numbers(results).items():
        facts = results.facts[key]
        aeps = dict(zip(facts.cases, numbers.aep_gwh.tolist(), strict=True))
        gross = numbers.gross_aep_gwh
        losses = {case: 1.0 - aeps[case] / gross if gross else 0.0 for case in LOSSES if case in aeps}
        weight = facts.weight if study is None else study.weights.get(key.scenario_idx, facts.weight)
        by_target.setdefault(key.target_idx, []).append((losses, weight))
    if target_idx is not None and target_idx not in by_target:
        raise BadSourceError(f"{results.path}: has no results of target {target_idx}")
    names = {key.target_idx: results.facts[key].target for key in results}
    return [
        _losses(names[target], found)
        for target, found in by_target.items()
        if target_idx is None or target == target_idx
    ]


def _losses(name: str, found: Sequence[tuple[dict[str, float], float]]) -> Losses:
    weights = np.array([weight for _, weight in found])
    if not weights.sum() > 0.0:
        raise InputError(f"{name}: all scenarios with results have the weight 0; expected at least one above 0")
    cases = [case for case in LOSSES if all(case in losses for losses, _ in found)]
    return Losses(name, {case: np.array([losses[case] for losses, _ in found]) for case in cases}, weights)


def build_out_of(results: Evaluations, key: EvaluationKey) -> tuple[Study, BuiltFarm, list[BuiltFarm]]:
    """Return the study, the target and the neighbours of a task, which need not have a result."""
    study = cast(Study | None, results.study)
    if study is None:
        raise InputError(f"{results.path}: holds no study, so the positions of its farms are not known")
    if key not in study:
        raise InputError(f"{key} is not a task of the study {study.name}; expected one like {next(study.tasks())}")
    neighbours = study.neighbours(key.scenario_idx)
    numbers = [one.farm_idx for one in neighbours]
    farms = []
    for one in neighbours:
        is_named = one.farm_idx is not None and numbers.count(one.farm_idx) == 1
        label = f"farm {one.farm_idx}" if is_named else one.name if one.farm_idx is not None else "positions"
        farms.append(_farm(one, label, one.first, one.end))
    return study, _farm(study.target(key.target_idx), study.targets[key.target_idx], 0, None), farms


def _farm(placed: Placed, label: str, first: int, end: int | None) -> BuiltFarm:
    return BuiltFarm(label, placed.x, placed.y, float(placed.turbine.rotor_diameter_m), first, end)


def name_of(results: Evaluations) -> str:
    """Return the name of the study, or that of the file if it is unknown."""
    return str(results.attributes.get("campaign_name", "")) or getattr(results.study, "name", "") or results.path.stem


def series_of(
    results: Evaluations, key: EvaluationKey
) -> tuple[dict[str, np.ndarray], Sequence[str], Sequence[int], float | None]:
    """Return the farm power (MW) of a result by case, the times of its steps, and the installed power (MW).

    The third value: the steps from which neighbours stand.
    """
    result = results[key]
    if result.farm_power_mw is None:
        raise InputError(
            f"{results.path}: {key} has no power series; add farm_power to `keep` in the study file, for a study whose "
            "wind is a time series, and evaluate it again"
        )
    study = results.study
    installed = results.facts[key].installed_mw
    power = dict(zip(result.cases, result.farm_power_mw, strict=True))
    times, built = ([], []) if study is None else (study.times, [one.first for one in study.neighbours(key[1])])
    return power, times, built, installed if math.isfinite(installed) else None
