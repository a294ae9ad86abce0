"""The feature table of a study: the inputs of each scenario beside the means of its results."""

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leeward.store.format.keys import EvaluationKey

if TYPE_CHECKING:
    from leeward.store.evaluations import Evaluations, Numbers, StudyFacts

_TURBINE = ("rated_power_mw", "rotor_diameter_m", "hub_height_m")


def feature_rows(evaluations: "Evaluations", study: "StudyFacts") -> list[dict[str, Any]]:
    """Return one row per target and scenario, all with the same columns. Absent values are NaN."""
    inputs = functools.cache(lambda scenario: _inputs(study.neighbours(scenario), study.overrides(scenario)))
    scenarios = sorted({key.scenario_idx for key in evaluations})
    columns = sorted({name for scenario in scenarios for name in inputs(scenario)}, key=_order)
    means = [name for case in evaluations.cases for name in _mean_names(case, evaluations.windows)]
    rows = []
    for key, numbers in evaluations.numbers(evaluations).items():
        facts = evaluations.facts[key]
        row: dict[str, Any] = {"key": str(key), **key._asdict(), "target": facts.target, "scenario": facts.scenario}
        row |= {name: getattr(facts, name) for name in ("weight", "n_turbines", "installed_mw", "n_neighbours")}
        row |= {name: inputs(key.scenario_idx).get(name, math.nan) for name in columns}
        row["gross_aep_gwh"] = numbers.gross_aep_gwh
        found = _means(evaluations, key, numbers)
        rows.append(row | {name: found.get(name, math.nan) for name in means})
    return rows


def _inputs(neighbours: Sequence[Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a scenario by column name.

    A farm that occurs more than once has a number after its second and later entries: farm3, farm3_2.
    """
    found: dict[str, Any] = dict(overrides)
    seen: Counter[int] = Counter()
    for position, neighbour in enumerate(neighbours):
        farm = position if neighbour.farm_idx is None else neighbour.farm_idx
        seen[farm] += 1
        start = f"farm{farm}" + (f"_{seen[farm]}" if seen[farm] > 1 else "")
        turbine = neighbour.turbine
        found[f"{start}_type"] = turbine.name if neighbour.type_idx is None else neighbour.type_idx
        found |= {f"{start}_{name}": getattr(turbine, name) for name in _TURBINE}
        found[f"{start}_seed"] = math.nan if neighbour.seed is None else neighbour.seed
        found[f"{start}_first_step"] = neighbour.first
        if neighbour.end is not None:
            found[f"{start}_end_step"] = neighbour.end
    return found


_AFTER = ("type", *_TURBINE, "seed", "first_step", "end_step")


def _order(name: str) -> tuple[int, int, int, int, str]:
    """Return the place of an input among the columns: farms by number, then overrides by name."""
    for position, end in enumerate(_AFTER):
        farm, _, rest = name.removesuffix(f"_{end}").removeprefix("farm").partition("_")
        if name.startswith("farm") and name.endswith(f"_{end}") and farm.isdecimal() and (not rest or rest.isdecimal()):
            return 0, int(farm), int(rest or 1), position, ""
    return 1, 0, 0, 0, name


def _mean_names(case: str, windows: Sequence[str]) -> list[str]:
    return [f"{case}_aep_gwh", f"{case}_wake_loss", *(f"{case}_{window}_power_mw" for window in windows)]


def _means(evaluations: "Evaluations", key: EvaluationKey, numbers: "Numbers") -> dict[str, float]:
    """Return the means of a result by column name."""
    found: dict[str, float] = {}
    for row in evaluations.rows(key, numbers):
        names = _mean_names("", evaluations.facts[key].windows)
        found |= {f"{row['case']}{name}": row[name[1:]] for name in names if name[1:] in row}
    return found
