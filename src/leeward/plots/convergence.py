"""How AEP rose while layouts were optimised."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leeward.errors import InputError
from leeward.plots.style import FAINT, INK, LABEL, SMALL, colours_apart, dress, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]
Over = Literal["steps", "phases"]

ONE_BY_ONE = 6  # up to so many curves have colours and names of their own
MARKS = "osD^vP*X"


@dataclass(frozen=True)
class Convergence:
    """What is known of the way to one layout.

    phases: names, in order; aep_by_phase: best AEP (GWh) at the end of each. history: steps and the best AEP (GWh) that
    was known after each, shape (2, points); None if it was not recorded.
    """

    label: str
    phases: Sequence[str] = field(default=())
    aep_by_phase: Sequence[float] = field(default=())
    history: Array | None = None


def plot_convergence(
    ax: "Axes", curves: Sequence[Convergence], *, over: Over | None = None, title: str | None = None
) -> None:
    """The best AEP known over the steps, or at the end of each phase.

    over: by default the steps, where all curves have a history, else the phases. Over the steps the end of each phase
    is marked at the first step that had reached its AEP. Of many curves the one that ends highest stands out, and only
    it is named.
    """
    way: Over = over or ("steps" if all(_has_history(curve) for curve in curves) else "phases")
    for curve in curves:
        _demand(curve, way)
    if not curves:
        raise InputError("no result to draw; expected one or more")
    ordered = sorted(curves, key=lambda curve: _values(curve, way)[-1])  # the best one is drawn last, on top
    few = len(ordered) <= ONE_BY_ONE
    colours = colours_apart(len(ordered)) if few else [FAINT] * (len(ordered) - 1) + [colours_apart(1)[0]]
    for curve, colour in zip(ordered, colours, strict=True):
        stands_out = few or curve is ordered[-1]
        label = curve.label if few else f"{curve.label}, the best of {len(ordered)}" if stands_out else None
        width = 1.3 if stands_out else 0.6
        if way == "steps":
            _draw_steps(ax, curve, colour, width, label, stands_out, is_named=curve is ordered[-1])
        else:
            ax.plot(
                range(len(curve.phases)),
                curve.aep_by_phase,
                marker="o",
                markersize=4,
                color=colour,
                linewidth=width,
                label=label,
            )
    dress(ax, title)
    ax.set_ylabel("best AEP so far, GWh", color=INK, fontsize=LABEL)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.10g}")
    if way == "steps":
        ax.set_xlabel("step of the optimiser", color=INK, fontsize=LABEL)
        ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    else:
        longest = max((curve.phases for curve in ordered), key=len)
        ax.set_xticks(range(len(longest)), [name.replace("_", " ") for name in longest])
        ax.set_xlabel("at the end of this phase", color=INK, fontsize=LABEL)
        ax.margins(x=0.1)
    ax.grid(axis="y", color=FAINT, linewidth=0.3)
    ax.legend(loc="lower right", fontsize=SMALL, labelcolor=INK, frameon=False)


def convergence_figure(curves: Sequence[Convergence], *, over: Over | None = None, title: str | None = None) -> Figure:
    figure = new_figure(4.6, 3.2)
    plot_convergence(figure.subplots(), curves, over=over, title=title)
    return figure


def _has_history(curve: Convergence) -> bool:
    return curve.history is not None and curve.history.shape[1] > 0


def _demand(curve: Convergence, way: Over) -> None:
    if way == "steps" and not _has_history(curve):
        raise InputError(f"{curve.label} has no history: AEP over the steps was not recorded; draw it over the phases")
    if way == "phases" and not len(curve.aep_by_phase):
        raise InputError(
            f"{curve.label} has no AEP by phase; expected a result that leeward made, because other files do not tell "
            "how their layouts came about"
        )
    if len(curve.phases) != len(curve.aep_by_phase):
        raise InputError(
            f"{curve.label} has {len(curve.phases)} phases and {len(curve.aep_by_phase)} AEPs; expected as many of each"
        )


def _values(curve: Convergence, way: Over) -> Array:
    if way == "steps" and curve.history is not None:
        return np.asarray(curve.history[1])
    return np.asarray(curve.aep_by_phase, dtype=np.float64)


def _draw_steps(
    ax: "Axes",
    curve: Convergence,
    colour: str,
    width: float,
    label: str | None,
    marked: bool,
    is_named: bool,
) -> None:
    if curve.history is None:
        return
    steps, best = curve.history
    # from a point on the value holds until the next one
    ax.plot(steps, best, drawstyle="steps-post", color=colour, linewidth=width, label=label, zorder=3 if marked else 2)
    if not marked:
        return
    for i, (name, aep) in enumerate(zip(curve.phases, curve.aep_by_phase, strict=True)):
        reached = np.flatnonzero(best >= aep * (1.0 - 1e-12))
        at = int(reached[0]) if len(reached) else len(best) - 1
        ax.plot(
            steps[at],
            best[at],
            marker=MARKS[i % len(MARKS)],
            markersize=5,
            color=colour,
            markeredgecolor=INK,
            markeredgewidth=0.5,
            linestyle="none",
            zorder=4,
            label=f"end of {name.replace('_', ' ')}" if is_named else None,
        )
