"""The computations of optimisations in lock step, on a GPU."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.layout import smart_start
from leeward.layout.descent import DescentState
from leeward.layout.gpu.data import AEP, GRADIENT, Constraints, Stakes
from leeward.layout.kernels.data import Boundary
from leeward.layout.lockstep import (
    Batch,
    BatchedSearch,
    Descend,
    Estimate,
    Full,
    Judge,
    Measure,
    Measured,
    Place,
    Placed,
    Relocate,
    Relocated,
    Repair,
    Repaired,
)
from leeward.layout.objective import SAMPLE, Objective, Rose
from leeward.layout.problem import REPAIR_MARGIN_M, SWEEPS, LayoutProblem
from leeward.layout.relocation import CANDIDATES, ON_THE_BOUNDARY, boundary_points, order_to_try
from leeward.layout.search import Pair
from leeward.wind.conditions import GWH_PER_MW, Conditions
from leeward.wind.engine import Engine, wind_of
from leeward.wind.gpu.data import Winds
from leeward.wind.gpu.engine import Batch as Layouts, BatchEngine, new, to_device, wait
from leeward.wind.kernels.data import Places

Array = npt.NDArray[np.float64]

THREADS = 64  # of a block
WAITS = 20  # steps of a descent between two waits for the GPU
POOL = 20_000  # random points of an area, from which candidates are drawn
SINGLE, DOUBLE = True, False


class Site:
    """A problem, its number, and what the GPU needs to know about it.

    origin: of its coordinates on the GPU, m. kinds: of its turbines, then of the neighbours.
    """

    def __init__(self, number: int, problem: LayoutProblem, engine: Engine) -> None:
        self.number = number
        self.problem = problem
        self.origin = np.array(problem.area.origin)
        fixed = problem.relative(*np.zeros((2, problem.n_turbines)))
        self.fixed = np.array(fixed)[:, problem.n_turbines :]
        every = [*problem.turbines, *problem.neighbour_types]
        self.kinds = np.array([engine.turbines.index(turbine) for turbine in every], dtype=np.uint32)
        self.objective = Objective(problem)

    def conditions(self, rose: str) -> Conditions:
        """Return the wind of a rose of the objective, or of `smart_start`."""
        if rose == "smart_start":
            return self.objective.smart_start_farm().site.conditions
        found: Rose = getattr(self.objective, rose)
        return found.farm.site.conditions

    @functools.cached_property
    def pools(self) -> tuple[Array, Array]:
        """Points inside, and points on the boundary, relative to the origin; shape (2, POOL)."""
        rng = np.random.default_rng(0)
        inside = np.array(self.problem.area.random_points(POOL, rng))
        edge = np.array(boundary_points(self.problem.area, POOL, rng))
        return inside - self.origin[:, None], edge - self.origin[:, None]


class GpuBackend:
    """Answers the requests of optimisations in lock step; see `leeward.layout.lockstep.Backend`.

    The random numbers are those of the CPU, except for the candidates of relocations. Descents use single precision;
    everything that layouts are compared or reported by uses double precision. notice: called after every step, with the
    name of the phase.
    """

    def __init__(self, problems: Iterable[LayoutProblem], notice: Callable[[str], object] = str) -> None:
        self._notice = notice
        unique = {id(problem): problem for problem in problems}
        each = list(unique.values())
        farm = each[0].farm
        if any(p.farm.site is not farm.site or p.farm.wake_model != farm.wake_model for p in each):
            raise InputError("the problems have different sites or wake models; expected the same for all on a GPU")
        if farm.site.field is not None:
            raise InputError("the wind varies over the site; on a GPU, optimisation needs the same wind everywhere")
        types = dict.fromkeys(turbine for problem in each for turbine in [*problem.turbines, *problem.neighbour_types])
        engine = Engine(list(types), farm.wake_model, farm.site.turbulence_range, farm.site.density_range)
        self._engines = {DOUBLE: BatchEngine(engine), SINGLE: BatchEngine(engine, single=True)}
        self._sites = {key: Site(i, problem, engine) for i, (key, problem) in enumerate(unique.items())}
        self._roses: dict[tuple[str, bool], Winds] = {}

    # ---- placement

    def place(self, batch: Batch[Place]) -> Sequence[Placed | Exception]:
        """Place turbines by SmartStart, in double precision: the random choice depends on the order of the yields."""
        order = sorted(range(len(batch)), key=lambda k: -batch[k][0].problem.n_turbines)
        growing = [Growing(self._site(batch[k][0]), batch[k][1]) for k in order]
        engine, winds = self._engines[DOUBLE], self._winds("smart_start", DOUBLE)
        turbines = np.array([one.site.problem.n_turbines for one in growing])
        # room for the neighbours, then the turbines placed so far
        ends = np.array([one.site.fixed.shape[1] for one in growing])
        shape = (len(growing), int((ends + turbines).max()))
        x, y, kind = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.uint32)
        for i, one in enumerate(growing):
            x[i, : ends[i]], y[i, : ends[i]] = one.site.fixed
            kind[i, : ends[i]] = one.site.kinds[turbines[i] :]
            kind[i, ends[i] : ends[i] + turbines[i]] = one.site.kinds[: turbines[i]]
        everywhere = [np.concatenate([one.grid, one.site.fixed], axis=1) for one in growing]
        layouts = self._batch([one.site for one in growing], everywhere, DOUBLE)
        grid_x, grid_y = ([one.grid[axis] for one in growing] for axis in (0, 1))
        points = engine.points(layouts, grid_x, grid_y, [0] * len(growing))
        for turbine in range(int(turbines.max())):
            count = int((turbines > turbine).sum())
            free = np.zeros(points.x.shape, dtype=np.uint8)
            for i, one in enumerate(growing[:count]):
                one.find_free()
                free[i, : len(one.free)] = one.free
            kinds = [one.site.kinds[min(turbine, farm - 1)] for one, farm in zip(growing, turbines, strict=True)]
            points = points._replace(free=to_device(free), kind=to_device(kinds, np.uint32))
            standing = layouts.layouts._replace(
                x=engine.numbers(x), y=engine.numbers(y), kind=to_device(kind), standing=to_device(ends)
            )
            grown = layouts._replace(layouts=standing, used=count)
            yields = engine.yields(grown, winds, points, winds, False).copy_to_host() * GWH_PER_MW
            self._notice("placing")
            for i, one in enumerate(growing[:count]):
                chosen = one.choose(yields[i, : len(one.free)])
                if chosen is not None:
                    x[i, ends[i]], y[i, ends[i]] = one.grid[:, chosen]
                    ends[i] += 1
        answers = {k: one.placed for k, one in zip(order, growing, strict=True)}
        return [answers[k] for k in range(len(batch))]

    # ---- energy

    def estimate(self, batch: Batch[Estimate]) -> Sequence[Sequence[float] | Exception]:
        searches = [search for search, request in batch for _ in request.layouts]
        found = iter(self._aep(searches, [pair for _, request in batch for pair in request.layouts], "proposing_rose"))
        return [[next(found) for _ in request.layouts] for _, request in batch]

    def judge(self, batch: Batch[Judge]) -> Sequence[float | Exception]:
        searches, requests = zip(*batch, strict=True)
        return self._aep(searches, [(request.x, request.y) for request in requests], "judging_rose")

    def full(self, batch: Batch[Full]) -> Sequence[float | Exception]:
        searches, requests = zip(*batch, strict=True)
        return self._aep(searches, [(request.x, request.y) for request in requests], "full_rose")

    def measure(self, batch: Batch[Measure]) -> Sequence[Measured | Exception]:
        searches, requests = zip(*batch, strict=True)
        found = self._aep(searches, [(request.x, request.y) for request in requests], "full_rose")
        return [
            Measured(aep, 1.0 - aep / gross if gross > 0.0 else 0.0)
            for aep, gross in zip(found, map(self._gross_gwh, searches), strict=True)
        ]

    def _gross_gwh(self, search: BatchedSearch) -> float:
        """Return the AEP without wakes, GWh."""
        conditions = search.problem.farm.site.conditions
        each = {t: float(np.vdot(t.power_mw(conditions.speed), conditions.weight)) for t in {*search.problem.turbines}}
        return sum(each[t] for t in search.problem.turbines) * GWH_PER_MW

    def _aep(self, searches: Sequence[BatchedSearch], layouts: Sequence[Pair], rose: str) -> list[float]:
        """Return the AEP (GWh) of each layout on one of the roses of its objective."""
        engine, sites = self._engines[DOUBLE], [self._site(search) for search in searches]
        batch = self._batch(sites, [self._relative(*pair) for pair in zip(sites, layouts, strict=True)], DOUBLE)
        power = engine.power(batch, self._winds(rose, DOUBLE)).copy_to_host()[0]
        self._notice("judging")
        return [
            float(power[i, : site.problem.n_turbines].sum()) * GWH_PER_MW + getattr(search.objective, rose).lacking_gwh
            for i, (site, search) in enumerate(zip(sites, searches, strict=True))
        ]

    # ---- constraints

    def repair(self, batch: Batch[Repair]) -> Sequence[Repaired | Exception]:
        searches, requests = zip(*batch, strict=True)
        sites = [self._site(search) for search in searches]
        layouts = self._batch(
            sites, [self._relative(s, (r.x, r.y)) for s, r in zip(sites, requests, strict=True)], DOUBLE
        )
        inner = layouts.layouts
        worst = to_device(np.zeros((len(sites), 2, inner.x.shape[1])))
        blocks = -(-len(sites) // 32)
        _kernel("repair")[blocks, 32](
            inner.x,
            inner.y,
            inner.farm,
            inner.standing,
            self._limits(sites),
            REPAIR_MARGIN_M,
            SWEEPS,
            worst,
            len(sites),
        )
        x, y, left = inner.x.copy_to_host(), inner.y.copy_to_host(), worst.copy_to_host()
        return [
            Repaired(*self._absolute(site, x[i], y[i]), float(left[i, :, : site.problem.n_turbines].max()))
            for i, site in enumerate(sites)
        ]

    # ---- relocation

    def relocate(self, batch: Batch[Relocate]) -> Sequence[Relocated | Exception]:
        """Move turbines as `relocate` does; the candidates come from a pool of points for each area."""
        moving = [Moving(self._site(search), search, request) for search, request in batch]
        moving.sort(key=lambda one: -one.request.count)
        engine, winds = self._engines[SINGLE], self._winds("proposing_rose", SINGLE)
        sites = [one.site for one in moving]
        layouts = self._batch(sites, [one.at for one in moving], SINGLE)
        limits = self._limits(sites)
        worth = engine.worth(layouts, winds).copy_to_host()[0] * GWH_PER_MW
        for one, values in zip(moving, worth, strict=True):
            one.begin(values)
        rest = layouts.layouts._replace(
            x=engine.numbers(layouts.layouts.x.copy_to_host()),
            y=engine.numbers(layouts.layouts.y.copy_to_host()),
            kind=to_device(layouts.layouts.kind.copy_to_host()),
            farm=to_device(layouts.layouts.farm.copy_to_host()),
            standing=to_device(layouts.layouts.standing.copy_to_host()),
        )
        for tried in range(max(one.tries for one in moving)):
            count = sum(one.tries > tried for one in moving)
            self._try(moving[:count], tried, layouts._replace(used=count), rest, limits, winds)
            self._notice("relocating")
        answers = {id(one.request): one.answer() for one in moving}
        return [answers[id(request)] for _, request in batch]

    def _try(self, moving: list["Moving"], tried: int, layouts: Layouts, rest: Any, limits: Any, winds: Winds) -> None:
        """Try the next turbine of each layout at its candidates."""
        engine, count, inner = self._engines[SINGLE], len(moving), layouts.layouts
        which = to_device([one.order[tried] for one in moving], np.int64)
        at = [one.candidates() for one in moving]
        kinds = [one.site.kinds[one.order[tried]] for one in moving]
        points = engine.points(layouts, [each[0] for each in at], [each[1] for each in at], kinds)
        shape = inner.x.shape
        x, y = np.zeros(shape), np.zeros(shape)
        for i, one in enumerate(moving):
            x[i, : one.at.shape[1]], y[i, : one.at.shape[1]] = one.at
        inner = inner._replace(x=engine.numbers(x), y=engine.numbers(y))
        _start("find_free", count * points.x.shape[1], inner.x, inner.y, inner.standing, limits, which, points, count)
        _start("remove", count * shape[1], inner, which, count, rest)
        gain = engine.gains(layouts._replace(layouts=rest), winds, points, winds).copy_to_host() * GWH_PER_MW
        free = points.free.copy_to_host()
        for i, one in enumerate(moving):
            one.decide(tried, at[i], gain[i], free[i] == 1)

    # ---- descent

    def descend(self, batch: Batch[Descend]) -> Sequence[DescentState | Exception]:
        answers: dict[int, DescentState] = {}
        judged = batch[0][1].settings.judged
        for samples in (True, False):
            some = [(s, r) for s, r in batch if not judged and s.objective.samples == samples]
            if judged and samples:
                some = list(batch)
            if some:
                rose = "judging_rose" if judged else None if samples else "reduced_rose"
                states = self._descend(sorted(some, key=lambda pair: -pair[1].steps), rose)
                answers.update(states)
        return [answers[id(request)] for _, request in batch]

    def _descend(self, batch: Sequence[tuple[BatchedSearch, Descend]], rose: str | None) -> dict[int, DescentState]:
        """Return the states after the steps, by request. rose: its name, or None for random samples."""
        engine = self._engines[SINGLE]
        searches, requests = zip(*batch, strict=True)
        sites = [self._site(search) for search in searches]
        at = [self._relative(s, (r.state.x, r.state.y)) for s, r in zip(sites, requests, strict=True)]
        double, limits = self._batch(sites, at, DOUBLE).layouts, self._limits(sites)
        layouts = self._batch(sites, at, SINGLE)
        steps = np.array([request.steps for request in requests])
        shifts: Any = np.zeros((len(batch), steps.max(), 2))
        if rose is None:
            for i, search in enumerate(searches):
                shifts[i, : steps[i]] = search.rng.random((steps[i], 2))
            layouts = layouts._replace(layouts=layouts.layouts._replace(rose=to_device(np.arange(len(batch)), np.uint32)))
            winds, stakes = self._sampled_winds(len(batch)), self._stakes
        else:
            winds, stakes = self._winds(rose, SINGLE), None
        last, shifts = shifts[np.arange(len(batch)), steps - 1], to_device(shifts)
        settings, moments = np.zeros((len(batch), 7)), np.zeros((len(batch), 6, double.x.shape[1]))
        for i, request in enumerate(requests):
            s, state = request.settings, request.state
            adam = (s.first_moment, s.second_moment, s.steps, state.step)
            settings[i] = (s.first_step_m, s.last_share, s.penalty, *adam)
            moments[i, :, : state.moments.shape[1]] = state.moments
        facts = to_device([[request.state.first_gradient, 0.0] for request in requests], np.float64)
        arguments = (to_device(moments), to_device(settings), facts)
        inner = layouts.layouts
        for step in range(int(steps.max())):
            count = int((steps > step).sum())
            if rose is None:
                _start("draw", count * SAMPLE, stakes, limits.problem, shifts, step, SAMPLE, count, winds)
            sums = engine.gradient(layouts._replace(used=count), winds)
            _start("note", count, sums, GWH_PER_MW, inner.farm, facts, count)
            _kernel("take_step")[count, THREADS](
                double.x,
                double.y,
                inner.farm,
                inner.standing,
                limits,
                sums,
                GWH_PER_MW,
                *arguments,
                step,
                inner.x,
                inner.y,
            )
            if step % WAITS == WAITS - 1:
                wait()  # otherwise thousands of steps are queued, and the progress tells nothing
            self._notice("polishing" if rose == "judging_rose" else "descending")
        x, y, noted = double.x.copy_to_host(), double.y.copy_to_host(), facts.copy_to_host()
        after = arguments[0].copy_to_host()
        found = {}
        for i, (search, request) in enumerate(batch):
            farm = search.problem.n_turbines
            lacking = self._lacking(search, rose, last[i])
            found[id(request)] = DescentState(
                *self._absolute(sites[i], x[i], y[i]),
                moments=np.ascontiguousarray(after[i, :, :farm]),
                step=request.state.step + request.steps,
                first_gradient=float(noted[i, GRADIENT]),
                aep_gwh=float(noted[i, AEP]) + lacking,
                violation_m=float(after[i, 4, :farm].max()),
            )
        return found

    def _lacking(self, search: BatchedSearch, rose: str | None, shift: Array) -> float:
        """Return the gross yield (GWh) that a rose, or the sample with this shift, lacks."""
        if rose is not None:
            return float(getattr(search.objective, rose).lacking_gwh)
        return search.objective.lacking_gwh(search.objective.stakes.drawn(SAMPLE, shift))

    # ---- data for the GPU

    def _site(self, search: BatchedSearch) -> Site:
        site = self._sites[id(search.problem)]
        site.objective = search.objective
        return site

    def _batch(self, sites: Sequence[Site], at: Sequence[Array], single: bool) -> Layouts:
        """Return layouts on the GPU. at: relative to the origins, with neighbours, shape (2, turbines)."""
        places = [Places(x, y, np.resize(site.kinds, len(x))) for site, (x, y) in zip(sites, at, strict=True)]
        farm, rose = [site.problem.n_turbines for site in sites], [site.number for site in sites]
        return self._engines[single].batch(places, farm, rose, np.zeros((len(sites), 2)))

    def _winds(self, name: str, single: bool) -> Winds:
        """Return the roses of this name of all problems."""
        if (name, single) not in self._roses:
            each = [site.conditions(name) for site in self._sites.values()]
            speeds = max(conditions.speed.shape[1] for conditions in each)
            self._roses[name, single] = self._engines[single].winds([wind_of(c) for c in each], speeds)
        return self._roses[name, single]

    def _sampled_winds(self, layouts: int) -> Winds:
        """Return room for a sample of the wind for each layout."""
        number = self._engines[SINGLE].number
        values = [new((layouts, 1, SAMPLE, 1), number) for _ in range(3)]
        none = [new((0, 0, 0, 0), number) for _ in range(2)]
        return Winds(new((layouts, SAMPLE), number), new((layouts, SAMPLE), number), *values, *none)

    @functools.cached_property
    def _stakes(self) -> Stakes:
        """The energy at stake for each problem."""
        tables = [site.objective.stakes.tables for site in self._sites.values()]
        order, by_direction, within, ratio = (np.stack(values) for values in zip(*tables, strict=True))
        conditions = next(iter(self._sites.values())).problem.farm.site.conditions
        wind = wind_of(replace(conditions, speed=conditions.speed[:, :1], weight=conditions.weight[:, :1]))
        values = (order, by_direction, within, ratio, wind.cosine, wind.sine)
        order, by_direction, within, ratio, cosine, sine = map(to_device, values)
        speed, turbulence = to_device(conditions.speed), to_device(conditions.turbulence_intensity)
        return Stakes(order, by_direction, within, ratio, cosine, sine, speed, turbulence)

    def _limits(self, sites: Sequence[Site]) -> Constraints:
        """Return the constraints, with the number of the problem of each layout."""
        return self._every_limit._replace(problem=to_device([site.number for site in sites], np.int64))

    @functools.cached_property
    def _every_limit(self) -> Constraints:
        each = [site.problem.area.boundary for site in self._sites.values()]
        ends = np.cumsum([0, *(len(boundary.start_x) for boundary in each)])
        first = np.concatenate([boundary.first[:-1] + end for boundary, end in zip(each, ends[:-1], strict=True)])
        joined = {
            name: to_device(np.concatenate([getattr(boundary, name) for boundary in each]))
            for name in ("start_x", "start_y", "end_x", "end_y", "inverse_square", "closed", "margin")
        }
        distances = [site.problem.min_distances_m for site in self._sites.values()]
        padded = np.zeros((len(each), max(map(len, distances))))
        for row, values in zip(padded, distances, strict=True):
            row[: len(values)] = values
        return Constraints(
            Boundary(first=to_device(np.r_[first, ends[-1]]), regions=0, **joined),
            to_device(np.cumsum([0, *(len(boundary.margin) for boundary in each)])),
            to_device([boundary.regions for boundary in each], np.int64),
            to_device(padded),
            to_device([0]),
        )

    def _relative(self, site: Site, pair: Pair) -> Array:
        """Return positions relative to the origin, with neighbours; shape (2, turbines)."""
        return np.array(site.problem.relative(*pair))

    def _absolute(self, site: Site, x: Array, y: Array) -> Pair:
        """Return the positions of the farm's turbines, m."""
        count = site.problem.n_turbines
        return x[:count] + site.origin[0], y[:count] + site.origin[1]


