"""Arguments of the GPU's kernels for wind that varies over the site. Importing this module does not import numba."""

from typing import NamedTuple

from leeward.wind.field import WindField
from leeward.wind.gpu.data import Values, Winds
from leeward.wind.kernels.data import Field, Rows, SectorValues


class FieldWinds(NamedTuple):
    """Wind roses of one field, on the GPU.

    rows: as in `leeward.wind.kernels.data`, of all roses, one rose after the other. reference: the wind at the
    reference, with one place. parts, speeds: a direction with many speeds is repeated so many times, each time with so
    many of them. Padded directions and lanes have the weight 0.
    """

    description: WindField
    field: Field
    rows: Rows
    reference: Winds
    parts: int
    speeds: int


class Located(NamedTuple):
    """Places of turbines or points; x, y, height above ground: m, shape (layouts, places). count: shape (layouts,)."""

    x: Values
    y: Values
    height: Values
    count: Values


class Varies(NamedTuple):
    """Says which quantities of the wind vary over the site. is_squared: True if `Winds.scale` is the speed squared."""

    speed: bool
    weight: bool
    turbulence: bool
    is_squared: bool


class Local(NamedTuple):
    """The field at places. sectors: shape (layouts, places, n) each; by_x, by_y: their derivatives, or no layouts.

    winds: as in `Winds`, with a rose for each layout.
    """

    located: Located
    sectors: SectorValues
    by_x: SectorValues
    by_y: SectorValues
    winds: Winds


class Terrain(NamedTuple):
    """The terrain under some layouts; no layouts where it does not count.

    ground: as in `Places`, shape (layouts, turbines); east, north: its slopes. stretch: shape (layouts, turbines,
    turbines). at_ground, at_stretch: those of points. longest: the largest stretch of each place, shape (layouts,
    places).
    """

    ground: Values
    east: Values
    north: Values
    stretch: Values
    at_ground: Values
    at_stretch: Values
    longest: Values
