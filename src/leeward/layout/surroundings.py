"""What all pictures of layouts agree on: which neighbours are shown, and what the colours of wake losses cover."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Bounds = tuple[float, float, float, float]  # left, low, right, high, m

NEAR = 0.35  # of the longer side of what is shown: how far beyond it neighbours are shown too
LEAST_LOSS_SPAN = 1e-4  # share: a scale of colours over less would show rounding errors


def near(bounds: Bounds, x: Array, y: Array) -> tuple[Array, Array]:
    """Those of the turbines at x, y that are within the bounds or close to them."""
    left, low, right, high = bounds
    reach = NEAR * max(right - left, high - low)
    is_near = (x >= left - reach) & (x <= right + reach) & (y >= low - reach) & (y <= high + reach)
    return x[is_near], y[is_near]


def widened(bounds: Bounds, x: Array, y: Array) -> Bounds:
    """The bounds with these turbines inside."""
    left, low, right, high = bounds
    return (
        float(x.min(initial=left)),
        float(y.min(initial=low)),
        float(x.max(initial=right)),
        float(y.max(initial=high)),
    )


def loss_span(losses: Array) -> tuple[float, float]:
    """The least and the largest of these wake losses, shares, and some room where they are all but the same."""
    low, high = float(losses.min()), float(losses.max())
    if high - low >= LEAST_LOSS_SPAN:
        return low, high
    low = max((low + high - LEAST_LOSS_SPAN) / 2.0, 0.0)
    return low, low + LEAST_LOSS_SPAN
