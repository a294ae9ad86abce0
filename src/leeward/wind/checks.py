"""Checks of what a person typed. The messages say which number, where, and what was expected."""

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError

Array = npt.NDArray[np.float64]

SLACK = 0.01  # sums of rounded figures may exceed 1 by this much
FARTHEST_M = 1e8  # no projection of the Earth reaches as far


def finite_array(values: npt.ArrayLike, what: str, dimensions: tuple[int, ...] = (1,)) -> Array:
    """`values` as an array of finite floats, with a number of dimensions that is allowed."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: expected numbers, found {values!r:.100}") from error
    if array.ndim not in dimensions:
        allowed = " or ".join(str(d) for d in dimensions)
        raise InputError(f"{what}: expected {allowed} dimension(s), found the shape {array.shape}")
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0]
        index = ", ".join(str(i) for i in place)
        raise InputError(f"{what}[{index}] is {array[tuple(place)]}; expected a finite number")
    return array


def positive(value: float, what: str) -> float:
    """`value` as a finite float above 0."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: expected a number, found {value!r:.100}") from error
    if not (np.isfinite(number) and number > 0):
        raise InputError(f"{what} is {number:g}; expected a finite number above 0")
    return number


def probabilities(values: Array, what: str) -> Array:
    """Return `values`; raise InputError if one is negative or they add up to more than 1.01."""
    for place in np.argwhere(values < 0)[:1]:
        index = ", ".join(str(i) for i in place)
        raise InputError(f"{what}[{index}] is {values[tuple(place)]:g}; expected 0 or more")
    total = float(values.sum())
    if total > 1 + SLACK:
        hint = " (per cent? divide by 100)" if 99 < total < 101 else ""
        raise InputError(f"{what} add up to {total:.9g}; expected at most 1{hint}")
    return values


def turbulence(values: npt.ArrayLike, what: str) -> Array:
    """Turbulence intensities as fractions; a number or an array of any shape."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: expected numbers, found {values!r:.100}") from error
    bad = ~(np.isfinite(array) & (array >= 0) & (array < 1))
    if bad.any():
        found = array[bad].flat[0]
        hint = " (per cent? divide by 100)" if 1 <= found < 100 else ""
        raise InputError(f"{what} is {found:g}; expected a fraction from 0 to 1, for example 0.06{hint}")
    return array


def coordinates(x: npt.ArrayLike, y: npt.ArrayLike, what: str = "") -> tuple[Array, Array]:
    """Eastings and northings, m, as many of each, on Earth: beyond it the tables of the wake models end too."""
    east = finite_array(x, f"{what}x")
    north = finite_array(y, f"{what}y")
    if len(east) != len(north):
        raise InputError(f"{what}x has {len(east)} coordinates and {what}y has {len(north)}; expected as many of each")
    for name, values in (("x", east), ("y", north)):
        for i in np.flatnonzero(np.abs(values) > FARTHEST_M)[:1]:
            raise InputError(f"{what}{name}[{i}] is {values[i]:g} m; expected metres, at most {FARTHEST_M:g}")
    return east, north


def positions(x: npt.ArrayLike, y: npt.ArrayLike, what: str = "") -> tuple[Array, Array]:
    """Coordinates of turbines, as many x as y, no two at one point."""
    east, north = coordinates(x, y, what)
    if len(np.unique(east)) == len(east):  # the usual case, and cheap to find out
        return east, north
    order = np.lexsort((north, east))
    same = (np.diff(east[order]) == 0) & (np.diff(north[order]) == 0)
    for i in np.flatnonzero(same)[:1]:
        first, second = sorted((int(order[i]), int(order[i + 1])))
        raise InputError(
            f"{what}turbines {first} and {second} stand at one point ({east[first]:g}, {north[first]:g}); "
            "expected different places"
        )
    return east, north


def one_or_more(values: npt.ArrayLike, what: str) -> Array:
    """A number, or several."""
    return finite_array(np.atleast_1d(np.asarray(values)), what)


def angles(directions: Array) -> Array:
    """Return `directions`; raise InputError if one is not from 0 to 360 degrees."""
    for i in np.flatnonzero((directions < 0) | (directions > 360))[:1]:
        raise InputError(f"direction [{i}] is {directions[i]:g}; expected degrees from 0 to 360 (take them % 360)")
    return directions
