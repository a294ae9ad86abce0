"""Parts of maps: areas, circles to scale, axes in kilometres, north arrow; and figures that fit the map."""

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import shapely
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, PathPatch
from matplotlib.path import Path as Outline
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D, BboxTransformTo, ScaledTranslation

from leeward.charts import Array, Bounds, near
from leeward.errors import InputError
from leeward.layout import Area
from leeward.plots.style import EVEN, FAINT, INK, SEA, SHORE, SMALL, TEXT, Look, arrange, literal, set_style, wrap_text
from leeward.wind import WindFarm

Positions = tuple[npt.ArrayLike, npt.ArrayLike]

MOST_POINTS = 5000  # along the longer side of a grid
MOST_TICKS = 6
NEIGHBOUR_LEGEND = "grey: existing turbines"
SMALLEST_DOT = 0.016  # fraction of the area's longer side; smaller rotors are drawn this large
LONGEST = 8.0  # longest side of a map, inches
NARROWEST = 2.8  # smallest width of a figure, inches; its text needs this much
ROUNDS = 6  # at most this many rounds of arranging and resizing; two or three are usually enough
SAME = 0.005  # inches: smaller differences in size do not matter
SIDE = 5.0  # side of a square map, inches
WIDE = 2.2  # width over height: a wider map is too low for a colour bar beside it


class _Ticks(MaxNLocator):
    """A tick locator for narrow axes too: it sets only as many ticks as fit."""

    def __call__(self) -> Any:
        if self.axis is not None:
            self.set_params(nbins=min(max(int(0.6 * self.axis.get_tick_space()), 1), MOST_TICKS))
        return super().__call__()


def draw_area(
    ax: Axes, area: Area, *, facecolor: str = SEA, linewidth: float = 1.2, edgecolor: str = SHORE
) -> PathPatch:
    """Draw all regions of an area with their holes, as one patch; return it."""
    rings = []
    for polygon in shapely.get_parts(area.to_shapely()):
        # inner rings run in the opposite direction, which leaves holes blank
        oriented = shapely.geometry.polygon.orient(polygon)
        rings += [Outline(np.asarray(r.coords), closed=True) for r in (oriented.exterior, *oriented.interiors)]
    outline = Outline.make_compound_path(*rings)
    drawn = PathPatch(outline, facecolor=facecolor, edgecolor=edgecolor, linewidth=linewidth)
    ax.add_patch(drawn)
    return drawn


def circles(
    ax: Axes, x: Array, y: Array, diameter: float, *, face: str, edge: str, linewidth: float, zorder: float = 2.5
) -> EllipseCollection:
    """Draw circles to scale and return them. diameter: m. face, edge: colours."""
    each = np.full(len(x), diameter)
    at: Look = {"offsets": np.column_stack([x, y]), "offset_transform": ax.transData, "units": "xy"}
    look: Look = {"facecolors": face, "edgecolors": edge, "linewidths": linewidth, "zorder": zorder}
    drawn = EllipseCollection(each, each, np.zeros(len(x)), **at, **look)
    ax.add_collection(drawn, autolim=False)  # the limits are known, and autolim is slow
    return drawn


def colour_by_loss(drawn: EllipseCollection, loss: Array, span: tuple[float, float] | None) -> None:
    """Colour turbines by wake loss (fraction, shape (turbines,)). span: limits of the colour scale."""
    drawn.set_array(100.0 * loss)
    drawn.set_cmap(f"{EVEN}_r")  # dark: large loss
    drawn.set_clim(*(100.0 * end for end in span or (0.0, 1.0)))


