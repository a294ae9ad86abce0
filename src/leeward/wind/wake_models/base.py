"""Base class of the wake models: scalar formulas and their options.

A model has three formulas. Each is a plain function of floats:

1. `source`: the quantities of a turbine that its wake depends on, from its thrust coefficient and its share of the free
   wind speed. Evaluated once per turbine and condition, not once per pair.
2. `wake_at`: the wake of that source at a rotor downwind of it. Arithmetic only, so that the compiler can vectorise it.
3. `contribution`: the contribution of that wake to the rotor's deficit. Table look-ups and calls of library functions
   belong here.

The results of the first two are named tuples of floats. Each model defines its own, and the kernels find them in the
annotations of the formulas.

The contributions of all upstream turbines are added up. The effective speed is `speed * (1 - sum)` or, for a
root-sum-square model (`squared`), `speed * (1 - sqrt(sum))`: there a contribution is the square of a relative deficit.
If the wind varies over the site, `relative_to` says which free speed a deficit is relative to.

`leeward.wind.kernels` compiles the formulas into loops; with compilation off they run as plain Python. They take no
arrays except `table`, a flat look-up table.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from leeward.wind.kernels.formulas import (
    ContributionSlopes as ContributionSlopes,
    Formulas as Formulas,
    Range as Range,
    Rotor as Rotor,
    result_type as result_type,
)

if TYPE_CHECKING:
    from leeward.wind.turbine import Turbine

# smallest deficit that counts, relative to the deficit on the centre line: turbines farther away are skipped
NEGLIGIBLE = 1e-11
NEGLIGIBLE_WIDTHS = float(np.sqrt(-2.0 * np.log(NEGLIGIBLE)))

NO_TABLE = np.zeros(1)
NO_PARAMETERS = (0.0,)

Table = npt.NDArray[np.float64]


class WakeModel(ABC):
    """Base class of the options of a wake model. A subclass is a frozen dataclass."""

    name: ClassVar[str]
    formulas: ClassVar[Formulas]

    def __init_subclass__(cls) -> None:
        """Use the class name for a model without a name."""
        super().__init_subclass__()
        if not isinstance(cls.__dict__.get("name"), str):
            cls.name = cls.__qualname__

    @property
    def squared(self) -> bool:
        """Return whether contributions are squares, to be added under a root."""
        return True

    @property
    def relative_to(self) -> str:
        """Return where the free wind speed is taken that deficits are relative to: at the "source" or the "target".

        The source is the turbine that makes the wake, the target the one in it. In a uniform wind they are the same.
        """
        return "source"

    @property
    def uses_speed_ratio(self) -> bool:
        """Return whether `source` depends on its argument `speed_ratio`."""
        return True

    @property
    def uses_turbulence(self) -> bool:
        """Return whether `source` depends on its argument `turbulence_intensity`."""
        return True

    @property
    def thrust_below(self) -> float:
        """Return the limit of thrust coefficients: `source` is not defined at this value and above."""
        return math.inf

    @property
    def uses_differences(self) -> bool:
        """Return whether gradients are finite differences, because the model does not define all derivatives."""
        formulas = self.formulas
        return None in (formulas.source_slopes, formulas.wake_slopes, formulas.contribution_slopes)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return sentences that a user of the model should read."""
        if not self.uses_differences:
            return ()
        return (
            f"wake model {self.name} does not define derivatives: gradients are finite differences of its "
            "formulas, which take several times as long",
        )

    @abstractmethod
    def parameters(self) -> tuple[float, ...]:
        """Return the options as a tuple of floats, the `p` of the formulas."""

    def table(self) -> Table:
        """Return the look-up table of `contribution`."""
        return NO_TABLE

    def check(self, turbines: Sequence["Turbine"], turbulence_intensity: npt.NDArray[np.float64]) -> None:  # noqa: B027
        """Raise InputError for turbines or turbulence that this model does not support."""
