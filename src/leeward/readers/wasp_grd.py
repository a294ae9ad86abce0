"""Folders of WAsP grids: Surfer files (.grd, ASCII), one for each sector, height and quantity."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from leeward.errors import InputError
from leeward.parsing import read_text
from leeward.readers.wasp_field import MOST_SECTORS, NEVER_NEGATIVE, Array, as_numbers, first_bad, wind_field
from leeward.wording import listed

if TYPE_CHECKING:
    import xarray

LARGEST = 64_000_000  # bytes of one grid: about 5 million points
VARIABLES = {  # by their names in file names
    "Sector frequency": "Sector_frequency",
    "Weibull-A": "Weibull_A",
    "Weibull-k": "Weibull_k",
    "Orographic turn": "Turning",
    "Turbulence intensity": "TI_15",
    "Air density": "Air_density",
}
FACTORS = ("Obstacles speed", "Orographic speed", "Roughness speed")  # their product is Speedup
NEEDED = ("Sector frequency", "Weibull-A", "Weibull-k")
_KNOWN = {name.casefold(): name for name in (*VARIABLES, *FACTORS, "Elevation")}
_NAME = re.compile(r"(?:.*\s)?Sector\s+(All|\d+)\s+Height\s+(\d+(?:[.,]\d*)?)\s*m\s+(\S.*)", re.IGNORECASE)
_EXAMPLE = "'Area   Sector 1   Height 50m   Weibull-A.grd'"

Place = tuple[float, int]  # a height in metres, and a sector: 1 is centred on north, 0 stands for all sectors
Files = Mapping[Place, Path]


class _Grid(NamedTuple):
    """The points of a grid. They are evenly spaced; `low` and `high` are the first and the last one, as (x, y)."""

    size: tuple[int, int]
    low: tuple[float, float]
    high: tuple[float, float]

    def __str__(self) -> str:
        (columns, rows), low, high = self
        return f"{columns} x {rows} points from ({low[0]:g}, {low[1]:g}) to ({high[0]:g}, {high[1]:g})"


class _GridReader:
    """Reads grids and checks that all have the points of the first one."""

    def __init__(self, first: Path) -> None:
        self.first = first
        self.grid, _ = _read_grid(first)

    def values(self, path: Path) -> Array:
        """Return the values of a file, shape (x, y), NaN where they are blank."""
        grid, values = _read_grid(path)
        if grid != self.grid:
            raise InputError(f"{path}: has {grid}; expected {self.grid}, as in {self.first.name}")
        return values

    def stack(self, files: Files, places: list[list[Place]], variable: str = "") -> Array:
        """Return the values of files, shape (x, y, heights, sectors). places: a list of sectors for each height."""
        stacked = []
        for row in places:
            grids = [self.values(files[place]) for place in row]
            for place, grid in zip(row, grids, strict=True):
                if variable in NEVER_NEGATIVE and (grid < 0.0).any():
                    raise InputError(f"{files[place]}: has a negative value, {np.nanmin(grid):g}; expected 0 or more")
            stacked.append(np.stack(grids, axis=-1))
        return np.stack(stacked, axis=2)


def read(path: Path) -> "xarray.Dataset":
    """Return the wind resource in a folder of grids, as a dataset of `wasp_field.wind_field`.

    As in PyWake, Speedup is the product of the speed factors, where a missing factor counts as 1, and TI_15 is the
    turbulence intensity at 15 m/s.
    """
    path = path if path.name else path.resolve()  # "." has no name
    found = _find(path)
    used, ignored = _used(path, found)
    heights = sorted({height for files in used.values() for height, _ in files})
    sectors = max(sector for files in used.values() for _, sector in files)
    for quantity, files in used.items():
        _check_complete(path, quantity, files, heights, sectors)
    places = [[(height, sector) for sector in range(1, sectors + 1)] for height in heights]
    reader = _GridReader(used[NEEDED[0]][places[0][0]])
    variables = {
        variable: reader.stack(used[quantity], places, variable)
        for quantity, variable in VARIABLES.items()
        if quantity in used
    }
    if "Air_density" not in variables and "Air density" in found:  # WAsP writes it for all sectors
        _check_complete(path, "Air density", found["Air density"], heights, 0)
        variables["Air_density"] = reader.stack(found["Air density"], [[(h, 0)] for h in heights])[..., 0]
    factors = [reader.stack(used[name], places) for name in FACTORS if name in used]
    if factors:
        variables["Speedup"] = np.prod([np.where(np.isnan(factor), 1.0, factor) for factor in factors], axis=0)
    if "Elevation" in found:
        variables["Elevation"] = _elevation(reader, found["Elevation"])
    notes = [f"{path.name}: ignored {', '.join(ignored)}"] if ignored else []
    notes += _to_fractions(path, variables)
    low, high, size = reader.grid.low, reader.grid.high, reader.grid.size
    x, y = (np.linspace(low[axis], high[axis], size[axis]) for axis in (0, 1))
    data = wind_field(path, x, y, heights, variables, notes)
    data.attrs["speed_bins"] = "local"  # as in PyWake's WaspGridSite
    return data


def _find(folder: Path) -> dict[str, dict[Place, Path]]:
    """Return the grids of a folder, by quantity, height and sector."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected a folder of WAsP grids (.grd)")
    try:
        paths = sorted(
            each for each in folder.iterdir() if each.suffix.lower() == ".grd" and not each.name.startswith(".")
        )
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error}); expected a folder of WAsP grids (.grd)") from error
    if not paths:
        raise InputError(f"{folder}: has no .grd files; expected WAsP grids such as {_EXAMPLE}")
    found: dict[str, dict[Place, Path]] = {}
    for path in paths:
        match = _NAME.fullmatch(path.stem)
        if match is None:
            raise InputError(f"{path}: its name gives no sector, height and quantity; expected {_EXAMPLE}")
        sector = 0 if match[1].casefold() == "all" else int(match[1])
        if match[1].casefold() != "all" and not 1 <= sector <= MOST_SECTORS:
            raise InputError(f"{path}: is for sector {sector}; expected All or a number from 1 to {MOST_SECTORS}")
        place = (float(match[2].replace(",", ".")), sector)
        quantity = " ".join(match[3].split())
        files = found.setdefault(_KNOWN.get(quantity.casefold(), quantity), {})
        if place in files:
            raise InputError(
                f"{path}: has the sector, height and quantity of {files[place].name}; expected one of the two: "
                "give each area its own folder"
            )
        files[place] = path
    return found


