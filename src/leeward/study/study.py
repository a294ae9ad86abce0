"""A study: its tasks, the settings that each depends on, and the computation of one."""

import functools
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leeward.campaign.compute import versions
from leeward.campaign.execution import Defaults, Execution, matched
from leeward.campaign.fingerprint import digest, site_settings, turbine_settings
from leeward.campaign.physics import turbine_of
from leeward.campaign.validation import validated
from leeward.errors import InputError
from leeward.readers.document import Document, plain
from leeward.store import Evaluation, EvaluationKey, Value, utc_now
from leeward.study.data import NEVER, NO_NUMBER, Floats, StudyData, data_from
from leeward.study.resolve import resolved
from leeward.study.scenarios import WAKE_MODEL
from leeward.study.spec import StudySpec
from leeward.study.wind import Series, Wind, site_with

if TYPE_CHECKING:
    from leeward.study.judge import Judge
    from leeward.wind import Site, Turbine, WakeModel
    from leeward.wind.scenarios import ScenarioFarm

METHOD_VERSION = 1  # of evaluations: increased whenever the same settings give different numbers
FARMS_KEPT = 8  # each holds the results of its target without neighbours


@dataclass(frozen=True, eq=False)
class Placed:
    """A layout of a study. x, y: m."""

    name: str
    x: Floats
    y: Floats
    turbine: "Turbine"


@dataclass(frozen=True, eq=False)
class Neighbour(Placed):
    """A neighbour in a scenario. first: the step from which it stands. end: the step after the last, or None.

    farm_idx, type_idx, seed: None for turbines that are given by their positions.
    """

    first: int
    end: int | None
    farm_idx: int | None
    type_idx: int | None
    seed: int | None


class Setting(NamedTuple):
    """Part of what a scenario may override. wind: its name; turbulence_intensity: None for that of the wind.

    options: of the wake model, as sorted pairs of name and value.
    """

    wind: str
    turbulence_intensity: float | None
    options: tuple[tuple[str, Any], ...]


