"""One layout with everything that its AEP depends on, for other programs, and a YAML writer.

Power curves become tables; the wind becomes a list of conditions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import yaml

from leeward.campaign.remarks import installed_of
from leeward.capacity import yield_words
from leeward.errors import InputError
from leeward.wind import Turbine, WakeModel
from leeward.wind.conditions import Conditions

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.layout import Area
    from leeward.store import Result

Array = npt.NDArray[np.float64]

CURVE_STEP_M_S = 0.002  # distance between the points that replace a curved piece of a power curve
FASTEST_M_S = 100.0  # curves end here for programs that assume 0 beyond the last point


@dataclass(frozen=True)
class Plant:
    """A layout, its turbine, its wind and its wake model.

    turbines: the type of the layout, then those of the neighbours. neighbour_types: an index into turbines for each
    neighbour. site: settings, as in a campaign file. fingerprint: "" for a layout of another program.
    """

    key: str
    campaign: str
    farm: str
    crs: str
    fingerprint: str
    aep_gwh: float
    installed_mw: float
    x: Array
    y: Array
    turbines: tuple[Turbine, ...]
    neighbour_x: Array
    neighbour_y: Array
    neighbour_types: tuple[int, ...]
    conditions: Conditions
    site: dict[str, Any]
    wake_model: WakeModel
    area: "Area"

    @property
    def energy_words(self) -> str:
        """Return AEP, installed power and capacity factor as text, for a comment."""
        return f"{self.aep_gwh!r} GWh; {yield_words(self.aep_gwh, self.installed_mw)}"

    @property
    def types(self) -> list[int]:
        """Return the index into `turbines` of each turbine, neighbours last."""
        return [0] * len(self.x) + list(self.neighbour_types)

    @property
    def wake_settings(self) -> dict[str, Any]:
        """Return the wake model as in a campaign file."""
        return {"name": self.wake_model.name, **vars(self.wake_model)}


def plant_of(result: "Result", campaign: "Campaign") -> Plant:
    """Return the plant of a result, or raise InputError if it was not made with the settings of this campaign."""
    key = result.key
    if key.farm_idx not in campaign.farms or key.type_idx not in campaign.types:
        raise InputError(
            f"{key}: its farm or turbine type is not in the campaign {campaign.name}; name another with --campaign"
        )
    expected = campaign.fingerprint(key.farm_idx, key.type_idx)
    if result.origin == "leeward" and result.fingerprint != expected:
        raise InputError(
            f"{key} was not made with the settings of the campaign {campaign.name}: its fingerprint is "
            f"{result.fingerprint[:12]}..., expected {expected[:12]}...; name the right campaign with --campaign"
        )
    problem = campaign.problem(key.farm_idx, key.type_idx)
    farm, turbine = problem.farm, campaign.physics.turbine(key.type_idx)
    near = farm.neighbours
    others = [] if near is None else [near.turbine] if isinstance(near.turbine, Turbine) else list(near.turbine)
    turbines = tuple(dict.fromkeys([turbine, *others]))
    return Plant(
        key=str(key),
        campaign=campaign.name,
        farm=campaign.farms[key.farm_idx],
        crs=campaign.crs or "",
        fingerprint=result.fingerprint,
        aep_gwh=float(result.aep_gwh),
        installed_mw=installed_of(campaign, result),
        x=result.x,
        y=result.y,
        turbines=turbines,
        neighbour_x=np.zeros(0) if near is None else np.asarray(near.x, dtype=np.float64),
        neighbour_y=np.zeros(0) if near is None else np.asarray(near.y, dtype=np.float64),
        neighbour_types=tuple(turbines.index(other) for other in others),
        conditions=farm.site.conditions,
        site=farm.site.settings(),
        wake_model=farm.wake_model,
        area=problem.area,
    )


def curve_points(turbine: Turbine) -> tuple[Array, Array, Array]:
    """Return wind speeds (m/s), power (MW) and thrust coefficients of points to interpolate linearly between.

    A piecewise linear curve keeps its points. A jump becomes two points at adjacent floats. A curved piece gets a point
    every 2 mm/s.
    """
    ends, coefficients = turbine.curve.ends[:-1], turbine.curve.coefficients
    speeds = [ends]
    for piece in range(1, len(ends)):
        if coefficients[piece, [3, 4, 7, 8]].any():
            steps = int(np.ceil((ends[piece] - ends[piece - 1]) / CURVE_STEP_M_S))
            speeds.append(np.linspace(ends[piece - 1], ends[piece], steps + 1))
    before = np.nextafter(ends, -np.inf)
    jumps = np.abs(np.array(turbine.curve(before)) - np.array(turbine.curve(ends))).max(axis=0) > 1e-6
    points = np.unique(np.concatenate([*speeds, before[jumps]]))
    power, thrust = turbine.curve(points)
    return points, power, thrust


def closed_curve_points(turbine: Turbine) -> tuple[Array, Array, Array]:
    """Return the same from 0 to 100 m/s, for programs that assume 0 outside the points."""
    speeds = curve_points(turbine)[0]
    first = [0.0] if speeds[0] > 0.0 else []
    last = [FASTEST_M_S] if speeds[-1] < FASTEST_M_S else []
    points = np.concatenate([first, speeds, last])
    return points, *turbine.curve(points)


class _Dumper(yaml.SafeDumper):
    """A dumper that uses aliases for repeated sections, such as turbines, but not for lists."""

    def ignore_aliases(self, data: Any) -> bool:
        return not isinstance(data, dict)


def _list(dumper: _Dumper, items: list[Any]) -> yaml.Node:
    is_flat = not any(isinstance(item, dict | list) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_flat)


_Dumper.add_representer(list, _list)


def yaml_bytes(comments: Sequence[str], data: dict[str, Any]) -> bytes:
    """Return data as YAML, comments first and each list of numbers on one line. Numbers round-trip exactly."""
    top = "".join(f"# {' '.join(line.split())}\n" for line in comments)
    return (top + yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)).encode()
