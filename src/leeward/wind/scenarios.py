"""The power of a target farm among neighbours that stand only part of the time."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind import wake_models as models
from leeward.wind.checks import Array, positions
from leeward.wind.conditions import GWH_PER_MW, Conditions
from leeward.wind.engine import NO_PLACES, Block, Engine, by_condition, extent_of, local_of, longest_stretch, wind_of
from leeward.wind.kernels.data import ELEMENTS, Places, Wind
from leeward.wind.local_wind import LocalWind
from leeward.wind.site import Site
from leeward.wind.turbine import Turbine
from leeward.wind.wake_models import WakeModel

MOST_ELEMENTS = 1 << 20  # places x rows x speeds of the local wind in one call
CASES = ("all", "external", "internal", "none")


@dataclass(frozen=True, eq=False)
class Group:
    """Neighbours that stand together, from row `first` of the conditions until before row `end` (None: the last)."""

    x: npt.ArrayLike
    y: npt.ArrayLike
    turbine: Turbine | Sequence[Turbine]
    first: int = 0
    end: int | None = None


class ScenarioFarm:
    """A target farm with a fixed layout, evaluated among different neighbours.

    Cases: `all` wakes; `external`, in which the target has no thrust, so that only the wakes of neighbours count;
    `internal`, without neighbours; `none`, without wakes. types: turbine types of the neighbours, if they are known.
    A row is a direction of the site's conditions, or a step of its time series.
    """

    def __init__(
        self,
        site: Site,
        turbine: Turbine | Sequence[Turbine],
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        wake_model: str | WakeModel = "nygaard_2022",
        *,
        types: Sequence[Turbine] = (),
    ) -> None:
        self.site = site
        self._x, self._y = positions(x, y)
        self._turbines = _one_each(turbine, len(self._x))
        self._model = models.wake_model(wake_model)
        self._engine = self._new_engine([*self._turbines, *types])
        # rows of similar directions follow each other, so that the turbines are nearly sorted
        self._order = np.argsort(site.conditions.direction, kind="stable")

    def evaluate(self, groups: Sequence[Group], cases: Sequence[str] = CASES) -> dict[str, Array]:
        """Return the power of each target turbine in each case, MW, shape (turbines, directions, speeds)."""
        unknown = [case for case in cases if case not in CASES]
        if unknown:
            raise InputError(f"the case is {unknown[0]!r:.40}; expected one of {', '.join(CASES)}")
        found: dict[str, Array] = {}
        if "all" in cases or "external" in cases:
            found["external"], found["all"] = self._among(groups)
        if "internal" in cases:
            found["internal"] = self._internal.copy()
        if "none" in cases:
            found["none"] = self._none.copy()
        return {case: found[case] for case in cases}

    def aep_gwh(self, power: Array) -> float:
        """Return the AEP of the target from the result of one case, GWh."""
        conditions = self.site.conditions
        local = local_of(conditions)
        if local is None or not local.field.varies_weight:
            return float(np.einsum("tds,ds->", power, conditions.weight)) * GWH_PER_MW
        _, places, _ = self._placed([])
        weight = by_condition(self._engine.wind_at(wind_of(conditions), local, places).weight, conditions.speed.shape)
        return float(np.einsum("tds,tds->", power, weight)) * GWH_PER_MW

    @functools.cached_property
    def _none(self) -> Array:
        conditions = self.site.conditions
        local, speeds = local_of(conditions), [conditions.speed] * len(self._x)
        if local is None:
            return np.array([t.power_mw(s) for t, s in zip(self._turbines, speeds, strict=True)])
        _, places, _ = self._placed([])
        wind = self._engine.wind_at(wind_of(conditions), local, places)
        every = np.broadcast_to(
            by_condition(wind.speed, conditions.speed.shape), (len(self._x), *conditions.speed.shape)
        )
        power = np.array([t.power_mw(s) for t, s in zip(self._turbines, every, strict=True)])
        return power * by_condition(wind.density, conditions.speed.shape) if len(wind.density) else power

    @functools.cached_property
    def _internal(self) -> Array:
        return self._computed([], np.ones(len(self._order), dtype=np.uint8))[1]

    @functools.cached_property
    def _wind(self) -> Wind:
        """The conditions in the order of the kernel; each row has all of its speeds."""
        return wind_of(self._conditions)

    @functools.cached_property
    def _local(self) -> LocalWind | None:
        return local_of(self._conditions)

    @functools.cached_property
    def _conditions(self) -> Conditions:
        given, order = self.site.conditions, self._order
        parts = (given.speed[order], given.weight[order], given.turbulence_intensity[order])
        return Conditions(given.direction[order], *parts, None if given.local is None else given.local.in_order(order))

    def _among(self, groups: Sequence[Group]) -> tuple[Array, Array]:
        """Return the power in the external case and with all wakes."""
        if not groups:
            return self._none.copy(), self._internal.copy()
        reached = np.zeros(len(self._order), dtype=np.uint8)
        external, everything = self._computed(groups, reached)
        alone = np.ones(len(reached), dtype=bool)
        alone[self._order] = reached == 0
        external[:, alone], everything[:, alone] = self._none[:, alone], self._internal[:, alone]
        return external, everything

    def _computed(self, groups: Sequence[Group], reached: npt.NDArray[np.uint8]) -> tuple[Array, Array]:
        """Return the power in the external case and with all wakes, in the rows that are or become `reached`."""
        _, rows, lanes = self._wind.speed.shape
        engine, places, group = self._placed(groups)
        stands = np.ones((rows, len(groups) + 1), dtype=np.uint8)
        for number, one in enumerate(groups, 1):
            stands[:, number] = (self._order >= one.first) & (self._order < (rows if one.end is None else one.end))
        shape = (len(self._x), rows, lanes)
        external, everything = np.zeros(shape), np.zeros(shape)
        if self._local is not None:
            places = self._local.on_ground(places)
        x, y = float(self._x[0]), float(self._y[0])
        origin = places._replace(x=places.x - x, y=places.y - y)
        extent = extent_of(origin.x, origin.y, longest_stretch(origin))
        # the wind at each place needs memory: some rows at a time
        step = rows if self._local is None else max(1, MOST_ELEMENTS // (len(places.x) * lanes))
        for begin in range(0, rows, step):
            part = slice(begin, min(begin + step, rows))
            block = Block(origin, x, y, self._wind, self._local, part.start, part.stop, extent, NO_PLACES)
            powers = np.zeros((2, len(self._x), part.stop - begin, lanes))
            engine.cases(block, len(self._x), group, stands[part], reached[part], *powers)
            external[:, part], everything[:, part] = powers
        back = np.argsort(self._order, kind="stable")
        speeds = self.site.conditions.speed.shape[1]
        return external[:, back, :speeds], everything[:, back, :speeds]

    def _placed(self, groups: Sequence[Group]) -> tuple[Engine, Places, npt.NDArray[np.uint32]]:
        """Return the engine, all turbines, the target's first, and the group of each; that of the target is 0."""
        parts = [(self._x, self._y, self._turbines)]
        for one in groups:
            x, y = positions(one.x, one.y, "neighbours: ")
            parts.append((x, y, _one_each(one.turbine, len(x))))
        turbines = [turbine for _, _, some in parts for turbine in some]
        if not set(turbines) <= set(self._engine.turbines):
            self._engine = self._new_engine([*self._engine.turbines, *turbines])
        number = {turbine: i for i, turbine in enumerate(self._engine.turbines)}
        kind = np.array([number[turbine] for turbine in turbines], dtype=np.uint32)
        x, y = (np.concatenate([part[axis] for part in parts]) for axis in (0, 1))
        if self.site.field is not None:
            self.site.field.check_places(self._x, self._y, "turbine ")
            self.site.field.check_places(x[len(self._x) :], y[len(self._x) :], "neighbour ")
        group = np.repeat(np.arange(len(parts), dtype=np.uint32), [len(part[0]) for part in parts])
        return self._engine, Places(x, y, kind), group

    def _new_engine(self, turbines: Sequence[Turbine]) -> Engine:
        return engine_of(self.site, turbines, self._model)


def engine_of(site: Site, turbines: Sequence[Turbine], model: WakeModel) -> Engine:
    """Return the engine for turbine types at a site. Raise InputError if it rejects them."""
    if site.conditions.speed.shape[1] > ELEMENTS:
        raise InputError(f"the site has {site.conditions.speed.shape[1]} speeds; expected at most {ELEMENTS}")
    if site.field is not None:
        for turbine in turbines:
            site.field.check_hub(turbine.hub_height_m, turbine.name)
    return Engine(list(dict.fromkeys(turbines)), model, site.turbulence_range, site.density_range)


def _one_each(turbine: Turbine | Sequence[Turbine], count: int) -> list[Turbine]:
    """Return a turbine for each of `count` positions."""
    turbines = [turbine] * count if isinstance(turbine, Turbine) else list(turbine)
    if len(turbines) != count:
        raise InputError(f"{len(turbines)} turbines for {count} positions; expected one for each, or one for all")
    return turbines
