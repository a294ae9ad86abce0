"""Convergence curves: AEP during the optimisation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from leeward.charts import FEW_POINTS, SAME_SHARE, Array, colours_apart
from leeward.errors import InputError
from leeward.plots.style import FAINT, INK, LEGEND, TEXT, Look, new_figure, set_style, show_values

Over = Literal["steps", "phases"]

ONE_BY_ONE = 6  # with at most this many curves, each has its own colour and name
MARKS = "osD^vP*X"
MEANING = "descent, polish: current layout, feasible or not\nsearch: best feasible layout so far"


@dataclass(frozen=True)
class Convergence:
    """The convergence of one result.

    phases: their names, in order. aep_by_phase: best AEP (GWh) at the end of each. history: steps and AEP (GWh), shape
    (2, points), of the current layout until the first refinement ends, then of the best so far; None if not recorded.
    """

    label: str
    phases: Sequence[str] = ()
    aep_by_phase: Sequence[float] = ()
    history: Array | None = None


def plot_convergence(
    ax: Axes, curves: Sequence[Convergence], *, over: Over | None = None, title: str | None = None
) -> None:
    """Plot AEP over the steps, or at the end of each phase.

    over: by default "steps" if all curves have a history, else "phases". Lines connect the recorded values; they are
    dashed if there are few values. Over the steps, a mark shows the end of each phase, at the first step recorded with
    its AEP. If there are many curves, only the one with the highest final AEP has a colour and a name.
    """
    if not curves:
        raise InputError("no results to draw; expected at least one")
    way: Over = over or ("steps" if all(_has_history(curve) for curve in curves) else "phases")
    for curve in curves:
        _check(curve, way)
    ends = list(dict.fromkeys(name for curve in curves for name in curve.phases))
    ordered = sorted(curves, key=lambda curve: _points(curve, way, ends)[1][-1])  # the best is drawn last, on top
    few = len(ordered) <= ONE_BY_ONE
    colours = colours_apart(len(ordered))[::-1] if few else [FAINT] * (len(ordered) - 1) + [colours_apart(1)[0]]
    lines: list[Line2D] = []
    for curve, colour in zip(ordered, colours, strict=True):
        is_highlighted = few or curve is ordered[-1]
        steps, best = _points(curve, way, ends)
        style = "--" if len(steps) <= FEW_POINTS else "-"
        (line,) = ax.plot(steps, best, style, color=colour, linewidth=1.3 if is_highlighted else 0.6)
        if is_highlighted:
            line.set_label(curve.label if few else f"{curve.label}, the\nbest of {len(ordered)}")
            lines.insert(0, line)
            _mark_phases(ax, curve, steps, best, colour, way, ends)
    _label_axes(ax, way, ends, title)
    marks = [_mark(name, ends) for name in ends] if way == "steps" else []
    ax.legend(handles=[*lines, *marks], loc="center left", bbox_to_anchor=(1.0, 0.5), **LEGEND)


def convergence_figure(curves: Sequence[Convergence], *, over: Over | None = None, title: str | None = None) -> Figure:
    """Return a figure of `plot_convergence`."""
    figure = new_figure(5.2, 3.5)
    plot_convergence(figure.subplots(), curves, over=over, title=title)
    return figure


def _has_history(curve: Convergence) -> bool:
    return curve.history is not None and curve.history.shape[1] > 0


def _check(curve: Convergence, way: Over) -> None:
    """Raise InputError if the curve lacks the data to plot."""
    if way == "steps" and not _has_history(curve):
        raise InputError(f"{curve.label} has no history of AEP over the steps; plot it over the phases instead")
    if way == "phases" and not len(curve.aep_by_phase):
        raise InputError(f"{curve.label} has no AEP by phase; only results computed by leeward have it")
    if len(curve.phases) != len(curve.aep_by_phase):
        raise InputError(
            f"{curve.label} has {len(curve.phases)} phases and {len(curve.aep_by_phase)} AEPs; expected the same number"
        )


def _points(curve: Convergence, way: Over, ends: Sequence[str]) -> tuple[Array, Array]:
    """Return the points of a curve: steps, or positions of its phases, and AEP."""
    if way == "steps" and curve.history is not None:
        return curve.history[0], curve.history[1]
    places = np.array([ends.index(name) for name in curve.phases], dtype=np.float64)
    return places, np.asarray(curve.aep_by_phase, dtype=np.float64)


def _mark_phases(
    ax: Axes, curve: Convergence, steps: Array, best: Array, colour: str, way: Over, ends: Sequence[str]
) -> None:
    """Mark the end of each phase at the AEP of its best feasible layout; infeasible layouts may exceed it."""
    for i, (name, aep) in enumerate(zip(curve.phases, curve.aep_by_phase, strict=True)):
        reached = np.flatnonzero(np.isclose(best, aep, rtol=1e-12, atol=0.0))
        reached = reached if len(reached) else np.flatnonzero(best >= aep)
        at = i if way == "phases" else int(reached[0]) if len(reached) else len(best) - 1
        mark = _mark(name, ends)
        mark.set_data([steps[at]], [best[at]])
        mark.set_markerfacecolor(colour)
        mark.set_zorder(4)
        ax.add_line(mark)


def _mark(name: str, ends: Sequence[str]) -> Line2D:
    sign = MARKS[ends.index(name) % len(MARKS)]
    look: Look = {"markersize": 5, "markerfacecolor": "white", "markeredgecolor": INK, "markeredgewidth": 0.5}
    return Line2D([], [], linestyle="none", marker=sign, label=f"end of {name.replace('_', ' ')}", **look)


def _label_axes(ax: Axes, way: Over, ends: Sequence[str], title: str | None) -> None:
    set_style(ax, title)
    ax.set_ylabel("AEP, GWh" if way == "steps" else "best AEP so far, GWh", **TEXT)
    show_values(ax, SAME_SHARE * abs(ax.get_ylim()[1]))
    ax.grid(axis="y", color=FAINT, linewidth=0.3)
    if way == "steps":
        ax.set_xlabel(f"step of the optimiser\n{MEANING}", **TEXT)
        ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        ax.set_xlim(left=0.0)
        return
    ax.set_xlabel("at the end of this phase", **TEXT)
    ax.set_xticks(range(len(ends)), [name.replace("_", " ") for name in ends])
    ax.set_xlim(-0.3, len(ends) - 0.7)
