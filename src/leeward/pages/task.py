"""Pages of one layout, and of two side by side."""

import math
from collections.abc import Iterator

import numpy as np

from leeward.capacity import by_capacity_factor
from leeward.charts import is_curve, loss_range
from leeward.pages.charts import convergence
from leeward.pages.html import Child, Markup, tag
from leeward.pages.maps import layout_plan
from leeward.pages.parts import captioned, facts, megawatts, number, percent, section, shown, table, yes_or_no
from leeward.store import Result
from leeward.watch import LayoutView, history_of, phases_of
from leeward.wording import duration, work_done

UNEQUAL = "Installed power differs by more than 0.5 %: compare capacity factors, not AEPs."
SHOWN = ("installed_mw", "wake_loss", "min_spacing_m", "seconds", "work", "phases", "aep_by_phase")


def spacing_switch(view: LayoutView, words: str = "") -> Markup | None:
    """Return a check box that shows or hides the spacing circles; it needs no script."""
    if not view.spacing_m:
        return None
    box = tag("input", {"type": "checkbox", "class": "show-spacing"})
    label = words or f"circles of the minimum spacing, {view.spacing_m:g} m wide"
    return tag("label", {"class": "switch"}, box, f" {label}")


def result_facts(view: LayoutView) -> Markup:
    """Return the figures of a layout and its provenance."""
    return facts(_facts(view))


def _facts(view: LayoutView) -> Iterator[tuple[Child, Child]]:
    result, details = view.result, view.result.details
    yield "AEP", tag("strong", None, f"{shown(result.aep_gwh, '{:.4f}')} GWh")
    yield "installed", f"{megawatts(view.installed_mw)} MW"
    yield "capacity factor", percent(view.capacity_factor)
    yield "wake loss", percent(number(details.get("wake_loss")))
    closest = shown(number(details.get("min_spacing_m")), "{:.0f} m")
    yield "closest turbines", f"{closest}; minimum: {view.spacing_m:.0f} m" if view.spacing_m else closest
    yield "turbines", f"{result.n_turbines}, rotor {result.rotor_diameter_m:g} m"
    if view.farm:
        yield "farm", f"{result.key.farm_idx} {view.farm}"
        yield "turbine type", f"t{result.key.type_idx} {view.kind}"
    yield "stopped", f"{result.stop_reason or 'not known'}, after {result.steps} steps"
    seconds = number(details.get("seconds"))
    if not math.isnan(seconds):
        yield "took", f"{seconds:.2f} s" if seconds < 10 else duration(seconds)
    work = details.get("work")
    if isinstance(work, int) and work:  # custom recipes do not count it
        yield "work", work_done(work)
    yield "status", result.status
    yield "origin", result.origin
    for name, value in sorted(details.items()):
        if name not in SHOWN and not isinstance(value, np.ndarray):
            yield name.replace("_", " "), yes_or_no(value) if isinstance(value, bool) else value
    yield "fingerprint", tag("code", None, result.fingerprint or "none")
    yield "digest", tag("code", None, result.digest)


def phases(result: Result) -> Markup | None:
    """Return a chart of AEP by phase of the optimisation; None if no AEP is recorded."""
    by_phase, history = phases_of(result), history_of(result)
    has_steps = is_curve(history)
    if not by_phase and not has_steps:
        return None
    steps = " Right: AEP over the steps, of the current layout, feasible or not; in the search, of the best so far."
    words = f"AEP after each phase.{steps if has_steps else ''}"
    return captioned(convergence(by_phase, history), words)


def coordinates(view: LayoutView) -> Markup:
    """Return a table with the coordinates and the wake loss of each turbine."""
    layout, losses = view.result.layout, view.wake_loss
    rows: list[list[Child]] = [
        [i, f"{x:.2f}", f"{y:.2f}", percent(None if losses is None else float(losses[i]))]
        for i, (x, y) in enumerate(layout.T.tolist())
    ]
    header = ["turbine", "east, m", "north, m", "wake loss"]
    return table(header, rows, right=range(4), caption="coordinates of the turbines")


def comparison(first: LayoutView, second: LayoutView) -> Markup:
    """Return two layouts with a common colour scale, and a table of their differences."""
    losses = loss_range([first.wake_loss, second.wake_loss])
    keys = [str(view.result.key) for view in (first, second)]
    plans = [layout_plan(view, losses, side=420.0) for view in (first, second)]
    sides = [tag("div", {"class": "side"}, tag("h3", None, key), drawn) for key, drawn in zip(keys, plans, strict=True)]
    rows = _compared(first, second)
    is_by_factor = by_capacity_factor([first.installed_mw, second.installed_mw])
    return section(
        "comparison",
        " and ".join(keys),
        tag("div", {"class": "sides"}, *sides),
        spacing_switch(first),
        table(["", *keys, "difference"], rows, right=(1, 2, 3), caption="comparison of the two layouts"),
        tag("p", None, UNEQUAL) if is_by_factor else None,
        live=True,
    )


def _figures(view: LayoutView) -> dict[str, float]:
    """Return the figures to compare two layouts by; NaN if unknown."""
    result, details = view.result, view.result.details
    return {
        "AEP, GWh": result.aep_gwh,
        "installed, MW": view.installed_mw,
        "capacity factor, %": 100.0 * view.capacity_factor,
        "wake loss, %": 100.0 * number(details.get("wake_loss")),
        "closest turbines, m": number(details.get("min_spacing_m")),
        "turbines": result.n_turbines,
        "rotor, m": result.rotor_diameter_m,
        "steps": result.steps,
    }


def _compared(first: LayoutView, second: LayoutView) -> Iterator[list[Child]]:
    """Yield a row per figure: first layout, second layout, difference."""
    for (name, one), other in zip(_figures(first).items(), _figures(second).values(), strict=True):
        share = f" ({other / one - 1:+.3%})" if name.startswith("AEP") and one > 0 and other >= 0 else ""
        yield [name, _short(one), _short(other), f"{_short(other - one, '+')}{share}"]
    a, b = first.result.fingerprint, second.result.fingerprint
    yield ["settings", tag("code", None, a[:12]), tag("code", None, b[:12]), "the same" if a == b else "different"]


def _short(value: float, sign: str = "") -> str:
    """Return a number without decimals if it is whole; a dash if it is unknown."""
    if not math.isfinite(value) or value == 0:
        return "0" if value == 0 else "–"
    return f"{value:{sign}.0f}" if value == int(value) else f"{value:{sign}.3f}"
