"""Base class of the wake models: a few scalar formulas, and the options that go into them.

A model has three formulas. Each is a plain function of floats, and its derivatives are the next function in the file:

1. `source`: the quantities of a turbine that its wake depends on, from its thrust coefficient and from the share of the
   free wind speed that reaches it. Evaluated once per turbine and condition, not once per pair.
2. `wake_at`: the wake of that source at a rotor downwind of it. Arithmetic only, so that the compiler can put it into a
   vector loop.
3. `contribution`: from that wake to the contribution to the rotor's deficit. Table look-ups and calls of library
   functions belong here.

The results of the first two are named tuples of floats. Each model defines its own, and the kernels find them in the
annotations of the formulas.

The contributions of all upstream turbines are added up. The effective speed is `speed * (1 - sum)` or, for a
root-sum-square model (`squared`), `speed * (1 - sqrt(sum))`: there a contribution is the square of a relative deficit.

The formulas are compiled for a CPU loop in `leeward.wind.kernels`, run as they are when compilation is off, and can
be compiled for a GPU. They take no arrays except `table`, a flat array that a model may look things up in.
"""

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from leeward.wind.turbine import Turbine

# A deficit this small, relative to the deficit on the centre line, is left out: turbines that far off are not visited.
NEGLIGIBLE = 1e-11
NEGLIGIBLE_WIDTHS = float(np.sqrt(-2.0 * np.log(NEGLIGIBLE)))

NO_TABLE = np.zeros(1)
NO_PARAMETERS = (0.0,)

Table = npt.NDArray[np.float64]


class Rotor(NamedTuple):
    """A rotor as seen from the turbine that makes the wake, in metres.

    distance: from the wake's axis to the rotor's centre; mirror_distance: from the axis of its ground image;
    radius: of the rotor, 0 for a point.
    """

    downwind: float
    distance: float
    mirror_distance: float
    radius: float


class Range(NamedTuple):
    """How far downwind, m, behind turbines of which diameter (m) and range of thrust coefficients a wake is looked at.

    radius: of the rotor that it reaches, m.
    """

    downwind: float
    thrust_low: float
    thrust_high: float
    diameter: float
    turbulence_intensity: float
    radius: float


class ContributionSlopes(NamedTuple):
    """A contribution and its derivatives with respect to the rotor's place and to the wind speed at the source."""

    value: float
    by_downwind: float
    by_distance: float
    by_mirror_distance: float
    by_source_speed: float


@dataclass(frozen=True)
class Formulas:
    """The scalar functions of one model. `p` is the tuple that `WakeModel.parameters` returns.

    source(thrust, speed_ratio, diameter, turbulence_intensity, p) -> Source
    wake_at(rotor, source, p) -> Wake
    contribution(wake, p, table) -> float
    reach(at, p) -> the crosswind distance (m) beyond which the contribution is zero or NEGLIGIBLE; at: a Range

    The derivatives. A custom model may leave them out: then they are taken as differences of the formulas.

    source_slopes(the arguments of source) -> two Sources: the derivatives with respect to thrust and to speed_ratio
    wake_slopes(rotor, source, by_speed, p) -> WakeSlopes, whatever `contribution_slopes` needs
        by_speed: the derivative of the source with respect to the wind speed there, a Source
    contribution_slopes(wake_slopes, rotor, p, table) -> ContributionSlopes
    """

    source: Callable[..., Any]
    wake_at: Callable[..., Any]
    contribution: Callable[..., float]
    reach: Callable[..., float]
    source_slopes: Callable[..., Any] | None = None
    wake_slopes: Callable[..., Any] | None = None
    contribution_slopes: Callable[..., ContributionSlopes] | None = None

    @property
    def is_complete(self) -> bool:
        """Tell whether the model has all of its derivatives."""
        return None not in (self.source_slopes, self.wake_slopes, self.contribution_slopes)


def result_type(formula: Callable[..., Any] | None) -> Any:
    """Return the class of named tuples that a formula is annotated to return."""
    function: Any = getattr(formula, "py_func", formula)
    kind = typing.get_type_hints(function).get("return")
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        raise TypeError(
            f"{function.__module__}.{function.__qualname__} is annotated to return {kind!r}; expected a class derived "
            "from NamedTuple"
        )
    return kind


class WakeModel(ABC):
    """Base class of the options of a wake model. A subclass is a frozen dataclass."""

    name: ClassVar[str]
    formulas: ClassVar[Formulas]

    def __init_subclass__(cls) -> None:
        """Name a model after its class, unless it has a name."""
        super().__init_subclass__()
        if not isinstance(cls.__dict__.get("name"), str):
            cls.name = cls.__qualname__

    @property
    def squared(self) -> bool:
        """Whether the contributions are squares, to be added under a root."""
        return True

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences that a person who uses the model should read."""
        if self.formulas.is_complete:
            return ()
        return (
            f"wake model {self.name} has no derivatives of its own: gradients are taken from differences of its "
            "formulas, which takes several times as long",
        )

    @abstractmethod
    def parameters(self) -> tuple[float, ...]:
        """The options as the formulas want them."""

    def table(self) -> Table:
        """What `contribution` looks things up in."""
        return NO_TABLE

    def check(self, turbines: Sequence["Turbine"], turbulence_intensity: npt.NDArray[np.float64]) -> None:  # noqa: B027
        """Raise InputError for turbines or turbulence that this model cannot take."""
