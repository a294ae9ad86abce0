"""Which result is the best, and of equal ones the first by its key.

Of one farm and turbine type it is the one with the largest AEP. Turbine types are compared by capacity factor where
their installed powers differ by more than 0.5 % (`leeward.capacity.by_capacity_factor`), and by AEP elsewhere.
"""

from collections.abc import Collection, Iterable

from leeward.capacity import by_capacity_factor, merit
from leeward.store import Key
from leeward.watch.data import Cell
from leeward.watch.present import key_of


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
