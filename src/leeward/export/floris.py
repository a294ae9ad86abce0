"""Export one layout as an input file of FLORIS 4, for `FlorisModel`.

The input has no probabilities: take them from the array `probability` of the format `arrays`, in the same order. FLORIS
uses its own wake models; the gross yield is the same.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward import __version__
from leeward.errors import InputError
from leeward.export.plant import Plant, closed_curve_points, yaml_bytes

if TYPE_CHECKING:
    from leeward.export.write import Request
    from leeward.wind import Turbine

AIR_DENSITY = 1.225  # kg/m3; the same for the curves and the air, so that FLORIS corrects nothing
# the closest velocity model, and how wakes are combined
NEAREST = {
    "nygaard_2022": ("turboparkgauss", "sosfs"),
    "jensen": ("jensen", "sosfs"),
    "bastankhah_gaussian": ("gauss", "sosfs"),
    "iea37_gaussian": ("gauss", "sosfs"),
    "no_wake": ("none", "sosfs"),
}


def floris_pieces(request: "Request") -> Iterator[bytes]:
    """Yield the whole file."""
    yield yaml_bytes(_comments(request.plant), floris_input(request.plant))


def floris_input(plant: Plant) -> dict[str, Any]:
    """Return the input of `FlorisModel`. No shear: the site's hub-height wind speed holds over the whole rotor."""
    conditions = plant.conditions
    directions = np.broadcast_to(conditions.direction[:, None], conditions.speed.shape)
    machines = [_turbine(turbine, number) for number, turbine in enumerate(plant.turbines)]
    return {
        "name": f"{plant.campaign}, {plant.key}",
        "description": f"{plant.farm}, written by leeward {__version__}",
        "floris_version": "v4",
        "logging": {
            "console": {"enable": True, "level": "WARNING"},
            "file": {"enable": False, "level": "WARNING"},
        },
        "solver": {"type": "turbine_grid", "turbine_grid_points": 3},
        "farm": {
            "layout_x": np.concatenate([plant.x, plant.neighbour_x]).tolist(),
            "layout_y": np.concatenate([plant.y, plant.neighbour_y]).tolist(),
            "turbine_type": machines[:1] if len(machines) == 1 else [machines[kind] for kind in plant.types],
        },
        "flow_field": {
            "air_density": AIR_DENSITY,
            "reference_wind_height": plant.turbines[0].hub_height_m,
            "wind_shear": 0.0,
            "wind_veer": 0.0,
            "wind_directions": directions.ravel().tolist(),
            "wind_speeds": conditions.speed.ravel().tolist(),
            "turbulence_intensities": conditions.turbulence_intensity.ravel().tolist(),
        },
        "wake": _wake(plant),
    }


def _comments(plant: Plant) -> list[str]:
    known = [
        f"{plant.key} of the campaign {plant.campaign}, as a FLORIS 4 input; written by leeward {__version__}",
        f"annual energy production: {plant.energy_words}; with leeward's wake model {plant.wake_model.name}; "
        "FLORIS has its own wake models, which give a different AEP",
        "flow_field has every condition of the site; FLORIS needs their probabilities separately: the array "
        "probability of `leeward export -o FILE.npz`, in the same order",
    ]
    if len(plant.neighbour_x):
        known.append(f"the last {len(plant.neighbour_x)} turbines are neighbours: give them weight 0")
    return known


def _turbine(turbine: "Turbine", number: int) -> dict[str, Any]:
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


def _wake(plant: Plant) -> dict[str, Any]:
    name = plant.wake_model.name
    if name not in NEAREST:
        raise InputError(
            f"{plant.key}: the wake model {name} has no counterpart in FLORIS; use one of {', '.join(NEAREST)}, or "
            "another format, such as windio"
        )
    velocity, combination = NEAREST[name]
    settings = plant.wake_settings
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
