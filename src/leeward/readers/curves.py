"""Power and thrust curves of other programs as curves that are linear between points and constant outside."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

STANDSTILL_STEP_M_S = 1e-8  # distance of the points at a jump, as in PyWake


def turbine_curves(speeds: npt.ArrayLike, power_mw: npt.ArrayLike, thrust: npt.ArrayLike) -> dict[str, Any]:
    """Return curves under the keys of a turbine in a campaign file; of equal speeds in a row, the first counts."""
    at = np.asarray(speeds, dtype=np.float64)
    keep = np.r_[True, np.diff(at) > 0.0]
    columns = (at, np.asarray(power_mw, dtype=np.float64), np.asarray(thrust, dtype=np.float64))
    names = ("wind_speeds_m_s", "power_mw", "thrust_coefficient")
    return {name: values[keep].tolist() for name, values in zip(names, columns, strict=True)}


def with_standstill(
    speeds: npt.ArrayLike,
    power_mw: npt.ArrayLike,
    thrust: npt.ArrayLike,
    *,
    cut_in: float | None = None,
    cut_out: float | None = None,
    idle_thrust: float = 0.0,
) -> tuple[Array, Array, Array]:
    """Return the curves with a jump to no power and this thrust below cut_in and above cut_out, if these are given."""
    at, power, thrust_at = (np.asarray(values, dtype=np.float64) for values in (speeds, power_mw, thrust))
    runs = (at >= (-np.inf if cut_in is None else cut_in)) & (at <= (np.inf if cut_out is None else cut_out))
    ends = [end for end in (cut_in, cut_out) if end is not None]
    points = np.union1d(at[runs], ends)
    outside = [] if cut_in is None else [cut_in - STANDSTILL_STEP_M_S]
    outside += [] if cut_out is None else [cut_out + STANDSTILL_STEP_M_S]
    all_points = np.union1d(points, [each for each in outside if each >= 0.0])
    stands = np.isin(all_points, outside)
    return (
        all_points,
        np.where(stands, 0.0, np.interp(all_points, at, power)),
        np.where(stands, idle_thrust, np.interp(all_points, at, thrust_at)),
    )
