"""Sites of PyWake: files of `XRSite.save` (NetCDF), and site objects."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.readers.wasp_field import WASP_FIELDS, read_wasp_field
from leeward.wind.checks import Array, one_or_more
from leeward.wind.conditions import Distribution
from leeward.wind.field_data import FieldData, Shear, check_shear
from leeward.wind.field_dataset import NO_TURNING, WEIBULL, FieldOptions, field_of, is_field, open_circle
from leeward.wind.field_wind import FieldWind
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


UNSUPPORTED = ("WD",)  # variables with which PyWake changes the wind


def read_site_file(path: str | os.PathLike[str], options: FieldOptions, notes: list[str]) -> Distribution:
    """Return the wind of a PyWake site (.nc), or of WAsP's .wrg, .rsf or a folder of .grd files; see `Site.from_file`.

    notes: gets sentences on how the file was read.
    """
    file = Path(path)
    if file.is_dir() or file.suffix.lower() in WASP_FIELDS:
        data = read_wasp_field(file)
        notes += data.attrs.pop("notes", [])
    else:
        data = _load(file)
    return dataset_wind(data, str(file), options, notes)


def dataset_wind(data: "xarray.Dataset", where: str, options: FieldOptions, notes: list[str]) -> Distribution:
    """Return the wind of a dataset; see `Site.from_dataset`. where: its name in errors."""
    import xarray

    if not isinstance(data, xarray.Dataset):
        raise InputError(f"{where} is {data!r:.60}; expected an xarray.Dataset, or a file for Site.from_file")
    if options.shear is not None and not isinstance(options.shear, Shear):
        raise InputError(
            f"{where}: shear is {options.shear!r:.60}; expected Shear.power(...) or Shear.logarithmic(...)"
        )
    interpolation = options.interpolation or "nearest"
    is_linear(interpolation)  # raises InputError for an unknown method
    if is_field(data) or options.distances != "straight":
        return FieldWind(field_of(data, where, options, notes))
    if "h" in data.coords and data["h"].size == 1:
        height = float(data["h"].item())
        if options.shear is not None:
            check_shear(options.shear, height, where)
        else:
            notes.append(f"{Path(where).name}: the wind at {height:g} m is used at hub height")
    if "Turning" in data:
        notes.append(NO_TURNING.format(Path(where).name))
    if options.turbulence_intensity is not None:
        data = data.assign(TI=options.turbulence_intensity)
    wind = _uniform(Path(where), data, options.directions, options.speeds, interpolation)
    return wind if options.shear is None else with_shear(wind, options.shear)


def with_shear(wind: Distribution, shear: Shear) -> FieldWind:
    """Return wind that is the same everywhere, and increases with height. A table becomes a list of conditions."""
    one, intensity = np.zeros(1), wind.conditions.turbulence_intensity
    if isinstance(wind, WeibullWind):
        settings = wind.settings()
        values = {ours: settings[theirs] for ours, theirs in WEIBULL_SETTINGS.items()}
        return FieldWind(
            FieldData(
                kind="weibull",
                x=one,
                y=one,
                heights=one,
                values={name: np.array(each)[None, None, None] for name, each in values.items()},
                directions=np.array(settings["wind_directions_deg"]),
                speeds=np.array(settings["wind_speeds_m_s"]),
                interpolation=settings["interpolation"],
                shear=shear,
            )
        )
    conditions = wind.conditions
    return FieldWind(
        FieldData(
            kind="list",
            x=one,
            y=one,
            heights=one,
            values={"series_turbulence": intensity.reshape(1, 1, 1, -1)},
            directions=np.repeat(conditions.direction, conditions.speed.shape[1]),
            speeds=conditions.speed.ravel(),
            weight=conditions.weight.ravel(),
            shear=shear,
            covered_degrees=wind.covered_degrees,
        )
    )


WEIBULL_SETTINGS = {
    "frequency": "sector_frequency",
    "weibull_a": "weibull_a_m_s",
    "weibull_k": "weibull_k",
    "turbulence": "turbulence_intensity",
}


def pywake_site(site: Any, options: FieldOptions, notes: list[str]) -> Distribution:
    """Return the wind of a site object; see `Site.from_pywake`."""
    name = type(site).__name__  # its name in errors
    if not hasattr(site, "ds") or not hasattr(site, "interp_method"):
        raise InputError(f"{site!r:.60} is not a site of PyWake with a dataset; expected an XRSite or a subclass")
    data, method = site.ds.copy(), site.interp_method
    is_varied = is_field(data)
    if getattr(site, "shear", None) is not None:
        options = replace(options, shear=pywake_shear(site.shear, name))
    is_series = "time" in data.dims
    if options.directions is None and not is_series:
        options = replace(options, directions=np.asarray(site.default_wd, dtype=np.float64))
    if options.speeds is None and "P" not in data and not is_series:
        options = replace(options, speeds=np.asarray(site.default_ws, dtype=np.float64))
    if is_varied:
        _check_method(method, data, name)
        if "ti15ms" in data:
            data = data.rename(ti15ms="TI_15")
        if getattr(site.distance, "wind_direction", "wd") != "wd":
            raise InputError(
                f"{name}: its distance has wind_direction={site.distance.wind_direction!r}, but leeward's wakes follow "
                "the direction of the whole site; expected wind_direction='wd'"
            )
        if type(site.distance).__name__ == "TerrainFollowingDistance" and options.distances == "straight":
            notes.append(f"{name}: has TerrainFollowingDistance, but distances are straight (distances='straight')")
    kind = method.get("wd", "linear") if isinstance(method, dict) else method
    use_bins = bool(getattr(site, "use_WS_bins", False))
    extrapolate = getattr(site, "bounds", "check") == "limit"
    options = replace(options, interpolation=kind, local_bins=use_bins, extrapolate=extrapolate)
    return dataset_wind(data, name, options, notes)


def pywake_shear(shear: Any, name: str) -> Shear:
    """Return a shear model of PyWake."""
    kind = type(shear).__name__
    if getattr(shear, "interp_method", "nearest") != "nearest" or kind not in ("PowerShear", "LogShear"):
        raise InputError(
            f"{name}: has the shear {kind}, which leeward lacks; expected PowerShear or LogShear by sector"
        )
    values = np.atleast_1d(np.asarray((shear.alpha if kind == "PowerShear" else shear.z0).values, dtype=np.float64))
    values = values[:-1] if len(values) > 1 else values  # the last one repeats the first
    make = Shear.power if kind == "PowerShear" else Shear.logarithmic
    return make(values, float(shear.h_ref))


def _check_method(method: Any, data: "xarray.Dataset", name: str) -> None:
    """Raise InputError unless PyWake interpolates linearly in x, y and h."""
    for axis in ("x", "y", "h"):
        given = method.get(axis, "linear") if isinstance(method, dict) else method
        if axis in data.dims and data.sizes[axis] > 1 and given != "linear":
            raise InputError(
                f"{name}: interpolates {axis} to the nearest point, so that the yield has steps; expected "
                "interp_method={'wd': 'nearest', 'x': 'linear', 'y': 'linear', 'h': 'linear'}"
            )


def _uniform(
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
        spatial = [d for d in data[name].dims if d == "i" and data.sizes[d] > 1]
        if spatial:
            raise InputError(
                f"{file}: {name} varies with {', '.join(map(str, spatial))}; expected the same wind at every point, or "
                "values on a grid of x and y"
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
    scale, shape = (np.broadcast_to(each, frequency.shape) if each.size == 1 else each for each in (scale, shape))
    if speeds is None and "ws" in data:
        speeds = data["ws"].values
    return WeibullWind(frequency, scale, shape, intensity, directions, speeds, interpolation)


def _load(file: Path) -> "xarray.Dataset":
    import xarray

    if not file.is_file():
        raise InputError(f"{file}: no such file or folder")
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
    return open_circle(data, str(file), np.asarray(variable.values, dtype=np.float64))


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
    table = open_circle(data, str(file), np.asarray(probability.values, dtype=np.float64))
    bins = DEFAULT_DIRECTIONS if directions is None else check_directions(one_or_more(directions, "directions"))
    share = direction_bin_width(bins) / (360.0 / len(table))
    return table_wind(
        bins,
        data["ws"].values,
        by_sector(table, bins, is_linear(interpolation)) * share,
        by_sector(open_circle(data, str(file), intensity), bins, True),
        kind="exact",  # the sectors of the file are already spread
    )
