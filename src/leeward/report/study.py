"""Make the report of a study."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from leeward import __version__
from leeward.errors import LeewardError
from leeward.pages import frame, overview, study
from leeward.pages.html import Markup, tag
from leeward.pages.parts import Links, folded, section, table, to_copy
from leeward.store import EvaluationKey
from leeward.study import Study
from leeward.watch import EvaluationView, StudyObservation, audit_events, evaluation_view, find_result, observe
from leeward.wording import command, count, run_command

MOST_TASKS = 2000  # most rows in the table of all tasks
MOST_FAILURES = 50
MOST_MISSING = 200


@dataclass(frozen=True, eq=False)
class _Content:
    """The data of a report. views: the evaluations to draw, by title. unread: errors of those that cannot be drawn."""

    seen: StudyObservation
    tasks: study.Tasks
    views: dict[str, EvaluationView]
    unread: Sequence[str]


def study_html(path: Path, campaign: Study | None, emit: Callable[[str, str], None]) -> str:
    """Return the report of a study as HTML. campaign: replaces the study found with the results."""
    found = _read(path, campaign, emit)
    seen = found.seen.snapshot
    links = Links(is_live=False, keys=frozenset(view.result.key for view in found.views.values()))
    parts = [
        ("summary", "Summary", _summary(found)),
        ("grid", "Targets and scenarios", study.grid(seen, links)),
        ("losses", "Losses", study.losses(found.seen, links)),
        ("evaluations", "Evaluations", _evaluations(found)),
        ("settings", "Method", study.settings(found.seen.campaign)),
        ("figures", "Tables", _tables(found, links)),
        ("missing", "Missing", _missing(found, links)),
        ("audit", "Audit", overview.audit_trail(audit_events(path), 0, links)),
        ("loading", "Loading", _loading(found)),
    ]
    name = seen.campaign or Path(seen.output).name
    return frame.report_page(f"{name}: report", parts)


def _read(path: Path, campaign: Study | None, emit: Callable[[str, str], None]) -> _Content:
    seen: StudyObservation = observe(path, campaign=campaign)
    wanted = _extremes(seen)
    emit("reading", f"reading {count(len(wanted), 'evaluation')}")
    views, unread = {}, []
    for title, key in wanted.items():
        try:
            views[title] = evaluation_view(seen.campaign, find_result(path, key).result)
        except LeewardError as error:
            unread.append(str(error))
    return _Content(seen, study.Tasks(seen), views, unread)


def _extremes(seen: StudyObservation) -> dict[str, EvaluationKey]:
    """Return the evaluations with the least, the median and the largest loss, by title."""
    known = sorted((one.wake_loss, key) for key, one in seen.figures.items() if one.wake_loss == one.wake_loss)
    if not known:
        return {}
    chosen = {"Least loss": known[0], "Median loss": known[(len(known) - 1) // 2], "Largest loss": known[-1]}
    keys: dict[EvaluationKey, str] = {}
    for title, (_, key) in chosen.items():
        keys.setdefault(key, title)
    return {title: key for key, title in keys.items()}


def _summary(found: _Content) -> Markup:
    seen = found.seen.snapshot
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seen.time))
    return tag(
        "div",
        {"id": "summary"},
        tag("h1", None, seen.campaign or Path(seen.output).name),
        tag("p", None, f"State of {Path(seen.run or seen.output).name} at {made}. Results are counted, not verified: "),
        tag("p", None, to_copy(command("check", Path(seen.output).name)), " verifies every result."),
        overview.progress(seen),
    )


def _evaluations(found: _Content) -> Markup | None:
    """Return a section with the evaluations that were read."""
    left_out = [tag("p", None, f"Left out: {words}") for words in found.unread]
    if not found.views and not left_out:
        return None
    shown = [
        tag(
            "article",
            {"id": str(view.result.key)},
            tag("h3", None, f"{title}: {view.result.key}"),
            study.evaluation(view, prefix=f"{view.result.key}-"),
        )
        for title, view in found.views.items()
    ]
    return section("evaluations", "Evaluations", *left_out, *shown)


def _tables(found: _Content, links: Links) -> Markup:
    keys = found.tasks.chosen(None, None, None, None)
    if len(keys) > MOST_TASKS:
        export = command("export", Path(found.seen.snapshot.path).name, "-o", "study.csv")
        return section("figures", "Tables", tag("p", None, f"All {len(keys)} tasks as a table: ", to_copy(export)))
    rows = [found.tasks.row(key, links) for key in keys]
    listed = table(study.TASK_COLUMNS, rows, right=range(4, 7), caption="all tasks")
    return section("figures", "Tables", folded(f"all {count(len(keys), 'task')}", listed))


def _missing(found: _Content, links: Links) -> Markup:
    seen = found.seen.snapshot
    if not seen.missing:
        unknown, none = "The number of expected evaluations is not known.", "None. All expected evaluations exist."
        return section("missing", "Missing evaluations", tag("p", None, unknown if seen.missing is None else none))
    keys = found.tasks.chosen(None, None, None, None)
    absent = [str(key) for key in keys if found.tasks.state(key) != "done"]
    more = len(absent) - MOST_MISSING
    words = f"{seen.missing} of {seen.expected} evaluations are missing; {seen.failed} failed. To compute them: "
    return section(
        "missing",
        "Missing evaluations",
        tag("p", None, words, to_copy(command(*run_command(Path(seen.output).name, kind=seen.KIND)))),
        tag("p", None, ", ".join(absent[:MOST_MISSING]), f" and {more} more" if more > 0 else None),
        overview.failures(seen, seen.failures[:MOST_FAILURES], links) if seen.failures else None,
    )


def _loading(found: _Content) -> Markup:
    """Return a section with a short program."""
    seen = found.seen.snapshot
    file = Path(seen.output if seen.output_exists else seen.run or seen.output).name
    program = (
        "import leeward\n"
        f"with leeward.open_study({file!r}) as study:\n"
        "    table = study.to_pandas()            # one row per target, scenario and case\n"
        "    arrays = study.to_xarray()           # with units\n"
    )
    about = tag("p", None, f"With leeward {__version__} or newer (any HDF5 program can read the file too):")
    return section("loading", "How to load the data", about, tag("pre", None, tag("code", None, program)))
