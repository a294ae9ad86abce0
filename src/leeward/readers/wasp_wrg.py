"""WAsP wind resource grids (.wrg): a line with the size of the grid, then one row for each point."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leeward.errors import InputError
from leeward.readers.wasp_field import Array
from leeward.readers.wasp_rsf import Rows, gridded, numbered_lines, parse_rows

if TYPE_CHECKING:
    import xarray

_EXPECTED = "the numbers of columns and rows, the lowest x and y, and the cell size in metres"


def read(path: Path) -> "xarray.Dataset":
    """Return the wind resource in a file, as a dataset of `wasp_field.wind_field`.

    The points may stand in any order. A cell size of 0 means that the points are not evenly spaced.
    """
    lines = numbered_lines(path, "a WAsP wind resource grid")
    number, header = next(lines, (1, ""))
    size, lowest, cell = _header(path, number, header)
    rows = parse_rows(path, lines)
    expected = size[0] * size[1]
    if len(rows.lines) < expected:
        raise InputError(
            f"{path}: has {len(rows.lines)} points; expected {size[0]} x {size[1]} = {expected}, as in line {number}"
        )
    if cell > 0.0:
        x = _snapped(path, rows, "x", rows.x, lowest[0], cell, size[0])
        y = _snapped(path, rows, "y", rows.y, lowest[1], cell, size[1])
        rows = rows._replace(x=x, y=y)
    data = gridded(path, rows)
    if (data.sizes["x"], data.sizes["y"]) != size:
        raise InputError(
            f"{path}: its points form a grid of {data.sizes['x']} x {data.sizes['y']}; "
            f"expected {size[0]} x {size[1]}, as in line {number}"
        )
    return data


def _header(path: Path, number: int, line: str) -> tuple[tuple[int, int], tuple[float, float], float]:
    """Return the numbers of columns and rows, the lowest x and y, and the cell size."""
    wrong = InputError(f"{path}, line {number}: is {line.strip()!r:.60}; expected {_EXPECTED}")
    try:
        columns, rows, x, y, cell = map(float, line.split())
    except ValueError as error:
        raise wrong from error
    if not np.isfinite([columns, rows, x, y, cell]).all():
        raise wrong
    if not (columns.is_integer() and rows.is_integer() and columns >= 1 and rows >= 1 and cell >= 0.0):
        raise wrong
    return (int(columns), int(rows)), (x, y), cell


def _snapped(path: Path, rows: Rows, name: str, values: Array, lowest: float, cell: float, size: int) -> Array:
    """Return coordinates moved to the points of the grid. Files round them, to metres at worst."""
    with np.errstate(over="ignore", invalid="ignore"):  # a cell size of 1e-300
        steps = np.round((values - lowest) / cell)
        points = lowest + steps * cell
    tolerance = min(max(1.0, 0.01 * cell), 0.25 * cell)
    wrong = np.flatnonzero((np.abs(values - points) > tolerance) | (steps < 0) | (steps >= size))
    if len(wrong):
        raise InputError(
            f"{path}, line {rows.lines[wrong[0]]}: {name} is {values[wrong[0]]:.12g}; expected a point of the grid: "
            f"{lowest:.12g} to {lowest + (size - 1) * cell:.12g} in steps of {cell:g}"
        )
    return points
