"""Arguments and intermediate data of the kernels: tuples of arrays. Importing this module does not import numba."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from leeward.wind.turbine import Curve

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.uint32]  # unsigned: indexing then needs no check for negative values

CURVE_BINS = 4096
ELEMENTS = 512  # largest number of directions x speeds in a batch: long vector loops that fit the first-level cache
REACH_BINS = 512


class Kernels(NamedTuple):
    """The loops of one wake model that Python calls. The functions that `build` calls document their arguments."""

    reaches: Callable[..., Any]
    energy: Callable[..., Any]
    gradient: Callable[..., Any]
    points: Callable[..., Any]
    marginal: Callable[..., Any]
    gains: Callable[..., Any]
    flow: Callable[..., Any]
    cases: Callable[..., Any]


NONE = np.empty(0)
NO_PAIRS = np.empty((0, 0))


class Places(NamedTuple):
    """Positions of turbines (m, east and north of any nearby point) and their types; shape (turbines,).

    ground: elevation of the terrain, m; empty if it does not count. stretch: the distance to each turbine along the
    terrain, relative to the straight one, shape (places, turbines); empty if distances are straight.
    """

    x: Floats
    y: Floats
    kind: Indices
    ground: Floats = NONE
    stretch: Floats = NO_PAIRS

    def part(self, which: Any) -> "Places":
        """Return some of the places. which: a slice or a mask."""
        ground = self.ground[which] if len(self.ground) else self.ground
        stretch = self.stretch[which] if len(self.stretch) else self.stretch
        return Places(self.x[which], self.y[which], self.kind[which], ground, stretch)


class Wind(NamedTuple):
    """Wind conditions.

    cosine, sine: of the angle the wind comes from, anticlockwise from east, shape (directions,);
    free speed (m/s), weight and turbulence intensity: shape (rows, directions, lanes), with one row for all places or
    one for each. density: of the air, relative to that of the power curves; no rows if it is the same. scale: the free
    speed, squared for squared contributions; no rows unless contributions are relative to the free speed at the source
    and that varies.
    """

    cosine: Floats
    sine: Floats
    speed: Floats
    weight: Floats
    turbulence_intensity: Floats
    density: Floats
    scale: Floats


class Batch(NamedTuple):
    """Wind conditions, and the turbines in each direction, sorted downwind.

    downwind, crosswind: m, shape (directions, turbines); turbine, kind: index and type, same shape;
    lateral: the ranks sorted by crosswind, same shape.
    speed, weight, turbulence_intensity, density, scale: of all lanes, direction after direction, shape (rows,
    elements), at most ELEMENTS; as in `Wind`, but several rows are sorted by rank.
    cosine, sine: of the angle the wind comes from, anticlockwise from east, shape (directions,).
    ground, stretch: as in `Places`, by index of the turbine.
    """

    downwind: Floats
    crosswind: Floats
    turbine: Indices
    kind: Indices
    lateral: Indices
    speed: Floats
    weight: Floats
    turbulence_intensity: Floats
    density: Floats
    scale: Floats
    cosine: Floats
    sine: Floats
    ground: Floats
    stretch: Floats


class Curves(NamedTuple):
    """Pieces of all types, shape (pieces,) and (pieces, 9); bins, shape (types, CURVE_BINS), with origin and scale."""

    ends: Floats
    pieces: Floats
    first_piece: Integers
    bin_origin: Floats
    bins_per_speed: Floats


class Kinds(NamedTuple):
    """Properties of each turbine type; shape (types,)."""

    diameter: Floats
    hub_height: Floats
    thrust_low: Floats
    thrust_high: Floats
    curves: Curves


class Model(NamedTuple):
    """Options of the wake model, see `leeward.wind.wake_models.base`, and the reach of its wakes.

    uses_ratio: True if sources depend on the speed ratio.
    reaches: crosswind distance squared, shape (types, types, REACH_BINS), over downwind distances 0 .. longest;
    widest: the square root of their maximum.
    """

    parameters: tuple[float, ...]
    table: Floats
    squared: bool
    uses_ratio: bool
    reaches: Floats
    longest: float
    widest: float


class Lateral(NamedTuple):
    """The turbines sorted by crosswind in each direction; shape (directions, turbines).

    downwind, crosswind, kind: in that order. begin, end: by rank, the range of turbines that are close enough in
    crosswind to matter.
    """

    downwind: Floats
    crosswind: Floats
    kind: Indices
    begin: Indices
    end: Indices


class Place(NamedTuple):
    """A place in one wind direction: downwind and crosswind coordinates (m), and the type of the turbine there.

    rotor: 1.0 to average over its rotor, 0.0 for the wind speed at its hub. ground: elevation of the terrain, m.
    """

    downwind: float
    crosswind: float
    kind: int
    rotor: float
    ground: float


class Pairs(NamedTuple):
    """The wakes that count, sorted by rank of the turbine they reach; shape (pairs,), `first` (turbines + 1,).

    direction: index of the wind direction; source: rank of the turbine that makes the wake;
    downwind, crosswind: from source to target, m;
    distance, mirror_distance: of the target from the axis of the wake and of its ground image, m.
    """

    first: Integers
    direction: Indices
    source: Indices
    downwind: Floats
    crosswind: Floats
    distance: Floats
    mirror_distance: Floats
    radius: Floats


class State(NamedTuple):
    """Results for the turbines of each rank: m/s, MW; shape (turbines, elements).

    sources: shape (turbines, rows, elements): a row for each field of the model's `Source` and, for a gradient, one for
    its derivative with respect to the effective speed.
    """

    totals: Floats
    speeds: Floats
    power: Floats
    thrust: Floats
    sources: Floats


class Known(NamedTuple):
    """Earlier results: speeds (m/s), shape (turbines, elements), and sources, as in `State`."""

    speeds: Floats
    sources: Floats


class Scratch(NamedTuple):
    """Scratch arrays of the loops; the last axis has ELEMENTS.

    gathered: the inputs of pairs, shape (rows, elements): the fields of `Rotor`, then of the model's `Source` and, for
    a gradient, the derivatives of the latter. wakes: the fields of its `Wake`, shape (rows, elements). spare: one
    number for each element, such as diameters (m).
    """

    gathered: Floats
    wakes: Floats
    spare: Floats


class Solved(NamedTuple):
    """A batch, its pairs, the state of all its turbines, and scratch arrays for further steps."""

    batch: Batch
    pairs: Pairs
    state: State
    scratch: Scratch


class Slopes(NamedTuple):
    """Derivatives of the contribution of each pair, shape (pairs, lanes), and those of power and thrust with respect to
    the effective speed, shape (turbines, elements).

    source_speed: with respect to the effective speed at the source; free_speed, turbulence, density: with respect to
    these quantities at the source, at constant effective speed; height: with respect to the height of the target above
    the source. They have no pairs if they are not needed.
    """

    downwind: Floats
    crosswind: Floats
    source_speed: Floats
    power: Floats
    thrust: Floats
    free_speed: Floats
    turbulence: Floats
    density: Floats
    height: Floats


class Adjoints(NamedTuple):
    """Derivatives of the weighted power of the counted turbines with respect to the free wind at each turbine.

    speed (MW per m/s), weight (MW), turbulence (MW), density (MW): shape (turbines, elements); empty if not needed.
    ground: with respect to the elevation of the terrain, MW/m, shape (turbines,); stretch: with respect to that of
    `Places`, MW, shape (turbines, turbines). Empty if not needed.
    """

    speed: Floats
    weight: Floats
    turbulence: Floats
    density: Floats
    ground: Floats
    stretch: Floats


class Field(NamedTuple):
    """Quantities on a grid. x, y, height: of its points, m, increasing.

    The others have the shape (y, x, heights, n); axes of length 1 do not vary, and n = 0 if the quantity is not given.
    n is the number of sectors, or 1. frequency: of sectors; weibull_a (m/s), weibull_k; cumulated: probability of a
    table by sector, below each edge of its bins, n = sectors x (bins + 1); speed_up; turbulence: intensity; density: of
    the air, relative to that of the power curves. series_speed (m/s), series_turbulence: n = steps. elevation: of the
    terrain, m, n = 1.
    """

    x: Floats
    y: Floats
    height: Floats
    frequency: Floats
    weibull_a: Floats
    weibull_k: Floats
    cumulated: Floats
    speed_up: Floats
    turbulence: Floats
    density: Floats
    series_speed: Floats
    series_turbulence: Floats
    elevation: Floats


class Rows(NamedTuple):
    """Wind conditions of a field, by direction or step.

    sector, next_sector, share: the sectors around a direction, and the position between them; smooth_...: the same for
    turbulence and density, which are always linear between sectors. step: index into series. repeats: 1 if the weights
    are those of the direction before. Shape (directions,).
    factor: of the weights; speed: at the reference, m/s; turbulence_factor. Shape (directions, lanes).
    edges: of the bins of speed, shape (directions, lanes + 1): logarithms of m/s, or positions in a table.
    bins: of a table. local_bins: True if the bins move with the local speed. shear, shear_height (m), shear_value:
    kind, reference height, and exponent or roughness length (m) of each direction.
    """

    sector: Integers
    next_sector: Integers
    share: Floats
    smooth_sector: Integers
    smooth_next: Integers
    smooth_share: Floats
    step: Integers
    repeats: npt.NDArray[np.uint8]
    factor: Floats
    speed: Floats
    turbulence_factor: Floats
    edges: Floats
    bins: int
    local_bins: bool
    shear: int
    shear_height: float
    shear_value: Floats


class Cell(NamedTuple):
    """A cell of the grid of a field: indices of its lowest corner, the position in it (0 .. 1), and 1 / its size."""

    row: int
    column: int
    level: int
    east: float
    north: float
    up: float
    per_x: float
    per_y: float


class SectorValues(NamedTuple):
    """Quantities of a field at one place, shape (n,); or derivatives with respect to them."""

    frequency: Floats
    weibull_a: Floats
    weibull_k: Floats
    cumulated: Floats
    speed_up: Floats
    turbulence: Floats
    density: Floats


def kernel_array(values: npt.ArrayLike) -> Floats:
    """Return a writable C array. Kernels would be compiled once more for arrays that cannot be written."""
    return np.require(values, np.float64, ["C", "W"])


def curves_of(curves: Sequence["Curve"]) -> Curves:
    """Return the curves of several turbine types in the form that the kernels need."""
    rows = np.r_[0, np.cumsum([len(curve.ends) for curve in curves])]
    first_piece = np.empty((len(curves), CURVE_BINS), dtype=np.int64)
    origin = np.empty(len(curves))
    scale = np.empty(len(curves))
    for i, curve in enumerate(curves):
        knots = curve.ends[:-1]
        origin[i] = knots[0]
        scale[i] = CURVE_BINS / max(knots[-1] - knots[0], 1.0)
        # slightly too low is fine: the search only goes up
        lowest = origin[i] + (np.arange(CURVE_BINS) - 1e-6) / scale[i]
        first_piece[i] = rows[i] + np.searchsorted(curve.ends, lowest, side="right")
        first_piece[i, 0] = rows[i]
    return Curves(
        np.concatenate([curve.ends for curve in curves]),
        np.concatenate([curve.coefficients for curve in curves]),
        first_piece,
        origin,
        scale,
    )
