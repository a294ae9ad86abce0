"""Wind roses: how often the wind blows from where, and how fast."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.projections.polar import PolarAxes
from matplotlib.ticker import MaxNLocator, NullFormatter

from leeward.errors import InputError
from leeward.plots.style import EVEN, INK, LABEL, SMALL, TITLE_LINE, literal, new_figure, wrapped
from leeward.wind import wind_rose
from leeward.wind.rose import SPEED_CLASSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leeward.wind import Site

Array = npt.NDArray[np.float64]

ROSE_INCHES = 3.0  # about how wide it is
COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


def plot_wind_rose(
    ax: "Axes",
    site: "Site",
    *,
    sectors: int | None = None,
    speed_classes: Sequence[float] = SPEED_CLASSES,
    title: str | None = None,
) -> None:
    """Draw how often the wind blows from each sector, by speed class, on polar axes, north up.

    The site may be of any kind; sectors, speed_classes: as in `wind_rose`.
    """
    if not isinstance(ax, PolarAxes):
        raise InputError(
            'a wind rose needs polar axes; make them with figure.subplots(subplot_kw={"projection": "polar"})'
        )
    rose = 100.0 * wind_rose(site, sectors, speed_classes).frequency
    count, classes = rose.shape
    angles = 2.0 * np.pi * np.arange(count) / count
    scale = matplotlib.colormaps[EVEN]
    floor = np.zeros(count)
    for i in range(classes):
        if not rose[:, i].any():
            continue
        colour = scale(1.0 - i / max(classes - 1, 1))
        ax.bar(
            angles,
            rose[:, i],
            width=0.9 * 2.0 * np.pi / count,
            bottom=floor,
            color=colour,
            edgecolor="white",
            linewidth=0.3,
            label=_class_name(speed_classes, i),
            zorder=2,
        )
        floor += rose[:, i]
    _dress_rose(ax, floor, title)
    rest = 100.0 - float(rose.sum())
    if rest >= 0.05:
        ax.text(
            0.5,
            -0.12,
            f"{rest:.1f} % of the time is not covered by the site's conditions",
            transform=ax.transAxes,
            ha="center",
            va="top",
            fontsize=SMALL,
            color=INK,
        )


def wind_rose_figure(site: "Site", title: str | None = None) -> Figure:
    lines = None if title is None else wrapped(title, ROSE_INCHES)
    more = 0 if lines is None else lines.count("\n")
    figure = new_figure(4.6, 3.6 + more * TITLE_LINE)
    plot_wind_rose(figure.subplots(subplot_kw={"projection": "polar"}), site, title=lines)
    return figure


def _dress_rose(ax: PolarAxes, heights: Array, title: str | None) -> None:
    ax.set_theta_zero_location("N")
    ax.set_theta_direction(-1)
    ax.set_xticks(np.deg2rad(np.arange(0.0, 360.0, 45.0)), COMPASS)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
    ax.yaxis.set_major_formatter(NullFormatter())
    # the circles' numbers stand where the wind seldom comes from
    between = np.arange(22.5, 360.0, 45.0)  # clear of the letters of the compass
    nearest = heights[np.round(between * len(heights) / 360.0).astype(int) % len(heights)]
    place = float(np.deg2rad(between[np.argmin(nearest)]))
    for ring in ax.yaxis.get_majorticklocs():
        if 0.0 < ring <= ax.get_rmax():
            ax.annotate(
                f"{ring:g} %",
                (place, ring),
                ha="center",
                va="center",
                fontsize=SMALL,
                color=INK,
                zorder=4,  # above the bars, which would hide the numbers of a wind that is much the same all round
                path_effects=[withStroke(linewidth=2.0, foreground="white")],
            )
    ax.tick_params(colors=INK, labelsize=SMALL)
    ax.grid(linewidth=0.4)
    ax.set_axisbelow(True)
    ax.spines["polar"].set_linewidth(0.4)
    if title is not None:
        ax.set_title(literal(title), color=INK, fontsize=LABEL)
    ax.legend(
        title="wind speed, m/s",
        title_fontsize=SMALL,
        fontsize=SMALL,
        labelcolor=INK,
        loc="center left",
        bbox_to_anchor=(1.1, 0.5),
        frameon=False,
        reverse=True,
    )


def _class_name(begins: Sequence[float], i: int) -> str:
    return f"{begins[i]:g} to {begins[i + 1]:g}" if i + 1 < len(begins) else f"{begins[i]:g} or more"
