"""Checks of user input. A message names the number at fault, where it is and what was expected."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError

Array = npt.NDArray[np.float64]

SLACK = 0.01  # a sum of rounded probabilities may exceed 1 by this much
CALM = 1e-9  # m/s: replaces a speed of 0, because deficits are relative to the speed
FARTHEST_M = 1e8  # farther than any projection of the Earth reaches; the tables of the wake models end there too


def reject(values: Array, is_bad: npt.NDArray[np.bool_], what: str, expected: str, unit: str = "") -> None:
    """Raise InputError for the first bad value, if there is one."""
    if is_bad.any():  # the search takes longer
        place = np.argwhere(is_bad)[0]
        index = ", ".join(str(i) for i in place)
        raise InputError(f"{what}[{index}] is {values[tuple(place)]:g}{unit}; expected {expected}")


def check_increasing(values: Array, what: str, expected: str) -> None:
    """Raise InputError for the first value that is not above the one before it."""
    for i in np.flatnonzero(np.diff(values) <= 0)[:1]:
        raise InputError(f"{what}[{i + 1}] is {values[i + 1]:g} after {values[i]:g}; expected {expected}")


def _numbers(values: npt.ArrayLike, what: str) -> Array:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: expected numbers, found {values!r:.100}") from error


def finite_array(values: npt.ArrayLike, what: str, dimensions: tuple[int, ...] = (1,)) -> Array:
    """Return `values` as an array of finite floats with one of the allowed numbers of dimensions."""
    array = _numbers(values, what)
    if array.ndim not in dimensions:
        allowed = " or ".join(str(d) for d in dimensions)
        raise InputError(f"{what}: expected {allowed} dimension(s), found the shape {array.shape}")
    reject(array, ~np.isfinite(array), what, "a finite number")
    return array


def finite(value: float, what: str) -> float:
    """Return `value` as a finite float."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: expected a number, found {value!r:.100}") from error
    if not np.isfinite(number):
        raise InputError(f"{what} is {number}; expected a finite number")
    return number


def positive(value: float, what: str) -> float:
    """Return `value` as a finite float above 0."""
    number = finite(value, what)
    if number <= 0:
        raise InputError(f"{what} is {number:g}; expected a finite number above 0")
    return number


def probabilities(values: Array, what: str) -> Array:
    """Return `values`; raise InputError if one is negative or they add up to more than 1.01."""
    reject(values, values < 0, what, "0 or more")
    total = float(values.sum())
    if total > 1 + SLACK:
        hint = " (per cent? divide by 100)" if 99 < total < 101 else ""
        raise InputError(f"{what} add up to {total:.9g}; expected at most 1{hint}")
    return values


def turbulence(values: npt.ArrayLike, what: str) -> Array:
    """Return turbulence intensities, fractions, as an array of the same shape as `values`."""
    array = _numbers(values, what)
    bad = ~(np.isfinite(array) & (array >= 0) & (array < 1))
    if bad.any():
        found = array[bad].flat[0]
        hint = " (per cent? divide by 100)" if 1 <= found < 100 else ""
        raise InputError(f"{what} is {found:g}; expected a fraction from 0 to 1, for example 0.06{hint}")
    return array


def coordinates(x: npt.ArrayLike, y: npt.ArrayLike, what: str = "") -> tuple[Array, Array]:
    """Return eastings and northings in metres, the same number of each and no farther out than FARTHEST_M."""
    east = finite_array(x, f"{what}x")
    north = finite_array(y, f"{what}y")
    if len(east) != len(north):
        raise InputError(f"{what}x has {len(east)} coordinates and {what}y has {len(north)}; expected the same number")
    for name, values in (("x", east), ("y", north)):
        reject(values, np.abs(values) > FARTHEST_M, f"{what}{name}", f"metres, at most {FARTHEST_M:g}", " m")
    return east, north


def positions(x: npt.ArrayLike, y: npt.ArrayLike, what: str = "") -> tuple[Array, Array]:
    """Return the coordinates of turbines, no two of them at the same point."""
    east, north = coordinates(x, y, what)
    if np.diff(np.sort(east)).all():  # the usual case, and cheap to test
        return east, north
    order = np.lexsort((north, east))
    same = (np.diff(east[order]) == 0) & (np.diff(north[order]) == 0)
    for i in np.flatnonzero(same)[:1]:
        first, second = sorted((int(order[i]), int(order[i + 1])))
        raise InputError(
            f"{what}turbines {first} and {second} are at the same point ({east[first]:g}, {north[first]:g}); "
            "move one of them"
        )
    return east, north


def several_layouts(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
    """Return the coordinates of many layouts, shape (layouts, turbines) each; they may not be finite."""
    east, north = _of_layouts(x, "x"), _of_layouts(y, "y")
    if east.shape != north.shape:
        raise InputError(f"x has the shape {east.shape} and y {north.shape}; expected the same (layouts, turbines)")
    return east, north


def _of_layouts(values: npt.ArrayLike, what: str) -> Array:
    rows = values if isinstance(values, list | tuple) else ()
    counts = {len(row) for row in rows if isinstance(row, list | tuple | np.ndarray)}
    if len(counts) > 1:
        raise InputError(
            f"{what}: the layouts have {min(counts)} to {max(counts)} turbines; expected the same number in each; "
            "evaluate layouts of different size in separate calls"
        )
    array = _numbers(values, what)
    if array.ndim != 2:
        raise InputError(
            f"{what} has the shape {array.shape}; expected (layouts, turbines), for example [[0, 900]] for one layout"
        )
    return array


def one_or_more(values: npt.ArrayLike, what: str) -> Array:
    """Return one or more numbers as an array of one dimension."""
    array = finite_array(np.atleast_1d(np.asarray(values)), what)
    if len(array) == 0:
        raise InputError(f"{what} is empty; expected at least one")
    return array


def one_of(value: str, known: Sequence[str], what: str) -> str:
    """Return `value`; raise InputError if it is unknown."""
    if value not in known:
        raise InputError(f"{what} is {value!r:.40}; expected one of {', '.join(known)}")
    return value


def angles(directions: Array) -> Array:
    """Return `directions`; raise InputError if one is not from 0 to 360 degrees."""
    is_outside = (directions < 0) | (directions > 360)
    reject(directions, is_outside, "direction ", "degrees from 0 to 360 (take them % 360)")
    return directions
