"""Maps of one layout in its area, and of all farms."""

from collections.abc import Mapping, Sequence

import numpy as np
import shapely

from leeward.capacity import yield_words
from leeward.charts import Array, Scale, apart, colour, label_place, loss_range, near
from leeward.pages.charts import figure, path, path_through, text
from leeward.pages.html import Attribute, Markup, tag
from leeward.pages.parts import Links, captioned
from leeward.store import Result
from leeward.watch import FarmShape, LayoutView

Place = tuple[float, float]  # pixels from the left and from the top

SIDE = 640.0  # longer side of a map of one layout, pixels
MAP_SIDE = 760.0  # longer side of a map of all farms, pixels
LEAST_M = 1000.0  # smallest extent of a map: a single turbine has none
NARROWEST = 120.0  # pixels: the scale bar and the north arrow need this width
SMALLEST = 4.0  # radius of a turbine, pixels: smaller rotors are drawn this large
RING = 2.4  # radius of a neighbour on the map of all farms, pixels
LETTER, LINE = 9.0, 12.0  # width and height of a digit of a label, pixels
BELOW = 5.0  # from the middle of a label to its baseline, pixels
ROOMY = 4 * LINE  # side of an area, pixels: in smaller areas any place for the label is good enough
RINGS = "Rings: existing turbines."
LENGTHS = [times * 10.0**power for power in range(7) for times in (1, 2, 5)]  # possible lengths of scale bars, m


class Frame:
    """The transformation from map to drawing: north up, one scale.

    It shows these points, shape (points, 2), m, and nearby neighbours. neighbours: shape (2, neighbours), m. others:
    the nearby ones, shape (others, 2). margin, side: of the drawing, pixels.
    """

    def __init__(self, points: Array, neighbours: Array, margin: float, side: float) -> None:
        self.others = np.column_stack(near((*points.min(axis=0), *points.max(axis=0)), *neighbours))
        points = np.concatenate([points, self.others])
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

    def places(self, points: Array) -> list[Place]:
        """Return the places of several points, shape (points, 2)."""
        return [self.place(*point) for point in points.tolist()]

    def outline(self, rings: Sequence[Array], kind: str = "area") -> Markup:
        """Return the area inside these rings, with holes left blank. kind: its class in the style sheet."""
        paths = (f"{path_through(self.places(ring))}Z" for ring in rings)
        return tag("path", {"d": "".join(paths), "class": kind, "fill-rule": "evenodd"})

    def neighbours(self, radius: float) -> list[Markup]:
        """Return a ring for each nearby existing turbine. radius: pixels."""
        places, words = self.places(self.others), tag("title", None, "existing turbine")
        return [tag("circle", {"cx": x, "cy": y, "r": radius, "class": "neighbour"}, words) for x, y in places]

    def foot(self, rule: float, arrow: float, aside: float) -> list[Markup]:
        """Return a scale bar, about a quarter of the width, and a north arrow.

        rule, arrow: their distance below the map. aside: distance of the arrow from the right edge. All in pixels.
        """
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


def rings_of(*shapes: FarmShape | None) -> list[Array]:
    """Return all rings of these areas, each of shape (points, 2)."""
    return [ring for shape in shapes if shape is not None for polygon in shape.polygons for ring in polygon]


# --- one layout ------------------------------------------------------------------------------------------------------


def layout_plan(
    view: LayoutView, losses: tuple[float, float] | None = None, side: float = SIDE, *, with_scale: bool = True
) -> Markup:
    """Return a map of a layout, turbines to scale and coloured by wake loss, with hidden minimum-spacing circles.

    losses: range of the colours; None for that of the layout. side: pixels. with_scale: add the colour scale.
    """
    losses = losses or loss_range([view.wake_loss])
    frame = Frame(np.concatenate([*rings_of(view.shape), view.result.layout.T]), view.neighbours, 16.0, side)
    size = (
        max(SMALLEST, view.result.rotor_diameter_m / 2 * frame.scale) if view.result.rotor_diameter_m > 0 else SMALLEST
    )
    places = frame.places(view.result.layout.T)
    spacing = round((view.spacing_m or 0.0) / 2 * frame.scale, 2)
    circles = [tag("circle", {"cx": x, "cy": y, "r": spacing}) for x, y in places]  # touch at minimum spacing
    picture = figure(
        round(frame.width, 1),
        round(frame.height + 46, 1),
        f"layout {view.result.key}: {len(places)} turbines{f' in {view.farm}' if view.farm else ''}",
        frame.outline(rings_of(view.shape)),
        tag("g", {"class": "spacing"}, circles) if view.spacing_m else None,
        frame.neighbours(SMALLEST),
        [_turbine(view, i, place, size, losses) for i, place in enumerate(places)],
        frame.foot(16, 10, 14),
        kind="plan",
    )
    return captioned(
        picture,
        loss_scale(losses) if losses is not None and view.wake_loss is not None and with_scale else None,
        tag("p", None, RINGS) if len(frame.others) else None,
        tag("p", None, f"No wake losses: {view.remark}.") if view.remark else None,
    )


