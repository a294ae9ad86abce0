"""Every task of a place in columns: a hundred thousand are filtered, sorted and paged in milliseconds."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError, StorageError
from leeward.store.index import whole_lines
from leeward.store.keys import Key
from leeward.watch.campaigns import run_of
from leeward.watch.present import key_of
from leeward.watch.read import Observation, index_contents

State = Literal["done", "failed", "again", "running", "missing"]
STATES: tuple[State, ...] = get_args(State)
Order = Literal["key", "state", "aep", "wake_loss", "min_spacing_m", "n_turbines", "seconds"]
ORDERS: tuple[Order, ...] = get_args(Order)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Choice = TypeVar("Choice", bound=str)
FIGURES = ("wake_loss", "min_spacing_m", "n_turbines", "seconds")


@dataclass(frozen=True)
class TaskSeen:
    """One task. aep: GWh. wake_loss: a share. seconds: that it took. None of these where it is not known.

    state: "done"; "failed", which is not tried again by itself; "again", which went wrong and will be; "running";
    "missing", nobody has begun it.
    """

    key: Key
    state: State
    aep: float | None
    wake_loss: float | None
    min_spacing_m: float | None
    n_turbines: int | None
    seconds: float | None


@dataclass(frozen=True)
class TaskFilter:
    """Which tasks, in which order. None or empty leaves a thing open. backwards: the largest first."""

    farm_idx: int | None = None
    type_idx: int | None = None
    seed: int | None = None
    state: State | None = None
    order: Order = "key"
    backwards: bool = False


class TaskTable:
    """All tasks of one observation: what was expected, and what is there beyond."""

    def __init__(self, seen: Observation, figures: "Figures | None" = None) -> None:
        self.keys = _keys(seen)
        count = len(self.keys[0])
        self.state = np.full(count, STATES.index("missing"), dtype=np.int8)
        self.aep = np.full(count, np.nan)
        self._rows = {key: row for row, key in enumerate(zip(*(column.tolist() for column in self.keys), strict=True))}
        for pair, done in seen.present.seeds.items():
            rows = [self._rows[(*pair, seed)] for seed in done]
            self.state[rows] = STATES.index("done")
            aeps = seen.present.aeps.get(pair, {})
            self.aep[rows] = [aeps.get(seed, np.nan) for seed in done]
        for failed in seen.snapshot.failures:
            self._mark(failed.key, "failed" if failed.final else "again")
        for worker in seen.snapshot.workers:
            self._mark(worker.task or "", "running")
        self._figures = {name: np.full(count, np.nan) for name in FIGURES}
        for name, values in (figures.columns(self._rows) if figures else {}).items():
            rows, numbers = values
            self._figures[name][rows] = numbers

    def _mark(self, name: str, state: State) -> None:
        """What is done stays done: somebody may still be told to be at it."""
        key = key_of(name)
        row = None if key is None else self._rows.get(key)
        if row is not None and self.state[row] != STATES.index("done"):
            self.state[row] = STATES.index(state)

    def __len__(self) -> int:
        return len(self.state)

    def chosen(self, wanted: TaskFilter) -> Integers:
        """Rows of the tasks that are wanted, in the order that is wanted; what has no figure comes last."""
        mask = np.ones(len(self), dtype=bool)
        for column, number in zip(self.keys, (wanted.farm_idx, wanted.type_idx, wanted.seed), strict=True):
            if number is not None:
                mask &= column == number
        if wanted.state is not None:
            mask &= self.state == STATES.index(wanted.state)
        rows: Integers = np.flatnonzero(mask)
        if wanted.order == "key":
            return rows[::-1] if wanted.backwards else rows
        values = self._column(wanted.order)[rows]
        return rows[np.argsort(-values if wanted.backwards else values, kind="stable")]  # NaN sorts last either way

    def _column(self, order: Order) -> Floats:
        if order == "aep":
            return self.aep
        return self.state.astype(np.float64) if order == "state" else self._figures[order]

    def row(self, row: int) -> TaskSeen:
        """One task in words and numbers."""
        numbers = {name: _known(self._figures[name][row]) for name in FIGURES}
        turbines = numbers["n_turbines"]
        return TaskSeen(
            Key(*(int(column[row]) for column in self.keys)),
            STATES[self.state[row]],
            _known(self.aep[row]),
            numbers["wake_loss"],
            numbers["min_spacing_m"],
            None if turbines is None else int(turbines),
            numbers["seconds"],
        )

    def rows(self, rows: Iterable[int]) -> Iterator[TaskSeen]:
        """Several, in their order."""
        return (self.row(int(row)) for row in rows)

    def best_key(self, farm_idx: int, type_idx: int) -> Key | None:
        """Of the result of a farm and turbine type with the largest AEP; None if there is none."""
        rows = self.chosen(TaskFilter(farm_idx, type_idx, state="done", order="aep", backwards=True))
        return None if len(rows) == 0 or np.isnan(self.aep[rows[0]]) else self.row(int(rows[0])).key

    def find(self, key: Key) -> TaskSeen | None:
        """The task of this key; None if it was neither expected nor is there."""
        row = self._rows.get(key)
        return None if row is None else self.row(row)


class Figures:
    """What the indexes say of results beside their AEP; lines that were read once are not read again.

    Caches that are believed, as everything in this package is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[Path, tuple[int, int, int]] = {}  # up to which byte, of which file
        self._lines: dict[tuple[int, int, int], tuple[float, ...]] = {}

    def refresh(self) -> None:
        """Read what is new."""
        try:
            run = run_of(self._path)
            if run is None or not run.index.exists():
                contents = index_contents(self._path)
            else:
                contents = [*index_contents(self._path), self._tail(run.index)]
        except OSError as error:
            raise StorageError(f"{self._path}: cannot be read ({error})") from error
        for content in contents:
            for line in _parsed(content):
                key = key_of(str(line.get("key")))
                if key is not None:
                    self._lines[key] = tuple(_number(line.get(name)) for name in FIGURES)

    def columns(self, rows: Mapping[tuple[int, int, int], int]) -> dict[str, tuple[list[int], list[float]]]:
        """By name: the rows that a figure is known of, and the figures."""
        known = [(rows[key], figures) for key, figures in self._lines.items() if key in rows]
        places = [row for row, _ in known]
        return {name: (places, [figures[i] for _, figures in known]) for i, name in enumerate(FIGURES)}

    def _tail(self, index: Path) -> bytes:
        """The whole lines that were added since; all of another file in its place."""
        with index.open("rb") as file:
            state = index.stat()
            start, *which = self._read.get(index, (0, 0, 0))
            if which != [state.st_dev, state.st_ino] or state.st_size < start:
                start = 0
            file.seek(start)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read[index] = start + len(whole), state.st_dev, state.st_ino
        return whole


