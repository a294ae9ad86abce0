"""Flow maps: how fast the wind blows between the turbines of a layout, in one wind or on average."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import coordinates, positive, turbulence
from leeward.wind.conditions import Conditions
from leeward.wind.engine import NO_KIND, Block, Engine, blocks, wind_of
from leeward.wind.maps import Standing
from leeward.wind.turbine import Turbine

Array = npt.NDArray[np.float64]
InOrder = Callable[[Callable[[Block], Array], Iterable[Block]], Iterable[Array]]


class Flow:
    """The wind in a layout. Made by `WindFarm.flow`; the wakes of neighbours count.

    at_x, at_y of every method: metres, points of any shape, which is that of the answer. Two may be the same, and they
    may be where turbines stand. The wind is that at the point itself, not averaged over a rotor.
    height_m: above the ground; by default the hub height, where types differ the mean over the farm's turbines. The
    free wind is the same at every height, because sites have no shear.
    """

    def __init__(
        self, engine: Engine, conditions: Conditions, standing: Standing, own: Sequence[Turbine], in_order: InOrder
    ) -> None:
        """standing: all turbines, neighbours included; own: the farm's. in_order: a `map` that may use threads."""
        self._engine = engine
        self._conditions = conditions
        self._standing = standing
        self._own = list(own)
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
        """Wind speed (m/s) at each point while the free wind comes from `direction_deg` with `speed_m_s`.

        turbulence_intensity: a fraction; by default the site's, of its condition that is nearest in direction, and
        among these nearest in speed.
        """
        direction = _finite(direction_deg, "direction_deg") % 360.0
        speed = positive(speed_m_s, "speed_m_s")
        if turbulence_intensity is None:
            intensity = self._turbulence_at(direction, speed)
        else:
            intensity = float(turbulence(float(turbulence_intensity), "turbulence_intensity"))
        one = Conditions(np.array([direction]), np.array([[speed]]), np.array([[1.0]]), np.array([[intensity]]))
        return self._weighted(one, self._engine.in_turbulence(one.turbulence_intensity), at_x, at_y, height_m)

    def mean_speed(self, at_x: npt.ArrayLike, at_y: npt.ArrayLike, *, height_m: float | None = None) -> Array:
        """AEP-weighted mean wind speed (m/s) at each point: the mean over all conditions of the site with the weights
        of `energy_weights`. Winds that bring no energy, calms and storms, do not count.
        """
        weighted = self._with_weights(self.energy_weights())
        return self._weighted(weighted, self._engine, at_x, at_y, height_m)

    def energy_weights(self) -> Array:
        """Share of each condition in the energy that the farm would yield without wakes; shape (directions, speeds).

        The weight of a condition is its probability times the power that the farm's turbines, the neighbours not among
        them, would have in the free wind, divided by the sum of these products. With one turbine type that is the
        condition's share of the energy of one undisturbed turbine.
        """
        kinds = {turbine: self._own.count(turbine) for turbine in self._own}
        power = sum(count * np.asarray(kind.power_mw(self._conditions.speed)) for kind, count in kinds.items())
        energy: Array = self._conditions.weight * power
        if not energy.sum() > 0:
            raise InputError("the farm would yield nothing in this wind; expected some energy to weight the mean by")
        return np.asarray(energy / energy.sum())

    def free_mean_speed(self) -> float:
        """What `mean_speed` is where there are no wakes, m/s."""
        return float((self.energy_weights() * self._conditions.speed).sum())

    @property
    def hub_height_m(self) -> float:
        """The height at which the wind is asked for by default."""
        return float(np.mean([turbine.hub_height_m for turbine in self._own]))

    def _with_weights(self, weights: Array) -> Conditions:
        known = self._conditions
        return Conditions(known.direction, known.speed, weights, known.turbulence_intensity)

    def _turbulence_at(self, direction: float, speed: float) -> float:
        known = self._conditions
        away = np.abs((known.direction - direction + 180.0) % 360.0 - 180.0)
        near = np.broadcast_to((away == away.min())[:, None], known.speed.shape)
        place = np.argmin(np.where(near, np.abs(known.speed - speed), np.inf))
        return float(known.turbulence_intensity.flat[place])

    def _weighted(
        self, conditions: Conditions, engine: Engine, at_x: npt.ArrayLike, at_y: npt.ArrayLike, height_m: float | None
    ) -> Array:
        """The sum of speed times weight at each point."""
        height = self.hub_height_m if height_m is None else positive(height_m, "height_m")
        shape = np.shape(at_x)
        if shape != np.shape(at_y):
            raise InputError(f"at_x has the shape {shape} and at_y has {np.shape(at_y)}; expected the same")
        x, y = coordinates(np.ravel(at_x), np.ravel(at_y), "at_")
        parts = blocks(wind_of(conditions), *self._standing, at=(x, y, NO_KIND))
        total = np.zeros(len(x))
        for part in self._in_order(lambda block: engine.flow(block, height), parts):
            total += part
        return total.reshape(shape)


def _finite(value: float, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: expected a number, found {value!r:.100}") from error
    if not np.isfinite(number):
        raise InputError(f"{what} is {number}; expected a finite number")
    return number
