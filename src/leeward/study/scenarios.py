"""Scenarios from a study file: written there, from a table, or drawn at random."""

import bisect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from leeward.errors import InputError
from leeward.readers.tables import Table, grouped, read_table
from leeward.store import Key
from leeward.study.sources import Shelf, Source
from leeward.study.spec import (
    LONGEST_NAME,
    NAME,
    ColumnSpec,
    DrawSpec,
    NeighbourSpec,
    ScenarioFile,
    ScenarioSpec,
    Spread,
)
from leeward.study.wind import parse_time
from leeward.wording import listed

LARGEST_NUMBER = 999_999_999
WAKE_MODEL = "wake_model."
COLUMNS = (
    *("scenario", "layouts", "farm", "type", "seed", "x_m", "y_m", "turbine"),
    *("from_step", "from_date", "until_step", "until_date", "weight", "turbulence_intensity", "wind"),
)
BY_KEY = ("farm", "type", "seed")
BY_PLACE = ("turbine", "x_m", "y_m")
WHOLE = ("farm", "type", "seed", "turbine", "from_step", "until_step")  # columns that `add` and `map` apply to
OF_SCENARIO = ("weight", "turbulence_intensity", "wind")  # equal in all rows of a scenario


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
        self._times = [parse_time(time, "time") for time in times]

    def first(self, step: int | None, date: str | None, where: str) -> int:
        """Return the first step in which a neighbour stands."""
        found = self._step(step, date, where, "from")
        if found is not None and not 0 <= found < max(self._n_steps, 1):
            raise InputError(
                f"{where}: stands from step {found}; expected a step of the series, 0 to {max(self._n_steps - 1, 0)}"
            )
        return 0 if found is None else found

    def end(self, step: int | None, date: str | None, first: int, where: str) -> int | None:
        """Return the step from which a neighbour no longer stands; None if it stands until the end."""
        found = self._step(step, date, where, "until")
        if found is not None and not first < found <= self._n_steps:
            raise InputError(
                f"{where}: stands from step {first} until before step {found}; expected an end after the first step, "
                f"at most {self._n_steps}"
            )
        return None if found == self._n_steps else found

    def _step(self, step: int | None, date: str | None, where: str, what: str) -> int | None:
        """Return a step that is given as such, or the first step that does not begin before a date."""
        given = step if date is None else date
        if given and not self._n_steps:
            raise InputError(f"{where}: stands {what} {given}, but the wind is a rose, which has no steps; remove it")
        if date is None:
            return step
        if not self._times:
            raise InputError(f"{where}: has the date {date}, but the wind has no dates; give the column `time`")
        time, first, last = parse_time(date, where), self._times[0], self._times[-1]
        found = bisect.bisect_left(self._times, time)
        is_end = what == "until" and time.date() <= (last + (last - self._times[-2:][0])).date()
        if time.date() < first.date() or (found == self._n_steps and not is_end):
            raise InputError(f"{where}: is {date}; expected a date of the series, {first.date()} to {last.date()}")
        return found


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
    try:
        return shelf.add_places(f"positions:{where}", x, y, types[type_idx])
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


# --- a table ---


def table_scenarios(spec: ScenarioFile, folder: Path | None, shelf: Shelf, clock: Clock) -> list[Scenario]:
    """Return the scenarios of a table with a row for each scenario and neighbour."""
    named = {column.column for column in spec.columns.values()}
    path = (folder or Path()) / spec.file
    table = read_table(path, "a table of scenarios", lambda name: name in named or _is_known(name))
    values = _Values(table, _columns(spec, table))
    groups = grouped(_names(values))
    numbers = _numbers(list(groups))
    first, _, end = (spec.only or ":").partition(":")
    chosen = list(zip(groups.items(), numbers, strict=True))[int(first or 0) : int(end or len(groups))]
    if not chosen:
        raise InputError(f"only is {spec.only}, which selects none of the {len(groups)} scenarios of {table.path}")
    found = []
    for (name, rows), number in chosen:
        scenario = Scenario(number, name, where=values.at(rows[0], "scenario"))
        _fill(scenario, rows, values, shelf, clock)
        found.append(scenario)
    return found


def _is_known(name: str) -> bool:
    return name in COLUMNS or name.startswith(WAKE_MODEL)


def _columns(spec: ScenarioFile, table: Table) -> dict[str, ColumnSpec]:
    """Return the column of the table for each quantity that it has."""
    found = {name: ColumnSpec(column=name) for name in table.columns if _is_known(name)}
    for name, column in spec.columns.items():
        if not _is_known(name):
            raise InputError(f"columns has {name!r}; expected some of {', '.join(COLUMNS)}, wake_model.OPTION")
        if name not in WHOLE and (column.add or column.map is not None):
            raise InputError(f"columns.{name}: has `add` or `map`, which only {', '.join(WHOLE)} take; remove it")
        table.column(column.column)
        found[name] = column
    if "scenario" not in found:
        raise InputError(
            f"{table.path}: no column scenario; name it in scenarios.columns; found {listed(list(table.names), 12)}"
        )
    given = set(found) & {*BY_KEY, *BY_PLACE, "layouts"}
    if given - {"layouts"} != set(BY_KEY) and given != set(BY_PLACE):
        raise InputError(
            f"{table.path}: has the columns {', '.join(sorted(given)) or 'of no neighbours'}; expected farm, type and "
            "seed (and layouts), or x_m, y_m and turbine"
        )
    return found


