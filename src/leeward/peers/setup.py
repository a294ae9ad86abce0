"""A wind farm and a layout, in the terms that other programs share: turbine types, positions and wind conditions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind import Turbine, WakeModel, WindFarm
from leeward.wind.checks import positions
from leeward.wind.conditions import Conditions

Array = npt.NDArray[np.float64]

CURVE_STEP_M_S = 0.002  # distance between the points that replace a curved piece of a power curve
FASTEST_M_S = 100.0  # curves end here for programs that assume 0 beyond the last point


@dataclass(frozen=True)
class Setup:
    """A layout and everything that its AEP depends on. x, y: of the farm's own turbines, m."""

    farm: WindFarm
    x: Array
    y: Array

    @cached_property
    def turbines(self) -> tuple[Turbine, ...]:
        """The turbine types: those of the layout, then those of the neighbours."""
        return tuple(dict.fromkeys([*self._own, *self._others]))

    @cached_property
    def neighbour_x(self) -> Array:
        near = self.farm.neighbours
        return np.zeros(0) if near is None else np.asarray(near.x, dtype=np.float64)

    @cached_property
    def neighbour_y(self) -> Array:
        near = self.farm.neighbours
        return np.zeros(0) if near is None else np.asarray(near.y, dtype=np.float64)

    @property
    def neighbour_types(self) -> list[int]:
        """The index into `turbines` of each neighbour."""
        return [self.turbines.index(turbine) for turbine in self._others]

    @property
    def types(self) -> list[int]:
        """The index into `turbines` of each turbine, neighbours last."""
        own = self._own * len(self.x) if isinstance(self.farm.turbine, Turbine) else self._own
        return [self.turbines.index(turbine) for turbine in own] + self.neighbour_types

    @property
    def conditions(self) -> Conditions:
        return self.farm.site.conditions

    def demand_uniform_wind(self, program: str) -> None:
        """Raise InputError if the wind varies over the site, which a wind rose of `program` cannot express."""
        if self.farm.site.field is not None:
            raise InputError(
                f"the wind varies over the site or with height, which the wind rose of {program} cannot express; "
                "export arrays (.npz), or use to_pywake"
            )

    @property
    def wake_model(self) -> WakeModel:
        return self.farm.wake_model

    @property
    def wake_settings(self) -> dict[str, Any]:
        """The wake model as in a campaign file."""
        return {"name": self.wake_model.name, **vars(self.wake_model)}

    @property
    def _own(self) -> list[Turbine]:
        turbine = self.farm.turbine
        return [turbine] if isinstance(turbine, Turbine) else list(turbine)

    @property
    def _others(self) -> list[Turbine]:
        near = self.farm.neighbours
        return [] if near is None else [near.turbine] if isinstance(near.turbine, Turbine) else list(near.turbine)


def setup(farm: WindFarm, x: npt.ArrayLike, y: npt.ArrayLike) -> Setup:
    """Return a farm and the positions of its turbines (m), checked. No positions: neighbours only."""
    east, north = positions(x, y) if np.size(x) or np.size(y) else (np.zeros(0), np.zeros(0))
    if not isinstance(farm.turbine, Turbine) and len(east) != len(farm.turbine):
        raise InputError(f"{len(farm.turbine)} turbines for {len(east)} positions; expected one for each")
    return Setup(farm, east, north)


def is_straight(turbine: Turbine) -> bool:
    """Return whether the curves are straight lines between their points."""
    return not turbine.curve.coefficients[:, [3, 4, 7, 8]].any()


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
