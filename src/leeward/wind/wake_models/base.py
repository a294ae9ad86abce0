"""What a wake model is: a handful of scalar formulas and the options that go into them.

A model answers in three steps, each a plain function of floats with its derivatives in the function after it:

1. `source`: what of a turbine's state its wake depends on. Four numbers, from its thrust coefficient and from the
   share of the free wind speed that reaches it. Evaluated once per turbine and condition, not once per pair.
2. `view`: how that wake looks from a rotor downwind of it, in six numbers of the model's choice. Arithmetic only, so
   that the compiler can put it into a vector loop.
3. `look`: from these six to the contribution to the rotor's deficit: table look-ups and calls of library functions.

The contributions of all upstream turbines are added up. The effective speed is `speed * (1 - sum)` or, for a
root-sum-square model (`squared`), `speed * (1 - sqrt(sum))`: there a contribution is the square of a relative deficit.

The formulas are compiled for a CPU loop in `leeward.wind.kernels`, run as they are when compilation is off, and can
be compiled for a GPU. They take no arrays except `table`, a flat array that a model may look things up in.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from leeward.wind.turbine import Turbine

# A deficit this small, relative to the deficit on the centre line, is left out: turbines that far off are not visited.
NEGLIGIBLE = 1e-11
NEGLIGIBLE_WIDTHS = float(np.sqrt(-2.0 * np.log(NEGLIGIBLE)))

NO_TABLE = np.zeros(1)

Parameters = tuple[float, ...]
Table = npt.NDArray[np.float64]
Four = tuple[float, float, float, float]
Five = tuple[float, float, float, float, float]
Six = tuple[float, float, float, float, float, float]
Eight = tuple[float, float, float, float, float, float, float, float]
Eleven = tuple[float, float, float, float, float, float, float, float, float, float, float]


@dataclass(frozen=True)
class Formulas:
    """The scalar functions of one model. `p` is the tuple that `WakeModel.parameters` returns.

    source(thrust, speed_ratio, diameter, turbulence_intensity, p) -> four numbers, s
    source_slopes(the same)
        -> the derivatives of the four with respect to thrust, then with respect to speed_ratio: eight numbers
    view(downwind, distance, mirror_distance, radius, s, p) -> six numbers, v
        distance: from the wake's axis to the rotor's centre; mirror_distance: from the axis of its ground image;
        radius: of the rotor, 0 for a point
    look(v, p, table) -> contribution
    view_partials(downwind, distance, mirror_distance, radius, s, d, p) -> eleven numbers, v
        d: how the four of the source change with the wind speed at the source
    look_partials(v, distance, mirror_distance, radius, p, table)
        -> (contribution, and its derivatives with respect to downwind, distance, mirror_distance, speed at the source)
    reach(downwind, thrust_low, thrust_high, diameter, turbulence_intensity, radius, p)
        -> the crosswind distance (m) beyond which the contribution is zero or NEGLIGIBLE
    """

    source: Callable[..., Four]
    source_slopes: Callable[..., Eight]
    view: Callable[..., Six]
    look: Callable[..., float]
    view_partials: Callable[..., Eleven]
    look_partials: Callable[..., Five]
    reach: Callable[..., float]


class WakeModel(ABC):
    """Base class of the options of a wake model. A subclass is a frozen dataclass in the file named after the model."""

    name: ClassVar[str]
    formulas: ClassVar[Formulas]

    @property
    def squared(self) -> bool:
        """Whether the contributions are squares, to be added under a root."""
        return True

    @abstractmethod
    def parameters(self) -> Parameters:
        """The options as the formulas want them."""

    def table(self) -> Table:
        """What `look` looks things up in."""
        return NO_TABLE

    def check(self, turbines: Sequence["Turbine"], turbulence_intensity: npt.NDArray[np.float64]) -> None:  # noqa: B027
        """Raise InputError for turbines or turbulence that this model cannot take."""
