"""Wind files that are not NetCDF: WAsP tables and windIO resources. A new format is a module and an entry here."""

import importlib
from pathlib import Path
from typing import Any, NamedTuple

from leeward.errors import InputError
from leeward.readers.turbine_file import unknown_extension

FILES = {".tab": "wasp_tab", ".yaml": "windio_resource", ".yml": "windio_resource"}  # modules with a function `read`
WHAT = "a PyWake site (.nc), a WAsP table (.tab) or a windIO energy resource (.yaml)"


class WindData(NamedTuple):
    """The keys of `weibull`, `table` or `time_series` in a campaign file, and notes on how the file was read."""

    settings: dict[str, Any]
    notes: list[str]


def read_wind(path: Path) -> WindData:
    """Return the wind in a file."""
    ending = path.suffix.lower()
    if ending in (".csv", ".txt", ".parquet"):
        raise InputError(f"{path}: is a table; give a time series as time_series: {{file: {path.name}}}")
    if ending not in FILES:
        raise InputError(f"{path}: {unknown_extension(path)}; expected {WHAT}")
    found: WindData = importlib.import_module(f"leeward.readers.{FILES[ending]}").read(path)
    return found