def _used(folder: Path, found: Mapping[str, Files]) -> tuple[dict[str, Files], list[str]]:
    """Return the grids by sector of the known quantities, and the names of what is ignored."""
    used: dict[str, Files] = {}
    ignored = []
    for quantity, files in found.items():
        by_sector = {place: path for place, path in files.items() if place[1] > 0}
        if quantity not in VARIABLES and quantity not in FACTORS:
            ignored += [quantity] if quantity != "Elevation" else []
            continue
        if by_sector:
            used[quantity] = by_sector
        if len(by_sector) < len(files) and (by_sector or quantity != "Air density"):
            ignored.append(f"{quantity} of all sectors")
    missing = [name for name in NEEDED if name not in used]
    if missing:
        raise InputError(
            f"{folder}: has no {' and no '.join(missing)} by sector; expected grids of {', '.join(NEEDED)}; "
            f"found {listed(sorted(found), 12)}"
        )
    return used, sorted(ignored)


def _check_complete(folder: Path, quantity: str, files: Files, heights: list[float], sectors: int) -> None:
    """Raise InputError if a height or a sector is missing. sectors: their number, or 0 for grids of all sectors."""
    wanted = range(1, sectors + 1) if sectors else range(1)
    for height in heights:
        missing = [sector for sector in wanted if (height, sector) not in files]
        if len(missing) == len(wanted):
            expected = ", ".join(f"{each:g} m" for each in heights)
            raise InputError(f"{folder}: has no {quantity} at {height:g} m; expected each quantity at {expected}")
        if missing:
            raise InputError(
                f"{folder}: has no {quantity} at {height:g} m for sector {listed(missing)}; "
                f"expected sectors 1 to {sectors}"
            )


