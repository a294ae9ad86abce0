"""Tables of CSV, Parquet and NetCDF files as columns; errors name the row."""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.parsing import LARGEST_DATA, read_text
from leeward.wording import listed

MOST_ROWS = 20_000_000
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}[.,]\d{3}")  # or a number with three decimals: nobody can tell


@dataclass(frozen=True)
class Table:
    """The columns of a file, by name. A cell is text, a number or a date; None if it is empty, NaN or NaT.

    lines: the line of each row, for a CSV file; other rows count from 0. names: of all columns of the file; `columns`
    may lack those that nobody asked for. has_decimal_commas: 3,5 is a number, as in a CSV file with semicolons.
    """

    path: Path
    columns: Mapping[str, Sequence[Any]]
    names: Sequence[str]
    lines: Sequence[int] = ()
    has_decimal_commas: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def at(self, row: int, column: str) -> str:
        """Return the place of a cell, for errors."""
        place = f"line {self.lines[row]}" if self.lines else f"row {row}"
        return f"{self.path}, {place}, column {column!r}"

    def column(self, name: str) -> Sequence[Any]:
        """Return a column; raise InputError if there is none."""
        if name not in self.columns:
            raise InputError(f"{self.path}: no column {name!r}; found {listed(list(self.names), 12) or 'nothing'}")
        return self.columns[name]

    def numbers(self, name: str) -> list[float]:
        """Return a column of finite numbers; raise InputError with the row of any other value."""
        return [self.number(row, name) for row in range(len(self.column(name)))]

    def number(self, row: int, name: str) -> float:
        """Return the number in a cell; raise InputError for any other value."""
        cell = self.column(name)[row]
        text = cell
        if self.has_decimal_commas and isinstance(cell, str):
            if _THOUSANDS.fullmatch(cell):
                raise InputError(
                    f"{self.at(row, name)}: is {cell}; write thousands without a separator: 1400, not 1.400"
                )
            text = cell.replace(",", ".")
        try:
            number = math.nan if isinstance(cell, bool) else float(text)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            shown = "empty" if cell is None else repr(cell)[:60]
            raise InputError(f"{self.at(row, name)}: is {shown}; expected a number")
        return number

    def whole(self, row: int, name: str) -> int:
        """Return the whole number in a cell; raise InputError for any other value."""
        number = self.number(row, name)
        if not number.is_integer():
            raise InputError(f"{self.at(row, name)}: is {self.columns[name][row]!r:.60}; expected a whole number")
        return int(number)

    def text(self, row: int, name: str) -> str:
        """Return a cell as text."""
        cell = self.column(name)[row]
        return "" if cell is None else str(cell).strip()


def read_table(path: Path, what: str, wanted: Callable[[str], bool]) -> Table:
    """Return the table in a file. what: its expected content, for errors. wanted: whether a column is used."""
    if path.suffix.lower() not in READERS:
        raise InputError(f"{path}: expected {what} as CSV (.csv), Parquet (.parquet) or NetCDF (.nc)")
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected {what}")
    table = READERS[path.suffix.lower()](path, what, wanted)
    if table.columns and not len(table):
        raise InputError(f"{path}: has no rows; expected {what}")
    return table


def _read_csv(path: Path, what: str, wanted: Callable[[str], bool]) -> Table:
    text = read_text(path, f"{what}, a CSV file with a header", LARGEST_DATA)
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        numbered = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; expected {what}, a CSV file") from error
    header = [name.strip() for name in numbered[0][1]] if numbered else []
    doubled = [name for name in header if header.count(name) > 1]
    if doubled:
        raise InputError(f"{path}: {header.count(doubled[0])} columns are called {doubled[0]!r}; expected one")
    for number, row in numbered[1:]:
        if len(row) != len(header):
            raise InputError(f"{path}, line {number}: has {len(row)} cells; expected {len(header)}, as in the header")
    columns = {
        name: [row[place].strip() or None for _, row in numbered[1:]]
        for place, name in enumerate(header)
        if wanted(name)
    }
    return Table(path, columns, header, [number for number, _ in numbered[1:]], delimiter == ";")


def _read_parquet(path: Path, what: str, wanted: Callable[[str], bool]) -> Table:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(f"{path}: reading Parquet needs pyarrow; pip install 'leeward[parquet]'") from error
    try:
        names = pyarrow.parquet.read_schema(path).names
        table = pyarrow.parquet.read_table(path, columns=[name for name in names if wanted(name)])
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error}); expected {what}") from error
    columns = {name: [_cell(value) for value in table.column(name).to_pylist()] for name in table.column_names}
    return Table(path, columns, names)


def _read_netcdf(path: Path, what: str, wanted: Callable[[str], bool]) -> Table:
    """Return the wanted variables, each repeated along the dimensions that it lacks, in rows over all of theirs."""
    import xarray

    try:
        with xarray.open_dataset(path, engine="h5netcdf") as opened:
            names = [str(name) for name in [*opened.coords, *opened.data_vars]]
            used: dict[str, Any] = {name: opened[name].variable.load() for name in names if wanted(name)}
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as NetCDF 4 ({error}); expected {what}") from error
    sizes = {dim: size for variable in used.values() for dim, size in variable.sizes.items()}
    if math.prod(sizes.values()) > MOST_ROWS:
        raise InputError(f"{path}: has the dimensions {sizes}; expected at most {MOST_ROWS} rows")
    columns = {
        name: _cells(variable.set_dims(sizes).transpose(*sizes).to_numpy().ravel()) for name, variable in used.items()
    }
    return Table(path, columns, names)


def _cells(values: Any) -> list[Any]:
    """Return the values of an array as cells; times as ISO text."""
    import numpy as np

    if np.issubdtype(values.dtype, np.datetime64):
        values = np.where(np.isnat(values), None, np.datetime_as_string(values, unit="s").astype(object))
    return [_cell(value) for value in values.tolist()]


def _cell(value: Any) -> Any:
    """Return a value as a cell: None if it is empty, NaN or NaT."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return None if value is None or value == "" or value != value else value  # NaN differs from itself


def numbers_in(path: Path, what: str, needed: Sequence[str], optional: Sequence[str] = ()) -> dict[str, list[float]]:
    """Return columns of a file as numbers, by name. Optional columns may be missing; others are ignored."""
    table = read_table(path, f"{what} with the columns {', '.join(needed)}", lambda name: name in (*needed, *optional))
    return {name: table.numbers(name) for name in (*needed, *(name for name in optional if name in table.columns))}


READERS = {".csv": _read_csv, ".txt": _read_csv, ".parquet": _read_parquet, ".nc": _read_netcdf}


def grouped(keys: Iterable[Any]) -> dict[Any, list[int]]:
    """Return the positions of each distinct key, in the order of first appearance."""
    found: dict[Any, list[int]] = {}
    for position, key in enumerate(keys):
        found.setdefault(key, []).append(position)
    return found
