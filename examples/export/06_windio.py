"""A windIO plant into PyWake: everything from the one YAML file.

    leeward export layouts.run --key farm0_t5_s0 -o plant.yaml
    python 06_windio.py plant.yaml AEP_GWH

Without AEP_GWH, the stored energy, which is in the comments of the file, it only prints PyWake's. The plant is
checked against the schema if windIO is installed.
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import yaml
from pywake_model import aep_gwh, compare

# the schema has names for wake models; these are the options that leeward has for them, unless the file says more
MODELS = {
    "TurbOPark": {
        "name": "nygaard_2022",
        "expansion": 0.04,
        "ambient_turbulence": 1.5,
        "added_turbulence": 0.8,
        "initial_width": 0.25,
        "thrust_limit": 0.96,
    },
    "Jensen": {"name": "jensen"},
}


def arrays_of(plant):
    """The arrays of the other examples, from a plant whose site is Weibull distributions."""
    wind = plant["site"]["energy_resource"]["wind_resource"]
    if {"x", "y", "height", "shear"} & set(wind):
        sys.exit("windIO: the wind of this plant varies over the site or with height, which this example does not read")
    runs = plant["attributes"]["model_outputs_specification"]["run_configuration"]
    deficit = plant["attributes"]["analysis"]["wind_deficit_model"]
    options = dict(MODELS[deficit["name"]])
    if "wake_expansion_coefficient" in deficit:
        options["expansion"] = deficit["wake_expansion_coefficient"]["k_a"]
    directions = np.array(runs["directions_run"]["specific_values"])
    speeds = np.array(runs["wind_speeds_run"]["specific_values"])
    return {
        "key": plant["name"],
        **machines_of(plant["wind_farm"]),
        "sector_frequency": np.array(wind["sector_probability"]["data"]),
        "weibull_a_m_s": np.array(wind["weibull_a"]["data"]),
        "weibull_k": np.array(wind["weibull_k"]["data"]),
        "sector_turbulence_intensity": np.array(wind["turbulence_intensity"]["data"]),
        "interpolation": "nearest",
        "wind_direction_deg": directions,
        "wind_speed_m_s": np.broadcast_to(speeds, (len(directions), len(speeds))),
        "wake_model": json.dumps(options),
    }


def machines_of(farm):
    """Turbines and their places; the second layout, if there is one, is that of the neighbours."""
    turbines = farm["turbine_types"].values() if "turbine_types" in farm else [farm["turbines"]]
    own, *others = farm["layouts"] if isinstance(farm["layouts"], list) else [farm["layouts"]]
    arrays = {
        "x_m": own["coordinates"]["x"],
        "y_m": own["coordinates"]["y"],
        "neighbour_x_m": [x for layout in others for x in layout["coordinates"]["x"]],
        "neighbour_y_m": [y for layout in others for y in layout["coordinates"]["y"]],
        "neighbour_type": [kind for layout in others for kind in layout["turbine_types"]],
        "turbine_name": [turbine["name"] for turbine in turbines],
        "rotor_diameter_m": [turbine["rotor_diameter"] for turbine in turbines],
        "hub_height_m": [turbine["hub_height"] for turbine in turbines],
    }
    for number, turbine in enumerate(turbines):
        curves = turbine["performance"]
        arrays[f"turbine{number}_wind_speed_m_s"] = np.array(curves["power_curve"]["power_wind_speeds"])
        arrays[f"turbine{number}_power_mw"] = 1e-6 * np.array(curves["power_curve"]["power_values"])
        arrays[f"turbine{number}_thrust_coefficient"] = np.array(curves["Ct_curve"]["Ct_values"])
    return arrays


if importlib.util.find_spec("windIO") is not None:
    import windIO

    windIO.validate(sys.argv[1], "plant/wind_energy_system")
plant = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))
arrays = arrays_of(plant)
x, y = np.array(arrays["x_m"]), np.array(arrays["y_m"])
if len(sys.argv) > 2:
    compare("windIO", {**arrays, "aep_gwh": float(sys.argv[2])}, x, y)
else:
    print(f"windIO: {plant['name']}, PyWake {aep_gwh(arrays, x, y):.6f} GWh")
