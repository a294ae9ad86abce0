"""Wind files that are not NetCDF: WAsP tables and windIO resources. A new format is a module and an entry here."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from leeward.errors import InputError
from leeward.readers.turbine_file import unknown_extension

if TYPE_CHECKING:
    import xarray

FILES = {".tab": "wasp_tab", ".yaml": "windio_resource", ".yml": "windio_resource"}  # modules with a function `read`
WHAT = "a PyWake site (.nc), a WAsP .tab, .wrg or .rsf file, a folder of WAsP grids (.grd) or a windIO file (.yaml)"


class WindData(NamedTuple):
    """The wind in a file.

    settings: the keys of `weibull`, `table` or `time_series` in a campaign file; with a grid, its `directions` and
    `speeds` as in `Site.from_dataset`, as far as the file names them. notes: how the file was read. shear: the keys of
    `shear` in a campaign file. grid: wind that varies over the site, with the names of PyWake's `XRSite`.
    """

    settings: dict[str, Any]
    notes: list[str]
    shear: Mapping[str, float] = MappingProxyType({})
    grid: "xarray.Dataset | None" = None

    @property
    def has_turbulence(self) -> bool:
        """Return whether the file gives the turbulence intensity."""
        return "turbulence_intensity" in self.settings if self.grid is None else "TI" in self.grid

    @property
    def is_series(self) -> bool:
        """Return whether the wind is a time series."""
        return "wind_speed_m_s" in self.settings if self.grid is None else "time" in self.grid.dims


def read_wind(path: Path) -> WindData:
    """Return the wind in a file."""
    ending = path.suffix.lower()
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if ending in (".csv", ".txt", ".parquet"):
        raise InputError(f"{path}: is a table; give a time series as time_series: {{file: {path.name}}}")
    if ending not in FILES:
        raise InputError(f"{path}: {unknown_extension(path)}; expected {WHAT}")
    found: WindData = importlib.import_module(f"leeward.readers.{FILES[ending]}").read(path)
    return found
