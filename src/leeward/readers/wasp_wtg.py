"""WAsP wind turbine generator files (.wtg, XML)."""

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from leeward.errors import InputError
from leeward.readers.curves import MW_PER_W, by_speed, turbine_curves, with_standstill

LARGEST = 16_000_000  # bytes


def read(path: Path, mode: int | None = None, *, has_height: bool = False) -> dict[str, Any]:
    """Return name, size and curves. mode: the number of the performance table, from 0, if there are several.

    has_height: the user gives the hub height. As in PyWake, the thrust coefficient of a turbine that stands still is
    that of the fastest wind in the table.
    """
    root = _root(path)
    tables = list(root.iter("PerformanceTable"))
    if not tables:
        raise InputError(f"{path}: has no PerformanceTable; expected a WAsP wind turbine generator")
    if mode is not None and (isinstance(mode, bool) or not isinstance(mode, int)):
        raise InputError(f"{path}: mode is {mode!r:.40}; expected a whole number")
    if mode is None and len(tables) > 1:
        listed = "; ".join(f"{i}: air density {table.get('AirDensity', '?')} kg/m3" for i, table in enumerate(tables))
        raise InputError(f"{path}: has {len(tables)} performance tables ({listed}); choose one with mode, such as 0")
    if not 0 <= (mode or 0) < len(tables):
        raise InputError(f"{path}: has no performance table {mode}; expected a mode from 0 to {len(tables) - 1}")
    table = tables[mode or 0]
    points = list(table.iter("DataPoint"))
    if len(points) < 2:
        raise InputError(f"{path}: the performance table has {len(points)} data point(s); expected at least 2")
    columns = [
        [_number(path, point, name) for point in points] for name in ("WindSpeed", "PowerOutput", "ThrustCoEfficient")
    ]
    speeds, power, thrust = by_speed(*columns)
    strategy = table.find("StartStopStrategy")
    limits = (None, None) if strategy is None else tuple(_limit(path, strategy, name) for name in _LIMITS)
    try:
        curves = with_standstill(
            speeds,
            power * MW_PER_W,
            thrust,
            cut_in=limits[0],
            cut_out=limits[1],
            idle_thrust=float(thrust[-1]),
            has_ramps=True,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    found: dict[str, Any] = turbine_curves(*curves)
    found["rotor_diameter_m"] = _number(path, root, "RotorDiameter")
    heights = [each.text for each in root.iter("Height")]
    if len(heights) == 1:
        found["hub_height_m"] = _as_number(path, "SuggestedHeights", heights[0])
    elif heights and not has_height:
        listed = ", ".join(str(height) for height in heights)
        raise InputError(f"{path}: suggests several hub heights, {listed} m; choose one with hub_height_m")
    name = (root.get("Description") or "").strip()
    return {"name": name, **found} if name else found


_LIMITS = ("LowSpeedCutIn", "HighSpeedCutOut")


def _root(path: Path) -> ElementTree.Element:
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a WAsP .wtg file")
    content = path.read_bytes()[: LARGEST + 1]
    if len(content) > LARGEST:
        raise InputError(f"{path}: is larger than {LARGEST // 10**6} MB; expected a WAsP .wtg file")
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InputError(f"{path}: cannot be read as XML ({error}); expected a WAsP .wtg file") from error
    if root.tag != "WindTurbineGenerator":
        raise InputError(f"{path}: its root element is {root.tag:.60}; expected WindTurbineGenerator")
    return root


def _limit(path: Path, strategy: ElementTree.Element, name: str) -> float | None:
    return None if strategy.get(name) is None else _number(path, strategy, name)


def _number(path: Path, element: ElementTree.Element, name: str) -> float:
    return _as_number(path, f"{element.tag} {name}", element.get(name))


def _as_number(path: Path, where: str, text: str | None) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{path}: {where} is {text!r:.60}; expected a number")
    return number
