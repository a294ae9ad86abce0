"""What one more turbine would yield at many points, for a farm that is built up turbine by turbine."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from leeward.wind.conditions import GWH_PER_MW
from leeward.wind.engine import Engine, blocks
from leeward.wind.kernels.data import Indices, Known, Wind

Array = npt.NDArray[np.float64]
Standing = tuple[Array, Array, Indices]  # x, y (m) and type of turbines


class NextTurbineMap:
    """Made by `WindFarm.next_turbine_map`. Works out again only what changed since the last time.

    standing: makes the turbines that stand, neighbours first, from the x and y of those that were placed.
    """

    def __init__(
        self,
        engine: Engine,
        wind: Wind,
        standing: Callable[[npt.ArrayLike, npt.ArrayLike], Standing],
        at: Standing,
        rotor_average: bool,
    ) -> None:
        self._engine = engine
        self._wind = wind
        self._standing = standing
        self._at = at
        self._rotor_average = rotor_average
        self._power = np.full((len(at[0]), len(wind.cosine)), np.nan)
        self._known: Standing = (np.empty(0), np.empty(0), np.empty(0, dtype=np.uint32))
        self._state = Known(np.empty((0, wind.speed.size)), np.empty((0, engine.source_fields, wind.speed.size)))

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Go on with some of the points only."""
        x, y, kinds = self._at
        self._at = x[which], y[which], kinds[which]
        self._power = self._power[which]

    def aep(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
        """AEP (GWh) that one more turbine would itself yield at each point, given the turbines at x, y."""
        turbines = self._standing(x, y)
        self._make_room(turbines)
        for block in blocks(self._wind, *turbines, self._at):
            self._engine.points(block, self._rotor_average, self._state, self._power)
        return np.asarray(self._power.sum(axis=1) * GWH_PER_MW)

    def _make_room(self, turbines: Standing) -> None:
        """For the turbines that are new. All are, unless they begin with those of last time."""
        known, count = len(self._known[0]), len(turbines[0])
        same = [np.array_equal(self._known[i], turbines[i][:known]) for i in range(3)]
        if not all(same):
            known = 0
            self._power[:] = np.nan
        held = len(self._state.speeds)
        if count > held:
            more = max(count, 2 * held) - held
            self._state = Known(*(np.concatenate([old, np.empty((more, *old.shape[1:]))]) for old in self._state))
        self._state.speeds[known:] = np.nan
        self._known = turbines
