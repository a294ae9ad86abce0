"""Flow maps: the wind speed between the turbines of a layout, in one wind condition or on average."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import coordinates, finite, positive, turbulence
from leeward.wind.conditions import Conditions
from leeward.wind.engine import NO_PLACES, Block, Engine, blocks, wind_of
from leeward.wind.kernels.data import Places
from leeward.wind.turbine import Turbine

Array = npt.NDArray[np.float64]
InOrder = Callable[[Callable[[Block], Array], Iterable[Block]], Iterable[Array]]


class Flow:
    """The wind in a layout, wakes of neighbours included. Made by `WindFarm.flow`.

    at_x, at_y of every method: points, in metres, of any shape; the result has the same shape. Points may coincide with
    each other and with turbines. The wind speed is that at the point itself, not averaged over a rotor.
    height_m: above the ground; by default the mean hub height of the farm's turbines. The free wind is the same at
    every height, because sites have no shear.
    """

    def __init__(
        self,
        engine: Engine,
        conditions: Conditions,
        placed: Places,
        farm_turbines: Sequence[Turbine],
        in_order: InOrder,
    ) -> None:
        """placed: all turbines, neighbours included. in_order: a `map` that may use threads."""
        self._engine = engine
        self._conditions = conditions
        self._placed = placed
        self._farm_turbines = list(farm_turbines)
        self._in_order = in_order

    def speed(
        self,
        at_x: npt.ArrayLike,
        at_y: npt.ArrayLike,
        *,
        direction_deg: float,
        speed_m_s: float,
        height_m: float | None = None,
        turbulence_intensity: float | None = None,
    ) -> Array:
        """Return the wind speed (m/s) at each point while the free wind comes from `direction_deg` with `speed_m_s`.

        turbulence_intensity: a fraction; by default that of the site's condition nearest in direction, then in speed.
        """
        direction = finite(direction_deg, "direction_deg") % 360.0
        speed = positive(speed_m_s, "speed_m_s")
        if turbulence_intensity is None:
            intensity = self._turbulence_at(direction, speed)
        else:
            intensity = float(turbulence(float(turbulence_intensity), "turbulence_intensity"))
        one = Conditions(np.array([direction]), np.array([[speed]]), np.array([[1.0]]), np.array([[intensity]]))
        return self._weighted(one, self._engine.in_turbulence(one.turbulence_intensity), at_x, at_y, height_m)

    def mean_speed(self, at_x: npt.ArrayLike, at_y: npt.ArrayLike, *, height_m: float | None = None) -> Array:
        """Return the mean wind speed (m/s) at each point over all conditions of the site, weighted by energy.

        The weights are `energy_weights`. Winds that bring no energy (calms and storms) do not count.
        """
        weighted = replace(self._conditions, weight=self.energy_weights())
        return self._weighted(weighted, self._engine, at_x, at_y, height_m)

    def energy_weights(self) -> Array:
        """Return the share of each condition in the farm's gross yield; shape (directions, speeds).

        The weight of a condition is its probability times the power of the farm's turbines, without neighbours, in the
        free wind, divided by the sum of these products.
        """
        counts = {turbine: self._farm_turbines.count(turbine) for turbine in self._farm_turbines}
        power = sum(count * np.asarray(turbine.power_mw(self._conditions.speed)) for turbine, count in counts.items())
        energy: Array = self._conditions.weight * power
        if not energy.sum() > 0:
            raise InputError("the farm yields no energy in this wind, so an energy-weighted mean does not exist")
        return np.asarray(energy / energy.sum())

    def free_mean_speed(self) -> float:
        """Return the value of `mean_speed` where there are no wakes, m/s."""
        return float((self.energy_weights() * self._conditions.speed).sum())

    @property
    def hub_height_m(self) -> float:
        """Return the mean hub height of the farm's turbines, the default height of every method."""
        return float(np.mean([turbine.hub_height_m for turbine in self._farm_turbines]))

    def _turbulence_at(self, direction: float, speed: float) -> float:
        known = self._conditions
        away = np.abs((known.direction - direction + 180.0) % 360.0 - 180.0)
        near = np.broadcast_to((away == away.min())[:, None], known.speed.shape)
        place = np.argmin(np.where(near, np.abs(known.speed - speed), np.inf))
        return float(known.turbulence_intensity.flat[place])

    def _weighted(
        self, conditions: Conditions, engine: Engine, at_x: npt.ArrayLike, at_y: npt.ArrayLike, height_m: float | None
    ) -> Array:
        """Return the sum of speed times weight at each point."""
        height = self.hub_height_m if height_m is None else positive(height_m, "height_m")
        shape = np.shape(at_x)
        if shape != np.shape(at_y):
            raise InputError(f"at_x has the shape {shape} and at_y has {np.shape(at_y)}; expected the same")
        x, y = coordinates(np.ravel(at_x), np.ravel(at_y), "at_")
        parts = blocks(wind_of(conditions), self._placed, Places(x, y, NO_PLACES.kind))
        total = np.zeros(len(x))
        for part in self._in_order(lambda block: engine.flow(block, height), parts):
            total += part
        return total.reshape(shape)
