"""Maps: an area, circles to scale, kilometres, and where north is."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import shapely
from matplotlib.collections import EllipseCollection
from matplotlib.patches import FancyArrowPatch, PathPatch
from matplotlib.path import Path as Outline
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import Affine2D, BboxTransformTo, ScaledTranslation

from leeward.errors import InputError
from leeward.layout.pictures import Bounds, near
from leeward.plots.style import FAINT, INK, LABEL, SEA, SHORE, SMALL, dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leeward.layout import Area
    from leeward.wind import WindFarm

Array = npt.NDArray[np.float64]
Positions = tuple[npt.ArrayLike, npt.ArrayLike]

MOST_TICKS = 6
SMALLEST_DOT = 0.016  # of the area's longer side: smaller rotors are drawn so large
GREY_ONES = "grey: turbines that stand already"


class _Ticks(MaxNLocator):
    """Set as many ticks as there is room for: maps may be narrow."""

    def __call__(self) -> Any:
        if self.axis is not None:
            self.set_params(nbins=min(max(int(0.6 * self.axis.get_tick_space()), 1), MOST_TICKS))
        return super().__call__()


def draw_area(ax: "Axes", area: "Area", *, facecolor: str = SEA, linewidth: float = 1.2, zorder: float = 1.0) -> None:
    """All regions and holes as one patch."""
    rings = []
    for polygon in shapely.get_parts(area.to_shapely()):
        # outer and inner rings run in opposite directions, so that what is within the inner ones is left blank
        oriented = shapely.geometry.polygon.orient(polygon)
        rings += [Outline(np.asarray(r.coords), closed=True) for r in (oriented.exterior, *oriented.interiors)]
    outline = Outline.make_compound_path(*rings)
    ax.add_patch(PathPatch(outline, facecolor=facecolor, edgecolor=SHORE, linewidth=linewidth, zorder=zorder))


def circles(
    ax: "Axes",
    x: Array,
    y: Array,
    diameter: float,
    *,
    facecolors: str,
    edgecolors: str,
    linewidths: float,
    zorder: float = 2.5,
) -> EllipseCollection:
    """Circles as wide as they would be on the map."""
    each = np.full(len(x), diameter)
    return EllipseCollection(
        each,
        each,
        np.zeros(len(x)),
        units="xy",
        offsets=np.column_stack([x, y]),
        offset_transform=ax.transData,
        facecolors=facecolors,
        edgecolors=edgecolors,
        linewidths=linewidths,
        zorder=zorder,
    )


def dress_map(
    ax: "Axes", bounds: Bounds, land: shapely.Geometry | None, *, crs: str | None, legend: str, title: str | None
) -> None:
    """One scale, ticks in kilometres, labels, title, and a north arrow clear of the `land` that is drawn.

    bounds: left, low, right, high of what is shown, m. legend: a line below the axis.
    """
    left, low, right, high = bounds
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    ax.set_aspect("equal")
    system = f" ({crs})" if crs else ""
    ax.set_xlabel("\n".join(filter(None, (f"east, km{system}", legend))), color=INK, fontsize=LABEL)
    ax.set_ylabel("north, km", color=INK, fontsize=LABEL)  # short: wide maps are low
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(_Ticks(steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(_kilometres))
    dress(ax, title)
    _point_north(ax, bounds, land)


def shown_bounds(ax: "Axes") -> Bounds:
    """Return left, low, right, high of what a map shows, m."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    return left, low, right, high


def pair(positions: Positions, what: str) -> tuple[Array, Array]:
    """X and y of turbines as two arrays of one length."""
    x, y = (np.asarray(c, dtype=np.float64) for c in positions)
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"{what} has x and y of the shapes {x.shape} and {y.shape}; expected as many of each")
    return x, y


def near_neighbours(bounds: Bounds, neighbours: Positions | None) -> tuple[Array, Array]:
    """Those that are shown on a map of the bounds."""
    return near(bounds, *pair(((), ()) if neighbours is None else neighbours, "neighbours"))


def draw_neighbours(ax: "Axes", x: Array, y: Array, size: float) -> str:
    """Grey circles; what a legend says of them."""
    if not len(x):
        return ""
    ax.add_collection(circles(ax, x, y, size, facecolors=FAINT, edgecolors=SHORE, linewidths=0.5))
    return GREY_ONES


def neighbours_of(farm: "WindFarm") -> Positions | None:
    """Where they stand; None where there are none."""
    return None if farm.neighbours is None else (farm.neighbours.x, farm.neighbours.y)


def _point_north(ax: "Axes", bounds: Bounds, land: shapely.Geometry | None) -> None:
    """An arrow, in the corner that is farthest from the land, or beside the map where that fills all corners."""
    left, low, right, high = bounds
    corners = {(0, 1): (left, high), (1, 1): (right, high), (0, 0): (left, low), (1, 0): (right, low)}
    room = 0.1 * max(right - left, high - low)  # about what the arrow takes
    away = dict.fromkeys(corners, 0.0)
    if land is not None:
        away = {c: float(shapely.distance(land, shapely.Point(corners[c]))) for c in corners}
    across, up = max(away, key=lambda c: away[c])
    is_free = away[across, up] > room
    if not is_free:
        across, up = 1, 1
    # in points from that corner, so that the arrow has one size whatever the area's
    points = (
        Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans + ScaledTranslation(across, up, BboxTransformTo(ax.bbox))
    )
    middle, foot = -8 if across else 8, -32 if up else 8
    middle = middle if is_free else 10
    ax.text(middle, foot, "N", ha="center", va="bottom", fontsize=SMALL, color=INK, transform=points)
    ends = (middle, foot + 10), (middle, foot + 26)
    arrow = FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=9, color=INK, shrinkA=0, shrinkB=0, zorder=5)
    arrow.set_clip_on(False)
    arrow.set_transform(points)
    ax.add_patch(arrow)


def _kilometres(metres: float, _: object) -> str:
    return f"{metres / 1000.0:.10g}"
