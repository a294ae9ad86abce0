"""The distribution of AEP over the seeds, by farm and turbine type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from leeward.capacity import by_capacity_factor, capacity_factor
from leeward.charts import SAME_SHARE, Array, above_median, colours_apart, shortened
from leeward.errors import InputError
from leeward.plots.style import FAINT, INK, LEGEND, SMALL, TEXT, TINY, Look, literal, new_figure, set_style, show_values

BOX_FROM = 5  # smallest number of seeds for a box
GOLDEN = (5.0**0.5 - 1.0) / 2.0  # multiples of it, modulo 1, are evenly spread
LETTERS_PER_INCH = 14.0
LEGEND_COLUMNS = 4
LONGEST_NAME = 32  # characters: longer names would push the axes off the figure
NAMED_BEST = 12  # with at most this many cells, the best seed of each is labelled
BY_FACTOR = "capacity factor, %\n(installed power of types\ndiffers by more than 0.5 %)"
NAMED_WIDTH = 0.44  # width of a cell that has room for the label of its best seed, inches


@dataclass(frozen=True)
class AepCell:
    """The results of one farm with one turbine type: AEP (GWh) by seed, and installed power, None if unknown."""

    farm: str
    turbine: str
    aep_gwh: Mapping[int, float]
    installed_mw: float | None = None

    @property
    def best_seed(self) -> int:
        return max(self.aep_gwh, key=self.aep_gwh.__getitem__)


def plot_aep_distribution(
    ax: Axes, cells: Sequence[AepCell], *, relative: bool = False, legend: bool = True, title: str | None = None
) -> None:
    """Plot a point for each seed, by farm and turbine type; mark the best; add a box from five seeds on.

    Boxes show the quartiles and the median, whiskers the minimum and maximum. relative: plot per cent above the median
    of each cell, to compare seeds of farms that differ much. One farm: the axis shows its types. Several farms: the
    axis shows the farms, with their types side by side in different colours.
    """
    shown = [cell for cell in cells if cell.aep_gwh]
    if not shown:
        raise InputError("no AEP to draw; expected results with a known AEP")
    farms = list(dict.fromkeys(cell.farm for cell in shown))
    types = list(dict.fromkeys(cell.turbine for cell in shown))
    colours = dict(zip(types, colours_apart(len(types)), strict=True))
    by_factor = _is_by_factor(shown)
    groups, beside = (farms, len(types)) if len(farms) > 1 else (types, 1)
    step = 0.84 / beside
    is_named = not relative and len(shown) <= NAMED_BEST and step * _width(ax) / len(groups) >= 0.8 * NAMED_WIDTH
    for cell in shown:
        middle = float(types.index(cell.turbine))
        if len(farms) > 1:
            middle = farms.index(cell.farm) + (middle - 0.5 * (beside - 1)) * step
        values = _values(cell, by_factor, relative)
        named = cell.best_seed if is_named else None
        _draw_cell(ax, values, middle, min(0.8 * step, 0.4), colours[cell.turbine], named)
    _label_groups(ax, [shortened(group, LONGEST_NAME) for group in groups])
    measure = BY_FACTOR if by_factor else "AEP, GWh"
    ax.set_ylabel("deviation from the\nmedian of the seeds, %" if relative else measure, **TEXT)
    highest = max(max(cell.aep_gwh.values()) for cell in shown)
    show_values(ax, SAME_SHARE * (100.0 if relative or by_factor else highest))
    lines = _add_legend(ax, colours if len(farms) > 1 else {}) if legend else 0
    if title is not None:
        ax.set_title(literal(title), pad=6.0 + 1.9 * SMALL * lines, **TEXT)


def aep_distribution_figure(cells: Sequence[AepCell], title: str | None = None) -> Figure:
    """Return a figure of AEP over the seeds, with a second panel of deviations if there are several cells.

    title: by default the name of the farm if there is only one.
    """
    shown = [cell for cell in cells if cell.aep_gwh]
    farms = {cell.farm for cell in shown}
    if title is None and len(farms) == 1:
        title = shortened(farms.pop(), LONGEST_NAME)
    per_cell = NAMED_WIDTH if len(shown) <= NAMED_BEST else 0.085
    width = min(max(2.0 + per_cell * len(shown), 3.5), 14.0)
    if len(shown) <= 1:
        figure = new_figure(width, 3.4)
        plot_aep_distribution(figure.subplots(), shown, title=title)
        return figure
    figure = new_figure(width, 5.0)
    above, below = figure.subplots(2, 1, sharex=True)
    plot_aep_distribution(above, shown, title=title)
    plot_aep_distribution(below, shown, relative=True, legend=False)
    above.tick_params(axis="x", labelbottom=False)
    figure.align_ylabels()
    return figure


def _values(cell: AepCell, by_factor: bool, relative: bool) -> Array:
    """Return the values of the seeds of a cell: AEP or capacity factor, or their deviation from the median."""
    values = np.array(list(cell.aep_gwh.values()))
    values = values * (100.0 * capacity_factor(1.0, cell.installed_mw)) if by_factor else values
    return above_median(values) if relative else values


def _draw_cell(ax: Axes, values: Array, middle: float, width: float, colour: str, named: int | None) -> None:
    """Draw one cell. named: the seed to label the best value with."""
    if len(values) >= BOX_FROM:
        thin = {"color": colour, "linewidth": 0.7}
        parts: Look = {"boxprops": thin, "whiskerprops": thin, "capprops": thin}
        parts |= {"medianprops": {"color": INK, "linewidth": 0.9}, "whis": (0, 100), "showfliers": False}
        ax.boxplot([values], positions=[middle], widths=width, manage_ticks=False, zorder=2, **parts)
    # spread the points sideways, in a fixed pattern
    aside = ((np.arange(len(values)) * GOLDEN) % 1.0 - 0.5) * 0.7 * width * (len(values) > 1)
    small = 9.0 if len(values) <= 12 else 4.0
    ax.scatter(middle + aside, values, s=small, color=colour, alpha=0.65, linewidths=0, zorder=3)
    best = int(np.argmax(values))
    place = middle + aside[best], values[best]
    ax.scatter(*place, s=24, marker="*", color=colour, edgecolors=INK, linewidths=0.5, zorder=4)
    if named is not None:
        above: Look = {"xytext": (0, 5), "textcoords": "offset points", "ha": "center"}
        ax.annotate(f"seed {named}", place, fontsize=TINY, color=INK, **above)


def _label_groups(ax: Axes, names: Sequence[str]) -> None:
    """Write the names of farms or types below the axis, rotated if they are long; draw lines between the groups."""
    for line in range(1, len(names)):
        ax.axvline(line - 0.5, color=FAINT, linewidth=0.4, zorder=0)
    ax.set_xlim(-0.55, len(names) - 0.45)
    crowded = len(names) * (max(map(len, names)) + 2) > LETTERS_PER_INCH * _width(ax)
    look: Look = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    ax.set_xticks(range(len(names)), [literal(name) for name in names], **look)
    set_style(ax, None)
    ax.tick_params(axis="x", length=0)


def _is_by_factor(cells: Sequence[AepCell]) -> bool:
    """Return whether to draw capacity factors, because the installed power of a farm's types differs."""
    farms = {cell.farm for cell in cells}
    return all(cell.installed_mw is not None for cell in cells) and any(
        by_capacity_factor(cell.installed_mw for cell in cells if cell.farm == farm) for farm in farms
    )


def _width(ax: Axes) -> float:
    """Return the approximate width of the axes in inches."""
    return float(ax.bbox.width / ax.figure.dpi)


def _add_legend(ax: Axes, colours: Mapping[str, str]) -> int:
    """Add the legend above the axes and return its number of lines."""
    sign: Look = {"linestyle": "none", "marker": "o", "markersize": 4}
    names = ((literal(shortened(name, LONGEST_NAME)), colour) for name, colour in colours.items())
    handles = [Line2D([], [], label=name, color=colour, **sign) for name, colour in names]
    sign |= {"marker": "*", "markersize": 6, "markerfacecolor": "white", "markeredgecolor": INK}
    handles.append(Line2D([], [], label="best seed", **sign))
    letters = 5 + max(len(str(handle.get_label())) for handle in handles)  # five for marker and gap
    columns = min(max(int(LETTERS_PER_INCH * _width(ax) / letters), 1), LEGEND_COLUMNS, len(handles))
    look = {**LEGEND, "handletextpad": 0.2, "columnspacing": 1.0}
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, **look)
    return -(-len(handles) // columns)
