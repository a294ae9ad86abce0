"""Turbine objects of PyWake."""

from typing import Any

import numpy as np

from leeward.errors import InputError
from leeward.readers.curves import turbine_curves

SAMPLE_STEP_M_S = 0.01
FASTEST_M_S = 50.0  # of curves without a table
MW_PER_W = 1e-6


def pywake_curves(turbines: Any, kind: int) -> dict[str, Any]:
    """Return name, size and curves of one of PyWake's turbines. kind: its number in `WindTurbines`."""
    for method in ("power", "ct", "diameter", "hub_height", "name"):
        if not callable(getattr(turbines, method, None)):
            raise InputError(f"{turbines!r:.60} has no {method}(); expected a turbine of PyWake, such as V80()")
    names = list(np.atleast_1d(turbines.name(np.arange(len(turbines._names)))))
    if not 0 <= kind < len(names):
        raise InputError(f"type is {kind}; PyWake's turbines have the types 0 to {len(names) - 1}")
    function = turbines.powerCtFunction
    if hasattr(function, "windTurbineFunction_lst") and getattr(function, "key", "") == "type":
        function = function.windTurbineFunction_lst[kind]
    needed = [key for key in getattr(function, "required_inputs", []) if key not in ("ws", "type")]
    if needed:
        raise InputError(
            f"{names[kind]}: its curves depend on {', '.join(needed)}; expected curves of wind speed alone"
        )
    speeds = np.asarray(getattr(function, "ws_tab", (0.0, FASTEST_M_S)), dtype=np.float64)
    if getattr(function, "method", "") != "linear" or not hasattr(function, "ws_tab"):
        steps = np.arange(speeds[0], speeds[-1], SAMPLE_STEP_M_S)
        speeds = np.union1d(steps, speeds)  # a smooth curve is not extrapolated beyond its table
    which = {"type": kind} if len(names) > 1 else {}
    return {
        "name": str(names[kind]),
        **turbine_curves(
            speeds,
            np.asarray(turbines.power(speeds, **which)) * MW_PER_W,
            np.asarray(turbines.ct(speeds, **which)),
        ),
        "rotor_diameter_m": float(turbines.diameter(kind)),
        "hub_height_m": float(turbines.hub_height(kind)),
    }
