"""Scenarios from a study file: written there, from a table, or drawn at random."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from leeward.errors import InputError
from leeward.store import Key
from leeward.study.sources import Shelf, Source
from leeward.study.spec import ColumnSpec, DrawSpec, NeighbourSpec, ScenarioFile, ScenarioSpec, Spread
from leeward.study.tables import Table, grouped, read_table
from leeward.study.wind import parse_time

LARGEST_NUMBER = 999_999_999
WAKE_MODEL = "wake_model."
COLUMNS = (
    *("scenario", "layouts", "farm", "type", "seed", "x_m", "y_m", "turbine"),
    *("from_step", "from_date", "until_step", "until_date", "weight", "turbulence_intensity", "wind"),
)
ROW_ENDS = ("until_step", "until_date")


@dataclass(frozen=True)
class Standing:
    """A neighbour in a scenario. layout: its number on the shelf. first, end: steps; None until the end.

    where: its place in the study file or table, for errors.
    """

    layout: int
    first: int
    end: int | None
    where: str


@dataclass
class Scenario:
    """A scenario. overrides: turbulence_intensity, wind and options of the wake model (`wake_model.` + name)."""

    number: int
    name: str
    weight: float = 1.0
    neighbours: list[Standing] = field(default_factory=list)
    overrides: dict[str, Any] = field(default_factory=dict)
    where: str = ""


class Clock:
    """Converts steps and dates to steps. n_steps: 0 for a wind rose, which has no time."""

    def __init__(self, n_steps: int, times: Sequence[str]) -> None:
        self._n_steps = n_steps
        self._steps = {parse_time(time, "time"): step for step, time in enumerate(times)}

    def first(self, step: int | None, date: str | None, where: str) -> int:
        """Return the first step in which a neighbour stands."""
        found = self._step(step, date, where, "from")
        if found is not None and not 0 <= found < max(self._n_steps, 1):
            raise InputError(f"{where}: stands from step {found}; expected a step of the series, 0 to {self._last}")
        return 0 if found is None else found

    def end(self, step: int | None, date: str | None, first: int, where: str) -> int | None:
        """Return the step from which a neighbour no longer stands; None if it stands until the end."""
        found = self._step(step, date, where, "until")
        if found is not None and not first < found <= self._n_steps:
            raise InputError(
                f"{where}: stands from step {first} until before step {found}; expected an end after the first step, "
                f"at most {self._n_steps}"
            )
        return found

    @property
    def _last(self) -> int:
        return max(self._n_steps - 1, 0)

    def _step(self, step: int | None, date: str | None, where: str, what: str) -> int | None:
        if date is None or date == "":
            if step and not self._n_steps:
                raise InputError(f"{where}: has {what}_step {step}, but the wind is a rose, which has no steps")
            return step
        if not self._steps:
            raise InputError(f"{where}: has {what}_date {date}, but the wind has no dates; give the column `time`")
        time = parse_time(date, where)
        if time not in self._steps:
            first, last = min(self._steps), max(self._steps)
            raise InputError(
                f"{where}: {what}_date is {date}, which is not a step of the series ({first.date()} to {last.date()})"
            )
        return self._steps[time]


def listed_scenarios(specs: Sequence[ScenarioSpec], shelf: Shelf, clock: Clock) -> list[Scenario]:
    """Return the scenarios that a study file lists."""
    found = []
    for number, spec in enumerate(specs):
        name = spec.name or str(number)
        overrides: dict[str, Any] = {f"{WAKE_MODEL}{option}": value for option, value in spec.wake_model.items()}
        given = {"turbulence_intensity": spec.turbulence_intensity, "wind": spec.wind}
        overrides |= {key: value for key, value in given.items() if value is not None}
        where = f"scenarios[{number}]"
        neighbours = [
            _neighbour(entry, shelf, clock, f"{where}.neighbours[{position}]")
            for position, entry in enumerate(spec.neighbours)
        ]
        found.append(Scenario(number, name, spec.weight, neighbours, overrides, where))
    return found


def _neighbour(spec: NeighbourSpec, shelf: Shelf, clock: Clock, where: str) -> Standing:
    first = clock.first(spec.from_step, spec.from_date, where)
    end = clock.end(spec.until_step, spec.until_date, first, where)
    if spec.farm is not None:
        key = Key(spec.farm, spec.type or 0, spec.seed or 0)
        return Standing(_layout(shelf, spec.layouts, key, where), first, end, where)
    x, y = np.array(spec.x_m, dtype=float), np.array(spec.y_m, dtype=float)
    return Standing(_places(shelf, x, y, int(spec.turbine or 0), where), first, end, where)


def _layout(shelf: Shelf, source: str | None, key: Key, where: str) -> int:
    try:
        return shelf.add(shelf.source(source), key)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _places(shelf: Shelf, x: Any, y: Any, type_idx: int, where: str) -> int:
    types = shelf.first.campaign.physics.types
    if type_idx not in types:
        raise InputError(f"{where}: turbine is {type_idx}; expected a type number of the campaign: {list(types)}")
    if len(x) != len(y):
        raise InputError(f"{where}: has {len(x)} x and {len(y)} y; expected as many")
    return shelf.add_places(f"positions:{where}", x, y, types[type_idx])


# --- a table ---


def table_scenarios(spec: ScenarioFile, folder: Path | None, shelf: Shelf, clock: Clock) -> list[Scenario]:
    """Return the scenarios of a table with a row for each scenario and neighbour."""
    table = read_table((folder or Path()) / spec.file, "a table of scenarios")
    columns = _columns(spec, table)
    names = table.texts(columns["scenario"].column)
    first, _, end = (spec.only or ":").partition(":")
    found = []
    groups = list(grouped(names).items())
    numbers = _numbers([name for name, _ in groups])
    for (name, rows), number in list(zip(groups, numbers, strict=True))[int(first or 0) : int(end or len(groups))]:
        where = table.at(rows[0], columns["scenario"].column)
        found.append(Scenario(number, name, where=where))
    values = _Values(table, columns)
    by_name = dict(groups)
    for scenario in found:
        _fill(scenario, by_name[scenario.name], values, shelf, clock)
    return found


def _columns(spec: ScenarioFile, table: Table) -> dict[str, ColumnSpec]:
    """Return the column of the table for each quantity that it has."""
    known = {name: ColumnSpec(column=name) for name in table.columns if name in COLUMNS or name.startswith(WAKE_MODEL)}
    for name, column in spec.columns.items():
        if name not in COLUMNS and not name.startswith(WAKE_MODEL):
            raise InputError(
                f"scenarios.columns has {name!r}; expected some of {', '.join(COLUMNS)}, wake_model.OPTION"
            )
        table.column(column.column)
        known[name] = column
    if "scenario" not in known:
        raise InputError(f"{table.path}: no column scenario; name it in scenarios.columns; found {list(table.columns)}")
    by_key, by_place = {"farm", "type", "seed"} & set(known), {"x_m", "y_m", "turbine"} & set(known)
    if not (len(by_key) == 3 or len(by_place) == 3):
        raise InputError(f"{table.path}: expected the columns farm, type and seed, or x_m, y_m and turbine")
    return known


def _numbers(names: Sequence[str]) -> list[int]:
    """Return the number of each scenario: its name if all names are whole numbers, else its position."""
    if all(name.isdigit() and len(name) <= 9 for name in names):
        return [int(name) for name in names]
    return list(range(len(names)))


class _Values:
    """The values of a table, converted column by column when first needed."""

    def __init__(self, table: Table, columns: Mapping[str, ColumnSpec]) -> None:
        self.table, self.columns = table, columns
        self._known: dict[str, Sequence[Any]] = {}

    def has(self, name: str) -> bool:
        return name in self.columns

    def at(self, row: int, name: str) -> str:
        return self.table.at(row, self.columns[name].column)

    def whole(self, name: str) -> Sequence[int | None]:
        """Return whole numbers; an empty end of a neighbour is None."""
        if name not in self._known:
            spec = self.columns[name]
            is_optional = name in ROW_ENDS
            cells = self.table.column(spec.column)
            if is_optional and any(cell in (None, "") for cell in cells):
                self._known[name] = [None if cell in (None, "") else int(cell) + spec.add for cell in cells]
            else:
                self._known[name] = self.table.whole(spec.column, _conversion(spec))
        return self._known[name]

    def numbers(self, name: str) -> Sequence[float]:
        if name not in self._known:
            self._known[name] = self.table.numbers(self.columns[name].column).tolist()
        return self._known[name]

    def texts(self, name: str) -> Sequence[str]:
        if name not in self._known:
            self._known[name] = self.table.texts(self.columns[name].column)
        return self._known[name]


def _conversion(spec: ColumnSpec) -> Callable[[int], int]:
    table = spec.map
    return lambda value: (value if table is None else table[value]) + spec.add


def _fill(scenario: Scenario, rows: Sequence[int], values: _Values, shelf: Shelf, clock: Clock) -> None:
    """Add neighbours, weight and overrides of a scenario from its rows."""
    for name in values.columns:
        if name in ("weight", "turbulence_intensity", "wind") or name.startswith(WAKE_MODEL):
            cells = values.texts(name) if name == "wind" else values.numbers(name)
            other = next((row for row in rows if cells[row] != cells[rows[0]]), None)
            if other is not None:
                raise InputError(
                    f"{values.at(other, name)}: is {cells[other]}, but {cells[rows[0]]} in another row of the scenario "
                    f"{scenario.name}; expected one value for each scenario"
                )
            if name == "weight":
                scenario.weight = float(cells[rows[0]])
            else:
                scenario.overrides[name] = cells[rows[0]]
    if values.has("farm"):
        scenario.neighbours = [_row_neighbour(row, values, shelf, clock) for row in rows]
        return
    groups = grouped((values.whole("turbine")[row], *_span(row, "x_m", values, clock)) for row in rows)
    for (turbine, first, end), positions in groups.items():
        members = [rows[position] for position in positions]
        x, y = (np.array([values.numbers(name)[row] for row in members]) for name in ("x_m", "y_m"))
        where = values.at(members[0], "x_m")
        scenario.neighbours.append(Standing(_places(shelf, x, y, turbine, where), first, end, where))


def _row_neighbour(row: int, values: _Values, shelf: Shelf, clock: Clock) -> Standing:
    numbers = [values.whole(name)[row] for name in ("farm", "type", "seed")]
    where = values.at(row, "farm")
    if any(number is None or number < 0 for number in numbers):
        raise InputError(f"{where}: farm, type and seed are {numbers}; expected 0 or more")
    source = values.texts("layouts")[row] if values.has("layouts") else None
    key = Key(*(int(number or 0) for number in numbers))
    first, end = _span(row, "farm", values, clock)
    return Standing(_layout(shelf, source, key, where), first, end, where)


def _span(row: int, column: str, values: _Values, clock: Clock) -> tuple[int, int | None]:
    """Return the steps in which the neighbour of a row stands."""

    def given(name: str) -> tuple[Any, Any]:
        step = values.whole(f"{name}_step")[row] if values.has(f"{name}_step") else None
        date = values.texts(f"{name}_date")[row] if values.has(f"{name}_date") else None
        return step, date

    named = next((name for name in ("from_step", "from_date") if values.has(name)), column)
    first = clock.first(*given("from"), values.at(row, named))
    named = next((name for name in ROW_ENDS if values.has(name)), column)
    return first, clock.end(*given("until"), first, values.at(row, named))


# --- drawn at random ---


def drawn_scenarios(spec: DrawSpec, shelf: Shelf, clock: Clock) -> list[Scenario]:
    """Return scenarios drawn at random; the n-th depends on its number and the seed only."""
    source: Source = shelf.source(spec.layouts)
    found = []
    for number in range(spec.draw):
        rng = np.random.default_rng([spec.random_seed, number])
        scenario = Scenario(number, str(number), where=f"scenario {number} of scenarios.draw")
        for farm in spec.farms:
            is_built = rng.random() < spec.probability
            kind, seed, step = (_drawn(spread, rng) for spread in (spec.type, spec.seed, spec.from_step))
            if is_built:
                where = f"{scenario.where}, farm {farm}"
                layout = _layout(shelf, source.name, Key(farm, kind, seed), where)
                scenario.neighbours.append(Standing(layout, clock.first(step, None, where), None, where))
        found.append(scenario)
    return found


def _drawn(spread: Spread, rng: np.random.Generator) -> int:
    """Return a number from a distribution."""
    if spread.choices is not None:
        return int(rng.choice(spread.choices, p=spread.probabilities))
    low, high = int(spread.low or 0), int(spread.high or 0)
    if spread.mean is None or spread.standard_deviation is None:
        return int(rng.integers(low, high + 1))
    for _ in range(10_000):  # redraw what is outside
        value = round(rng.normal(spread.mean, spread.standard_deviation))
        if low <= value <= high:
            return int(value)
    raise InputError(f"a normal distribution of mean {spread.mean:g} gives no value from {low} to {high}")