class Growing:
    """A layout that SmartStart places turbine by turbine. grid: points, relative to the origin of the site, m."""

    def __init__(self, site: Site, request: Place) -> None:
        self.site = site
        self._options = request.options
        self._at = np.array(smart_start.grid_points(site.problem, request.options.grid_size))
        self.grid = self._at - site.origin[:, None]
        self.free = np.ones(self._at.shape[1], dtype=bool)
        self._random = np.random.RandomState(request.seed)  # as in TopFarm, so that a seed gives the same layout
        self._chosen: list[int] = []
        self._places: list[int] = []
        self._is_full = False

    def find_free(self) -> None:
        """Find the points that are free for the next turbine."""
        problem, turbine = self.site.problem, len(self._chosen)
        x, y = self._at[:, self._chosen]
        if problem.one_type and turbine:  # all others were found before
            apart = (0.5 * (problem.min_distances_m[turbine] + problem.min_distances_m[turbine - 1])) ** 2
            self.free &= (self._at[0] - x[-1]) ** 2 + (self._at[1] - y[-1]) ** 2 >= apart
        else:
            self.free = problem.free(x, y, np.arange(turbine), turbine, *self._at)
        self._is_full |= not self.free.any()
        if self._is_full:
            self.free = np.zeros(len(self.free), dtype=bool)

    def choose(self, yields: Array) -> int | None:
        """Choose the place of the next turbine by the yields (GWh) at all points; None if none is free."""
        if self._is_full:
            return None
        places = np.flatnonzero(self.free)
        best = smart_start.best_places(yields[places], self._options)
        self._chosen.append(int(places[self._random.choice(best)]))
        self._places.append(len(places))
        return self._chosen[-1]

    @property
    def placed(self) -> Placed:
        x, y = self._at[:, self._chosen]
        return Placed(x, y, self._places)


