"""The interface of a wake model: scalar functions of named tuples. Importing this module does not import numba."""

import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


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
    """A distance downwind of a turbine (m), its range of thrust coefficients and its diameter (m), for `reach`.

    radius: of the rotor in the wake, m.
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

    The derivatives. They are optional in a custom model: leeward then uses finite differences.

    source_slopes(the arguments of source) -> two Sources: the derivatives with respect to thrust and to speed_ratio
    turbulence_slopes(the arguments of source) -> a Source: the derivatives with respect to turbulence_intensity
    wake_slopes(rotor, source, by_speed, p) -> WakeSlopes, the inputs of `contribution_slopes`
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
    turbulence_slopes: Callable[..., Any] | None = None


def result_type(formula: Callable[..., Any] | None) -> Any:
    """Return the NamedTuple class in the return annotation of a formula."""
    function: Any = getattr(formula, "py_func", formula)
    kind = typing.get_type_hints(function).get("return")
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        raise TypeError(
            f"{function.__module__}.{function.__qualname__} is annotated to return {kind!r}; expected a class derived "
            "from NamedTuple"
        )
    return kind
