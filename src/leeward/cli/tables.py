"""Files that commands write."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from leeward.errors import InputError, write_error
from leeward.files import replace_file
from leeward.store import demand_outside_runs, demand_possible


def check_files(output: Path | None, picture: Path | None) -> None:
    """Refuse, before any work is done, files that cannot be written after it.

    A name that cannot be a file's is an InputError, a disk that is full or read-only a StorageError.
    """
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
            raise write_error(path, error) from error


def write_table(path: Path, header: list[str], rows: Iterable[list[object]]) -> None:
    """Write a CSV file, which appears whole or not at all."""
    try:
        replace_file(path, table_text(header, rows).encode())
    except OSError as error:
        raise write_error(path, error) from error


def table_text(header: list[str], rows: Iterable[list[object]]) -> str:
    """As CSV, with the line ends of this system's other programs."""
    from leeward.formats.tabular import csv_text

    return csv_text(header, rows, line_end="\n")
