"""Turbine objects of PyWake."""

from typing import Any

import numpy as np

from leeward.errors import InputError
from leeward.readers.curves import MW_PER_W, turbine_curves

SAMPLE_STEP_M_S = 0.01
FASTEST_M_S = 50.0  # of curves without a table


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
    is_table = getattr(function, "method", "") == "linear" and hasattr(function, "ws_tab")
    speeds = np.asarray(getattr(function, "ws_tab", (0.0, FASTEST_M_S)), dtype=np.float64)
    if not is_table:
        steps = np.arange(speeds[0], speeds[-1], SAMPLE_STEP_M_S)
        speeds = np.union1d(steps, speeds)  # a smooth curve is not extrapolated beyond its table
    which = {"type": kind} if len(names) > 1 else {}
    if is_table:  # two points at one speed are a jump
        power, thrust = function.power_ct_tab
        scale = _scale(turbines, which, speeds, power)
        curves = turbine_curves(speeds, np.asarray(power) * scale, thrust)
    else:
        power_w, thrust = turbines.power(speeds, **which), turbines.ct(speeds, **which)
        curves = turbine_curves(speeds, np.asarray(power_w) * MW_PER_W, np.asarray(thrust))
    return {
        "name": str(names[kind]),
        **curves,
        "rotor_diameter_m": float(turbines.diameter(kind)),
        "hub_height_m": float(turbines.hub_height(kind)),
    }


def _scale(turbines: Any, which: dict[str, int], speeds: Any, power: Any) -> float:
    """Return MW per unit of the powers in a table."""
    best = int(np.argmax(power))
    largest = float(np.max(turbines.power(np.asarray(speeds)[best : best + 1], **which)))
    return MW_PER_W * largest / float(power[best]) if power[best] > 0.0 else MW_PER_W
