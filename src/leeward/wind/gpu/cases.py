"""Target farms among neighbours that stand only part of the time, many samples at once on a GPU.

It computes what `leeward.wind.scenarios` computes for one sample on a CPU.
"""

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import Array, positions
from leeward.wind.conditions import GWH_PER_MW
from leeward.wind.engine import extent_of, local_of, wind_of
from leeward.wind.gpu import device
from leeward.wind.gpu.case_data import THREADS, Catalogue, Room, Samples
from leeward.wind.gpu.data import Values
from leeward.wind.gpu.engine import new, to_device
from leeward.wind.kernels.data import Model, Places, Wind
from leeward.wind.local_wind import LocalWind
from leeward.wind.scenarios import engine_of
from leeward.wind.site import Site
from leeward.wind.turbine import Turbine
from leeward.wind.wake_models import WakeModel

Integers = npt.NDArray[np.int64]

BLOCKS = 32  # of THREADS threads, for each multiprocessor: no GPU runs more of them at once
MOST_SAMPLES = 256  # computed together: the CPU handles their results while the GPU computes the next ones
SHARE = 0.4  # of the free memory for the results of a chunk, and for wind that varies
SIMULATED = (2, 4)  # blocks, and threads of each, in the simulator
ADDED = 128  # threads of a block of `add_farm`


class Sample(NamedTuple):
    """A target and its neighbours. layouts: positions in the catalogue, the target's first.

    first, end: rows of the wind in which each stands; those of the target are ignored.
    """

    layouts: Integers
    first: Integers
    end: Integers


@dataclass(frozen=True, eq=False)
class CasePower:
    """The result of a sample, by case. seconds: its share of the time of its chunk.

    aep_gwh; farm: power of the target, MW, shape (rows,), for the first speed; turbines: power of each turbine, shape
    (turbines, rows), or empty if not wanted.
    """

    aep_gwh: Mapping[str, float]
    farm: Mapping[str, Array]
    turbines: Mapping[str, Array]
    seconds: float


class Running(NamedTuple):
    """A chunk of samples that the GPU computes. power: of turbines, farm: of farms; alone_...: without neighbours.

    target: the position of each sample's target in alone_power and alone_farm. began: time.
    """

    samples: int
    target: Integers
    turbines: Integers
    alone_power: Values
    alone_farm: Values
    power: Values
    farm: Values
    began: float


