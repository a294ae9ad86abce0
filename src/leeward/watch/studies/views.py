"""The data of drawings of one evaluation: its map, its power and its losses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from leeward.store import Evaluation

if TYPE_CHECKING:
    from leeward.study import Study

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FarmSeen:
    """A farm on the map of a scenario. points: its turbines, shape (turbines, 2), m. first: None for the target.

    first: the step from which it stands. end: the step after the last, None if it stands until the end. since: the
    date of `first`, "" if unknown.
    """

    name: str
    points: Array
    first: int | None
    end: int | None
    since: str


@dataclass(frozen=True, eq=False)
class EvaluationView:
    """One evaluation for drawing. farms: the target, then the neighbours; none if the study is not known.

    times: of the steps, empty if unknown. overrides: what the scenario changes, in words.
    """

    result: Evaluation
    farms: Sequence[FarmSeen]
    times: Sequence[str]
    n_steps: int
    overrides: Sequence[str] = ()


def losses_of(result: Evaluation) -> dict[str, float]:
    """Return the losses that the cases give, as fractions of the gross yield: internal, external and total."""
    cases = {"internal": "internal", "external": "external", "total": "all"}
    return {name: result.wake_loss(case) for name, case in cases.items() if case in result.cases}


def evaluation_view(study: "Study | None", result: Evaluation) -> EvaluationView:
    """Return a stored evaluation with the layouts of its scenario."""
    steps = 0 if result.farm_power_mw is None else result.farm_power_mw.shape[1]
    key = result.key
    if study is None or key not in study:
        return EvaluationView(result, (), (), steps)
    target, times = study.target(key.target_idx), study.times
    farms = [FarmSeen(target.name, np.column_stack([target.x, target.y]), None, None, "")]
    for one in study.neighbours(key.scenario_idx):
        since = times[one.first] if one.first < len(times) else ""
        farms.append(FarmSeen(one.name, np.column_stack([one.x, one.y]), one.first, one.end, since))
    overrides = [f"{name}: {value}" for name, value in study.overrides(key.scenario_idx).items()]
    return EvaluationView(result, farms, times, study.n_steps, overrides)
