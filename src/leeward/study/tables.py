"""Read tables of CSV, Parquet and NetCDF files into columns, and name the row of each error."""

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leeward.errors import InputError
from leeward.parsing import LARGEST_DATA, read_text
from leeward.wording import listed

READERS = {".csv": "_csv_columns", ".txt": "_csv_columns", ".parquet": "_parquet_columns", ".nc": "_netcdf_columns"}
MOST_ROWS = 20_000_000


@dataclass(frozen=True)
class Table:
    """The columns of a file, by name; each cell is text, a number or None. line: number of the line of the first row.

    line is 2 for a CSV file with a header, and 0 for files without lines, whose rows are counted from 0.
    """

    path: Path
    columns: Mapping[str, Sequence[Any]]
    line: int

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def at(self, row: int, column: str) -> str:
        """Return the place of a cell, for errors."""
        return f"{self.path}, {'line' if self.line else 'row'} {row + self.line}, column {column!r}"

    def column(self, name: str) -> Sequence[Any]:
        """Return a column; raise InputError if there is none."""
        if name not in self.columns:
            raise InputError(f"{self.path}: no column {name!r}; found {listed(list(self.columns), 12) or 'nothing'}")
        return self.columns[name]

    def numbers(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return a column of finite numbers; raise InputError with the row of any other value."""
        return np.array([self._number(row, name, cell) for row, cell in enumerate(self.column(name))], dtype=float)

    def whole(self, name: str, value: Callable[[int], int] | None = None) -> list[int]:
        """Return a column of whole numbers, each converted by `value` if given."""
        found = []
        for row, cell in enumerate(self.column(name)):
            number = self._number(row, name, cell)
            if not number.is_integer():
                raise InputError(f"{self.at(row, name)}: is {cell!r:.60}; expected a whole number")
            try:
                found.append(int(number) if value is None else value(int(number)))
            except KeyError as error:
                raise InputError(f"{self.at(row, name)}: is {cell}, which `map` does not list") from error
        return found

    def texts(self, name: str) -> list[str]:
        """Return a column as text."""
        return ["" if cell is None else str(cell).strip() for cell in self.column(name)]

    def _number(self, row: int, name: str, cell: Any) -> float:
        try:
            number = math.nan if cell is None or isinstance(cell, bool) else float(cell)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            shown = "empty" if cell in (None, "") else repr(cell)[:60]
            raise InputError(f"{self.at(row, name)}: is {shown}; expected a number")
        return number


def read_table(path: Path, what: str) -> Table:
    """Return the table in a file. what: its expected content, for errors."""
    if path.suffix.lower() not in READERS:
        raise InputError(f"{path}: expected {what} as CSV (.csv), Parquet (.parquet) or NetCDF (.nc)")
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected {what}")
    table: Table = globals()[READERS[path.suffix.lower()]](path, what)
    if not len(table):
        raise InputError(f"{path}: has no rows; expected {what}")
    return table


def _csv_columns(path: Path, what: str) -> Table:
    text = read_text(path, f"{what}, a CSV file with a header", LARGEST_DATA)
    lines = text.splitlines()
    separator = ";" if lines and lines[0].count(";") > lines[0].count(",") else ","
    rows = list(csv.reader(lines, delimiter=separator))
    header = [name.strip() for name in rows[0]] if rows else []
    doubled = [name for name in header if header.count(name) > 1]
    if doubled:
        raise InputError(f"{path}: {header.count(doubled[0])} columns are called {doubled[0]!r}; expected one")
    while rows and not any(cell.strip() for cell in rows[-1]):
        rows.pop()  # empty lines at the end
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise InputError(f"{path}, line {number}: has {len(row)} cells; expected {len(header)}, as in the header")
    columns = zip(*rows[1:], strict=True) if len(rows) > 1 else iter([()] * len(header))
    return Table(path, {name: [cell.strip() for cell in cells] for name, cells in zip(header, columns, strict=True)}, 2)


def _parquet_columns(path: Path, what: str) -> Table:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(f"{path}: reading Parquet needs pyarrow; pip install 'leeward[parquet]'") from error
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error}); expected {what}") from error
    return Table(path, {name: table.column(name).to_pylist() for name in table.column_names}, 0)


def _netcdf_columns(path: Path, what: str) -> Table:
    """Return all variables, each repeated along the dimensions that it lacks, in rows over all dimensions."""
    import xarray

    try:
        with xarray.open_dataset(path, engine="h5netcdf") as opened:
            dataset = opened.load()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as NetCDF 4 ({error}); expected {what}") from error
    sizes = dict(dataset.sizes)
    if math.prod(sizes.values()) > MOST_ROWS:
        raise InputError(f"{path}: has the dimensions {sizes}; expected at most {MOST_ROWS} rows")
    columns: dict[str, Sequence[Any]] = {}
    for name in [*dataset.coords, *dataset.data_vars]:
        columns[str(name)] = _plain(dataset[name].variable.set_dims(sizes).transpose(*sizes).to_numpy().ravel())
    return Table(path, columns, 0)


def _plain(values: Any) -> list[Any]:
    """Return the values of an array as Python objects; times as ISO text."""
    if np.issubdtype(values.dtype, np.datetime64):
        return [str(text) for text in np.datetime_as_string(values, unit="s")]
    return [cell.decode() if isinstance(cell, bytes) else cell for cell in values.tolist()]


def grouped(keys: Iterable[Any]) -> dict[Any, list[int]]:
    """Return the positions of each distinct key, in the order of first appearance."""
    found: dict[Any, list[int]] = {}
    for position, key in enumerate(keys):
        found.setdefault(key, []).append(position)
    return found
