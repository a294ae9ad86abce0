"""The evaluations of a file or a run directory, as `leeward.open_study` returns them."""

import functools
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from leeward.capacity import capacity_factor, installed_power
from leeward.errors import InputError
from leeward.store.evaluation_arrays import study_dataset
from leeward.store.features import feature_rows
from leeward.store.format.evaluation_result import CASES, Evaluation
from leeward.store.format.found import FoundResult
from leeward.store.format.keys import EvaluationKey
from leeward.store.format.kind import Array, Value
from leeward.store.format.layout_result import Maker
from leeward.store.results import Results

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    import xarray

AnyEvaluationKey = EvaluationKey | tuple[int, int] | str


class StudyFacts(Protocol):
    """The part of a study that tables show. See `leeward.study.Study`."""

    @property
    def times(self) -> Sequence[str]: ...
    @property
    def targets(self) -> Mapping[int, str]: ...
    @property
    def scenarios(self) -> Mapping[int, str]: ...
    @property
    def weights(self) -> Mapping[int, float]: ...

    def holds(self, key: EvaluationKey, fingerprint: str, version: int | None) -> bool: ...
    def neighbours(self, scenario_idx: int) -> Sequence[Any]: ...
    def overrides(self, scenario_idx: int) -> Mapping[str, Any]: ...


StudyOf = Callable[[str], StudyFacts | None]


class Facts(NamedTuple):
    """The names of a result, and the settings that tables show beside its numbers."""

    target: str
    scenario: str
    weight: float
    cases: tuple[str, ...]
    windows: tuple[str, ...]
    n_turbines: int
    n_neighbours: int
    installed_mw: float

    @classmethod
    def of(cls, key: EvaluationKey, attributes: Mapping[str, Value]) -> "Facts":
        """Return the facts that the attributes of a result state. A weight that is not stated is 1."""
        turbines = _number(attributes.get("n_turbines"), 0)
        return cls(
            target=str(attributes.get("target", f"target{key.target_idx}")),
            scenario=str(attributes.get("scenario", f"scenario{key.scenario_idx}")),
            weight=float(_number(attributes.get("weight"), 1.0)),
            cases=tuple(str(attributes["cases"]).split(",")),
            windows=tuple(filter(None, str(attributes.get("windows", "")).split(","))),
            n_turbines=int(turbines),
            n_neighbours=int(_number(attributes.get("n_neighbours"), 0)),
            installed_mw=installed_power(attributes, int(turbines), None),
        )


class Numbers(NamedTuple):
    """The numbers of a result without its series. aep_gwh: by case. window_power_mw: by case and window, or None."""

    aep_gwh: Array
    gross_aep_gwh: float
    window_power_mw: Array | None


