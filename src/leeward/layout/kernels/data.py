"""Arguments of the layout kernels: tuples of arrays. Importing this does not import numba."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Boundary(NamedTuple):
    """An area as parts, each the set of points within a margin of some edges. Metres from the area's origin.

    start_x, start_y, end_x, end_y: edges, shape (edges,). A polygon lies to the left of its edges. A line ends with an
    extra edge of length 0; a point is one such edge. inverse_square: 1 / length ** 2, or 0 for length 0. first: index
    of the first edge of each part, shape (parts + 1,). closed: 1 for a polygon, which includes its inside, else 0,
    shape (parts,). margin: how far a part extends beyond its edges (the radius of a disc, the buffer of a zone), shape
    (parts,). regions: the number of parts, the first ones, in which turbines may stand; the others are excluded.
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
