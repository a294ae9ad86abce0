"""Pictures of layouts. Importing this module loads matplotlib; it sets no backend and changes no setting of it."""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import shapely
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, PathPatch
from matplotlib.path import Path as Outline
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import Affine2D, BboxTransformTo, ScaledTranslation

from leeward.errors import InputError
from leeward.files import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leeward.layout import Area, LayoutProblem, Solution

Array = npt.NDArray[np.float64]
Positions = tuple[npt.ArrayLike, npt.ArrayLike]
Start = tuple[npt.ArrayLike, npt.ArrayLike, float]

ENDINGS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 160
PANEL_INCHES = 5.6  # the longer side of an area's drawing
COLOURS = "viridis_r"  # even steps of lightness, the same for the colour-blind; dark is a large loss
SEA, SHORE, INK, FAINT, PLAIN = "#eef3f7", "#51626f", "#1c2a33", "#9aa7b0", "#1f6f9f"
SMALLEST_DOT = 0.016  # of the area's longer side: smaller rotors are drawn so large
VISIBLE_ROOM = 1.3  # of a dot's width: narrower circles about it are left out


def plot_layout(
    ax: "Axes",
    area: "Area",
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    wake_loss: npt.ArrayLike | None = None,
    loss_range: tuple[float, float] | None = None,
    start: Positions | None = None,
    rotor_diameter_m: float | None = None,
    spacing_m: float | None = None,
    title: str | None = None,
) -> EllipseCollection:
    """Draw a layout in its area on an Axes, north up, at one scale; the turbines drawn are returned, for a colour bar.

    The data are in metres, as everything else that is drawn on `ax` must be; the ticks are in kilometres.
    wake_loss: share of each turbine, shape (turbines,), as colour, over the `loss_range` (lowest, highest). start: x
    and y of another layout, drawn faintly, and with lines to this one if it has as many turbines.
    rotor_diameter_m: rotors are drawn to scale where that can be seen. spacing_m: a circle this wide about each
    turbine, where that can be seen: two that touch are as close as they may be.
    """
    east, north = _pair((x, y), "the layout")
    _draw_area(ax, area)
    left, low, right, high = area.bounds
    longer = max(right - left, high - low)
    if start is not None:
        _draw_start(ax, *_pair(start, "start"), east, north, 0.6 * SMALLEST_DOT * longer)
    size = max(rotor_diameter_m or 0.0, SMALLEST_DOT * longer)
    room = spacing_m if spacing_m is not None and spacing_m > VISIBLE_ROOM * size else 0.0
    if room:
        ax.add_collection(_circles(ax, east, north, room, facecolors="none", edgecolors=FAINT, linewidths=0.6))
    dots = _circles(ax, east, north, size, facecolors=PLAIN, edgecolors=INK, linewidths=0.6, zorder=4)
    if wake_loss is not None:
        loss = np.asarray(wake_loss, dtype=np.float64)
        if loss.shape != east.shape:
            raise InputError(f"wake_loss has the shape {loss.shape}; expected a share for each of {len(east)} turbines")
        dots.set_array(100.0 * loss)
        dots.set_cmap(COLOURS)
        lowest, highest = loss_range or (float(loss.min(initial=1.0)), float(loss.max(initial=0.0)))
        dots.set_clim(100.0 * lowest, 100.0 * highest)
    ax.add_collection(dots)
    legend = f"circles: {room:g} m wide, the least spacing" if room else ""
    _dress(ax, area, max(0.04 * longer, 0.55 * room), legend, title)
    return dots


def save_layout_picture(
    path: str | os.PathLike[str], problem: "LayoutProblem", solution: "Solution", start: Start | None = None
) -> None:
    """Write a picture of a solution, beside the layout that it started from: x, y (m) and AEP (GWh).

    The ending of the file says which kind: .png, .svg or .pdf. The file appears whole or not at all.
    """
    file = check_picture_path(path)
    figure = layout_figure(problem, solution, start)
    content = io.BytesIO()
    figure.savefig(content, format=file.suffix[1:].lower(), dpi=DOTS_PER_INCH)
    replace_file(file, content.getvalue())


def layout_figure(problem: "LayoutProblem", solution: "Solution", start: Start | None = None) -> Figure:
    """The figure that `save_layout_picture` writes: one panel, or two with a start."""
    after = problem.farm.simulate(solution.x, solution.y)
    panels = [("optimised", solution.x, solution.y, after, solution.aep_gwh)]
    if start is not None:
        x, y = _pair(start[:2], "start")
        panels.insert(0, ("start", x, y, problem.farm.simulate(x, y), float(start[2])))
    losses = np.concatenate([simulation.wake_loss for *_, simulation, _ in panels])
    left, low, right, high = problem.area.bounds
    scale = PANEL_INCHES / max(right - left, high - low)
    width, height = max(scale * (right - left), 2.6), max(scale * (high - low), 2.0)
    across, down = (1, len(panels)) if width > height else (len(panels), 1)
    size = across * (width + 0.7) + 1.1, down * (height + 1.2) + 0.6
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    for ax, (name, x, y, simulation, aep) in zip(axes, panels, strict=True):
        dots = plot_layout(
            ax,
            problem.area,
            x,
            y,
            wake_loss=simulation.wake_loss,
            loss_range=(float(losses.min()), float(losses.max())),
            rotor_diameter_m=max(t.rotor_diameter_m for t in problem.turbines),
            spacing_m=float(problem.room[: problem.n_turbines].min()),
            title=f"{name}: {aep:.1f} GWh, wake loss {simulation.total_wake_loss:.2%}",
        )
        ax.label_outer()
    figure.colorbar(dots, ax=axes, label="wake loss of each turbine, %", shrink=0.8, pad=0.02)
    figure.suptitle(_headline(problem, solution, start), color=INK, fontsize=12, fontweight="bold")
    return figure


