"""TurbOPark with a Gaussian profile: Nygaard et al. (2022), J. Phys.: Conf. Ser. 2265, 022008, as PyWake has it.

Deficits are relative to the free wind speed; the ground acts as a mirror, and a wake and its image add up like the
wakes of two turbines; the Gaussian profile is averaged over the downstream rotor with a tabulated overlap factor.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.wind.checks import positive
from leeward.wind.kernels.compile import formula
from leeward.wind.kernels.numerics import log_of_ratio
from leeward.wind.overlap import CELLS_CROSSWIND, CELLS_RADIUS, PER_UNIT, ROW, overlap_table
from leeward.wind.wake_models.base import (
    NEGLIGIBLE_WIDTHS,
    Eight,
    Eleven,
    Five,
    Formulas,
    Four,
    Parameters,
    Six,
    Table,
    WakeModel,
)

if TYPE_CHECKING:
    from leeward.wind.turbine import Turbine

SMALLEST_THRUST = 1e-20  # below it the width is that of this thrust, to keep it defined
SMALLEST_START = 1e-4  # of q, where the wake starts: `log_of_ratio` ends at about 2 / 65536
WIDEST = CELLS_CROSSWIND / PER_UNIT  # the table ends here, in widths; beyond, its last value counts


@formula
def source(thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters) -> Four:
    """Wake width = s1 * G(q) + s2 with q = s0 * (downwind + s1 * c1 / A); strength from s3 = thrust * D^2 / 8.

    G(q) = sqrt(q^2 + 1) - ln((sqrt(q^2 + 1) + 1) / q) is the wake expansion of TurbOPark, integrated.
    """
    expansion, ambient, added, initial_width, thrust_limit = p
    root = math.sqrt(max(thrust, SMALLEST_THRUST))
    slope = added * turbulence_intensity / (root * diameter)
    scale = expansion * diameter * root / added
    start = ambient * turbulence_intensity
    hypotenuse = math.sqrt(start * start + 1.0)
    start_expansion = hypotenuse - log_of_ratio(hypotenuse + 1.0, start)
    rest = math.sqrt(1.0 - min(thrust_limit, thrust))
    width = initial_width * diameter * math.sqrt(0.5 * (1.0 + rest) / rest)
    return slope, scale, width - scale * start_expansion, thrust * diameter * diameter * 0.125


@formula
def source_slopes(
    thrust: float, speed_ratio: float, diameter: float, turbulence_intensity: float, p: Parameters
) -> Eight:
    """Derivatives of `source` with respect to thrust; it does not depend on the speed ratio."""
    expansion, ambient, added, initial_width, thrust_limit = p
    held = max(thrust, SMALLEST_THRUST)
    moving = 1.0 if thrust > SMALLEST_THRUST else 0.0
    root = math.sqrt(held)
    slope = added * turbulence_intensity / (root * diameter)
    scale = expansion * diameter * root / added
    start = ambient * turbulence_intensity
    hypotenuse = math.sqrt(start * start + 1.0)
    start_expansion = hypotenuse - log_of_ratio(hypotenuse + 1.0, start)
    half = 0.5 * moving / held
    rest = math.sqrt(1.0 - min(thrust_limit, thrust))
    width = initial_width * diameter * math.sqrt(0.5 * (1.0 + rest) / rest)
    # width ~ sqrt((1 + 1 / rest) / 2), d rest / d thrust = -1 / (2 rest); beyond the limit it is constant
    d_width = width * 0.25 / ((1.0 + rest) * rest * rest) if thrust < thrust_limit else 0.0
    d_scale = scale * half
    return (
        -slope * half,
        d_scale,
        d_width - d_scale * start_expansion,
        diameter * diameter * 0.125,
        0.0,
        0.0,
        0.0,
        0.0,
    )


@formula
def width_at(downwind: float, s: Four, p: Parameters) -> float:
    """Standard deviation of the Gaussian profile (m)."""
    s0, s1, s2, _ = s
    expansion, ambient, added, initial_width, thrust_limit = p
    q = s0 * (downwind + s1 * (ambient / expansion))
    hypotenuse = math.sqrt(q * q + 1.0)
    return s1 * (hypotenuse - log_of_ratio(hypotenuse + 1.0, q)) + s2


@formula
def cell_of(position: float, last: float) -> tuple[float, float]:
    """Table cell and place in it, 0 .. 1; exactly 1 only where the table has ended."""
    position = min(position, last + 1.0)
    cell = min(math.floor(position), last)
    return cell, position - cell


@formula
def view(downwind: float, distance: float, mirror_distance: float, radius: float, s: Four, p: Parameters) -> Six:
    """Squared relative deficit on the axis (1-D momentum theory), and where to look in the overlap table.

    The latter: place across the cell (radius), then index and place along (distance), of the wake and of its image.
    """
    s0, s1, s2, s3 = s
    inverse_width = 1.0 / width_at(downwind, s, p)
    deficit = 1.0 - math.sqrt(1.0 - min(s3 * inverse_width * inverse_width, 1.0))
    cells = PER_UNIT * inverse_width
    row, across = cell_of(radius * cells, CELLS_RADIUS - 1.0)
    column, along = cell_of(distance * cells, CELLS_CROSSWIND - 1.0)
    mirror_column, mirror_along = cell_of(mirror_distance * cells, CELLS_CROSSWIND - 1.0)
    return deficit * deficit, across, row * ROW + 2.0 * column, along, row * ROW + 2.0 * mirror_column, mirror_along


@formula
def look(v: Six, p: Parameters, table: Table) -> float:
    """Squared relative deficit, averaged over the rotor: the wake's and its ground image's together."""
    strength, across, index, along, mirror_index, mirror_along = v
    direct = overlap(index, across, along, table)
    image = overlap(mirror_index, across, mirror_along, table)
    return strength * (direct * direct + image * image)


@formula
def overlap(index: float, across: float, along: float, table: Table) -> float:
    """Overlap factor, bilinear. The four corners of a cell stand side by side in the table."""
    i = int(index)
    value: float = table[i] + along * (table[i + 2] - table[i])
    value_next: float = table[i + 1] + along * (table[i + 3] - table[i + 1])
    return value + across * (value_next - value)


@formula
def overlap_partials(index: float, across: float, along: float, table: Table) -> tuple[float, float, float]:
    """`overlap` with its slopes across and along, per cell; beyond the table's end it is constant."""
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
def view_partials(
    downwind: float, distance: float, mirror_distance: float, radius: float, s: Four, d: Four, p: Parameters
) -> Eleven:
    """`view`, then the inverse width, and the slopes of strength and inverse width with downwind and source speed.

    The expansion G of `source` has the derivative dG/dq = sqrt(q^2 + 1) / q.
    """
    s0, s1, s2, s3 = s
    d0, d1, d2, d3 = d
    expansion, ambient, added, initial_width, thrust_limit = p
    offset = ambient / expansion
    path = downwind + s1 * offset
    q = s0 * path
    hypotenuse = math.sqrt(q * q + 1.0)
    integral = hypotenuse - log_of_ratio(hypotenuse + 1.0, q)
    inverse_width = 1.0 / (s1 * integral + s2)
    square = inverse_width * inverse_width
    growth = s1 * hypotenuse / q
    inverse_downwind = -square * growth * s0
    inverse_speed = -square * (d1 * integral + growth * (d0 * path + s0 * d1 * offset) + d2)

    load = s3 * square
    saturated = load >= 1.0
    root = math.sqrt(1.0 - min(load, 1.0))
    deficit = 1.0 - root
    # d(deficit^2) / d(load) = deficit / root; a saturated deficit is constant
    factor = 0.0 if saturated else deficit / (1.0 if saturated else root)
    load_inverse = 2.0 * s3 * inverse_width

    cells = PER_UNIT * inverse_width
    row, across = cell_of(radius * cells, CELLS_RADIUS - 1.0)
    column, along = cell_of(distance * cells, CELLS_CROSSWIND - 1.0)
    mirror_column, mirror_along = cell_of(mirror_distance * cells, CELLS_CROSSWIND - 1.0)
    return (
        deficit * deficit,
        across,
        row * ROW + 2.0 * column,
        along,
        row * ROW + 2.0 * mirror_column,
        mirror_along,
        inverse_width,
        factor * load_inverse * inverse_downwind,
        inverse_downwind,
        factor * (load_inverse * inverse_speed + d3 * square),
        inverse_speed,
    )


