"""The figures of `leeward plot study`. This module imports matplotlib, which is slow."""

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from leeward.cli.output import note
from leeward.cli.sources import evaluation_key
from leeward.errors import InputError
from leeward.plots import regret, study, study_data
from leeward.store import EvaluationKey, Evaluations
from leeward.study.comparison import Comparison

if TYPE_CHECKING:
    from leeward.cli.plot import PlotOptions

# the options that each figure takes
FIGURES = {
    "losses": ("key",),
    "build-out": ("key", "step"),
    "series": ("key",),
    "regret": ("case",),
    "pareto": ("case", "scenarios"),
}


def draw(options: "PlotOptions", place: Path) -> Figure:
    """Return the figure of a study that the options name."""
    name = options.figure or "losses"
    if name not in FIGURES:
        raise InputError(f"--figure is {name!r:.60}; expected one of {', '.join(FIGURES)}")
    _reject_unused(name, options)
    results, remarks = study_data.opened(place)
    for remark in remarks:
        note(remark)
    with results:
        if name in ("regret", "pareto"):
            return _compared(name, options, results)
        if name == "losses":
            key = _key(options)
            return study.losses_figure(
                study_data.losses_of(results, None if key is None else key.target_idx), study_data.name_of(results)
            )
        return _of_one_task(name, options, results, _key(options) or next(iter(results)))


def _reject_unused(name: str, options: "PlotOptions") -> None:
    for option in ("key", "step", "case", "scenarios"):
        if getattr(options, option) not in (None, []) and option not in FIGURES[name]:
            owners = [figure for figure, names in FIGURES.items() if option in names]
            raise InputError(f"--{option} has no effect on --figure {name}; it belongs to {', '.join(owners)}")


def _key(options: "PlotOptions") -> EvaluationKey | None:
    keys = options.key or []
    if len(keys) > 1:
        raise InputError(f"{len(keys)} keys are given for a figure of one task; give one --key")
    return evaluation_key(keys[0]) if keys else None


def _of_one_task(name: str, options: "PlotOptions", results: Evaluations, key: EvaluationKey) -> Figure:
    facts = results.facts.get(key)
    words = str(key) if facts is None else f"{facts.target}, scenario {facts.scenario}"
    if name == "series":
        power, times, built, installed = study_data.series_of(results, key)
        return study.series_figure(power, times=times, built=built, installed_mw=installed, title=words)
    known, target, neighbours = study_data.build_out_of(results, key)
    scenario = known.scenarios[key.scenario_idx]
    return study.build_out_figure(
        target,
        neighbours,
        n_steps=known.n_steps,
        step=options.step,
        times=known.times,
        crs=known.crs,
        title=f"{known.name}, scenario {scenario}",
    )


def _compared(name: str, options: "PlotOptions", results: Evaluations) -> Figure:
    comparison = study_data.comparison_of(results, options.case or "all", only_complete=True)
    for remark in comparison.notes:
        note(remark)
    title = f"{study_data.name_of(results)}, case {comparison.matrix.case}"
    if name == "regret":
        return regret.regret_figure(comparison, title)
    pair = pair_of(comparison, options.scenarios)
    if pair is None:
        raise InputError("a Pareto front needs two scenarios; give --scenarios with two names or numbers")
    return regret.pareto_figure(comparison, *pair, title=title)


def pair_of(comparison: Comparison, scenarios: tuple[str, str] | None) -> tuple[int, int] | None:
    """Return the columns of two scenarios; by default those of a study that has just two, else None."""
    if scenarios is None:
        return (0, 1) if len(comparison.matrix.scenarios) == 2 else None
    first, second = map(comparison.matrix.scenario, scenarios)
    if first == second:
        raise InputError(f"--scenarios names {scenarios[0]!r:.60} twice; expected two different scenarios")
    return first, second
