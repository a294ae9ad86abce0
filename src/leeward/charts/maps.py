"""Rules shared by all pictures of layouts: places of names, neighbours shown, range of colours."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import shapely

Array = npt.NDArray[np.float64]
Bounds = tuple[float, float, float, float]  # left, low, right, high, m

PLACES = 24  # per side of the grid of candidate places for a name
NEAR = 0.35  # of the longer side of the picture: neighbours this far beyond it are shown
LEAST_LOSS_SPAN = 1e-4  # share: a colour scale over less would show rounding errors


def near(bounds: Bounds, x: Array, y: Array) -> tuple[Array, Array]:
    """Return the turbines at x, y that are within the bounds or close to them."""
    left, low, right, high = bounds
    reach = NEAR * max(right - left, high - low)
    is_near = (x >= left - reach) & (x <= right + reach) & (y >= low - reach) & (y <= high + reach)
    return x[is_near], y[is_near]


def widened(bounds: Bounds, x: Array, y: Array) -> Bounds:
    """Return the bounds, extended to contain these turbines."""
    left, low, right, high = bounds
    return (
        float(x.min(initial=left)),
        float(y.min(initial=low)),
        float(x.max(initial=right)),
        float(y.max(initial=high)),
    )


def loss_span(losses: Array) -> tuple[float, float]:
    """Return the smallest and largest wake loss, shares, a little apart if they are almost equal."""
    low, high = float(losses.min()), float(losses.max())
    if high - low >= LEAST_LOSS_SPAN:
        return low, high
    low = max((low + high - LEAST_LOSS_SPAN) / 2.0, 0.0)
    return low, low + LEAST_LOSS_SPAN


def label_place(shape: shapely.Geometry, x: npt.ArrayLike = (), y: npt.ArrayLike = ()) -> tuple[float, float]:
    """Return the point of an area, m, that is farthest from its border and from the turbines at x, y."""
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
    """Return the indices of the names, centred on these places, that do not overlap an earlier one."""
    x, y = np.array(places, dtype=np.float64).reshape(-1, 2).T
    wide = np.array(widths, dtype=np.float64)
    shown: list[int] = []
    for i in range(len(places)):
        is_over = (np.abs(x[shown] - x[i]) < (wide[shown] + wide[i]) / 2) & (np.abs(y[shown] - y[i]) < height)
        if not is_over.any():
            shown.append(i)
    return shown
