"""Results by farm and turbine type, and which of them is the best; of equal ones the first by its key.

Of one farm and turbine type it is the one with the largest AEP. Turbine types are compared by capacity factor where
their installed powers differ by more than 0.5 % (`leeward.capacity.by_capacity_factor`), and by AEP elsewhere.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from leeward.campaign import Campaign
from leeward.campaign.remarks import comparison_remarks, is_by_capacity_factor, optimiser_words
from leeward.capacity import by_capacity_factor, capacity_factor, merit
from leeward.errors import InputError
from leeward.store import Key

Pair = tuple[int, int]  # farm_idx and type_idx


@dataclass(frozen=True)
class Cell:
    """One farm with one turbine type.

    expected: None if nobody knows. failed: tasks without a result that are not tried again by themselves. running:
    tasks in the hands of live workers. best_aep, median_aep: GWh; None without a result whose AEP is known.
    installed_mw: None where no campaign tells it. capacity_factor: of the best result, a fraction; None if unknown.
    """

    farm_idx: int
    type_idx: int
    done: int
    expected: int | None
    failed: int = 0
    running: int = 0
    best_aep: float | None = None
    median_aep: float | None = None
    best_key: str | None = None
    installed_mw: float | None = None
    capacity_factor: float | None = None


@dataclass(frozen=True)
class Basis:
    """Installed power (MW) by farm and turbine type, and what a summary says of the campaign.

    by_capacity_factor: farms whose types are compared by capacity factor, not by AEP. remarks: sentences for those who
    compare types. optimiser: recipe and effort in words; None where no campaign is known.
    """

    installed_mw: Mapping[Pair, float] = field(default_factory=dict)
    by_capacity_factor: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()
    optimiser: str | None = None


@lru_cache(maxsize=4)  # a dashboard asks at every look; a campaign never changes
def basis_of(campaign: Campaign | None) -> Basis:
    """Return what results of this campaign are compared on; an InputError if it gives a farm no valid turbine count."""
    if campaign is None:
        return Basis()
    return Basis(
        {(farm, kind): campaign.installed_mw(farm, kind) for farm in campaign.farms for kind in campaign.types},
        tuple(farm for farm in campaign.farms if is_by_capacity_factor(campaign, farm)),
        tuple(comparison_remarks(campaign)),
        optimiser_words(campaign),
    )


def key_of(name: str) -> Key | None:
    """The key that a name tells, if any."""
    try:
        return Key.parse(name)
    except InputError:
        return None


def seeds_of(names: Iterable[str]) -> dict[Pair, list[int]]:
    """Return the seeds of these keys by farm and turbine type."""
    seeds = defaultdict(list)
    for name in names:
        prefix, _, seed = name.rpartition("_s")
        seeds[prefix].append(seed)
    return {_pair(prefix): list(map(int, texts)) for prefix, texts in seeds.items()}


@lru_cache(maxsize=200_000)  # a dashboard meets the same ones at every look
def _pair(prefix: str) -> Pair:
    farm, _, kind = prefix.removeprefix("farm").partition("_t")
    return int(farm), int(kind)


class CellCounts:
    """What is counted by farm and turbine type. done: seeds. aeps: GWh, by the text of a key."""

    def __init__(
        self, done: Mapping[Pair, Collection[int]], failed: Iterable[Key], running: Iterable[Key], basis: Basis
    ) -> None:
        self._done = done
        self._failed = Counter(key[:2] for key in failed)
        self._running = Counter(key[:2] for key in running)
        self._basis = basis

    def cell(self, pair: Pair, expected: int | None, aeps: Mapping[str, float]) -> Cell:
        """Return the cell of a farm and turbine type."""
        seeds = self._done.get(pair, ())
        done, failed, running = len(seeds), self._failed[pair], self._running[pair]
        installed = self._basis.installed_mw.get(pair)
        prefix = f"farm{pair[0]}_t{pair[1]}_s"
        known = [(aep, seed) for seed in seeds if (aep := aeps.get(f"{prefix}{seed}")) is not None]
        if not known:
            return Cell(*pair, done, expected, failed, running, installed_mw=installed)
        aep, seed = max(known, key=lambda each: (each[0], -each[1]))
        median = statistics.median(aep for aep, _ in known)
        factor = None if installed is None else capacity_factor(aep, installed)
        return Cell(*pair, done, expected, failed, running, aep, median, f"{prefix}{seed}", installed, factor)


# --- the best --------------------------------------------------------------------------------------------------------


def best_of_cells(cells: Iterable[Cell]) -> dict[tuple[int, int], tuple[float, Key]]:
    """AEP (GWh) and key of the best result of each farm and turbine type that has any, in the order of the cells."""
    found = {}
    for cell in cells:
        key = key_of(cell.best_key or "")
        if key is not None and cell.best_aep is not None:
            found[cell.farm_idx, cell.type_idx] = cell.best_aep, key
    return found


def best_cell(cells: Iterable[Cell], is_by_factor: bool) -> Cell | None:
    """Return the cell with the best result; None if none has any. is_by_factor: compared by capacity factor."""
    known = [(cell, key) for cell in cells if cell.best_aep is not None and (key := key_of(cell.best_key or ""))]
    ranked = min(
        known, key=lambda pair: (-merit(pair[0].best_aep, pair[0].installed_mw, is_by_factor), pair[1]), default=None
    )
    return None if ranked is None else ranked[0]


def best_of_all(cells: Collection[Cell]) -> Key | None:
    """Return the key of the best result of all farms and turbine types; None if there is none."""
    best = best_cell(cells, by_capacity_factor(cell.installed_mw for cell in cells))
    return None if best is None else key_of(best.best_key or "")


def best_of_farms(
    cells: Iterable[Cell], farms: Collection[int] | None = None, type_idx: int | None = None
) -> dict[int, Key]:
    """By farm: the key of its best result, of all turbine types or of one. farms: only of these."""
    chosen = None if farms is None else frozenset(farms)
    by_farm: dict[int, list[Cell]] = {}
    for cell in cells:
        if chosen is None or cell.farm_idx in chosen:
            by_farm.setdefault(cell.farm_idx, []).append(cell)
    found = {}
    for farm, row in by_farm.items():
        is_by_factor = by_capacity_factor(cell.installed_mw for cell in row)
        best = best_cell((cell for cell in row if type_idx in (None, cell.type_idx)), is_by_factor)
        key = None if best is None else key_of(best.best_key or "")
        if key is not None:
            found[farm] = key
    return found
