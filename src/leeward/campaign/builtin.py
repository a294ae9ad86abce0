"""The built-in case: ten tender areas of the Danish energy island in the North Sea, six generic turbines."""

import json
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from leeward.errors import InputError
from leeward.layout import Area
from leeward.wind import Site, Turbine

_DATA = files("leeward.campaign") / "danish_energy_island"


def figures(name: str) -> Any:
    """Return the contents of one of the YAML files."""
    return yaml.safe_load((_DATA / name).read_text(encoding="utf-8"))


def site() -> Site:
    """Return the site: sector-wise Weibull distributions at 150 m."""
    wind = figures("site.yaml")
    return Site.from_weibull(
        wind["sector_frequency"],
        wind["weibull_a_m_s"],
        wind["weibull_k"],
        wind["turbulence_intensity"],
        speeds=wind["wind_speed_bins_m_s"],
    )


def area(farm_idx: int) -> Area:
    """Return one of the tender areas, by its number from 0; EPSG:25831."""
    collection = json.loads((_DATA / "farms.geojson").read_text(encoding="utf-8"))
    count = len(collection["features"])
    if isinstance(farm_idx, bool) or farm_idx not in range(count):
        raise InputError(f"farm_idx is {farm_idx!r}; expected one of the {count} built-in areas, from 0 to {count - 1}")
    return Area.from_geojson(collection, farm_idx=farm_idx)


def turbines() -> list[Turbine]:
    """Return six generic turbines of 10 to 15 MW."""
    return [
        Turbine.generic(
            t["rated_power_mw"], t["rotor_diameter_m"], t["hub_height_m"], name=f"generic {t['rated_power_mw']} MW"
        )
        for t in figures("turbines.yaml")["turbines"]
    ]


def example_layout() -> tuple[str, Turbine, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return area, turbine, x and y (m, EPSG:25831) of a layout for the first area, made by TopFarm's SmartStart."""
    layout = json.loads((_DATA / "example_layout.json").read_text(encoding="utf-8"))
    return layout["farm_name"], turbines()[layout["type"]], np.array(layout["x_m"]), np.array(layout["y_m"])
