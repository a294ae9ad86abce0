"""The gross yield where the wind varies over the site: it depends on the layout, and is cheap to compute."""

import numpy as np
import numpy.typing as npt

from leeward.wind import Turbine, WindFarm
from leeward.wind.conditions import Conditions

Array = npt.NDArray[np.float64]


class GrossYield:
    """The gross yield on the full wind rose of a farm, in as few conditions as possible."""

    def __init__(self, farm: WindFarm) -> None:
        self._farm = farm.on(farm.site.fewer_directions())

    @property
    def conditions(self) -> Conditions:
        """Return the conditions in which the gross yield is computed."""
        return self._farm.site.conditions

    def gradient(self, x: Array, y: Array) -> tuple[float, Array, Array]:
        """Return the gross yield of a layout (GWh) and its derivatives by x and by y, GWh/m."""
        each, by_x, by_y = self._farm.gross_aep_gradient(x, y)
        return float(each.sum()), by_x, by_y

    def aep_gwh(self, part: WindFarm, x: Array, y: Array) -> float:
        """Return the AEP (GWh) with wake losses computed in a part of the rose."""
        return part.net_minus_gross_gwh(x, y) + float(self._farm.gross_aep_gradient(x, y)[0].sum())

    def missing_gwh(self, part: WindFarm, x: Array, y: Array, turbine: Turbine | None = None) -> Array:
        """Return the gross yield that a part of the rose lacks for a turbine at each place, GWh."""
        full, some = (farm.gross_aep_gradient(x, y, turbine=turbine)[0] for farm in (self._farm, part))
        return np.asarray(full - some)
