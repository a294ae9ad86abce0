"""What the tests of the optimiser share: areas of many shapes, and a check of layouts that leeward has no part in."""

import numpy as np
import shapely

from leeward.campaign import builtin
from leeward.layout import Area
from leeward.layout.problem import TOLERANCE_M

FARMS = builtin._DATA / "farms.geojson"
LITTLE = 8_000_000  # pair evaluations: a descent or two of a small farm


def square(side, **options):
    return Area.from_arrays([0, side, side, 0], [0, 0, side, side], **options)


SHAPES = {
    "convex": square(6000),
    "concave": Area.from_arrays([0, 8000, 8000, 2500, 2500, 0], [0, 0, 2500, 2500, 8000, 8000]),
    "regions": Area.union(
        [square(3000), Area.from_arrays([5000, 8000, 6500], [5000, 5200, 8500]), Area.circle(7000, 1000, 1200)]
    ),
    "hole": Area.from_arrays(
        [0, 7000, 7000, 0], [0, 0, 7000, 7000], holes=[([3000, 4000, 4000, 3000], [3000, 3000, 4000, 4000])]
    ),
    "zones": square(7000).without(
        [shapely.Point(2000, 5000), shapely.LineString([(0, 0), (7000, 3000)])], buffer_m=400
    ),
    "circle": Area.circle(700_000, 6_200_000, 3500),
}


def assert_feasible(problem, x, y):
    """Measured with shapely and numpy alone."""
    assert len(x) == len(y) == problem.n_turbines
    points = shapely.points(x, y)
    inside = [shapely.distance(part.geometry, points) <= part.margin + TOLERANCE_M for part in problem.area.parts]
    assert np.any(inside, axis=0).all()
    for zone in problem.area.zones:
        assert (shapely.distance(zone.geometry, points) >= zone.margin - TOLERANCE_M).all()
    room = problem.min_distances_m
    fixed = problem.farm.neighbours
    everyone_x = np.r_[x, [] if fixed is None else fixed.x]
    everyone_y = np.r_[y, [] if fixed is None else fixed.y]
    for i in range(len(x)):
        for j in range(i + 1, len(everyone_x)):
            apart = np.hypot(x[i] - everyone_x[j], y[i] - everyone_y[j])
            assert apart >= 0.5 * (room[i] + room[j]) - TOLERANCE_M
