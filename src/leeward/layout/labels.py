"""Where names stand in a map of areas: within them, clear of turbines, and not over each other."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import shapely

Array = npt.NDArray[np.float64]

PLACES = 24  # a side of the grid of places that a name can have in its area


def label_place(shape: shapely.Geometry, x: npt.ArrayLike = (), y: npt.ArrayLike = ()) -> tuple[float, float]:
    """The point of an area, m, that is farthest from its border and from the turbines at x, y."""
    left, low, right, high = shape.bounds
    across, up = np.meshgrid(np.linspace(left, right, PLACES), np.linspace(low, high, PLACES))
    places = shapely.points(across.ravel(), up.ravel())
    border = shapely.boundary(shape)
    shapely.prepare([shape, border])
    room = np.where(shapely.contains(shape, places), shapely.distance(border, places), -1.0)
    if room.max() <= 0.0:  # narrower than the grid
        inside = shape.representative_point()
        return float(inside.x), float(inside.y)
    turbines = shapely.MultiPoint(np.column_stack([x, y]))
    if not turbines.is_empty:
        room = np.minimum(room, shapely.distance(turbines, places))
    best = int(np.argmax(room))
    return float(across.flat[best]), float(up.flat[best])


def apart(places: Sequence[tuple[float, float]], widths: Sequence[float], height: float) -> list[int]:
    """Which of the names in the middle of these places can be read, one after the other: those over others cannot."""
    x, y = np.array(places, dtype=np.float64).reshape(-1, 2).T
    wide = np.array(widths, dtype=np.float64)
    shown: list[int] = []
    for i in range(len(places)):
        is_over = (np.abs(x[shown] - x[i]) < (wide[shown] + wide[i]) / 2) & (np.abs(y[shown] - y[i]) < height)
        if not is_over.any():
            shown.append(i)
    return shown
