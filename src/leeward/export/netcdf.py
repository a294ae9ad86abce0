"""Export layouts as a NetCDF file, farm × type × seed × turbine, with CF attributes."""

import io
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward import __version__
from leeward.capacity import GWH_PER_MW
from leeward.formats.rows import LAYOUT_COLUMNS
from leeward.store import UNITS
from leeward.wording import printable

if TYPE_CHECKING:
    import xarray

    from leeward.campaign import Campaign
    from leeward.export.write import Request

# long_name of each variable, and standard_name where CF has one
LONG_NAMES = {column.name: column.meaning for column in LAYOUT_COLUMNS} | {
    "x_m": "easting of the turbine",
    "y_m": "northing of the turbine",
    "aep_gwh": "annual energy production",
    "installed_mw": "installed power of the layout",
    "n_turbines": "number of turbines, 0 if there is no layout; x_m and y_m beyond it are NaN",
    "turbine": "number of the turbine in its layout",
    "key": "name of the layout, empty if there is none",
}
STANDARD_NAMES = {"x_m": "projection_x_coordinate", "y_m": "projection_y_coordinate", "hub_height_m": "height"}
GRID_MAPPING = "crs"
NO_NUMBER = -1


def netcdf_pieces(request: "Request") -> Iterator[bytes]:
    """Yield the whole file, built in memory, because libhdf5 can crash on a full disk."""
    dataset = netcdf_dataset(request)
    numbers = [name for name in dataset.variables if dataset[name].dtype.kind in "fi" and dataset[name].ndim]
    encoding: dict[Any, dict[str, Any]] = {name: {"zlib": True, "complevel": 4, "shuffle": True} for name in numbers}
    for name in ("steps", "seed"):
        if dataset[name].dtype.kind == "f":  # whole numbers, NaN if there is no layout
            encoding[name] |= {"dtype": "int64", "_FillValue": NO_NUMBER}
    content = io.BytesIO()
    dataset.to_netcdf(content, engine="h5netcdf", encoding=encoding)
    yield content.getvalue()


def netcdf_dataset(request: "Request") -> "xarray.Dataset":
    """Return `Layouts.to_xarray`, with names, units and the coordinate system added."""
    campaign, crs = request.known_campaign, request.crs
    dataset = request.layouts.to_xarray(by_seed=request.by_seed)
    if campaign is not None:
        _add_campaign(dataset, campaign)
    for name in LONG_NAMES.keys() & dataset.variables.keys():
        dataset[name].attrs["long_name"] = LONG_NAMES[name]
        if name in STANDARD_NAMES:
            dataset[name].attrs["standard_name"] = STANDARD_NAMES[name]
    if crs:
        import pyproj

        dataset[GRID_MAPPING] = ((), np.int32(0), pyproj.CRS.from_user_input(crs).to_cf())
        for name in ("x_m", "y_m"):
            dataset[name].attrs["grid_mapping"] = GRID_MAPPING
    title = "Optimised wind-farm layouts" + (f": {campaign.name}" if campaign is not None else "")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    dataset.attrs = {
        "Conventions": "CF-1.11",
        "title": title,
        "source": f"leeward {__version__}",
        "history": f"{now} leeward {__version__}: exported from {printable(request.layouts.path.name)}",
        **({} if campaign is None else {"campaign_name": campaign.name}),
        **({"crs": crs} if crs else {}),
    }
    return dataset


def _add_campaign(dataset: "xarray.Dataset", campaign: "Campaign") -> None:
    """Add names by farm and type, and turbine data; blank where the campaign does not have them."""
    farms, types = dataset["farm_idx"].values.tolist(), dataset["type_idx"].values.tolist()
    dataset.coords["farm"] = ("farm_idx", [campaign.farms.get(farm, "") for farm in farms])
    dataset.coords["turbine_type"] = ("type_idx", [campaign.types.get(kind, "") for kind in types])
    known = {kind: campaign.physics.turbine(kind).hub_height_m for kind in set(types) & set(campaign.types)}
    dataset["hub_height_m"] = ("type_idx", [known.get(kind, np.nan) for kind in types])
    rated = {kind: campaign.physics.rated_power_mw(kind) for kind in known}
    dataset["rated_power_mw"] = ("type_idx", [rated.get(kind, np.nan) for kind in types])
    # from this campaign if neither the results nor their own campaign give the installed power
    planned = (dataset["n_turbines"] * dataset["rated_power_mw"]).where(dataset["n_turbines"] > 0)
    dataset["installed_mw"] = dataset["installed_mw"].fillna(planned)
    dataset["capacity_factor"] = dataset["aep_gwh"] / (GWH_PER_MW * dataset["installed_mw"])
    for name in ("hub_height_m", "rated_power_mw", "installed_mw", "capacity_factor"):
        dataset[name].attrs["units"] = UNITS[name]
