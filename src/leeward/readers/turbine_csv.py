"""Power and thrust curves in a CSV file with commas or semicolons."""

import re
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.readers.tables import Table, read_table

MW_PER_UNIT = {"w": 1e-6, "kw": 1e-3, "mw": 1.0}
SPEED = ("wind_speed", "wind_speeds", "windspeed", "ws", "speed")
POWER = ("power", "p", "power_output")
THRUST = ("thrust_coefficient", "ct", "thrust_coeff", "c_t")
SPEED_UNITS = ("m_s", "ms", "mps", "m_per_s")
WHAT = "the curves of a turbine as a table with the columns wind_speed_m_s, power_kw and thrust_coefficient"


def read(path: Path, power_unit: str | None = None) -> dict[str, Any]:
    """Return the curves of a CSV file. power_unit: of the column of powers, if its name lacks a unit."""
    table = read_table(path, WHAT, lambda name: True)
    speed, speed_unit = _column(table, "wind speeds", SPEED, SPEED_UNITS)
    if speed_unit not in ("", *SPEED_UNITS):
        raise InputError(f"{path}: the column {speed!r} is in {speed_unit}; expected wind speeds in m/s")
    if power_unit is not None and str(power_unit).lower() not in MW_PER_UNIT:
        raise InputError(f"{path}: power_unit is {power_unit!r:.40}; expected W, kW or MW")
    power, unit = _column(table, "powers", POWER, tuple(MW_PER_UNIT))
    thrust, _ = _column(table, "thrust coefficients", THRUST, ())
    if power_unit is not None and unit and unit != power_unit.lower():
        raise InputError(f"{path}: the column {power!r} and power_unit {power_unit} contradict each other; remove one")
    factor = MW_PER_UNIT.get(unit or (power_unit or "").lower())
    if factor is None:
        raise InputError(
            f"{path}: the unit of the column {power!r} is {unit or power_unit or 'not known'}; expected W, kW or MW: "
            "rename the column, for example to power_kw, or set power_unit"
        )
    return {
        "wind_speeds_m_s": table.numbers(speed),
        "power_mw": [value * factor for value in table.numbers(power)],
        "thrust_coefficient": table.numbers(thrust),
    }


def _column(table: Table, what: str, names: tuple[str, ...], units: tuple[str, ...]) -> tuple[str, str]:
    """Return the only column with one of these names, and its unit in lower case, "" if the name has none."""
    found = [(column, unit) for column in table.names for name, unit in [_parsed(column, units)] if name in names]
    if len(found) != 1:
        known = ", ".join(table.names)
        count = "no column" if not found else f"{len(found)} columns ({', '.join(name for name, _ in found)})"
        raise InputError(f"{table.path}: {count} of {what}; found {known}; expected one, such as {names[0]}")
    return found[0]


def _parsed(column: str, units: tuple[str, ...]) -> tuple[str, str]:
    """Return name and unit of a header such as `Power [kW]`, `power_kw` or `ct`."""
    bracket = re.fullmatch(r"\s*(.*?)\s*[\[(]\s*(.*?)\s*[\])]\s*", column)
    text, unit = (bracket[1], bracket[2]) if bracket else (column, "")
    name, unit = (re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in (text, unit))
    for known in units:
        if not unit and name.endswith(f"_{known}"):
            return name.removesuffix(f"_{known}"), known
    return name, unit
