"""All tasks as columns, to filter and sort a hundred thousand in milliseconds."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from leeward.campaign import Campaign
from leeward.campaign.campaign import MOST_TASKS
from leeward.capacity import GWH_PER_MW
from leeward.errors import InputError
from leeward.store import Key
from leeward.watch.layouts.cells import basis_of, key_of
from leeward.watch.layouts.figures import FIGURES, Figures
from leeward.watch.layouts.snapshot import Observation

State = Literal["done", "failed", "again", "running", "missing"]
STATES: tuple[State, ...] = get_args(State)
Order = Literal[
    "key", "state", "aep", "installed_mw", "capacity_factor", "wake_loss", "min_spacing_m", "n_turbines", "seconds"
]
ORDERS: tuple[Order, ...] = get_args(Order)  # fields of `TaskSeen`

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Choice = TypeVar("Choice", bound=str)


@dataclass(frozen=True)
class TaskSeen:
    """One task. aep: GWh. wake_loss, capacity_factor: fractions. seconds: computing time. Unknown values are None.

    state: "done"; "failed": not retried automatically; "again": failed, to be retried; "running"; "missing": not
    started.
    """

    key: Key
    state: State
    aep: float | None
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
    """All tasks of one observation: the expected ones and other existing results."""

    def __init__(self, seen: Observation, figures: Figures | None = None) -> None:
        done, aeps = _done(seen)
        self._codes = _Codes(np.concatenate([_expected(seen), done], axis=1))
        self.keys = self._codes.keys
        self.state = np.full(len(self.keys[0]), STATES.index("missing"), dtype=np.int8)
        self.aep = np.full(len(self), np.nan)
        rows = self._codes.rows(done)
        self.state[rows], self.aep[rows] = STATES.index("done"), aeps
        failures = seen.snapshot.failures
        self._mark((failed.key for failed in failures if failed.final), "failed")
        self._mark((failed.key for failed in failures if not failed.final), "again")
        self._mark((worker.task or "" for worker in seen.snapshot.workers), "running")
        known = np.full((len(FIGURES), len(self)), np.nan)
        for lines in figures.parts() if figures is not None else ():
            rows = self._codes.rows(lines.keys)
            known[:, rows[rows >= 0]] = lines.figures[:, rows >= 0]
        self.installed_mw = self._installed(seen.campaign, known[FIGURES.index("n_turbines")])
        self.capacity_factor: Floats = self.aep / (GWH_PER_MW * self.installed_mw)
        own = {"aep": self.aep, "installed_mw": self.installed_mw, "capacity_factor": self.capacity_factor}
        self._columns: dict[str, Floats] = own | dict(zip(FIGURES, known, strict=True))

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
        return np.where(np.isnan(self.aep), np.nan, installed)

    def _mark(self, names: Iterable[str], state: State) -> None:
        """Set the state of tasks, except those that are done: a worker may still list one."""
        keys = [key for name in names if (key := key_of(name)) is not None]
        rows = self._codes.rows(np.array(keys, dtype=np.int64).reshape(-1, 3).T)
        rows = rows[rows >= 0]
        self.state[rows[self.state[rows] != STATES.index("done")]] = STATES.index(state)

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
        rows = self.chosen(TaskFilter(farm_idx, type_idx, state="done", order="aep", backwards=True))
        return None if len(rows) == 0 or np.isnan(self.aep[rows[0]]) else self.row(int(rows[0])).key

    def find(self, key: Key) -> TaskSeen | None:
        """Return the task of this key; None if it is neither expected nor stored."""
        row = int(self._codes.rows(np.array([key], dtype=np.int64).T)[0])
        return None if row < 0 else self.row(row)


class _Codes:
    """Keys encoded as whole numbers with the same order. keys: unique, sorted, shape (3, tasks)."""

    def __init__(self, keys: Integers) -> None:
        self._known = [np.unique(column) for column in keys]
        self._codes = np.unique(self._code(keys)[0])
        rest, seed = np.divmod(self._codes, max(len(self._known[2]), 1))
        farm, kind = np.divmod(rest, max(len(self._known[1]), 1))
        self.keys = self._known[0][farm], self._known[1][kind], self._known[2][seed]

    def rows(self, keys: Integers) -> Integers:
        """Return the row numbers of these keys, shape (3, any); -1 for unknown keys."""
        if not len(self._codes):
            return np.full(keys.shape[1], -1)
        codes, is_known = self._code(keys)
        rows: Integers = np.searchsorted(self._codes, codes)
        rows[rows == len(self._codes)] = 0
        return np.where(is_known & (self._codes[rows] == codes), rows, -1)

    def _code(self, keys: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
        code = np.zeros(keys.shape[1], dtype=np.int64)
        is_known = np.ones(keys.shape[1], dtype=bool)
        for known, column in zip(self._known, keys, strict=True):
            place = np.minimum(np.searchsorted(known, column), max(len(known) - 1, 0))
            is_known &= known[place] == column if len(known) else False
            code = code * len(known) + place
        return code, is_known


def task_filter(texts: Mapping[str, str]) -> TaskFilter:
    """Return the filter of query parameters; raise InputError if one is invalid."""
    sort = texts.get("sort", "") or "key"
    state = _one_of(texts.get("state", ""), STATES, "state") if texts.get("state") else None
    order = _one_of(sort.removeprefix("-"), ORDERS, "sort")  # leading -: backwards
    farm, kind, seed = (_whole(texts, name) for name in ("farm", "type", "seed"))
    return TaskFilter(farm, kind, seed, state, order, sort.startswith("-"))


def _one_of(text: str, known: tuple[Choice, ...], name: str) -> Choice:
    for choice in known:
        if choice == text:
            return choice
    raise InputError(f"{name} is {text!r:.40}; expected one of {', '.join(map(str, known))}")


def _whole(texts: Mapping[str, str], name: str) -> int | None:
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
    """Return the keys of all existing results, shape (3, results), and their AEPs in GWh, NaN if unknown."""
    pairs = np.array(list(seen.seeds), dtype=np.int64).reshape(-1, 2)
    farms, types = np.repeat(pairs, [len(names) for names in seen.seeds.values()], axis=0).T
    seeds = np.fromiter(itertools.chain.from_iterable(seen.seeds.values()), dtype=np.int64)
    names = itertools.chain.from_iterable(names.values() for names in seen.seeds.values())
    aeps = np.fromiter((seen.present.figures.get(name, np.nan) for name in names), dtype=np.float64)
    return np.stack([farms, types, seeds]), np.where(np.isfinite(aeps), aeps, np.nan)
