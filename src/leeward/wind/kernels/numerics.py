"""Scalar functions that a compiler can vectorise.

`math.log` and `math.exp` call the C library, and one call keeps a whole loop scalar; these are arithmetic only.
"""

import math

from leeward.wind.kernels.compile import formula

LN_2 = math.log(2.0)
SQRT_2 = math.sqrt(2.0)


@formula
def log_of_ratio(numerator: float, denominator: float) -> float:
    """Return ln(numerator / denominator) for a ratio in [1, 65536), to about 2e-16.

    Comparisons halve the ratio into [1, sqrt 2); then follows the series of 2 artanh((n - d) / (n + d)).
    """
    exponent = 0.0
    large = numerator >= 256.0 * denominator
    numerator = numerator * (1.0 / 256.0) if large else numerator
    exponent = exponent + 8.0 if large else exponent
    large = numerator >= 16.0 * denominator
    numerator = numerator * (1.0 / 16.0) if large else numerator
    exponent = exponent + 4.0 if large else exponent
    large = numerator >= 4.0 * denominator
    numerator = numerator * 0.25 if large else numerator
    exponent = exponent + 2.0 if large else exponent
    large = numerator >= 2.0 * denominator
    numerator = numerator * 0.5 if large else numerator
    exponent = exponent + 1.0 if large else exponent
    large = numerator >= SQRT_2 * denominator
    numerator = numerator * (1.0 / SQRT_2) if large else numerator
    exponent = exponent + 0.5 if large else exponent

    ratio = (numerator - denominator) / (numerator + denominator)
    square = ratio * ratio
    series = 1.0 / 17.0
    series = series * square + 1.0 / 15.0
    series = series * square + 1.0 / 13.0
    series = series * square + 1.0 / 11.0
    series = series * square + 1.0 / 9.0
    series = series * square + 1.0 / 7.0
    series = series * square + 1.0 / 5.0
    series = series * square + 1.0 / 3.0
    series = series * square + 1.0
    return exponent * LN_2 + 2.0 * ratio * series


@formula
def exp_below_zero(exponent: float) -> float:
    """Return the exponential of a number from -128 to 0, to about 2e-13 of the value; smaller ones count as -128.

    It is the series for a 256th of the number, squared eight times.
    """
    part = max(exponent, -128.0) * (1.0 / 256.0)
    series = 1.0 / 6227020800.0
    series = series * part + 1.0 / 479001600.0
    series = series * part + 1.0 / 39916800.0
    series = series * part + 1.0 / 3628800.0
    series = series * part + 1.0 / 362880.0
    series = series * part + 1.0 / 40320.0
    series = series * part + 1.0 / 5040.0
    series = series * part + 1.0 / 720.0
    series = series * part + 1.0 / 120.0
    series = series * part + 1.0 / 24.0
    series = series * part + 1.0 / 6.0
    series = series * part + 0.5
    series = series * part + 1.0
    series = series * part + 1.0
    for _ in range(8):
        series = series * series
    return series


@formula
def effective_speed(speed: float, total: float, squared: bool) -> float:
    """Return the wind speed (m/s) behind wakes whose relative deficits, or their squares, add up to `total`."""
    return speed * (1.0 - (math.sqrt(total) if squared else total))


@formula
def effective_speed_slope(speed: float, total: float, squared: bool) -> float:
    """Return the derivative of `effective_speed` by `total`; 0 without any wake, where it is not needed."""
    if not squared:
        return -speed
    return -0.5 * speed / math.sqrt(total) if total > 0.0 else 0.0
