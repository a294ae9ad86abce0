"""Figures of a comparison of layouts: a heat map of regrets, and the Pareto front of two scenarios."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from leeward.charts import AEP as ENERGY, CAPACITY_FACTOR, Array, Quantity, colours_apart, shortened
from leeward.plots.style import (
    EVEN,
    INK,
    LEGEND,
    SMALL,
    TEXT,
    TINY,
    Look,
    PlainNumbers,
    colour_bar,
    literal,
    new_figure,
    set_style,
)
from leeward.study.comparison import CRITERIA, Comparison

CELL = 0.42  # width of a cell with a number, inches
LONGEST_NAME = 32
MOST_COLUMNS = 16  # with at most this many scenarios, and names of all layouts, each cell has its number
MOST_NAMES = 36  # with at most this many layouts or scenarios, each has its name
NAMED_FRONT = 8  # with at most this many layouts on the front, each has its name
NO_GROUP = "layouts"
MARKS = dict(zip(CRITERIA, "*sD^", strict=True))
WORDS = {
    "weighted_mean": "highest weighted mean",
    "worst_case": "best worst case",
    "cvar": "best CVaR",
    "maximum_regret": "lowest maximum regret",
}


def regret_figure(comparison: Comparison, title: str | None = None) -> Figure:
    """Return a heat map of the regret of each layout in each scenario."""
    layouts, scenarios = comparison.regret.shape
    figure = new_figure(_between(3.4 + CELL * scenarios, 4.6, 11.0), _between(1.6 + 0.24 * layouts, 2.6, 10.0))
    ax = figure.subplots()
    _with_bar(figure, ax, plot_regret(ax, comparison, title=title))
    return figure


def pareto_figure(comparison: Comparison, first: int, second: int, title: str | None = None) -> Figure:
    """Return the layouts in two scenarios, with their Pareto front. first, second: columns of the scenarios."""
    figure = new_figure(5.0, 5.0)
    plot_pareto(figure.subplots(), comparison, first, second, title=title)
    return figure


def comparison_figure(comparison: Comparison, pair: tuple[int, int] | None = None, title: str | None = None) -> Figure:
    """Return the heat map and, beside it, the Pareto front of two scenarios. pair: their columns."""
    if pair is None:
        return regret_figure(comparison, title)
    layouts, scenarios = comparison.regret.shape
    left = _between(3.4 + CELL * scenarios, 4.6, 9.0)
    figure = new_figure(left + 4.6, _between(1.6 + 0.24 * layouts, 4.8, 10.0))
    axes = figure.subplots(1, 2, width_ratios=[left, 4.6], gridspec_kw={"wspace": 0.08})
    _with_bar(figure, axes[0], plot_regret(axes[0], comparison, title="regret"))
    plot_pareto(axes[1], comparison, *pair, title="Pareto front of two scenarios")
    if title:
        figure.suptitle(literal(title), color=INK, fontsize=SMALL + 2, fontweight="bold")
    return figure


def plot_regret(ax: Axes, comparison: Comparison, *, title: str | None = None) -> AxesImage:
    """Draw regrets in per cent of the best value of the scenario; return the image, for a colour bar.

    Rows are layouts and columns are scenarios. A small matrix has the numbers in its cells.
    """
    percent = 100.0 * comparison.relative_regret
    drawn = ax.imshow(percent, cmap=f"{EVEN}_r", vmin=0.0, vmax=max(float(percent.max()), 0.01), aspect="auto")
    drawn.set_interpolation("nearest")
    _name_ticks(ax, comparison)
    if percent.shape[0] <= MOST_NAMES and percent.shape[1] <= MOST_COLUMNS:
        for (row, column), value in np.ndenumerate(percent):
            colour = "white" if value > 0.55 * percent.max() else INK
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=TINY, color=colour)
    if title is not None:
        ax.set_title(literal(title), **TEXT)
    return drawn


def plot_pareto(ax: Axes, comparison: Comparison, first: int, second: int, *, title: str | None = None) -> None:
    """Draw the layouts by their values in two scenarios. Colours: the source of the layout, the text before a colon.

    A line joins the Pareto front. Marks show the layouts that the criteria select.
    """
    quantity = quantity_of(comparison)
    x, y = (quantity_values(comparison)[:, column] for column in (first, second))
    names = comparison.matrix.layouts
    groups = [name.partition(":")[0] if ":" in name else NO_GROUP for name in names]
    sources = list(dict.fromkeys(groups))
    handles: list[Line2D] = []
    for source, colour in zip(sources, colours_apart(len(sources)), strict=True):
        of = [group == source for group in groups]
        (dots,) = ax.plot(x[of], y[of], "o", color=colour, markersize=5, alpha=0.8, markeredgewidth=0, zorder=3)
        dots.set_label(literal(shortened(source, LONGEST_NAME)))
        handles.append(dots)
    front = comparison.front(first, second)
    (line,) = ax.plot(x[front], y[front], "-", color=INK, linewidth=0.9, zorder=2, label="Pareto front")
    handles.append(line)
    for criterion, rows in comparison.selected.items():
        look: Look = {"markerfacecolor": "none", "markeredgecolor": INK}
        look |= {"markersize": 9.0 + 3.0 * list(CRITERIA).index(criterion), "markeredgewidth": 0.8, "zorder": 4}
        (mark,) = ax.plot(x[list(rows)], y[list(rows)], linestyle="none", marker=MARKS[criterion], **look)
        handles.append(Line2D([], [], linestyle="none", marker=MARKS[criterion], **{**look, "markersize": 7}))
        handles[-1].set_label(WORDS[criterion])
        mark.set_gid(criterion)
    if len(front) <= NAMED_FRONT:
        _name_front(ax, x[front], y[front], [names[row] for row in front])
    set_style(ax, title)
    ax.margins(0.14)
    for axis, column in ((ax.xaxis, first), (ax.yaxis, second)):
        axis.set_major_formatter(PlainNumbers())
        axis.set_major_locator(MaxNLocator(nbins=5))
        scenario = shortened(comparison.matrix.scenarios[column], LONGEST_NAME)
        axis.set_label_text(literal(f"{quantity.name} in “{scenario}”, {quantity.unit}"), TEXT)
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), borderaxespad=5.0, ncols=2, **LEGEND)


def quantity_of(comparison: Comparison) -> Quantity:
    """Return the quantity by which layouts are compared."""
    return CAPACITY_FACTOR if comparison.is_by_factor else ENERGY


def quantity_values(comparison: Comparison) -> Array:
    """Return the values in the unit of the quantity."""
    return comparison.values * quantity_of(comparison).scale


def _name_front(ax: Axes, x: Array, y: Array, names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        look: Look = {"textcoords": "offset points", "fontsize": TINY, "color": INK}
        is_right = x[number] > 0.5 * sum(ax.get_xlim())
        look |= {"xytext": (-9, -9) if is_right else (9, 9), "ha": "right" if is_right else "left"}
        ax.annotate(literal(shortened(name, LONGEST_NAME)), (x[number], y[number]), **look)


def _name_ticks(ax: Axes, comparison: Comparison) -> None:
    """Write the names of layouts and scenarios beside the heat map, or only numbers if there are many."""
    matrix = comparison.matrix
    ax.tick_params(colors=INK, labelsize=SMALL, length=0)
    ax.spines[:].set_visible(False)
    for axis, names, what in ((ax.yaxis, matrix.layouts, "layout"), (ax.xaxis, matrix.scenarios, "scenario")):
        if len(names) <= MOST_NAMES:
            axis.set_ticks(range(len(names)), [literal(shortened(name, LONGEST_NAME)) for name in names])
        else:
            axis.set_major_locator(MaxNLocator(nbins=8, integer=True))
            axis.set_label_text(f"{what}, in the order of the study", TEXT)
    crowded = sum(len(name) + 2 for name in matrix.scenarios) > 14 * CELL * max(len(matrix.scenarios), 6)
    if crowded and len(matrix.scenarios) <= MOST_NAMES:
        for label in ax.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")


def _with_bar(figure: Figure, ax: Axes, drawn: AxesImage) -> None:
    colour_bar(figure, drawn, ax, "regret, % of the best layout")


def _between(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
