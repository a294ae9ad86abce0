"""Results by farm and turbine type, and the best of them. Among equal results, the first key is best.

Within a farm and turbine type the largest AEP is best. Turbine types are compared by capacity factor if their
installed powers differ by more than 0.5 % (`leeward.capacity.by_capacity_factor`), else by AEP.
"""

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from leeward.campaign import Campaign
from leeward.campaign.remarks import comparison_remarks, is_by_capacity_factor, optimiser_words
from leeward.capacity import by_capacity_factor, capacity_factor, merit
from leeward.store import Key

Pair = tuple[int, int]  # farm_idx and type_idx
Aeps = Mapping[str, float]  # GWh, by the text of a key


@dataclass(frozen=True)
class Cell:
    """The counts of one farm with one turbine type. Unknown values are None.

    failed: tasks without a result that are not retried automatically. running: tasks of live workers. best_aep_gwh,
    median_aep_gwh: over the seeds. capacity_factor: of the best result, a fraction.
    """

    farm_idx: int
    type_idx: int
    done: int
    expected: int | None
    failed: int = 0
    running: int = 0
    best_aep_gwh: float | None = None
    median_aep_gwh: float | None = None
    best_key: str | None = None
    installed_mw: float | None = None
    capacity_factor: float | None = None


@dataclass(frozen=True)
class Basis:
    """Installed power (MW) by farm and turbine type, and facts of the campaign for summaries.

    by_capacity_factor: farms whose types are compared by capacity factor, not by AEP. remarks: sentences on the
    comparison of types. optimiser: recipe and effort in words; None without a campaign.
    """

    installed_mw: Mapping[Pair, float] = field(default_factory=dict)
    by_capacity_factor: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()
    optimiser: str | None = None


@lru_cache(maxsize=4)  # a dashboard asks at every update
def basis_of(campaign: Campaign | None) -> Basis:
    """Return the basis of comparison of a campaign; raise InputError if a farm has no valid turbine count."""
    if campaign is None:
        return Basis()
    return Basis(
        {(farm, kind): campaign.physics.installed_mw(farm, kind) for farm in campaign.farms for kind in campaign.types},
        tuple(farm for farm in campaign.farms if is_by_capacity_factor(campaign, farm)),
        tuple(comparison_remarks(campaign)),
        optimiser_words(campaign),
    )


def seeds_of(names: Iterable[str]) -> dict[Pair, dict[int, str]]:
    """Return these texts of keys by farm and turbine type, and by seed."""
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for name in names:
        prefix, _, seed = name.rpartition("_s")
        found[prefix][int(seed)] = name
    return {_pair(prefix): seeds for prefix, seeds in found.items()}


@lru_cache(maxsize=200_000)  # a dashboard parses the same ones at every update
def _pair(prefix: str) -> Pair:
    farm, _, kind = prefix.removeprefix("farm").partition("_t")
    return int(farm), int(kind)


def cell_of(
    pair: Pair, expected: int | None, done: Mapping[int, str], failed: int, running: int, basis: Basis, aeps: Aeps
) -> Cell:
    """Return the cell of a farm and turbine type. done: the texts of the keys of its results, by seed."""
    installed = basis.installed_mw.get(pair)
    known = {seed: aep for seed, name in done.items() if (aep := aeps.get(name)) is not None}
    if not known:
        return Cell(*pair, len(done), expected, failed, running, installed_mw=installed)
    best = max(known.values())
    seed = min(seed for seed, aep in known.items() if aep == best)
    median = best if len(known) == 1 else statistics.median(known.values())
    factor = None if installed is None else capacity_factor(best, installed)
    return Cell(*pair, len(done), expected, failed, running, best, median, done[seed], installed, factor)


def best_cell(cells: Iterable[Cell], is_by_factor: bool) -> Cell | None:
    """Return the cell with the best result; None if there is none. is_by_factor: compared by capacity factor."""

    def rank(cell: Cell) -> tuple[float, Key]:
        return -merit(cell.best_aep_gwh, cell.installed_mw, is_by_factor), Key.parse(str(cell.best_key))

    return min((cell for cell in cells if cell.best_key is not None), key=rank, default=None)


def best_of_all(cells: Collection[Cell]) -> Key | None:
    """Return the key of the best result of all farms and turbine types; None if there is none."""
    best = best_cell(cells, by_capacity_factor(cell.installed_mw for cell in cells))
    return None if best is None else Key.parse(str(best.best_key))


def best_of_farms(
    cells: Iterable[Cell], farms: Collection[int] | None = None, type_idx: int | None = None
) -> dict[int, Key]:
    """Return the key of the best result by farm, of all turbine types or of one. farms: only these."""
    chosen = None if farms is None else frozenset(farms)
    by_farm: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        if chosen is None or cell.farm_idx in chosen:
            by_farm[cell.farm_idx].append(cell)
    found = {}
    for farm, row in by_farm.items():
        is_by_factor = by_capacity_factor(cell.installed_mw for cell in row)
        best = best_cell((cell for cell in row if type_idx in (None, cell.type_idx)), is_by_factor)
        if best is not None:
            found[farm] = Key.parse(str(best.best_key))
    return found
