"""Power and thrust curves as the kernels have them: pieces of cubic polynomials.

A piece is a row: the wind speed it ends at (`ends`), the speed it is developed about, and four coefficients each of
power and thrust. The first piece reaches down to any speed, the last one up to any. The pieces of all turbine types
stand below each other. Which piece a speed falls into is looked up in equal bins and corrected by a step or two.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from leeward.wind.kernels.compile import formula

if TYPE_CHECKING:
    from leeward.wind.turbine import Curve

BINS = 4096


class Curves(NamedTuple):
    """Pieces of all types, shape (pieces,) and (pieces, 9); bins shape (types, BINS), and origin and scale per type."""

    ends: npt.NDArray[np.float64]
    pieces: npt.NDArray[np.float64]
    first_piece: npt.NDArray[np.int64]
    bin_origin: npt.NDArray[np.float64]
    bins_per_speed: npt.NDArray[np.float64]


@formula
def find_piece(speed: float, kind: int, curves: Curves) -> int:
    """Row of the piece that `speed` falls into."""
    position = (speed - curves.bin_origin[kind]) * curves.bins_per_speed[kind]
    position = min(max(position, 0.0), BINS - 1.0)
    row = curves.first_piece[kind, int(position)]
    while speed >= curves.ends[row]:
        row += 1
    return row


@formula
def power_and_thrust(speed: float, kind: int, curves: Curves) -> tuple[float, float]:
    """Power (MW) and thrust coefficient at a wind speed (m/s)."""
    row = find_piece(speed, kind, curves)
    pieces = curves.pieces
    t = speed - pieces[row, 0]
    power = pieces[row, 1] + t * (pieces[row, 2] + t * (pieces[row, 3] + t * pieces[row, 4]))
    thrust = pieces[row, 5] + t * (pieces[row, 6] + t * (pieces[row, 7] + t * pieces[row, 8]))
    return power, thrust


@formula
def power_and_thrust_slopes(speed: float, kind: int, curves: Curves) -> tuple[float, float]:
    """Derivatives of power and thrust with respect to wind speed; at a knot, those of the piece to its right."""
    row = find_piece(speed, kind, curves)
    pieces = curves.pieces
    t = speed - pieces[row, 0]
    power = pieces[row, 2] + t * (2.0 * pieces[row, 3] + t * 3.0 * pieces[row, 4])
    thrust = pieces[row, 6] + t * (2.0 * pieces[row, 7] + t * 3.0 * pieces[row, 8])
    return power, thrust


def curves_of(curves: "Sequence[Curve]") -> Curves:
    """The curves of several turbine types, in the form that the kernels want."""
    rows = np.r_[0, np.cumsum([len(curve.ends) for curve in curves])]
    first_piece = np.empty((len(curves), BINS), dtype=np.int64)
    origin = np.empty(len(curves))
    scale = np.empty(len(curves))
    for i, curve in enumerate(curves):
        knots = curve.ends[:-1]
        origin[i] = knots[0]
        scale[i] = BINS / max(knots[-1] - knots[0], 1.0)
        # a little early rather than late: the search only goes up
        lowest = origin[i] + (np.arange(BINS) - 1e-6) / scale[i]
        first_piece[i] = rows[i] + np.searchsorted(curve.ends, lowest, side="right")
        first_piece[i, 0] = rows[i]
    return Curves(
        np.concatenate([curve.ends for curve in curves]),
        np.concatenate([curve.coefficients for curve in curves]),
        first_piece,
        origin,
        scale,
    )
