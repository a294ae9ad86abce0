"""A campaign of two farms in wind that varies over the site, for tests of maps of the wind."""

from pathlib import Path

import numpy as np
import yaml

import field_cases as cases
from run_cases import make_campaign

X = cases.EAST + np.array([0.0, 4000.0, 8000.0, 12_000.0, 16_000.0])  # farms of `make_campaign` are 5 km wide
Y = cases.NORTH + np.array([0.0, 4000.0, 8000.0, 12_000.0])
TYPES = [
    {"name": "low", "rated_power_mw": 5, "rotor_diameter_m": 130, "hub_height_m": 100},
    {"name": "high", "rated_power_mw": 5, "rotor_diameter_m": 130, "hub_height_m": 140},
]


def square(name, east, north, side):
    """A farm whose lower left corner is there, m from that of the grid."""
    left, low = cases.EAST + east, cases.NORTH + north
    corners = ((left, low), (left + side, low), (left + side, low + side), (left, low + side))
    return {"name": name, "polygon_m": [list(corner) for corner in corners]}


def make_field_campaign(folder: Path, dataset=None, **changes) -> Path:
    """The campaign file, with the wind beside it. dataset: replaces the wind, of Weibull distributions on a grid."""
    data = cases.with_elevation(cases.weibull_field(X, Y), X, Y) if dataset is None else dataset
    data.to_netcdf(folder / "wind.nc", engine="h5netcdf")
    directions, speeds = [15.0 * i for i in range(24)], [5.0, 8.0, 11.0, 14.0]
    site = {"file": "wind.nc", "wind_directions_deg": directions, "wind_speeds_m_s": speeds}
    farms = [square("west", 300.0, 500.0, 5000.0), square("east", 9000.0, 6000.0, 5000.0)]
    beside = [{"x_m": [cases.EAST + 7900.0], "y_m": [cases.NORTH + 600.0], "turbine": 0}]
    path = make_campaign(folder, **{"site": site, "turbines": TYPES, "neighbours": beside, "seeds": 2, **changes})
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "farms": farms}))
    return path
