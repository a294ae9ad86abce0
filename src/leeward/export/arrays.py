"""Export one layout as plain arrays, to build PyWake and FLORIS models from: .npz, or .json with the same names."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward import __version__
from leeward.capacity import capacity_factor
from leeward.export.plant import Plant
from leeward.peers.setup import curve_points
from leeward.wording import json_text

if TYPE_CHECKING:
    from leeward.export.write import Request


def array_pieces(request: "Request") -> Iterator[bytes]:
    """Yield the whole file, .npz or .json, depending on the file extension.

    Nothing is pickled; in .npz, texts are zero-dimensional arrays. In .json, an unknown AEP is null.
    """
    found = arrays(request.plant)
    if request.ending == ".json":
        plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}
        yield (json_text(plain) + "\n").encode()
        return
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **{name: np.asarray(value) for name, value in found.items()})
    yield content.getvalue()


def arrays(plant: Plant) -> dict[str, Any]:
    """Return the arrays by name. The names contain the units; `docs/export.md` lists the shapes."""
    conditions = plant.conditions
    found: dict[str, Any] = {
        "source": f"leeward {__version__}",
        "campaign": plant.campaign,
        "key": plant.key,
        "farm": plant.farm_name,
        "crs": plant.crs,
        "fingerprint": plant.fingerprint,
        "aep_gwh": plant.aep_gwh,
        "installed_mw": plant.installed_mw,
        "capacity_factor": capacity_factor(plant.aep_gwh, plant.installed_mw),
        "x_m": plant.x,
        "y_m": plant.y,
        "neighbour_x_m": plant.neighbour_x,
        "neighbour_y_m": plant.neighbour_y,
        "neighbour_type": np.array(plant.neighbour_types, dtype=np.int64),
        "turbine_name": np.array([turbine.name for turbine in plant.turbines]),
        "rotor_diameter_m": np.array([turbine.rotor_diameter_m for turbine in plant.turbines]),
        "hub_height_m": np.array([turbine.hub_height_m for turbine in plant.turbines]),
    }
    for number, turbine in enumerate(plant.turbines):
        names = ("wind_speed_m_s", "power_mw", "thrust_coefficient")
        curve = zip(names, curve_points(turbine), strict=True)
        found |= {f"turbine{number}_{name}": values for name, values in curve}
    found |= {
        "wind_direction_deg": conditions.direction,
        "wind_speed_m_s": conditions.speed,
        "probability": conditions.weight,
        "turbulence_intensity": conditions.turbulence_intensity,
        "wake_model": json_text(plant.wake_settings),
    }
    if plant.farm.site.field is not None:
        found |= plant.farm.local_wind(plant.x, plant.y)
    if "weibull_k" in plant.site:
        sectors = ("sector_frequency", "weibull_a_m_s", "weibull_k")
        found |= {name: np.array(plant.site[name]) for name in sectors}
        found["sector_turbulence_intensity"] = np.array(plant.site["turbulence_intensity"])
        found["interpolation"] = plant.site["interpolation"]
    return found
