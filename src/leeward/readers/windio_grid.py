"""Wind resources of windIO that vary over a grid of positions and heights."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward.readers.wind_file import WindData
from leeward.readers.windio_variables import GRID, Resource, Runs

if TYPE_CHECKING:
    import xarray

NAMES = {  # of variables in a dataset
    "sector_probability": "Sector_frequency",
    "weibull_a": "Weibull_A",
    "weibull_k": "Weibull_k",
    "probability": "P",
    "turbulence_intensity": "TI",
}
WEIBULL = ("sector_probability", "weibull_a", "weibull_k")
DIMS = {**GRID, "wind_direction": "wd", "wind_speed": "ws", "time": "time"}
SERIES = {"wind_direction": "wd", "wind_speed": "WS", "turbulence_intensity": "TI"}


def wind_of(resource: Resource, runs: Runs, shear: Mapping[str, float], notes: list[str]) -> WindData:
    """Return the wind of a resource that varies with position or height. shear, notes: as in `WindData`."""
    if shear and len(np.unique(resource.values("height")[1] if "height" in resource.data else 0.0)) > 1:
        raise resource.error("shear", "is given beside several heights; remove one of them")
    if "weibull_k" in resource.data:
        data, options = _weibull(resource, runs)
    elif "probability" in resource.data:
        data, options = _table(resource, runs)
    else:
        data, options = _series(resource, runs), {}
    return WindData(options, notes, shear, data)


def _weibull(resource: Resource, runs: Runs) -> tuple["xarray.Dataset", dict[str, Any]]:
    resource.reject_runs(runs.times, "times_run", "directions_run and wind_speeds_run")
    speeds = runs.speeds
    if speeds is None and "wind_speed" in resource.data:
        own = np.atleast_1d(resource.values("wind_speed")[1])
        speeds = own.tolist() if len(own) > 1 else None
    data = _dataset(resource, (*WEIBULL, "turbulence_intensity"), ("wind_direction",))
    return data, {"directions": _directions(resource, runs, runs.is_exact), "speeds": speeds}


def _table(resource: Resource, runs: Runs) -> tuple["xarray.Dataset", dict[str, Any]]:
    resource.reject_runs(runs.times, "times_run", "directions_run and wind_speeds_run")
    names = ("probability", "sector_probability", "turbulence_intensity")
    data = _dataset(resource, names, ("wind_direction", "wind_speed"))
    if runs.speeds is not None and not np.array_equal(runs.speeds, data["ws"].values):
        resource.reject_runs(runs.speeds, "wind_speeds_run", "all speeds of the table")
    if "Sector_frequency" in data:  # the other probabilities are those of the speeds in each sector
        data["P"] = data["P"] * data["Sector_frequency"]
        data = data.drop_vars("Sector_frequency")
    return data, {"directions": _directions(resource, runs, runs.is_exact or data.sizes.get("ws", 1) == 1)}


def _series(resource: Resource, runs: Runs) -> "xarray.Dataset":
    """Return the time series; each step has its own direction."""
    resource.reject_runs(runs.directions, "directions_run", "times_run")
    resource.reject_runs(runs.speeds, "wind_speeds_run", "times_run")
    import xarray

    times = resource.data.get("time")
    times = times.get("data") if isinstance(times, Mapping) else times
    if not isinstance(times, list) or not times:
        raise resource.error("time", "is missing; expected a time series, probability, or Weibull parameters")
    count = len(times)
    data = xarray.Dataset(coords={**_axes(resource), "time": np.arange(count)})
    for name, theirs in SERIES.items():
        if name not in resource.data and name == "turbulence_intensity":
            continue
        dims, values = resource.values(name, has_gaps=name != "wind_direction")
        dims = ("time",) if dims == (name,) else dims
        if name == "wind_direction" and dims != ("time",):
            found = f"depends on {', '.join(dims)}; expected time: wakes follow one direction in each step"
            raise resource.error(name, found)
        _add(resource, data, name, theirs, dims, values, ("time",))
    for step in runs.times or ():
        if not 0 <= step < count:
            raise resource.error("wind_speed", f"has {count} steps; run_configuration asks for step {step}")
    return data if runs.times is None else data.isel(time=list(runs.times))


def _directions(resource: Resource, runs: Runs, is_exact: bool) -> Any:
    """Return the directions to evaluate, or None for every degree. is_exact: each direction stands for itself."""
    if runs.directions is not None or not is_exact or "wind_direction" not in resource.data:
        return runs.directions
    centres = np.atleast_1d(resource.values("wind_direction")[1])
    return centres[centres < 360.0].tolist()


def _dataset(resource: Resource, names: tuple[str, ...], own: tuple[str, ...]) -> "xarray.Dataset":
    """Return some variables and their coordinates. own: dimensions that they may have beside those of the grid."""
    import xarray

    axes = _axes(resource)
    for name in own:
        if name in resource.data:
            dims, values = resource.values(name)
            if dims not in ((), (name,)):
                raise resource.error(name, f"depends on {', '.join(dims)}; expected coordinates")
            axes[DIMS[name]] = np.atleast_1d(values)
    data = xarray.Dataset(coords=axes)
    for name in names:
        if name in resource.data or (name in WEIBULL and "weibull_k" in resource.data):
            _add(resource, data, name, NAMES[name], *resource.values(name, has_gaps=True), own)
    return data


def _axes(resource: Resource) -> dict[str, Any]:
    """Return the coordinates of the grid."""
    axes: dict[str, Any] = {}
    for name, theirs in GRID.items():
        if name in resource.data:
            dims, values = resource.values(name)
            if dims not in ((), (name,)):
                raise resource.error(name, f"depends on {', '.join(dims)}; expected the coordinates of a grid")
            axes[theirs] = np.atleast_1d(values)
    return axes


def _add(
    resource: Resource,
    data: "xarray.Dataset",
    name: str,
    theirs: str,
    dims: tuple[str, ...],
    values: Any,
    own: tuple[str, ...],
) -> None:
    """Add a variable to a dataset. name, theirs: its name in windIO and in the dataset."""
    allowed = (*GRID, *own)
    for dim, size in zip(dims, values.shape, strict=True):
        if dim not in allowed:
            raise resource.error(name, f"depends on {dim}; expected {', '.join(allowed)}")
        if DIMS[dim] not in data.coords:
            raise resource.error(name, f"depends on {dim}, but the resource has no {dim}; expected its coordinates")
        if size != data.sizes[DIMS[dim]]:
            raise resource.error(name, f"has {size} values along {dim}; expected {data.sizes[DIMS[dim]]}")
    data[theirs] = tuple(DIMS[dim] for dim in dims), values
