"""TurbOPark with a Gaussian profile: Nygaard et al. (2022), J. Phys.: Conf. Ser. 2265, 022008, as in PyWake.

Deficits are relative to the free wind speed at the turbine in the wake. The ground acts as a mirror: a wake and its
image add up like the wakes of two turbines. A tabulated overlap factor averages the Gaussian profile over the
downstream rotor.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import positive
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.numerics import log_of_ratio
from leeward.wind.overlap import CELLS_CROSSWIND, CELLS_RADIUS, PER_UNIT, ROW, overlap_table
from leeward.wind.wake_models._induction import initial_width, initial_width_slope
from leeward.wind.wake_models.base import (
    NEGLIGIBLE_WIDTHS,
    ContributionSlopes,
    Formulas,
    Range,
    Rotor,
    Table,
    WakeModel,
)

if TYPE_CHECKING:
    from leeward.wind.turbine import Turbine

SMALLEST_THRUST = 1e-20  # lower bound of the thrust in the formula of the width, which is not defined at 0
SMALLEST_START = 1e-4  # smallest q at the start of a wake; `log_of_ratio` ends at about 2 / 65536
WIDEST = CELLS_CROSSWIND / PER_UNIT  # end of the table, in wake widths; beyond it, the last value applies


class Parameters(NamedTuple):
    """See `Nygaard2022`."""

    expansion: float
    ambient_turbulence: float
    added_turbulence: float
    initial_width: float
    thrust_limit: float


class Source(NamedTuple):
    """slope (1/m), scale (m), offset (m): for the width, see `source`; load: thrust coefficient * D^2 / 8, m^2."""

    slope: float
    scale: float
    offset: float
    load: float


class Wake(NamedTuple):
    """strength: square of the relative deficit on the axis (1-D momentum theory); the rest: position in the table.

    across: position in the table cell along the radius; cell, along: index of the cell and position in it along the
    distance, for the wake and for its ground image.
    """

    strength: float
    across: float
    cell: float
    along: float
    mirror_cell: float
    mirror_along: float


class WakeSlopes(NamedTuple):
    """`Wake`, the inverse width (1/m), and the derivatives of strength and inverse width."""

    strength: float
    across: float
    cell: float
    along: float
    mirror_cell: float
    mirror_along: float
    inverse_width: float
    strength_by_downwind: float
    inverse_by_downwind: float
    strength_by_speed: float
    inverse_by_speed: float


@formula
def source(thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters) -> Source:
    """Return the source: width of the wake = scale * G(q) + offset with q = slope * (downwind + scale * c1 / A).

    G(q) = sqrt(q^2 + 1) - ln((sqrt(q^2 + 1) + 1) / q) is the integrated wake expansion of TurbOPark.
    """
    root = math.sqrt(max(thrust, SMALLEST_THRUST))
    slope = p.added_turbulence * turbulence_intensity / (root * diameter)
    scale = p.expansion * diameter * root / p.added_turbulence
    width = initial_width(thrust, diameter, p.initial_width, p.thrust_limit)
    offset = width - scale * expansion_integral(p.ambient_turbulence * turbulence_intensity)
    return Source(slope, scale, offset, thrust * diameter * diameter * 0.125)


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> tuple[Source, Source]:
    """Return the derivatives of `source` with respect to thrust; it does not depend on the speed ratio."""
    held = max(thrust, SMALLEST_THRUST)
    moving = 1.0 if thrust > SMALLEST_THRUST else 0.0
    root = math.sqrt(held)
    slope = p.added_turbulence * turbulence_intensity / (root * diameter)
    scale = p.expansion * diameter * root / p.added_turbulence
    half = 0.5 * moving / held
    d_scale = scale * half
    d_width = initial_width_slope(thrust, diameter, p.initial_width, p.thrust_limit)
    d_offset = d_width - d_scale * expansion_integral(p.ambient_turbulence * turbulence_intensity)
    return Source(-slope * half, d_scale, d_offset, diameter * diameter * 0.125), Source(0.0, 0.0, 0.0, 0.0)


@formula
def turbulence_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> Source:
    """Return the derivative of `source` with respect to turbulence intensity, with dG/dq = sqrt(q^2 + 1) / q."""
    root = math.sqrt(max(thrust, SMALLEST_THRUST))
    scale = p.expansion * diameter * root / p.added_turbulence
    q = p.ambient_turbulence * turbulence_intensity
    d_offset = -scale * p.ambient_turbulence * math.sqrt(q * q + 1.0) / q
    return Source(p.added_turbulence / (root * diameter), 0.0, d_offset, 0.0)


@formula
def expansion_integral(q: float) -> float:
    """Return G(q), see `source`."""
    hypotenuse = math.sqrt(q * q + 1.0)
    return hypotenuse - log_of_ratio(hypotenuse + 1.0, q)


@formula
def width_at(downwind: float, source: Source, p: Parameters) -> float:
    """Return the standard deviation of the Gaussian profile (m)."""
    q = source.slope * (downwind + source.scale * (p.ambient_turbulence / p.expansion))
    return source.scale * expansion_integral(q) + source.offset


@formula
def cell_of(position: float, last: float) -> tuple[float, float]:
    """Return the table cell and the position in it, 0 .. 1; exactly 1 only beyond the end of the table."""
    position = min(position, last + 1.0)
    cell = min(math.floor(position), last)
    return cell, position - cell


@formula
def wake_at(rotor: Rotor, source: Source, p: Parameters) -> Wake:
    inverse_width = 1.0 / width_at(rotor.downwind, source, p)
    deficit = 1.0 - math.sqrt(1.0 - min(source.load * inverse_width * inverse_width, 1.0))
    return wake_in_table(deficit * deficit, PER_UNIT * inverse_width, rotor)


@formula
def wake_in_table(strength: float, cells: float, rotor: Rotor) -> Wake:
    """Return the wake of this strength. cells: table cells per metre."""
    row, across = cell_of(rotor.radius * cells, CELLS_RADIUS - 1.0)
    column, along = cell_of(rotor.distance * cells, CELLS_CROSSWIND - 1.0)
    mirror_column, mirror_along = cell_of(rotor.mirror_distance * cells, CELLS_CROSSWIND - 1.0)
    return Wake(strength, across, row * ROW + 2.0 * column, along, row * ROW + 2.0 * mirror_column, mirror_along)


@formula
def contribution(wake: Wake, p: Parameters, table: Table) -> float:
    """Return the squared relative deficit of the wake and of its ground image, averaged over the rotor."""
    direct = overlap(wake.cell, wake.across, wake.along, table)
    image = overlap(wake.mirror_cell, wake.across, wake.mirror_along, table)
    return wake.strength * (direct * direct + image * image)


@formula
def overlap(index: float, across: float, along: float, table: Table) -> float:
    """Interpolate the overlap factor. The four corners of a cell are adjacent in the table."""
    i = int(index)
    value: float = table[i] + along * (table[i + 2] - table[i])
    value_next: float = table[i + 1] + along * (table[i + 3] - table[i + 1])
    return value + across * (value_next - value)


@formula
def overlap_slopes(index: float, across: float, along: float, table: Table) -> tuple[float, float, float]:
    """Return `overlap` and its slopes across and along, per cell; beyond the end of the table it is constant."""
    i = int(index)
    slope = table[i + 2] - table[i]
    slope_next = table[i + 3] - table[i + 1]
    value = table[i] + along * slope
    value_next = table[i + 1] + along * slope_next
    return (
        value + across * (value_next - value),
        value_next - value if across < 1.0 else 0.0,
        slope + across * (slope_next - slope) if along < 1.0 else 0.0,
    )


@formula
def wake_slopes(rotor: Rotor, source: Source, by_speed: Source, p: Parameters) -> WakeSlopes:
    """Return the wake with its derivatives. The expansion G of `source` has dG/dq = sqrt(q^2 + 1) / q."""
    lead = p.ambient_turbulence / p.expansion
    path = rotor.downwind + source.scale * lead
    q = source.slope * path
    hypotenuse = math.sqrt(q * q + 1.0)
    integral = hypotenuse - log_of_ratio(hypotenuse + 1.0, q)
    inverse_width = 1.0 / (source.scale * integral + source.offset)
    square = inverse_width * inverse_width
    growth = source.scale * hypotenuse / q
    by_q = by_speed.slope * path + source.slope * by_speed.scale * lead
    inverse_by_downwind = -square * growth * source.slope
    inverse_by_speed = -square * (by_speed.scale * integral + growth * by_q + by_speed.offset)

    load = source.load * square
    saturated = load >= 1.0
    root = math.sqrt(1.0 - min(load, 1.0))
    deficit = 1.0 - root
    # d(deficit^2) / d(load) = deficit / root; a saturated deficit is constant
    factor = 0.0 if saturated else deficit / (1.0 if saturated else root)
    load_by_inverse = 2.0 * source.load * inverse_width
    wake = wake_in_table(deficit * deficit, PER_UNIT * inverse_width, rotor)
    return WakeSlopes(
        wake.strength,
        wake.across,
        wake.cell,
        wake.along,
        wake.mirror_cell,
        wake.mirror_along,
        inverse_width,
        factor * load_by_inverse * inverse_by_downwind,
        inverse_by_downwind,
        factor * (load_by_inverse * inverse_by_speed + by_speed.load * square),
        inverse_by_speed,
    )


@formula
def contribution_slopes(wake: WakeSlopes, rotor: Rotor, p: Parameters, table: Table) -> ContributionSlopes:
    direct, direct_across, direct_along = overlap_slopes(wake.cell, wake.across, wake.along, table)
    image, image_across, image_along = overlap_slopes(wake.mirror_cell, wake.across, wake.mirror_along, table)
    both = direct * direct + image * image
    per_cell = 2.0 * wake.strength * PER_UNIT
    per_inverse_width = per_cell * (
        direct * (direct_across * rotor.radius + direct_along * rotor.distance)
        + image * (image_across * rotor.radius + image_along * rotor.mirror_distance)
    )
    return ContributionSlopes(
        wake.strength * both,
        wake.strength_by_downwind * both + per_inverse_width * wake.inverse_by_downwind,
        per_cell * direct * direct_along * wake.inverse_width,
        per_cell * image * image_along * wake.inverse_width,
        wake.strength_by_speed * both + per_inverse_width * wake.inverse_by_speed,
    )


@formula
def reach(at: Range, p: Parameters) -> float:
    """Return the reach at the highest thrust; infinite if a large rotor in a narrow wake passes the table's end."""
    lowest = source(at.thrust_low, 1.0, at.diameter, at.turbulence_intensity, p)
    if WIDEST - at.radius / width_at(at.downwind, lowest, p) < NEGLIGIBLE_WIDTHS:
        return math.inf
    highest = source(at.thrust_high, 1.0, at.diameter, at.turbulence_intensity, p)
    return NEGLIGIBLE_WIDTHS * width_at(at.downwind, highest, p) + at.radius


