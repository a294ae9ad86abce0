"""The feature table of a study: the inputs of each scenario beside the means of its results."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leeward.store.format.keys import EvaluationKey

if TYPE_CHECKING:
    from leeward.store.evaluations import Evaluations, Numbers, StudyFacts

_TURBINE = ("rated_power_mw", "rotor_diameter_m", "hub_height_m")


def feature_rows(evaluations: "Evaluations", study: "StudyFacts") -> list[dict[str, Any]]:
    """Return one row per target and scenario, all with the same columns. Absent values are NaN."""
    scenarios = sorted({key.scenario_idx for key in evaluations})
    neighbours = {scenario: study.neighbours(scenario) for scenario in scenarios}
    starts = _starts(neighbours.values())
    inputs = {number: _inputs(neighbours[number], study.overrides(number), starts) for number in scenarios}
    columns = sorted({name for found in inputs.values() for name in found}, key=_order)
    means = [name for case in evaluations.cases for name in _mean_names(case, evaluations.windows)]
    rows = []
    for key, numbers in evaluations.numbers(evaluations).items():
        facts = evaluations.facts[key]
        row: dict[str, Any] = {"key": str(key), **key._asdict(), "target": facts.target, "scenario": facts.scenario}
        row |= {name: getattr(facts, name) for name in ("weight", "n_turbines", "installed_mw", "n_neighbours")}
        row |= {name: inputs[key.scenario_idx].get(name, math.nan) for name in columns}
        row["gross_aep_gwh"] = numbers.gross_aep_gwh
        found = _means(evaluations, key, numbers)
        rows.append(row | {name: found.get(name, math.nan) for name in means})
    return rows


def _starts(scenarios: Iterable[Sequence[Any]]) -> dict[str, str]:
    """Return the start of the column names of each neighbour, by the name of its layout."""
    seen = {one.name: one for neighbours in scenarios for one in neighbours}
    files = {name.partition(":")[0] for name, one in seen.items() if one.farm_idx is not None}
    found, places = {}, 0
    for name, one in seen.items():
        if one.farm_idx is None:
            found[name], places = f"positions{places}", places + 1
        else:
            file = f"{name.partition(':')[0]}_" if len(files) > 1 else ""
            found[name] = f"{file}farm{one.farm_idx}"
    return found


def _inputs(neighbours: Sequence[Any], overrides: Mapping[str, Any], starts: Mapping[str, str]) -> dict[str, Any]:
    """Return the inputs of a scenario by column name.

    A farm that occurs more than once has a number after its second and later entries: farm3, farm3_2.
    """
    found: dict[str, Any] = dict(overrides)
    seen: Counter[str] = Counter()
    for neighbour in neighbours:
        start = starts[neighbour.name]
        seen[start] += 1
        start += f"_{seen[start]}" if seen[start] > 1 else ""
        if neighbour.farm_idx is None:
            found[f"{start}_turbines"] = len(neighbour.x)
        else:
            found[f"{start}_type"], found[f"{start}_seed"] = neighbour.type_idx, neighbour.seed
        found |= {f"{start}_{name}": getattr(neighbour.turbine, name) for name in _TURBINE}
        found[f"{start}_first_step"] = neighbour.first
        if neighbour.end is not None:
            found[f"{start}_end_step"] = neighbour.end
    return found


_AFTER = ("turbines", "type", *_TURBINE, "seed", "first_step", "end_step")
_COLUMN = re.compile(rf"(.*?)(\d+)(?:_(\d+))?_({'|'.join(_AFTER)})")


def _order(name: str) -> tuple[int, str, int, int, int]:
    """Return the place of an input among the columns: farms by file and number, then overrides by name."""
    found = _COLUMN.fullmatch(name)
    if found is None:
        return 1, name, 0, 0, 0
    return 0, found[1], int(found[2]), int(found[3] or 1), _AFTER.index(found[4])


def _mean_names(case: str, windows: Sequence[str]) -> list[str]:
    return [f"{case}_aep_gwh", f"{case}_wake_loss", *(f"{case}_{window}_power_mw" for window in windows)]


def _means(evaluations: "Evaluations", key: EvaluationKey, numbers: "Numbers") -> dict[str, float]:
    """Return the means of a result by column name."""
    found: dict[str, float] = {}
    for row in evaluations.rows(key, numbers):
        names = _mean_names("", evaluations.facts[key].windows)
        found |= {f"{row['case']}{name}": row[name[1:]] for name in names if name[1:] in row}
    return found
