"""Columns of numbers from CSV files that a campaign refers to."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from leeward.errors import InputError
from leeward.parsing import LARGEST_DATA, read_text


def columns(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> dict[str, list[float]]:
    """The columns of these names, by name; those that are not needed only where they are there. Others do not count."""
    text = read_text(path, f"a CSV file with the columns {', '.join(needed)}", LARGEST_DATA)
    rows = csv.reader(text.splitlines())
    header = [name.strip() for name in next(rows, [])]
    missing = [name for name in needed if name not in header]
    if missing:
        columns = f"column{'' if len(missing) == 1 else 's'} {' and '.join(missing)}"
        raise InputError(f"{path}: no {columns}; found {', '.join(header) or 'nothing'}; expected {', '.join(needed)}")
    wanted = {name: header.index(name) for name in (*needed, *optional) if name in header}
    found: dict[str, list[float]] = {name: [] for name in wanted}
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        for name, position in wanted.items():
            cell = row[position].strip() if position < len(row) else ""
            try:
                value = float(cell)
            except ValueError:
                value = math.nan
            if not math.isfinite(value):
                raise InputError(f"{path}: line {rows.line_num}: {name} is {cell!r:.60}; expected a number")
            found[name].append(value)
    if not found[needed[0]]:
        raise InputError(f"{path}: no rows in it; expected at least one below the header")
    return found
