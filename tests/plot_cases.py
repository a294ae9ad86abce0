"""What the tests of pictures share."""

import numpy as np

from leeward.layout import Area
from leeward.plots import FarmLayout


def farm_at(number, left, wake_loss=None, low=0.0):
    """A farm of three turbines, whose area begins there, m."""
    area = Area.from_arrays([left, left + 4000, left + 4000, left], [low, low, low + 3000, low + 3000])
    x, y = left + np.array([500.0, 2000.0, 3500.0]), low + np.array([500.0, 1500.0, 2500.0])
    return FarmLayout(str(number), f"farm {number}", area, x, y, 100.5 + number, 200.0, wake_loss)


def farms_in_rows(across, rows):
    return [farm_at(i, 6000.0 * (i % across), low=5000.0 * (i // across)) for i in range(across * rows)]