@formula
def look_partials(
    v: Eleven, distance: float, mirror_distance: float, radius: float, p: Parameters, table: Table
) -> Five:
    """`look` with the derivatives of the contribution."""
    (
        strength,
        across,
        index,
        along,
        mirror_index,
        mirror_along,
        inverse_width,
        strength_downwind,
        inverse_downwind,
        strength_speed,
        inverse_speed,
    ) = v
    direct, direct_across, direct_along = overlap_partials(index, across, along, table)
    image, image_across, image_along = overlap_partials(mirror_index, across, mirror_along, table)
    both = direct * direct + image * image
    per_cell = 2.0 * strength * PER_UNIT
    per_inverse_width = per_cell * (
        direct * (direct_across * radius + direct_along * distance)
        + image * (image_across * radius + image_along * mirror_distance)
    )
    return (
        strength * both,
        strength_downwind * both + per_inverse_width * inverse_downwind,
        per_cell * direct * direct_along * inverse_width,
        per_cell * image * image_along * inverse_width,
        strength_speed * both + per_inverse_width * inverse_speed,
    )


@formula
def reach(
    downwind: float,
    thrust_low: float,
    thrust_high: float,
    diameter: float,
    turbulence_intensity: float,
    radius: float,
    p: Parameters,
) -> float:
    """The wake widens with thrust. A large rotor in a narrow wake sees the table's end: then nothing is left out."""
    s = source(thrust_low, 1.0, diameter, turbulence_intensity, p)
    if WIDEST - radius / width_at(downwind, s, p) < NEGLIGIBLE_WIDTHS:
        return math.inf
    s = source(thrust_high, 1.0, diameter, turbulence_intensity, p)
    return NEGLIGIBLE_WIDTHS * width_at(downwind, s, p) + radius