def finish_map(
    ax: Axes,
    bounds: Bounds,
    areas: shapely.Geometry | None,
    *,
    margin: float,
    crs: str | None,
    legend: str,
    title: str | None,
) -> None:
    """Set equal scales, ticks in kilometres, labels and title, and draw a north arrow away from `areas`.

    bounds: of the map without its margin. margin: m. legend: text below the horizontal axis.
    """
    left, low, right, high = bounds
    ax.set_xlim(left - margin, right + margin)
    ax.set_ylim(low - margin, high + margin)
    ax.set_aspect("equal")
    system = f" ({crs})" if crs else ""
    ax.set_xlabel("\n".join(filter(None, (f"east, km{system}", legend))), **TEXT)
    ax.set_ylabel("north, km", **TEXT)  # short: wide maps are low
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(_Ticks(steps=[1, 2, 5, 10]))
        axis.set_major_formatter(lambda metres, _: f"{metres / 1000.0:.10g}")
    set_style(ax, title)
    _draw_north_arrow(ax, ax.viewLim.extents, areas)


def longer_side(bounds: Bounds) -> float:
    """Return the longer side of these bounds, m."""
    left, low, right, high = bounds
    return max(right - left, high - low)


def widened(bounds: Bounds, around: float) -> Bounds:
    """Return bounds with a margin. around: its width, as a fraction of the longer side."""
    left, low, right, high = bounds
    margin = around * longer_side(bounds)
    return left - margin, low - margin, right + margin, high + margin


def grid(bounds: Bounds, points: int) -> tuple[Array, Array]:
    """Return x and y (m) of a square grid; shape (rows, columns). points: along the longer side."""
    if not (isinstance(points, int | np.integer) and 2 <= points <= MOST_POINTS):
        raise InputError(f"points is {points!r}; expected a whole number from 2 to {MOST_POINTS}")
    left, low, right, high = bounds
    step = longer_side(bounds) / (points - 1)
    columns, rows = max(round((right - left) / step) + 1, 2), max(round((high - low) / step) + 1, 2)
    grid_x, grid_y = np.meshgrid(np.linspace(left, right, columns), np.linspace(low, high, rows))
    return grid_x, grid_y


def pair(positions: Positions, what: str) -> tuple[Array, Array]:
    """Return x and y as two arrays of the same length, or raise InputError. what: their name in the message."""
    x, y = (np.asarray(c, dtype=np.float64) for c in positions)
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"{what} has x and y of shapes {x.shape} and {y.shape}; expected the same number of each")
    return x, y


def near_neighbours(bounds: Bounds, neighbours: Positions | None) -> tuple[Array, Array, Bounds]:
    """Return x and y of the neighbours that a map of the bounds shows, and the bounds extended to contain them."""
    x, y = near(bounds, *pair(((), ()) if neighbours is None else neighbours, "neighbours"))
    left, low, right, high = shapely.total_bounds([shapely.box(*bounds), *shapely.points(x, y)]).tolist()
    return x, y, (left, low, right, high)


def draw_neighbours(ax: Axes, bounds: Bounds, neighbours: Positions | None, size: float) -> tuple[str, Bounds]:
    """Draw nearby neighbours as grey circles; return the line of the legend, and the bounds that contain them."""
    x, y, shown = near_neighbours(bounds, neighbours)
    if not len(x):
        return "", shown
    circles(ax, x, y, size, face=FAINT, edge=SHORE, linewidth=0.5)
    return NEIGHBOUR_LEGEND, shown


def neighbours_of(farm: WindFarm) -> Positions | None:
    """Return x and y of the neighbours; None if there are none."""
    return None if farm.neighbours is None else (farm.neighbours.x, farm.neighbours.y)


def _draw_north_arrow(ax: Axes, bounds: Bounds, areas: shapely.Geometry | None) -> None:
    """Draw a north arrow in the corner farthest from the areas, or beside the map if no corner is free."""
    left, low, right, high = bounds
    corners = {(0, 1): (left, high), (1, 1): (right, high), (0, 0): (left, low), (1, 0): (right, low)}
    away = {c: 0.0 if areas is None else areas.distance(shapely.Point(at)) for c, at in corners.items()}
    farthest = max(away, key=lambda corner: away[corner])
    is_free = away[farthest] > 0.1 * longer_side(bounds)  # about the size of the arrow
    across, up = farthest if is_free else (1, 1)
    middle = 10 if not is_free else -8 if across else 8
    foot = -32 if up else 8
    arrow = draw_arrow(ax, (across, up), (middle, foot + 10), (middle, foot + 26), INK)
    arrow.set_clip_on(False)
    letter: Look = {"ha": "center", "va": "bottom", "fontsize": SMALL, "color": INK}
    ax.text(middle, foot, "N", transform=arrow.get_transform(), **letter)


