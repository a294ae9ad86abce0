"""Wind farms: the energy of a layout and its gradient."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from leeward.deprecation import Renamed
from leeward.errors import InputError
from leeward.wind import wake_models as models
from leeward.wind.checks import Array, coordinates, one_of, positions, several_layouts
from leeward.wind.conditions import GWH_PER_MW, Conditions
from leeward.wind.engine import NO_PLACES, Block, Engine, blocks, by_condition, each_block, local_of, wind_of
from leeward.wind.field_data import AIR_DENSITY
from leeward.wind.flow import Flow, NextTurbineMap
from leeward.wind.kernels.data import Places, Wind
from leeward.wind.local_wind import LocalWind
from leeward.wind.simulation import Simulation
from leeward.wind.site import Site
from leeward.wind.turbine import Turbine
from leeward.wind.wake_models import WakeModel

if TYPE_CHECKING:
    from leeward.wind.gpu.farm import GpuFarm


@dataclass(frozen=True)
class Neighbours:
    """Existing turbines: their wakes reduce the yield of the farm, but their own energy is not counted."""

    x: npt.ArrayLike
    y: npt.ArrayLike
    turbine: Turbine | Sequence[Turbine]


class WindFarm:
    """A site, one or more turbine types and a wake model. The methods evaluate layouts.

    turbine: one type for all positions, or one for each. wake_model: a name (`module:Name` for a custom model), or an
    object with options. neighbours: existing turbines. threads: number of threads; results do not depend on it.
    x, y of every method: metres, east and north, in any projected coordinate system.

    device: "cpu", or "cuda" for an NVIDIA GPU. The GPU computes `aep_gwh`, `aep_gradient`, `sampled_aep_gradient`,
    `simulate`, `wake_loss` and the same for batches, in double precision unless asked otherwise; all other methods use
    the CPU. The methods for batches evaluate many layouts in one call; their x and y have the shape (layouts,
    turbines). A GPU computes them together, so it needs many layouts to be fast.
    """

    aep = Renamed("aep_gwh")
    next_turbine_aep = Renamed("next_turbine_aep_gwh")
    turbine_worth = Renamed("marginal_aep_gwh")

    def __init__(
        self,
        site: Site,
        turbine: Turbine | Sequence[Turbine],
        wake_model: str | WakeModel = "nygaard_2022",
        *,
        neighbours: Neighbours | None = None,
        threads: int = 1,
        device: str = "cpu",
    ) -> None:
        if not isinstance(site, Site):
            raise InputError(f"site is {site!r:.60}; expected a Site, for example Site.from_file(path)")
        if not (isinstance(threads, int) and threads >= 1):
            raise InputError(f"threads is {threads!r}; expected 1 or more")
        self.site = site
        self.turbine = turbine if isinstance(turbine, Turbine) else _turbines(turbine, "turbine")
        self.wake_model = models.wake_model(wake_model)
        self.neighbours = neighbours
        self.threads = threads
        self.device = one_of(device, ("cpu", "cuda"), "device")
        x, y = NO_PLACES.x, NO_PLACES.y
        others: list[Turbine] = []
        if neighbours is not None:
            if not isinstance(neighbours, Neighbours):
                raise InputError(f"neighbours is {neighbours!r:.60}; expected Neighbours(x, y, turbine)")
            x, y = positions(neighbours.x, neighbours.y, "neighbours: ")
            others = _one_each(neighbours.turbine, len(x), "neighbours: ")
            # a copy, because the caller may change the arrays and lists
            self.neighbours = Neighbours(x, y, tuple(others))
        farm_types = [self.turbine] if isinstance(self.turbine, Turbine) else self.turbine
        index = {turbine: i for i, turbine in enumerate(dict.fromkeys([*farm_types, *others]))}
        if site.field is not None:
            for each in index:
                site.field.check_hub(each.hub_height_m, each.name)
            site.field.check_places(x, y, "neighbour ")
        self._engine = Engine(list(index), self.wake_model, site.turbulence_range, site.density_range)
        self._farm_kinds = np.array([index[turbine] for turbine in farm_types], dtype=np.uint32)
        self._neighbours = Places(x, y, np.array([index[turbine] for turbine in others], dtype=np.uint32))
        self._gpu = self._on_gpu() if device == "cuda" else None

    def _on_gpu(self) -> "GpuFarm":
        from leeward.wind.gpu.farm import GpuFarm

        return GpuFarm(self._engine, self.site)

    def on(self, site: Site, turbine: Turbine | Sequence[Turbine] | None = None) -> "WindFarm":
        """Return the farm on another site, and possibly with other turbines."""
        turbine = self.turbine if turbine is None else turbine
        there, threads, device = self.neighbours, self.threads, self.device
        return WindFarm(site, turbine, self.wake_model, neighbours=there, threads=threads, device=device)

    def aep_gwh(self, x: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Return the annual energy production, GWh."""
        return float(self._powers([self._placed(x, y)])[0].sum()) * GWH_PER_MW

    def batch_aep_gwh(self, x: npt.ArrayLike, y: npt.ArrayLike, *, precision: str = "double") -> Array:
        """Return the annual energy production of each layout, GWh; shape (layouts,).

        precision: "single" is faster on a GPU, and differs by less than 2e-5. The CPU and wake models without
        derivatives of their own ignore it, and use double precision.
        """
        power = self._powers(self._placed_each(x, y), _is_single(precision))
        return np.array([float(each.sum()) * GWH_PER_MW for each in power])

    def aep_gradient(
        self, x: npt.ArrayLike, y: npt.ArrayLike, conditions: Conditions | None = None
    ) -> tuple[float, Array, Array]:
        """Return the AEP in GWh, and its derivatives with respect to each x and each y, GWh/m.

        conditions: by default all of the site's; for example a sample from `site.draw`.
        """
        given = None if conditions is None else [conditions]
        power, by_x, by_y = self._gradients([self._placed(x, y)], given)[:, 0] * GWH_PER_MW
        return float(power.sum()), by_x, by_y

    def batch_aep_gradient(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        conditions: Conditions | Sequence[Conditions] | None = None,
        *,
        precision: str = "double",
    ) -> tuple[Array, Array, Array]:
        """Return the results of `aep_gradient` for each layout; shapes (layouts,), then (layouts, turbines) twice.

        conditions: for all layouts, or a sequence with those of each; by default all of the site's. precision: as in
        `batch_aep_gwh`.
        """
        single, places = _is_single(precision), self._placed_each(x, y)
        power, by_x, by_y = self._gradients(places, _conditions_of_each(conditions, len(places)), single) * GWH_PER_MW
        return np.array([float(each.sum()) for each in power]), by_x, by_y

    def sampled_aep_gradient(
        self, x: npt.ArrayLike, y: npt.ArrayLike, count: int, rng: np.random.Generator
    ) -> tuple[float, Array, Array]:
        """Return estimates of the results of `aep_gradient` from `count` wind conditions drawn at random by `rng`.

        They are unbiased. For Weibull distributions that are the same everywhere, this holds for the continuous
        distribution: all directions, and the speeds that the site's bins cover. Any other wind is drawn from its own
        conditions.
        """
        _check_draw(count, rng)
        return self.aep_gradient(x, y, self.site.draw(count, rng))

    def batch_sampled_aep_gradient(
        self, x: npt.ArrayLike, y: npt.ArrayLike, count: int, rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """Return the results of `sampled_aep_gradient` for each layout, shapes as of `batch_aep_gradient`.

        Each layout has its own draw. They are those that calls for one layout after the other would make.
        """
        _check_draw(count, rng)
        layouts = len(several_layouts(x, y)[0])
        return self.batch_aep_gradient(x, y, [self.site.draw(count, rng) for _ in range(layouts)])

    def simulate(self, x: npt.ArrayLike, y: npt.ArrayLike, per_condition: bool = False) -> Simulation:
        """Return energy, effective wind speed and wake loss of each turbine; `per_condition` adds each condition."""
        (found,) = self._simulations([self._placed(x, y)], per_condition)
        return found

    def batch_simulate(self, x: npt.ArrayLike, y: npt.ArrayLike, per_condition: bool = False) -> list[Simulation]:
        """Return the result of `simulate` for each layout."""
        return list(self._simulations(self._placed_each(x, y), per_condition))

    def _simulations(self, layouts: Sequence[Places], per_condition: bool) -> Iterator[Simulation]:
        if self._gpu is None:
            found: Iterable[tuple[Array, Array]] = map(self._with_speeds, layouts)
        else:
            found = self._gpu.speeds(layouts, self._farm_size(layouts[0]) if layouts else 0)
        for places, (power, by_row) in zip(layouts, found, strict=True):
            yield self._simulation(places, power, self._by_condition(by_row), per_condition)

    def _simulation(self, places: Places, power: Array, speeds: Array, per_condition: bool) -> Simulation:
        """Return the results of a layout. power: mean, MW; speeds: effective, in each condition, m/s."""
        turbines = self._farm_turbines(places)
        free, weight, density = self._free_wind(places)

        def power_at(values: Array) -> Array:
            every = np.broadcast_to(values, speeds.shape)
            found = np.array([t.power_mw(s) for t, s in zip(turbines, every, strict=True)]).reshape(speeds.shape)
            return found * density

        gross = power_at(free)
        return Simulation(
            aep_gwh=power * GWH_PER_MW,
            gross_aep_gwh=np.einsum("tds,tds->t", gross, weight) * GWH_PER_MW,
            effective_speed_m_s=np.einsum("tds,tds->t", speeds, weight) / weight.sum(axis=(1, 2)),
            conditions=self.site.conditions,
            condition_speed_m_s=speeds if per_condition else None,
            condition_power_mw=power_at(speeds) if per_condition else None,
            condition_gross_power_mw=gross if per_condition else None,
            condition_weight=weight if per_condition else None,
        )

    def wake_loss(self, x: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Return the share of the energy that the farm loses to wakes, those of neighbours included."""
        return self.simulate(x, y).total_wake_loss

    def next_turbine_aep_gwh(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        at_x: npt.ArrayLike,
        at_y: npt.ArrayLike,
        *,
        turbine: Turbine | None = None,
        rotor_average: bool = True,
    ) -> Array:
        """Return the AEP (GWh) of one more turbine at each of many points, given the turbines at x, y.

        The losses of the other turbines are not counted. turbine: its type, by default the farm's. rotor_average: True
        averages wakes over its rotor, as between turbines; False uses the wind at its hub, as PyWake's maps do.
        """
        return self.next_turbine_map(at_x, at_y, turbine=turbine, rotor_average=rotor_average).aep_gwh(x, y)

    def next_turbine_map(
        self,
        at_x: npt.ArrayLike,
        at_y: npt.ArrayLike,
        *,
        turbine: Turbine | None = None,
        rotor_average: bool = True,
    ) -> "NextTurbineMap":
        """Return a map that computes `next_turbine_aep_gwh` for a farm that is built turbine by turbine.

        Each call recomputes only what changed.
        """
        engine, at = self._next_turbines(turbine, at_x, at_y)
        return NextTurbineMap(engine, self._wind, self._local, self._neighbours_first, at, rotor_average)

    def next_turbine_gain(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        at_x: npt.ArrayLike,
        at_y: npt.ArrayLike,
        *,
        turbine: Turbine | None = None,
    ) -> Array:
        """Return the AEP (GWh) that the farm would gain from one more turbine at each of many points.

        That is the yield of the new turbine less the losses of the others. It is an approximation: the thrust of the
        others is held constant.
        """
        places = self._placed(x, y)
        engine, at = self._next_turbines(turbine, at_x, at_y)
        counted = self._counted(places)
        some = blocks(self._wind, places, at, self._local)
        parts = each_block(lambda block: engine.gains(block, counted), some, self.threads)
        return np.asarray(sum(parts) * GWH_PER_MW)

    def net_minus_gross_gwh(self, x: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Return the AEP less the gross yield, GWh: the wake losses as a negative number."""
        if self._local is None:
            return self.aep_gwh(x, y) - float(self.gross_aep_gradient(x, y)[0].sum())
        return float(self._total(self._engine.lost_power, self._placed(x, y)).sum()) * GWH_PER_MW

    def net_minus_gross_gradient(
        self, x: npt.ArrayLike, y: npt.ArrayLike, conditions: Conditions | None = None
    ) -> tuple[float, Array, Array]:
        """Return `net_minus_gross_gwh` and its derivatives by each x and each y, GWh/m; see `aep_gradient`."""
        if self._local is None:
            aep, by_x, by_y = self.aep_gradient(x, y, conditions)
            return aep - float(self.gross_aep_gradient(x, y, conditions)[0].sum()), by_x, by_y
        places = self._placed(x, y)
        counted = self._counted(places)
        total = self._total(lambda block: self._engine.gradient(block, counted, of_loss=True), places, conditions)
        power, by_x, by_y = total * GWH_PER_MW
        return float(power.sum()), by_x, by_y

    def gross_aep_gradient(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        conditions: Conditions | None = None,
        *,
        turbine: Turbine | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return the AEP (GWh) of each of the farm's turbines without wakes, and its derivatives by its x and y, GWh/m.

        conditions: as in `aep_gradient`. turbine: the type at all points; by default the farm's own types.
        """
        if turbine is None:
            engine, at = self._engine, self._farm_places(x, y, is_complete=True)
        else:
            engine, at = self._next_turbines(turbine, x, y)
        wind, local = (self._wind, self._local) if conditions is None else (wind_of(conditions), local_of(conditions))
        if local is None:
            given = self.site.conditions if conditions is None else conditions
            each = [float(np.vdot(t.power_mw(given.speed), given.weight)) for t in engine.turbines]
            gross = np.array(each)[at.kind]
            total = np.stack([gross, np.zeros(len(at.x)), np.zeros(len(at.x))])
        else:
            blocks_of_points = blocks(wind, NO_PLACES, at, local)
            total = np.asarray(sum(each_block(engine.gross, blocks_of_points, self.threads)))
        power, by_x, by_y = total * GWH_PER_MW
        return power, by_x, by_y

    def local_wind(self, x: npt.ArrayLike, y: npt.ArrayLike) -> dict[str, Array]:
        """Return the wind without wakes at each turbine, neighbours last, in all conditions of a site where it varies.

        Shape (turbines, directions, speeds); local_air_density_kg_m3 may be one number.
        """
        places, local = self._placed(x, y), self._local
        if local is None:
            raise InputError("the wind is the same everywhere; its conditions are in `site.conditions`")
        wind = self._engine.wind_at(self._wind, local, places)
        density = self._by_condition(wind.density) if len(wind.density) else np.ones(())
        every = (len(places.x), *self.site.conditions.speed.shape)
        speed, weight, intensity = (
            np.array(np.broadcast_to(self._by_condition(values), every))
            for values in (wind.speed, wind.weight, wind.turbulence_intensity)
        )
        return {
            "local_wind_speed_m_s": speed,
            "local_probability": weight,
            "local_turbulence_intensity": intensity,
            "local_air_density_kg_m3": density * AIR_DENSITY,
        }

    def mean_free_wind(
        self, x: npt.ArrayLike, y: npt.ArrayLike, conditions: Conditions, turbine: Turbine
    ) -> tuple[Array, Array]:
        """Return speed (m/s) and weight of conditions without wakes, means over points at the hub of a turbine.

        Shape (directions, speeds).
        """
        engine, at = self._next_turbines(turbine, x, y)
        local = local_of(conditions)
        if local is None:
            return conditions.speed, conditions.weight
        wind = engine.wind_at(wind_of(conditions), local, at)
        speed, weight = (by_condition(each, conditions.speed.shape).mean(axis=0) for each in (wind.speed, wind.weight))
        return speed, weight

    def marginal_aep_gwh(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
        """Return the AEP (GWh) that the farm would lose without each of its turbines.

        It is less than the turbine's yield, because turbines in its wake would gain. It is an approximation,
        as in `next_turbine_gain`.
        """
        places = self._placed(x, y)
        counted = self._counted(places)
        return self._total(lambda block: self._engine.marginal(block, counted), places) * GWH_PER_MW

    def flow(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Flow:
        """Return the wind between the turbines of a layout: `speed` in one wind, `mean_speed` weighted by energy."""
        places = self._placed(x, y)
        return Flow(self._engine, self.site.conditions, places, self._farm_turbines(places), self.threads)

    def _placed(self, x: npt.ArrayLike, y: npt.ArrayLike, what: str = "") -> Places:
        """Return the farm's turbines, then the neighbours. what: begins the messages."""
        farm = self._farm_places(x, y, is_complete=True, what=what)
        if self.site.field is not None:
            self.site.field.check_places(farm.x, farm.y, f"{what}turbine ")
        return _joined(farm, self._neighbours, what)

    def _placed_each(self, x: npt.ArrayLike, y: npt.ArrayLike) -> list[Places]:
        """Return the result of `_placed` for each layout."""
        east, north = several_layouts(x, y)
        return [self._placed(*each, f"layout {i}: ") for i, each in enumerate(zip(east, north, strict=True))]

    def _neighbours_first(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Places:
        """Return the neighbours, which do not change as a farm grows, then the first turbines of the farm."""
        return _joined(self._neighbours, self._farm_places(x, y, is_complete=False))

    def _farm_places(self, x: npt.ArrayLike, y: npt.ArrayLike, is_complete: bool, what: str = "") -> Places:
        east, north = positions(x, y, what)
        count, given = len(east), len(self._farm_kinds)
        if isinstance(self.turbine, Turbine):
            return Places(east, north, np.zeros(count, dtype=np.uint32))
        if is_complete and count != given:
            raise InputError(f"{what}{given} turbines for {count} positions; expected one for each, or one for all")
        if count > given:
            raise InputError(f"{count} positions for a farm of {given} turbines; expected at most {given}")
        return Places(east, north, self._farm_kinds[:count])

    def _farm_size(self, places: Places) -> int:
        """Return the number of the farm's turbines in the result of `_placed`."""
        return len(places.x) - len(self._neighbours.x)

    def _next_turbines(
        self, turbine: Turbine | None, at_x: npt.ArrayLike, at_y: npt.ArrayLike
    ) -> tuple[Engine, Places]:
        """Return an engine that includes the type of the next turbine, and this turbine at each point."""
        if turbine is None and self._farm_kinds.any():
            raise InputError("this farm has several turbine types; choose one with turbine=")
        engine = self._engine
        new = turbine or engine.turbines[0]
        x, y = coordinates(at_x, at_y, "at_")  # unlike turbines, points may coincide
        if self.site.field is not None:
            self.site.field.check_places(x, y, "point ")
            self.site.field.check_hub(new.hub_height_m, new.name)
        if new not in engine.turbines:
            engine = engine.with_turbine(new)
        return engine, Places(x, y, np.full(len(x), engine.turbines.index(new), dtype=np.uint32))

    def _farm_turbines(self, places: Places) -> list[Turbine]:
        return [self._engine.turbines[kind] for kind in places.kind[: self._farm_size(places)]]

    def _counted(self, places: Places) -> Array:
        """Return 1 for each of the farm's turbines, then 0 for each neighbour."""
        return np.repeat([1.0, 0.0], [self._farm_size(places), len(self._neighbours.x)])

    @functools.cached_property
    def _wind(self) -> Wind:
        return wind_of(self.site.conditions)

    @functools.cached_property
    def _local(self) -> LocalWind | None:
        return local_of(self.site.conditions)

    def _powers(self, layouts: Sequence[Places], single: bool = False) -> Array:
        """Return the mean power (MW) of each of the farm's turbines; shape (layouts, turbines)."""
        if self._gpu is not None:
            return self._gpu.power(layouts, self._farm_size(layouts[0]) if layouts else 0, single)
        return np.array([self._total(self._engine.power, places) for places in layouts])

    def _gradients(
        self, layouts: Sequence[Places], conditions: Sequence[Conditions] | None = None, single: bool = False
    ) -> Array:
        """Return `_powers`, and derivatives of their sum by x and y (MW/m); shape (3, layouts, turbines).

        conditions: those of each layout, by default the site's.
        """
        farm = self._farm_size(layouts[0]) if layouts else 0
        if self._gpu is not None:
            return self._gpu.gradient(layouts, farm, conditions, single)
        found = np.zeros((3, len(layouts), farm))
        for i, places in enumerate(layouts):
            work = functools.partial(self._engine.gradient, counted=self._counted(places))
            found[:, i] = self._total(work, places, None if conditions is None else conditions[i])
        return found

    def _total(self, work: Callable[[Block], Array], places: Places, conditions: Conditions | None = None) -> Array:
        """Return the sum over all blocks of the wind, for the farm's turbines only; shape (..., turbines).

        conditions: by default those of the site.
        """
        wind, local = (self._wind, self._local) if conditions is None else (wind_of(conditions), local_of(conditions))
        total = sum(each_block(work, blocks(wind, places, local=local), self.threads))
        return np.asarray(total)[..., : self._farm_size(places)]

    def _with_speeds(self, places: Places) -> tuple[Array, Array]:
        """Return mean power (MW), and effective speeds (m/s) of shape (turbines, rows, lanes)."""

        def power_and_speeds(block: Block) -> tuple[Array, Array]:
            speeds = np.empty((len(places.x), (block.end - block.begin) * block.wind.speed.shape[2]))
            return self._engine.power(block, speeds), speeds

        farm = self._farm_size(places)
        power = np.zeros(len(places.x))
        speeds = []
        for part, speed in each_block(power_and_speeds, blocks(self._wind, places, local=self._local), self.threads):
            power += part
            speeds.append(speed)
        _, rows, filled = self._wind.speed.shape
        return power[:farm], np.concatenate(speeds, axis=1)[:farm].reshape(farm, rows, filled)

    def _free_wind(self, places: Places) -> tuple[Array, Array, Array]:
        """Return the free speed and the weight at each farm turbine in each condition, and the relative air density.

        Shape (turbines, directions, speeds), or what broadcasts to it.
        """
        conditions, local = self.site.conditions, self._local
        shape = (self._farm_size(places), *conditions.speed.shape)
        if local is None:
            return conditions.speed[None], np.broadcast_to(conditions.weight, shape), np.ones(1)
        farm = places.part(slice(shape[0]))
        wind = self._engine.wind_at(self._wind, local, farm)
        density = self._by_condition(wind.density) if len(wind.density) else np.ones(1)
        return self._by_condition(wind.speed), np.broadcast_to(self._by_condition(wind.weight), shape), density

    def _by_condition(self, by_row: Array) -> Array:
        return by_condition(by_row, self.site.conditions.speed.shape)


def _turbines(turbines: object, what: str) -> list[Turbine]:
    each = list(turbines) if isinstance(turbines, Iterable) else []
    if not each or not all(isinstance(turbine, Turbine) for turbine in each):
        raise InputError(f"{what} is {turbines!r:.60}; expected a Turbine, or one Turbine for each position")
    return each


def _one_each(turbine: Turbine | Iterable[Turbine], count: int, where: str) -> list[Turbine]:
    if isinstance(turbine, Turbine):
        return [turbine] * count
    each = _turbines(turbine, f"{where}turbine")
    if len(each) != count:
        raise InputError(f"{where}{len(each)} turbines for {count} positions; expected one for each, or one for all")
    return each


def _is_single(precision: str) -> bool:
    return one_of(precision, ("double", "single"), "precision") == "single"


def _conditions_of_each(
    conditions: Conditions | Sequence[Conditions] | None, layouts: int
) -> Sequence[Conditions] | None:
    """Return the conditions of each layout; None for those of the site."""
    if conditions is None:
        return None
    if isinstance(conditions, Conditions):
        return [conditions] * layouts
    each = list(conditions) if isinstance(conditions, Iterable) else []
    if (layouts and not each) or not all(isinstance(one, Conditions) for one in each):
        raise InputError(f"conditions is {conditions!r:.60}; expected Conditions, or a sequence of them")
    if len(each) != layouts:
        raise InputError(f"{len(each)} conditions for {layouts} layouts; expected one for each, or one for all")
    return each


def _check_draw(count: int, rng: np.random.Generator) -> None:
    """Raise InputError for a wrong number of draws or a wrong generator."""
    if not (isinstance(count, int | np.integer) and count >= 1):
        raise InputError(f"count is {count!r}; expected a whole number, 1 or more")
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng is {rng!r:.60}; expected a generator, for example numpy.random.default_rng(0)")


def _joined(first: Places, second: Places, what: str = "") -> Places:
    """Return the turbines of both; raise InputError if two are at the same point."""
    if not len(first.x) or not len(second.x):
        return first if len(first.x) else second
    x, y = positions(np.r_[first.x, second.x], np.r_[first.y, second.y], f"{what}farm and neighbours: ")
    return Places(x, y, np.r_[first.kind, second.kind])
