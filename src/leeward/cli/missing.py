"""`leeward missing`: list the tasks without a result."""

from pathlib import Path

from typer import Argument, Exit, Option

from leeward import watch
from leeward.cli.options import CSV, Options
from leeward.cli.output import EXIT_INCOMPLETE, csv_table, csv_target, table, write_file
from leeward.cli.sources import campaign_words, given_place, given_work
from leeward.store import EvaluationKey, Key
from leeward.wording import command, compute_command, count, json_text

MOST_ROWS = 100


class MissingOptions(Options):
    """List the tasks that have no result, with the reason if it is known.

    A run directory and its layouts.h5 hold the campaign, which defines the expected tasks. Files of other scripts need
    --campaign. The columns of the CSV file are `key`, `farm_idx`, `type_idx`, `seed` and `reason`; of a study, `key`,
    `target_idx`, `scenario_idx` and `reason`. `leeward run --only-from` and `leeward evaluate --only-from` read the CSV
    file or the JSON.

    Exit codes: 0 no task is missing; 3 some tasks are missing; 1 PATH cannot be read; 2 usage error, or the expected
    tasks are not known; 4 the storage is unavailable, or FILE cannot be written.
    """

    path: Path | None = Argument(
        None,
        help="Run directory, layouts.h5, study.h5, or a folder with files of other scripts. Default: the only run in "
        "the current folder.",
    )
    campaign: str | None = Option(
        None,
        metavar="FILE",
        help="Campaign file with the expected tasks. Default: the campaign stored with the results.",
    )
    csv_file: str | None = CSV(help="Write all missing tasks to this CSV file; - prints them.")
    as_json: bool = Option(False, "--json", help="Print all missing tasks as JSON.")
    failed: bool = Option(False, "--failed", help="List only tasks that failed.")


def missing(options: MissingOptions) -> None:
    """List the tasks that have no result."""
    target = csv_target(options.csv_file, options.as_json)
    path = given_place(options.path)
    watch.demand_place(path)
    kind = watch.kind_of(path)
    stored = watch.study_of if kind == "evaluations" else watch.campaign_of
    absence = watch.absent_tasks(path, given_work(options.campaign, [path]) or stored(path), kind=kind)
    tasks = [task for task in absence.tasks if task.failed or not options.failed]
    columns = ["key", *(EvaluationKey if kind == "evaluations" else Key)._fields, "reason"]
    rows = [[str(task.key), *task.key, task.reason] for task in tasks]
    if options.as_json:
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        print(json_text({"campaign": absence.campaign, "expected": absence.expected, "missing": named}))
    elif options.csv_file == "-":
        print(csv_table(columns, rows), end="")
    else:
        if target is not None:
            write_file(target, csv_table(columns, rows))
        _print(path, options.campaign, target, absence, tasks, columns)
    raise Exit(EXIT_INCOMPLETE if tasks else 0)


def _print(
    path: Path,
    campaign: str | None,
    target: Path | None,
    absence: "watch.Absence",
    tasks: "list[watch.AbsentTask]",
    columns: list[str],
) -> None:
    kind, noun = ("evaluations", "evaluation") if "target_idx" in columns else ("layouts", "layout")
    if not absence.tasks:
        print(f"{absence.campaign}: nothing is missing in {path}, all {count(absence.expected, noun)} are present")
        return
    print(f"{absence.campaign}: {len(absence.tasks)} of {count(absence.expected, noun)} missing in {path}")
    if len(tasks) != len(absence.tasks):
        print(f"{len(tasks)} of these have failed")
    if not tasks:
        return
    if target is None:
        rows = ([task.key, *task.key, task.reason] for task in tasks)
        print(
            table(rows, header=columns, right=range(1, len(columns) - 1), most=MOST_ROWS, rest="; --csv FILE lists all")
        )
    print()
    if target is not None:
        print(f"written: {target}, {count(len(tasks), 'task')}")
    else:
        words = [*campaign_words(campaign), *(["--failed"] if all(task.failed for task in tasks) else [])]
        print(f"To save the list: {command('missing', path, *words, '--csv', 'missing.csv')}")
    retry = " --retry-failed" if any(task.failed for task in tasks) else ""
    print(f"To compute exactly these: {compute_command(path, campaign, target or 'missing.csv', kind)}{retry}")
