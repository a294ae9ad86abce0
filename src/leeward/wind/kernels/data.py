"""What goes into the kernels and through them: tuples of arrays. Importing this does not import numba."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from leeward.wind.turbine import Curve

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.uint32]  # without a sign: indexing then needs no check for a negative one

CURVE_BINS = 4096
ELEMENTS = 512  # directions x speeds in a batch: enough for long vector loops, few enough for the nearest cache
REACH_BINS = 512


class Kernels(NamedTuple):
    """The loops that Python calls, for one wake model. The functions that `build` calls say what they take."""

    reaches: Callable[..., Any]
    energy: Callable[..., Any]
    gradient: Callable[..., Any]
    points: Callable[..., Any]
    marginal: Callable[..., Any]
    gains: Callable[..., Any]
    flow: Callable[..., Any]


class Places(NamedTuple):
    """Where turbines stand (m, east and north of any point near by), and of which type they are; shape (turbines,)."""

    x: Floats
    y: Floats
    kind: Indices


class Wind(NamedTuple):
    """Wind conditions: cosine and sine of the angle the wind comes from, anticlockwise from east, shape (directions,);
    speed (m/s), weight and turbulence intensity, shape (directions, lanes).
    """

    cosine: Floats
    sine: Floats
    speed: Floats
    weight: Floats
    turbulence_intensity: Floats


class Batch(NamedTuple):
    """Wind conditions, and the turbines as seen in each direction, sorted downwind.

    downwind, crosswind: m, shape (directions, turbines); turbine, kind: index and type, same shape;
    lateral: the ranks in order of crosswind, same shape.
    speed, weight, turbulence_intensity: of all lanes, direction after direction, shape (elements,), at most ELEMENTS.
    cosine, sine: of the angle the wind comes from, anticlockwise from east, shape (directions,).
    """

    downwind: Floats
    crosswind: Floats
    turbine: Indices
    kind: Indices
    lateral: Indices
    speed: Floats
    weight: Floats
    turbulence_intensity: Floats
    cosine: Floats
    sine: Floats


class Curves(NamedTuple):
    """Pieces of all types, shape (pieces,) and (pieces, 9); bins, shape (types, CURVE_BINS), their origin and scale."""

    ends: npt.NDArray[np.float64]
    pieces: npt.NDArray[np.float64]
    first_piece: npt.NDArray[np.int64]
    bin_origin: npt.NDArray[np.float64]
    bins_per_speed: npt.NDArray[np.float64]


class Kinds(NamedTuple):
    """What turbines of each type are like; shape (types,)."""

    diameter: Floats
    hub_height: Floats
    thrust_low: Floats
    thrust_high: Floats
    curves: Curves


class Model(NamedTuple):
    """Options of the wake model, as `leeward.wind.wake_models.base` describes them, and how far its wakes reach.

    reaches: crosswind distance squared, shape (types, types, REACH_BINS), over downwind distances 0 .. longest;
    widest: the root of the largest of them.
    """

    parameters: tuple[float, ...]
    table: Floats
    squared: bool
    reaches: Floats
    longest: float
    widest: float


class Lateral(NamedTuple):
    """The turbines sorted by crosswind in each direction; shape (directions, turbines).

    downwind, crosswind, kind: in that order. begin, end: by rank, between which places the turbines stand that are
    close enough, measured crosswind, to matter.
    """

    downwind: Floats
    crosswind: Floats
    kind: Indices
    begin: Indices
    end: Indices


class Place(NamedTuple):
    """A place in one wind direction: downwind and crosswind coordinates (m), and the type of the turbine there.

    rotor: 1.0 to average over its rotor, 0.0 for the wind speed at its hub.
    """

    downwind: float
    crosswind: float
    kind: int
    rotor: float


class Pairs(NamedTuple):
    """The wakes that count, by rank of the turbine they reach. Shape (pairs,); `first` has shape (turbines + 1,).

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
    """What is known of the turbines of each rank: m/s, MW; shape (turbines, elements).

    sources: what the wakes depend on, shape (turbines, rows, elements): a row for each field of the model's `Source`,
    and, for a gradient, as many for its derivatives with respect to the effective speed.
    """

    totals: Floats
    speeds: Floats
    power: Floats
    thrust: Floats
    sources: Floats


class Known(NamedTuple):
    """What was worked out of turbines before: speeds (m/s), shape (turbines, elements), and sources, as in `State`."""

    speeds: Floats
    sources: Floats


class Scratch(NamedTuple):
    """Room for what the loops work on at a time; the last axis has ELEMENTS.

    gathered: what pairs depend on side by side, shape (rows, elements): the fields of `Rotor`, then of the model's
    `Source`, and, for a gradient, the derivatives of the latter. wakes: the fields of its `Wake`, shape (rows,
    elements). diameters: of the turbines of one rank, m.
    """

    gathered: Floats
    wakes: Floats
    diameters: Floats


class Solved(NamedTuple):
    """A batch, its pairs and the state of all turbines in it, and room for further steps."""

    batch: Batch
    pairs: Pairs
    state: State
    scratch: Scratch


class Slopes(NamedTuple):
    """Derivatives of the contribution of each pair and lane, shape (pairs, lanes), and those of power and thrust with
    respect to the effective speed, shape (turbines, elements).
    """

    downwind: Floats
    crosswind: Floats
    source_speed: Floats
    power: Floats
    thrust: Floats


def curves_of(curves: Sequence["Curve"]) -> Curves:
    """The curves of several turbine types, in the form that the kernels want."""
    rows = np.r_[0, np.cumsum([len(curve.ends) for curve in curves])]
    first_piece = np.empty((len(curves), CURVE_BINS), dtype=np.int64)
    origin = np.empty(len(curves))
    scale = np.empty(len(curves))
    for i, curve in enumerate(curves):
        knots = curve.ends[:-1]
        origin[i] = knots[0]
        scale[i] = CURVE_BINS / max(knots[-1] - knots[0], 1.0)
        # a little early rather than late: the search only goes up
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