def task_filter(texts: Mapping[str, str]) -> TaskFilter:
    """From what somebody typed or an address says; an InputError names what cannot be."""
    sort = texts.get("sort", "") or "key"
    state = _one_of(texts.get("state", ""), STATES, "state") if texts.get("state") else None
    order = _one_of(sort.removeprefix("-"), ORDERS, "sort")  # with - in front: backwards
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


def _keys(seen: Observation) -> tuple[Integers, Integers, Integers]:
    """Farm, type and seed of all tasks, sorted."""
    campaign, present = seen.campaign, seen.present.seeds
    expected = np.unique(np.array(campaign.seeds if campaign else [], dtype=np.int64))
    pairs = set(present) if campaign is None else {*present, *((f, t) for f in campaign.farms for t in campaign.types)}
    nothing = np.zeros(0, dtype=np.int64)
    columns = [(nothing, nothing, nothing)]
    for pair in sorted(pairs):
        seeds = np.array(sorted(present.get(pair, ())), dtype=np.int64)
        if campaign is not None and pair[0] in campaign.farms and pair[1] in campaign.types:
            seeds = np.union1d(seeds, expected)
        columns.append((np.full(len(seeds), pair[0]), np.full(len(seeds), pair[1]), seeds))
    farms, types, seeds = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return farms, types, seeds


def _parsed(content: bytes) -> Iterable[dict[str, Any]]:
    """All lines in one go, which is the quickest; one by one where some are torn."""
    try:
        found = json.loads(b"[" + content.strip().replace(b"\n", b",") + b"]")
    except ValueError:
        return whole_lines(content)
    return [line for line in found if isinstance(line, dict)]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else np.nan


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
