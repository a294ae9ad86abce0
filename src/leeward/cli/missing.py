"""`leeward missing`: what was expected, without what is there."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli.sources import given_campaign, given_place
from leeward.cli.tables import check_files, table_text, write_table
from leeward.cli.wording import EXIT_INCOMPLETE, table
from leeward.errors import InputError
from leeward.wording import command, compute_command, count, json_text

if TYPE_CHECKING:
    from leeward.watch import Absence, AbsentTask

COLUMNS = ["key", "farm_idx", "type_idx", "seed", "reason"]
MOST_ROWS = 100


def missing(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="Run directory, layouts.h5, or a folder with other scripts' files. Default: the only run in the "
            "current folder."
        ),
    ] = None,
    campaign: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What is expected: a campaign file. Default: what PATH itself tells."),
    ] = None,
    csv_file: Annotated[
        str | None, typer.Option("--csv", metavar="FILE", help="Write all of them to this CSV file; - for the screen.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of them as JSON.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="Only tasks that were tried and failed.")] = False,
) -> None:
    """List the tasks that have no result, for `leeward run --only-from`.

    Each with the reason, as far as it is known. What was expected is told by the run directory or by the file itself;
    files of other scripts do not know it, and need --campaign. The CSV file has the columns `key`, `farm_idx`,
    `type_idx`, `seed` and `reason`; it and the JSON are what `leeward run --only-from` takes.

    Exit codes: 0 nothing is missing; 3 something is; 1 it cannot be read; 2 wrong use, or nobody knows what was
    expected; 4 the storage is unavailable, or FILE cannot be written.
    """
    if as_json and csv_file is not None:
        raise InputError("--csv and --json are both given; expected one of them")
    target = None if csv_file in (None, "-") else Path(str(csv_file))
    check_files(target, None)
    from leeward.watch import absent_tasks

    path = given_place(path)
    absence = absent_tasks(path, given_campaign(campaign))
    tasks = [task for task in absence.tasks if task.failed or not failed]
    if as_json:
        print(json_text(_as_data(absence, tasks)))
    elif csv_file == "-":
        print(table_text(COLUMNS, map(_row, tasks)), end="")
    else:
        if target is not None:
            write_table(target, COLUMNS, map(_row, tasks))
        _print(path, campaign, target, absence, tasks)
    raise typer.Exit(EXIT_INCOMPLETE if tasks else 0)


def _row(task: "AbsentTask") -> list[object]:
    return [task.key, *task.key, task.reason]


def _as_data(absence: "Absence", tasks: list["AbsentTask"]) -> dict[str, Any]:
    rows = [dict(zip(COLUMNS, [str(task.key), *task.key, task.reason], strict=True)) for task in tasks]
    return {"campaign": absence.campaign, "expected": absence.expected, "missing": rows}


def _print(
    path: Path, campaign: str | None, target: Path | None, absence: "Absence", tasks: list["AbsentTask"]
) -> None:
    title = f"{absence.campaign}: {len(absence.tasks)} of {count(absence.expected, 'layout')} missing in {path}"
    if not absence.tasks:
        print(f"{absence.campaign}: nothing is missing in {path}, all {count(absence.expected, 'layout')} are there")
        return
    print(title)
    if len(tasks) != len(absence.tasks):
        print(f"{len(tasks)} of these were tried and failed")
    if tasks and target is None:
        print(table([COLUMNS, *map(_row, tasks[:MOST_ROWS])], right=(1, 2, 3)))
        if len(tasks) > MOST_ROWS:
            print(f"  and {len(tasks) - MOST_ROWS} more; all of them with --csv FILE")
    if not tasks:
        return
    print()
    if target is not None:
        print(f"written: {target}, {count(len(tasks), 'task')}")
    file = target or "missing.csv"
    options = [*(["--campaign", campaign] if campaign else []), *(["--failed"] if any_failed(tasks) else [])]
    if target is None:
        print(f"To keep the list: {command('missing', path, *options, '--csv', file)}")
    print(f"To compute exactly these: {_compute(path, campaign, file, tasks)}")


def any_failed(tasks: list["AbsentTask"]) -> bool:
    """Whether the list is one of failures only."""
    return all(task.failed for task in tasks)


def _compute(path: Path, campaign: str | None, file: str | Path, tasks: list["AbsentTask"]) -> str:
    retry = " --retry-failed" if any(task.failed for task in tasks) else ""
    return compute_command(path, campaign, file) + retry
