"""`leeward evaluate`: evaluate layouts under scenarios."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Exit, Option

from leeward.cli.execution import EngineOptions, StoppingOptions, chosen_engine, prepare, selected_tasks
from leeward.cli.options import TAKE_OVER, Options
from leeward.wording import count, json_text, listed, size

if TYPE_CHECKING:
    from leeward.study import Study

KEPT = {
    "aep": "AEP of each case",
    "windows": "mean power in each window",
    "farm_power": "farm power in each step",
    "turbine_power": "power of each turbine in each step",
}


class EvaluateOptions(Options):
    """Evaluate target layouts under scenarios, or resume an earlier run.

    A study file names layouts, wind, scenarios (which neighbours stand from when on), cases and what to keep. One task
    is one target in one scenario, with all cases. Every result is stored as soon as it is computed, in the run
    directory beside the output (`study.run` beside `study.h5`); at the end all are merged into the output. However the
    run ends, the same command resumes it. A study may grow: results of tasks that stay are kept.

    Before anything is computed, the study is checked: missing layouts, gaps in the wind, construction outside the
    series, overlapping farms and duplicate scenarios are errors that name file, row and column. The size of the results
    is printed. A dry run ends there.

    Exit codes: 0 all evaluations are done; 3 some are missing or failed; 4 the disk rejected writes; 130 or 143
    interrupted before all were done; 1 other errors; 2 usage error.
    """

    study: Path = Argument(..., help="Study file (YAML).")
    output: Path = Option(
        Path("study.h5"), "--output", "-o", help="Merged file. The run directory is created beside it."
    )
    engine: EngineOptions
    only: str | None = Option(
        None, help='Compute only these tasks, for example "target=0 scenario=0:100"; ranges as in Python.'
    )
    only_from: Path | None = Option(None, help="Run only the tasks in this file, which `leeward missing --csv` wrote.")
    retry_failed: bool = Option(False, "--retry-failed", help="Also retry tasks that failed before.")
    new: bool = Option(False, "--new", help="Start over; the old run directory is kept under another name.")
    take_over: bool = TAKE_OVER
    stopping: StoppingOptions
    dry_run: bool = Option(False, "--dry-run", help="Check the study, print its size, and compute nothing.")
    quiet: bool = Option(False, "--quiet", "-q", help="Print only the summary.")
    as_json: bool = Option(False, "--json", help="Print events and the summary as JSON lines.")


def evaluate(options: EvaluateOptions) -> None:
    """Evaluate a study, or preview it."""
    from leeward.cli.run_display import display
    from leeward.cli.run_summary import conclude
    from leeward.runs.evaluate import evaluate as evaluate_study
    from leeward.store import EvaluationKey
    from leeward.study import load_study
    from leeward.study.selection import chosen_evaluations

    study = load_study(options.study).with_execution(**options.engine.settings())
    engine = chosen_engine(study.execution, options.engine)
    selection = selected_tasks(options.only, options.only_from, EvaluationKey.parse)
    n_tasks = study.n_tasks if selection is None else len(chosen_evaluations(study, selection))
    if options.dry_run:
        print(json_text(_facts(study, n_tasks)) if options.as_json else "\n".join(_preview(study, n_tasks)))
        return
    if not (options.quiet or options.as_json):
        for line in _preview(study, n_tasks):
            print(line, file=sys.stderr)
    prepare(engine)
    with display({}, "evaluation", quiet=options.quiet, as_json=options.as_json) as on_event:
        report = evaluate_study(
            study,
            options.output,
            only=selection,
            retry_failed=options.retry_failed,
            new=options.new,
            take_over=options.take_over,
            grace_s=options.stopping.grace,
            storage_wait_s=options.stopping.storage_wait_s,
            on_event=on_event,
        )
    conclude(report, options.as_json)
    raise Exit(report.exit_code)


def _facts(study: "Study", n_tasks: int) -> dict[str, object]:
    kept = study.result_bytes()
    return {
        "study": study.name,
        "targets": list(study.targets.values()),
        "scenarios": len(study.scenarios),
        "tasks": n_tasks,
        "cases": list(study.cases),
        "steps": study.n_steps,
        "windows": list(study.windows),
        "bytes": {name: number * n_tasks for name, number in kept.items()},
        "warnings": list(study.remarks),
    }


def _preview(study: "Study", n_tasks: int) -> Iterator[str]:
    """Yield what will be computed, and the size of the results. n_tasks: number of selected tasks."""
    targets = listed(list(study.targets.values()), 3)
    yield f"{study.name}: {count(len(study.targets), 'target')} ({targets}) x {count(len(study.scenarios), 'scenario')}"
    times = study.times
    span = f", {times[0]} to {times[-1]}" if times else " without dates, in which gaps cannot be found"
    steps = f"; {study.n_steps} steps{span}" if study.n_steps else ""
    yield f"wind: {'; '.join(study.describe_winds())}{steps}; cases: {', '.join(study.cases)}"
    for name, number in study.result_bytes().items():
        if number:  # a rose has no windows
            yield f"keep {name}: {KEPT[name]}, {size(number * n_tasks)}"
    total = sum(study.result_bytes().values()) * n_tasks
    tasks = count(n_tasks, "evaluation")
    yield f"{tasks}, {size(total)} of numbers in the output, and as much again in the run directory"
    yield from (f"warning: {remark}" for remark in study.remarks)
