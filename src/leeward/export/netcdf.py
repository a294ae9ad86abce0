"""Layouts as a NetCDF file, farm × type × seed × turbine, with attributes after the CF conventions."""

import io
import time
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from leeward import __version__
from leeward.capacity import GWH_PER_MW
from leeward.export.tables import crs_of
from leeward.store import UNITS
from leeward.wording import printable

if TYPE_CHECKING:
    import xarray

    from leeward.campaign import Campaign
    from leeward.store import Layouts

# long_name, and standard_name where CF has one
NAMES = {
    "x": ("easting of the turbine", "projection_x_coordinate"),
    "y": ("northing of the turbine", "projection_y_coordinate"),
    "aep": ("annual energy production", ""),
    "installed_mw": ("installed power of the layout", ""),
    "capacity_factor": ("energy as a share of that at full load all year (8760 h)", ""),
    "wake_loss": ("share of the energy that is lost to wakes", ""),
    "min_spacing_m": ("distance of the closest two turbines; none of one turbine", ""),
    "n_turbines": ("number of turbines, 0 where there is no layout; beyond it x and y are not a number", ""),
    "diameter": ("rotor diameter", ""),
    "hub_height": ("hub height", "height"),
    "rated_power": ("rated power of one turbine", ""),
    "steps": ("steps of the optimiser", ""),
    "seconds": ("how long it was computed", ""),
    "status": ("success, or no-aep where nobody knows the energy", ""),
    "origin": ("leeward, or foreign for a layout of another program", ""),
    "stop_reason": ("why the optimiser ended", ""),
    "fingerprint": ("SHA-256 of all settings that the numbers depend on", ""),
    "farm_idx": ("number of the farm", ""),
    "type_idx": ("number of the turbine type", ""),
    "seed": ("random seed", ""),
    "turbine": ("number of the turbine in its layout", ""),
    "key": ("name of the layout, empty where there is none", ""),
    "farm": ("name of the farm", ""),
    "turbine_type": ("name of the turbine type", ""),
}
GRID_MAPPING = "crs"
NO_NUMBER = -1


def write_netcdf(file: BinaryIO, layouts: "Layouts", campaign: "Campaign | None", by_seed: bool) -> None:
    """Made in memory: libhdf5 can crash where a disk is full, and plain writes cannot."""
    dataset = netcdf_dataset(layouts, campaign, by_seed)
    numbers = [name for name in dataset.variables if dataset[name].dtype.kind in "fi" and dataset[name].ndim]
    encoding: dict[Any, dict[str, Any]] = {name: {"zlib": True, "complevel": 4, "shuffle": True} for name in numbers}
    for name in ("steps", "seed"):
        if dataset[name].dtype.kind == "f":  # whole numbers, and NaN where there is no layout
            encoding[name] |= {"dtype": "int64", "_FillValue": NO_NUMBER}
    content = io.BytesIO()
    dataset.to_netcdf(content, engine="h5netcdf", encoding=encoding)
    file.write(content.getbuffer())


def netcdf_dataset(layouts: "Layouts", campaign: "Campaign | None", by_seed: bool) -> "xarray.Dataset":
    """What `Layouts.to_xarray` gives, with names, units and the coordinate system for other programs."""
    dataset = layouts.to_xarray(by_seed=by_seed)
    crs = crs_of(layouts, campaign)
    if campaign is not None:
        _add_campaign(dataset, campaign)
    for name, (long_name, standard_name) in NAMES.items():
        if name in dataset.variables:
            dataset[name].attrs["long_name"] = long_name
            if standard_name:
                dataset[name].attrs["standard_name"] = standard_name
    if crs:
        dataset[GRID_MAPPING] = ((), np.int32(0), grid_mapping(crs))
        for name in ("x", "y"):
            dataset[name].attrs["grid_mapping"] = GRID_MAPPING
    title = "Optimised wind-farm layouts" + (f": {campaign.name}" if campaign is not None else "")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    dataset.attrs = {
        "Conventions": "CF-1.11",
        "title": title,
        "source": f"leeward {__version__}",
        "history": f"{now} leeward {__version__}: exported from {printable(layouts.path.name)}",
        **({} if campaign is None else {"campaign_name": campaign.name}),
        **({"crs": crs} if crs else {}),
    }
    return dataset


def grid_mapping(crs: str) -> dict[str, Any]:
    """The attributes of a CF grid mapping variable, crs_wkt among them."""
    import pyproj

    return pyproj.CRS.from_user_input(crs).to_cf()


def _add_campaign(dataset: "xarray.Dataset", campaign: "Campaign") -> None:
    """Names by farm and type, and what is known of a turbine; blank where the campaign does not know them."""
    farms, types = dataset["farm_idx"].values.tolist(), dataset["type_idx"].values.tolist()
    dataset.coords["farm"] = ("farm_idx", [campaign.farms.get(farm, "") for farm in farms])
    dataset.coords["turbine_type"] = ("type_idx", [campaign.types.get(kind, "") for kind in types])
    known = {kind: campaign.physics.turbine(kind).hub_height_m for kind in set(types) & set(campaign.types)}
    dataset["hub_height"] = ("type_idx", [known.get(kind, np.nan) for kind in types], {"units": "m"})
    rated = {kind: campaign.physics.rated_power_mw(kind) for kind in known}
    dataset["rated_power"] = ("type_idx", [rated.get(kind, np.nan) for kind in types], {"units": "MW"})
    _fill_capacity(dataset)


def _fill_capacity(dataset: "xarray.Dataset") -> None:
    """Take the installed power from the campaign where the results and their own campaign do not tell it."""
    planned = (dataset["n_turbines"] * dataset["rated_power"]).where(dataset["n_turbines"] > 0)
    dataset["installed_mw"] = dataset["installed_mw"].fillna(planned)
    dataset["capacity_factor"] = dataset["aep"] / (GWH_PER_MW * dataset["installed_mw"])
    for name in ("installed_mw", "capacity_factor"):
        dataset[name].attrs["units"] = UNITS[name]
