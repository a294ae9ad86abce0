"""Sites of PyWake: files of `XRSite.save` (NetCDF), and site objects."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import Array, one_or_more
from leeward.wind.conditions import Distribution
from leeward.wind.table_wind import table_wind
from leeward.wind.weibull import (
    DEFAULT_DIRECTIONS,
    WeibullWind,
    by_sector,
    check_directions,
    direction_bin_width,
    is_linear,
)

if TYPE_CHECKING:
    import xarray


WEIBULL = ("Sector_frequency", "Weibull_A", "Weibull_k")
UNSUPPORTED = ("Speedup", "Turning", "WS", "WD")  # variables with which PyWake changes the wind


def read_site_file(
    path: str | os.PathLike[str],
    directions: npt.ArrayLike | None,
    speeds: npt.ArrayLike | None,
    interpolation: str,
    turbulence_intensity: float | None = None,
) -> Distribution:
    """Return the wind of a site file; see `Site.from_netcdf`. turbulence_intensity: replaces that of the file."""
    data = _load(Path(path))
    if turbulence_intensity is not None:
        data["TI"] = turbulence_intensity
    return _distribution(Path(path), data, directions, speeds, interpolation)


def pywake_site(
    site: Any, directions: npt.ArrayLike | None, speeds: npt.ArrayLike | None, turbulence_intensity: float | None
) -> Distribution:
    """Return the wind of a site object; see `Site.from_pywake`."""
    where = Path(type(site).__name__)  # its name in errors
    if not hasattr(site, "ds") or not hasattr(site, "interp_method"):
        raise InputError(f"{site!r:.60} is not a site of PyWake with a dataset; expected an XRSite or a subclass")
    if getattr(site, "shear", None) is not None:
        raise InputError(f"{where}: has a shear model, but leeward uses one wind at all heights; set shear=None")
    data = site.ds.copy()
    if turbulence_intensity is not None:
        data["TI"] = turbulence_intensity
    method = site.interp_method
    if directions is None:
        directions = np.asarray(site.default_wd, dtype=np.float64)
    if speeds is None and "P" not in data:
        speeds = np.asarray(site.default_ws, dtype=np.float64)
    kind = method.get("wd", "linear") if isinstance(method, dict) else method
    return _distribution(where, data, directions, speeds, kind)


def _distribution(
    file: Path,
    data: "xarray.Dataset",
    directions: npt.ArrayLike | None,
    speeds: npt.ArrayLike | None,
    interpolation: str,
) -> Distribution:
    found = ", ".join(map(str, data.data_vars)) or "nothing"
    for name in data.data_vars:
        if name in UNSUPPORTED:
            raise InputError(f"{file}: leeward does not support {name}; remove it first")
        spatial = [d for d in data[name].dims if d in ("i", "x", "y", "h", "time") and data.sizes[d] > 1]
        if spatial:
            raise InputError(
                f"{file}: {name} varies with {', '.join(map(str, spatial))}; expected the same wind at every point: "
                "select one point and height first"
            )
    data = data.squeeze([d for d in data.dims if d not in ("wd", "ws") and data.sizes[d] == 1], drop=True)
    if "TI" not in data:
        raise InputError(f"{file}: has no turbulence intensity; expected the variable TI, found {found}")
    if "P" in data:
        return _table(file, data, directions, speeds, interpolation)
    missing = [name for name in WEIBULL if name not in data]
    if missing:
        raise InputError(f"{file}: has no {', '.join(missing)}; expected P, or {', '.join(WEIBULL)}; found {found}")
    frequency, scale, shape, intensity = (_by_sector(file, data, name) for name in (*WEIBULL, "TI"))
    if speeds is None and "ws" in data:
        speeds = data["ws"].values
    return WeibullWind(frequency, scale, shape, intensity, directions, speeds, interpolation)


def _load(file: Path) -> "xarray.Dataset":
    import xarray

    if not file.is_file():
        raise InputError(f"{file}: no such file")
    try:
        return xarray.load_dataset(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read as NetCDF ({error})") from error


def _by_sector(file: Path, data: "xarray.Dataset", name: str) -> Array:
    """Return one value per sector, the first one centred on north, without a repeated one at 360 degrees."""
    variable = data[name]
    if variable.dims == ():
        return np.atleast_1d(np.asarray(variable.values, dtype=np.float64))
    if variable.dims != ("wd",):
        raise InputError(f"{file}: {name} depends on {', '.join(map(str, variable.dims))}; expected wd alone")
    return _open_circle(file, data, np.asarray(variable.values, dtype=np.float64))


def _open_circle(file: Path, data: "xarray.Dataset", values: Array) -> Array:
    """Return the values by sector, shape (sectors, ...), without a repeated one at 360 degrees."""
    centres = np.atleast_1d(np.asarray(data["wd"].values, dtype=np.float64))
    if len(centres) > 1 and centres[-1] == 360.0:
        centres, values = centres[:-1], values[:-1]
    if not np.allclose(centres, np.arange(len(centres)) * 360.0 / len(centres)):
        raise InputError(
            f"{file}: wd is {centres[:4]} ...; expected equal sectors that start at 0 degrees and cover the full circle"
        )
    return values


def _table(
    file: Path,
    data: "xarray.Dataset",
    directions: npt.ArrayLike | None,
    speeds: npt.ArrayLike | None,
    interpolation: str,
) -> Distribution:
    """Return the probabilities by sector and speed, spread over `directions` as PyWake does."""
    if speeds is not None:
        raise InputError(f"{file}: its table of probabilities (P) has its own speeds; leave `speeds` out")
    for coordinate in ("wd", "ws"):
        if coordinate not in data.coords:
            raise InputError(f"{file}: has no {coordinate}; expected probabilities P by wd and ws")
    if data["P"].dims == ("wd",) and data["ws"].size == 1:
        data["P"] = data["P"].expand_dims(ws=np.atleast_1d(data["ws"].values))
    if set(data["P"].dims) != {"wd", "ws"}:
        raise InputError(f"{file}: P depends on {', '.join(map(str, data['P'].dims)) or 'nothing'}; expected wd and ws")
    probability = data["P"].transpose("wd", "ws")
    intensity = data["TI"].broadcast_like(probability).transpose("wd", "ws").values
    table = _open_circle(file, data, np.asarray(probability.values, dtype=np.float64))
    bins = DEFAULT_DIRECTIONS if directions is None else check_directions(one_or_more(directions, "directions"))
    share = direction_bin_width(bins) / (360.0 / len(table))
    return table_wind(
        bins,
        data["ws"].values,
        by_sector(table, bins, is_linear(interpolation)) * share,
        by_sector(_open_circle(file, data, intensity), bins, True),
        kind="exact",  # the sectors of the file are already spread
    )
