"""The energy of many layouts of a wind farm on a GPU."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leeward.wind.checks import Array
from leeward.wind.conditions import Conditions
from leeward.wind.engine import Engine, wind_of
from leeward.wind.gpu import device
from leeward.wind.gpu.engine import BatchEngine
from leeward.wind.gpu.field import FieldEngine
from leeward.wind.kernels.data import ELEMENTS, Places
from leeward.wind.site import Site

MOST_SPEEDS = 1 << 27  # effective speeds that `speeds` computes at once: 1 GiB


class GpuFarm:
    """The energy of layouts in the wind of a site. Pickles hold nothing of the GPU.

    places: of each layout, those of the farm's turbines first. farm: number of the farm's turbines.
    """

    def __init__(self, engine: Engine, site: Site) -> None:
        device.require()
        self._engine = engine
        self._site = site
        self._begin()

    def __getstate__(self) -> dict[str, object]:
        return {"_engine": self._engine, "_site": self._site}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()  # the engines reuse their arrays on the GPU
        self._engines: dict[tuple[bool, bool], BatchEngine] = {}
        self._winds: dict[bool, Any] = {}

    def power(self, places: Sequence[Places], farm: int, single: bool = False) -> Array:
        """Return the mean power (MW) of each of the farm's turbines; shape (layouts, turbines).

        single: compute in single precision.
        """
        if not places or not farm:
            return np.zeros((len(places), farm))
        with self._lock:
            engine, winds = self._site_engine(single)
            batch = engine.batch(places, [farm] * len(places), [0] * len(places))
            return np.array(engine.power(batch, winds).copy_to_host()[0, :, :farm])

    def gradient(
        self, places: Sequence[Places], farm: int, conditions: Sequence[Conditions] | None = None, single: bool = False
    ) -> Array:
        """Return `power`, and derivatives of the farm's sum by x and y (MW/m); shape (3, layouts, turbines).

        conditions: those of each layout, by default the site's.
        """
        total = np.zeros((3, len(places), farm))
        if not total.size:
            return total
        with self._lock:
            for which, rose, engine, winds in self._groups(len(places), conditions, single):
                batch = engine.batch([places[i] for i in which], [farm] * len(which), rose)
                total[:, which] = engine.gradient(batch, winds).copy_to_host()[:, :, :farm]
        return total

    def speeds(self, places: Sequence[Places], farm: int) -> Iterator[tuple[Array, Array]]:
        """Yield for each layout the mean power (MW) of the farm's turbines, and their effective speeds (m/s).

        Shapes (turbines,) and (turbines, rows, lanes); rows and lanes are those of `wind_of`, without padding.
        """
        directions, speeds = self._site.conditions.speed.shape
        parts = -(-speeds // ELEMENTS)
        shape = (farm, directions * parts, -(-speeds // parts))
        size = max(1, MOST_SPEEDS // max(1, shape[0] * shape[1] * shape[2]))
        for first in range(0, len(places), size):
            some = places[first : first + size]
            yield from zip(*self._speeds(some, shape), strict=True)

    def _speeds(self, places: Sequence[Places], shape: tuple[int, int, int]) -> tuple[Array, Array]:
        """Return mean power (layouts, turbines) and effective speeds (layouts, turbines, rows, lanes)."""
        farm = shape[0]
        power, speeds = np.zeros((len(places), farm)), np.zeros((len(places), *shape))
        if not farm:
            return power, speeds
        with self._lock:
            engine, winds = self._site_engine(False)
            batch = engine.batch(places, [farm] * len(places), [0] * len(places))
            for chunk, speed, weighted in engine.speeds(batch, winds):
                layouts = slice(chunk.layout, chunk.layout + chunk.layouts)
                rows = slice(chunk.direction, chunk.direction + chunk.directions)
                each = (chunk.layouts, chunk.directions, chunk.lanes, -1)
                speeds[layouts, :, rows] = speed.reshape(each)[..., :farm].transpose(0, 3, 1, 2)
                power[layouts] += weighted.reshape(each)[..., :farm].sum(axis=(1, 2))
        return power, speeds

    def _groups(
        self, layouts: int, conditions: Sequence[Conditions] | None, single: bool
    ) -> Iterator[tuple[list[int], list[int], BatchEngine, Any]]:
        """Yield layouts whose wind is of the same kind: their indices, the rose of each, an engine and its roses."""
        if conditions is None:
            yield list(range(layouts)), [0] * layouts, *self._site_engine(single)
            return
        groups: dict[tuple[int, int] | None, list[int]] = {}
        for i, each in enumerate(conditions):
            field = None if each.local is None else (id(each.local.field.values), id(each.local.field.data))
            groups.setdefault(field, []).append(i)
        for which in groups.values():
            unique = {id(conditions[i]): conditions[i] for i in which}
            number = {key: rose for rose, key in enumerate(unique)}
            yield which, [number[id(conditions[i])] for i in which], *self._engine_with(list(unique.values()), single)

    def _site_engine(self, single: bool) -> tuple[BatchEngine, Any]:
        """Return an engine, and the wind of the site on the GPU."""
        if single not in self._winds:
            self._winds[single] = self._engine_with([self._site.conditions], single)
        engine, winds = self._winds[single]
        return engine, winds

    def _engine_with(self, conditions: Sequence[Conditions], single: bool) -> tuple[BatchEngine, Any]:
        """Return an engine, and conditions of the same kind on the GPU."""
        varies = conditions[0].local is not None
        if (varies, single) not in self._engines:
            self._engines[varies, single] = (FieldEngine if varies else BatchEngine)(self._engine, single)
        engine = self._engines[varies, single]
        if isinstance(engine, FieldEngine):
            return engine, engine.field_winds(conditions)
        counts = [each.speed.shape[1] for each in conditions]
        lanes = max(-(-count // -(-count // ELEMENTS)) for count in counts)
        return engine, engine.winds([wind_of(each) for each in conditions], lanes)
