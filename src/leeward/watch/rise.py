"""How the AEP of a result rose while it was optimised, as far as the result tells."""

import math

import numpy as np
import numpy.typing as npt

from leeward.store import Result

Array = npt.NDArray[np.float64]


def phases_of(result: Result) -> dict[str, float]:
    """AEP (GWh) after each phase, by its name; phases without names are numbered from 1."""
    values = result.details.get("aep_by_phase")
    aeps = [float(aep) for aep in values] if isinstance(values, np.ndarray) and values.ndim == 1 else []
    words = str(result.details.get("phases", ""))
    names = words.split(",") if words else []
    if not len(set(names)) == len(names) == len(aeps):
        names = [f"phase {number}" for number in range(1, len(aeps) + 1)]
    return {name: aep for name, aep in zip(names, aeps, strict=True) if math.isfinite(aep)}


def history_of(result: Result) -> Array | None:
    """Steps and AEP (GWh), shape (2, n), up to the AEP of the result; None if it was not stored.

    In older files the last improvement may come after the last step that was recorded.
    """
    if result.history is None:
        return None
    known: Array = result.history[:, np.isfinite(result.history).all(axis=0)]
    if known.shape[1] == 0:
        return None
    if result.steps and math.isfinite(result.aep) and result.aep > known[1, -1]:
        known = np.column_stack([known, [max(float(result.steps), known[0, -1]), result.aep]])
    return known
