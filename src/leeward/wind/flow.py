"""The flow between the turbines of a farm, at many points: wind speeds, and the yield of one more turbine."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leeward.deprecation import Renamed
from leeward.errors import InputError
from leeward.wind.checks import Array, coordinates, finite, positive, turbulence
from leeward.wind.conditions import GWH_PER_MW, Conditions
from leeward.wind.engine import NO_PLACES, Engine, blocks, by_condition, each_block, local_of, wind_of
from leeward.wind.kernels.data import NO_PAIRS, Known, Places, Wind
from leeward.wind.local_wind import LocalWind
from leeward.wind.turbine import Turbine

MOST_STRETCHES = 1 << 20  # points x turbines whose distances along the terrain are kept at once
MOST_KEPT = 1 << 24  # numbers of the wind at the points of a map that are kept between calls


@dataclass(frozen=True, eq=False, repr=False)
class Flow:
    """The wind in a layout, wakes of neighbours included. `WindFarm.flow` returns it.

    at_x, at_y of every method: points, in metres, of any shape; the result has the same shape. Points may coincide with
    each other and with turbines. The wind speed is that at the point itself, not averaged over a rotor.
    height_m: above the ground; by default the mean hub height of the farm's turbines. The free wind is the same at
    every height unless the site has shear or a grid with heights. Where a grid has no wind, the result is NaN.
    """

    _engine: Engine
    _conditions: Conditions
    _placed: Places  # neighbours included
    _farm_turbines: Sequence[Turbine]
    _threads: int

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
        local = self._conditions.local
        if local is not None:
            one = replace(one, local=local.unweighted(one.speed, turbulence_intensity is None))
        return self._weighted(one, self._engine.in_turbulence(self._turbulence_range(one)), at_x, at_y, height_m)

    def mean_speed(self, at_x: npt.ArrayLike, at_y: npt.ArrayLike, *, height_m: float | None = None) -> Array:
        """Return the mean wind speed (m/s) at each point over all conditions of the site, weighted by energy.

        The weights are `energy_weights`. Winds that bring no energy (calms and storms) do not count.
        """
        weighted, local = replace(self._conditions, weight=self.energy_weights()), self._conditions.local
        if local is not None:
            weighted = replace(weighted, local=replace(local, field=local.field.with_equal_weights()))
        return self._weighted(weighted, self._engine, at_x, at_y, height_m)

    def energy_weights(self) -> Array:
        """Return the share of each condition in the farm's gross yield; shape (directions, speeds).

        The weight of a condition is its probability times the power of the farm's turbines, without neighbours, in the
        free wind, divided by the sum of these products.
        """
        return self._energy()[0]

    def _energy(self) -> tuple[Array, float]:
        """Return `energy_weights`, and the mean free wind speed with these weights, m/s."""
        energy, moment = np.zeros(self._conditions.speed.shape), 0.0
        if self._conditions.local is None:
            counts = Counter(self._farm_turbines)
            speed = self._conditions.speed
            power = sum(count * np.asarray(turbine.power_mw(speed)) for turbine, count in counts.items())
            energy = self._conditions.weight * power
            moment = float((energy * speed).sum())
        for turbine, speed, weight, density in self._free_winds():
            part = weight * density * np.asarray(turbine.power_mw(speed))
            energy += part
            moment += float((part * speed).sum())
        if not energy.sum() > 0:
            raise InputError("the farm yields no energy in this wind, so an energy-weighted mean does not exist")
        return np.asarray(energy / energy.sum()), moment / float(energy.sum())

    def _free_winds(self) -> Iterator[tuple[Turbine, Array, Array, Array]]:
        """Yield each turbine with free speed, weight and relative air density in each condition, if the wind varies."""
        conditions = self._conditions
        if conditions.local is None:
            return
        shape, every, local = conditions.speed.shape, wind_of(conditions), local_of(conditions)
        for i, turbine in enumerate(self._farm_turbines):
            wind = self._engine.wind_at(every, local, self._placed.part(slice(i, i + 1)))
            speed, weight = (by_condition(each, shape)[0] for each in (wind.speed, wind.weight))
            yield turbine, speed, weight, by_condition(wind.density, shape)[0] if len(wind.density) else np.ones(1)

    def free_mean_speed(self) -> float:
        """Return the value of `mean_speed` where there are no wakes, m/s; at the turbines, if the wind varies."""
        return self._energy()[1]

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
        wind, local, field = wind_of(conditions), local_of(conditions), None
        size = max(len(x), 1)
        if conditions.local is not None:
            field = conditions.local.field
            field.check_height(height, f"height_m is {height:g}")
            if field.follows_terrain:
                size = MOST_STRETCHES // max(len(self._placed.x), 1) + 1
        total = np.zeros(len(x))
        for begin in range(0, len(x), size):
            part = slice(begin, begin + size)
            at = Places(x[part], y[part], np.zeros(len(x[part]), dtype=np.uint32))
            each = each_block(
                lambda block: engine.flow(block, height), blocks(wind, self._placed, at, local), self._threads
            )
            for speeds in each:
                total[part] += speeds
        if field is not None:
            total[~field.has_wind(x, y)] = np.nan
        return total.reshape(shape)

    def _turbulence_range(self, one: Conditions) -> Array:
        """Return the turbulence intensities that can occur in one condition."""
        if one.local is None or not one.local.field.varies_turbulence:
            return one.turbulence_intensity
        return one.local.field.data.turbulence_range(one.speed)


class NextTurbineMap:
    """The yield of one more turbine at many points. `WindFarm.next_turbine_map` returns it.

    Each call recomputes only what changed since the last one.
    with_neighbours: a function that returns the neighbours, then the turbines at x and y.
    """

    aep = Renamed("aep_gwh")

    def __init__(
        self,
        engine: Engine,
        wind: Wind,
        local: LocalWind | None,
        with_neighbours: Callable[[npt.ArrayLike, npt.ArrayLike], Places],
        at: Places,
        rotor_average: bool,
    ) -> None:
        self._engine = engine
        self._wind = wind
        self._local = local
        self._at_wind: Wind | None = wind  # at the points, in all directions; None if it is computed anew in each call
        if local is not None:
            is_small = len(at.x) * wind.speed.size <= MOST_KEPT
            self._at_wind = engine.wind_at(wind, local, at) if is_small else None
        self._with_neighbours = with_neighbours
        self._at = at
        self._rotor_average = rotor_average
        self._power = np.full((len(at.x), len(wind.cosine)), np.nan)
        self._known = NO_PLACES
        size = wind.speed[0].size
        self._state = Known(np.empty((0, size)), np.empty((0, engine.source_fields, size)))

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Keep only these points."""
        self._at = self._at.part(which)
        if self._local is not None and self._at_wind is not None:
            rows = (values[which] if len(values) > 1 else values for values in self._at_wind[2:])
            self._at_wind = Wind(*self._at_wind[:2], *rows)
        self._power = self._power[which]

    def aep_gwh(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
        """Return the AEP (GWh) of one more turbine at each point, given the turbines at x, y."""
        turbines = self._with_neighbours(x, y)
        self._prepare(turbines)
        wind = self._engine.wind_at(self._wind, self._local, turbines)
        if self._local is not None:
            turbines = self._local.on_ground(turbines)
            self._at = self._local.points_on_ground(self._at, turbines)
        for block in blocks(wind, turbines, self._at):
            at_wind, first = self._at_wind, 0
            if at_wind is None:
                at_wind, first = self._engine.wind_at_points(self._wind, self._local, block), block.begin
            self._engine.points(block, at_wind, first, self._rotor_average, self._state, self._power)
        return np.asarray(self._power.sum(axis=1) * GWH_PER_MW)

    def _prepare(self, turbines: Places) -> None:
        """Mark the turbines to compute: those added since the last call, or all if an earlier one changed."""
        known, count = len(self._known.x), len(turbines.x)
        if not all(np.array_equal(self._known[i], turbines[i][:known]) for i in range(3)):
            known = 0
            self._power[:] = np.nan
            self._at = self._at._replace(stretch=NO_PAIRS)
        held = len(self._state.speeds)
        if count > held:
            more = max(count, 2 * held) - held
            self._state = Known(*(np.concatenate([old, np.empty((more, *old.shape[1:]))]) for old in self._state))
        self._state.speeds[known:] = np.nan
        self._known = turbines