def _names(values: "_Values") -> list[str]:
    """Return the scenario of each row."""
    found = [values.text(row, "scenario") for row in range(len(values.table))]
    for row, name in enumerate(found):
        if not re.fullmatch(NAME, name) or len(name) > LONGEST_NAME:
            raise InputError(
                f"{values.at(row, 'scenario')}: is {name!r:.60}; expected a name of 1 to {LONGEST_NAME} characters, "
                "without colon, comma and line break"
            )
    return found


def _numbers(names: Sequence[str]) -> list[int]:
    """Return the number of each scenario: its name if all names are whole numbers, else its position."""
    if all(re.fullmatch(r"0|[1-9][0-9]{0,8}", name) for name in names):
        return [int(name) for name in names]
    return list(range(len(names)))


class _Values:
    """The cells of a table by quantity. columns: the column of each quantity."""

    def __init__(self, table: Table, columns: Mapping[str, ColumnSpec]) -> None:
        self.table, self.columns = table, columns

    def has(self, row: int, name: str) -> bool:
        """Return whether a row has a value of a quantity."""
        return name in self.columns and self.table.column(self.columns[name].column)[row] is not None

    def at(self, row: int, name: str) -> str:
        return self.table.at(row, self.columns[name].column)

    def whole(self, row: int, name: str) -> int:
        spec = self.columns[name]
        value = self.table.whole(row, spec.column)
        if spec.map is not None and value not in spec.map:
            raise InputError(f"{self.at(row, name)}: is {value}, which `map` does not list")
        return (value if spec.map is None else spec.map[value]) + spec.add

    def number(self, row: int, name: str) -> float:
        return self.table.number(row, self.columns[name].column)

    def text(self, row: int, name: str) -> str:
        return self.table.text(row, self.columns[name].column)


def _fill(scenario: Scenario, rows: Sequence[int], values: _Values, shelf: Shelf, clock: Clock) -> None:
    """Add neighbours, weight and overrides of a scenario from its rows."""
    for name in values.columns:
        if name in OF_SCENARIO or name.startswith(WAKE_MODEL):
            value = _common(name, rows, values)
            if name == "weight":
                scenario.weight = float(value)
            elif value is not None:
                scenario.overrides[name] = value
    if "farm" in values.columns:
        scenario.neighbours = [_row_neighbour(row, values, shelf, clock) for row in rows]
        return
    groups = grouped((values.whole(row, "turbine"), *_span(row, values, clock)) for row in rows)
    for (turbine, first, end), positions in groups.items():
        members = [rows[position] for position in positions]
        x, y = (np.array([values.number(row, name) for row in members]) for name in ("x_m", "y_m"))
        where = values.at(members[0], "x_m")
        scenario.neighbours.append(Standing(_places(shelf, x, y, turbine, where), first, end, where))


def _common(name: str, rows: Sequence[int], values: _Values) -> Any:
    """Return the value of a quantity in all rows of a scenario; None if they do not override it."""

    def cell(row: int) -> Any:
        if name == "weight" or values.has(row, name):
            return values.text(row, name) if name == "wind" else values.number(row, name)
        return None

    value = cell(rows[0])
    for row in rows[1:]:
        if cell(row) != value:
            raise InputError(
                f"{values.at(row, name)}: is {cell(row)}, but {value} in another row of the scenario; expected one "
                "value for each scenario"
            )
    is_fine = {"weight": lambda: value >= 0.0, "turbulence_intensity": lambda: 0.0 < value < 1.0}.get(name)
    if value is not None and is_fine is not None and not is_fine():
        expected = "0 or more" if name == "weight" else "a value above 0 and below 1"
        raise InputError(f"{values.at(rows[0], name)}: is {value:g}; expected {expected}")
    return value


def _row_neighbour(row: int, values: _Values, shelf: Shelf, clock: Clock) -> Standing:
    numbers = [values.whole(row, name) for name in BY_KEY]
    for name, number in zip(BY_KEY, numbers, strict=True):
        if not 0 <= number <= LARGEST_NUMBER:
            raise InputError(f"{values.at(row, name)}: gives {name} {number}; expected 0 to {LARGEST_NUMBER}")
    source = values.text(row, "layouts") if values.has(row, "layouts") else None
    where = values.at(row, "farm")
    return Standing(_layout(shelf, source, Key(*numbers), where), *_span(row, values, clock), where)


def _span(row: int, values: _Values, clock: Clock) -> tuple[int, int | None]:
    """Return the steps in which the neighbour of a row stands."""

    def given(what: str) -> tuple[int | None, str | None, str]:
        names = [name for name in (f"{what}_step", f"{what}_date") if name in values.columns]
        filled = [name for name in names if values.has(row, name)]
        where = values.at(row, next(iter([*filled, *names, "scenario"])))
        if len(filled) > 1:
            raise InputError(f"{where}: the row has {what}_step and {what}_date; give one or the other, not both")
        if what == "from" and names and not filled:
            raise InputError(f"{where}: is empty; expected the step or date from which the neighbour stands")
        step = values.whole(row, filled[0]) if filled == [f"{what}_step"] else None
        return step, values.text(row, filled[0]) if filled == [f"{what}_date"] else None, where

    first = clock.first(*given("from"))
    step, date, where = given("until")
    return first, clock.end(step, date, first, where)


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
