"""All farms on one map."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from leeward.pages.charts.axes import figure, text
from leeward.pages.charts.plan import Frame, bounds_of, north_arrow, scale_bar
from leeward.pages.html import Markup, tag
from leeward.store.keys import Key
from leeward.store.schema import Result
from leeward.watch.drawings import FarmShape

SIDE = 760.0


def farm_map(
    shapes: Sequence[FarmShape], best: Mapping[int, Result], link: Callable[[Key], str | None], side: float = SIDE
) -> Markup:
    """Areas with their names, and in each the layout that is best there, by farm_idx."""
    frame = Frame(bounds_of(shapes), margin=20.0, side=side)
    farms = [_farm(frame, shape, best.get(shape.farm_idx), link) for shape in shapes]
    return figure(
        round(frame.width, 1),
        round(frame.height + 40, 1),
        f"map of {len(shapes)} farm areas and their best layouts",
        farms,
        scale_bar(frame, frame.height + 14),
        north_arrow(frame.width - 16, frame.height + 4),
        kind="map",
        role="group",
    )


def _farm(frame: Frame, shape: FarmShape, result: Result | None, link: Callable[[Key], str | None]) -> Markup:
    outline = frame.outline(shape.polygons)
    middle = frame.place(*np.concatenate([polygon[0] for polygon in shape.polygons]).mean(axis=0).tolist())
    name = text(*middle, f"{shape.farm_idx}", anchor="middle", kind="place")
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
    drawn = tag("g", {"class": "farm"}, tag("title", None, words), outline, turbines, name)
    address = link(result.key)
    return drawn if address is None else tag("a", {"href": address, "aria-label": words}, drawn)
