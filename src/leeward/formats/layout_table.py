"""Read layouts from a CSV file with one row per turbine, such as `leeward export` writes."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from leeward.errors import InputError
from leeward.formats.tabular import GUARD, guarded
from leeward.store import Key

NUMBERS = ("farm_idx", "type_idx", "seed")
NAMING = ("key", *NUMBERS, "farm", "turbine_type")  # columns that distinguish layouts
FIGURES = ("rotor_diameter_m", "hub_height_m", "rated_power_mw", "layout_aep_gwh")
HINT = "several layouts in one file need a column that distinguishes them: key, or farm_idx, type_idx and seed"

Row = tuple[int, dict[str, str]]  # the number of its line, and its cells by column
Identity = tuple[str | int, ...]


@dataclass(frozen=True)
class TableLayout:
    """One layout; fields that the file does not give are None or "". layout_aep_gwh: as stated in the file.

    x, y: m, same length. name: distinguishes the layout from others, "" if the file has no column for that.
    """

    name: str
    x: list[float]
    y: list[float]
    farm_idx: int | None = None
    type_idx: int | None = None
    seed: int | None = None
    turbine_type: str = ""
    crs: str = ""
    rotor_diameter_m: float | None = None
    hub_height_m: float | None = None
    rated_power_mw: float | None = None
    layout_aep_gwh: float | None = None


def read_layouts(path: Path) -> list[TableLayout]:
    """Return the layouts of a CSV file with the columns x_m and y_m, in the order of their first rows.

    The columns key, farm_idx, type_idx, seed, farm and turbine_type distinguish layouts; a file without them is one
    layout. Raise InputError if columns contradict each other or it is unclear which rows belong together.
    """
    header, rows = _rows(path)
    _demand_columns(path, header)
    if not rows:
        raise InputError(f"{path}: no turbines; expected one row per turbine")
    columns = [column for column in NAMING if column in header and any(cells[column] for _, cells in rows)]
    groups: dict[Identity, list[Row]] = {}
    for line, cells in rows:
        groups.setdefault(tuple(_identity(path, line, cells, columns)), []).append((line, cells))
    firsts = [(members[0][0], dict(zip(columns, identity, strict=True))) for identity, members in groups.items()]
    _demand_agreement(path, firsts)
    return [_layout(path, values, members) for (_, values), members in zip(firsts, groups.values(), strict=True)]


def _rows(path: Path) -> tuple[list[str], list[Row]]:
    """Return the header, and the cells of each row that is not empty."""
    from leeward.parsing import LARGEST_DATA, read_text

    text = read_text(path, "a CSV file with the columns x_m and y_m", LARGEST_DATA)
    reader = csv.reader(text.splitlines())
    header = [name.strip() for name in next(reader, [])]
    rows = []
    for cells in reader:
        if any(cell.strip() for cell in cells):
            padded = [cell.strip() for cell in cells] + [""] * (len(header) - len(cells))
            rows.append((reader.line_num, dict(zip(header, padded, strict=False))))
    return header, rows


def _demand_columns(path: Path, header: list[str]) -> None:
    for column in ("x_m", "y_m"):
        if column not in header:
            more = "; it has a row per layout: export it with --per turbine" if "n_turbines" in header else ""
            raise InputError(f"{path}: no column {column}; found {', '.join(filter(None, header)) or 'nothing'}{more}")
    for column in ("x_m", "y_m", "turbine", "crs", *NAMING, *FIGURES):
        if header.count(column) > 1:
            raise InputError(f"{path}: {header.count(column)} columns are called {column}; expected one")


def _identity(path: Path, line: int, cells: dict[str, str], columns: Sequence[str]) -> Iterator[str | int]:
    """Yield the values of a row in the columns that distinguish layouts."""
    for column in columns:
        cell = cells[column]
        if not cell:
            raise InputError(
                f"{path}, line {line}: {column} is empty, but other lines have a value; fill in all lines or none"
            )
        yield _whole(path, line, column, cell) if column in NUMBERS else _unguarded(cell)


def _demand_agreement(path: Path, firsts: list[tuple[int, dict[str, str | int]]]) -> None:
    """Raise InputError if one column puts two rows into one layout and another column does not.

    firsts: for each layout, the number of its first line and the values of its distinguishing columns.
    """
    for line, values in firsts:
        key = str(values.get("key", ""))
        for column, number in _numbers(key).items():
            if values.get(column, number) != number:
                raise InputError(f"{path}, line {line}: key is {key} but {column} is {values[column]}; they must agree")
    for of, other in (("key",), NAMING), (NUMBERS, NAMING), (("farm_idx",), ("farm",)), (("type_idx",), NAMING[-1:]):
        seen: dict[tuple[str | int, ...], tuple[int, dict[str, str | int]]] = {}
        for line, values in firsts:
            if not all(column in values for column in of):
                break
            before, first = seen.setdefault(tuple(values[column] for column in of), (line, values))
            for column in other:
                if first.get(column) != values.get(column):
                    same = ", ".join(f"{name} {values[name]}" for name in of)
                    raise InputError(
                        f"{path}, lines {before} and {line}: {same} has two values of {column}, {first[column]!r} "
                        f"and {values[column]!r}; expected one"
                    )


def _numbers(key: str) -> dict[str, int]:
    """Return the numbers that a key consists of; none if the text is only a name."""
    try:
        return Key.parse(key)._asdict()
    except InputError:
        return {}


def _layout(path: Path, values: dict[str, str | int], rows: list[Row]) -> TableLayout:
    """Return one layout, whose rows must agree on turbine type and coordinate system."""
    first, cells = rows[0]
    seen: dict[str, int] = {}
    for line, others in rows:
        number = others.get("turbine")
        if number and seen.setdefault(number, line) != line:
            raise InputError(f"{path}, lines {seen[number]} and {line}: turbine {number} twice in one layout; {HINT}")
    for column in (*FIGURES, "crs"):
        for line, others in rows:
            if others.get(column) != cells.get(column):
                raise InputError(
                    f"{path}, lines {first} and {line}: {column} is {cells[column] or 'empty'} and "
                    f"{others[column] or 'empty'} in one layout; expected one value; {HINT}"
                )
    key = str(values.get("key", ""))
    numbers = _numbers(key) | {column: int(values[column]) for column in NUMBERS if column in values}
    figures = {column: _number(path, first, column, cells[column]) for column in FIGURES if cells.get(column)}
    x, y = ([_number(path, at, column, row[column]) for at, row in rows] for column in ("x_m", "y_m"))
    name = key or ", ".join(
        str(value) if column in ("farm", "turbine_type") else f"{column.removesuffix('_idx')} {value}"
        for column, value in values.items()
    )
    turbine_type = str(values.get("turbine_type", ""))
    other_fields = {"turbine_type": turbine_type, "crs": cells.get("crs", ""), **figures}
    return TableLayout(name, x, y, *(numbers.get(column) for column in NUMBERS), **other_fields)  # type: ignore[arg-type]


def _number(path: Path, line: int, column: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError as error:
        raise InputError(f"{path}, line {line}: {column} is {cell!r:.60}; expected a number") from error


def _whole(path: Path, line: int, column: str, cell: str) -> int:
    """Return a whole number; a spreadsheet may have added decimals to it."""
    value = _number(path, line, column, cell)
    if not (math.isfinite(value) and value.is_integer() and value >= 0):
        raise InputError(f"{path}, line {line}: {column} is {cell!r:.60}; expected a whole number, 0 or more")
    return int(value)


def _unguarded(cell: str) -> str:
    """Return a text without the apostrophe that `leeward export` puts before text that looks like a formula."""
    plain = cell.removeprefix(GUARD)
    return plain if guarded(plain) == cell else cell
