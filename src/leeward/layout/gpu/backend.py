"""The computations of optimisations in lock step, on a GPU."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.layout import smart_start
from leeward.layout.descent import DescentState
from leeward.layout.gpu.data import AEP, GRADIENT, Constraints
from leeward.layout.gpu.energy import DOUBLE, SINGLE, Energy
from leeward.layout.gpu.field_energy import FieldEnergy
from leeward.layout.gpu.launch import THREADS, kernel, start
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
from leeward.layout.objective import SAMPLE, Objective
from leeward.layout.problem import REPAIR_MARGIN_M, SWEEPS, LayoutProblem
from leeward.layout.relocation import CANDIDATES, ON_THE_BOUNDARY, boundary_points, order_to_try
from leeward.layout.search import Pair
from leeward.wind.conditions import GWH_PER_MW
from leeward.wind.engine import Engine
from leeward.wind.gpu.engine import Batch as Layouts, to_device, wait
from leeward.wind.kernels.data import Places

Array = npt.NDArray[np.float64]

WAITS = 20  # steps of a descent between two waits for the GPU
POOL = 20_000  # random points of an area, from which candidates are drawn


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
        self._grids: dict[int, Array] = {}

    def grid(self, size: int) -> Array:
        """Return the points of SmartStart's grid, m, shape (2, points)."""
        if size not in self._grids:
            self._grids[size] = np.array(smart_start.grid_points(self.problem, size))
        return self._grids[size]

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
        types = dict.fromkeys(turbine for problem in each for turbine in [*problem.turbines, *problem.neighbour_types])
        engine = Engine(list(types), farm.wake_model, farm.site.turbulence_range, farm.site.density_range)
        self._sites = {key: Site(i, problem, engine) for i, (key, problem) in enumerate(unique.items())}
        kind = Energy if farm.site.field is None else FieldEnergy
        self._energy = kind(engine, lambda: [site.objective for site in self._sites.values()])

    # ---- placement

    def place(self, batch: Batch[Place]) -> Sequence[Placed | Exception]:
        """Place turbines by SmartStart, in double precision: the random choice depends on the order of the yields."""
        order = sorted(range(len(batch)), key=lambda k: -batch[k][0].problem.n_turbines)
        growing = [Growing(self._site(batch[k][0]), batch[k][1]) for k in order]
        engine, winds = self._energy.engines[DOUBLE], self._energy.winds("smart_start", DOUBLE)
        turbines = np.array([one.site.problem.n_turbines for one in growing])
        # room for the neighbours, then the turbines placed so far
        ends = np.array([one.site.fixed.shape[1] for one in growing])
        shape = (len(growing), int((ends + turbines).max()))
        x, y, kind = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.uint32)
        for i, one in enumerate(growing):
            x[i, : ends[i]], y[i, : ends[i]] = one.site.fixed
            kind[i, : ends[i]] = one.site.kinds[turbines[i] :]
            kind[i, ends[i] : ends[i] + turbines[i]] = one.site.kinds[: turbines[i]]
        corners = [one.corners() for one in growing]  # they tell how far wakes can reach
        layouts = self._batch([one.site for one in growing], corners, DOUBLE)
        grid_x, grid_y = ([one.grid[axis] for one in growing] for axis in (0, 1))
        points = engine.points(_at_zero(layouts), grid_x, grid_y, [0] * len(growing))
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
        layouts = [(request.x, request.y) for request in requests]
        sites = [self._site(search) for search in searches]
        together = self._batch(sites, list(map(_relative, sites, layouts)), DOUBLE)
        gross = self._energy.gross_gwh(together, [search.objective for search in searches])
        return [
            Measured(net, 1.0 - net / free if free > 0.0 else 0.0)
            for net, free in zip(self._aep(searches, layouts, "full_rose"), gross, strict=True)
        ]

    def _aep(self, searches: Sequence[BatchedSearch], layouts: Sequence[Pair], rose: str) -> list[float]:
        """Return the AEP (GWh) of each layout on one of the roses of its objective."""
        sites, found = [self._site(search) for search in searches], np.zeros(len(searches))
        adds_gross = [self._energy.adds_gross(search.objective, rose) for search in searches]
        for kind in sorted({*adds_gross}):
            some = [i for i, each in enumerate(adds_gross) if each == kind]
            batch = self._batch([sites[i] for i in some], [_relative(sites[i], layouts[i]) for i in some], DOUBLE)
            power = self._energy.power(batch, rose, kind).copy_to_host()[0]
            self._notice("judging")
            for row, i in zip(power, some, strict=True):
                net = float(row[: sites[i].problem.n_turbines].sum()) * GWH_PER_MW
                found[i] = net + getattr(searches[i].objective, rose).lacking_gwh
        return [float(each) for each in found]

    # ---- constraints

    def repair(self, batch: Batch[Repair]) -> Sequence[Repaired | Exception]:
        searches, requests = zip(*batch, strict=True)
        sites = [self._site(search) for search in searches]
        layouts = self._batch(sites, [_relative(s, (r.x, r.y)) for s, r in zip(sites, requests, strict=True)], DOUBLE)
        inner = layouts.layouts
        worst = to_device(np.zeros((len(sites), 2, inner.x.shape[1])))
        blocks = -(-len(sites) // 32)
        kernel("repair")[blocks, 32](
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
            Repaired(*_absolute(site, x[i], y[i]), float(left[i, :, : site.problem.n_turbines].max()))
            for i, site in enumerate(sites)
        ]

    # ---- relocation

    def relocate(self, batch: Batch[Relocate]) -> Sequence[Relocated | Exception]:
        """Move turbines as `relocate` does; the candidates come from a pool of points for each area."""
        moving = [Moving(self._site(search), search, request) for search, request in batch]
        moving.sort(key=lambda one: -one.request.count)
        engine, winds = self._energy.engines[SINGLE], self._energy.winds("proposing_rose", SINGLE)
        sites = [one.site for one in moving]
        layouts = self._batch(sites, [one.at for one in moving], SINGLE)
        limits = self._limits(sites)
        worth = engine.worth(layouts, winds).copy_to_host()[0] * GWH_PER_MW
        worth += self._energy.missing_gwh(layouts, [site.objective for site in sites])
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

    def _try(self, moving: list["Moving"], tried: int, layouts: Layouts, rest: Any, limits: Any, winds: Any) -> None:
        """Try the next turbine of each layout at its candidates."""
        engine, count, inner = self._energy.engines[SINGLE], len(moving), layouts.layouts
        which = to_device([one.order[tried] for one in moving], np.int64)
        at = [one.candidates() for one in moving]
        kinds = [one.site.kinds[one.order[tried]] for one in moving]
        points = engine.points(_at_zero(layouts), [each[0] for each in at], [each[1] for each in at], kinds)
        shape = inner.x.shape
        x, y = np.zeros(shape), np.zeros(shape)
        for i, one in enumerate(moving):
            x[i, : one.at.shape[1]], y[i, : one.at.shape[1]] = one.at
        inner = inner._replace(x=engine.numbers(x), y=engine.numbers(y))
        start("find_free", count * points.x.shape[1], inner.x, inner.y, inner.standing, limits, which, points, count)
        start("remove", count * shape[1], inner, which, count, rest)
        gain = engine.gains(layouts._replace(layouts=rest), winds, points, winds).copy_to_host() * GWH_PER_MW
        gain += self._energy.missing_gwh_at(layouts, points, kinds, [one.site.objective for one in moving])
        free = points.free.copy_to_host()
        for i, one in enumerate(moving):
            one.decide(tried, at[i], gain[i], free[i] == 1)

    # ---- descent

    def descend(self, batch: Batch[Descend]) -> Sequence[DescentState | Exception]:
        groups: dict[tuple[str | None, bool], list[tuple[BatchedSearch, Descend]]] = {}
        for search, request in batch:
            objective = search.objective
            rose = "judging_rose" if request.settings.judged else None if objective.samples else "reduced_rose"
            groups.setdefault((rose, self._energy.adds_gross(objective, rose)), []).append((search, request))
        answers: dict[int, DescentState] = {}
        for (rose, adds_gross), some in groups.items():
            answers.update(self._descend(sorted(some, key=lambda pair: -pair[1].steps), rose, adds_gross))
        return [answers[id(request)] for _, request in batch]

    def _descend(
        self, batch: Sequence[tuple[BatchedSearch, Descend]], rose: str | None, adds_gross: bool
    ) -> dict[int, DescentState]:
        """Return the states after the steps, by request. rose: its name, or None for random samples."""
        searches, requests = zip(*batch, strict=True)
        sites = [self._site(search) for search in searches]
        at = [_relative(s, (r.state.x, r.state.y)) for s, r in zip(sites, requests, strict=True)]
        double, limits = self._batch(sites, at, DOUBLE).layouts, self._limits(sites)
        layouts = self._batch(sites, at, SINGLE)
        steps = np.array([request.steps for request in requests])
        shifts: Any = np.zeros((len(batch), steps.max(), 2))
        if rose is None:
            for i, search in enumerate(searches):
                shifts[i, : steps[i]] = search.rng.random((steps[i], 2))
            gradient = self._energy.on_samples(layouts, limits.problem, to_device(shifts), SAMPLE)
        else:
            gradient = self._energy.on_rose(layouts, rose, adds_gross)
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
            sums = gradient(step, count)
            start("note", count, sums, GWH_PER_MW, inner.farm, facts, count)
            kernel("take_step")[count, THREADS](
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
            lacking = self._energy.lacking_gwh(search.objective, rose, SAMPLE, shifts[i, steps[i] - 1])
            found[id(request)] = DescentState(
                *_absolute(sites[i], x[i], y[i]),
                moments=np.ascontiguousarray(after[i, :, :farm]),
                step=request.state.step + request.steps,
                first_gradient=float(noted[i, GRADIENT]),
                aep_gwh=float(noted[i, AEP]) + lacking,
                violation_m=float(after[i, 4, :farm].max()),
            )
        return found

    # ---- data for the GPU

    def _site(self, search: BatchedSearch) -> Site:
        site = self._sites[id(search.problem)]
        site.objective = search.objective
        return site

    def _batch(self, sites: Sequence[Site], at: Sequence[Array], single: bool) -> Layouts:
        """Return layouts on the GPU. at: relative to the origins, with neighbours, shape (2, turbines)."""
        origin = np.array([site.origin for site in sites])
        places = [Places(x, y, np.resize(site.kinds, len(x))) for site, (x, y) in zip(sites, at, strict=True)]
        farm, rose = [site.problem.n_turbines for site in sites], [site.number for site in sites]
        batch = self._energy.engines[single].batch(places, farm, rose, np.zeros((len(sites), 2)))
        return batch._replace(x=origin[:, 0], y=origin[:, 1])

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


def _relative(site: Site, pair: Pair) -> Array:
    """Return positions relative to the origin, with neighbours; shape (2, turbines)."""
    return np.array(site.problem.relative(*pair))


def _absolute(site: Site, x: Array, y: Array) -> Pair:
    """Return the positions of the farm's turbines, m."""
    count = site.problem.n_turbines
    return x[:count] + site.origin[0], y[:count] + site.origin[1]


def _at_zero(layouts: Layouts) -> Layouts:
    """Return layouts for `points` at positions relative to the origins."""
    return layouts._replace(x=np.zeros(len(layouts.x)), y=np.zeros(len(layouts.y)))


class Growing:
    """A layout that SmartStart places turbine by turbine. grid: points, relative to the origin of the site, m."""

    def __init__(self, site: Site, request: Place) -> None:
        self.site = site
        self._options = request.options
        self._at = site.grid(request.options.grid_size)
        self.grid = self._at - site.origin[:, None]
        self.free = np.ones(self._at.shape[1], dtype=bool)
        self._random = np.random.RandomState(request.seed)  # as in TopFarm, so that a seed gives the same layout
        self._chosen: list[int] = []
        self._places: list[int] = []
        self._is_full = False

    def corners(self) -> Array:
        """Return two points between which all others lie, relative to the origin, m."""
        everywhere = np.concatenate([self.grid, self.site.fixed], axis=1)
        return np.stack([everywhere.min(axis=1), everywhere.max(axis=1)], axis=1)

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
