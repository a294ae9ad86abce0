"""What goes into the kernels of layouts: tuples of arrays. Importing this does not import numba."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Boundary(NamedTuple):
    """An area as parts, each of them all points within a margin of some edges. Metres from the area's origin.

    start_x, start_y, end_x, end_y: edges, shape (edges,). Those of a polygon have it on their left. A line has, at its
    end, one more edge of no length; a point is such an edge alone. inverse_square: 1 / length ** 2, 0 if of none.
    first: where the edges of each part begin, shape (parts + 1,). closed: 1 for a polygon, whose inside belongs to it,
    else 0, shape (parts,). margin: how far a part goes beyond its edges (the radius of a disc, the buffer of a zone),
    shape (parts,). regions: so many parts, the first ones, are where turbines may stand; the others are excluded.
    """

    start_x: Floats
    start_y: Floats
    end_x: Floats
    end_y: Floats
    inverse_square: Floats
    first: Integers
    closed: Integers
    margin: Floats
    regions: int
