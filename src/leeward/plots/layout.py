"""Pictures of one layout."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.figure import Figure

from leeward.capacity import yield_words
from leeward.errors import InputError
from leeward.layout.pictures import Bounds, loss_span, widened
from leeward.plots.fit import fit, is_wide, map_size
from leeward.plots.ground import (
    SMALLEST_DOT,
    Array,
    Positions,
    circles,
    draw_area,
    draw_neighbours,
    dress_map,
    near_neighbours,
    neighbours_of,
    pair,
    shown_bounds,
)
from leeward.plots.style import EVEN, FAINT, INK, PLAIN, colour_bar, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leeward.layout import Area, LayoutProblem, Solution

Start = tuple[npt.ArrayLike, npt.ArrayLike, float]


class Placed(Protocol):
    """Turbines at x, y (m), and what they yield: a `Solution`, or a `PlacedTurbines`."""

    @property
    def x(self) -> Array: ...
    @property
    def y(self) -> Array: ...
    @property
    def aep_gwh(self) -> float: ...


@dataclass(frozen=True)
class PlacedTurbines:
    """See `Placed`. installed_mw: None for that of the problem's turbines."""

    x: Array
    y: Array
    aep_gwh: float
    installed_mw: float | None = None


COLOURS = f"{EVEN}_r"  # dark is a large loss
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
    neighbours: Positions | None = None,
    title: str | None = None,
) -> EllipseCollection:
    """Draw a layout in its area on an Axes, north up, at one scale; the turbines drawn are returned, for a colour bar.

    The data are in metres, as everything else that is drawn on `ax` must be; the ticks are in kilometres.
    wake_loss: share of each turbine, shape (turbines,), as colour, over the `loss_range` (lowest, highest). start: x
    and y of another layout, drawn faintly, and with lines to this one if it has as many turbines.
    rotor_diameter_m: rotors are drawn to scale where that can be seen. spacing_m: a circle this wide about each
    turbine, where that can be seen: two that touch are as close as they may be. neighbours: x and y of turbines that
    stand already; the near ones are drawn in grey.
    """
    east, north = pair((x, y), "the layout")
    draw_area(ax, area)
    left, low, right, high = area.bounds
    longer = max(right - left, high - low)
    if start is not None:
        _draw_start(ax, *pair(start, "start"), east, north, 0.6 * SMALLEST_DOT * longer)
    size = max(rotor_diameter_m or 0.0, SMALLEST_DOT * longer)
    room = spacing_m if spacing_m is not None and spacing_m > VISIBLE_ROOM * size else 0.0
    if room:
        ax.add_collection(circles(ax, east, north, room, facecolors="none", edgecolors=FAINT, linewidths=0.6))
    others = near_neighbours(area.bounds, neighbours)
    grey = draw_neighbours(ax, *others, size)
    dots = circles(ax, east, north, size, facecolors=PLAIN, edgecolors=INK, linewidths=0.6, zorder=4)
    if wake_loss is not None:
        loss = np.asarray(wake_loss, dtype=np.float64)
        if loss.shape != east.shape:
            raise InputError(f"wake_loss has the shape {loss.shape}; expected a share for each of {len(east)} turbines")
        dots.set_array(100.0 * loss)
        dots.set_cmap(COLOURS)
        lowest, highest = loss_range or (loss_span(loss) if len(loss) else (0.0, 1.0))
        dots.set_clim(100.0 * lowest, 100.0 * highest)
    ax.add_collection(dots)
    about_room = f"circles: {room:.4g} m wide, the least spacing" if room else ""
    legend = "\n".join(filter(None, (about_room, grey)))
    margin = max(0.04 * longer, 0.55 * room)
    left, low, right, high = widened(area.bounds, *others)
    shown = left - margin, low - margin, right + margin, high + margin
    dress_map(ax, shown, area.to_shapely(), crs=area.crs, legend=legend, title=title)
    return dots


def save_layout_picture(
    path: str | os.PathLike[str], problem: "LayoutProblem", solution: "Solution", start: Start | None = None
) -> None:
    """Write a picture of a solution, beside the layout that it started from: x, y (m) and AEP (GWh).

    The ending of the file says which kind: .png, .svg or .pdf. The file appears whole or not at all.
    """
    save_figure(path, layout_figure(problem, solution, start))


