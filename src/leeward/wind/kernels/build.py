"""Build the kernels of a wake model from its formulas.

Missing derivatives become finite differences. These are central, except where one side would be a negative distance or
thrust: there the step ends at 0. The steps are about a millionth of the scales on which wakes change (a rotor's
diameter, a wind speed), so that derivatives of smooth formulas are accurate to about nine digits. Close to a kink they
are a mean of both sides.
"""

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.wind.kernels import resource, resource_slopes
from leeward.wind.kernels.cases import make_cases
from leeward.wind.kernels.compile import formula, kernel, once, source_file
from leeward.wind.kernels.data import Kernels
from leeward.wind.kernels.formulas import ContributionSlopes, Formulas, Rotor, result_type
from leeward.wind.kernels.gradient import make_gradient
from leeward.wind.kernels.maps import make_flow, make_gains, make_marginal, make_points
from leeward.wind.kernels.pairs import make_reaches
from leeward.wind.kernels.rows import tuple_rows
from leeward.wind.kernels.sweep import make_energy, make_sweep

if TYPE_CHECKING:
    from leeward.wind.wake_models.base import WakeModel

STEP_M = 1e-4
STEP_M_S = 1e-5
STEP_OF_THRUST = 1e-6
STEP_OF_SPEED_RATIO = 1e-6
STEP_OF_TURBULENCE = 1e-6


@once
def kernels_of(model: "type[WakeModel]") -> Kernels:
    """Return the kernels of a model, shared by all farms of the process; each is compiled on its first call."""
    ours = model.__module__.startswith("leeward.")
    label = model.name if ours else f"{model.name}-{model.__module__}.{model.__qualname__}"
    return Kernels(*(kernel(loop, label, source_file(model)) for loop in build(model.formulas)))


@once
def resource_kernels() -> Mapping[str, Any]:
    """Return the loops over places of wind that varies; each is compiled on its first call."""
    loops = {
        resource: (
            resource.local_wind,
            resource.fill_values,
            resource.fill_ground,
            resource.fill_stretch,
            resource.gross_power,
        ),
        resource_slopes: (resource_slopes.position_slopes, resource_slopes.stretch_slopes),
    }
    return {
        loop.__name__: kernel(loop, "resource", source=Path(str(module.__file__)))
        for module, each in loops.items()
        for loop in each
    }


def build(formulas: Formulas) -> Kernels:
    """Return the loops for these formulas, not yet compiled. With compilation off they run as plain Python."""
    complete = with_differences(formulas)
    sweep = make_sweep(complete)
    return Kernels(
        make_reaches(complete.reach),
        make_energy(sweep),
        make_gradient(complete, sweep),
        make_points(sweep),
        make_marginal(sweep),
        make_gains(sweep),
        make_flow(sweep),
        make_cases(complete, sweep),
    )


def with_differences(formulas: Formulas) -> Formulas:
    """Return the formulas with differences for the missing derivatives."""
    if formulas.source_slopes is None:
        formulas = replace(formulas, source_slopes=make_source_slopes(formulas))
    if formulas.turbulence_slopes is None:
        formulas = replace(formulas, turbulence_slopes=make_turbulence_slopes(formulas))
    if formulas.wake_slopes is None or formulas.contribution_slopes is None:
        formulas = make_wake_slopes(formulas)
    return formulas


