"""Figures of a study: losses over the scenarios, the build-out of one scenario, and power series."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from leeward.charts import LOST_COLOURS, Array, apart, colours_apart, lost_power, shortened
from leeward.errors import InputError
from leeward.plots import ground
from leeward.plots.style import (
    EVEN,
    FAINT,
    INK,
    LEGEND,
    SEA,
    TEXT,
    TINY,
    Look,
    PlainNumbers,
    colour_bar,
    literal,
    new_figure,
    set_style,
)

LOSSES = {"internal": "internal", "external": "external", "all": "total"}  # name of the loss in each case
CASE_WORDS = {
    "all": "all wakes",
    "external": "external wakes only",
    "internal": "internal wakes only",
    "none": "no wakes",
}
FEW_TARGETS = 6  # with at most this many layouts, each has its own colour
EQUAL = 0.02  # losses that differ by less count as equal, per cent
LEAST_SPAN = 1.0  # span of an axis of equal losses, per cent
LONG_SERIES = 400  # a series with more steps has a rolling mean
LONGEST_NAME = 40
MOST_BINS, FEWEST_BINS = 41, 9
MOST_MARKS = 200  # with at most this many scenarios, each has a mark below the bars
TARGET = "#D55E00"


# --- losses ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Losses:
    """The wake losses of one layout over the scenarios, as fractions of the gross yield.

    by_case: the loss in each scenario, by case. weights: of the scenarios.
    """

    label: str
    by_case: Mapping[str, Array]
    weights: Array


def losses_figure(layouts: Sequence[Losses], title: str | None = None) -> Figure:
    """Return histograms of the internal, external and total loss over the scenarios, in the share of the weight.

    Up to six layouts have a colour each. More are shown together, each with the same weight.
    """
    known = [case for case in LOSSES if layouts and all(case in each.by_case for each in layouts)]
    if not known:
        raise InputError(
            "no losses to draw; expected results with one of the cases internal, external and all; add them to `cases` "
            "in the study file"
        )
    shown = list(layouts) if len(layouts) <= FEW_TARGETS else [_pooled(layouts, known)]
    figure = new_figure(5.6, 1.0 + 1.5 * len(known))
    axes = figure.subplots(len(known), 1, squeeze=False)[:, 0]
    for ax, case in zip(axes, known, strict=True):
        plot_losses(ax, shown, case)
    figure.suptitle(literal(title or ""), **TEXT)
    axes[-1].set_xlabel("wake loss, % of the gross yield", **TEXT)
    figure.supylabel("share of the weight of the scenarios, %", **TEXT)
    if len(shown) > 1:
        colours = colours_apart(len(shown))
        handles = [
            Line2D([], [], color=colour, label=literal(shortened(each.label, LONGEST_NAME)))
            for each, colour in zip(shown, colours, strict=True)
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2, **LEGEND)
    return figure


def plot_losses(ax: Axes, layouts: Sequence[Losses], case: str) -> None:
    """Draw a weighted histogram of the loss in one case, a line at the weighted mean, and a mark per scenario."""
    percent = [100.0 * each.by_case[case] for each in layouts]
    shares = [each.weights / each.weights.sum() for each in layouts]
    edges = _bins(np.concatenate(percent))
    means = []
    for values, share, colour in zip(percent, shares, colours_apart(len(layouts)), strict=True):
        heights, _ = np.histogram(values, bins=edges, weights=100.0 * share)
        ax.stairs(heights, edges, fill=True, color=colour, alpha=0.25)
        ax.stairs(heights, edges, color=colour, linewidth=1.0)
        means.append(float(values @ share))
        ax.axvline(means[-1], color=colour, linewidth=1.2, linestyle="--")
        if len(values) <= MOST_MARKS:
            ax.plot(
                values,
                np.full(len(values), -0.04),
                "|",
                color=colour,
                transform=ax.get_xaxis_transform(),
                clip_on=False,
            )
    set_style(ax, None)
    ax.xaxis.set_major_formatter(PlainNumbers())
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(bottom=0.0)
    ax.tick_params(axis="x", pad=7)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=4))
    words = f"{LOSSES[case]} loss" + (f", mean {means[0]:.2f} %" if len(means) == 1 else "")
    ax.set_title(words, loc="left", **TEXT)


def _pooled(layouts: Sequence[Losses], cases: Sequence[str]) -> Losses:
    """Return the losses of many layouts as one distribution."""
    return Losses(
        f"{len(layouts)} layouts",
        {case: np.concatenate([each.by_case[case] for each in layouts]) for case in cases},
        np.concatenate([each.weights / each.weights.sum() for each in layouts]),
    )


def _bins(percent: Array) -> Array:
    """Return the edges of the bins of a histogram. Equal values get bins around them, not a magnified axis."""
    low, high = float(percent.min()), float(percent.max())
    margin = 0.5 * LEAST_SPAN if high - low < EQUAL else 0.02 * (high - low)
    number = min(max(math.isqrt(len(percent)) * 2 + 1, FEWEST_BINS), MOST_BINS)  # odd, so that equal values are centred
    return np.asarray(np.linspace(low - margin, high + margin, number + 1))


# --- build-out -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BuiltFarm:
    """A farm in a scenario. x, y: m. first: the step from which it stands. end: the step after the last, or None."""

    label: str
    x: npt.ArrayLike
    y: npt.ArrayLike
    rotor_diameter_m: float
    first: int
    end: int | None = None

    def stands(self, step: int) -> bool:
        """Return whether the farm stands in a step."""
        return self.first <= step and (self.end is None or step < self.end)


def build_out_figure(
    target: BuiltFarm,
    neighbours: Sequence[BuiltFarm],
    *,
    n_steps: int,
    step: int | None = None,
    times: Sequence[str] = (),
    crs: str | None = None,
    title: str | None = None,
) -> Figure:
    """Return a map of a scenario: the neighbours coloured by construction step, the target highlighted.

    step: farms that do not stand in this step are dashed and empty. times: of the steps, for the colour bar.
    """
    if step is not None and not 0 <= step < max(n_steps, 1):
        raise InputError(f"step is {step}; expected a step from 0 to {max(n_steps, 1) - 1}")
    figure = new_figure(8.0, 8.0)
    ax = figure.subplots()
    scale = _scale_of_steps(neighbours, n_steps)
    shapes = [_shape(farm) for farm in neighbours]
    every = shapely.union_all([_shape(target), *shapes])
    dot = 0.006 * ground.longer_side(every.bounds)
    for farm, shape in zip(neighbours, shapes, strict=True):
        _draw_farm(ax, farm, shape, dot, _colour(scale, farm.first), step is None or farm.stands(step))
    _draw_farm(ax, target, _shape(target), dot, TARGET, True)
    legend = "" if step is None else f"dashed: farms that do not stand in step {step}{_date(times, step)}"
    margin = 0.04 * ground.longer_side(every.bounds)
    ground.finish_map(ax, every.bounds, every, margin=margin, crs=crs, legend=legend, title=None)
    handles = [
        Patch(facecolor=TARGET, edgecolor=INK, label=literal(shortened(f"target: {target.label}", LONGEST_NAME)))
    ]
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2, **LEGEND)
    if neighbours:
        _bar_of_steps(figure, ax, scale, times)
    ground.fit(figure, [ax], ground.map_size(ax.viewLim.extents, 5.4), name=title)
    _draw_labels(ax, neighbours, shapes)
    return figure


def _scale_of_steps(neighbours: Sequence[BuiltFarm], n_steps: int) -> ScalarMappable:
    last = max([1, n_steps - 1, *(farm.first for farm in neighbours)])
    return ScalarMappable(Normalize(0, last), f"{EVEN}_r")


def _colour(scale: ScalarMappable, step: int) -> str:
    return to_hex(scale.to_rgba(np.array([float(step)]))[0])


def _bar_of_steps(figure: Figure, ax: Axes, scale: ScalarMappable, times: Sequence[str]) -> None:
    """Add the colour bar, with dates beside some steps if they are known."""
    side = ground.bar_side(ax.viewLim.extents)
    colour_bar(figure, scale, ax, "construction: first step of the farm", location=side)
    if len(times) > 1 and side == "right":
        bar = figure.axes[-1]
        steps = np.linspace(0, len(times) - 1, 5).round().astype(int).tolist()
        bar.set_yticks(steps, [f"{step}{_date(times, step)}" for step in steps])


def _date(times: Sequence[str], step: int) -> str:
    return f" ({times[step][:10]})" if step < len(times) else ""


def _shape(farm: BuiltFarm) -> shapely.Geometry:
    """Return an outline around the turbines of a farm."""
    x, y = ground.pair((farm.x, farm.y), f"the layout of {farm.label}")
    return shapely.convex_hull(shapely.multipoints(np.column_stack([x, y]))).buffer(2.0 * farm.rotor_diameter_m)


def _draw_farm(ax: Axes, farm: BuiltFarm, shape: shapely.Geometry, dot: float, colour: str, stands: bool) -> None:
    x, y = ground.pair((farm.x, farm.y), f"the layout of {farm.label}")
    (outline,) = ax.fill(*shape.exterior.xy, facecolor=SEA if stands else "none", edgecolor=colour, linewidth=1.2)
    outline.set_linestyle("-" if stands else "--")
    outline.set_gid(f"outline of {farm.label}")
    turbines = ground.circles(
        ax, x, y, max(farm.rotor_diameter_m, dot), face="none", edge=INK if stands else FAINT, linewidth=0.3, zorder=3
    )
    turbines.set_gid(f"turbines of {farm.label}")
    if stands:
        turbines.set_facecolor([colour])


def _draw_labels(ax: Axes, farms: Sequence[BuiltFarm], shapes: Sequence[shapely.Geometry]) -> None:
    """Write the name and the steps above each farm, unless labels would overlap. Farms at one place share a label."""
    scale = min(ax.bbox.width / ax.viewLim.width, ax.bbox.height / ax.viewLim.height) * 72.0 / ax.figure.dpi
    lines: dict[tuple[float, float], list[str]] = {}
    for farm, shape in zip(farms, shapes, strict=True):
        end = "" if farm.end is None else f" to {farm.end}"
        place = (round(shape.centroid.x, 1), round(shape.bounds[3], 1) + 0.8 * TINY / scale)
        lines.setdefault(place, []).append(f"{shortened(farm.label, 24)}: step {farm.first}{end}")
    words, places = ["; ".join(texts) for texts in lines.values()], list(lines)
    widths = [0.62 * TINY * len(text) / scale for text in words]
    for i in apart(places, widths, 1.3 * TINY / scale):
        text = ax.text(*places[i], literal(words[i]), ha="center", va="center", fontsize=TINY, color=INK, zorder=6)
        text.set_in_layout(False)
        text.set_path_effects([withStroke(linewidth=2.0, foreground="white")])


# --- series ----------------------------------------------------------------------------------------------------------


def series_figure(
    power_mw: Mapping[str, Array],
    *,
    times: Sequence[str] = (),
    built: Sequence[int] = (),
    installed_mw: float | None = None,
    rolling: int | None = None,
    title: str | None = None,
) -> Figure:
    """Return the farm power over time in each case and, below it, the power lost to wakes.

    power_mw: by case, shape (steps,). times: ISO times of the steps. built: steps from which neighbours stand. rolling:
    steps of the rolling mean; by default a 40th of a long series, and none for a short one.
    """
    lost = lost_power(power_mw)
    figure = new_figure(7.2, 5.0 if lost else 3.4)
    axes = figure.subplots(2 if lost else 1, 1, squeeze=False, sharex=True, height_ratios=[3, 2][: 2 if lost else 1])
    ax, lowest = axes[0, 0], axes[-1, 0]
    words = {CASE_WORDS.get(case, case): power for case, power in power_mw.items()}
    plot_series(ax, words, "farm power, MW", times=times, rolling=rolling)
    if lost:
        plot_series(lowest, lost, "power lost, MW", times=times, rolling=rolling, colours=LOST_COLOURS)
        ax.set_xlabel("")
    for step in {*built} - {0}:
        for each in axes[:, 0]:
            each.axvline(steps_at(times, len(next(iter(power_mw.values()))))[step], color=INK, linewidth=0.7, ls=":")
    if {*built} - {0}:
        lowest.set_xlabel(f"{lowest.get_xlabel()}; dotted: a neighbour is built", **TEXT)
    if installed_mw is not None and math.isfinite(installed_mw):
        ax.axhline(installed_mw, color=FAINT, linewidth=0.7, zorder=0)
        label: Look = {"xytext": (3, 2), "textcoords": "offset points", "fontsize": TINY, "color": INK}
        ax.annotate(
            f"installed: {installed_mw:.6g} MW", (0.0, installed_mw), xycoords=("axes fraction", "data"), **label
        )
        ax.set_ylim(top=1.08 * installed_mw)
    if title:
        figure.suptitle(literal(title), **TEXT)
    return figure


def plot_series(
    ax: Axes,
    power_mw: Mapping[str, Array],
    quantity: str,
    *,
    times: Sequence[str] = (),
    rolling: int | None = None,
    colours: Sequence[str] = (),
) -> None:
    """Draw power over time, by name, with a rolling mean if the series is long. See `series_figure`.

    quantity: label of the axis.
    """
    steps = len(next(iter(power_mw.values()), ()))
    if steps == 0:
        raise InputError("no power series to draw; add farm_power to `keep` in the study file")
    if rolling is None:
        rolling = steps // 40 if steps > LONG_SERIES else 1
    at = steps_at(times, steps)
    middle = at[(rolling - 1) // 2 : (rolling - 1) // 2 + steps - rolling + 1]
    for (words, power), colour in zip(power_mw.items(), colours or colours_apart(len(power_mw)), strict=False):
        if rolling > 1:
            ax.plot(at, power, color=colour, linewidth=0.4, alpha=0.2)
            means = np.convolve(power, np.full(rolling, 1.0 / rolling), mode="valid")
            ax.plot(middle, means, color=colour, linewidth=1.5, label=f"{words}: {power.mean():.4g} MW on average")
        else:
            ax.plot(at, power, color=colour, linewidth=1.0, label=f"{words}: {power.mean():.4g} MW on average")
    set_style(ax, None)
    ax.set_ylabel(quantity, **TEXT)
    ax.set_ylim(bottom=0.0)
    ax.margins(x=0.0)
    if len(times) == steps:
        locator = AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    remark = f"; thick: rolling mean over {rolling} steps" if rolling > 1 else ""
    ax.set_xlabel(f"{'time' if len(times) == steps else 'step'}{remark}", **TEXT)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, **LEGEND)


def steps_at(times: Sequence[str], steps: int) -> npt.NDArray[Any]:
    """Return the place of each step on the time axis: its time, or its number if the times are not known."""
    return np.array(times, dtype="datetime64[s]") if len(times) == steps else np.arange(steps)