class GpuScenarios:
    """A site with layouts, of which samples choose a target and neighbours. layouts: x and y (m), and the turbine.

    Samples are independent of each other: how they are divided into chunks does not change any bit.
    """

    def __init__(
        self, site: Site, layouts: Sequence[tuple[Array, Array, Turbine]], wake_model: WakeModel, turbines: bool = False
    ) -> None:
        """Move all data to the GPU. turbines: True to return the power of each turbine."""
        device.require()
        self._site, self._layouts, self._with_turbines = site, layouts, turbines
        self._engine = engine_of(site, [turbine for _, _, turbine in layouts], wake_model)
        self._sizes = np.array([len(x) for x, _, _ in layouts], dtype=np.int64)
        self._starts = np.r_[0, np.cumsum(self._sizes)[:-1]].astype(np.int64)
        x, y = (np.concatenate([layout[axis] for layout in layouts]) for axis in (0, 1))
        is_known = np.isfinite(x) & np.isfinite(y)  # `check` rejects samples with other places
        x, y = (np.where(is_known, axis, axis[is_known][0]) for axis in (x, y))
        self._origin = float(x[0]), float(y[0])
        self._x, self._y = x - self._origin[0], y - self._origin[1]
        number = {turbine: i for i, turbine in enumerate(self._engine.turbines)}
        kind = np.repeat([number[turbine] for _, _, turbine in layouts], self._sizes).astype(np.uint32)
        self._wind, ground = self._local_wind(Places(x, y, kind))
        self._weight = self._wind.weight.reshape(len(self._wind.weight), -1)
        self._elements = self._wind.speed[0].size
        self._catalogue = uploaded(Catalogue(self._x, self._y, kind, ground))
        self._gpu_wind: Wind = uploaded(self._wind)
        self._kinds = uploaded(self._engine.kinds)
        self._room: Room | None = None
        self._problems: dict[tuple[int, bool], str] = {}  # of layouts, as targets and as neighbours

    def evaluate(self, samples: Sequence[Sample]) -> Iterator[CasePower]:
        """Yield the result of each sample, in order. While the caller handles a chunk, the GPU computes the next."""
        size = self._chunk_size(samples)
        chunks = [samples[begin : begin + size] for begin in range(0, len(samples), size)]
        running = self._start(chunks[0]) if chunks else None
        for after in [*chunks[1:], None]:
            if running is None:
                return
            found = self._fetch(running)
            running = self._start(after) if after is not None else None
            yield from found

    def check(self, sample: Sample) -> None:
        """Raise InputError if a layout of the sample is not valid at this site."""
        for position, layout in enumerate(sample.layouts.tolist()):
            role = (layout, position == 0)
            if role not in self._problems:
                self._problems[role] = self._problem(*role)
            if self._problems[role]:
                raise InputError(self._problems[role])

    def _problem(self, layout: int, is_target: bool) -> str:
        """Return what is wrong with a layout, or ""."""
        x, y, _ = self._layouts[layout]
        try:
            positions(x, y, "" if is_target else "neighbours: ")
            if self._site.field is not None:
                self._site.field.check_places(x, y, "turbine " if is_target else "neighbour ")
        except InputError as error:
            return str(error)
        return ""

    def _local_wind(self, places: Places) -> tuple[Wind, Array]:
        """Return the wind, with a row for each place of what varies, and the elevation of the terrain."""
        conditions = self._site.conditions
        wind, local = wind_of(conditions), local_of(conditions)
        if local is None:
            return wind, np.empty(0)
        check_field(self._site)
        self._check_memory(local, len(places.x) * wind.speed.size)
        return self._engine.wind_at(wind, local, places), local.on_ground(places).ground

    def _check_memory(self, local: LocalWind, numbers: int) -> None:
        """Raise InputError if wind at all places does not fit into the GPU. numbers: in each quantity that varies."""
        needed, free = 5 * 8 * numbers, device.free_bytes()  # speed, scale, weight, turbulence, density
        if needed > SHARE * free:
            raise InputError(
                f"the wind at the {len(self._layouts)} layouts of the study needs {needed / 1e9:.1f} GB on the GPU, "
                f"which has room for {SHARE * free / 1e9:.1f} GB; use the engine local"
            )

    @functools.cached_property
    def _kernels(self) -> Any:
        from leeward.wind.gpu.build_cases import case_kernels  # imports the compiler

        return case_kernels(type(self._engine.model))

    @functools.cached_property
    def _model(self) -> tuple[Model, Values]:
        """The wake model on the GPU, and the envelope of reaches; see `leeward.wind.gpu.case_kernels`."""
        options = self._engine.options(extent_of(self._x, self._y))
        envelope = np.sqrt(np.maximum.accumulate(options.reaches.max(axis=(0, 1))))
        seen = options._replace(reaches=options.reaches.max(axis=0))  # of any type of source
        return uploaded(seen), to_device(envelope)

    @functools.cached_property
    def _circles(self) -> tuple[Array, Array, Array]:
        """The centre of each layout and the distance of its farthest turbine, m."""
        x, y = ((np.maximum.reduceat(a, self._starts) + np.minimum.reduceat(a, self._starts)) / 2 for a in self._places)
        away = np.hypot(*(a - np.repeat(b, self._sizes) for a, b in zip(self._places, (x, y), strict=True)))
        return x, y, np.maximum.reduceat(away, self._starts) + 1e-3  # more than any rounding error

    @property
    def _places(self) -> tuple[Array, Array]:
        return self._x, self._y

    def _chunk_size(self, samples: Sequence[Sample]) -> int:
        turbines = max((int(self._sizes[sample.layouts[0]]) for sample in samples), default=1)
        each = 8 * 2 * 2 * self._elements * (turbines + 2)  # the sample, and its target alone
        return max(1, min(MOST_SAMPLES, int(SHARE * device.free_bytes() / each)))

    def _start(self, samples: Sequence[Sample]) -> Running:
        """Start the computation of samples; the GPU goes on after the return."""
        began = time.monotonic()
        targets, target = np.unique([sample.layouts[0] for sample in samples], return_inverse=True)
        nothing = np.zeros(1, dtype=np.int64)
        alone = [Sample(np.array([layout]), nothing, nothing) for layout in targets]
        none = new((0, 2, 1, 1))
        alone_power, alone_farm = self._compute(alone, np.arange(len(alone)), none)
        power, farm = self._compute(samples, target, alone_power)
        turbines = self._sizes[targets[target]]
        return Running(len(samples), target, turbines, alone_power, alone_farm, power, farm, began)

    def _compute(self, samples: Sequence[Sample], target: Integers, alone: Values) -> tuple[Values, Values]:
        """Return the power of the turbines and of the farm in each sample, on the GPU."""
        turbines = max(int(self._sizes[sample.layouts[0]]) for sample in samples)
        power = new((len(samples), 2, turbines, self._elements))
        farm = new((len(samples), 2 if len(self._weight) == 1 else 4, self._elements))
        blocks, threads = self._launch()
        given, room = self._uploaded(samples, target), self._room_for(samples, blocks)
        queue = to_device(np.zeros(1, dtype=np.int32))
        model, envelope = self._model
        self._kernels.cases[blocks, threads](
            self._catalogue, self._gpu_wind, given, self._kinds, model, envelope, alone, queue, room, power
        )
        self._kernels.add_farm[-(-farm.size // ADDED), ADDED](power, given, self._gpu_wind, farm)
        return power, farm

    def _fetch(self, running: Running) -> list[CasePower]:
        """Wait for the results of samples, and return them."""
        wanted = (running.alone_farm, running.farm)
        alone_farm, farm = (values.copy_to_host() for values in wanted)
        powers = (running.alone_power, running.power) if self._with_turbines else ()
        turbines = [values.copy_to_host() for values in powers]
        seconds = (time.monotonic() - running.began) / running.samples
        found = []
        for i, target in enumerate(running.target):
            # the external case without neighbours has no wakes, and the case `all` has those of the target
            four = {
                case: (values[number], part)
                for values, number, cases in (
                    (alone_farm, target, ("none", "internal")),
                    (farm, i, ("external", "all")),
                )
                for part, case in enumerate(cases)
            }
            aep = {case: self._aep_gwh(*one) for case, one in four.items()}
            lanes = self._wind.speed.shape[2]
            series = {case: parts[part, ::lanes] for case, (parts, part) in four.items()}
            each: dict[str, Array] = {}
            if turbines:
                count = running.turbines[i]
                of = {"none": (0, target, 0), "internal": (0, target, 1), "external": (1, i, 0), "all": (1, i, 1)}
                each = {case: turbines[a][b, part, :count, ::lanes] for case, (a, b, part) in of.items()}
            found.append(CasePower(aep, series, each, seconds))
        return found

    def _aep_gwh(self, parts: Array, part: int) -> float:
        if len(self._weight) > 1:
            return float(parts[2 + part].sum()) * GWH_PER_MW
        return float((parts[part] * self._weight[0]).sum()) * GWH_PER_MW

    def _launch(self) -> tuple[int, int]:
        """Return the number of blocks and their threads."""
        if device.is_simulated():
            return SIMULATED
        return BLOCKS * device.multiprocessors(), THREADS

    def _uploaded(self, samples: Sequence[Sample], target: Integers) -> Samples:
        layouts, first, end = (np.concatenate(values) for values in zip(*samples, strict=True))
        begin = np.r_[0, np.cumsum([len(sample.layouts) for sample in samples])]
        circles = [values[layouts] for values in self._circles]
        found = Samples(begin, target, self._starts[layouts], self._sizes[layouts], first, end, *circles)
        return Samples(*(to_device(v, np.int64 if v.dtype.kind == "i" else np.float64) for v in found))

    def _room_for(self, samples: Sequence[Sample], blocks: int) -> Room:
        """Return memory for this number of blocks. It is kept while it is large enough."""
        groups = max(len(sample.layouts) for sample in samples)
        turbines = max(int(self._sizes[sample.layouts].sum()) for sample in samples)
        known = self._room
        if known is None or known.group_along.shape[1] < groups or known.along.shape[1] < turbines:
            self._room = None  # frees the memory
            self._room = new_room(blocks, groups, turbines, self._engine.source_fields)
        return self._room  # type: ignore[return-value]


def check_field(site: Site) -> None:
    """Raise InputError if the wind varies over the site in a way that the GPU does not compute."""
    if site.field is not None and site.field.follows_terrain:
        raise InputError(
            "the wind field has distances along the terrain, which a GPU does not compute in a study; use the engine "
            "local"
        )


def new_room(blocks: int, groups: int, turbines: int, fields: int) -> Room:
    of_groups, of_turbines = (blocks, groups), (blocks, turbines)
    index, flag = np.uint32, np.int8
    return Room(
        new(of_groups),
        new(of_groups),
        new(of_groups, flag),
        new(of_turbines),
        new(of_turbines),
        new(of_turbines, index),
        new(of_turbines, flag),
        new(of_turbines, index),
        new(of_turbines, index),
        new(of_turbines),
        new(of_turbines),
        new(of_turbines, index),
        new(of_turbines, index),
        new(of_turbines, flag),
        new((blocks, 2 * turbines, fields)),
    )


def uploaded(values: Any) -> Any:
    """Return a named tuple with its arrays, also those in named tuples within it, on the GPU."""
    if isinstance(values, np.ndarray):
        return to_device(values)
    if isinstance(values, tuple):
        parts = map(uploaded, values)
        return type(values)(*parts) if hasattr(values, "_fields") else tuple(parts)
    return values
