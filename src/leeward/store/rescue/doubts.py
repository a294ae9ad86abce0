"""Find implausible results without a digest by comparing them with others: flipped bits rarely fit in."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from leeward.store.format.found import FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.kind import Array
from leeward.store.format.layout_result import SUCCESS, Result

_FEWEST = 3  # others that must agree before one counts as different
_FAR = 10.0  # times the usual distance to the nearest turbine; optimised and published layouts stay below 4
_MOST_TURBINES = 2000  # of a layout whose distances are compared
_AEP_RATIO = 5.0  # between turbines of one type: more than any two sites differ by


def doubtful(all_found: Iterable[FoundResult]) -> dict[Key, str]:
    """Return the implausible results and the reasons. Only results without a seal are examined."""
    results = [found.result for found in all_found if not found.sealed and found.result is not None]
    types: dict[int, list[Result]] = defaultdict(list)
    for result in results:
        types[result.key.type_idx].append(result)
    doubts: dict[Key, str] = {}
    for alike in types.values():
        doubts |= _odd_diameter(alike) | _odd_aep(alike)
    for result in results:
        turbine = _stray(result.layout)
        if turbine is not None:
            place = ", ".join(f"{coordinate:.6g}" for coordinate in result.layout[:, turbine])
            doubts[result.key] = f"turbine {turbine} stands at ({place}) m, far from all others"
    return doubts


def _odd_diameter(results: Sequence[Result]) -> dict[Key, str]:
    """Return the one result of a type whose rotor diameter differs from all others, with the reason."""
    diameters = Counter(result.diameter for result in results)
    (usual, count), *others = diameters.most_common()
    if count < _FEWEST or len(others) != 1 or others[0][1] != 1:
        return {}
    reason = f"its rotor diameter is {others[0][0]:g} m, that of all others of its type {usual:g} m"
    return {result.key: reason for result in results if result.diameter == others[0][0]}


def _odd_aep(results: Sequence[Result]) -> dict[Key, str]:
    """Return the results whose AEP per turbine is far from the median of their type, with the reasons."""
    yields = {result.key: result.aep / result.n_turbines for result in results if result.status == SUCCESS}
    if len(yields) <= _FEWEST:
        return {}
    usual = statistics.median(yields.values())
    return {
        key: f"its AEP is {each:.6g} a turbine, that of others of its type about {usual:.6g}"
        for key, each in yields.items()
        if not usual / _AEP_RATIO <= each <= usual * _AEP_RATIO
    }


def _stray(layout: Array) -> int | None:
    """Return the index of a turbine that is far from all others, or None."""
    if not 4 <= layout.shape[1] <= _MOST_TURBINES:
        return None
    distances = np.hypot(*(layout[:, :, None] - layout[:, None, :]))
    np.fill_diagonal(distances, np.inf)
    nearest = distances.min(axis=0)
    worst = int(nearest.argmax())
    return worst if nearest[worst] > _FAR * float(np.median(nearest)) else None
