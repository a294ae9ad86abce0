"""Turn a study file into data: read its files, look up its layouts, and check everything before a run."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leeward.campaign.execution import matched
from leeward.campaign.resolve import check_grid_crs, complete_wake_model
from leeward.errors import InputError
from leeward.readers.document import Document
from leeward.store import Evaluation
from leeward.study.data import NEVER, Catalogue, Rows, StudyData
from leeward.study.scenarios import (
    WAKE_MODEL,
    Clock,
    Scenario,
    Standing,
    drawn_scenarios,
    listed_scenarios,
    table_scenarios,
)
from leeward.study.sources import Label, Shelf, Source
from leeward.study.spec import KEPT, DrawSpec, ScenarioFile, StudySpec, TargetsSpec
from leeward.study.wind import Series, Wind, read_wind, site_wind, site_with, windows_of
from leeward.wording import listed

SERIES = ("farm_power", "turbine_power")
DEFAULT_WIND = "wind"
MOST_TASKS = 10_000_000


def resolved(spec: StudySpec, document: Document) -> StudyData:
    """Return the data of a study. Raise InputError for anything that would stop it later."""
    folder = document.folder
    sources: dict[str, Source] = {}
    try:
        with document.at("layouts"):
            for name, entry in spec.layouts.items():
                sources[name] = Source(name, entry, folder)
        shelf = Shelf(sources)
        with document.at("targets"):
            targets = _targets(spec.targets, shelf)
        winds = _winds(spec, shelf, document)
        series = [wind for wind in winds.values() if isinstance(wind, Series)]
        n_steps, times = (len(series[0]), series[0].times) if series else (0, [])
        with document.at("scenarios"):
            scenarios = _scenarios(spec, folder, shelf, Clock(n_steps, times))
        layouts = shelf.catalogue()
        crs = _common_crs(shelf, document)
        for name, wind in winds.items():
            site = wind.site if isinstance(wind, Series) else wind
            if site is not None:
                with document.at(*(("wind",) if spec.winds is None else ("winds", name))):
                    check_grid_crs(site, crs, document.remarks)
    finally:
        for source in sources.values():
            source.close()
    with document.at("keep"):
        _demand_series(spec, n_steps)
        _demand_storable(spec, n_steps, max(len(layouts.place(target)[0]) for target in targets))
    with document.at():
        windows = windows_of(spec.windows, n_steps, times) if n_steps else []
    with document.at("scenarios"):
        _check_scenarios(scenarios, winds, isinstance(spec.scenarios, DrawSpec))
        _check_overlaps(scenarios, layouts, targets, shelf.turbines)
        _check_places(scenarios, winds, layouts, targets)
    wake_model = _wake_model(spec, shelf, scenarios, document)
    scenarios.sort(key=lambda scenario: scenario.number)
    if len(scenarios) * len(targets) > MOST_TASKS:
        raise InputError(f"{document.where}: {len(scenarios)} scenarios x {len(targets)} targets; at most {MOST_TASKS}")
    execution, device = matched(spec.execution, spec.device)
    return StudyData(
        name=spec.name or (Path(document.where).stem if document.folder is not None else "study"),
        crs=crs,
        turbines=shelf.turbines,
        layouts=layouts,
        targets=targets,
        winds=winds,
        wake_model=wake_model,
        scenarios=[scenario.number for scenario in scenarios],
        scenario_names=[scenario.name for scenario in scenarios],
        weights=np.array([scenario.weight for scenario in scenarios], dtype=float),
        overrides=[scenario.overrides for scenario in scenarios],
        rows=_rows(scenarios),
        cases=tuple(spec.cases),
        keep=tuple(name for name in KEPT if name == "aep" or name in spec.keep),
        windows=windows,
        execution=execution,
        device=device,
    )


def _targets(spec: Sequence[str | TargetsSpec], shelf: Shelf) -> list[int]:
    """Return the numbers of the target layouts on the shelf."""
    found: list[int] = []
    for entry in spec:
        for source, label in _selected(entry, shelf):
            number = shelf.add(source, label)
            if number in found:
                raise InputError(f"selects {source.name}:{label} twice; expected each layout once")
            found.append(number)
    return found


def _selected(entry: str | TargetsSpec, shelf: Shelf) -> Iterator[tuple[Source, Label]]:
    """Yield the layouts that an entry of `targets` names or selects."""
    if isinstance(entry, TargetsSpec):
        source = shelf.source(entry.layouts)
        yield from ((source, label) for label in source.best(entry.best or "", entry.only))
    else:
        name, colon, label = entry.partition(":")
        source = shelf.source(name if colon else None)
        yield source, source.label(label if colon else entry)


def _winds(spec: StudySpec, shelf: Shelf, document: Document) -> dict[str, Wind]:
    """Return the winds of a study by name; by default the site of the campaign of the first layouts."""
    if spec.wind is None and spec.winds is None:
        return {DEFAULT_WIND: shelf.first.campaign.spec.site}
    given = spec.winds if spec.winds is not None else {DEFAULT_WIND: spec.wind}
    winds: dict[str, Wind] = {}
    for name, wind in given.items():
        if wind is None:
            continue
        with document.at(*(("wind",) if spec.winds is None else ("winds", name))):
            is_site = wind.site is not None
            winds[name] = (
                site_wind(wind, document.folder, document.remarks) if is_site else read_wind(wind, document.folder)
            )
    _demand_equal_series(winds, document)
    return winds


def _demand_equal_series(winds: Mapping[str, Wind], document: Document) -> None:
    first_name, first = next(iter(winds.items()))
    for name, wind in winds.items():
        if isinstance(wind, Series) != isinstance(first, Series):
            raise document.error(
                ("winds", name), f"is not of the same kind as {first_name}; expected all series or none"
            )
        if isinstance(wind, Series) and isinstance(first, Series):
            if len(wind) != len(first):
                raise document.error(("winds", name), f"has {len(wind)} steps, but {first_name} has {len(first)}")
            if (wind.start, wind.hours_per_step) != (first.start, first.hours_per_step):
                raise document.error(("winds", name), f"has other times than {first_name}; expected equal steps")


def _scenarios(spec: StudySpec, folder: Path | None, shelf: Shelf, clock: Clock) -> list[Scenario]:
    if isinstance(spec.scenarios, ScenarioFile):
        return table_scenarios(spec.scenarios, folder, shelf, clock)
    if isinstance(spec.scenarios, DrawSpec):
        return drawn_scenarios(spec.scenarios, shelf, clock)
    return listed_scenarios(spec.scenarios, shelf, clock)


def _common_crs(shelf: Shelf, document: Document) -> str | None:
    """Return the coordinate system of all layouts; raise InputError if they differ."""
    known = {name: source.campaign.crs for name, source in shelf.sources.items() if source.has_campaign}
    named = {name: crs for name, crs in known.items() if crs is not None}
    if len(set(named.values())) > 1:
        shown = ", ".join(f"{name} in {crs}" for name, crs in named.items())
        raise document.error(("layouts",), f"are in different coordinate systems: {shown}; expected one")
    return next(iter(named.values()), None)


def _demand_series(spec: StudySpec, n_steps: int) -> None:
    asked = [name for name in spec.keep if name in SERIES]
    if asked and not n_steps:
        raise InputError(f"has {', '.join(asked)}, but the wind is a rose, which has no series; give a time series")


def _demand_storable(spec: StudySpec, n_steps: int, n_turbines: int) -> None:
    """Raise InputError if a result would be too large to be stored."""
    for name, numbers in (("farm_power", n_steps), ("turbine_power", n_steps * n_turbines)):
        total = numbers * len(spec.cases)
        if name in spec.keep and total > Evaluation.MOST_NUMBERS:
            raise InputError(
                f"has {name}, {total} numbers for each result, but a result holds at most {Evaluation.MOST_NUMBERS}; "
                "keep fewer cases, use longer steps, or divide the series into several studies"
            )


def _check_scenarios(scenarios: list[Scenario], winds: Mapping[str, Wind], is_drawn: bool) -> None:
    """Raise InputError for scenarios with the same name or the same content, and for unknown winds."""
    names: dict[str, Scenario] = {}
    contents: dict[Any, Scenario] = {}
    for scenario in scenarios:
        wind = scenario.overrides.get("wind", next(iter(winds)))
        if wind not in winds:
            raise InputError(f"{scenario.where}: wind is {wind!r}; expected one of {', '.join(winds)}")
        if wind == next(iter(winds)):
            scenario.overrides.pop("wind", None)  # it is the default
        other = names.setdefault(scenario.name, scenario)
        if other is not scenario:
            raise InputError(f"{scenario.where} and {other.where}: both are called {scenario.name!r}; use two names")
        neighbours = sorted((row.layout, row.first, row.end or NEVER) for row in scenario.neighbours)
        content = (tuple(neighbours), tuple(sorted(scenario.overrides.items())))
        other = contents.setdefault(content, scenario)
        if other is not scenario:
            how = "draw from more values" if is_drawn else "remove one, and give the other the weight of both"
            raise InputError(f"{scenario.where}: the scenarios {other.name} and {scenario.name} are equal; {how}")


def _check_overlaps(scenarios: list[Scenario], layouts: Catalogue, targets: list[int], turbines: list[Any]) -> None:
    """Raise InputError if turbines of two farms that stand at the same time overlap."""
    known: dict[tuple[int, int], float] = {}

    def overlap(one: int, other: int) -> bool:
        pair = (min(one, other), max(one, other))
        if pair not in known:
            known[pair] = _gap(layouts, turbines, *pair)
        return known[pair] < 0.0

    for scenario in scenarios:
        for row in scenario.neighbours:
            for target in targets:
                if overlap(row.layout, target):
                    raise _overlap_error(row, layouts, row.layout, target, "the target")
        for one, other in itertools.combinations(scenario.neighbours, 2):
            is_together = _end(one) > other.first and _end(other) > one.first
            if is_together and overlap(one.layout, other.layout):
                raise _overlap_error(one, layouts, one.layout, other.layout, f"another neighbour ({other.where})")


def _check_places(scenarios: list[Scenario], winds: Mapping[str, Wind], layouts: Catalogue, targets: list[int]) -> None:
    """Raise InputError for turbines where the wind of their scenario is not known."""
    default = next(iter(winds))
    fields = {name: site_with(wind, None).field for name, wind in winds.items()}
    checked = set()
    for scenario in scenarios:
        name = scenario.overrides.get("wind", default)
        field = fields[name]
        for place in [*targets, *(row.layout for row in scenario.neighbours)]:
            if field is not None and (name, place) not in checked:
                checked.add((name, place))
                try:
                    field.check_places(*layouts.place(place), f"{layouts.names[place]}, turbine ")
                except InputError as error:
                    raise InputError(f"{scenario.where}: {error}") from error


def _end(row: Standing) -> float:
    return float("inf") if row.end is None else row.end


def _overlap_error(row: Standing, layouts: Catalogue, one: int, other: int, what: str) -> InputError:
    return InputError(
        f"{row.where}: rotors of {layouts.names[one]} and of {what}, {layouts.names[other]}, overlap; expected "
        "turbines of different farms at least a rotor diameter apart"
    )


def _gap(layouts: Catalogue, turbines: list[Any], one: int, other: int) -> float:
    """Return the smallest distance between turbines of two layouts less the mean of their diameters, m."""
    diameters = [turbines[int(layouts.turbine[number])].rotor_diameter_m for number in (one, other)]
    (x, y), (u, v) = layouts.place(one), layouts.place(other)
    apart = max(u.min() - x.max(), x.min() - u.max(), v.min() - y.max(), y.min() - v.max())
    near = 0.5 * sum(diameters)
    if apart >= near:
        return float(apart - near)
    return float(np.hypot(x[:, None] - u, y[:, None] - v).min() - near)


def _rows(scenarios: list[Scenario]) -> Rows:
    entries = [(position, row) for position, scenario in enumerate(scenarios) for row in scenario.neighbours]
    return Rows(
        np.array([position for position, _ in entries], dtype=np.int64),
        np.array([row.layout for _, row in entries], dtype=np.int64),
        np.array([row.first for _, row in entries], dtype=np.int64),
        np.array([NEVER if row.end is None else row.end for _, row in entries], dtype=np.int64),
    )


def _wake_model(spec: StudySpec, shelf: Shelf, scenarios: list[Scenario], document: Document) -> dict[str, Any]:
    """Return name and options of the wake model: the given one, or that of the campaign of the first layouts."""
    given = spec.wake_model if spec.wake_model is not None else shelf.first.campaign.spec.wake_model
    if ":" in given["name"]:
        raise document.error(
            ("wake_model",), f"is {given['name']}, custom code; a study takes built-in wake models only"
        )
    model = complete_wake_model(dict(given), document)
    for scenario in scenarios:
        for name in scenario.overrides:
            option = name.removeprefix(WAKE_MODEL)
            if name.startswith(WAKE_MODEL) and (option == "name" or option not in model):
                known = listed([option for option in model if option != "name"], 10)
                raise document.error(
                    ("scenarios",), f"{scenario.where}: overrides {name}; {model['name']} has the options {known}"
                )
    return model
