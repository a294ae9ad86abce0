"""Arguments of the GPU's loops of a descent: tuples of arrays. Importing this module does not import numba."""

from typing import Any, NamedTuple

from leeward.layout.kernels.data import Boundary

FIRST_STEP, LAST_SHARE, PENALTY, FIRST_MOMENT, SECOND_MOMENT, STEPS, STEP = range(7)  # columns of `settings`
GRADIENT, AEP = 0, 1  # columns of `facts`


class Constraints(NamedTuple):
    """The constraints of several problems.

    boundary: of all areas one after the other; part: the first part of each area in it; regions: as in `Boundary`;
    shape (problems + 1,) and (problems,). min_distance: m, shape (problems, turbines). problem: of each layout.
    """

    boundary: Boundary
    part: Any
    regions: Any
    min_distance: Any
    problem: Any


class Stakes(NamedTuple):
    """The energy at stake in the conditions of a site, for several problems; see `roses.Stakes`.

    order, by_direction: rows by direction and their energy, shape (problems, directions); within: cumulated shares in
    each row, ratio: weight relative to the chance of being drawn; shape (problems, directions, speeds).
    cosine, sine: shape (directions,); speed, turbulence_intensity: shape (directions, speeds).
    """

    order: Any
    by_direction: Any
    within: Any
    ratio: Any
    cosine: Any
    sine: Any
    speed: Any
    turbulence_intensity: Any
