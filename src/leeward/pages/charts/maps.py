"""Maps of one layout in its area, and of all farms."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import shapely

from leeward.capacity import yield_words
from leeward.charts import Array, Scale, apart, colour, label_place, near
from leeward.pages.charts.axes import figure, path, text
from leeward.pages.html import Attribute, Markup, tag
from leeward.store import Key, Result
from leeward.watch import FarmShape, LayoutView, Rings

Place = tuple[float, float]  # pixels from the left and from the top

SIDE = 640.0  # pixels of the longer side of a plan
MAP_SIDE = 760.0  # of a map of all farms
LEAST_M = 1000.0  # smallest extent of a map: a single turbine has none
NARROWEST = 120.0  # pixels: the scale bar and the arrow below the plan need this much
SMALLEST = 4.0  # radius of a turbine, pixels: smaller rotors are drawn this large
RING = 2.4  # radius of a neighbour on the map of all farms, pixels
LETTER, LINE = 9.0, 12.0  # width and height of a digit of a label, pixels
BELOW = 5.0  # from the middle of a label to its baseline, pixels
ROOMY = 4 * LINE  # side of an area in which the place of a label matters, pixels
LENGTHS = [times * 10.0**power for power in range(7) for times in (1, 2, 5)]  # of scale bars, m


class Frame:
    """The transformation from map to drawing: north up, one scale."""

    def __init__(self, points: Array, margin: float = 16.0, side: float = SIDE) -> None:
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        half = np.maximum(points.max(axis=0) - middle, LEAST_M / 2)
        low, high = middle - half, middle + half
        longer = float((high - low).max())
        self.scale = (side - 2 * margin) / longer  # pixels per metre
        self._left, self._top, self._margin = float(low[0]), float(high[1]), margin
        self.width = max(2 * margin + self.scale * float(high[0] - low[0]), NARROWEST)
        self._beside = (self.width - self.scale * float(high[0] - low[0])) / 2
        self.height = 2 * margin + self.scale * float(high[1] - low[1])

    def place(self, x: float, y: float) -> Place:
        """Return pixels from the left and from the top."""
        left = self._beside + (x - self._left) * self.scale
        return round(left, 2), round(self._margin + (self._top - y) * self.scale, 2)

    def outline(self, polygons: Sequence[Rings]) -> Markup:
        """Return the area, with holes left blank."""
        rings = []
        for ring in (ring for polygon in polygons for ring in polygon):
            points = (self.place(*point) for point in ring.tolist())
            rings.append("M" + "L".join(f"{x:g} {y:g}" for x, y in points) + "Z")
        return tag("path", {"d": "".join(rings), "class": "area", "fill-rule": "evenodd"})

    def neighbours(self, points: Array, radius: float) -> list[Markup]:
        """Return a ring for each existing turbine; points: shape (neighbours, 2). radius: pixels."""
        places = (self.place(*point) for point in points.tolist())
        words = tag("title", None, "existing turbine")
        return [tag("circle", {"cx": x, "cy": y, "r": radius, "class": "neighbour"}, words) for x, y in places]

    def foot(self, rule: float, arrow: float, aside: float) -> list[Markup]:
        """Return a scale bar, about a quarter of the width, and a north arrow. rule, arrow: distance below the map."""
        wanted = 0.25 * self.width / self.scale
        metres = max(step for step in LENGTHS if step <= max(wanted, 1.0))
        label = f"{metres / 1000:g} km" if metres >= 1000 else f"{metres:g} m"
        right, y = 10 + round(metres * self.scale, 2), self.height + rule
        x, top = self.width - aside, self.height + arrow
        return [
            path(f"M10 {y - 4:g}V{y:g}H{right:g}V{y - 4:g}", "rule"),
            text(right + 6, y + 3, label),
            path(f"M{x:g} {top:g}l4 14l-4 -3l-4 3Z", "arrow"),
            text(x, top + 26, "N", anchor="middle"),
        ]


# --- one layout ------------------------------------------------------------------------------------------------------


def layout_plan(view: LayoutView, losses: tuple[float, float] | None = None, side: float = SIDE) -> Markup:
    """Return turbines to scale, coloured by wake loss over the range `losses`, and hidden minimum-spacing circles."""
    others = near_neighbours(view)
    frame = Frame(np.concatenate([_extent(view), others]), side=side)
    size = max(SMALLEST, view.result.diameter / 2 * frame.scale) if view.result.diameter > 0 else SMALLEST
    places = [frame.place(*point) for point in view.result.layout.T.tolist()]
    words = f"layout {view.result.key}: {len(places)} turbines{f' in {view.farm}' if view.farm else ''}"
    return figure(
        round(frame.width, 1),
        round(frame.height + 46, 1),
        words,
        frame.outline(view.shape.polygons if view.shape else ()),
        _spacing(view, places, frame.scale),
        frame.neighbours(others, SMALLEST),
        [_turbine(view, i, place, size, losses) for i, place in enumerate(places)],
        frame.foot(16, 10, 14),
        kind="plan",
    )


def near_neighbours(view: LayoutView) -> Array:
    """Return the neighbours that are drawn with the layout; shape (neighbours, 2)."""
    return _near_points(_extent(view), view.neighbours)


def _near_points(shown: Array, neighbours: Array) -> Array:
    """Return the neighbours, shape (2, neighbours), that are near these points, shape (points, 2); a row each."""
    return np.column_stack(near((*shown.min(axis=0), *shown.max(axis=0)), *neighbours))


def _extent(view: LayoutView) -> Array:
    """Return all corners of the area and all turbines; shape (points, 2)."""
    polygons = view.shape.polygons if view.shape else ()
    return np.concatenate([*(ring for polygon in polygons for ring in polygon), view.result.layout.T])


def loss_scale(losses: tuple[float, float]) -> Markup:
    """Return the colour scale."""
    low, high = losses
    scale = Scale(low, high, 10, 230)
    digits = 1 if high - low >= 0.004 else 3  # so that the three numbers differ
    bars = [
        tag("rect", {"x": 10 + 5 * i, "y": 4, "width": 5.4, "height": 10, "fill": colour(i / 43)}) for i in range(44)
    ]
    ends = ((low, "start"), ((low + high) / 2, "middle"), (high, "end"))
    ticks = [text(scale(value), 27, f"{value:.{digits}%}", anchor=anchor) for value, anchor in ends]
    words = f"wake loss of a turbine, from {low:.{digits}%} (light) to {high:.{digits}%} (dark)"
    return figure(290, 32, words, bars, ticks, text(236, 13, "wake loss"), kind="key")


def _turbine(view: LayoutView, number: int, place: Place, size: float, losses: tuple[float, float] | None) -> Markup:
    x, y = view.result.layout[:, number]
    words = f"turbine {number}: {x:.1f} m east, {y:.1f} m north"
    fill = None
    if view.wake_loss is not None and losses is not None:
        loss = float(view.wake_loss[number])
        fill = colour(Scale(*losses, 0.0, 1.0).share(loss))
        words += f", wake loss {loss:z.2%}"
    circle: dict[str, Attribute] = {"cx": place[0], "cy": place[1], "r": round(size, 2), "class": "turbine"}
    return tag("circle", {**circle, "fill": fill}, tag("title", None, words))


def _spacing(view: LayoutView, places: Sequence[Place], scale: float) -> Markup | None:
    """Return circles that touch where two turbines are at the minimum spacing."""
    if not view.spacing_m:
        return None
    radius = round(view.spacing_m / 2 * scale, 2)
    return tag("g", {"class": "spacing"}, [tag("circle", {"cx": x, "cy": y, "r": radius}) for x, y in places])


# --- all farms -------------------------------------------------------------------------------------------------------


def neighbours_near(shapes: Sequence[FarmShape], neighbours: Array) -> Array:
    """Return the existing turbines, shape (2, neighbours), that a map of these areas shows; a row each."""
    return _near_points(bounds_of(shapes), neighbours)


def bounds_of(shapes: Sequence[FarmShape]) -> Array:
    """Return all points of these areas."""
    rings = [ring for shape in shapes for polygon in shape.polygons for ring in polygon]
    return np.concatenate(rings) if rings else np.zeros((1, 2))


def farm_map(
    shapes: Sequence[FarmShape],
    best: Mapping[int, Result],
    link: Callable[[Key], str | None],
    others: Array,
    installed: Mapping[int, float],
) -> Markup:
    """Return a map of the areas with labels and best layouts, by farm_idx. others: from `neighbours_near`.

    installed: MW of these layouts, by farm_idx, if known.
    """
    frame = Frame(np.concatenate([bounds_of(shapes), others]), margin=20.0, side=MAP_SIDE)
    places = [_place(frame, shape, best.get(shape.farm_idx)) for shape in shapes]
    named = set(apart(places, [LETTER * len(str(shape.farm_idx)) for shape in shapes], LINE))
    farms = []
    for i, shape in enumerate(shapes):
        result = best.get(shape.farm_idx)
        words = _words(shape, result, installed.get(shape.farm_idx))
        drawn = _farm(frame, shape, result, words, places[i] if i in named else None)
        address = None if result is None else link(result.key)
        farms.append(drawn if address is None else tag("a", {"href": address, "aria-label": words}, drawn))
    return figure(
        round(frame.width, 1),
        round(frame.height + 40, 1),
        f"map of {len(shapes)} farm areas and their best layouts",
        farms,
        frame.neighbours(others, RING),
        frame.foot(14, 4, 16),
        kind="map",
        role="group",
    )


def _place(frame: Frame, shape: FarmShape, result: Result | None) -> Place:
    """Return the middle of a label."""
    area = shapely.MultiPolygon([(outer, holes) for outer, *holes in shape.polygons])
    left, low, right, high = area.bounds
    if frame.scale * max(right - left, high - low) < ROOMY:  # on maps of very many farms the search would be slow
        inside = area.representative_point()
        return frame.place(inside.x, inside.y)
    return frame.place(*label_place(area, *(((), ()) if result is None else result.layout)))


def _words(shape: FarmShape, result: Result | None, installed_mw: float | None) -> str:
    if result is None:
        return f"farm {shape.farm_idx} {shape.name}: no layout yet"
    parts = [f"farm {shape.farm_idx} {shape.name}: {result.key}", f"{result.n_turbines} turbines"]
    parts += [] if np.isnan(result.aep) else [f"{result.aep:.1f} GWh"]
    return ", ".join(filter(None, [*parts, yield_words(result.aep, installed_mw)]))


def _farm(frame: Frame, shape: FarmShape, result: Result | None, words: str, place: Place | None) -> Markup:
    """Return one farm. place: the middle of its label; None if there is no room for one."""
    points = [] if result is None else [frame.place(*point) for point in result.layout.T.tolist()]
    turbines = [tag("circle", {"cx": x, "cy": y, "r": 1.6}) for x, y in points]
    name = None
    if place is not None:
        name = text(place[0], place[1] + BELOW, f"{shape.farm_idx}", anchor="middle", kind="place")
    return tag("g", {"class": "farm"}, tag("title", None, words), frame.outline(shape.polygons), turbines, name)
