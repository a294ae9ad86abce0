"""Wind roses: how often the wind blows from where, and how fast."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from leeward.errors import InputError
from leeward.plots.style import EVEN, INK, LABEL, SMALL, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leeward.wind import Site
    from leeward.wind.conditions import Conditions

Array = npt.NDArray[np.float64]

SECTORS = 12
MOST_SECTORS = 36
SPEED_CLASSES = (0.0, 5.0, 10.0, 15.0, 20.0, 25.0)  # m/s; the last one is open
COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


def wind_rose(site: "Site", sectors: int | None = None, speed_classes: Sequence[float] = SPEED_CLASSES) -> Array:
    """Share of the time by sector and speed class, shape (sectors, classes); the first sector is centred on north.

    sectors: by default one for each direction of the site, where these are evenly spaced and at most 36, else 12.
    speed_classes: where each begins, m/s; the last one is open. Directions and speeds that are evenly spaced are the
    middles of bins, whose share is spread evenly over them: of a bin that lies across two classes each has its part.
    """
    conditions = site.conditions
    count = _sectors(conditions) if sectors is None else sectors
    if not (isinstance(count, int) and count >= 1):
        raise InputError(f"sectors is {sectors!r}; expected a whole number, 1 or more")
    begins = np.asarray(speed_classes, dtype=np.float64)
    if begins.ndim != 1 or len(begins) < 1 or (np.diff(begins) <= 0).any():
        raise InputError(f"speed_classes are {list(speed_classes)!r:.80}; expected rising speeds in m/s")
    rose = np.zeros((count, len(begins)))
    by_direction = _by_direction(conditions, count)
    by_speed = [_by_speed(row, begins) for row in np.unique(conditions.speed, axis=0)]
    if len(by_speed) == 1:  # one set of speeds for all directions
        return np.asarray(by_direction.T @ (conditions.weight @ by_speed[0]))
    for i in range(len(conditions.direction)):
        rose += np.outer(by_direction[i], conditions.weight[i] @ _by_speed(conditions.speed[i], begins))
    return rose


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
    rose = 100.0 * wind_rose(site, sectors, speed_classes)
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
            f"{rest:.1f} % of the time is in none of the site's bins",
            transform=ax.transAxes,
            ha="center",
            va="top",
            fontsize=SMALL,
            color=INK,
        )


def wind_rose_figure(site: "Site", title: str | None = None) -> Figure:
    figure = new_figure(4.6, 3.6)
    plot_wind_rose(figure.subplots(subplot_kw={"projection": "polar"}), site, title=title)
    return figure


def _dress_rose(ax: PolarAxes, heights: Array, title: str | None) -> None:
    ax.set_theta_zero_location("N")
    ax.set_theta_direction(-1)
    ax.set_xticks(np.deg2rad(np.arange(0.0, 360.0, 45.0)), COMPASS)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %" if value else ""))
    # the circles' numbers stand where the wind seldom comes from
    calmest = float(np.argmin(heights + np.roll(heights, 1)) - 0.5) * 360.0 / len(heights)
    ax.set_rlabel_position(calmest)
    ax.tick_params(colors=INK, labelsize=SMALL)
    ax.grid(linewidth=0.4)
    ax.set_axisbelow(True)
    ax.spines["polar"].set_linewidth(0.4)
    if title is not None:
        ax.set_title(title, color=INK, fontsize=LABEL)
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


def _sectors(conditions: "Conditions") -> int:
    directions = conditions.direction
    return len(directions) if len(directions) <= MOST_SECTORS and _even_circle(directions) else SECTORS


def _even_circle(directions: Array) -> bool:
    """Whether the directions go round the circle in equal steps."""
    steps = np.diff(np.r_[directions, directions[0] + 360.0])
    return bool(len(directions) > 1 and np.allclose(steps, 360.0 / len(directions)))


def _by_direction(conditions: "Conditions", sectors: int) -> Array:
    """Which share of each direction falls into each sector; shape (directions, sectors)."""
    directions, width = conditions.direction, 360.0 / sectors
    half = 180.0 / len(directions) if _even_circle(directions) else 0.0
    centres = np.arange(sectors) * width
    away = (directions[:, None] - centres + 180.0) % 360.0 - 180.0
    if half == 0.0:  # points: one sector each, that which begins at or before them
        return np.asarray((away >= -0.5 * width) & (away < 0.5 * width), dtype=np.float64)
    overlap = np.zeros((len(directions), sectors))
    for turn in (-360.0, 0.0, 360.0):  # a wide bin may reach a sector from either side
        low = np.maximum(away + turn - half, -0.5 * width)
        high = np.minimum(away + turn + half, 0.5 * width)
        overlap += np.maximum(high - low, 0.0)
    return np.asarray(overlap / (2.0 * half))


def _by_speed(speeds: Array, begins: Array) -> Array:
    """Which share of each speed falls into each class; shape (speeds, classes)."""
    ends = np.r_[begins[1:], np.inf]
    steps = np.diff(speeds)
    half = 0.5 * float(steps[0]) if len(steps) and np.allclose(steps, steps[0]) and steps[0] > 0 else 0.0
    column = speeds[:, None]
    if half == 0.0:
        return np.asarray((column >= begins) & (column < ends), dtype=np.float64)
    low, high = np.maximum(column - half, begins), np.minimum(column + half, ends)
    return np.asarray(np.maximum(high - low, 0.0) / (2.0 * half))
