"""The outputs of WIFA's wake tools: the power and wind speed of each turbine in each condition, as NetCDF."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward import __version__
from leeward.export.plant import yaml_bytes
from leeward.export.write import write_pieces

if TYPE_CHECKING:
    import xarray

    from leeward.readers.windio_plant import WindioPlant
    from leeward.wind import Simulation

TURBINE_FILE = "PowerTable.nc"
INPUT_FILE = "recorded_inputs.yaml"
OUTPUTS = ("attributes", "model_outputs_specification", "turbine_outputs", "turbine_nc_filename")
W_PER_MW = 1e6
TEXTS = {  # description and unit of each variable, as WIFA describes them
    "power": ("Power [W]", "W"),
    "effective_wind_speed": ("Effective local wind speed [m/s]", "m/s"),
    "turbine": ("Wind turbine number", ""),
    "type": ("Wind turbine type", ""),
    "wd": ("Ambient reference wind direction [deg]", "deg"),
    "ws": ("Ambient reference wind speed [m/s]", "m/s"),
}


def write_wifa_output(folder: Path, plant: "WindioPlant", simulation: "Simulation") -> None:
    """Write the files of WIFA into a folder. simulation: with `per_condition`."""
    folder.mkdir(parents=True, exist_ok=True)
    data = io.BytesIO()
    turbine_data(plant, simulation).to_netcdf(data, engine="h5netcdf")
    name = _turbine_file(plant.data)
    index = f"power_table: !include {name}\nwind_energy_system: !include {INPUT_FILE}\n"
    comments = [f"the plant that leeward {__version__} evaluated, without references to other files"]
    contents = {
        name: data.getvalue(),
        INPUT_FILE: yaml_bytes(comments, plant.data),
        "output.yaml": index.encode(),
    }
    for file, content in contents.items():
        write_pieces(folder / file, iter([content]))


def turbine_data(plant: "WindioPlant", simulation: "Simulation") -> "xarray.Dataset":
    """Return power and effective wind speed of each turbine: by direction and speed, or by time for a series."""
    import xarray

    if simulation.condition_power_mw is None or simulation.condition_speed_m_s is None:
        raise TypeError("expected a simulation with per_condition=True")
    conditions = simulation.conditions
    power, speed = simulation.condition_power_mw * W_PER_MW, simulation.condition_speed_m_s
    is_series = (conditions.speed.shape[1] == 1 and bool(np.ptp(conditions.speed))) or plant.wind.is_series
    coordinates: dict[str, Any]
    if is_series:
        dims: tuple[str, ...] = ("turbine", "time")
        power, speed = power[:, :, 0], speed[:, :, 0]
        wind = {"wd": ("time", conditions.direction), "ws": ("time", conditions.speed[:, 0])}
        coordinates = {"time": np.arange(power.shape[1]), **wind}
    else:
        dims = ("turbine", "wd", "ws")
        coordinates = {"wd": conditions.direction, "ws": conditions.speed[0]}
    kinds = np.array(plant.layouts[0].types, dtype=np.int64)
    coordinates |= {"turbine": np.arange(len(kinds)), "type": ("turbine", kinds)}
    dataset = xarray.Dataset({"power": (dims, power), "effective_wind_speed": (dims, speed)}, coords=coordinates)
    for name, (description, unit) in TEXTS.items():
        dataset[name].attrs = {"Description": description} | ({"units": unit} if unit else {})
    return dataset


def _turbine_file(data: Any) -> str:
    """Return the name of the turbine file that the plant asks for."""
    for step in OUTPUTS:
        data = data.get(step, {}) if isinstance(data, dict) else {}
    return Path(data).name if isinstance(data, str) and Path(data).name else TURBINE_FILE
