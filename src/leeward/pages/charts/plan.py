"""A layout drawn to scale in its area."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from leeward.layout.surroundings import loss_span, near
from leeward.pages.charts.axes import Scale, figure, text
from leeward.pages.charts.colours import colour
from leeward.pages.html import Attribute, Markup, join, tag
from leeward.watch import FarmShape, LayoutView, Rings

Array = npt.NDArray[np.float64]
SIDE = 640.0  # pixels of the longer side
LEAST_M = 1000.0  # shown of the map, each way: one turbine alone has no extent
NARROWEST = 120.0  # pixels: the bar of the scale and the arrow below the plan need so much
SMALLEST = 4.0  # radius of a turbine, pixels: smaller rotors are drawn so large


class Frame:
    """Where a point on the map lies in the picture: north up, one scale."""

    def __init__(self, points: Array, margin: float = 16.0, side: float = SIDE) -> None:
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        half = np.maximum(points.max(axis=0) - middle, LEAST_M / 2)
        low, high = middle - half, middle + half
        longer = float((high - low).max())
        self.scale = (side - 2 * margin) / longer  # pixels a metre
        self._left, self._top, self._margin = float(low[0]), float(high[1]), margin
        self.width = max(2 * margin + self.scale * float(high[0] - low[0]), NARROWEST)
        self._beside = (self.width - self.scale * float(high[0] - low[0])) / 2
        self.height = 2 * margin + self.scale * float(high[1] - low[1])

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Pixels from the left and from the top."""
        left = self._beside + (x - self._left) * self.scale
        return round(left, 2), round(self._margin + (self._top - y) * self.scale, 2)

    def outline(self, polygons: Sequence[Rings]) -> Markup:
        """The area; what is within inner rings is left blank."""
        rings = []
        for ring in (ring for polygon in polygons for ring in polygon):
            points = (self.place(*point) for point in ring.tolist())
            rings.append("M" + "L".join(f"{x:g} {y:g}" for x, y in points) + "Z")
        return tag("path", {"d": "".join(rings), "class": "area", "fill-rule": "evenodd"})


def loss_range(views: Sequence[LayoutView]) -> tuple[float, float] | None:
    """What the colours of these layouts cover, as `loss_span`; None where no wake loss is known."""
    losses = [view.wake_loss for view in views if view.wake_loss is not None and len(view.wake_loss)]
    return loss_span(np.concatenate(losses)) if losses else None


def layout_plan(view: LayoutView, losses: tuple[float, float] | None = None, side: float = SIDE) -> Markup:
    """Turbines to scale, coloured by wake loss over the range `losses`; circles of the least spacing, to be shown."""
    x, y = view.result.layout
    polygons = view.shape.polygons if view.shape else ()
    others = near_neighbours(view)
    frame = Frame(np.concatenate([_extent(view), others]), side=side)
    size = max(SMALLEST, view.result.diameter / 2 * frame.scale) if view.result.diameter > 0 else SMALLEST
    places = [frame.place(*point) for point in zip(x.tolist(), y.tolist(), strict=True)]
    below = 46.0  # for the bar of the scale
    words = f"layout {view.result.key}: {len(places)} turbines{f' in {view.farm}' if view.farm else ''}"
    return figure(
        round(frame.width, 1),
        round(frame.height + below, 1),
        words,
        frame.outline(polygons),
        _spacing(view, places, frame.scale),
        [neighbour_ring(frame, point, SMALLEST) for point in others.tolist()],
        [_turbine(view, i, place, size, losses) for i, place in enumerate(places)],
        scale_bar(frame, frame.height + 16),
        north_arrow(frame.width - 14, frame.height + 10),
        kind="plan",
    )


def near_neighbours(view: LayoutView) -> Array:
    """Those that are drawn with the layout; shape (neighbours, 2)."""
    return near_points(_extent(view), view.neighbours)


def near_points(shown: Array, neighbours: Array) -> Array:
    """Those of the neighbours, shape (2, neighbours), drawn where these points are shown, shape (points, 2)."""
    return np.column_stack(near((*shown.min(axis=0), *shown.max(axis=0)), *neighbours))


