"""Read site files in PyWake's format (NetCDF)."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.site import Site

if TYPE_CHECKING:
    import xarray

Array = npt.NDArray[np.float64]

WEIBULL = ("Sector_frequency", "Weibull_A", "Weibull_k")


def read_site_file(
    path: str | os.PathLike[str],
    directions: npt.ArrayLike | None,
    speeds: npt.ArrayLike | None,
    interpolation: str,
) -> Site:
    """See `Site.from_netcdf`."""
    file = Path(path)
    data = _load(file)
    for name in data.data_vars:
        spatial = [d for d in data[name].dims if d in ("i", "x", "y", "h", "time") and data.sizes[d] > 1]
        if spatial:
            raise InputError(
                f"{file}: {name} varies with {', '.join(map(str, spatial))}; leeward takes sites where the wind is the "
                "same at every point: select one point and height first"
            )
    data = data.squeeze([d for d in data.dims if d not in ("wd", "ws") and data.sizes[d] == 1], drop=True)
    if "TI" not in data:
        raise InputError(f"{file}: no turbulence intensity (TI) in it; found {', '.join(map(str, data.data_vars))}")
    if "P" in data:
        return _table(file, data, directions, speeds)
    missing = [name for name in WEIBULL if name not in data]
    if missing:
        raise InputError(
            f"{file}: {', '.join(missing)} not in it; expected P, or {', '.join(WEIBULL)}; "
            f"found {', '.join(map(str, data.data_vars))}"
        )
    frequency, scale, shape = (_by_sector(file, data, name) for name in WEIBULL)
    intensity = _by_sector(file, data, "TI") if "wd" in data["TI"].dims else np.asarray(data["TI"].values)
    if speeds is None and "ws" in data:
        speeds = data["ws"].values
    return Site.from_weibull(
        frequency, scale, shape, intensity, directions=directions, speeds=speeds, interpolation=interpolation
    )


def _load(file: Path) -> "xarray.Dataset":
    import xarray

    if not file.is_file():
        raise InputError(f"{file}: no such file")
    try:
        return xarray.load_dataset(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read as NetCDF ({error})") from error


def _by_sector(file: Path, data: "xarray.Dataset", name: str) -> Array:
    """One value per sector, the first one centred on north, without the repeated one at 360 degrees."""
    variable = data[name]
    if variable.dims == ():
        return np.atleast_1d(np.asarray(variable.values, dtype=np.float64))
    if variable.dims != ("wd",):
        raise InputError(f"{file}: {name} depends on {', '.join(map(str, variable.dims))}; expected wd alone")
    centres = np.asarray(data["wd"].values, dtype=np.float64)
    values = np.asarray(variable.values, dtype=np.float64)
    if len(centres) > 1 and centres[-1] == 360.0:
        centres, values = centres[:-1], values[:-1]
    if not np.allclose(centres, np.arange(len(centres)) * 360.0 / len(centres)):
        raise InputError(
            f"{file}: wd is {centres[:4]} ...; expected equal sectors from 0 degrees on that go all the way round"
        )
    return values


def _table(file: Path, data: "xarray.Dataset", directions: npt.ArrayLike | None, speeds: npt.ArrayLike | None) -> Site:
    """A tabulated rose is taken as it stands: its own directions and speeds."""
    if directions is not None or speeds is not None:
        raise InputError(f"{file}: holds a table of probabilities (P); directions and speeds cannot be chosen")
    own = np.asarray(data["wd"].values, dtype=np.float64)
    probability = data["P"].transpose("wd", ...)
    intensity = data["TI"].broadcast_like(probability).transpose("wd", ...).values
    values = np.asarray(probability.values, dtype=np.float64)
    if len(own) > 1 and own[-1] == 360.0:
        own, values, intensity = own[:-1], values[:-1], intensity[:-1]
    return Site.from_table(own, data["ws"].values, values, intensity)
