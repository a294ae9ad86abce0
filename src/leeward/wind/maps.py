"""Maps of the yield of one more turbine, for a farm that is built turbine by turbine."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from leeward.wind.conditions import GWH_PER_MW
from leeward.wind.engine import NO_PLACES, Engine, blocks
from leeward.wind.kernels.data import Known, Places, Wind

Array = npt.NDArray[np.float64]


class NextTurbineMap:
    """The yield of one more turbine at many points. Made by `WindFarm.next_turbine_map`.

    Each call recomputes only what changed since the last one.
    with_neighbours: returns the neighbours, then the turbines at x and y.
    """

    def __init__(
        self,
        engine: Engine,
        wind: Wind,
        with_neighbours: Callable[[npt.ArrayLike, npt.ArrayLike], Places],
        at: Places,
        rotor_average: bool,
    ) -> None:
        self._engine = engine
        self._wind = wind
        self._with_neighbours = with_neighbours
        self._at = at
        self._rotor_average = rotor_average
        self._power = np.full((len(at.x), len(wind.cosine)), np.nan)
        self._known = NO_PLACES
        self._state = Known(np.empty((0, wind.speed.size)), np.empty((0, engine.source_fields, wind.speed.size)))

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Drop all other points."""
        self._at = Places(*(values[which] for values in self._at))
        self._power = self._power[which]

    def aep(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
        """Return the AEP (GWh) of one more turbine at each point, given the turbines at x, y."""
        turbines = self._with_neighbours(x, y)
        self._prepare(turbines)
        for block in blocks(self._wind, turbines, self._at):
            self._engine.points(block, self._rotor_average, self._state, self._power)
        return np.asarray(self._power.sum(axis=1) * GWH_PER_MW)

    def _prepare(self, turbines: Places) -> None:
        """Mark the turbines to compute: those added since the last call, or all if an earlier one changed."""
        known, count = len(self._known.x), len(turbines.x)
        if not all(np.array_equal(old, new[:known]) for old, new in zip(self._known, turbines, strict=True)):
            known = 0
            self._power[:] = np.nan
        held = len(self._state.speeds)
        if count > held:
            more = max(count, 2 * held) - held
            self._state = Known(*(np.concatenate([old, np.empty((more, *old.shape[1:]))]) for old in self._state))
        self._state.speeds[known:] = np.nan
        self._known = turbines