class Study:
    """Target layouts x scenarios, with wind, wake model and cases. Make one with `leeward.study.load_study`.

    It never changes: `with_overrides` returns a new one. data: its content as arrays. remarks: how files were read.
    """

    def __init__(self, data: StudyData, remarks: Sequence[str] = ()) -> None:
        self.data, self.remarks = data, tuple(remarks)
        self.name, self.crs = data.name, data.crs
        self.cases, self.keep = data.cases, data.keep
        self.execution: Execution = data.execution
        self.device = data.device
        self.targets: Mapping[int, str] = MappingProxyType(
            {number: data.layouts.names[layout] for number, layout in enumerate(data.targets)}
        )
        self.scenarios: Mapping[int, str] = MappingProxyType(
            dict(zip(data.scenarios, data.scenario_names, strict=True))
        )
        self.weights: Mapping[int, float] = MappingProxyType(
            dict(zip(data.scenarios, data.weights.tolist(), strict=True))
        )
        self.windows = tuple(name for name, _, _ in data.windows)
        self.n_tasks = len(self.targets) * len(self.scenarios)
        self.method_version = METHOD_VERSION
        self._position = {number: position for position, number in enumerate(data.scenarios)}
        self._first_row = np.searchsorted(data.rows.scenario, np.arange(len(data.scenarios) + 1))
        self._farm = functools.lru_cache(FARMS_KEPT)(self._new_farm)
        self._turbine = functools.cache(lambda number: turbine_of(data.turbines[number]))
        self._layout_digest = functools.cache(self._new_layout_digest)

    @classmethod
    def from_text(cls, text: str, where: str) -> "Study":
        """Return the study that `frozen_text` wrote. where: its name in errors."""
        return cls(data_from(text, where))

    def frozen_text(self) -> str:
        """Return the study as YAML that refers to no file; `from_text` reads it back."""
        return self.data.text(with_execution=True)

    def study_text(self) -> str:
        """Return `frozen_text` without the section `execution`."""
        return self.data.text(with_execution=False)

    def with_execution(self, **settings: Any) -> "Study":
        """Return the study with some settings of its execution replaced; None keeps a setting."""
        given = {name: plain(value) for name, value in settings.items() if value is not None}
        for section in ("dask", "slurm"):
            if section in given:
                known = self.execution.model_dump(exclude_unset=True).get(section, {})
                given[section] = {**known, **given[section]}
        data = {"execution": {**self.execution.model_dump(exclude_unset=True), **given}}
        execution = validated(Defaults, Document(f"the options of {self.name}", data)).execution
        execution, device = matched(execution, None)
        return Study(StudyData(**{**vars(self.data), "execution": execution, "device": device}), self.remarks)

    def __repr__(self) -> str:
        return f"<Study {self.name}: {len(self.targets)} target(s) x {len(self.scenarios)} scenario(s)>"

    # --- tasks ---

    def tasks(self) -> Iterator[EvaluationKey]:
        """Return all keys, target by target: a worker keeps what it computed for the target alone."""
        return (EvaluationKey(target, scenario) for target in self.targets for scenario in self.scenarios)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and len(key) == 2 and key[0] in self.targets and key[1] in self._position

    def target(self, target_idx: int) -> Placed:
        """Return a target layout."""
        if target_idx not in self.targets:
            raise InputError(f"target {target_idx} is not in the study {self.name}; it has {len(self.targets)} targets")
        return Placed(*self._placed(self.data.targets[target_idx]))

    def neighbours(self, scenario_idx: int) -> Sequence[Neighbour]:
        """Return the neighbours of a scenario, in the order in which they are built."""
        rows, layouts = self.data.rows, self.data.layouts
        found = []
        for row in self.neighbour_rows(scenario_idx):
            layout, end = int(rows.layout[row]), int(rows.end[row])
            numbers = [None if number == NO_NUMBER else int(number) for number in layouts.keys[layout]]
            placed = self._placed(layout)
            found.append(Neighbour(*placed, int(rows.first[row]), None if end == NEVER else end, *numbers))
        return found

    def overrides(self, scenario_idx: int) -> Mapping[str, Any]:
        """Return what a scenario changes: turbulence_intensity, wind, and options as `wake_model.NAME`."""
        return self.data.overrides[self._position_of(scenario_idx)]

    @property
    def times(self) -> Sequence[str]:
        """The ISO times of the steps; empty if the wind is a rose or has no dates."""
        wind = next(iter(self.data.winds.values()))
        return wind.times if isinstance(wind, Series) else []

    @property
    def n_steps(self) -> int:
        """The number of steps; 0 if the wind is a rose."""
        wind = next(iter(self.data.winds.values()))
        return len(wind) if isinstance(wind, Series) else 0

    def describe_winds(self) -> list[str]:
        """Return a description of each wind, with its name if there are several."""
        found = []
        for name, wind in self.data.winds.items():
            on_grid = wind.site is not None if isinstance(wind, Series) else False
            what = site_with(wind, None).describe() if on_grid or not isinstance(wind, Series) else "a time series"
            found.append(what if len(self.data.winds) == 1 else f"{name}, {what}")
        return found

    def result_bytes(self) -> dict[str, int]:
        """Return the bytes of each kept quantity in one result, that of the largest target."""
        turbines = max(len(self.target(number).x) for number in self.targets)
        sizes = {
            "aep": len(self.cases) + 1,
            "windows": len(self.cases) * len(self.windows),
            "farm_power": len(self.cases) * self.n_steps,
            "turbine_power": len(self.cases) * self.n_steps * turbines,
        }
        return {name: 8 * size for name, size in sizes.items() if name in self.keep}

    # --- what a task depends on ---

    def settings(self, key: EvaluationKey) -> dict[str, Any]:
        """Return all settings that the numbers of a task depend on; digests stand for long ones."""
        data, rows = self.data, self.data.rows
        overrides = dict(self.overrides(key.scenario_idx))
        wind = overrides.pop("wind", next(iter(data.winds)))
        neighbours = [
            {
                "layout": self._layout_digest(int(rows.layout[row])),
                "first": int(rows.first[row]),
                "end": int(rows.end[row]),
            }
            for row in self.neighbour_rows(key.scenario_idx)
        ]
        return {
            "method_version": self.method_version,
            "target": self._layout_digest(data.targets[key.target_idx]),
            "wind": self._wind_digests[wind],
            "wake_model": dict(data.wake_model),
            "overrides": overrides,
            "neighbours": neighbours,
            "cases": list(self.cases),
            "keep": list(self.keep),
            "windows": [list(window) for window in data.windows] if "windows" in self.keep else [],
            **({} if self.device is None else {"device": self.device}),  # older fingerprints lack it
        }

    def fingerprint(self, key: EvaluationKey, version: int | None = None) -> str:
        """Return the SHA-256 of the settings of a task. version: the method version; None for the installed one."""
        settings = self.settings(key)
        return digest(settings if version is None else {**settings, "method_version": version})

    def holds(self, key: EvaluationKey, fingerprint: str, version: int | None = None) -> bool:
        """Return whether a result with this fingerprint is one of the study. version: its method version, if stated."""
        return key in self and self.fingerprint(key, version) == fingerprint

    def _new_layout_digest(self, layout: int) -> str:
        x, y = self.data.layouts.place(layout)
        turbine = turbine_settings(self.data.turbines[int(self.data.layouts.turbine[layout])])
        return digest({"x": x.tolist(), "y": y.tolist(), "turbine": turbine})

    @functools.cached_property
    def _wind_digests(self) -> dict[str, str]:
        return {name: digest(_wind_settings(wind)) for name, wind in self.data.winds.items()}

    # --- computation ---

    def evaluate(self, key: EvaluationKey) -> Evaluation:
        """Return the result of a task."""
        if key not in self:
            raise InputError(f"{key} is not a task of {self!r}")
        began = time.monotonic()
        from leeward.wind.scenarios import Group

        farm = self._farm(key.target_idx, self.setting(key.scenario_idx))
        neighbours = self.neighbours(key.scenario_idx)
        groups = [Group(one.x, one.y, one.turbine, one.first, one.end) for one in neighbours]
        power = farm.evaluate(groups, [*self.cases, "none"])
        totals = {case: farm.aep_gwh(values) for case, values in power.items()}
        series = farm_power = None
        if self.n_steps:
            series = np.array([power[case][:, :, 0] for case in self.cases])  # cases, turbines, steps
            farm_power = series.sum(axis=1)
        return self.result(key, totals, farm_power, series, time.monotonic() - began)

    def result(
        self,
        key: EvaluationKey,
        aep_gwh: Mapping[str, float],
        farm_power: Floats | None,
        turbine_power: Floats | None,
        seconds: float,
    ) -> Evaluation:
        """Return the result of a task from its numbers.

        aep_gwh: of each case, and of the case none. farm_power: MW, shape (cases, steps), or None without steps.
        turbine_power: shape (cases, turbines, steps), only needed if it is kept. seconds: that it took.
        """
        target, (starts, rows) = self.target(key.target_idx), (self.data.layouts.starts, self.data.rows)
        neighbours = rows.layout[self.neighbour_rows(key.scenario_idx)]
        details: dict[str, Value] = {
            "target": self.targets[key.target_idx],
            "scenario": self.scenarios[key.scenario_idx],
            "weight": self.weights[key.scenario_idx],
            "windows": ",".join(self.windows) if "windows" in self.keep else "",
            "n_turbines": len(target.x),
            "n_neighbours": int((starts[neighbours + 1] - starts[neighbours]).sum()),
            "installed_mw": len(target.x) * float(target.turbine.rated_power_mw),
            "seconds": seconds,
            "host": socket.gethostname(),
            "created": utc_now(),
            "versions": versions(),
            "method_version": self.method_version,
        }
        return Evaluation(
            key=key,
            cases=self.cases,
            aep_gwh=np.array([aep_gwh[case] for case in self.cases]),
            gross_aep_gwh=float(aep_gwh["none"]),
            fingerprint=self.fingerprint(key),
            details=details,
            **self._kept(farm_power, turbine_power),  # type: ignore[arg-type]
        )

    def demand_computable(self) -> None:
        """Raise InputError if the wake engine rejects the wind, the turbulence or the options of a scenario."""
        known = set()
        for number, name in self.scenarios.items():
            setting = self.setting(number)
            if setting not in known:
                known.add(setting)
                try:
                    self._new_farm(0, setting)
                except InputError as error:
                    raise InputError(f"scenario {name}: {error}") from error

    def demand_gpu(self) -> None:
        """Raise InputError if a GPU does not compute the wind of the study."""
        from leeward.wind.gpu.cases import check_field

        for setting in dict.fromkeys(map(self.setting, self.scenarios)):
            check_field(self.site(setting))

    def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache."""
        from leeward.wind.scenarios import Group, ScenarioFarm

        turbine, wind = self._turbine(0), next(iter(self.data.winds.values()))
        site = site_with(wind, None).unchecked()  # the turbines are anywhere
        if isinstance(wind, Series):
            step, weight = np.arange(min(2, len(wind))), site.conditions.weight[:2, 0]
            site = site.with_conditions(site.conditions.drawn(step, np.zeros_like(step), weight))
        reach = 5.0 * turbine.rotor_diameter_m
        farm = ScenarioFarm(site, turbine, [0.0, reach], [0.0, 0.0], self.wake_model())
        farm.evaluate([Group(np.array([0.0, reach]), np.array([reach, reach]), turbine)], ["all", "external"])

    def _kept(self, farm: Floats | None, turbines: Floats | None) -> dict[str, Floats]:
        """Return the optional datasets of a result."""
        found: dict[str, Floats] = {}
        if farm is None:
            return found
        if "windows" in self.keep:
            means = [farm[:, first:end].mean(axis=1) for _, first, end in self.data.windows]
            found["window_power_mw"] = np.array(means).reshape(len(means), len(self.cases)).T
        if "farm_power" in self.keep:
            found["farm_power_mw"] = farm
        if "turbine_power" in self.keep and turbines is not None:
            found["turbine_power_mw"] = turbines.transpose(0, 2, 1)
        return found

    def setting(self, scenario_idx: int) -> Setting:
        """Return wind, turbulence intensity and wake-model options of a scenario."""
        overrides = self.overrides(scenario_idx)
        options = {
            name.removeprefix(WAKE_MODEL): value for name, value in overrides.items() if name.startswith(WAKE_MODEL)
        }
        wind = overrides.get("wind", next(iter(self.data.winds)))
        return Setting(wind, overrides.get("turbulence_intensity"), tuple(sorted(options.items())))

    def site(self, setting: Setting) -> "Site":
        """Return the wind of a setting."""
        return site_with(self.data.winds[setting.wind], setting.turbulence_intensity)

    def wake_model(self, setting: Setting | None = None) -> "WakeModel":
        """Return the wake model of a setting; None: of the study."""
        from leeward.wind.wake_models import wake_model

        given = {**self.data.wake_model, **dict(() if setting is None else setting.options)}
        name = given.pop("name")
        return type(wake_model(name))(**given)

    @functools.cached_property
    def turbines(self) -> "Sequence[Turbine]":
        """The turbine types of all layouts."""
        return [self._turbine(number) for number in range(len(self.data.turbines))]

    def _new_farm(self, target_idx: int, setting: Setting) -> "ScenarioFarm":
        from leeward.wind.scenarios import ScenarioFarm

        target, model = self.target(target_idx), self.wake_model(setting)
        return ScenarioFarm(self.site(setting), target.turbine, target.x, target.y, model, types=self.turbines)

    def _placed(self, layout: int) -> tuple[str, Floats, Floats, "Turbine"]:
        layouts = self.data.layouts
        return layouts.names[layout], *layouts.place(layout), self._turbine(int(layouts.turbine[layout]))

    def _position_of(self, scenario_idx: int) -> int:
        if scenario_idx not in self._position:
            raise InputError(f"scenario {scenario_idx} is not in the study {self.name}")
        return self._position[scenario_idx]

    def neighbour_rows(self, scenario_idx: int) -> list[int]:
        """Return the rows of a scenario, sorted so that their order in a table does not matter."""
        position, rows = self._position_of(scenario_idx), self.data.rows
        found = range(self._first_row[position], self._first_row[position + 1])
        return sorted(
            found, key=lambda row: (rows.first[row], rows.end[row], self._layout_digest(int(rows.layout[row])))
        )

    @functools.cached_property
    def judge(self) -> "Judge":
        """Checks a stored result: `judge(result)` returns a sentence that says what is wrong, or None."""
        from leeward.study.judge import Judge

        return Judge(self)


def _wind_settings(wind: Wind) -> dict[str, Any]:
    if not isinstance(wind, Series):
        return {"site": site_settings(wind)}
    parts = ("direction", "speed", "turbulence_intensity")
    settings = {name: getattr(wind, name).tolist() for name in parts} | {"hours_per_step": wind.hours_per_step}
    return settings if wind.site is None else settings | {"site": site_settings(wind.site)}


def load_study(source: str | os.PathLike[str] | Mapping[str, Any]) -> Study:
    """Return a study from a YAML file, or from a dict of the same shape."""
    if isinstance(source, Mapping):
        document = Document("the study", plain(source), Path.cwd())
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise InputError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}; expected a study file")
        if path.suffix == ".h5":
            raise InputError(f"{path}: is a file of results; expected a study file (YAML)")
        document = Document.from_file(path, "a study file")
        if isinstance(document.data, Mapping) and "farms" in document.data and "targets" not in document.data:
            raise InputError(f"{path}: is a campaign, not a study; compute it with `leeward run {path}`")
    else:
        raise InputError(f"the study is {source!r:.60}; expected the path of a YAML file, or a dict")
    if isinstance(document.data, Mapping) and "packed" in document.data and not isinstance(source, Mapping):
        return Study.from_text(Path(str(source)).read_text(encoding="utf-8"), document.where)
    data = resolved(validated(StudySpec, document), document)
    study = Study(data, document.remarks)
    with document.at("scenarios"):
        study.demand_computable()
    return study
