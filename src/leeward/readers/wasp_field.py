"""Gridded wind resources of WAsP as one dataset; shared by the readers of .grd, .wrg and .rsf files."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wording import count

if TYPE_CHECKING:
    import xarray

Array = npt.NDArray[np.float64]
WASP_FIELDS = {".wrg": "wasp_wrg", ".rsf": "wasp_rsf"}  # modules with a function `read`
BLANK = 1e20  # a larger number stands for a missing value: Surfer writes 1.70141e38
MOST_SECTORS = 360
NEVER_NEGATIVE = ("Sector_frequency", "Weibull_A", "Weibull_k")
_DIMS = {2: ("x", "y"), 3: ("x", "y", "h"), 4: ("x", "y", "h", "wd")}  # by the number of dimensions of an array


def read_wasp_field(path: Path) -> "xarray.Dataset":
    """Return the wind resource in a .wrg or .rsf file, or in a folder of .grd files."""
    module = "wasp_grd" if path.is_dir() else WASP_FIELDS[path.suffix.lower()]
    data: xarray.Dataset = importlib.import_module(f"leeward.readers.{module}").read(path)
    return data


def as_numbers(cells: Sequence[str]) -> Array:
    """Return the numbers in cells, NaN for missing values; raise ValueError if a cell is not a number."""
    values = np.array(cells, dtype=np.float64)
    values[np.abs(values) > BLANK] = np.nan
    return values


def first_bad(cells: Sequence[str]) -> int:
    """Return the position of the first cell that is not a number, or the number of cells if all are numbers."""
    for position, cell in enumerate(cells):
        try:
            np.array(cell, dtype=np.float64)
        except ValueError:
            return position
    return len(cells)


def wind_field(
    path: Path,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    heights: npt.ArrayLike,
    variables: Mapping[str, Array],
    notes: Sequence[str],
) -> "xarray.Dataset":
    """Return the dataset, in the conventions of PyWake's XRSite, without blank columns and rows of the grid.

    x, y: in metres; heights: above ground, in metres; variables: arrays of shape (x, y), (x, y, h) or (x, y, h, wd).
    The first sector is centred on north. A column or row is blank if all its values of Elevation are NaN; without
    Elevation, of Weibull_A. notes: sentences on how the files were read, for the attribute `notes`.
    """
    import xarray

    sectors = variables["Weibull_A"].shape[3]
    data = xarray.Dataset(
        {name: (_DIMS[values.ndim], values) for name, values in variables.items()},
        {
            "x": np.asarray(x, dtype=np.float64),
            "y": np.asarray(y, dtype=np.float64),
            "h": np.asarray(heights, dtype=np.float64),
            "wd": np.arange(sectors) * (360.0 / sectors),
        },
    )
    values = variables.get("Elevation", variables["Weibull_A"])
    blank = np.all(np.isnan(values.reshape(*values.shape[:2], -1)), axis=2)
    if np.all(blank):
        raise InputError(f"{path}: all points are blank; expected values of the wind resource")
    columns, rows = (np.flatnonzero(~np.all(blank, axis=axis)) for axis in (1, 0))
    dropped = (values.shape[0] - len(columns), values.shape[1] - len(rows))
    if any(dropped):
        counts = f"{count(dropped[0], 'column')} and {count(dropped[1], 'row')}"
        notes = [*notes, f"{path.name}: left out {counts} of the grid that have no values"]
        data = data.isel(x=columns, y=rows)
    data.attrs["notes"] = list(notes)
    return data