def make_source_slopes(formulas):
    source = formulas.source
    weighted_sum = tuple_rows(result_type(source)).weighted_sum

    @formula
    def source_slopes(thrust, speed_ratio, diameter, turbulence_intensity, p):
        """Return the derivatives of the source with respect to thrust and to the speed ratio."""
        least_thrust, least_ratio = max(thrust - STEP_OF_THRUST, 0.0), max(speed_ratio - STEP_OF_SPEED_RATIO, 0.0)
        low = source(least_thrust, speed_ratio, diameter, turbulence_intensity, p)
        high = source(thrust + STEP_OF_THRUST, speed_ratio, diameter, turbulence_intensity, p)
        per_thrust = 1.0 / (thrust + STEP_OF_THRUST - least_thrust)
        slow = source(thrust, least_ratio, diameter, turbulence_intensity, p)
        fast = source(thrust, speed_ratio + STEP_OF_SPEED_RATIO, diameter, turbulence_intensity, p)
        per_ratio = 1.0 / (speed_ratio + STEP_OF_SPEED_RATIO - least_ratio)
        return (
            weighted_sum(high, per_thrust, low, -per_thrust),
            weighted_sum(fast, per_ratio, slow, -per_ratio),
        )

    return source_slopes


def make_turbulence_slopes(formulas):
    source = formulas.source
    weighted_sum = tuple_rows(result_type(source)).weighted_sum

    @formula
    def turbulence_slopes(thrust, speed_ratio, diameter, turbulence_intensity, p):
        """Return the derivative of the source with respect to turbulence intensity; 0 if it does not depend on it."""
        lowest = max(turbulence_intensity - STEP_OF_TURBULENCE, 0.5 * turbulence_intensity)
        low = source(thrust, speed_ratio, diameter, lowest, p)
        high = source(thrust, speed_ratio, diameter, turbulence_intensity + STEP_OF_TURBULENCE, p)
        per_intensity = 1.0 / (turbulence_intensity + STEP_OF_TURBULENCE - lowest)
        return weighted_sum(high, per_intensity, low, -per_intensity)

    return turbulence_slopes


def make_wake_slopes(formulas: Formulas) -> Formulas:
    """Return the formulas with `wake_slopes`, which passes the source on, and differences as `contribution_slopes`."""
    wake_at, contribution = formulas.wake_at, formulas.contribution
    kind = result_type(formulas.source)
    rows = tuple_rows(kind)
    join, moved = rows.join, rows.moved
    fields = [f"{of}_{name}" for of in ("source", "by_speed") for name in kind._fields]
    passed_on: Any = namedtuple("passed_on", fields)  # type: ignore[misc]  # the fields of the source, twice

    @formula
    def wake_slopes(rotor, source, by_speed, p) -> passed_on:
        return join(source, by_speed)  # type: ignore[no-any-return]

    @formula
    def value_at(downwind, distance, mirror_distance, radius, source, p, table):
        return contribution(wake_at(Rotor(downwind, distance, mirror_distance, radius), source, p), p, table)

    @formula
    def contribution_slopes(wake, rotor, p, table):
        downwind, distance, mirror_distance, radius = rotor
        source, slow, fast = moved(wake, 0.0), moved(wake, -STEP_M_S), moved(wake, STEP_M_S)
        near, close = max(downwind - STEP_M, 0.0), max(distance - STEP_M, 0.0)
        farther = value_at(downwind + STEP_M, distance, mirror_distance, radius, source, p, table)
        nearer = value_at(near, distance, mirror_distance, radius, source, p, table)
        outside = value_at(downwind, distance + STEP_M, mirror_distance, radius, source, p, table)
        inside = value_at(downwind, close, mirror_distance, radius, source, p, table)
        above = value_at(downwind, distance, mirror_distance + STEP_M, radius, source, p, table)
        below = value_at(downwind, distance, mirror_distance - STEP_M, radius, source, p, table)
        faster = value_at(downwind, distance, mirror_distance, radius, fast, p, table)
        slower = value_at(downwind, distance, mirror_distance, radius, slow, p, table)
        return ContributionSlopes(
            value_at(downwind, distance, mirror_distance, radius, source, p, table),
            (farther - nearer) / (downwind + STEP_M - near),
            (outside - inside) / (distance + STEP_M - close),
            (above - below) / (2.0 * STEP_M),
            (faster - slower) / (2.0 * STEP_M_S),
        )

    return replace(formulas, wake_slopes=wake_slopes, contribution_slopes=contribution_slopes)
