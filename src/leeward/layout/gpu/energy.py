"""The energy of layouts on a GPU, on the roses of their objectives, in wind that is the same everywhere."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.layout.gpu.data import Stakes
from leeward.layout.gpu.launch import start
from leeward.layout.objective import Objective, Rose
from leeward.wind.conditions import GWH_PER_MW, Conditions
from leeward.wind.engine import Engine, wind_of
from leeward.wind.gpu.data import Points, Values, Winds
from leeward.wind.gpu.engine import Batch, BatchEngine, new, to_device

Array = npt.NDArray[np.float64]
Gradient = Callable[[int, int], Values]  # of a step and the number of layouts: as `BatchEngine.gradient`

SINGLE, DOUBLE = True, False


class Energy:
    """The energy of layouts of several problems. The `rose` of a layout is the index of its problem.

    objectives: returns the objective of each problem. Roses are named as in `Objective`; "smart_start" is the one of
    SmartStart. adds_gross: True for a rose whose AEP is the wake loss there plus the gross yield of the full rose.
    """

    def __init__(self, engine: Engine, objectives: Callable[[], Sequence[Objective]]) -> None:
        self.engines = {single: self._engine(engine, single) for single in (DOUBLE, SINGLE)}
        self._objectives = objectives
        self._roses: dict[tuple[str, bool], Any] = {}

    def winds(self, name: str, single: bool) -> Any:
        """Return the roses of this name of all problems."""
        if (name, single) not in self._roses:
            each = [self._conditions(objective, name) for objective in self._objectives()]
            self._roses[name, single] = self._on_device(self.engines[single], each)
        return self._roses[name, single]

    def adds_gross(self, objective: Objective, rose: str | None) -> bool:
        """Return whether the AEP on a rose, or on samples (None), needs the gross yield of the full rose."""
        return False

    def power(self, batch: Batch, rose: str, adds_gross: bool) -> Values:
        """Return the weighted power of each turbine (MW) in double precision; shape (1, layouts, turbines)."""
        return self.engines[DOUBLE].power(batch, self.winds(rose, DOUBLE))

    def gross_gwh(self, batch: Batch, objectives: Sequence[Objective]) -> list[float]:
        """Return the AEP of each layout without wakes, GWh."""
        return [_gross_gwh(objective) for objective in objectives]

    def lacking_gwh(self, objective: Objective, rose: str | None, count: int, shift: Array) -> float:
        """Return the gross yield (GWh) that a rose, or the sample of so many conditions with this shift, lacks."""
        if rose is not None:
            return float(getattr(objective, rose).lacking_gwh)
        return objective.lacking_gwh(objective.stakes.drawn(count, shift))

    def on_rose(self, batch: Batch, rose: str, adds_gross: bool) -> Gradient:
        """Return a function that computes power and its derivatives on a rose, in single precision."""
        engine, winds = self.engines[SINGLE], self.winds(rose, SINGLE)
        return lambda step, layouts: engine.gradient(batch._replace(used=layouts), winds)

    def on_samples(self, batch: Batch, problem: Values, shifts: Values, count: int) -> Gradient:
        """Return `on_rose` for samples of the wind. shifts: two random numbers for each step of each layout."""
        engine, winds, stakes = self.engines[SINGLE], self._room_for_samples(batch.used, count), self._stakes
        some = with_own_roses(batch)

        def gradient(step: int, layouts: int) -> Values:
            start("draw", layouts * count, stakes, problem, shifts, step, count, layouts, winds)
            return engine.gradient(some._replace(used=layouts), winds)

        return gradient

    def missing_gwh(self, batch: Batch, objectives: Sequence[Objective]) -> Array:
        """Return `Rose.missing_gwh` of the proposing rose for each turbine; it broadcasts to (layouts, turbines)."""
        return np.zeros((1, 1))

    def missing_gwh_at(
        self, batch: Batch, points: Points, kinds: Sequence[int], objectives: Sequence[Objective]
    ) -> Array:
        """Return `missing_gwh` for a turbine at each point. kinds: type of that turbine, for each layout."""
        return np.zeros((1, 1))

    def _engine(self, engine: Engine, single: bool) -> BatchEngine:
        return BatchEngine(engine, single)

    def _conditions(self, objective: Objective, name: str) -> Conditions:
        """Return the wind of a rose."""
        if name == "smart_start":
            return objective.smart_start_farm().site.conditions
        found: Rose = getattr(objective, name)
        return found.farm.site.conditions

    def _on_device(self, engine: Any, conditions: Sequence[Conditions]) -> Any:
        """Return roses on the GPU."""
        return engine.winds([wind_of(each) for each in conditions], max(each.speed.shape[1] for each in conditions))

    def _room_for_samples(self, layouts: int, count: int) -> Winds:
        number = self.engines[SINGLE].number
        values = [new((layouts, 1, count, 1), number) for _ in range(3)]
        none = [new((0, 0, 0, 0), number) for _ in range(2)]
        return Winds(new((layouts, count), number), new((layouts, count), number), *values, *none)

    @functools.cached_property
    def _stakes(self) -> Stakes:
        """The energy at stake for each problem."""
        objectives = self._objectives()
        tables = [objective.stakes.tables for objective in objectives]
        order, by_direction, within, ratio = (np.stack(values) for values in zip(*tables, strict=True))
        conditions = objectives[0].farm.site.conditions
        wind = wind_of(replace(conditions, speed=conditions.speed[:, :1], weight=conditions.weight[:, :1]))
        values = (order, by_direction, within, ratio, wind.cosine, wind.sine)
        order, by_direction, within, ratio, cosine, sine = map(to_device, values)
        speed, turbulence = to_device(conditions.speed), to_device(conditions.turbulence_intensity)
        return Stakes(order, by_direction, within, ratio, cosine, sine, speed, turbulence)


def with_own_roses(batch: Batch) -> Batch:
    """Return layouts that have a rose each, of their own index."""
    return batch._replace(layouts=batch.layouts._replace(rose=to_device(np.arange(batch.used), np.uint32)))


def _gross_gwh(objective: Objective) -> float:
    """Return the AEP of a farm without wakes, GWh."""
    turbines, conditions = objective.turbines, objective.farm.site.conditions
    each = {t: float(np.vdot(t.power_mw(conditions.speed), conditions.weight)) for t in {*turbines}}
    return sum(each[t] for t in turbines) * GWH_PER_MW
