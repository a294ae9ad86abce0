"""All farms on one map."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import shapely

from leeward.capacity import yield_words
from leeward.layout.labels import apart, label_place
from leeward.pages.charts.axes import figure, text
from leeward.pages.charts.plan import Frame, bounds_of, near_points, neighbour_ring, north_arrow, scale_bar
from leeward.pages.html import Markup, tag
from leeward.store import Key, Result
from leeward.watch import FarmShape

Array = npt.NDArray[np.float64]
SIDE = 760.0
RING = 2.4  # radius of a neighbour, pixels
LETTER, LINE = 9.0, 12.0  # how wide and how high a digit of a name is, pixels
BELOW = 5.0  # from the middle of a name to its foot, pixels
ROOMY = 4 * LINE  # a side of an area in which a name has a choice, pixels


def neighbours_near(shapes: Sequence[FarmShape], neighbours: Array) -> Array:
    """Those that a map of these areas shows, of all that stand already, shape (2, neighbours); a row each."""
    return near_points(bounds_of(shapes), neighbours)


def farm_map(
    shapes: Sequence[FarmShape],
    best: Mapping[int, Result],
    link: Callable[[Key], str | None],
    others: Array,
    installed: Mapping[int, float],
) -> Markup:
    """Areas with their names, and in each the layout that is best there, by farm_idx. others: `neighbours_near`.

    installed: MW of these layouts, by farm_idx, as far as it is known.
    """
    frame = Frame(np.concatenate([bounds_of(shapes), others]), margin=20.0, side=SIDE)
    places = [_place(frame, shape, best.get(shape.farm_idx)) for shape in shapes]
    named = set(apart(places, [LETTER * len(str(shape.farm_idx)) for shape in shapes], LINE))
    farms = [
        _farm(frame, shape, best.get(shape.farm_idx), link, places[i] if i in named else None, installed)
        for i, shape in enumerate(shapes)
    ]
    return figure(
        round(frame.width, 1),
        round(frame.height + 40, 1),
        f"map of {len(shapes)} farm areas and their best layouts",
        farms,
        [neighbour_ring(frame, point, RING) for point in others.tolist()],
        scale_bar(frame, frame.height + 14),
        north_arrow(frame.width - 16, frame.height + 4),
        kind="map",
        role="group",
    )


def _place(frame: Frame, shape: FarmShape, result: Result | None) -> tuple[float, float]:
    """The middle of a name, pixels."""
    area = shapely.MultiPolygon([(outer, holes) for outer, *holes in shape.polygons])
    left, low, right, high = area.bounds
    if frame.scale * max(right - left, high - low) < ROOMY:  # maps of very many farms: looking takes a millisecond
        inside = area.representative_point()
        return frame.place(inside.x, inside.y)
    return frame.place(*label_place(area, *(((), ()) if result is None else result.layout)))


def _farm(
    frame: Frame,
    shape: FarmShape,
    result: Result | None,
    link: Callable[[Key], str | None],
    place: tuple[float, float] | None,
    installed: Mapping[int, float],
) -> Markup:
    """place: the middle of its name; None where there is no room for one."""
    outline = frame.outline(shape.polygons)
    name = None
    if place is not None:
        name = text(place[0], place[1] + BELOW, f"{shape.farm_idx}", anchor="middle", kind="place")
    if result is None:
        words = f"farm {shape.farm_idx} {shape.name}: no layout yet"
        return tag("g", {"class": "farm"}, tag("title", None, words), outline, name)
    turbines = [
        tag("circle", {"cx": place[0], "cy": place[1], "r": 1.6})
        for place in (frame.place(*point) for point in result.layout.T.tolist())
    ]
    words = (
        f"farm {shape.farm_idx} {shape.name}: {result.key}, {result.n_turbines} turbines"
        f"{'' if result.aep != result.aep else f', {result.aep:.1f} GWh'}"
    )
    power = yield_words(result.aep, installed.get(shape.farm_idx))
    words += f", {power}" if power else ""
    drawn = tag("g", {"class": "farm"}, tag("title", None, words), outline, turbines, name)
    address = link(result.key)
    return drawn if address is None else tag("a", {"href": address, "aria-label": words}, drawn)
