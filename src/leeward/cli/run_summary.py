"""The summary of a run, and the installed power of a campaign."""

import math
import shlex
import signal
import statistics
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, cast

from leeward.campaign import Campaign
from leeward.campaign.remarks import comparison_remarks, is_by_capacity_factor, optimiser_words
from leeward.capacity import capacity_factor, merit
from leeward.charts import shortened
from leeward.cli.output import counted, discard_output, first_of, picked, table
from leeward.runs.context import RunReport
from leeward.store import Brief, EvaluationKey
from leeward.watch import MAKE_ROOM, is_out_of_room
from leeward.wording import count, duration, json_text, listed

MOST_LISTED = 10
MOST_TARGETS = 40
MOST_CAPACITIES = 20  # largest number of lines about installed power
MOST_FARMS = 4  # largest number of farms to name in one line
LONGEST_NAME = 24  # characters of a name in a table

Pair = tuple[int, int]  # farm_idx and type_idx


def capacity_lines(campaign: Campaign) -> list[str]:
    """Return lines with turbines, installed power and shortfall of each type, and remarks on comparing types.

    Farms with the same numbers share a line.
    """
    groups: dict[tuple[int, int, float, float | None], list[int]] = {}
    for farm in campaign.farms:
        wanted = campaign.physics.capacity_wanted_mw(farm)
        for kind in campaign.types:
            installed = campaign.physics.installed_mw(farm, kind)
            groups.setdefault((kind, campaign.physics.n_turbines(farm, kind), installed, wanted), []).append(farm)
    ordered = sorted(groups.items(), key=lambda group: (group[1][0], group[0][0]))
    lines = (f"  {_capacity_line(campaign, *numbers, farms)}" for numbers, farms in ordered)
    shown = first_of(lines, "; `leeward report` has all of them", MOST_CAPACITIES)
    return ["installed power:", *shown, *comparison_remarks(campaign)]


def _capacity_line(
    campaign: Campaign, kind: int, turbines: int, installed: float, wanted: float | None, farms: Sequence[int]
) -> str:
    where = ""
    if len(farms) < len(campaign.farms):
        named = listed([f"{farm} {campaign.farms[farm]}" for farm in farms], MOST_FARMS)
        where = f"{'farm' if len(farms) == 1 else 'farms'} {named}, "
    words = f"{where}t{kind} {campaign.types[kind]}: {count(turbines, 'turbine')}, {installed:.6g} MW"
    if wanted is None:
        return words
    short = shortfall(installed, wanted)
    return f"{words} of {wanted:.6g} MW" + (f", {short:.4g} MW ({short / wanted:.1%}) short" if short else "")


def shortfall(installed_mw: float, wanted_mw: float) -> float:
    """Return how many MW the installed power is below the requested power; 0 for a rounding error."""
    short = wanted_mw - installed_mw
    return short if short > 1e-6 * wanted_mw else 0.0


def conclude(report: RunReport, as_json: bool) -> None:
    """Print the summary of a run, as text or as JSON."""
    try:
        if as_json:
            print(json_text(_as_data(report)))
        else:
            print_summary(report, _command())
        sys.stdout.flush()
    except OSError:  # the reader is gone or the disk is full; the exit code still tells how the run ended
        discard_output()


def _command() -> str:
    """Return the command that resumes this run: the current one, without options that apply only once."""
    once = ("--new", "--retry-failed", "--take-over")
    return shlex.join(["leeward", *(word for word in sys.argv[1:] if word not in once)])


def _as_data(report: RunReport) -> dict[str, Any]:
    return {
        "event": "summary",
        "wanted": len(report.wanted),
        "failed": list(map(str, report.failed)),
        "missing": len(report.missing),
        **picked(report, "done", "computed", "quarantined", "exit_code"),
        "output": str(report.paths.output) if report.merged else None,
        "run": str(report.paths.root),
        "seconds": round(report.seconds, 1),
    }


def layout_lines(report: RunReport) -> Iterator[str]:
    """Yield a table of the layouts of a campaign, with remarks."""
    if report.results:
        yield _table(report)
        yield from comparison_remarks(report.campaign)
    yield f"{report.campaign.name}: {optimiser_words(report.campaign)}"


def evaluation_lines(report: RunReport) -> Iterator[str]:
    """Yield a table of the targets of a study. Means are weighted by scenario."""
    study, keys = report.work.source, cast(Collection[EvaluationKey], report.wanted)
    wanted = Counter(key.target_idx for key in keys)
    found: dict[int, list[tuple[float, Brief]]] = {number: [] for number in study.targets}
    for key in keys:
        brief = report.results.get(key)  # type: ignore[call-overload]
        if brief is not None:
            found[key.target_idx].append((study.weights[key.scenario_idx], brief))
    shown = list(study.targets.items())[:MOST_TARGETS]
    rows = [_target_row(name, found[number], wanted[number]) for number, name in shown]
    yield table(rows, header=["target", "done", "mean GWh", "mean loss", "least GWh", "most GWh"], right=range(1, 6))
    if len(study.targets) > len(shown):
        yield f"  and {count(len(study.targets) - len(shown), 'more target')}"
    yield f"study {study.name}, cases {', '.join(study.cases)}; the table shows the case {study.cases[0]}"


def _target_row(name: str, found: Sequence[tuple[float, Brief]], wanted: int) -> list[str]:
    row = [shortened(name, LONGEST_NAME), f"{len(found)}/{wanted}"]
    total = sum(weight for weight, _ in found)
    if not found or not total:
        return [*row, "-", "-", "-", "-"]
    aep, loss = (sum(weight * one[place] for weight, one in found) / total for place in (0, 1))
    aeps = [one.aep_gwh for _, one in found]
    return [*row, f"{aep:.2f}", f"{loss:z.2%}", f"{min(aeps):.2f}", f"{max(aeps):.2f}"]


