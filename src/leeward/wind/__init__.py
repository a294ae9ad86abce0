"""Sites, turbines, wake models, and the energy of layouts with its exact gradient."""

from leeward.wind.farm import Neighbours, WindFarm
from leeward.wind.field_data import Shear
from leeward.wind.rose import WindRose, wind_rose
from leeward.wind.simulation import Simulation
from leeward.wind.site import Site
from leeward.wind.turbine import Turbine
from leeward.wind.wake_models import WakeModel, known_wake_models

__all__ = [
    "Neighbours",
    "Shear",
    "Simulation",
    "Site",
    "Turbine",
    "WakeModel",
    "WindFarm",
    "WindRose",
    "known_wake_models",
    "wind_rose",
]
