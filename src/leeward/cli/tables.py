"""Files that commands read and write."""

import csv
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leeward.errors import InputError, LeewardError
from leeward.files import replace_file
from leeward.store.sources import demand_outside_runs, demand_possible


def check_files(output: Path | None, picture: Path | None) -> None:
    """Refuse, before any work is done, files that cannot be written after it."""
    if picture is not None:
        from leeward.plots import check_picture_path

        check_picture_path(picture)
        if output is not None and output.resolve() == picture.resolve():
            raise InputError(f"{output}: is both --output and --picture; expected two files")
    for path in (output, picture):
        if path is None:
            continue
        demand_possible(path)
        demand_outside_runs(path)
        if path.is_dir():
            raise InputError(f"{path}: is a folder; expected the name of a file")
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
                pass
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written ({error.strerror}); expected a folder that is there and can be written to"
            ) from error


def write_table(path: Path, header: list[str], rows: Iterable[list[object]]) -> None:
    """A CSV file, which appears whole or not at all."""
    try:
        replace_file(path, table_text(header, rows).encode())
    except OSError as error:
        raise LeewardError(
            f"{path}: cannot be written ({error}); what was to be in it is lost: run again, elsewhere"
        ) from error


def table_text(header: list[str], rows: Iterable[list[object]]) -> str:
    """As CSV, with the line ends of this system's other programs."""
    from leeward.formats.tabular import csv_text

    return csv_text(header, rows, line_end="\n")


def read_layout(path: Path) -> tuple[Any, Any]:
    """Columns x_m and y_m of a CSV file."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets put a mark at the start
            reader = csv.DictReader(file)
            columns = reader.fieldnames or []
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    for column in ("x_m", "y_m"):
        if column not in columns:
            raise InputError(f"{path}: no column {column}; found {', '.join(columns) or 'nothing'}")
    coordinates: list[list[float]] = [[], []]
    for line, row in rows:
        for column, values in zip(("x_m", "y_m"), coordinates, strict=True):
            try:
                values.append(float(row[column]))
            except (TypeError, ValueError) as error:
                raise InputError(f"{path}, line {line}: {column} is {row[column]!r}; expected a number") from error
    if not rows:
        raise InputError(f"{path}: no turbines in it; expected one per line")
    return coordinates[0], coordinates[1]