def loss_scale(losses: tuple[float, float]) -> Markup:
    """Return the colour scale of wake losses (fractions) from lowest to highest."""
    low, high = losses
    digits = 1 if high - low >= 0.004 else 3  # so that the three numbers differ
    words = f"wake loss of a turbine, from {low:.{digits}%} (light) to {high:.{digits}%} (dark)"
    return colour_scale(losses, [colour(i / 43) for i in range(44)], f".{digits}%", "wake loss", words)


def colour_scale(ends: tuple[float, float], fills: Sequence[str], form: str, name: str, words: str) -> Markup:
    """Return a colour scale. fills: its colours from left to right. form: of the numbers. words: for screen readers."""
    low, high = ends
    scale, step = Scale(low, high, 10, 230), 220 / len(fills)
    bars = [
        tag("rect", {"x": 10 + step * i, "y": 4, "width": step + 0.4, "height": 10, "fill": fill})
        for i, fill in enumerate(fills)
    ]
    numbers = ((low, "start"), ((low + high) / 2, "middle"), (high, "end"))
    ticks = [text(scale(value), 27, f"{value:{form}}", anchor=anchor) for value, anchor in numbers]
    return figure(300, 32, words, bars, ticks, text(236, 13, name), kind="key")


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


# --- all farms -------------------------------------------------------------------------------------------------------


def farm_map(
    shapes: Sequence[FarmShape],
    best: Mapping[int, Result],
    neighbours: Array,
    words: str,
    links: Links,
    installed: Mapping[int, float],
) -> Markup:
    """Return a map of the areas with labels, best layouts, and nearby neighbours, shape (2, neighbours).

    best: by farm_idx. installed: MW of these layouts, by farm_idx, if known. words: the caption if there is a layout.
    """
    frame = Frame(np.concatenate(rings_of(*shapes) or [np.zeros((1, 2))]), neighbours, 20.0, MAP_SIDE)
    places = [_place(frame, shape, best.get(shape.farm_idx)) for shape in shapes]
    named = set(apart(places, [LETTER * len(str(shape.farm_idx)) for shape in shapes], LINE))
    farms = []
    for i, shape in enumerate(shapes):
        result, installed_mw = best.get(shape.farm_idx), installed.get(shape.farm_idx)
        farms.append(_farm(frame, shape, result, installed_mw, places[i] if i in named else None, links))
    picture = figure(
        round(frame.width, 1),
        round(frame.height + 40, 1),
        f"map of {len(shapes)} farm areas and their best layouts",
        farms,
        frame.neighbours(RING),
        frame.foot(14, 4, 16),
        kind="map",
        role="group",
    )
    caption = words if best else "The areas of the farms, to scale."
    return captioned(picture, f"{caption} {RINGS}" if len(frame.others) else caption)


def _place(frame: Frame, shape: FarmShape, result: Result | None) -> Place:
    """Return the centre of the label of a farm."""
    area = shapely.MultiPolygon([(outer, holes) for outer, *holes in shape.polygons])
    left, low, right, high = area.bounds
    if frame.scale * max(right - left, high - low) < ROOMY:  # saves time on maps of very many farms
        inside = area.representative_point()
        return frame.place(inside.x, inside.y)
    return frame.place(*label_place(area, *(((), ()) if result is None else result.layout)))


def _farm(
    frame: Frame, shape: FarmShape, result: Result | None, installed_mw: float | None, label: Place | None, links: Links
) -> Markup:
    """Return one farm, with a link to its layout. label: the centre of its label; None for no label."""
    words = f"farm {shape.farm_idx} {shape.name}: "
    if result is None:
        words += "no layout yet"
    else:
        aep = "" if np.isnan(result.aep_gwh) else f"{result.aep_gwh:.1f} GWh"
        known = [str(result.key), f"{result.n_turbines} turbines", aep, yield_words(result.aep_gwh, installed_mw)]
        words += ", ".join(filter(None, known))
    points = [] if result is None else frame.places(result.layout.T)
    drawn = tag(
        "g",
        {"class": "farm"},
        tag("title", None, words),
        frame.outline(rings_of(shape)),
        [tag("circle", {"cx": x, "cy": y, "r": 1.6}) for x, y in points],
        text(label[0], label[1] + BELOW, f"{shape.farm_idx}", anchor="middle", kind="place") if label else None,
    )
    address = None if result is None else links.task(result.key)
    return drawn if address is None else tag("a", {"href": address, "aria-label": words}, drawn)