def _elevation(reader: _GridReader, files: Files) -> Array:
    """Return the elevation of the terrain, which is the same at all heights."""
    paths = [files[place] for place in sorted(files)]
    values = reader.values(paths[0])
    for path in paths[1:]:
        if not np.array_equal(reader.values(path), values, equal_nan=True):
            raise InputError(f"{path}: has other elevations than {paths[0].name}; expected the same at all heights")
    return values


def _to_fractions(folder: Path, variables: dict[str, Array]) -> list[str]:
    """Turn per cent into fractions, in place. Return notes on it."""
    notes = []
    totals = variables["Sector_frequency"].sum(axis=-1)
    total = float(np.median(totals[np.isfinite(totals)])) if np.isfinite(totals).any() else 1.0
    if 95.0 < total < 105.0:
        variables["Sector_frequency"] /= 100.0
        notes.append(f"{folder.name}: the sector frequencies are in per cent")
    elif not 0.95 < total < 1.05:
        raise InputError(
            f"{folder}: the frequencies of the {variables['Sector_frequency'].shape[-1]} sectors add up to {total:g}; "
            "expected 1, or 100 per cent: are the last sectors missing?"
        )
    if "TI_15" in variables:
        intensity = variables["TI_15"]
        if np.isfinite(intensity).any() and np.nanmean(intensity) > 1.0:
            intensity *= 0.01  # as in PyWake, to the last digit
            notes.append(f"{folder.name}: the turbulence intensity is in per cent")
    return notes


def _read_grid(path: Path) -> tuple[_Grid, Array]:
    """Return the points and the values of a file, shape (x, y).

    The file has the word DSAA; the numbers of columns and rows; the limits of x, y and the values; then the values,
    row by row from the south, each row on one or more lines.
    """
    text = read_text(path, "a WAsP grid", LARGEST, or_latin_1=True)
    kind, *header = text.split(None, 9) or [""]
    if kind != "DSAA":
        raise InputError(f"{path}: begins with {kind[:8]!r}; expected DSAA, a Surfer grid in ASCII")
    if len(header) < 8:
        raise InputError(f"{path}: ends in the header; expected the size, the limits and the values of a grid")
    grid = _grid(path, text, header[:8])
    expected = grid.size[0] * grid.size[1]
    cells = header[8].split(None, min(expected, LARGEST)) if len(header) > 8 else []
    if len(cells) != expected:
        found = f"more than {expected}" if len(cells) > expected else str(len(cells))
        raise InputError(
            f"{path}: has {found} values; expected {grid.size[0]} x {grid.size[1]} = {expected}, as in its header"
        )
    return grid, _numbers(path, text, cells, 9).reshape(grid.size[1], grid.size[0]).T


def _grid(path: Path, text: str, header: list[str]) -> _Grid:
    columns, rows, *limits = _numbers(path, text, header, 1).tolist()
    if not (columns.is_integer() and rows.is_integer() and columns >= 1 and rows >= 1):
        raise InputError(
            f"{path}, line {_line(text, 1)}: has {header[0]:.20} columns and {header[1]:.20} rows; "
            "expected whole numbers from 1"
        )
    for name, number, low, high, place in (("x", columns, *limits[:2], 3), ("y", rows, *limits[2:4], 5)):
        if not (np.isfinite([low, high]).all() and (low < high or (low == high and number == 1))):
            raise InputError(
                f"{path}, line {_line(text, place)}: {name} is from {low:g} to {high:g}; expected numbers that increase"
            )
    return _Grid((int(columns), int(rows)), (limits[0], limits[2]), (limits[1], limits[3]))


def _numbers(path: Path, text: str, cells: list[str], offset: int) -> Array:
    """Return the numbers in cells. offset: how many words of the text stand before the first cell."""
    try:
        return as_numbers(cells)
    except ValueError as error:
        bad = min(first_bad(cells), len(cells) - 1)
        line = _line(text, offset + bad)
        raise InputError(f"{path}, line {line}: has {cells[bad]!r:.60}; expected a number") from error


def _line(text: str, word: int) -> int:
    """Return the number of the line with a word of a text; words count from 0."""
    for number, line in enumerate(text.split("\n"), 1):
        word -= len(line.split())
        if word < 0:
            return number
    return text.count("\n") + 1
