"""Flow maps: wind speeds between the turbines."""

import math

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from leeward.charts import Array, Bounds
from leeward.errors import InputError
from leeward.layout import Area, LayoutProblem
from leeward.plots import ground
from leeward.plots.style import EVEN, FAINT, INK, Look, colour_bar, new_figure
from leeward.wind import WindFarm
from leeward.wind.flow import Flow

AROUND = 0.08  # margin of the map, as a fraction of the area's longer side
POINTS = 800  # grid points along the longer side; enough to show narrow wakes
POINTS_OF_MEAN = 200  # fewer, because the mean is smoother and takes a thousand times as long
SMALLEST_SPAN = 0.01  # m/s: smaller differences are rounding errors
SLOWEST_SHARE = 0.005  # fraction of the map, just behind rotors, that is slower than the colour scale


def plot_flow(
    ax: Axes,
    at_x: npt.ArrayLike,
    at_y: npt.ArrayLike,
    speed_m_s: npt.ArrayLike,
    *,
    x: npt.ArrayLike = (),
    y: npt.ArrayLike = (),
    area: Area | None = None,
    neighbours: ground.Positions | None = None,
    rotor_diameter_m: float | None = None,
    direction_deg: float | None = None,
    speed_range: tuple[float, float] | None = None,
    title: str | None = None,
) -> QuadMesh:
    """Draw wind speeds (m/s) on a grid, with the turbines at x, y; return the mesh, for a colour bar.

    at_x, at_y, speed_m_s: shape (rows, columns), m and m/s, as from `flow_grid` and `WindFarm.flow`. direction_deg: the
    direction that the wind comes from; rotors are lines across it, and an arrow shows it. Without it, turbines are
    circles. rotor_diameter_m: rotors are to scale, with a minimum size. area: its outline is drawn. neighbours: x and y
    of existing turbines, drawn in grey. speed_range: limits of the colour scale; by default it covers all but the
    slowest 0.5 % of the map. NaN is blank. In .svg and .pdf files the map is a bitmap; the rest are lines and text.
    """
    grid_x, grid_y, speeds = (np.asarray(values, dtype=np.float64) for values in (at_x, at_y, speed_m_s))
    if grid_x.ndim != 2 or not grid_x.shape == grid_y.shape == speeds.shape:
        raise InputError(
            f"at_x, at_y and speed_m_s have the shapes {grid_x.shape}, {grid_y.shape} and {speeds.shape}; expected one "
            "shape (rows, columns)"
        )
    if np.isnan(speeds).all():
        raise InputError("no point of the map has a wind speed: all are outside the grid of the wind, or NaN")
    high = float(np.nanmax(speeds))
    low, high = speed_range or (min(float(np.nanquantile(speeds, SLOWEST_SHARE)), high - SMALLEST_SPAN), high)
    look: Look = {"cmap": EVEN, "vmin": low, "vmax": high, "rasterized": True, "zorder": 0}
    drawn = ax.pcolormesh(grid_x, grid_y, np.ma.masked_invalid(speeds), shading="gouraud", **look)
    shown = _bounds(grid_x, grid_y)
    if area is not None:
        ground.draw_area(ax, area, facecolor="none", linewidth=0.8)
    near_x, near_y, _ = ground.near_neighbours(shown, neighbours)
    size = max(rotor_diameter_m or 0.0, 0.75 * ground.SMALLEST_DOT * ground.longer_side(shown))
    legend = ground.NEIGHBOUR_LEGEND if len(near_x) else ""
    if legend:
        _draw_turbines(ax, near_x, near_y, size, direction_deg, FAINT, FAINT)
    _draw_turbines(ax, *ground.pair((x, y), "the layout"), size, direction_deg, "white", "black")
    crs = None if area is None else area.crs
    ground.finish_map(ax, shown, None, margin=0.0, crs=crs, legend=legend, title=title)
    if direction_deg is not None:
        _draw_wind(ax, direction_deg)
    return drawn


def flow_grid(
    area: Area, points: int = POINTS, around: float = AROUND, neighbours: ground.Positions | None = None
) -> tuple[Array, Array]:
    """Return x and y (m) of a square grid over an area with nearby neighbours; shape (rows, columns).

    points: along the longer side. around: margin, as a fraction of that side.
    """
    *_, shown = ground.near_neighbours(area.bounds, neighbours)
    return ground.grid(ground.widened(shown, around), points)


