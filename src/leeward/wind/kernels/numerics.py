"""Scalar functions of the loops: logarithm, exponential, turbine curves and effective speed.

`math.log` and `math.exp` call the C library, and a loop with such a call is not vectorised. The versions here are
arithmetic only.

Power and thrust curves are piecewise cubic polynomials. A piece is a row: the wind speed it ends at (`ends`), the speed
it is expanded about, and four coefficients each of power and thrust. The first and the last piece have no limit. The
rows of all turbine types are in one array. The piece for a speed is looked up in equal bins and corrected by a step or
two.
"""

import math

from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.data import CURVE_BINS, Curves

LN_2 = math.log(2.0)
SQRT_2 = math.sqrt(2.0)
LAST_BIN = float(CURVE_BINS - 1)


@formula
def reduced(numerator: float, denominator: float, exponent: float, factor: float, bits: float) -> tuple[float, float]:
    """Return numerator / factor and exponent + bits if the ratio is at least `factor`, else both unchanged."""
    large = numerator >= factor * denominator
    return (numerator * (1.0 / factor) if large else numerator), (exponent + bits if large else exponent)


@formula
def log_of_ratio(numerator: float, denominator: float) -> float:
    """Return ln(numerator / denominator) for a ratio in [1, 65536), to about 2e-16.

    Comparisons reduce the ratio to [1, sqrt 2); then follows the series of 2 artanh((n - d) / (n + d)).
    """
    numerator, exponent = reduced(numerator, denominator, 0.0, 256.0, 8.0)
    numerator, exponent = reduced(numerator, denominator, exponent, 16.0, 4.0)
    numerator, exponent = reduced(numerator, denominator, exponent, 4.0, 2.0)
    numerator, exponent = reduced(numerator, denominator, exponent, 2.0, 1.0)
    numerator, exponent = reduced(numerator, denominator, exponent, SQRT_2, 0.5)
    ratio = (numerator - denominator) / (numerator + denominator)
    x = ratio * ratio
    last = 1.0 / 9.0 + x * (1.0 / 11.0 + x * (1.0 / 13.0 + x * (1.0 / 15.0 + x * (1.0 / 17.0))))
    series = 1.0 + x * (1.0 / 3.0 + x * (1.0 / 5.0 + x * (1.0 / 7.0 + x * last)))
    return exponent * LN_2 + 2.0 * ratio * series


@formula
def exp_below_zero(exponent: float) -> float:
    """Return the exponential of a number from -128 to 0, to about 2e-13 of the value; smaller ones count as -128.

    It is the series for a 256th of the number, squared eight times.
    """
    x = max(exponent, -128.0) * (1.0 / 256.0)
    last = 1.0 / 39916800.0 + x * (1.0 / 479001600.0 + x * (1.0 / 6227020800.0))
    middle = 1.0 / 5040.0 + x * (1.0 / 40320.0 + x * (1.0 / 362880.0 + x * (1.0 / 3628800.0 + x * last)))
    series = 1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0 + x * middle)))
    series = 1.0 + x * (1.0 + x * (0.5 + x * series))
    for _ in range(8):
        series = series * series
    return series


@formula
def effective_speed(speed: float, total: float, squared: bool) -> float:
    """Return the wind speed (m/s) behind wakes whose relative deficits, or their squares, add up to `total`."""
    return speed * (1.0 - (math.sqrt(total) if squared else total))


@formula
def effective_speed_slope(speed: float, total: float, squared: bool) -> float:
    """Return the derivative of `effective_speed` with respect to `total`; 0 without wakes, where it is not needed."""
    if not squared:
        return -speed
    return -0.5 * speed / math.sqrt(total) if total > 0.0 else 0.0


@formula
def find_piece(speed: float, kind: int, curves: Curves) -> int:
    """Return the row of the piece that contains `speed`."""
    position = (speed - curves.bin_origin[kind]) * curves.bins_per_speed[kind]
    position = min(position if position > 0.0 else 0.0, LAST_BIN)  # NaN must not become an index
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
    """Return the derivatives of power and thrust with respect to wind speed; at a knot, those from the right."""
    row = find_piece(speed, kind, curves)
    pieces = curves.pieces
    t = speed - pieces[row, 0]
    power = pieces[row, 2] + t * (2.0 * pieces[row, 3] + t * 3.0 * pieces[row, 4])
    thrust = pieces[row, 6] + t * (2.0 * pieces[row, 7] + t * 3.0 * pieces[row, 8])
    return power, thrust
