"""What makes a result without a digest implausible once it is seen beside others: flipped bits rarely fit in."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from leeward.store.found import FoundResult
from leeward.store.keys import Key
from leeward.store.schema import Array

_FEWEST = 3  # that agree, before one is called different
_FAR = 30.0  # times the usual distance from the middle; a farm of one row and one turbine apart is far from this


def doubtful(all_found: Iterable[FoundResult]) -> dict[Key, str]:
    """The results that contradict the others, or themselves, and why. Only those without a seal are looked at."""
    results = [found.result for found in all_found if not found.sealed and found.result is not None]
    doubts = {}
    diameters: dict[int, Counter[float]] = defaultdict(Counter)
    for result in results:
        diameters[result.key.type_idx][result.diameter] += 1
    for result in results:
        usual, count = diameters[result.key.type_idx].most_common(1)[0]
        if count >= _FEWEST and result.diameter != usual and diameters[result.key.type_idx][result.diameter] == 1:
            doubts[result.key] = f"its rotor diameter is {result.diameter:g} m, that of others of its type {usual:g} m"
        turbine = _stray(result.layout)
        if turbine is not None:
            doubts[result.key] = f"turbine {turbine} stands at {tuple(result.layout[:, turbine])}, far from all others"
    return doubts


def _stray(layout: Array) -> int | None:
    """The number of a turbine that stands where no farm reaches, None if there is none."""
    if layout.shape[1] < 4:
        return None
    off = np.abs(layout - np.median(layout, axis=1, keepdims=True))
    usual = float(np.median(off.max(axis=0)))
    worst = int(off.max(axis=0).argmax())
    return worst if off[:, worst].max() > _FAR * usual else None
