"""Wind farms as models and input files of FLORIS 4.

FLORIS has its own wake models: the gross yield is the same, the net yield is that of the nearest model.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward import __version__
from leeward.errors import InputError
from leeward.peers.setup import Setup, closed_curve_points, setup
from leeward.wind import Turbine, WindFarm

AIR_DENSITY = 1.225  # kg/m3; the same for the curves and the air, so that FLORIS corrects nothing
# the closest velocity model, and how wakes are combined
NEAREST = {
    "nygaard_2022": ("turboparkgauss", "sosfs"),
    "jensen": ("jensen", "sosfs"),
    "bastankhah_gaussian": ("gauss", "sosfs"),
    "iea37_gaussian": ("gauss", "sosfs"),
    "no_wake": ("none", "sosfs"),
}


@dataclass(frozen=True)
class FlorisCase:
    """A `FlorisModel` with the wind of the site, and the weight of each turbine: 1 for the farm, 0 for neighbours.

    It unpacks into the two: `model, turbine_weights = case`. turbine_weights: shape (conditions, turbines).
    """

    model: Any
    turbine_weights: npt.NDArray[np.float64]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.model, self.turbine_weights))

    def aep_gwh(self) -> float:
        """Return FLORIS's AEP of the farm without its neighbours."""
        self.model.run()
        return float(self.model.get_farm_AEP(turbine_weights=self.turbine_weights)) * 1e-9


def to_floris(farm: WindFarm, x: npt.ArrayLike, y: npt.ArrayLike) -> FlorisCase:
    """Return a wind farm and a layout as a FLORIS model with the wind of the site. x, y: m."""
    return floris_case(setup(farm, x, y))


def floris_case(setup: Setup, name: str = "leeward") -> FlorisCase:
    """Return the farm as a FLORIS model. Raise InputError if FLORIS is not installed or has no such wake model."""
    try:
        from floris import FlorisModel
        from floris.wind_data import WindTIRose
    except ImportError as error:
        raise InputError("FLORIS is not installed; pip install 'floris>=4.6,<5'") from error
    rows = wind_rows(setup)
    direction, speed, intensity, weight = (np.array(column) for column in rows.values())

    class SiteWind(WindTIRose):  # type: ignore[misc]  # for other classes, FLORIS warns of uniform frequencies
        """The conditions of a site with their probabilities, which FLORIS's own classes would scale to a sum of 1."""

        def __init__(self) -> None:
            pass

        def unpack(self) -> Any:
            return direction, speed, intensity, weight, None, None

        def unpack_multidim_conditions(self) -> None:
            return None

    model = FlorisModel(floris_input(setup, name, f"written by leeward {__version__}"))
    model.set(wind_data=SiteWind())
    own = np.arange(len(setup.types)) < len(setup.x)
    return FlorisCase(model, np.broadcast_to(own.astype(np.float64), (len(weight), len(own))))


def wind_rows(setup: Setup) -> dict[str, list[float]]:
    """Return the wind conditions under the names that FLORIS expects in a CSV file of a wind rose."""
    setup.demand_uniform_wind("FLORIS")
    conditions = setup.conditions
    direction = np.broadcast_to(conditions.direction[:, None], conditions.speed.shape)
    columns = (direction, conditions.speed, conditions.turbulence_intensity, conditions.weight)
    names = ("wind_directions", "wind_speeds", "turbulence_intensities", "freq")
    return {name: values.ravel().tolist() for name, values in zip(names, columns, strict=True)}


def floris_input(setup: Setup, name: str, description: str) -> dict[str, Any]:
    """Return the input of `FlorisModel`. No shear: the site's hub-height wind speed holds over the whole rotor."""
    machines = [_turbine(turbine, number) for number, turbine in enumerate(setup.turbines)]
    wind = wind_rows(setup)
    return {
        "name": name,
        "description": description,
        "floris_version": "v4",
        "logging": {
            "console": {"enable": True, "level": "WARNING"},
            "file": {"enable": False, "level": "WARNING"},
        },
        "solver": {"type": "turbine_grid", "turbine_grid_points": 3},
        "farm": {
            "layout_x": np.concatenate([setup.x, setup.neighbour_x]).tolist(),
            "layout_y": np.concatenate([setup.y, setup.neighbour_y]).tolist(),
            "turbine_type": machines[:1] if len(machines) == 1 else [machines[kind] for kind in setup.types],
        },
        "flow_field": {
            "air_density": AIR_DENSITY,
            "reference_wind_height": setup.turbines[0].hub_height_m,
            "wind_shear": 0.0,
            "wind_veer": 0.0,
            **{key: wind[key] for key in ("wind_directions", "wind_speeds", "turbulence_intensities")},
        },
        "wake": _wake(setup, name),
    }


def _turbine(turbine: Turbine, number: int) -> dict[str, Any]:
    speeds, power, thrust = closed_curve_points(turbine)
    return {
        "turbine_type": f"{turbine.name} ({number})",
        "hub_height": turbine.hub_height_m,
        "rotor_diameter": turbine.rotor_diameter_m,
        "TSR": 8.0,  # for wake steering only
        "operation_model": "simple",
        "power_thrust_table": {
            "ref_air_density": AIR_DENSITY,
            "ref_tilt": 0.0,
            "wind_speed": speeds.tolist(),
            "power": (1e3 * power).tolist(),
            "thrust_coefficient": thrust.tolist(),
        },
    }


def _wake(setup: Setup, label: str) -> dict[str, Any]:
    name = setup.wake_model.name
    if name not in NEAREST:
        raise InputError(
            f"{label}: the wake model {name} has no counterpart in FLORIS; use one of {', '.join(NEAREST)}, or "
            "another format, such as windio"
        )
    velocity, combination = NEAREST[name]
    settings = setup.wake_settings
    own: dict[str, dict[str, Any]] = {
        "turboparkgauss": {"A": settings.get("expansion", 0.04), "include_mirror_wake": True},
        "jensen": {"we": settings.get("expansion", 0.1)},
    }
    if settings.get("superposition") == "linear":
        combination = "fls"
    return {
        "model_strings": {
            "combination_model": combination,
            "deflection_model": "none",
            "turbulence_model": "none",
            "velocity_model": velocity,
        },
        "enable_secondary_steering": False,
        "enable_yaw_added_recovery": False,
        "enable_transverse_velocities": False,
        "enable_active_wake_mixing": False,
        "wake_velocity_parameters": {velocity: own.get(velocity, {})},  # FLORIS defaults for the rest
        "wake_deflection_parameters": {},
        "wake_turbulence_parameters": {},
    }
