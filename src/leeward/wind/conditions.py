"""Wind conditions: the plain data that a site hands to the wake engine."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leeward.capacity import GWH_PER_MW as GWH_PER_MW

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Conditions:
    """Directions, each with one or more wind speeds.

    direction: degrees, where the wind comes from, clockwise from north; shape (directions,).
    speed (m/s), weight (probability or share of it) and turbulence_intensity (fraction): shape (directions, speeds).
    """

    direction: Array
    speed: Array
    weight: Array
    turbulence_intensity: Array
