"""Power and thrust curves in the kernels: piecewise cubic polynomials.

A piece is a row: the wind speed it ends at (`ends`), the speed it is expanded about, and four coefficients each of
power and thrust. The first and the last piece have no limit. The rows of all turbine types are in one array. The piece
for a speed is looked up in equal bins and corrected by a step or two.
"""

from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.data import CURVE_BINS, Curves


@formula
def find_piece(speed: float, kind: int, curves: Curves) -> int:
    """Return the row of the piece that contains `speed`."""
    position = (speed - curves.bin_origin[kind]) * curves.bins_per_speed[kind]
    position = min(max(position, 0.0), CURVE_BINS - 1.0)
    row: int = curves.first_piece[kind, int(position)]
    while speed >= curves.ends[row]:
        row += 1
    return row


@formula
def power_and_thrust(speed: float, kind: int, curves: Curves) -> tuple[float, float]:
    """Return power (MW) and thrust coefficient at a wind speed (m/s)."""
    row = find_piece(speed, kind, curves)
    pieces = curves.pieces
    t = speed - pieces[row, 0]
    power = pieces[row, 1] + t * (pieces[row, 2] + t * (pieces[row, 3] + t * pieces[row, 4]))
    thrust = pieces[row, 5] + t * (pieces[row, 6] + t * (pieces[row, 7] + t * pieces[row, 8]))
    return power, thrust


@formula
def power_and_thrust_slopes(speed: float, kind: int, curves: Curves) -> tuple[float, float]:
    """Return the derivatives of power and thrust by wind speed; at a knot, those of the piece to its right."""
    row = find_piece(speed, kind, curves)
    pieces = curves.pieces
    t = speed - pieces[row, 0]
    power = pieces[row, 2] + t * (2.0 * pieces[row, 3] + t * 3.0 * pieces[row, 4])
    thrust = pieces[row, 6] + t * (2.0 * pieces[row, 7] + t * 3.0 * pieces[row, 8])
    return power, thrust