@dataclass(frozen=True)
class Nygaard2022(WakeModel):
    """Options of TurbOPark; the defaults are those of `py_wake.literature.Nygaard_2022`.

    expansion: A of the paper. ambient_turbulence, added_turbulence: its factors c1 and c2, of the site's turbulence and
    of what a turbine adds to it; not intensities themselves, which are the site's. initial_width: of a wake at its
    turbine, in diameters. thrust_limit: thrust coefficients above it count as it for that width.
    """

    expansion: float = 0.04
    ambient_turbulence: float = 1.5
    added_turbulence: float = 0.8
    initial_width: float = 0.25
    thrust_limit: float = 0.96

    name: ClassVar[str] = "nygaard_2022"
    formulas: ClassVar[Formulas] = Formulas(source, source_slopes, view, look, view_partials, look_partials, reach)

    def __post_init__(self) -> None:
        for option in ("expansion", "ambient_turbulence", "added_turbulence", "initial_width"):
            positive(getattr(self, option), f"{self.name}: {option}")
        if not positive(self.thrust_limit, f"{self.name}: thrust_limit") < 1:
            raise InputError(f"nygaard_2022: thrust_limit is {self.thrust_limit}; expected a number between 0 and 1")

    def parameters(self) -> Parameters:
        return (
            float(self.expansion),
            float(self.ambient_turbulence),
            float(self.added_turbulence),
            float(self.initial_width),
            float(self.thrust_limit),
        )

    def table(self) -> Table:
        return overlap_table()

    def check(self, turbines: Sequence["Turbine"], turbulence_intensity: npt.NDArray[np.float64]) -> None:
        smallest = float(np.min(turbulence_intensity))
        needed = SMALLEST_START / self.ambient_turbulence
        if not smallest >= needed:
            raise InputError(
                f"wake model {self.name}: the site's turbulence intensity goes down to {smallest:g}; the wake expands "
                f"with it, so expected at least {needed:.2g} (typical offshore values are 0.04 to 0.1)"
            )
