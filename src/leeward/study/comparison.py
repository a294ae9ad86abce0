"""Regret and robust choice: compare layouts over scenarios. Pure functions on arrays.

In all arrays a row is a layout and a column is a scenario. Larger values are better. A scenario of weight 0 counts in
no criterion.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leeward.capacity import GWH_PER_MW, SIMILAR, by_capacity_factor
from leeward.errors import InputError
from leeward.store import Evaluation, EvaluationKey
from leeward.wording import count, listed

Array = npt.NDArray[np.float64]

ALPHA = 0.1  # default share of the weight that CVaR averages over
SAME = 1e-12  # relative difference; values that differ by less are ties
# criterion: whether the largest value is selected
CRITERIA = {"weighted_mean": True, "worst_case": True, "cvar": True, "maximum_regret": False}


class MissingResultsError(InputError):
    """Raised if some layouts lack results in some scenarios. missing: their keys."""

    def __init__(self, message: str, missing: Sequence[EvaluationKey]) -> None:
        super().__init__(message)
        self.missing = list(missing)


@dataclass(frozen=True)
class Matrix:
    """The AEP of each layout in each scenario, in one case.

    layouts, scenarios: names. layout_numbers, scenario_numbers: target_idx and scenario_idx. weights: of the
    scenarios, as given. aep_gwh: shape (layouts, scenarios). installed_mw: of each layout, NaN if unknown. notes:
    sentences about scenarios that were left out.
    """

    case: str
    layouts: tuple[str, ...]
    scenarios: tuple[str, ...]
    layout_numbers: tuple[int, ...]
    scenario_numbers: tuple[int, ...]
    weights: Array
    aep_gwh: Array
    installed_mw: Array
    notes: tuple[str, ...] = ()

    def scenario(self, text: str) -> int:
        """Return the column of a scenario that is given by its name or number."""
        by_name = [column for column, name in enumerate(self.scenarios) if name == text]
        if len(by_name) == 1:
            return by_name[0]
        if text.isdecimal() and int(text) in self.scenario_numbers:
            return self.scenario_numbers.index(int(text))
        pairs = [f"{number} {name!r}" for number, name in zip(self.scenario_numbers, self.scenarios, strict=True)]
        what = f"{len(by_name)} scenarios are called {text!r:.60}" if by_name else f"no scenario is called {text!r:.60}"
        raise InputError(f"{what}; give a name or number of {listed(pairs, 10)}")


@dataclass(frozen=True)
class Comparison:
    """The regret of layouts and the layouts that each criterion selects.

    values: AEP (GWh), or capacity factor (a fraction) if installed power differs. regret: in the same unit.
    relative_regret: as a fraction of the best value of the scenario. criteria: one value per layout, by criterion;
    selected: the rows that each criterion selects, more than one if they tie.
    """

    matrix: Matrix
    alpha: float
    is_by_factor: bool
    values: Array
    regret: Array
    relative_regret: Array
    criteria: Mapping[str, Array]
    selected: Mapping[str, tuple[int, ...]]

    @property
    def notes(self) -> tuple[str, ...]:
        """Return sentences about what is compared, and what was left out."""
        return (*self.matrix.notes, *([BY_FACTOR] if self.is_by_factor else []))

    def front(self, first: int, second: int) -> list[int]:
        """Return the rows of the Pareto front of two scenarios, given by their columns."""
        return pareto_front(self.values[:, first], self.values[:, second])


BY_FACTOR = (
    f"Installed power differs by more than {100 * SIMILAR:g} % between the layouts: they are compared by capacity "
    "factor, not by AEP."
)


# --- measures --------------------------------------------------------------------------------------------------------


def regret(values: Array) -> Array:
    """Return the best value of each scenario minus the value of each layout."""
    return np.asarray(values.max(axis=0) - values)


def relative_regret(values: Array) -> Array:
    """Return the regret as a fraction of the best value of the scenario; 0 where that is 0."""
    best = values.max(axis=0)
    return np.asarray(regret(values) / np.where(best > 0.0, best, 1.0))


def weighted_mean(values: Array, weights: Array) -> Array:
    """Return the weighted mean of each layout."""
    return np.asarray(values @ shares(weights))


def worst_case(values: Array, weights: Array) -> Array:
    """Return the lowest value of each layout."""
    return np.asarray(values[:, shares(weights) > 0.0].min(axis=1))


def maximum_regret(values: Array, weights: Array) -> Array:
    """Return the largest regret of each layout."""
    return np.asarray(regret(values)[:, shares(weights) > 0.0].max(axis=1))


def mean_regret(values: Array, weights: Array) -> Array:
    """Return the weighted mean regret of each layout."""
    return weighted_mean(regret(values), weights)


def cvar(values: Array, weights: Array, alpha: float = ALPHA) -> Array:
    """Return the conditional value at risk: the mean of each layout over the worst share `alpha` of the weight.

    The scenario at the boundary counts with the part of its weight that is inside. See R. T. Rockafellar and
    S. Uryasev, Conditional value-at-risk for general loss distributions, 2002, which states it for losses.
    """
    if not 0.0 < alpha <= 1.0:
        raise InputError(f"alpha is {alpha:g}; expected a share above 0 and at most 1, such as {ALPHA:g}")
    order = np.argsort(values, axis=1, kind="stable")
    weight = shares(weights)[order]
    before = np.cumsum(weight, axis=1) - weight
    inside = np.clip(alpha - before, 0.0, weight)
    total = inside.sum(axis=1)  # alpha, but for rounding
    return np.asarray((np.take_along_axis(values, order, axis=1) * inside).sum(axis=1) / total)


def shares(weights: Array) -> Array:
    """Return the weights divided by their sum; raise InputError if they cannot be used."""
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.sum() > 0.0):
        raise InputError(
            "the weights of the scenarios cannot be used; expected numbers of at least 0, not all of them 0"
        )
    return np.asarray(weights / weights.sum())


def pareto_front(first: Array, second: Array) -> list[int]:
    """Return the layouts that no other one dominates, from the best in the first scenario to the best in the second.

    A layout dominates another if it is at least as good in both scenarios and better in one. Equal layouts stay.
    """
    front: list[int] = []
    best, at = -math.inf, math.inf  # the best second value so far, and the first value of the layout that has it
    for row in np.lexsort((-second, -first)):
        if second[row] > best or (second[row] == best and first[row] == at):
            front.append(int(row))
            best, at = float(second[row]), float(first[row])
    return front


# --- comparison of a study -------------------------------------------------------------------------------------------


def compare(matrix: Matrix, alpha: float = ALPHA) -> Comparison:
    """Return regrets, criteria and selected layouts.

    Layouts are compared by capacity factor if their installed power differs by more than 0.5 %.
    """
    is_by_factor = by_capacity_factor(matrix.installed_mw.tolist())
    values = matrix.aep_gwh
    if is_by_factor:
        unknown = [name for name, mw in zip(matrix.layouts, matrix.installed_mw, strict=True) if not mw > 0.0]
        if unknown:
            raise InputError(
                f"installed power differs between the layouts, but that of {listed(unknown)} is not known, so capacity "
                "factors cannot be compared; leave these layouts out of the study"
            )
        values = values / (matrix.installed_mw[:, None] * GWH_PER_MW)
    weights = matrix.weights
    criteria = {
        "weighted_mean": weighted_mean(values, weights),
        "worst_case": worst_case(values, weights),
        "cvar": cvar(values, weights, alpha),
        "maximum_regret": maximum_regret(values, weights),
        "mean_regret": mean_regret(values, weights),
    }
    scale = float(np.abs(values).max())
    selected = {name: _selected(criteria[name], is_largest, scale) for name, is_largest in CRITERIA.items()}
    return Comparison(matrix, alpha, is_by_factor, values, regret(values), relative_regret(values), criteria, selected)


def _selected(values: Array, is_largest: bool, scale: float) -> tuple[int, ...]:
    """Return the layouts with the largest or smallest value. scale: size of the numbers that the values come from."""
    distance = values.max() - values if is_largest else values - values.min()
    return tuple(np.flatnonzero(distance <= SAME * scale).tolist())


class _Entry(NamedTuple):
    """The part of a result that is compared. A result itself may hold long series."""

    aep_gwh: float
    target: str
    scenario: str
    weight: float
    installed_mw: float


def matrix_of(
    results: Iterable[Evaluation],
    case: str,
    *,
    weights: Mapping[int, float] | None = None,
    expected: Iterable[EvaluationKey] = (),
    only_complete: bool = False,
) -> Matrix:
    """Return the matrix of the AEP in a case.

    weights: of the scenarios, by scenario_idx; default: the weights in the results. expected: the keys of all tasks of
    the study; default: every layout in every scenario that has a result. only_complete: leave out the scenarios that
    lack results, and layouts without any result, instead of raising MissingResultsError.
    """
    found = {result.key: _entry(result, case) for result in results}
    if not found:
        raise InputError("there are no results to compare; compute the study with `leeward evaluate`")
    wanted = set(expected) or set(found)
    known = {key.target_idx: entry for key, entry in sorted(found.items(), reverse=True)}
    everyone = sorted({key.target_idx for key in wanted})
    targets = [target for target in everyone if target in known or not only_complete]
    numbers = sorted({key.scenario_idx for key in wanted})
    notes = []
    if len(targets) < len(everyone):
        notes.append(f"{len(everyone) - len(targets)} of {count(len(everyone), 'layout')} have no results.")
    missing = [key for t in targets for s in numbers if (key := EvaluationKey(t, s)) not in found]
    if missing:
        numbers, remark = _complete(targets, numbers, missing, only_complete)
        notes.append(remark)
    rows = [[found[EvaluationKey(target, number)] for number in numbers] for target in targets]
    return Matrix(
        case=case,
        layouts=tuple(known[target].target for target in targets),
        scenarios=tuple(entry.scenario for entry in rows[0]),
        layout_numbers=tuple(targets),
        scenario_numbers=tuple(numbers),
        weights=np.array(
            [_weight(number, column, weights) for number, column in zip(numbers, zip(*rows, strict=True), strict=True)]
        ),
        aep_gwh=np.array([[entry.aep_gwh for entry in row] for row in rows]),
        installed_mw=np.array([known[target].installed_mw for target in targets]),
        notes=tuple(notes),
    )


def _entry(result: Evaluation, case: str) -> _Entry:
    key, details = result.key, result.details
    if case not in result.cases:
        raise InputError(
            f"{key} has no case {case!r:.60}; it has {', '.join(result.cases)}; choose one of these, or add the case "
            "to `cases` in the study file"
        )
    target = str(details.get("target", f"target {key.target_idx}"))
    scenario = str(details.get("scenario", key.scenario_idx))
    weight, installed = (
        _number(details, name, default) for name, default in (("weight", 1.0), ("installed_mw", math.nan))
    )
    return _Entry(result.case_aep_gwh(case), target, scenario, weight, installed)


def _number(details: Mapping[str, object], name: str, default: float) -> float:
    value = details.get(name, default)
    return float(value) if isinstance(value, int | float) else default


def _complete(
    targets: Sequence[int], numbers: Sequence[int], missing: Sequence[EvaluationKey], only_complete: bool
) -> tuple[list[int], str]:
    """Return the scenarios in which no result is missing, and a sentence on the others; or raise an error."""
    incomplete = {key.scenario_idx for key in missing}
    complete = [number for number in numbers if number not in incomplete]
    what = f"{len(missing)} of {count(len(targets) * len(numbers), 'result')} are missing: {listed(missing)}"
    if only_complete and complete:
        return complete, f"{what}; {len(complete)} of {count(len(numbers), 'scenario')} are compared."
    how = "compute them with `leeward evaluate`"
    if complete:
        how += f", or give --only-complete to compare only {count(len(complete), 'scenario')} of {len(numbers)}"
    elif only_complete:
        how += "; no scenario has results of all layouts"
    raise MissingResultsError(f"{what}; {how}", missing)


def _weight(number: int, column: Sequence[_Entry], weights: Mapping[int, float] | None) -> float:
    """Return the weight of a scenario; raise InputError if its results state different ones."""
    if weights is not None and number in weights:
        return float(weights[number])
    stated = sorted({entry.weight for entry in column})
    if len(stated) > 1:
        raise InputError(f"scenario {number} has the weights {listed(stated)} in its results; evaluate the study again")
    return stated[0]
