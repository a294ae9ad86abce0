"""WAsP resource files (.rsf): one row for each point and height. The rows of .wrg files are the same."""

import functools
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.parsing import LARGEST_DATA, read_text
from leeward.readers.wasp_field import MOST_SECTORS, NEVER_NEGATIVE, Array, as_numbers, first_bad, wind_field

if TYPE_CHECKING:
    import xarray

Integers = npt.NDArray[np.intp]
LONGEST = 20_000  # characters of a line; 360 sectors need 5000
LABEL = 10  # characters
_WIDTHS = (LABEL, 10, 10, 8, 5, 5, 6, 15, 3)  # label, x, y, elevation, height, A, k, power density, number of sectors
_SECTOR_WIDTHS = (4, 4, 5)  # frequency, A and k of a sector
_SECTORS = slice(sum(_WIDTHS[:-1]), sum(_WIDTHS))  # the column of the number of sectors
_POINT = len(_WIDTHS) - 1  # number of cells of a row before those of the sectors
_EXPECTED = (
    "a label, x, y, elevation, height, A, k, power density, the number of sectors, and a frequency, A and k for each"
)


class Rows(NamedTuple):
    """The points of a file, in its order.

    lines: the line of each point; x, y: in metres; elevation: of the terrain, in metres; height: above ground, in
    metres; frequency (fractions), scale (A, in m/s) and shape (k): of each sector, shape (points, sectors). They are
    NaN at a blank point, whose frequencies are all 0 in the file.
    """

    lines: list[int]
    x: Array
    y: Array
    elevation: Array
    height: Array
    frequency: Array
    scale: Array
    shape: Array


def read(path: Path) -> "xarray.Dataset":
    """Return the wind resource in a file, as a dataset of `wasp_field.wind_field`.

    The points may stand in any order, but they have to form a complete grid.
    """
    return gridded(path, parse_rows(path, numbered_lines(path, "a WAsP resource file")))