def _extent(view: LayoutView) -> Array:
    """All corners of the area, and all turbines; shape (points, 2)."""
    polygons = view.shape.polygons if view.shape else ()
    return np.concatenate([*(ring for polygon in polygons for ring in polygon), view.result.layout.T])


def loss_scale(losses: tuple[float, float]) -> Markup:
    """What the colours mean."""
    low, high = losses
    scale = Scale(low, high, 10, 230)
    digits = 1 if high - low >= 0.004 else 3  # so that the three numbers differ
    steps = 44
    bars = [
        tag("rect", {"x": 10 + 5 * i, "y": 4, "width": 5.4, "height": 10, "fill": colour(i / (steps - 1))})
        for i in range(steps)
    ]
    ends = ((low, "start"), ((low + high) / 2, "middle"), (high, "end"))
    ticks = [text(scale(value), 27, f"{value:.{digits}%}", anchor=anchor) for value, anchor in ends]
    words = f"wake loss of a turbine, from {low:.{digits}%} (light) to {high:.{digits}%} (dark)"
    return figure(290, 32, words, bars, ticks, text(236, 13, "wake loss"), kind="key")


def _turbine(
    view: LayoutView, number: int, place: tuple[float, float], size: float, losses: tuple[float, float] | None
) -> Markup:
    x, y = view.result.layout[:, number]
    words = f"turbine {number}: {x:.1f} m east, {y:.1f} m north"
    fill = None
    if view.wake_loss is not None and losses is not None:
        loss = float(view.wake_loss[number])
        span = losses[1] - losses[0]
        fill = colour((loss - losses[0]) / span if span > 0 else 0.5)
        words += f", wake loss {loss:z.2%}"
    shown: dict[str, Attribute] = {
        "cx": place[0],
        "cy": place[1],
        "r": round(size, 2),
        "class": "turbine",
        "fill": fill,
    }
    return tag("circle", shown, tag("title", None, words))


def _spacing(view: LayoutView, places: Sequence[tuple[float, float]], scale: float) -> Markup | None:
    """Two circles that touch are as close as they may be."""
    if not view.spacing_m:
        return None
    radius = round(view.spacing_m / 2 * scale, 2)
    circles = [tag("circle", {"cx": x, "cy": y, "r": radius}) for x, y in places]
    return tag("g", {"class": "spacing"}, circles)


def neighbour_ring(frame: Frame, point: Sequence[float], radius: float) -> Markup:
    """A turbine that stands already. radius: pixels."""
    x, y = frame.place(point[0], point[1])
    return tag("circle", {"cx": x, "cy": y, "r": radius, "class": "neighbour"}, tag("title", None, "a neighbour"))


def scale_bar(frame: Frame, y: float) -> Markup:
    """A round length, about a quarter of the width."""
    wanted = 0.25 * frame.width / frame.scale
    metres = max(step for step in _lengths() if step <= max(wanted, 1.0))
    width = round(metres * frame.scale, 2)
    label = f"{metres / 1000:g} km" if metres >= 1000 else f"{metres:g} m"
    line = f"M10 {y - 4:g}V{y:g}H{10 + width:g}V{y - 4:g}"
    return join([tag("path", {"d": line, "class": "rule"}), text(16 + width, y + 3, label)])


def _lengths() -> list[float]:
    return [times * 10.0**power for power in range(7) for times in (1, 2, 5)]


def north_arrow(x: float, y: float) -> Markup:
    arrow = f"M{x:g} {y:g}l4 14l-4 -3l-4 3Z"
    return join([tag("path", {"d": arrow, "class": "arrow"}), text(x, y + 26, "N", anchor="middle")])


def bounds_of(shapes: Sequence[FarmShape]) -> Array:
    """All points of these areas."""
    rings = [ring for shape in shapes for polygon in shape.polygons for ring in polygon]
    return np.concatenate(rings) if rings else np.zeros((1, 2))