KINDS = {"layouts": (layout_lines, "layout"), "evaluations": (evaluation_lines, "evaluation")}  # lines, noun


def print_summary(report: RunReport, command: str) -> None:
    """Print the results, and the commands that compute what is missing. command: the one that resumes the run."""
    results, noun = KINDS[report.work.kind]
    for line in results(report):
        print(line)
    wanted = len(report.wanted)
    missing = len(report.missing)
    print(f"{report.done} of {wanted} {noun}s done, {report.computed} computed now, in {duration(report.seconds)}")
    if report.quarantined:
        print(f"{count(report.quarantined, 'bad file')} moved to {report.paths.quarantine}, with the reasons")
    if report.merged is not None and report.merged.count:
        print(f"{report.paths.output}: {report.merged.count} results, each verified after writing")
    others = len(report.results) - report.done
    if others:
        print(f"{count(others, 'more result')} kept, of tasks that are not selected now")
    print(f"{report.paths.root}: the run directory, with results, failures, logs and audit.jsonl")
    if report.failed:
        print(f"{count(len(report.failed), 'task')} failed; tracebacks are in {report.paths.failures}:")
    failures = ((key, report.failures[key].failure) for key in report.failed)
    causes = (f"  {key}: {one.message if one else 'its coordinator died too often'}" for key, one in failures)
    for line in first_of(causes, f": leeward status {report.paths.root}", MOST_LISTED):
        print(line)
    if report.signal is not None and not report.is_complete:
        merged = "" if report.merged is not None else "; the next run merges the results"
        name = signal.Signals(report.signal).name
        print(f"interrupted by {name}: {count(missing, noun)} missing{merged}. To resume: {command}")
    elif report.engine_lost:
        left = f"{count(missing, noun)} missing; finished results are stored"
        print(f"{report.engine_lost}: {left}. To resume: {command}")
    elif missing > len(report.failed):
        print(f"{count(missing - len(report.failed), noun)} missing. To resume: {command}")
    for advice in _advice(report, command):
        print(advice)


def _table(report: RunReport) -> str:
    """Return a table with a row for each farm and type: counts, installed power, best and median AEP."""
    campaign = report.campaign
    tasks, failed = Counter(key[:2] for key in report.wanted), Counter(key[:2] for key in report.failed)
    found: dict[Pair, list[Brief]] = {pair: [] for pair in sorted(tasks)}
    for key in report.wanted:
        if key in report.results:
            found[key[:2]].append(report.results[key])
    known = {pair: [brief for brief in briefs if not math.isnan(brief.aep_gwh)] for pair, briefs in found.items()}
    best = _best_types(campaign, known)
    has_wanted = any(campaign.physics.capacity_wanted_mw(farm) is not None for farm, _ in tasks)
    header = ["farm", "type", "done", "failed", "MW", *(["short MW"] if has_wanted else [])]
    header += ["best GWh", "capacity factor", "median GWh", "wake loss", ""]
    rows = []
    for (farm, kind), briefs in found.items():
        installed, wanted = campaign.physics.installed_mw(farm, kind), campaign.physics.capacity_wanted_mw(farm)
        names = (f"{farm} {campaign.farms[farm]}", f"t{kind} {campaign.types[kind]}")
        row = [shortened(name, LONGEST_NAME) for name in names]
        row += [f"{len(briefs)}/{tasks[farm, kind]}", str(failed[farm, kind]), f"{installed:.6g}"]
        if has_wanted:
            row.append("-" if wanted is None else f"{shortfall(installed, wanted):.4g}")
        row += [*_yields(known[farm, kind], installed), "best type" if (farm, kind) in best else ""]
        rows.append(row)
    return table(rows, header=header, right=range(2, len(header) - 1))


def _best_types(campaign: Campaign, known: dict[Pair, list[Brief]]) -> set[Pair]:
    """Return the best type of each farm that has results of several types. known: results with an AEP, sorted."""
    ranked: dict[int, list[tuple[float, int]]] = {}
    for (farm, kind), briefs in known.items():
        if briefs:
            installed, by_factor = campaign.physics.installed_mw(farm, kind), is_by_capacity_factor(campaign, farm)
            ranked.setdefault(farm, []).append((merit(max(briefs).aep_gwh, installed, by_factor), -kind))
    return {(farm, -max(types)[1]) for farm, types in ranked.items() if len(types) > 1}


def _yields(known: list[Brief], installed_mw: float) -> list[str]:
    """Return best AEP, capacity factor, median AEP and wake loss as text. known: results with an AEP."""
    if not known:
        return ["-", "-", "-", "-"]
    best, median = max(known), statistics.median(brief.aep_gwh for brief in known)
    loss = "-" if math.isnan(best.wake_loss) else f"{best.wake_loss:z.2%}"
    return [f"{best.aep_gwh:.2f}", f"{capacity_factor(best.aep_gwh, installed_mw):.2%}", f"{median:.2f}", loss]


def _advice(report: RunReport, command: str) -> Iterator[str]:
    """Yield advice on failed tasks: retry them, or change the campaign."""
    failures = [report.failures[key].failure for key in report.failed]
    out_of_room = sum(failure is not None and is_out_of_room(failure.message) for failure in failures)
    yield from counted((out_of_room, "task", f"without room for the turbines. {MAKE_ROOM}"))
    if len(failures) > out_of_room:
        yield f"To retry failed tasks: {command} --retry-failed"
