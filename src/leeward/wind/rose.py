"""Wind roses: how often the wind blows from where, and how fast."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.site import Site

Array = npt.NDArray[np.float64]

SPEED_CLASSES = (0.0, 5.0, 10.0, 15.0, 20.0)  # m/s: where each class begins; the last one has no end


@dataclass(frozen=True)
class WindRose:
    """Shares of all time. frequency: shape (sectors, classes); the first sector is centred on north.

    speed_classes: where each class begins, m/s. What a site does not tell of (calms, storms) is not in it: the shares
    add up to at most 1.
    """

    frequency: Array
    speed_classes: tuple[float, ...]

    @property
    def directions(self) -> Array:
        """Centres of the sectors, degrees clockwise from north."""
        return np.arange(len(self.frequency)) * 360.0 / len(self.frequency)


def wind_rose(site: Site, sectors: int = 12, speed_classes: Sequence[float] = SPEED_CLASSES) -> WindRose:
    """The wind of a site of any kind, counted into sectors and classes of speed."""
    edges = np.array(speed_classes, dtype=np.float64)
    if not 1 <= sectors <= 360 or edges.ndim != 1 or len(edges) == 0 or np.any(np.diff(edges) <= 0):
        raise InputError(
            f"{sectors!r:.20} sectors and speed classes {speed_classes!r:.60}; expected 1 to 360 sectors, and classes "
            "in rising order"
        )
    wind = site.conditions
    width = 360.0 / sectors
    sector = np.floor(np.mod(wind.direction + width / 2.0, 360.0) / width).astype(np.int64) % sectors
    which = np.searchsorted(edges, wind.speed, side="right") - 1
    frequency = np.zeros((sectors, len(edges)))
    rows = np.broadcast_to(sector[:, None], wind.speed.shape)
    known = which >= 0
    np.add.at(frequency, (rows[known], which[known]), wind.weight[known])
    return WindRose(frequency, tuple(edges.tolist()))
