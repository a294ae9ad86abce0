"""All tasks as columns, so that a hundred thousand can be filtered and sorted in milliseconds."""

import bisect
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from leeward.campaign import Campaign
from leeward.campaign.campaign import MOST_TASKS
from leeward.capacity import GWH_PER_MW
from leeward.errors import InputError
from leeward.store import Key, whole_lines
from leeward.watch.layouts.cells import basis_of
from leeward.watch.layouts.snapshot import Observation, key_of

State = Literal["done", "failed", "again", "running", "missing"]
STATES: tuple[State, ...] = get_args(State)
Order = Literal[
    "key", "state", "aep_gwh", "installed_mw", "capacity_factor", "wake_loss", "min_spacing_m", "n_turbines", "seconds"
]
ORDERS: tuple[Order, ...] = get_args(Order)  # fields of `TaskSeen`

FIGURES = ("n_turbines", "wake_loss", "min_spacing_m", "seconds")
UNKNOWN = (math.nan,) * len(FIGURES)
BLOCK = 1 << 20  # bytes of index lines that are parsed at a time

# a single turbine has no spacing; older indexes have Infinity there
_NUMBER = rb"(?:(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|null|NaN|-?Infinity)"
_LINE = re.compile(  # lines of another form are parsed one by one
    rb'^\{"key":"(farm\d{1,9}_t\d{1,9}_s\d{1,10})","aep":[^,"\n]*,"n_turbines":(\d{1,9}),"diameter":[^,"\n]*,'
    rb'"status":"[\w-]*","origin":"[\w-]*","fingerprint":"\w*"'
    rb'(?:,"wake_loss":%s)?(?:,"min_spacing_m":%s)?(?:,"seconds":%s)?(?:,"[^\n]*)?\}$' % (_NUMBER, _NUMBER, _NUMBER),
    re.MULTILINE,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TaskSeen:
    """One task. wake_loss, capacity_factor: fractions. seconds: computing time. Unknown values are None.

    state: "done"; "failed": not retried automatically; "again": failed, to be retried; "running"; "missing": not
    started.
    """

    key: Key
    state: State
    aep_gwh: float | None
    installed_mw: float | None
    capacity_factor: float | None
    wake_loss: float | None
    min_spacing_m: float | None
    n_turbines: int | None
    seconds: float | None


@dataclass(frozen=True)
class TaskFilter:
    """A selection and order of tasks. None selects all. backwards: largest first."""

    farm_idx: int | None = None
    type_idx: int | None = None
    seed: int | None = None
    state: State | None = None
    order: Order = "key"
    backwards: bool = False


class TaskTable:
    """All tasks of one observation: the expected ones and other existing results.

    keys: farm, turbine type and seed, sorted, shape (3, tasks).
    """

    def __init__(self, seen: Observation) -> None:
        expected, (done, known) = _expected(seen), _done(seen)
        keys = np.concatenate([expected, done], axis=1)
        codes = np.zeros(keys.shape[1], dtype=np.int64)  # whole numbers in the order of the keys
        for column in keys:
            values, places = np.unique(column, return_inverse=True)
            codes = codes * len(values) + places
        _, first, rows = np.unique(codes, return_index=True, return_inverse=True)
        self.keys = keys[:, first]
        done_rows = rows[expected.shape[1] :]
        self.state = np.full(len(first), STATES.index("missing"), dtype=np.int8)
        self.state[done_rows] = STATES.index("done")
        figures = np.full((1 + len(FIGURES), len(first)), np.nan)
        figures[:, done_rows] = known
        for failed in seen.snapshot.failures:
            self._mark(failed.key, "failed" if failed.final else "again")
        for worker in seen.snapshot.workers:
            self._mark(worker.task or "", "running")
        self._columns: dict[str, Floats] = dict(zip(("aep_gwh", *FIGURES), figures, strict=True))
        self.aep_gwh = self._columns["aep_gwh"]
        self.installed_mw = self._installed(seen.campaign, self._columns["n_turbines"])
        self.capacity_factor: Floats = self.aep_gwh / (GWH_PER_MW * self.installed_mw)
        self._columns |= {"installed_mw": self.installed_mw, "capacity_factor": self.capacity_factor}

    def _installed(self, campaign: Campaign | None, turbines: Floats) -> Floats:
        """Return the installed power of every task with a known AEP, MW. turbines: number, shape (tasks,)."""
        if campaign is None or not len(self):
            return np.full(len(self), np.nan)
        farms, kinds = self.keys[:2]
        starts = np.flatnonzero(np.r_[True, (np.diff(farms) != 0) | (np.diff(kinds) != 0)])  # keys are sorted
        known = basis_of(campaign).installed_mw
        rated = {kind: campaign.physics.rated_power_mw(kind) for kind in campaign.types}
        pairs = zip(farms[starts].tolist(), kinds[starts].tolist(), strict=True)
        each = np.array([(known.get(pair, np.nan), rated.get(pair[1], np.nan)) for pair in pairs])
        planned, rated_power = np.repeat(each, np.diff(np.r_[starts, len(self)]), axis=0).T
        installed = np.where(np.isnan(turbines), planned, turbines * rated_power)
        return np.where(np.isnan(self.aep_gwh), np.nan, installed)

    def _mark(self, name: str, state: State) -> None:
        """Set the state of a task unless it is done, because a worker may still list a task that is done."""
        key = key_of(name)
        row = None if key is None else self._row_of(key)
        if row is not None and self.state[row] != STATES.index("done"):
            self.state[row] = STATES.index(state)

    def _key(self, row: int) -> Key:
        return Key(*self.keys[:, row].tolist())

    def _row_of(self, key: Key) -> int | None:
        row = bisect.bisect_left(range(len(self)), key, key=self._key)
        return row if row < len(self) and self._key(row) == key else None

    def __len__(self) -> int:
        return len(self.state)

    def chosen(self, wanted: TaskFilter) -> Integers:
        """Return the row numbers of the selected tasks in the selected order; unknown figures come last."""
        mask = np.ones(len(self), dtype=bool)
        for column, number in zip(self.keys, (wanted.farm_idx, wanted.type_idx, wanted.seed), strict=True):
            if number is not None:
                mask &= column == number
        if wanted.state is not None:
            mask &= self.state == STATES.index(wanted.state)
        rows: Integers = np.flatnonzero(mask)
        if wanted.order == "key":
            return rows[::-1] if wanted.backwards else rows
        values = self.state.astype(np.float64) if wanted.order == "state" else self._columns[wanted.order]
        values = values[rows]
        return rows[np.argsort(-values if wanted.backwards else values, kind="stable")]  # NaN sorts last either way

    def row(self, row: int) -> TaskSeen:
        """Return one task."""
        return next(self.rows([row]))

    def rows(self, rows: Iterable[int] | Integers) -> Iterator[TaskSeen]:
        """Yield several tasks, in the order of the row numbers."""
        wanted = np.asarray(rows if isinstance(rows, np.ndarray) else list(rows), dtype=np.int64)
        figures: dict[str, list[Any]] = {
            name: [None if value != value else value for value in column[wanted].tolist()]
            for name, column in self._columns.items()
        }
        figures["n_turbines"] = [None if number is None else int(number) for number in figures["n_turbines"]]
        keys = map(Key, *(column[wanted].tolist() for column in self.keys))
        states = (STATES[state] for state in self.state[wanted].tolist())
        yield from map(TaskSeen, keys, states, *(figures[name] for name in ORDERS[2:]))

    def best_key(self, farm_idx: int, type_idx: int) -> Key | None:
        """Return the key of the largest AEP of a farm and turbine type; None if there is none."""
        rows = self.chosen(TaskFilter(farm_idx, type_idx, state="done", order="aep_gwh", backwards=True))
        return None if len(rows) == 0 or np.isnan(self.aep_gwh[rows[0]]) else self.row(int(rows[0])).key

    def find(self, key: Key) -> TaskSeen | None:
        """Return the task of this key; None if it is neither expected nor stored."""
        row = self._row_of(key)
        return None if row is None else self.row(row)


def task_filter(texts: Mapping[str, str]) -> TaskFilter:
    """Return the filter of query parameters; raise InputError if one is invalid."""
    sort = texts.get("sort", "") or "key"
    state = _one_of(texts.get("state", ""), STATES, "state") if texts.get("state") else None
    order = _one_of(sort.removeprefix("-"), ORDERS, "sort")  # leading -: backwards
    farm, kind, seed = (whole_number(texts, name) for name in ("farm", "type", "seed"))
    return TaskFilter(farm, kind, seed, state, order, sort.startswith("-"))


def _one_of(text: str, known: tuple[str, ...], name: str) -> Any:
    if text not in known:
        raise InputError(f"{name} is {text!r:.40}; expected one of {', '.join(known)}")
    return text


def whole_number(texts: Mapping[str, str], name: str) -> int | None:
    """Return a query parameter as a number, None if it is absent; raise InputError if it is not a whole number."""
    text = texts.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise InputError(f"{name} is {text!r:.40}; expected a whole number")
    return int(text)


def _expected(seen: Observation) -> Integers:
    """Return the keys of the campaign, shape (3, tasks); none if there are too many to list."""
    campaign = seen.campaign
    if campaign is None or campaign.n_tasks > MOST_TASKS:
        return np.zeros((3, 0), dtype=np.int64)
    parts = (np.array(list(part), dtype=np.int64) for part in (campaign.farms, campaign.types, campaign.seeds))
    return np.stack([axis.ravel() for axis in np.meshgrid(*parts, indexing="ij")])


def _done(seen: Observation) -> tuple[Integers, Floats]:
    """Return the keys of all existing results, shape (3, results), and their AEP (GWh) and FIGURES, NaN if unknown."""
    pairs = np.array(list(seen.seeds), dtype=np.int64).reshape(-1, 2)
    farms, types = np.repeat(pairs, [len(names) for names in seen.seeds.values()], axis=0).T
    seeds = np.fromiter(itertools.chain.from_iterable(seen.seeds.values()), dtype=np.int64)
    names = [name for of_pair in seen.seeds.values() for name in of_pair.values()]
    others = figures_in(seen.present.contents)
    aeps = [seen.present.figures.get(name, np.nan) for name in names]
    rest = np.array([others.get(name, UNKNOWN) for name in names], dtype=np.float64).reshape(-1, len(FIGURES))
    figures = np.vstack([aeps, rest.T])
    return np.stack([farms, types, seeds]), np.where(np.isfinite(figures), figures, np.nan)


def figures_in(contents: Iterable[bytes]) -> dict[str, tuple[float, ...]]:
    """Return FIGURES by the text of the key; NaN if unknown. contents: index lines, the newest file first."""
    found: dict[str, tuple[float, ...]] = {}
    for content in reversed(list(contents)):
        start = 0
        while start < len(content):
            end = content.find(b"\n", min(start + BLOCK, len(content) - 1)) + 1 or len(content)
            found |= _figures(content[start:end])
            start = end
    return found


@lru_cache(maxsize=64)  # an index grows at its end: its first blocks stay the same
def _figures(lines: bytes) -> dict[str, tuple[float, ...]]:
    found = _LINE.findall(lines)
    if len(found) == lines.count(b"\n"):
        return {name.decode(): tuple([float(text or "nan") for text in texts]) for name, *texts in found}
    return {str(line["key"]): tuple(_number(line.get(name)) for name in FIGURES) for line in whole_lines(lines)}


def _number(value: object) -> float:
    """Return a value as float; NaN if it is not a number or too large."""
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan
