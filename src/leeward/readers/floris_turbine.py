"""Turbine files of FLORIS 4 (YAML)."""

from typing import Any

from leeward.readers.curves import by_speed, turbine_curves, with_standstill
from leeward.readers.document import Document

MW_PER_KW = 1e-3
STANDSTILL_THRUST = 0.0001  # what FLORIS assumes outside its table
# operation models that use the curves unchanged as long as the turbine is neither yawed nor derated
UNCHANGED = ("cosine-loss", "simple", "simple-derating", "mixed")


def read(document: Document) -> dict[str, Any]:
    """Return name, size and curves. As in FLORIS, the turbine has no power outside its table."""
    data = document.data
    operation = data.get("operation_model", "cosine-loss")
    if operation not in UNCHANGED:
        found = f"is {operation!r:.60}; expected one that keeps power and thrust: {', '.join(UNCHANGED)}"
        raise document.error(("operation_model",), found)
    for key in ("multi_dimensional_cp_ct", "correct_cp_ct_for_tilt"):
        if data.get(key):
            raise document.error((key,), "is not supported; expected one power and thrust curve")
    names = ("wind_speed", "power", "thrust_coefficient")
    columns = [document.numbers(("power_thrust_table", name)) for name in names]
    if len(set(map(len, columns))) > 1:
        counts = ", ".join(f"{len(values)} of {name}" for name, values in zip(names, columns, strict=True))
        raise document.error(("power_thrust_table",), f"has {counts}; expected the same number of each")
    speeds, power, thrust = by_speed(*columns)
    first, last = float(speeds[0]), float(speeds[-1])
    with document.at("power_thrust_table", "wind_speed"):
        curves = with_standstill(
            speeds, power * MW_PER_KW, thrust, cut_in=first, cut_out=last, idle_thrust=STANDSTILL_THRUST
        )
    sizes = {"rotor_diameter_m": data.get("rotor_diameter"), "hub_height_m": data.get("hub_height")}
    name = data.get("turbine_type")
    return {
        **({"name": name} if isinstance(name, str) and name else {}),
        **turbine_curves(*curves),
        **{key: float(value) for key, value in sizes.items() if isinstance(value, int | float)},
    }
