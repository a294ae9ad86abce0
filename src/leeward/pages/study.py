"""Pages of a study: progress by target and by block of scenarios, losses so far, and one evaluation."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from leeward.charts import shortened
from leeward.pages import parts
from leeward.pages.charts import figure, share_bar
from leeward.pages.html import Child, Markup, tag
from leeward.pages.parts import Links, captioned, facts, percent, section, shown, table
from leeward.pages.study_charts import build_out_map, built, farm_colour, loss_bars, loss_histogram, power_chart
from leeward.store import EvaluationKey
from leeward.watch import BlockSeen, EvaluationView, Figures, StudyObservation, StudySnapshot, TargetSeen, losses_of
from leeward.wording import count, duration

if TYPE_CHECKING:
    from leeward.study import Study

MOST_ROWS = 100  # targets in one grid
MOST_CURVES = 6  # targets whose losses are drawn apart
LONGEST_NAME = 40  # characters of a target or scenario in a table
PAGE = 50  # tasks on a page
DETAILS = ("target", "scenario", "weight", "windows", "n_turbines", "n_neighbours", "installed_mw", "seconds")
LOSSES = "Share of the gross yield that is lost to wakes: of the target's own turbines, of the neighbours, and of both."
STATES = ("done", "failed", "again", "running", "missing")
TASK_COLUMNS = ["task", "state", "target", "scenario", "AEP, GWh", "gross, GWh", "loss"]


# --- all evaluations -------------------------------------------------------------------------------------------------


def grid(seen: StudySnapshot, links: Links, page: int = 0) -> Markup:
    """Return a grid of targets (rows) and blocks of scenarios (columns); a cell shows its progress."""
    if not seen.rows:
        words = "There are no results yet, and the study is not known."
        return section("grid", "Targets and scenarios", tag("p", None, words), live=links.is_live)
    first = page * MOST_ROWS
    rows = seen.rows[first : first + MOST_ROWS]
    cells: dict[int, list[BlockSeen]] = {row.target_idx: [] for row in rows}
    for block in seen.blocks:
        if block.target_idx in cells:
            cells[block.target_idx].append(block)
    blocks = next(iter(cells.values()), [])
    header = ["target", "done", "mean AEP, GWh", "mean loss", "least", "largest", *map(_block_name, blocks)]
    numbers = range(1, 6)
    lines = [_grid_line(row, cells[row.target_idx], links) for row in rows]
    pages = -(-len(seen.rows) // MOST_ROWS)
    words = f"AEP and losses are those of the case {seen.case}, over the scenarios that are done, by their weights."
    rest = f"This is part 1 of {pages}; `leeward status --json` has all targets."
    return section(
        "grid",
        "Targets and scenarios",
        table(header, lines, right=numbers, caption="results by target and block of scenarios"),
        tag("p", None, words) if seen.case else None,
        parts.pager("/", page, pages, name="targets") if links.is_live else None,
        tag("p", None, rest) if pages > 1 and not links.is_live else None,
        live=links.is_live,
    )


def _block_name(block: BlockSeen) -> str:
    return str(block.first) if block.first == block.last else f"{block.first}–{block.last}"


def _grid_line(row: TargetSeen, blocks: Sequence[BlockSeen], links: Links) -> list[Child]:
    name = shortened(f"{row.target_idx} {row.name}", LONGEST_NAME)
    done = f"{row.done}/{row.expected}" if row.expected is not None else str(row.done)
    losses = map(percent, (row.mean_wake_loss, row.least_wake_loss, row.largest_wake_loss))
    address = links.tasks({"target": row.target_idx})
    cells = [_cell(block, links) for block in blocks]
    return [parts.link(address, name, title=row.name), done, parts.gwh(row.mean_aep_gwh), *losses, *cells]


def _cell(block: BlockSeen, links: Links) -> Markup:
    expected = block.done + block.failed + block.running if block.expected is None else block.expected
    counts = {"done": block.done, "failed": block.failed, "running": block.running}
    words = f"target {block.target_idx}, scenarios {_block_name(block)}: {block.done} of {expected} done"
    words += f", {block.failed} failed" if block.failed else ""
    address = links.tasks({"target": block.target_idx, "from": block.first, "to": block.last})
    inner = [share_bar(counts, expected, words), tag("span", {"class": "cell-text"}, f"{block.done}/{expected}")]
    return tag("span" if address is None else "a", {"class": "cell", "href": address, "title": words}, *inner)


def losses(seen: StudyObservation, links: Links) -> Markup | None:
    """Return the distribution of the losses of all evaluations that are done; None if there is none."""
    snapshot = seen.snapshot
    by_target: dict[int, list[float]] = {target: [] for target in snapshot.targets}
    for key, one in seen.figures.items():
        if key.target_idx in by_target and math.isfinite(one.wake_loss):
            by_target[key.target_idx].append(one.wake_loss)
    if len(by_target) <= MOST_CURVES:
        named = {f"{target} {snapshot.targets[target]}".strip(): values for target, values in by_target.items()}
    else:
        named = {f"all {len(by_target)} targets": [loss for values in by_target.values() for loss in values]}
    chart = loss_histogram(named)
    if chart is None:
        return None
    words = f"Loss in the case {snapshot.case}, each scenario counted once."
    return section("losses", "Distribution of losses", chart, tag("p", None, words), live=links.is_live)


class Tasks:
    """All tasks of a study, for lists."""

    def __init__(self, seen: StudyObservation) -> None:
        study, snapshot = seen.campaign, seen.snapshot
        self._figures = seen.figures
        self._scenarios: Mapping[int, str] = {} if study is None else study.scenarios
        self._targets = snapshot.targets
        self._states = dict.fromkeys(sorted({*seen.keys, *(study.tasks() if study is not None else ())}), "missing")
        for failed in snapshot.failures:
            self._mark(failed.key, "failed" if failed.final else "again")
        for worker in snapshot.workers:
            self._mark(worker.task or "", "running")
        self._states |= dict.fromkeys(seen.keys, "done")

    def _mark(self, name: str, state: str) -> None:
        key = parts.key_or_none(name)
        if key in self._states:
            self._states[key] = state

    def state(self, key: EvaluationKey) -> str | None:
        """Return the state of a task; None if it is neither expected nor stored."""
        return self._states.get(key)

    def chosen(self, target: int | None, first: int | None, last: int | None, state: str | None) -> list[EvaluationKey]:
        """Return the tasks of a target, between two scenarios, in a state; None selects all."""
        return [
            key
            for key, is_in in self._states.items()
            if (target is None or key.target_idx == target)
            and (first is None or key.scenario_idx >= first)
            and (last is None or key.scenario_idx <= last)
            and (not state or is_in == state)
        ]

    def row(self, key: EvaluationKey, links: Links) -> list[Child]:
        """Return the table row of a task."""
        one = self._figures.get(key, Figures(math.nan, math.nan, math.nan, ""))
        return [
            parts.link(links.task(key), str(key)),
            parts.state_mark(self._states[key]),
            shortened(self._targets.get(key.target_idx, ""), LONGEST_NAME),
            shortened(self._scenarios.get(key.scenario_idx, ""), LONGEST_NAME),
            *(parts.gwh(value) for value in (one.aep_gwh, one.gross_aep_gwh)),
            percent(one.wake_loss),
        ]

    def csv_row(self, key: EvaluationKey) -> list[object]:
        """Return a row of the CSV file of tasks."""
        one = self._figures.get(key, Figures(math.nan, math.nan, math.nan, ""))
        names = self._targets.get(key.target_idx, ""), self._scenarios.get(key.scenario_idx, "")
        numbers = (None if math.isnan(value) else value for value in (one.aep_gwh, one.gross_aep_gwh, one.wake_loss))
        return [str(key), *key, *names, self._states[key], *numbers]


CSV_COLUMNS = ["key", *EvaluationKey._fields, "target", "scenario", "state", "aep_gwh", "gross_aep_gwh", "wake_loss"]


def task_list(tasks: Tasks, keys: Sequence[EvaluationKey], page: int, kept: Mapping[str, str], links: Links) -> Markup:
    """Return one page of tasks. kept: the filter, from the address."""
    on_page = keys[page * PAGE : (page + 1) * PAGE]
    pages = -(-len(keys) // PAGE)

    def to(other: int, words: str) -> Markup | None:
        is_other = 0 <= other < pages and other != page
        return parts.link(links.tasks({**kept, "page": other}), words) if is_other else None

    place = f"{page * PAGE + 1 if on_page else 0} to {page * PAGE + len(on_page)} of {len(keys)}"
    menu = to(page - 1, "‹ previous"), tag("span", None, place), to(page + 1, "next ›")
    return section(
        "tasks",
        count(len(keys), "task"),
        table(TASK_COLUMNS, [tasks.row(key, links) for key in on_page], right=range(4, 7), caption="tasks"),
        tag("nav", {"class": "pager", "aria-label": "pages"}, *menu),
        live=links.is_live,
    )


def task_form(seen: StudySnapshot, kept: Mapping[str, str]) -> Markup:
    """Return a form to filter tasks."""

    def field(name: str, title: str) -> Markup:
        return tag(
            "label",
            None,
            title,
            tag("input", {"name": name, "value": kept.get(name, ""), "inputmode": "numeric", "size": 6}),
        )

    options = [tag("option", {"value": ""}, "all")]
    options += [
        tag("option", {"value": state, "selected": state == kept.get("state")}, parts.WORDS[state]) for state in STATES
    ]
    return tag(
        "form",
        {"method": "get", "action": "/tasks", "class": "filter", "role": "search", "aria-label": "filter tasks"},
        field("target", f"target (of {len(seen.targets)})"),
        field("from", "scenarios from"),
        field("to", "to"),
        tag("label", None, "state", tag("select", {"name": "state"}, *options)),
        tag("button", {"type": "submit"}, "Show"),
    )


# --- one evaluation --------------------------------------------------------------------------------------------------


def evaluation(view: EvaluationView, *, prefix: str = "", live: bool = False) -> list[Child]:
    """Return the content of the page of one evaluation. prefix: of the ids, if a page shows several."""
    power = power_chart(view)
    bars = loss_bars(losses_of(view.result))
    left = section(f"{prefix}map", "Build-out", build_out_map(view), _neighbours(view), live=live)
    figures = section(f"{prefix}facts", "Figures", _cases(view), facts(_facts(view)), live=live)
    return [
        tag("div", {"class": "columns"}, left, figures),
        section(f"{prefix}losses", "Losses", captioned(bars, LOSSES)) if bars is not None else None,
        section(f"{prefix}power", "Power", power) if power is not None else None,
    ]


def _cases(view: EvaluationView) -> Markup:
    result = view.result
    names = str(result.details.get("windows", "")).split(",") if result.window_power_mw is not None else []
    means = np.zeros((len(result.cases), 0)) if result.window_power_mw is None else result.window_power_mw
    names = names if len(names) == means.shape[1] else [f"window {place}" for place in range(means.shape[1])]
    rows: list[list[Child]] = [
        [
            case,
            parts.gwh(result.case_aep_gwh(case)),
            percent(result.wake_loss(case)),
            *(f"{mean:.2f}" for mean in means[i].tolist()),
        ]
        for i, case in enumerate(result.cases)
    ]
    header = ["case", "AEP, GWh", "loss", *(f"{name}, MW" for name in names)]
    return table(header, rows, right=range(1, len(header)), caption="AEP, loss and mean power of each case")


def _neighbours(view: EvaluationView) -> Markup | None:
    rows: list[list[Child]] = []
    for farm in view.farms:
        square = tag("rect", {"width": 10, "height": 10, "fill": farm_colour(farm, view.n_steps), "class": "target"})
        fill = figure(10, 10, "", square, kind="swatch")
        rows.append([fill, shortened(farm.name, LONGEST_NAME), len(farm.points), built(farm)])
    return (
        table(["", "layout", "turbines", "stands"], rows, right=(2,), caption="farms of the scenario") if rows else None
    )


def _facts(view: EvaluationView) -> Iterator[tuple[Child, Child]]:
    result, details = view.result, view.result.details
    key = result.key
    yield "target", f"{key.target_idx} {details.get('target', '')}".strip()
    yield "scenario", f"{key.scenario_idx} {details.get('scenario', '')}".strip()
    yield "weight", shown(parts.number(details.get("weight")), "{:.6g}")
    yield "gross yield", f"{parts.gwh(result.gross_aep_gwh)} GWh"
    yield "installed", f"{parts.megawatts(parts.number(details.get('installed_mw')))} MW"
    yield "turbines", shown(parts.number(details.get("n_turbines")), "{:.0f}")
    yield "turbines of neighbours", shown(parts.number(details.get("n_neighbours")), "{:.0f}")
    yield from (("in this scenario", words) for words in view.overrides)
    seconds = parts.number(details.get("seconds"))
    if not math.isnan(seconds):
        yield "took", f"{seconds:.2f} s" if seconds < 10 else duration(seconds)
    for name, value in sorted(details.items()):
        if name not in DETAILS and not isinstance(value, np.ndarray):
            yield name.replace("_", " "), value
    yield "fingerprint", tag("code", None, result.fingerprint)
    yield "digest", tag("code", None, result.digest)


# --- settings --------------------------------------------------------------------------------------------------------


def settings(study: "Study | None") -> Markup:
    """Return the settings of a study."""
    if study is None:
        return section("settings", "Method and settings", tag("p", None, "The study is not known."))
    times = study.times
    span = f", {times[0]} to {times[-1]}" if times else ""
    model = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in study.data.wake_model.items())
    lines: list[tuple[Child, Child]] = [
        ("study", study.name),
        ("tasks", f"{count(len(study.targets), 'target')} × {count(len(study.scenarios), 'scenario')}"),
        ("cases", ", ".join(study.cases)),
        ("kept", ", ".join(study.keep)),
        ("windows", ", ".join(study.windows) or "none"),
        ("wind", f"time series of {study.n_steps} steps{span}" if study.n_steps else "a wind rose"),
        ("wake model", model),
        ("coordinates", study.crs or "projected, in metres; no coordinate system given"),
        ("method version", study.method_version),
    ]
    return section("settings", "Method and settings", facts(lines))