def draw_arrow(
    ax: Axes, corner: tuple[int, int], tail: tuple[float, float], head: tuple[float, float], colour: str
) -> FancyArrowPatch:
    """Draw an arrow of fixed size. tail, head: points (1/72 inch) from a corner of the axes."""
    points = Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans + ScaledTranslation(*corner, BboxTransformTo(ax.bbox))
    look: Look = {"arrowstyle": "-|>", "mutation_scale": 9, "color": colour, "shrinkA": 0, "shrinkB": 0, "zorder": 5}
    arrow = FancyArrowPatch(tail, head, **look)
    arrow.set_transform(points)
    ax.add_patch(arrow)
    return arrow


# --- the size of figures ---------------------------------------------------------------------------------------------


def map_size(bounds: Bounds, side: float = SIDE) -> tuple[float, float]:
    """Return width and height of a map in inches; a narrow map is longer than `side`."""
    left, low, right, high = bounds
    width, height = right - left, high - low
    longer, shorter = max(width, height), min(width, height)
    inches = min(side * (longer / shorter) ** 0.25, max(side, LONGEST))
    return inches * width / longer, inches * height / longer


def bar_side(bounds: Bounds) -> Literal["bottom", "right"]:
    """Return the side of the colour bar: below a wide map, else beside it."""
    left, low, right, high = bounds
    return "bottom" if right - left > WIDE * (high - low) else "right"


def fit(
    figure: Figure,
    axes: Sequence[Axes],
    size: tuple[float, float],
    *,
    across: int = 1,
    name: str | None = None,
    least_width: float = 0.0,
) -> None:
    """Resize a figure until each of its maps has this size, and wrap the text above and below them.

    size: width and height of a map, inches. across: number of maps side by side. name: headline. least_width: of the
    figure, inches.
    """
    for ax in axes:
        ax.set_aspect("auto")  # an equal aspect would shift the map away from its text until the size is right
    words = [(ax, text, text.get_text()) for ax in axes for text in (ax.title, ax.xaxis.label)]
    rows = [axes[start : start + across] for start in range(0, len(axes), across)]
    arrange(figure)
    for _ in range(ROUNDS):
        if name:
            headline = figure.suptitle(" ", color=INK, fontsize=SMALL + 2, fontweight="bold")
            wrap_text(headline, literal(name), figure.get_figwidth() - 0.1)
        for ax, text, whole in words:
            wrap_text(text, whole, _text_width(ax, next(row for row in rows if ax in row)))
        arrange(figure)
        width, height = figure.get_size_inches()
        slot = axes[0].get_position(original=True)
        more = across * (size[0] - slot.width * width), len(rows) * (size[1] - slot.height * height)
        wanted = max(width + more[0], NARROWEST, least_width), height + more[1]
        if max(abs(wanted[0] - width), abs(wanted[1] - height)) < SAME:
            break
        figure.set_size_inches(*wanted)
    else:
        arrange(figure)
    figure.set_layout_engine("none")  # the engine would move maps of equal aspect each time they are drawn
    for ax in axes:
        ax.set_aspect("equal", anchor="C")


def _text_width(ax: Axes, row: Sequence[Axes]) -> float:
    """Return the width (inches) for text centred on a map, up to the figure's edge or halfway to the next map."""
    middles = sorted(0.5 * (other.get_position().x0 + other.get_position().x1) for other in row)
    ends = [0.0, *(0.5 * (a + b) for a, b in itertools.pairwise(middles)), 1.0]
    middle = 0.5 * (ax.get_position().x0 + ax.get_position().x1)
    left, right = max(end for end in ends if end <= middle), min(end for end in ends if end >= middle)
    return float(2.0 * min(middle - left, right - middle) * ax.figure.bbox.width / ax.figure.dpi)
