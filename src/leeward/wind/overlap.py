"""A table of overlap factors: the mean deficit over a rotor as a share of a Gaussian wake's centre deficit.

The factor depends on two numbers: the rotor's radius and its distance from the wake's axis, both in wake widths.
PyWake tabulates it every 0.02 (trapezoids over 127 x 511 polar cells), refines that to every 0.01 with a bicubic
spline and interpolates linearly from there. The interpolation errors are 1e-5, far more than leeward may differ from
PyWake. So this table equals PyWake's, number for number, but is computed in a shorter way:

- a trapezoid sum around a full circle is exact, so the angle gives the Bessel function I0;
- the trapezoid sum over the radius is the integral plus the first term of the Euler-Maclaurin formula;
- the spline is evaluated only half-way between its points, where it needs nothing but second derivatives.
"""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.wind.cache import cached_array

PER_UNIT = 100.0  # table cells per wake width
CELLS_RADIUS = 2000.0
CELLS_CROSSWIND = 1000.0
ROW = 2.0 * (CELLS_CROSSWIND + 1.0)  # numbers in one row of the flat table

_COARSE_STEP = 0.02
_RADIAL_CELLS = 511

Array = npt.NDArray[np.float64]
Floating = npt.NDArray[np.floating[Any]]


@functools.cache
def overlap_table() -> Array:
    """Return the table, flat and read-only: entry (row, column) is followed by entry (row + 1, column)."""
    return cached_array("overlap", __file__, lambda: _paired_rows(overlap_factors()))


def overlap_factors() -> Array:
    """Return the factors; shape (2001 radii 0 .. 20, 1001 distances 0 .. 10), in wake widths and steps of 0.01."""
    return _halve_steps(_halve_steps(_coarse_factors()).T).T


def _paired_rows(factors: Array) -> Array:
    return np.ascontiguousarray(np.stack([factors[:-1], factors[1:]], axis=-1)).ravel()


def _ring(radius: Floating, distance: Floating) -> Array:
    """Return the share of the deficit on a ring of this radius around the rotor's centre, times the radius."""
    return np.asarray(radius * np.exp(-0.5 * (radius**2 + distance**2)) * np.i0(radius * distance))


def _coarse_factors() -> Array:
    """Return the factors in steps of 0.02; shape (1001 radii, 501 distances)."""
    step = _COARSE_STEP
    radii = step * np.arange(1001)[:, None]
    distances = step * np.arange(501)[None, :]

    nodes, weights = np.polynomial.legendre.leggauss(4)
    integral = np.zeros((1001, 501))
    for node, weight in zip(nodes, weights, strict=True):
        integral[1:] += 0.5 * step * weight * _ring(radii[:-1] + 0.5 * step * (node + 1.0), distances)
    integral = np.cumsum(integral, axis=0)

    # `_ring` is odd in the radius, so its slope (fourth order) may use points left of 0
    ring = _ring(step * np.arange(-2, 1003)[:, None], distances)
    slope = (ring[:-4] - 8.0 * ring[1:-3] + 8.0 * ring[3:-1] - ring[4:]) / (12.0 * step)
    trapezoid = integral + (radii / _RADIAL_CELLS) ** 2 / 12.0 * (slope - slope[0])

    factors = np.exp(-0.5 * np.broadcast_to(distances, (1001, 501)) ** 2)
    factors[1:] = 2.0 * trapezoid[1:] / radii[1:] ** 2
    return factors


def _halve_steps(values: Array) -> Array:
    """Insert the values of the cubic spline (not-a-knot) half-way between the rows. Shape (n, m) -> (2 n - 1, m)."""
    count = len(values)
    curvature = np.empty_like(values)  # second derivative times step^2
    bend = values[:-2] - 2.0 * values[1:-1] + values[2:]
    curvature[1] = bend[0]
    curvature[-2] = bend[-1]
    # the tridiagonal system c[i-1] + 4 c[i] + c[i+1] = 6 bend[i-1] for 2 <= i <= count - 3
    pivots = np.empty(count)
    pivots[1] = np.inf
    carried = curvature.copy()
    for i in range(2, count - 2):
        pivots[i] = 4.0 - 1.0 / pivots[i - 1]
        carried[i] = 6.0 * bend[i - 1] - (carried[i - 1] / pivots[i - 1] if i > 2 else carried[1])
    for i in range(count - 3, 1, -1):
        curvature[i] = (carried[i] - curvature[i + 1]) / pivots[i]
    curvature[0] = 2.0 * curvature[1] - curvature[2]
    curvature[-1] = 2.0 * curvature[-2] - curvature[-3]

    fine = np.empty((2 * count - 1, values.shape[1]))
    fine[::2] = values
    fine[1::2] = 0.5 * (values[:-1] + values[1:]) - (curvature[:-1] + curvature[1:]) / 16.0
    return fine