class Moving:
    """A layout some of whose turbines move. at: positions relative to the origin, with neighbours, m."""

    def __init__(self, site: Site, search: BatchedSearch, request: Relocate) -> None:
        self.site = site
        self.request = request
        self.at = np.array(site.problem.relative(request.x, request.y))
        self.tries = min(request.count, site.problem.n_turbines)
        self.order: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._worth = np.empty(0)
        self._rng = search.rng
        self._which: list[int] = []
        self._places: list[int] = []

    def begin(self, worth: Array) -> None:
        """Choose the turbines to try. worth: of all turbines, GWh."""
        self._worth = worth[: self.site.problem.n_turbines]
        self.order = order_to_try(self._worth, self.request.chance, self._rng)

    def candidates(self) -> Array:
        """Return random places, shape (2, CANDIDATES)."""
        inside, edge = self.site.pools
        on_edge = int(CANDIDATES * ON_THE_BOUNDARY)
        chosen = inside[:, self._rng.integers(POOL, size=CANDIDATES - on_edge)]
        return np.concatenate([chosen, edge[:, self._rng.integers(POOL, size=on_edge)]], axis=1)

    def decide(self, tried: int, at: Array, gain: Array, free: npt.NDArray[np.bool_]) -> None:
        """Move the turbine to the best of its free candidates if that is better. gain: at each of them, GWh."""
        turbine = int(self.order[tried])
        self._places.append(int(free.sum()))
        values = np.where(free, gain[: len(free)], -np.inf)
        best = int(np.argmax(values))
        if values[best] > self._worth[turbine]:
            self.at[:, turbine] = at[:, best]
            self._which.append(turbine)

    def answer(self) -> Relocated:
        x, y = self.at[:, : self.site.problem.n_turbines] + self.site.origin[:, None]
        return Relocated(x, y, self._which, self._places)


@functools.cache
def _kernel(name: str) -> Any:
    """Return a compiled loop by its name."""
    from leeward.layout.gpu import kernels
    from leeward.wind.gpu.build import compiled

    return compiled(getattr(kernels, name), False)


def _start(name: str, threads: int, *arguments: object) -> None:
    """Start a loop with so many threads."""
    _kernel(name)[-(-threads // THREADS), THREADS](*arguments)
