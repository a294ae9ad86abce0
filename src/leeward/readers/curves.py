"""Power and thrust curves of other programs as curves that are linear between points and constant outside."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError

Array = npt.NDArray[np.float64]

JUMP_M_S = 1e-8  # distance between the two points of a jump, as in PyWake
MW_PER_W = 1e-6


def turbine_curves(speeds: npt.ArrayLike, power_mw: npt.ArrayLike, thrust: npt.ArrayLike) -> dict[str, Any]:
    """Return curves under the keys of a turbine in a campaign file. Two points at one speed are a jump."""
    columns = (with_jumps(speeds), np.asarray(power_mw, dtype=np.float64), np.asarray(thrust, dtype=np.float64))
    names = ("wind_speeds_m_s", "power_mw", "thrust_coefficient")
    return {name: values.tolist() for name, values in zip(names, columns, strict=True)}


def with_jumps(speeds: npt.ArrayLike) -> Array:
    """Return increasing wind speeds: of two equal ones in a row, the first is a little lower. Others are an error."""
    at = np.array(speeds, dtype=np.float64)
    at[:-1] -= np.where(np.diff(at) == 0.0, JUMP_M_S, 0.0)
    for wrong in np.flatnonzero(~(np.diff(at) > 0.0))[:1]:
        raise InputError(f"the wind speed {at[wrong + 1]:g} follows {at[wrong]:g}; expected increasing speeds")
    return at


def with_standstill(
    speeds: npt.ArrayLike,
    power_mw: npt.ArrayLike,
    thrust: npt.ArrayLike,
    *,
    cut_in: float | None = None,
    cut_out: float | None = None,
    idle_thrust: float = 0.0,
    has_ramps: bool = False,
) -> tuple[Array, Array, Array]:
    """Return the curves with no power and this thrust below cut_in and above cut_out, if these are given.

    has_ramps: where the curves end before cut_in or cut_out, they go to a standstill in a straight line, as in PyWake;
    else they stay constant up to there.
    """
    low, high = -math.inf if cut_in is None else cut_in, math.inf if cut_out is None else cut_out
    if math.isnan(low) or math.isnan(high) or not low < high:
        raise InputError(f"the cut-in speed is {low:g} and the cut-out speed {high:g}; expected an increasing pair")
    at = with_jumps(speeds)
    power, thrust_at = np.asarray(power_mw, dtype=np.float64), np.asarray(thrust, dtype=np.float64)
    ends = [end for end in (low, high) if math.isfinite(end) and (not has_ramps or at[0] <= end <= at[-1])]
    outside = [end for end in (low - JUMP_M_S, high + JUMP_M_S) if math.isfinite(end) and end >= 0.0]
    points = np.union1d(at[(at >= low) & (at <= high)], [*ends, *outside])
    stands = np.isin(points, outside)
    return (
        points,
        np.where(stands, 0.0, np.interp(points, at, power)),
        np.where(stands, idle_thrust, np.interp(points, at, thrust_at)),
    )


def by_speed(*columns: npt.ArrayLike) -> list[Array]:
    """Return columns sorted by the first one, the wind speed; equal speeds stay in order."""
    arrays = [np.asarray(values, dtype=np.float64) for values in columns]
    order = np.argsort(arrays[0], kind="stable")
    return [values[order] for values in arrays]
