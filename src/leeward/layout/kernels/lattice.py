"""Find the points of a lattice in an area, and the widest lattice with enough of them."""

import math

from leeward.layout.kernels.data import Boundary, Floats
from leeward.layout.kernels.distance import signed_distance
from leeward.wind.kernels.compile import formula


@formula
def is_in_a_box(px: float, py: float, boxes: Floats) -> bool:
    """Return whether a point is in a bounding box: a cheap test if regions are far apart."""
    for box in range(len(boxes)):
        if boxes[box, 0] <= px <= boxes[box, 2] and boxes[box, 1] <= py <= boxes[box, 3]:
            return True
    return False


@formula
def lattice_points(rows: Floats, offset: Floats, boxes: Floats, boundary: Boundary, x: Floats, y: Floats) -> int:
    """Return the number of points offset + i * rows[0] + j * rows[1] in the area; fill x and y with as many as fit.

    rows: basis vectors (m), shape (2, 2), not parallel. boxes: least x and y, greatest x and y of the area's regions,
    shape (regions, 4). All coordinates are metres from the area's origin.
    """
    left, low, right, high = math.inf, math.inf, -math.inf, -math.inf
    for box in range(len(boxes)):
        left, low = min(left, boxes[box, 0]), min(low, boxes[box, 1])
        right, high = max(right, boxes[box, 2]), max(high, boxes[box, 3])
    cell = rows[0, 0] * rows[1, 1] - rows[0, 1] * rows[1, 0]
    first, last = math.inf, -math.inf
    for corner_x in (left, right):
        for corner_y in (low, high):
            i = ((corner_x - offset[0]) * rows[1, 1] - (corner_y - offset[1]) * rows[1, 0]) / cell
            first, last = min(first, i), max(last, i)
    count = 0
    for i in range(math.ceil(first), math.floor(last) + 1):
        start_x, start_y = offset[0] + i * rows[0, 0], offset[1] + i * rows[0, 1]
        # the range of j within the bounds, by x and by y
        lowest, highest = -math.inf, math.inf
        for start, step, least, greatest in (
            (start_x, rows[1, 0], left, right),
            (start_y, rows[1, 1], low, high),
        ):
            if step != 0.0:
                one, other = (least - start) / step, (greatest - start) / step
                lowest, highest = max(lowest, min(one, other)), min(highest, max(one, other))
            elif start < least or start > greatest:
                highest = -math.inf
        if highest < lowest:
            continue
        for j in range(math.ceil(lowest), math.floor(highest) + 1):
            px, py = start_x + j * rows[1, 0], start_y + j * rows[1, 1]
            if is_in_a_box(px, py, boxes) and signed_distance(px, py, boundary)[0] >= 0.0:
                if count < len(x):
                    x[count], y[count] = px, py
                count += 1
    return count


def widest_lattice(
    rows: Floats,
    offset: Floats,
    boxes: Floats,
    boundary: Boundary,
    search: tuple[float, float, int, int],
    x: Floats,
    y: Floats,
) -> int:
    """Find the widest lattice with enough points in the area; fill x and y with as many as fit. Return their number.

    rows: basis vectors, to be multiplied by a factor. offset: of a point, in these vectors. search: the least and the
    greatest factor, how often to halve the interval between them, and the number of points that are enough. If the
    least factor has too few points, so has the result.
    """
    narrow, wide, halvings, enough = search
    for _ in range(halvings):
        middle = math.sqrt(narrow * wide)
        wider = rows * middle
        start = offset[0] * wider[0] + offset[1] * wider[1]
        if lattice_points(wider, start, boxes, boundary, x[:0], y[:0]) >= enough:
            narrow = middle
        else:
            wide = middle
    widest = rows * narrow
    return lattice_points(widest, offset[0] * widest[0] + offset[1] * widest[1], boxes, boundary, x, y)