def numbered_lines(path: Path, what: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not empty, each with its number. what: the expected content, for errors."""
    text = read_text(path, what, LARGEST_DATA, or_latin_1=True)
    # str.splitlines would also split at characters that Latin-1 labels may have
    for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
        if len(line) > LONGEST:
            raise InputError(f"{path}, line {number}: has {len(line)} characters; expected {what}")
        if line.strip():
            yield number, line.rstrip("\r\n")


def parse_rows(path: Path, lines: Iterator[tuple[int, str]]) -> Rows:
    """Return the points in numbered lines. Each line has columns of fixed width, or is separated by spaces."""
    numbers: list[int] = []
    values: list[Array] = []
    for number, line in lines:
        cells = _cells(path, number, line)
        if values and len(cells) != len(values[0]):
            raise InputError(
                f"{path}, line {number}: has {(len(cells) - _POINT) // 3} sectors; "
                f"expected {(len(values[0]) - _POINT) // 3}, as in line {numbers[0]}"
            )
        try:
            values.append(as_numbers(cells))
        except ValueError as error:
            bad = cells[min(first_bad(cells), len(cells) - 1)]
            raise InputError(f"{path}, line {number}: has {bad!r:.60}; expected a number") from error
        numbers.append(number)
    if not values:
        raise InputError(f"{path}: has no points; expected rows of {_EXPECTED}")
    return _checked(path, numbers, np.stack(values))


def _cells(path: Path, number: int, line: str) -> list[str]:
    """Return the cells of a row after its label."""
    words = line.split()
    # in this order: columns may touch; a label is one word, or none, or ten characters with spaces
    for cells in (_fixed(line), words[1:], words, line[LABEL:].split()):
        sectors, rest = divmod(len(cells) - _POINT, 3)
        if sectors > 0 and rest == 0 and cells[_POINT - 1] == str(sectors):
            break
    else:
        hint = "; is it a .wrg file?" if len(words) == 5 else ""
        raise InputError(
            f"{path}, line {number}: has {len(words)} words, {line.strip()!r:.40}; expected {_EXPECTED}{hint}"
        )
    if sectors > MOST_SECTORS:
        raise InputError(f"{path}, line {number}: has {sectors} sectors; expected at most {MOST_SECTORS}")
    return cells


def _fixed(line: str) -> list[str]:
    """Return the cells of a row in columns of fixed width, or an empty list if it is something else."""
    line = line.rstrip()
    sectors = line[_SECTORS].strip()
    if not (sectors.isdecimal() and len(line) <= sum(_WIDTHS) + sum(_SECTOR_WIDTHS) * int(sectors)):
        return []
    cells = [line[start:end].strip() for start, end in _columns(int(sectors))]
    return cells if all(len(cell.split()) == 1 for cell in cells) else []


@functools.lru_cache(maxsize=4)
def _columns(sectors: int) -> list[tuple[int, int]]:
    """Return the start and the end of each column after the label."""
    return list(itertools.pairwise(itertools.accumulate((*_WIDTHS, *_SECTOR_WIDTHS * sectors))))


def _checked(path: Path, lines: list[int], values: Array) -> Rows:
    """Return the points of a table, with the units of this package. values: shape (points, columns)."""
    for place in np.argwhere(np.isnan(values[:, :4]))[:1, 0]:
        raise InputError(f"{path}, line {lines[place]}: x, y, elevation or height is missing; expected numbers")
    by_sector = values[:, _POINT:].reshape(len(values), -1, 3)
    for column, name in enumerate(NEVER_NEGATIVE):
        for place, sector in np.argwhere(by_sector[:, :, column] < 0.0)[:1]:
            raise InputError(f"{path}, line {lines[place]}: {name} of sector {sector + 1} is negative")
    totals = by_sector[:, :, 0].sum(axis=1)
    for place in np.flatnonzero((totals != 0.0) & (np.abs(totals - 1000.0) > 100.0))[:1]:
        raise InputError(
            f"{path}, line {lines[place]}: the frequencies add up to {totals[place]:g}; "
            "expected about 1000, as they are in units of 0.1 per cent"
        )
    by_sector = np.where((totals == 0.0)[:, None, None], np.nan, by_sector / [1000.0, 10.0, 100.0])
    x, y, elevation, height = values[:, :4].T
    return Rows(lines, x, y, elevation, height, *np.moveaxis(by_sector, -1, 0))


def gridded(path: Path, rows: Rows) -> "xarray.Dataset":
    """Return the dataset of points that form a complete grid, or raise InputError with the first missing point."""
    (x, column), (y, row), (heights, level) = (
        np.unique(values, return_inverse=True) for values in (rows.x, rows.y, rows.height)
    )
    place = (column * len(y) + row) * len(heights) + level  # of each point in the flat grid
    order = np.argsort(place, kind="stable")
    _check_complete(path, rows.lines, place, order, (x, y, heights))
    shape = (len(x), len(y), len(heights))
    elevation = rows.elevation[order].reshape(shape)
    for wrong in np.flatnonzero(elevation != elevation[:, :, :1])[:1]:
        raise InputError(
            f"{path}, line {rows.lines[order[wrong]]}: the elevation is {elevation.flat[wrong]:g} m, but "
            f"{elevation.flat[wrong // shape[2] * shape[2]]:g} m at another height; expected the same"
        )
    variables = {
        name: values[order].reshape(*shape, -1)
        for name, values in zip(NEVER_NEGATIVE, (rows.frequency, rows.scale, rows.shape), strict=True)
    }
    variables["Elevation"] = elevation[:, :, 0].copy()
    return wind_field(path, x, y, heights, variables, _notes(path, rows))


def _check_complete(
    path: Path, lines: list[int], place: Integers, order: Integers, axes: tuple[Array, Array, Array]
) -> None:
    """Raise InputError if a point is missing or repeated. place: of each point in the flat grid; order: sorts it."""
    for repeated in np.flatnonzero(np.diff(place[order]) == 0)[:1]:
        former, latter = lines[order[repeated]], lines[order[repeated + 1]]
        raise InputError(f"{path}, line {latter}: has the point and height of line {former}; expected one row for each")
    x, y, heights = axes
    size = len(x) * len(y) * len(heights)
    if len(place) < size:
        missing = int(np.append(np.flatnonzero(place[order] != np.arange(len(place))), len(place))[0])
        point, level = divmod(missing, len(heights))
        column, row = divmod(point, len(y))
        raise InputError(
            f"{path}: has no row for x {x[column]:.12g}, y {y[row]:.12g} and height {heights[level]:g} m; expected a "
            f"complete grid of {len(x)} x, {len(y)} y and {len(heights)} heights: {size} rows, found {len(place)}"
        )


def _notes(path: Path, rows: Rows) -> list[str]:
    notes = []
    totals = rows.frequency.sum(axis=1)
    blank, totals = int(np.isnan(totals).sum()), totals[~np.isnan(totals)]
    if blank:
        notes.append(f"{path.name}: {blank} of {len(rows.lines)} points have no wind")
    if len(totals) and np.abs(totals - 1.0).max() > 5e-4:
        notes.append(
            f"{path.name}: the frequencies of a point are rounded and add up to {totals.min():.3f} to "
            f"{totals.max():.3f}"
        )
    return notes
