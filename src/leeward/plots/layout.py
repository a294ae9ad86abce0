"""Figures of one layout."""

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.figure import Figure

from leeward import charts
from leeward.capacity import yield_words
from leeward.charts import Array
from leeward.errors import InputError
from leeward.layout import Area, LayoutProblem, Solution
from leeward.plots import ground
from leeward.plots.style import FAINT, INK, PLAIN, colour_bar, new_figure, save_figure

Start = tuple[npt.ArrayLike, npt.ArrayLike, float]


@dataclass(frozen=True)
class PlacedTurbines:
    """Turbines at x, y (m) with their AEP. installed_mw: by default that of the problem's turbines."""

    x: Array
    y: Array
    aep_gwh: float
    installed_mw: float | None = None


Placed = Solution | PlacedTurbines
SMALLEST_CIRCLE = 1.3  # relative to the diameter of a dot; smaller spacing circles are left out


def plot_layout(
    ax: Axes,
    area: Area,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    wake_loss: npt.ArrayLike | None = None,
    loss_range: tuple[float, float] | None = None,
    start: ground.Positions | None = None,
    rotor_diameter_m: float | None = None,
    spacing_m: float | None = None,
    neighbours: ground.Positions | None = None,
    title: str | None = None,
) -> EllipseCollection:
    """Draw a layout in its area, north up, to scale; return the turbines, for a colour bar.

    Data are in metres, ticks in kilometres. wake_loss: fraction of each turbine, shape (turbines,), drawn as colour.
    loss_range: limits of the colour scale. start: x and y of another layout, drawn faintly, with lines to this one if
    it has the same number of turbines. rotor_diameter_m: rotors are to scale, with a minimum size. spacing_m: draw
    circles of this diameter around the turbines, unless they are too small to see; circles touch at minimum spacing.
    neighbours: x and y of existing turbines; nearby ones are drawn in grey.
    """
    east, north = ground.pair((x, y), "the layout")
    ground.draw_area(ax, area)
    longer = ground.longer_side(area.bounds)
    if start is not None:
        _draw_start(ax, *ground.pair(start, "start"), east, north, 0.6 * ground.SMALLEST_DOT * longer)
    size = max(rotor_diameter_m or 0.0, ground.SMALLEST_DOT * longer)
    room = spacing_m if spacing_m is not None and spacing_m > SMALLEST_CIRCLE * size else 0.0
    if room:
        ground.circles(ax, east, north, room, face="none", edge=FAINT, linewidth=0.6)
    grey, shown = ground.draw_neighbours(ax, area.bounds, neighbours, size)
    dots = ground.circles(ax, east, north, size, face=PLAIN, edge=INK, linewidth=0.6, zorder=4)
    if wake_loss is not None:
        loss = np.asarray(wake_loss, dtype=np.float64)
        if loss.shape != east.shape:
            raise InputError(f"wake_loss has the shape {loss.shape}; expected one for each of {len(east)} turbines")
        ground.colour_by_loss(dots, loss, loss_range or charts.loss_range([loss]))
    legend = "\n".join(filter(None, (f"circles: {room:.4g} m wide, the minimum spacing" if room else "", grey)))
    margin = max(0.04 * longer, 0.55 * room)
    ground.finish_map(ax, shown, area.to_shapely(), margin=margin, crs=area.crs, legend=legend, title=title)
    return dots


def save_layout_picture(
    path: str | os.PathLike[str], problem: LayoutProblem, solution: Solution, start: Start | None = None
) -> None:
    """Write a figure of a solution. start: x, y (m) and AEP (GWh) of the start layout, drawn beside it.

    The file extension selects the format: .png, .svg or .pdf. The file is written atomically.
    """
    save_figure(path, layout_figure(problem, solution, start))


def layout_figure(
    problem: LayoutProblem, solution: Placed, start: Start | None = None, *, name: str | None = None
) -> Figure:
    """Return a figure of a layout, with a second panel for its start. name: headline.

    The figure shows the given AEP (NaN if unknown). Wake losses are computed with the problem's wake model.
    """
    panels = [("optimised" if start else _turbines(problem, solution), solution.x, solution.y, solution.aep_gwh)]
    if start is not None:
        panels.insert(0, ("start", *ground.pair(start[:2], "start"), float(start[2])))
        gain = f" ({100 * (solution.aep_gwh / start[2] - 1):+z.2f} %)" if start[2] > 0 else ""
        energies = f"{start[2]:.1f} to {solution.aep_gwh:.1f} GWh a year{gain}"
        name = name or f"{_turbines(problem, solution)}: {energies}"
    simulations = [problem.farm.simulate(x, y) for _, x, y, _ in panels]
    neighbours = ground.neighbours_of(problem.farm)
    *_, bounds = ground.near_neighbours(problem.area.bounds, neighbours)
    width, height = ground.map_size(bounds)
    across, down = (1, len(panels)) if width > height else (len(panels), 1)  # side by side, unless they are wide
    figure = new_figure(across * (width + 1.0) + 2.0, down * (height + 1.0) + 2.0)  # large; `fit` shrinks it
    axes = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    for ax, simulation, (what, x, y, aep) in zip(axes, simulations, panels, strict=True):
        dots = plot_layout(
            ax,
            problem.area,
            x,
            y,
            wake_loss=simulation.wake_loss,
            loss_range=charts.loss_range(each.wake_loss for each in simulations),
            rotor_diameter_m=max(t.rotor_diameter_m for t in problem.turbines),
            spacing_m=float(problem.min_distances_m[: problem.n_turbines].min()),
            neighbours=neighbours,
            title=f"{what}\n{_yield(problem, solution, aep, simulation.total_wake_loss)}",
        )
        ax.label_outer()
    shown = axes[0].viewLim.extents
    colour_bar(figure, dots, axes, "wake loss of each turbine, %", location=ground.bar_side(shown))
    ground.fit(figure, axes, ground.map_size(shown), across=across, name=name)
    return figure


def _yield(problem: LayoutProblem, solution: Placed, aep_gwh: float, wake_loss: float) -> str:
    """Return a line with AEP and wake loss, and a line with installed power and capacity factor."""
    energy = "AEP not known" if np.isnan(aep_gwh) else f"{aep_gwh:.1f} GWh a year"
    planned = sum(turbine.rated_power_mw for turbine in problem.turbines[: len(solution.x)])
    words = yield_words(aep_gwh, getattr(solution, "installed_mw", None) or planned)
    return "\n".join(filter(None, [f"{energy}, wake loss {100 * wake_loss:z.2f} %", words]))


def _turbines(problem: LayoutProblem, solution: Placed) -> str:
    """Return the number of turbines, which may differ from the problem's, and their rated power."""
    count = f"{len(solution.x)} turbines of " if len(solution.x) > 1 else "1 turbine of "
    powers = sorted({t.rated_power_mw for t in problem.turbines})
    return f"{count}{' and '.join(f'{p:g}' for p in powers[:: max(1, len(powers) - 1)])} MW"


def _draw_start(ax: Axes, from_x: Array, from_y: Array, x: Array, y: Array, size: float) -> None:
    if len(from_x) == len(x):
        lines = np.stack([np.column_stack([from_x, from_y]), np.column_stack([x, y])], axis=1)
        ax.add_collection(LineCollection(list(lines), colors=FAINT, linewidths=0.6, zorder=2))
    ground.circles(ax, from_x, from_y, size, face="white", edge=FAINT, linewidth=0.7, zorder=3)
