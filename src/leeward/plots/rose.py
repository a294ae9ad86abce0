"""Wind roses."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.projections.polar import PolarAxes

from leeward.charts import Array, Scale, class_name, colour, uncovered
from leeward.errors import InputError
from leeward.plots.style import INK, LEGEND, SMALL, TEXT, TITLE_LINE, Look, literal, new_figure, wrapped
from leeward.wind import Site, wind_rose
from leeward.wind.rose import SPEED_CLASSES

ROSE_INCHES = 3.0  # approximate width
COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


def plot_wind_rose(
    ax: Axes,
    site: Site,
    *,
    sectors: int | None = None,
    speed_classes: Sequence[float] = SPEED_CLASSES,
    title: str | None = None,
) -> None:
    """Draw the wind rose of a site on polar axes. sectors, speed_classes: see `leeward.wind.wind_rose`."""
    if not isinstance(ax, PolarAxes):
        raise InputError(
            'a wind rose needs polar axes; make them with figure.subplots(subplot_kw={"projection": "polar"})'
        )
    rose = wind_rose(site, sectors, speed_classes)
    angles, width = np.deg2rad(rose.directions), 0.9 * 2.0 * np.pi / len(rose.directions)
    floor = np.zeros(len(angles))
    for level, shares in enumerate(100.0 * rose.frequency.T):
        if shares.any():
            fill = colour(level / max(len(speed_classes) - 1, 1))
            name = class_name(speed_classes, level)
            look: Look = {"color": fill, "edgecolor": "white", "linewidth": 0.3, "zorder": 2, "label": name}
            ax.bar(angles, shares, width=width, bottom=floor, **look)
            floor += shares
    _style_rose(ax, floor, title)
    if rest := uncovered(rose):
        below: Look = {"ha": "center", "va": "top", "transform": ax.transAxes}
        ax.text(0.5, -0.12, rest, fontsize=SMALL, color=INK, **below)


def wind_rose_figure(site: Site, title: str | None = None) -> Figure:
    """Return a figure of the wind rose of a site."""
    lines = wrapped(title or "", ROSE_INCHES)
    figure = new_figure(4.6, 3.6 + lines.count("\n") * TITLE_LINE)
    plot_wind_rose(figure.subplots(subplot_kw={"projection": "polar"}), site, title=lines or None)
    return figure


def _style_rose(ax: PolarAxes, heights: Array, title: str | None) -> None:
    ax.set_theta_zero_location("N")
    ax.set_theta_direction(-1)
    ax.set_xticks(np.deg2rad(np.arange(0.0, 360.0, 45.0)), COMPASS)
    rings = Scale(0.0, float(heights.max(initial=0.0)) or 100.0, 0.0, 1.0).ticks(4)[1:]
    ax.set_yticks(rings, [""] * len(rings))
    # write the numbers of the circles in a direction with little wind
    between = np.arange(22.5, 360.0, 45.0)  # clear of the compass letters
    nearest = heights[np.round(between * len(heights) / 360.0).astype(int) % len(heights)]
    place = float(np.deg2rad(between[np.argmin(nearest)]))
    halo = [withStroke(linewidth=2.0, foreground="white")]
    for ring in rings:  # zorder: above the bars, which would hide the numbers
        style: Look = {"fontsize": SMALL, "color": INK, "zorder": 4, "path_effects": halo}
        ax.annotate(f"{ring:g} %", (place, ring), ha="center", va="center", **style)
    ax.tick_params(colors=INK, labelsize=SMALL)
    ax.grid(linewidth=0.4)
    ax.set_axisbelow(True)
    ax.spines["polar"].set_linewidth(0.4)
    if title is not None:
        ax.set_title(literal(title), **TEXT)
    beside: Look = {"loc": "center left", "bbox_to_anchor": (1.1, 0.5), "reverse": True}
    ax.legend(title="wind speed, m/s", title_fontsize=SMALL, **beside, **LEGEND)