@dataclass(frozen=True)
class Nygaard2022(WakeModel):
    """Options of TurbOPark; the defaults are those of `py_wake.literature.Nygaard_2022`.

    expansion: A of the paper. ambient_turbulence, added_turbulence: its factors c1 and c2 for the turbulence of the
    site and of turbines (the intensity itself is the site's). initial_width: of a wake at its turbine, in diameters.
    thrust_limit: upper bound of the thrust coefficient for that width.
    """

    expansion: float = 0.04
    ambient_turbulence: float = 1.5
    added_turbulence: float = 0.8
    initial_width: float = 0.25
    thrust_limit: float = 0.96

    name: ClassVar[str] = "nygaard_2022"
    formulas: ClassVar[Formulas] = Formulas(
        source, wake_at, contribution, reach, source_slopes, wake_slopes, contribution_slopes, turbulence_slopes
    )

    def __post_init__(self) -> None:
        for option in ("expansion", "ambient_turbulence", "added_turbulence", "initial_width"):
            positive(getattr(self, option), f"{self.name}: {option}")
        if not positive(self.thrust_limit, f"{self.name}: thrust_limit") < 1:
            raise InputError(f"nygaard_2022: thrust_limit is {self.thrust_limit}; expected a number between 0 and 1")

    @property
    def relative_to(self) -> str:
        return "target"

    @property
    def uses_speed_ratio(self) -> bool:
        return False

    def parameters(self) -> Parameters:
        return Parameters(*(float(getattr(self, name)) for name in Parameters._fields))

    def table(self) -> Table:
        return overlap_table()

    def check(self, turbines: Sequence["Turbine"], turbulence_intensity: npt.NDArray[np.float64]) -> None:
        smallest = float(np.min(turbulence_intensity))
        needed = SMALLEST_START / self.ambient_turbulence
        if not smallest >= needed:
            raise InputError(
                f"wake model {self.name}: the site's turbulence intensity goes down to {smallest:g}; this model "
                f"needs at least {needed:.2g} (typical offshore values are 0.04 to 0.1)"
            )
