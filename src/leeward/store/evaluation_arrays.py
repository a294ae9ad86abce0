"""Evaluations as an xarray dataset that reads its values when they are used."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from xarray import Dataset, Variable
from xarray.backends import BackendArray
from xarray.core import indexing

from leeward.errors import InputError
from leeward.store.format.evaluation_result import Evaluation
from leeward.store.format.keys import EvaluationKey

if TYPE_CHECKING:
    from leeward.store.evaluations import Evaluations

# dimensions beyond target and scenario, unit and long_name of each variable
VARIABLES = {
    "aep_gwh": (("case",), "GWh", "annual energy production"),
    "gross_aep_gwh": ((), "GWh", "annual energy production without wakes"),
    "wake_loss": (("case",), "1", "share of the gross yield that wakes cost"),
    "window_power_mw": (("case", "window"), "MW", "mean farm power in the window"),
    "farm_power_mw": (("case", "time"), "MW", "farm power"),
    "turbine_power_mw": (("case", "time", "turbine"), "MW", "power of each turbine"),
}
COORDINATES = {  # long_name of each coordinate
    "target": "name of the target layout",
    "target_idx": "number of the target layout",
    "scenario": "number of the scenario",
    "scenario_name": "name of the scenario",
    "weight": "weight of the scenario",
    "case": "wakes that count: all, external (of the neighbours), internal (of the target) or none",
    "window": "name of the window",
    "time": "start of the step",
    "turbine": "number of the turbine in the target layout",
}
SERIES = ("farm_power_mw", "turbine_power_mw")


@dataclass(frozen=True, eq=False)
class _Grid:
    """The numbers and names along each dimension. scenarios, targets: those that occur, sorted."""

    targets: list[int]
    scenarios: list[int]
    cases: tuple[str, ...]
    windows: tuple[str, ...]
    n_steps: int
    n_turbines: int

    @property
    def sizes(self) -> dict[str, int]:
        names = ("target", "scenario", "case", "window", "time", "turbine")
        lists = (self.targets, self.scenarios, self.cases, self.windows)
        return dict(zip(names, (*map(len, lists), self.n_steps, self.n_turbines), strict=True))


def study_dataset(evaluations: "Evaluations") -> Dataset:
    """Return the dataset. The first result tells which arrays the results have, and the number of steps."""
    first = next(iter(evaluations), None)
    example = None if first is None else evaluations.one(first)
    grid = _Grid(
        targets=sorted({key.target_idx for key in evaluations}),
        scenarios=sorted({key.scenario_idx for key in evaluations}),
        cases=evaluations.cases,
        windows=evaluations.windows,
        n_steps=_steps(example),
        n_turbines=max((evaluations.facts[key].n_turbines for key in evaluations), default=0),
    )
    data: dict[str, Variable] = {}
    for name, (inner, unit, meaning) in VARIABLES.items():
        if name in Evaluation.OPTIONAL and (example is None or getattr(example, name) is None):
            continue
        array = LazyArray(evaluations, grid, name)
        lazy: Any = indexing.LazilyIndexedArray(array)
        data[name] = Variable(
            ("target", "scenario", *inner), indexing.CopyOnWriteArray(lazy), {"units": unit, "long_name": meaning}
        )
    dims = {dim for variable in data.values() for dim in variable.dims}
    coords = {
        name: Variable(dim, values, {"long_name": COORDINATES[name], **({"units": "1"} if name == "weight" else {})})
        for name, (dim, values) in _coordinates(evaluations, grid).items()
        if dim in dims
    }
    attributes = {name: value for name, value in evaluations.attributes.items() if name not in ("campaign", "seal")}
    return Dataset(data, coords=coords, attrs=attributes)


def _steps(example: Evaluation | None) -> int:
    series = None if example is None else [example.farm_power_mw, example.turbine_power_mw]
    return max((one.shape[1] for one in series or () if one is not None), default=0)


def _coordinates(evaluations: "Evaluations", grid: _Grid) -> dict[str, tuple[str, Any]]:
    """Return the dimension and the values of each coordinate."""
    targets: dict[int, str] = {}
    scenarios: dict[int, str] = {}
    weights: dict[int, float] = {}
    for key in evaluations:
        facts = evaluations.facts[key]
        targets.setdefault(key.target_idx, facts.target)
        scenarios.setdefault(key.scenario_idx, facts.scenario)
        weights.setdefault(key.scenario_idx, facts.weight)
    return {
        "target": ("target", _texts(targets[number] for number in grid.targets)),
        "target_idx": ("target", np.array(grid.targets, dtype=np.int64)),
        "scenario": ("scenario", np.array(grid.scenarios, dtype=np.int64)),
        "scenario_name": ("scenario", _texts(scenarios[number] for number in grid.scenarios)),
        "weight": ("scenario", np.array([weights[number] for number in grid.scenarios], dtype=np.float64)),
        "case": ("case", _texts(grid.cases)),
        "window": ("window", _texts(grid.windows)),
        "time": ("time", _times(evaluations, grid.n_steps)),
        "turbine": ("turbine", np.arange(grid.n_turbines)),
    }


def _texts(values: Any) -> npt.NDArray[np.str_]:
    return np.array(list(values), dtype=np.str_)


def _times(evaluations: "Evaluations", n_steps: int) -> npt.NDArray[Any]:
    """Return the dates of the steps, or the numbers of the steps if the study has no dates."""
    study = evaluations.study if n_steps else None
    if study is None or len(study.times) != n_steps:
        return np.arange(n_steps)
    return np.array([time.removesuffix("Z") for time in study.times], dtype="datetime64[us]")


class LazyArray(BackendArray):
    """An array over target, scenario and more, which reads only the results of the values that are asked for."""

    def __init__(self, evaluations: "Evaluations", grid: _Grid, name: str) -> None:
        self._evaluations, self._grid, self._name = evaluations, grid, name
        self._inner = tuple(grid.sizes[dim] for dim in VARIABLES[name][0])
        self.shape = (len(grid.targets), len(grid.scenarios), *self._inner)
        self.dtype = np.dtype(np.float64)

    def __deepcopy__(self, memo: dict[int, Any]) -> "LazyArray":
        return self  # it only reads

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> npt.NDArray[np.float64]:
        """Return the values at these positions: an integer, a slice or an array of integers along each dimension."""
        exact = [np.arange(size)[one] for size, one in zip(self.shape, key, strict=True)]
        targets, scenarios, *inner = map(np.atleast_1d, exact)
        values = np.full([len(targets), len(scenarios), *map(len, inner)], np.nan)
        wanted: dict[EvaluationKey, list[tuple[int, int]]] = {}
        for row, target in enumerate(targets):
            for column, scenario in enumerate(scenarios):
                name = EvaluationKey(self._grid.targets[target], self._grid.scenarios[scenario])
                if name in self._evaluations:
                    wanted.setdefault(name, []).append((row, column))
        with self._evaluations.lock:
            for name, whole in self._arrays(list(wanted)):
                for place in wanted[name]:
                    values[place] = whole[np.ix_(*inner)] if inner else whole
        return values.reshape([one.size for one in exact if one.ndim])

    def _arrays(self, keys: list[EvaluationKey]) -> Iterator[tuple[EvaluationKey, npt.NDArray[np.float64]]]:
        """Yield the values of each result in the order of the coordinates."""
        evaluations, name = self._evaluations, self._name
        if name in SERIES:
            for result in evaluations.fetch(keys):
                yield result.key, self._spread(result.key, getattr(result, name))
            return
        for key, numbers in evaluations.numbers(keys).items():
            if name == "gross_aep_gwh":
                yield key, np.array(numbers.gross_aep_gwh)
            elif name == "wake_loss":
                gross = numbers.gross_aep_gwh
                losses = 1.0 - numbers.aep_gwh / gross if gross else np.zeros_like(numbers.aep_gwh)
                yield key, self._spread(key, losses)
            else:
                yield key, self._spread(key, getattr(numbers, name))

    def _spread(self, key: EvaluationKey, array: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64]:
        """Return the array of one result, with its cases, windows and turbines in the places of the coordinates."""
        if array is None:
            return np.full(self._inner, np.nan)
        facts, grid = self._evaluations.facts[key], self._grid
        dims = VARIABLES[self._name][0]
        if "time" in dims and array.shape[1] != grid.n_steps:
            raise InputError(
                f"{self._evaluations.path}: {key} has {array.shape[1]} steps, but the first result has {grid.n_steps}; "
                "select results of equal length with only()"
            )
        places = [[grid.cases.index(case) for case in facts.cases]]
        for dim, size in zip(dims[1:], array.shape[1:], strict=True):
            places.append(
                [grid.windows.index(name) for name in facts.windows] if dim == "window" else list(range(size))
            )
        if array.shape == self._inner and all(place == list(range(len(place))) for place in places):
            return array
        values = np.full(self._inner, np.nan)
        values[np.ix_(*places)] = array
        return values
