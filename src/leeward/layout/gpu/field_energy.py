"""The energy of layouts on a GPU, on the roses of their objectives, in wind that varies over the site."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.layout.gpu.energy import DOUBLE, SINGLE, Energy, Gradient, with_own_roses
from leeward.layout.gpu.launch import start
from leeward.layout.objective import Objective
from leeward.wind.conditions import GWH_PER_MW, Conditions
from leeward.wind.engine import Engine
from leeward.wind.gpu.data import Layouts, Points, Values
from leeward.wind.gpu.engine import Batch, new, to_device
from leeward.wind.gpu.field import FieldEngine

Array = npt.NDArray[np.float64]


class FieldEnergy(Energy):
    """`Energy` in wind that varies: wake losses are computed on any rose, and the gross yield on the full one."""

    engines: dict[bool, FieldEngine]  # type: ignore[assignment]

    def adds_gross(self, objective: Objective, rose: str | None) -> bool:
        return rose is None or getattr(objective, rose).gross is not None

    def power(self, batch: Batch, rose: str, adds_gross: bool) -> Values:
        engine, winds = self.engines[DOUBLE], self.winds(rose, DOUBLE)
        if not adds_gross:
            return engine.power(batch, winds)
        return self._with_gross(DOUBLE, batch, engine.lost_power(batch, winds))

    def gross_gwh(self, batch: Batch, objectives: Sequence[Objective]) -> list[float]:
        gross = self.engines[DOUBLE].gross(batch, self.winds("full_rose", DOUBLE)).copy_to_host()[0]
        farm = batch.layouts.farm.copy_to_host()
        return [float(gross[i, :count].sum()) * GWH_PER_MW for i, count in enumerate(farm)]

    def lacking_gwh(self, objective: Objective, rose: str | None, count: int, shift: Array) -> float:
        return 0.0

    def on_rose(self, batch: Batch, rose: str, adds_gross: bool) -> Gradient:
        if not adds_gross:
            return super().on_rose(batch, rose, adds_gross)
        winds = self.winds(rose, SINGLE)
        return lambda step, layouts: self._gradient(batch._replace(used=layouts), batch, winds)

    def on_samples(self, batch: Batch, problem: Values, shifts: Values, count: int) -> Gradient:
        engine, every, stakes = self.engines[SINGLE], self.winds("full_rose", SINGLE), self._stakes
        some, rose, shape = with_own_roses(batch), batch.layouts.rose, (batch.used, count)
        chosen = new(shape, np.int64), new(shape, np.int64), new(shape)
        drawn = None

        def gradient(step: int, layouts: int) -> Values:
            nonlocal drawn
            start("choose", layouts * count, stakes, problem, shifts, step, count, layouts, *chosen)
            drawn = engine.drawn(every, rose, *chosen, into=drawn)
            return self._gradient(some._replace(used=layouts), batch, drawn)

        return gradient

    def missing_gwh(self, batch: Batch, objectives: Sequence[Objective]) -> Array:
        engine = self.engines[SINGLE]
        full, some = (
            engine.gross(batch, self.winds(name, SINGLE)).copy_to_host()[0] for name in ("gross", "proposing_rose")
        )
        lacks = np.array([self.adds_gross(objective, "proposing_rose") for objective in objectives])
        return np.asarray(np.where(lacks[:, None], full - some, 0.0) * GWH_PER_MW)

    def missing_gwh_at(
        self, batch: Batch, points: Points, kinds: Sequence[int], objectives: Sequence[Objective]
    ) -> Array:
        count, each = points.x.shape
        kind = np.repeat(np.asarray(kinds)[:, None], each, axis=1)
        farm = to_device(np.full(count, each))
        inner = batch.layouts
        at = Layouts(
            points.x, points.y, to_device(kind, np.uint32), farm, farm, inner.rose[:count], inner.ground, inner.stretch
        )
        return self.missing_gwh(Batch(at, batch.x[:count], batch.y[:count], batch.extent, count), objectives)

    def _gradient(self, batch: Batch, of_problems: Batch, winds: Any) -> Values:
        """Return power and its derivatives, with wake losses in `winds`. of_problems: with the roses of problems."""
        lost = self.engines[SINGLE].gradient(batch, winds, of_loss=True)
        return self._with_gross(SINGLE, of_problems._replace(used=batch.used), lost)

    def _with_gross(self, single: bool, batch: Batch, lost: Values) -> Values:
        """Return net minus gross power (and derivatives) on a part of the rose, with the gross power of the whole."""
        gross = self.engines[single].gross(batch, self.winds("gross", single))
        start("add", lost.shape[0] * lost.shape[1] * lost.shape[2], lost, gross)
        return lost

    def _engine(self, engine: Engine, single: bool) -> FieldEngine:
        return FieldEngine(engine, single)

    def _conditions(self, objective: Objective, name: str) -> Conditions:
        if name == "gross":
            if objective.gross is None:
                raise TypeError("the wind does not vary")
            return objective.gross.conditions
        return super()._conditions(objective, name)

    def _on_device(self, engine: Any, conditions: Sequence[Conditions]) -> Any:
        return engine.field_winds(conditions)