class Evaluations(Results[EvaluationKey, Evaluation]):
    """A mapping from keys to evaluations, sorted by key. A child process reads each one on access.

    `evaluations[0, 3]` (target, scenario) or `evaluations["target0_scenario3"]` is an evaluation.

    attributes: of the file itself. campaign_text: the frozen study of the results, "" if unknown. bad: damaged files
    and results. Of several results of a key, the first one found counts. also: a second path, read after `path`.
    study_of: returns the study from its text, for the times of the steps and for `features`.
    """

    KIND = Evaluation.KIND

    def __init__(self, path: Path, also: Path | None = None, *, study_of: StudyOf | None = None) -> None:
        self._study_of = study_of
        self._stated: dict[EvaluationKey, Mapping[str, Value]] = {}
        self._numbers: dict[EvaluationKey, Numbers] = {}
        self._last: Evaluation | None = None
        self.lock = threading.RLock()  # one reader process answers one request at a time
        super().__init__(path, also)

    def _note(self, key: EvaluationKey, found: FoundResult) -> None:
        self._stated[key] = found.attributes

    @classmethod
    def _key(cls, key: object) -> EvaluationKey:
        if isinstance(key, str):
            return EvaluationKey.parse(key)
        if isinstance(key, tuple) and len(key) == 2 and all(isinstance(number, int | np.integer) for number in key):
            return EvaluationKey(*map(int, key))
        raise InputError(f"{key!r:.60} is not a key; expected target, scenario, as in [0, 3], or 'target0_scenario3'")

    def __getitem__(self, key: AnyEvaluationKey) -> Evaluation:
        with self.lock:
            return super().__getitem__(key)

    @functools.cached_property
    def study(self) -> StudyFacts | None:
        """The study of the results; None if it is unknown."""
        return None if self._study_of is None or not self.campaign_text else self._study_of(self.campaign_text)

    @functools.cached_property
    def facts(self) -> dict[EvaluationKey, Facts]:
        """The names and settings of each result. Names and weights are those of the study now, if it holds the result.

        They may change without a new computation.
        """
        found = {key: Facts.of(key, stated) for key, stated in self._stated.items()}
        study = self.study
        for key in found:
            if study is not None and self.is_of_study(key):
                target, scenario = study.targets[key.target_idx], study.scenarios[key.scenario_idx]
                weight = study.weights[key.scenario_idx]
                found[key] = found[key]._replace(target=target, scenario=scenario, weight=weight)
        return found

    def is_of_study(self, key: EvaluationKey) -> bool:
        """Return whether a result was computed for its task in the study, which is stored beside the results."""
        stated = self._stated[key]
        version = Maker.of(stated).method_version
        return self.study is not None and self.study.holds(key, str(stated.get("fingerprint", "")), version)

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases that occur."""
        found = {case for key in self for case in self.facts[key].cases}
        return tuple(case for case in CASES if case in found)

    @property
    def windows(self) -> tuple[str, ...]:
        """The names of the windows that occur."""
        return tuple(dict.fromkeys(window for key in self for window in self.facts[key].windows))

    def fetch(self, keys: Iterable[EvaluationKey]) -> Iterator[Evaluation]:
        """Yield these results, file by file. The reader process stays ready, and the last result is kept."""
        wanted = list(keys)
        if self._last is not None and wanted == [self._last.key]:
            yield self._last
            return
        is_done = False
        try:
            for path, names in self._by_file(wanted).items():
                for found in self._reader.read(path, names):
                    result: Evaluation | None = self._result_in(found)
                    if result is not None:
                        self._last = result
                        windows = result.window_power_mw
                        self._numbers[result.key] = Numbers(result.aep_gwh, result.gross_aep_gwh, windows)
                        yield result
            is_done = True
        finally:
            if not is_done:
                self._reader.close()  # it may still send answers that nobody takes

    def one(self, key: EvaluationKey) -> Evaluation:
        """Return this result, which is kept until another one is read."""
        with self.lock:
            (result,) = self.fetch([key])
        return result

    def numbers(self, keys: Iterable[EvaluationKey]) -> dict[EvaluationKey, Numbers]:
        """Return the numbers of these results. Each result is read once."""
        wanted = list(keys)
        with self.lock:
            for _ in self.fetch(key for key in wanted if key not in self._numbers):
                pass
        return {key: self._numbers[key] for key in wanted}

    # --- as tables ---

    def to_xarray(self) -> "xarray.Dataset":
        """Return a dataset over `target`, `scenario`, `case` and, if stored, `window`, `time` and `turbine`.

        The coordinates are the targets and scenarios that occur. Numbers are NaN where there is no result. Results are
        read when their values are used, so that a selection reads only the selected results.
        """
        return study_dataset(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a table with one row per target, scenario and case. CSV and Parquet files have the same columns."""
        import pandas

        rows = [row for key, numbers in self.numbers(self).items() for row in self.rows(key, numbers)]
        return pandas.DataFrame(rows, columns=self.columns())

    def columns(self) -> list[str]:
        """Return the column names of `to_pandas`."""
        windows = [f"{window}_power_mw" for window in self.windows]
        return [*_NAMES, *_SETTINGS, *_MEANS, *windows]

    def rows(self, key: EvaluationKey, numbers: Numbers) -> Iterator[dict[str, Any]]:
        """Yield one row of `to_pandas` for each case of a result."""
        facts = self.facts[key]
        for number, case in enumerate(facts.cases):
            aep, gross = float(numbers.aep_gwh[number]), numbers.gross_aep_gwh
            row = {"key": str(key), **key._asdict(), "target": facts.target, "scenario": facts.scenario, "case": case}
            row |= {name: getattr(facts, name) for name in _SETTINGS}
            row |= {"aep_gwh": aep, "gross_aep_gwh": gross, "wake_loss": wake_loss(aep, gross)}
            row["capacity_factor"] = capacity_factor(aep, facts.installed_mw)
            if numbers.window_power_mw is not None:
                means = numbers.window_power_mw[number].tolist()
                row |= {f"{name}_power_mw": mean for name, mean in zip(facts.windows, means, strict=True)}
            yield row

    def features(self) -> "pandas.DataFrame":
        """Return a table with one row per target and scenario: the inputs of the scenario beside the means.

        Inputs: for each neighbour farm F, the columns `farm{F}_type`, `farm{F}_rated_power_mw`,
        `farm{F}_rotor_diameter_m`, `farm{F}_hub_height_m`, `farm{F}_seed` and `farm{F}_first_step`, NaN in scenarios
        without this farm; and the overrides of the scenario. If the layouts are from several files, the short name of
        the file comes first (`alone_farm1_type`). Neighbours that are given by positions are `positions{N}`. Means:
        `{case}_aep_gwh`, `{case}_wake_loss` and `{case}_{window}_power_mw`.

        Results that are not of the study in the file are left out, with a warning: their inputs are not known.
        """
        import pandas

        if self.study is None:
            raise InputError(f"{self.path}: holds no study, but the feature table needs the inputs of its scenarios")
        ours = self.only(key for key in self if self.is_of_study(key))
        if len(ours) < len(self):
            warnings.warn(
                f"{self.path}: the feature table leaves out {len(self) - len(ours)} of {len(self)} results, which are "
                "not of the study in the file",
                stacklevel=2,
            )
        return pandas.DataFrame(feature_rows(ours, self.study))


_NAMES = ("key", *EvaluationKey._fields, "target", "scenario", "case")
_SETTINGS = ("weight", "n_turbines", "n_neighbours", "installed_mw")
_MEANS = ("aep_gwh", "gross_aep_gwh", "wake_loss", "capacity_factor")


def wake_loss(aep_gwh: float, gross_aep_gwh: float) -> float:
    """Return the share of the gross yield that wakes cost; 0 without any yield."""
    return 1.0 - aep_gwh / gross_aep_gwh if gross_aep_gwh else 0.0


def _number(value: Value | None, default: float) -> float:
    """Return the value, or the default if it is not a number."""
    return value if isinstance(value, int | float) else default