def check_picture_path(path: str | os.PathLike[str]) -> Path:
    """The path, if its ending is one that pictures can have."""
    file = Path(path)
    if file.suffix.lower() not in ENDINGS:
        raise InputError(
            f"{file}: a picture with the ending {file.suffix!r}; expected one of {', '.join(ENDINGS)}, for example "
            f"{file.stem or 'layout'}.png"
        )
    return file


def _headline(problem: "LayoutProblem", solution: "Solution", start: Start | None) -> str:
    turbines = f"{problem.n_turbines} turbines of " if problem.n_turbines > 1 else "1 turbine of "
    powers = sorted({t.rated_power_mw for t in problem.turbines})
    turbines += f"{' and '.join(f'{p:g}' for p in powers[:: max(1, len(powers) - 1)])} MW"
    if start is None:
        return f"{turbines}: {solution.aep_gwh:.1f} GWh a year"
    gain = f" ({solution.aep_gwh / start[2] - 1:+.2%})" if start[2] > 0 else ""
    return f"{turbines}: {start[2]:.1f} to {solution.aep_gwh:.1f} GWh a year{gain}"


def _draw_area(ax: "Axes", area: "Area") -> None:
    """All regions and holes as one patch."""
    rings = []
    for polygon in shapely.get_parts(area.to_shapely()):
        # outer and inner rings run in opposite directions, so that what is within the inner ones is left blank
        oriented = shapely.geometry.polygon.orient(polygon)
        rings += [Outline(np.asarray(r.coords), closed=True) for r in (oriented.exterior, *oriented.interiors)]
    outline = Outline.make_compound_path(*rings)
    ax.add_patch(PathPatch(outline, facecolor=SEA, edgecolor=SHORE, linewidth=1.2, zorder=1))


def _draw_start(ax: "Axes", from_x: Array, from_y: Array, x: Array, y: Array, size: float) -> None:
    if len(from_x) == len(x):
        lines = np.stack([np.column_stack([from_x, from_y]), np.column_stack([x, y])], axis=1)
        ax.add_collection(LineCollection(list(lines), colors=FAINT, linewidths=0.6, zorder=2))
    marks = _circles(ax, from_x, from_y, size, facecolors="white", edgecolors=FAINT, linewidths=0.7, zorder=3)
    ax.add_collection(marks)


def _circles(
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


def _dress(ax: "Axes", area: "Area", margin: float, legend: str, title: str | None) -> None:
    """Scale, ticks, labels, title, north arrow."""
    left, low, right, high = area.bounds
    ax.set_xlim(left - margin, right + margin)
    ax.set_ylim(low - margin, high + margin)
    ax.set_aspect("equal")
    system = f" ({area.crs})" if area.crs else ""
    ax.set_xlabel("\n".join(filter(None, [f"east, km{system}", legend])), color=INK)
    ax.set_ylabel(f"north, km{system}", color=INK)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(_kilometres))
    ax.tick_params(colors=INK, labelsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(title, color=INK, fontsize=10)
    _point_north(ax, area)


def _point_north(ax: "Axes", area: "Area") -> None:
    """An arrow, in the corner that is farthest from the area, or above where the area fills all corners."""
    left, low, right, high = area.bounds
    corners = {(0, 1): (left, high), (1, 1): (right, high), (0, 0): (left, low), (1, 0): (right, low)}
    away = {c: float(shapely.distance(area.to_shapely(), shapely.Point(corners[c]))) for c in corners}
    across, up = max(away, key=lambda c: away[c]) if max(away.values()) > 0 else (1, 1)
    # in points from that corner, so that the arrow has one size whatever the area's
    points = (
        Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans + ScaledTranslation(across, up, BboxTransformTo(ax.bbox))
    )
    middle, foot = (-8 if across else 8), ((-32 if up else 8) if away[across, up] > 0 else 3)
    ax.text(middle, foot, "N", ha="center", va="bottom", fontsize=9, color=INK, transform=points)
    ends = (middle, foot + 10), (middle, foot + 28)
    arrow = FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=9, color=INK, shrinkA=0, shrinkB=0, zorder=5)
    arrow.set_clip_on(False)
    arrow.set_transform(points)
    ax.add_patch(arrow)


def _kilometres(metres: float, _: object) -> str:
    return f"{metres / 1000.0:.10g}"


def _pair(positions: Positions, what: str) -> tuple[Array, Array]:
    x, y = (np.asarray(c, dtype=np.float64) for c in positions)
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"{what} has x and y of the shapes {x.shape} and {y.shape}; expected as many of each")
    return x, y