def layout_figure(
    problem: "LayoutProblem", solution: Placed, start: Start | None = None, *, name: str | None = None
) -> Figure:
    """The figure that `save_layout_picture` writes: one panel, or two with a start. name: what stands above it.

    AEP is the one that is given (not a number: not known); wake losses are those of the problem's wake model.
    """
    after = problem.farm.simulate(solution.x, solution.y)
    panels = [("optimised" if start else _turbines(problem, solution), solution.x, solution.y, after, solution.aep_gwh)]
    if start is not None:
        x, y = pair(start[:2], "start")
        panels.insert(0, ("start", x, y, problem.farm.simulate(x, y), float(start[2])))
        name = name or _headline(problem, solution, start)
    losses = np.concatenate([simulation.wake_loss for *_, simulation, _ in panels])
    neighbours, bounds = neighbours_of(problem.farm), problem.area.bounds
    figure, axes, across = _panels(widened(bounds, *near_neighbours(bounds, neighbours)), len(panels))
    for ax, (what, x, y, simulation, aep) in zip(axes, panels, strict=True):
        dots = plot_layout(
            ax,
            problem.area,
            x,
            y,
            wake_loss=simulation.wake_loss,
            loss_range=loss_span(losses),
            rotor_diameter_m=max(t.rotor_diameter_m for t in problem.turbines),
            spacing_m=float(problem.min_distances_m[: problem.n_turbines].min()),
            neighbours=neighbours,
            title=f"{what}\n{_energy(aep)}, wake loss {100 * simulation.total_wake_loss:z.2f} %"
            + _power(problem, solution, aep),
        )
        ax.label_outer()
    shown = shown_bounds(axes[0])
    colour_bar(figure, dots, axes, "wake loss of each turbine, %", location="bottom" if is_wide(shown) else "right")
    fit(figure, axes, map_size(shown), across=across, name=name)
    return figure


def _panels(shown: Bounds, count: int) -> tuple[Figure, list["Axes"], int]:
    """Return a figure with so many maps of the bounds, and how many are side by side: all, unless they are wide."""
    width, height = map_size(shown)
    across, down = (1, count) if width > height else (count, 1)
    figure = new_figure(across * (width + 1.0) + 2.0, down * (height + 1.0) + 2.0)  # roomy; it is made to fit
    return figure, list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat), across


def _energy(aep_gwh: float) -> str:
    return "AEP not known" if np.isnan(aep_gwh) else f"{aep_gwh:.1f} GWh a year"


def _power(problem: "LayoutProblem", solution: Placed, aep_gwh: float) -> str:
    """Return a further line with installed power and capacity factor."""
    planned = sum(turbine.rated_power_mw for turbine in problem.turbines[: len(solution.x)])
    installed = getattr(solution, "installed_mw", None) or planned
    words = yield_words(aep_gwh, installed)
    return f"\n{words}" if words else ""


def _turbines(problem: "LayoutProblem", solution: Placed) -> str:
    """How many there are, which in somebody else's layout may be more or fewer than the problem asks for."""
    count = f"{len(solution.x)} turbines of " if len(solution.x) > 1 else "1 turbine of "
    powers = sorted({t.rated_power_mw for t in problem.turbines})
    return f"{count}{' and '.join(f'{p:g}' for p in powers[:: max(1, len(powers) - 1)])} MW"


def _headline(problem: "LayoutProblem", solution: Placed, start: Start) -> str:
    gain = f" ({100 * (solution.aep_gwh / start[2] - 1):+z.2f} %)" if start[2] > 0 else ""
    return f"{_turbines(problem, solution)}: {start[2]:.1f} to {solution.aep_gwh:.1f} GWh a year{gain}"


def _draw_start(ax: "Axes", from_x: Array, from_y: Array, x: Array, y: Array, size: float) -> None:
    if len(from_x) == len(x):
        lines = np.stack([np.column_stack([from_x, from_y]), np.column_stack([x, y])], axis=1)
        ax.add_collection(LineCollection(list(lines), colors=FAINT, linewidths=0.6, zorder=2))
    marks = circles(ax, from_x, from_y, size, facecolors="white", edgecolors=FAINT, linewidths=0.7, zorder=3)
    ax.add_collection(marks)