def flow_figure(
    problem: LayoutProblem,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    direction_deg: float | None = None,
    speed_m_s: float | None = None,
    height_m: float | None = None,
    points: int | None = None,
    threads: int = 1,
    name: str | None = None,
) -> Figure:
    """Return the flow map of a layout for one wind; without direction and speed, the mean weighted by energy.

    See `leeward.wind.flow.Flow`. height_m: above ground (default: hub height). points: along the longer side
    (default: 800, for the mean 200). threads: number of threads.
    """
    if (direction_deg is None) != (speed_m_s is None):
        raise InputError("direction and speed must be given together; give both, or neither for the mean")
    farm, neighbours = problem.farm, ground.neighbours_of(problem.farm)
    flow = WindFarm(farm.site, farm.turbine, farm.wake_model, neighbours=farm.neighbours, threads=threads).flow(x, y)
    points = points or (POINTS_OF_MEAN if direction_deg is None else POINTS)
    at_x, at_y = flow_grid(problem.area, points, neighbours=neighbours)
    speeds, wind = _speeds(flow, at_x, at_y, direction_deg, speed_m_s, height_m)
    shown = _bounds(at_x, at_y)
    size = ground.map_size(shown)
    figure = new_figure(size[0] + 2.0, size[1] + 2.0)  # large; `fit` shrinks it
    ax = figure.subplots()
    drawn = plot_flow(
        ax,
        at_x,
        at_y,
        speeds,
        x=x,
        y=y,
        area=problem.area,
        neighbours=neighbours,
        rotor_diameter_m=max(t.rotor_diameter_m for t in problem.turbines),
        direction_deg=direction_deg,
        title=wind,
    )
    is_open = drawn.norm.vmin is not None and bool(np.nanmin(speeds) < drawn.norm.vmin)
    label = f"wind speed {flow.hub_height_m if height_m is None else height_m:g} m above ground, m/s"
    colour_bar(figure, drawn, ax, label, location=ground.bar_side(shown), is_open=is_open)
    ground.fit(figure, [ax], size, name=name)
    return figure


def _speeds(
    flow: Flow, x: Array, y: Array, direction_deg: float | None, speed_m_s: float | None, height_m: float | None
) -> tuple[Array, str]:
    """Return the wind speeds at x, y (m/s), and a description of the wind."""
    if direction_deg is None or speed_m_s is None:
        words = f"mean over all winds, weighted by energy\n(free wind: {flow.free_mean_speed():.2f} m/s)"
        return flow.mean_speed(x, y, height_m=height_m), words
    speeds = flow.speed(x, y, direction_deg=direction_deg, speed_m_s=speed_m_s, height_m=height_m)
    return speeds, f"wind from {direction_deg % 360:g}°, {speed_m_s:g} m/s"


def _bounds(x: Array, y: Array) -> Bounds:
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


def _draw_turbines(
    ax: Axes, x: Array, y: Array, size: float, direction_deg: float | None, disc: str, rotor: str
) -> None:
    """Draw turbines as circles (colour: disc), or as rotors across the wind (colour: rotor)."""
    if direction_deg is None:
        ground.circles(ax, x, y, size, face=disc, edge=INK, linewidth=0.7, zorder=4)
        return
    # seen from above, a rotor is a line across the wind
    angle = math.radians(direction_deg)
    half = 0.5 * size * np.array([math.cos(angle), -math.sin(angle)])
    middle = np.column_stack([x, y])
    lines = np.stack([middle - half, middle + half], axis=1)
    ax.add_collection(LineCollection(list(lines), colors="white", linewidths=2.2, zorder=4))
    ax.add_collection(LineCollection(list(lines), colors=rotor, linewidths=1.2, zorder=4.1))


def _draw_wind(ax: Axes, direction_deg: float) -> None:
    """Draw an arrow in the direction of the wind, in the upper left corner."""
    angle = math.radians(direction_deg)
    along, up = -11.0 * math.sin(angle), -11.0 * math.cos(angle)
    arrow = ground.draw_arrow(ax, (0, 1), (15.0 - along, -15.0 - up), (15.0 + along, -15.0 + up), "black")
    arrow.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
