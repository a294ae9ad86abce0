"""Signed distance from the boundary of an area: positive where turbines may stand, 0 on the boundary.

The distance of a polygon is that of the nearest edge or corner. A point is inside if a ray to the east crosses the
edges an odd number of times. The derivative is a unit vector; on an edge it is the inward normal, so that it does not
flip where rounding decides on which side a point lies.
"""

import math

from leeward.layout.kernels.data import Boundary, Floats
from leeward.wind.kernels.compile import formula


@formula
def nearest_edge(px: float, py: float, boundary: Boundary, part: int) -> tuple[int, bool]:
    """Return the edge of a part nearest to a point, and whether the edges enclose the point.

    An edge includes its start and excludes its end, which is the start of the next one.
    """
    nearest = boundary.first[part]
    least = math.inf
    inside = False
    for e in range(boundary.first[part], boundary.first[part + 1]):
        along_x = boundary.end_x[e] - boundary.start_x[e]
        along_y = boundary.end_y[e] - boundary.start_y[e]
        from_x = px - boundary.start_x[e]
        from_y = py - boundary.start_y[e]
        cross = along_x * from_y - along_y * from_x
        share = (along_x * from_x + along_y * from_y) * boundary.inverse_square[e]
        # the same comparison for the end of one edge and the start of the next: no ray passes between them
        upwards = py < boundary.end_y[e]
        if (py < boundary.start_y[e]) != upwards and (cross > 0.0) == upwards:
            inside = not inside
        if share < 1.0:
            if share > 0.0:
                square = cross * cross * boundary.inverse_square[e]
            else:
                square = from_x * from_x + from_y * from_y
            if square < least:
                least = square
                nearest = e
    return nearest, inside and boundary.closed[part] == 1


@formula
def part_distance(px: float, py: float, boundary: Boundary, part: int) -> tuple[float, float, float]:
    """Return how far a point is inside a part (m, negative outside), and the derivatives by x and y."""
    e, inside = nearest_edge(px, py, boundary, part)
    sign = 1.0 if inside else -1.0
    along_x = boundary.end_x[e] - boundary.start_x[e]
    along_y = boundary.end_y[e] - boundary.start_y[e]
    from_x = px - boundary.start_x[e]
    from_y = py - boundary.start_y[e]
    inverse = boundary.inverse_square[e]
    scale = math.sqrt(inverse)
    left_x = -along_y * scale
    left_y = along_x * scale
    if (along_x * from_x + along_y * from_y) * inverse > 0.0:
        cross = (along_x * from_y - along_y * from_x) * scale
        away = abs(cross)
        if boundary.closed[part] == 0 and cross > 0.0:
            left_x = -left_x
            left_y = -left_y
    else:
        away = math.sqrt(from_x * from_x + from_y * from_y)
        if away > 0.0:
            left_x = sign * from_x / away
            left_y = sign * from_y / away
        elif inverse == 0.0:  # at the centre of a disc any direction will do
            left_x = 1.0
            left_y = 0.0
    return sign * away + boundary.margin[part], left_x, left_y


@formula
def signed_distance(px: float, py: float, boundary: Boundary) -> tuple[float, float, float]:
    """Return the signed distance of one point (m), and its derivatives by x and y.

    px, py: metres from the area's origin. It is the largest over the regions, limited by the excluded parts.
    """
    distance, by_x, by_y = part_distance(px, py, boundary, 0)
    for part in range(1, boundary.regions):
        inside, inside_by_x, inside_by_y = part_distance(px, py, boundary, part)
        if inside > distance:
            distance, by_x, by_y = inside, inside_by_x, inside_by_y
    for part in range(boundary.regions, len(boundary.margin)):
        inside, inside_by_x, inside_by_y = part_distance(px, py, boundary, part)
        if -inside < distance:
            distance, by_x, by_y = -inside, -inside_by_x, -inside_by_y
    return distance, by_x, by_y


def signed_distances(x: Floats, y: Floats, boundary: Boundary, distance: Floats, by_x: Floats, by_y: Floats) -> None:
    """Fill `signed_distance` of many points; all arrays have the shape (points,)."""
    for i in range(len(x)):
        distance[i], by_x[i], by_y[i] = signed_distance(x[i], y[i], boundary)
