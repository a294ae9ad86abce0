"""Wind that varies over a site, from datasets with the names of PyWake's `XRSite`."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import Array, one_or_more, reject
from leeward.wind.field_data import AIR_DENSITY, ANY_HEIGHT, FieldData, Shear
from leeward.wind.field_settings import values_with_gaps
from leeward.wind.weibull import DEFAULT_DIRECTIONS, DEFAULT_SPEEDS

if TYPE_CHECKING:
    import xarray

QUANTITIES = {  # by their names in datasets
    "Sector_frequency": "frequency",
    "Weibull_A": "weibull_a",
    "Weibull_k": "weibull_k",
    "P": "probability",
    "Speedup": "speed_up",
    "Turning": "turning",
    "TI": "turbulence",
    "TI_15": "turbulence",
    "Air_density": "density",
    "Elevation": "elevation",
    "WS": "series_speed",
}
WEIBULL = ("Sector_frequency", "Weibull_A", "Weibull_k")
VARYING = ("x", "y", "h", "time")
DIMENSIONS = (*VARYING, "wd", "ws")
KILOMETRES = ("km", "kilometre", "kilometres")
DEGREES = ("degree", "degrees", "degrees_east", "degrees_north")
CRS_ATTRIBUTES = ("crs", "crs_wkt", "spatial_ref")
FULL_CIRCLE = 360.0
NO_TURNING = "{}: Turning is not used: wakes follow the direction of the whole site, as in PyWake"


@dataclass(frozen=True)
class FieldOptions:
    """Options of `Site.from_dataset`."""

    directions: npt.ArrayLike | None = None
    speeds: npt.ArrayLike | None = None
    interpolation: str | None = None
    turbulence_intensity: float | None = None
    shear: Shear | None = None
    distances: str = "straight"
    extrapolate: bool = False
    crs: str | None = None
    local_bins: bool = False


def is_field(data: "xarray.Dataset") -> bool:
    """Return whether the wind of a dataset varies, or has quantities that only a field can have."""
    if (
        data.attrs.get("speed_bins") == "local"
        or "TI_15" in data
        or any(name in data for name in ("Speedup", "Air_density", "WS"))
    ):
        return True
    return any(data.sizes[name] > 1 for each in data.data_vars for name in data[each].dims if name in VARYING)


def field_of(data: "xarray.Dataset", where: str, options: FieldOptions, notes: list[str]) -> FieldData:
    """Return the field in a dataset. where: the file, for errors. notes: gets sentences on how it was read."""
    _check_dimensions(data, where)
    name = Path(where).name
    ignored = _unknown(data, where)
    if ignored:
        notes.append(f"{name}: ignored {', '.join(ignored)}")
    if data.sizes.get("time") == 1 and "wd" in data.dims and not {"WS", "WD"} & set(data.variables):
        data = data.squeeze("time", drop=True)
    if options.turbulence_intensity is not None:
        data = data.drop_vars(["TI", "TI_15"], errors="ignore").assign(TI=options.turbulence_intensity)
    is_series = "time" in data.dims
    kind = "series" if is_series else "table" if "P" in data else "weibull"
    _check_complete(data, where, kind)
    speeds = _speeds(data, where, kind, options)
    values = dict(_values(data, where, kind, speeds))
    if "turning" in values:
        notes.append(NO_TURNING.format(name))
    for axis, along in (("x", "east and west"), ("y", "north and south")):
        if axis in data.coords and data[axis].size == 1:
            notes.append(
                f"{name}: has a single {axis}, {data[axis].item():.10g}: its values are used everywhere {along}"
            )
    heights = _axis(data, "h")
    if len(heights) > 1 and options.shear is not None:
        notes.append(f"{name}: the wind speeds at its {len(heights)} heights are multiplied by the shear as well")
    local_bins = options.local_bins or data.attrs.get("speed_bins") == "local"
    if local_bins and options.shear is not None:
        notes.append(f"{name}: shear hardly changes the yield here: its Weibull parameters stay those at its heights")
    return FieldData(
        kind=kind,
        x=_axis(data, "x"),
        y=_axis(data, "y"),
        heights=heights,
        values=values,
        directions=_step_directions(data, where) if is_series else _directions(options),
        speeds=speeds,
        weight=_weight(data, where) if is_series else None,
        interpolation=options.interpolation or "nearest",
        local_bins=local_bins,
        turbulence_at_15="TI_15" in data,
        shear=options.shear,
        distances=options.distances,
        extrapolate=options.extrapolate,
        crs=options.crs or crs_of(data),
        source=where,
    )


def _unknown(data: "xarray.Dataset", where: str) -> list[str]:
    """Return the variables that are not used. Raise InputError if one is a quantity in upper or lower case."""
    known = {*QUANTITIES, "WD", "wd", "crs", "spatial_ref", "ws", "weight"}
    found = [str(name) for name in data.data_vars if name not in known]
    for name in found:
        for quantity in QUANTITIES:
            if quantity.lower() == name.lower() and quantity not in data and name != "p":  # which may be the pressure
                raise InputError(f"{where}: has {name}; expected the name {quantity}")
    return found


def _check_complete(data: "xarray.Dataset", where: str, kind: str) -> None:
    """Raise InputError if the turbulence intensity or a Weibull parameter is missing."""
    if not any(name in data for name in ("TI", "TI_15")):
        raise InputError(f"{where}: has no turbulence intensity; add the variable TI, or give turbulence_intensity")
    missing = [name for name in WEIBULL if name not in data] if kind == "weibull" else []
    if missing:
        found = ", ".join(map(str, data.data_vars))
        raise InputError(f"{where}: has no {', '.join(missing)}; expected P, or {', '.join(WEIBULL)}; found {found}")


def _check_dimensions(data: "xarray.Dataset", where: str) -> None:
    for name in ("x", "y"):
        if name in data.variables and data[name].ndim > 1:
            raise InputError(
                f"{where}: {name} depends on {', '.join(map(str, data[name].dims))}; expected one coordinate for each "
                "column or row (rotated grids are not supported)"
            )
        if name in data.dims and name not in data.coords:
            raise InputError(f"{where}: the dimension {name} has no coordinates; expected metres")
        unit = str(data[name].attrs.get("units", "m")) if name in data.coords else "m"
        if unit in (*KILOMETRES, *DEGREES):
            found = "kilometres" if unit in KILOMETRES else "degrees"
            raise InputError(f"{where}: {name} is in {found}; expected metres in the coordinate system of the areas")
    for name in QUANTITIES:
        dims = data[name].dims if name in data else ()
        unknown = [str(each) for each in dims if each not in DIMENSIONS and data.sizes[each] > 1]
        if unknown:
            hint = "; expected values on a grid of x and y" if "i" in unknown else ""
            raise InputError(
                f"{where}: {name} depends on {', '.join(unknown)}, which is not one of {', '.join(DIMENSIONS)}{hint}"
            )


def _axis(data: "xarray.Dataset", name: str) -> Array:
    """Return the coordinates of an axis; one number for an axis that does not vary."""
    if name not in data.coords:
        return np.full(1, ANY_HEIGHT)
    return np.atleast_1d(np.asarray(data[name].values, dtype=np.float64))


def _speeds(data: "xarray.Dataset", where: str, kind: str, options: FieldOptions) -> Array:
    if kind == "weibull":
        given = data["ws"].values if options.speeds is None and "ws" in data else options.speeds
        return DEFAULT_SPEEDS if given is None else one_or_more(given, "speeds")
    if options.speeds is not None or (kind == "series" and options.directions is not None):
        if kind == "series":
            raise InputError(
                f"{where}: a time series has its own directions and speeds; leave `directions` and `speeds` out"
            )
        raise InputError(f"{where}: its {kind} has its own speeds; leave `speeds` out")
    if kind == "series" and "WS" in data:
        return np.zeros(0)
    if "ws" not in data.variables:
        raise InputError(f"{where}: has no ws; expected the wind speeds of its {kind}")
    return np.atleast_1d(np.asarray(data["ws"].values, dtype=np.float64))


def _directions(options: FieldOptions) -> Array:
    return DEFAULT_DIRECTIONS if options.directions is None else one_or_more(options.directions, "directions")


def _step_directions(data: "xarray.Dataset", where: str) -> Array:
    """Return the direction of each step of a series."""
    for name in ("wd", "WD"):
        if name in data.variables and data[name].dims == ("time",):
            given = np.asarray(data[name].values, dtype=np.float64)
            reject(given, np.abs(given) > FULL_CIRCLE, f"{where}: {name}", "degrees from -360 to 360")
            return given % FULL_CIRCLE
    if "WD" in data:
        raise InputError(
            f"{where}: WD depends on {', '.join(map(str, data['WD'].dims))}, but wakes follow one direction in each "
            "step; add a variable wd (time) with that direction"
        )
    raise InputError(f"{where}: has no wd; expected the wind direction of each step, a variable wd (time)")


def _weight(data: "xarray.Dataset", where: str) -> Array | None:
    """Return the weight of each step of a series, or None if all count the same."""
    names = [name for name in ("weight", "P") if name in data.variables and data[name].ndim]
    if len(names) > 1:
        raise InputError(f"{where}: has both weight and P; remove one of them")
    if not names:
        return None
    (name,) = names
    if data[name].dims != ("time",):
        raise InputError(f"{where}: {name} depends on {', '.join(map(str, data[name].dims))}; expected time")
    return np.asarray(data[name].values, dtype=np.float64)


def _values(data: "xarray.Dataset", where: str, kind: str, speeds: Array) -> Iterable[tuple[str, Array]]:
    """Yield each quantity as an array of shape (y, x, heights, n)."""
    for given, name in QUANTITIES.items():
        if given not in data or (given == "P" and kind != "table") or (given == "TI" and "TI_15" in data):
            continue
        if given in WEIBULL and kind != "weibull":
            continue
        variable = data[given]
        is_series = "time" in variable.dims
        if is_series and given not in ("WS", "TI"):
            raise InputError(f"{where}: {given} depends on time; expected only WS, TI and the direction to do so")
        if given == "WS" and not is_series:
            raise InputError(
                f"{where}: WS does not depend on time; expected Speedup, a factor of the wind speed, instead"
            )
        if given == "WS" and kind != "series":
            raise InputError(f"{where}: has WS (time), but no time")
        last = ("time",) if is_series else ("wd", "ws") if given == "P" else ("wd",)
        extra = [each for each in variable.dims if each not in ("x", "y", "h", *last) and data.sizes[each] > 1]
        if extra:
            raise InputError(
                f"{where}: {given} depends on {', '.join(map(str, extra))}; expected x, y, h and {last[0]}"
            )
        values = _ordered(variable, last, where)
        if "wd" in variable.dims:
            values = open_circle(data, where, values, axis=3)
        if given == "P" and values.shape[4] != len(speeds):
            raise InputError(f"{where}: P has {values.shape[4]} speeds; expected {len(speeds)}, as ws has")
        values = values.reshape(*values.shape[:3], -1)
        if given == "Air_density":
            values = values / AIR_DENSITY
        yield ("series_turbulence" if is_series and given == "TI" else name), values


def _ordered(variable: "xarray.DataArray", last: tuple[str, ...], where: str) -> Array:
    """Return a variable with the axes y, x, h and those in `last`; missing ones have the length 1."""
    order = ("y", "x", "h", *last)
    drop = [each for each in variable.dims if each not in order]
    variable = variable.squeeze(drop, drop=True)
    missing = [each for each in order if each not in variable.dims]
    values = variable.drop_vars(list(variable.coords)).expand_dims(missing).transpose(*order).values
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {variable.name} contains values that are not numbers") from error


def open_circle(data: "xarray.Dataset", where: str, values: Array, axis: int = 0) -> Array:
    """Return values by sector without a repeated one at 360 degrees. Raise InputError if sectors are missing.

    axis: that of the sectors.
    """
    centres = np.atleast_1d(np.asarray(data["wd"].values, dtype=np.float64))
    if len(centres) > 1 and centres[-1] == FULL_CIRCLE:
        centres, values = centres[:-1], np.delete(values, -1, axis)
    expected = np.arange(len(centres)) * FULL_CIRCLE / len(centres)
    if not np.allclose(centres, expected):
        first = int(np.flatnonzero(~np.isclose(centres, expected))[0])
        raise InputError(
            f"{where}: wd[{first}] is {centres[first]:g}; expected {expected[first]:g}: equal sectors that start at 0 "
            "degrees and cover the full circle (are sectors missing?)"
        )
    return values


def crs_of(data: "xarray.Dataset") -> str | None:
    """Return the coordinate system that a dataset names, or None."""
    places: list[Any] = [data, *(data[name] for name in ("crs", "spatial_ref") if name in data.variables)]
    for place in places:
        for name in CRS_ATTRIBUTES:
            if isinstance(place.attrs.get(name), str) and place.attrs[name]:
                return str(place.attrs[name])
    return None


def dataset_of(data: FieldData) -> "xarray.Dataset":
    """Return a field as a dataset with the names of PyWake's `XRSite`."""
    import xarray

    axes = {"y": data.y, "x": data.x, "h": data.heights}
    names = {ours: theirs for theirs, ours in QUANTITIES.items() if theirs != "TI_15"} | {"series_turbulence": "TI"}
    if data.turbulence_at_15:
        names["turbulence"] = "TI_15"
    variables: dict[str, xarray.DataArray] = {}
    coords: dict[str, Any] = {name: axis for name, axis in axes.items() if len(axis) > 1}
    if len(data.heights) == 1 and data.heights[0] != ANY_HEIGHT:
        coords["h"] = data.heights
    for name, each in values_with_gaps(data).items():
        last: tuple[str, ...] = ("time",) if name.startswith("series_") else ("wd",)
        if name == "probability":
            each, last = each.reshape(*each.shape[:3], data.sectors, -1), ("wd", "ws")
        values = each * AIR_DENSITY if name == "density" else each
        variable = xarray.DataArray(values, dims=("y", "x", "h", *last))
        single = [dim for dim in variable.dims if variable.sizes[dim] == 1 and dim != "time"]
        variables[names[name]] = variable.squeeze(single)
    dims = {dim for variable in variables.values() for dim in variable.dims}
    if "wd" in dims:
        coords["wd"] = np.arange(data.sectors) * (FULL_CIRCLE / data.sectors)
    if not data.has_bins:
        coords["time"] = np.arange(len(data.directions))
        variables["wd" if "wd" not in dims else "WD"] = xarray.DataArray(data.directions, dims=("time",))
        if data.weight is not None:
            variables["weight"] = xarray.DataArray(data.weight, dims=("time",))
    if len(data.speeds) and data.has_bins:
        coords["ws"] = data.speeds
    elif len(data.speeds):
        variables["ws"] = xarray.DataArray(data.speeds, dims=("time",))
    found = xarray.Dataset(variables, coords=coords)
    found = found.transpose(*(dim for dim in ("x", "y", "h", "time", "wd", "ws") if dim in found.dims))
    found.attrs.update({"speed_bins": "local"} if data.local_bins else {})
    found.attrs.update({"crs": data.crs} if data.crs is not None else {})
    return found
