"""Which result is the best: the one with the largest AEP, and of equal ones the first by its key."""

from collections.abc import Collection, Iterable

from leeward.store.keys import Key
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


def best_of_farms(
    cells: Iterable[Cell], farms: Collection[int] | None = None, type_idx: int | None = None
) -> dict[int, Key]:
    """By farm: the key of its best result, of all turbine types or of one. farms: only of these."""
    chosen = None if farms is None else frozenset(farms)
    wanted = (
        cell for cell in cells if (chosen is None or cell.farm_idx in chosen) and type_idx in (None, cell.type_idx)
    )
    best: dict[int, tuple[float, Key]] = {}
    for (farm, _), (aep, key) in best_of_cells(wanted).items():
        if farm not in best or (-aep, key) < (-best[farm][0], best[farm][1]):
            best[farm] = aep, key
    return {farm: key for farm, (_, key) in best.items()}
