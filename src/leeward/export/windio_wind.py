"""The wind of a layout as an energy resource of windIO 2."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.export.plant import Plant
    from leeward.wind.field_data import FieldData

GRID = {  # names of variables and coordinates in windIO, by those in a dataset of PyWake's `XRSite`
    "Sector_frequency": "sector_probability",
    "Weibull_A": "weibull_a",
    "Weibull_k": "weibull_k",
    "P": "probability",
    "WS": "wind_speed",
    "TI": "turbulence_intensity",
    "x": "x",
    "y": "y",
    "h": "height",
    "time": "time",
    "wd": "wind_direction",
    "ws": "wind_speed",
}


def energy_resource(plant: "Plant") -> dict[str, Any]:
    """Return the wind. Sites on a grid keep their values at each point of the grid."""
    field = plant.farm.site.field
    shear: dict[str, Any] = {}
    if field is not None:
        _check(plant, field.data)
        if field.data.shear is not None:
            law = field.data.shear
            shear = {"shear": {"alpha": law.values[0], "h_ref": law.reference_height_m}}
    wind = _uniform(plant) if field is None or _is_list(field.data) else _on_grid(field.data)
    return {"name": f"wind at {plant.farm_name}", "wind_resource": wind | shear}


def _is_list(data: "FieldData") -> bool:
    """Return whether a field is a list of conditions that are the same everywhere, such as a table with shear."""
    return not data.has_bins and not any(np.prod(values.shape[:3]) > 1 for values in data.values.values())


def _data(values: Any, *dims: str) -> dict[str, Any]:
    return {"data": np.asarray(values).tolist(), "dims": list(dims)}


def _uniform(plant: "Plant") -> dict[str, Any]:
    """Return Weibull distributions by sector if the site has them; else the probability of every condition.

    windIO cannot express interpolation between sectors, so such a site becomes a table of probabilities too.
    """
    conditions, site = plant.conditions, plant.site
    wind: dict[str, Any]
    if site.get("interpolation") == "nearest":
        count = len(site["weibull_k"])
        wind = {"wind_direction": (np.arange(count) * (360.0 / count)).tolist()}
        for name, ours in (
            ("sector_probability", "sector_frequency"),
            ("weibull_a", "weibull_a_m_s"),
            ("weibull_k", "weibull_k"),
            ("turbulence_intensity", "turbulence_intensity"),
        ):
            wind[name] = _data(site[ours], "wind_direction")
    elif conditions.speed.shape[1] == 1:
        rows = (conditions.direction, conditions.speed[:, 0], conditions.weight[:, 0])
        names = ("wind_direction", "wind_speed", "probability")
        wind = {name: _data(values, "flow_case") for name, values in zip(names, rows, strict=True)}
        wind["turbulence_intensity"] = _data(conditions.turbulence_intensity[:, 0], "flow_case")
    else:
        wind = {"wind_direction": conditions.direction.tolist(), "wind_speed": conditions.speed[0].tolist()}
        wind["probability"] = _data(conditions.weight, "wind_direction", "wind_speed")
        intensity = conditions.turbulence_intensity
        wind["turbulence_intensity"] = _data(intensity, "wind_direction", "wind_speed")
    return wind


def _on_grid(data: "FieldData") -> dict[str, Any]:
    """Return the values at each point of a grid, with the dimensions of windIO."""
    from leeward.wind.field_dataset import dataset_of

    found = dataset_of(data).drop_vars(["Turning", "Elevation", "weight"], errors="ignore")
    wind: dict[str, Any] = {GRID[str(name)]: found[name].values.tolist() for name in found.coords}
    for name, variable in found.data_vars.items():
        wind[GRID[str(name)]] = _data(variable.values, *(GRID[str(dim)] for dim in variable.dims))
    return wind


def _check(plant: "Plant", data: "FieldData") -> None:
    """Raise InputError if windIO, as leeward reads it, cannot express a field."""
    found = list(_beyond(plant, data))
    if found:
        raise InputError(
            f"{plant.farm_name}: a windIO file cannot hold all of its wind: {', '.join(found)}; export arrays (.npz), "
            "or use to_pywake"
        )


def _beyond(plant: "Plant", data: "FieldData") -> Iterator[str]:
    """Yield the properties of a field that windIO, as leeward reads it, cannot express."""
    if "speed_up" in data.values:
        yield "speed-ups"
    if "density" in data.values:
        yield "air densities"
    if data.local_bins:
        yield "bins of local speeds"
    if data.turbulence_at_15:
        yield "a turbulence intensity that depends on the speed"
    if not data.has_bins and data.sectors > 1:
        yield "a turbulence intensity by sector in a time series"
    if data.distances != "straight":
        yield f"{data.distances} distances"
    if data.interpolation == "linear" and data.has_bins and np.any(data.directions % (360.0 / data.sectors)):
        yield "linear interpolation between sectors"
    if data.shear is not None and (data.shear.kind != "power" or len(data.shear.values) > 1 or len(data.heights) > 1):
        yield "shear other than one exponent"
    if data.weight is not None and not _is_list(data) and not np.allclose(data.weight, 1.0 / len(data.weight)):
        yield "weights of time steps"
    for axis, at in ((data.x, plant.x), (data.y, plant.y), (data.x, plant.neighbour_x), (data.y, plant.neighbour_y)):
        if len(axis) > 1 and len(at) and not axis[0] <= min(at) <= max(at) <= axis[-1]:
            yield "turbines outside the grid"
            return


def run_configuration(plant: "Plant") -> dict[str, Any]:
    """Return the directions and speeds, as bin centres, that the AEP was summed over."""
    field, conditions = plant.farm.site.field, plant.conditions
    if field is not None and field.data.has_bins:
        return {
            "directions_run": {"specific_values": field.data.directions.tolist()},
            "wind_speeds_run": {"specific_values": field.data.speeds.tolist()},
        }
    if conditions.speed.shape[1] == 1 and "weibull_k" not in plant.site:
        return {"times_run": {"all_occurences": True}}  # the schema's spelling
    return {
        "directions_run": {"specific_values": conditions.direction.tolist()},
        "wind_speeds_run": {"specific_values": conditions.speed[0].tolist()},
    }
