"""`leeward run`: compute a campaign."""

from pathlib import Path
from typing import TYPE_CHECKING

from typer import Exit, Option

from leeward.cli.execution import EngineOptions, StoppingOptions, chosen_engine, prepare, selected_tasks
from leeward.cli.options import CAMPAIGN, RUN_OUTPUT, TAKE_OVER, Options
from leeward.cli.sources import run_campaign
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.campaign import Campaign


class RunOptions(Options):
    """Compute all layouts of a campaign in parallel, or resume an earlier run.

    Without a campaign file: ten areas x six turbine types of the Danish energy island, one seed, 60 layouts.

    Every layout is stored as soon as it is computed, in the run directory beside the output (`layouts.run` beside
    `layouts.h5`); at the end all are merged into the output. However the run ends, the same command resumes it. Ctrl-C
    or SIGTERM stops the run when the running tasks are done; a second one stops it at once. No finished layout is lost.

    A dry run prints the tasks, farms, turbines, installed power and wind, whether the turbines fit, how long the run
    will take, and every error that the run would raise. Its exit code is that of the first error.

    Exit codes: 0 all layouts are done; 3 some are missing or failed; 4 the disk rejected writes; 130 or 143 interrupted
    before all layouts were done; 1 other errors; 2 usage error.
    """

    campaign: Path | None = CAMPAIGN
    output: Path = RUN_OUTPUT
    seeds: str | None = Option(
        None, help="Seeds: a count (50), a range (0:50) or a list (3,7,9). Default: the campaign's."
    )
    recipe: str | None = Option(None, help="Recipe, such as smart_start or module:function. Default: the campaign's.")
    effort: str | None = Option(
        None, help="Work per layout: fast, normal or thorough. Default: the campaign's, or normal."
    )
    engine: EngineOptions
    only: str | None = Option(
        None,
        help='Run only these tasks, for example "farm=0,3 type=5 seed=0:10"; ranges as in Python. Farms and types may '
        """be names: "farm=Nordsee I,3 type='V236'".""",
    )
    only_from: Path | None = Option(None, help="Run only the tasks in this file, which `leeward missing --csv` wrote.")
    retry_failed: bool = Option(False, "--retry-failed", help="Also retry tasks that failed before.")
    adopt: list[Path] | None = Option(
        None, help="Copy results from these files of other scripts, folders or another layouts.h5. Repeatable."
    )
    keep_infeasible: bool = Option(
        False, "--keep-infeasible", help="Also adopt layouts with turbines closer than a rotor diameter."
    )
    new: bool = Option(False, "--new", help="Start over; the old run directory is kept under another name.")
    take_over: bool = TAKE_OVER
    stopping: StoppingOptions
    dry_run: bool = Option(
        False, "--dry-run", help="Compute and write nothing; print what the run would do, and every error."
    )
    picture: Path | None = Option(None, help="Write the wind rose to this PNG, SVG or PDF file. Needs --dry-run.")
    quiet: bool = Option(False, "--quiet", "-q", help="Print only the summary.")
    as_json: bool = Option(False, "--json", help="Print events and the summary as JSON lines.")


def run(options: RunOptions) -> None:
    """Run a campaign, or preview it."""
    from leeward.cli.preview import dry_run, introduce
    from leeward.cli.run_display import display
    from leeward.cli.run_summary import conclude
    from leeward.runs.run import run as run_tasks
    from leeward.store import Key

    chosen = _chosen(options)
    engine = chosen_engine(chosen.execution, options.engine)
    selection = selected_tasks(options.only, options.only_from, Key.parse)
    if options.dry_run:
        raise Exit(dry_run(chosen, selection, options))
    if options.picture is not None:
        raise InputError("--picture is given without --dry-run; give both")
    introduce(chosen, selection, options)
    prepare(engine)
    with display(chosen.farms, quiet=options.quiet, as_json=options.as_json) as on_event:
        report = run_tasks(
            chosen,
            options.output,
            only=selection,
            retry_failed=options.retry_failed,
            adopt=options.adopt or (),
            keep_infeasible=options.keep_infeasible,
            new=options.new,
            take_over=options.take_over,
            grace_s=options.stopping.grace,
            storage_wait_s=options.stopping.storage_wait_s,
            on_event=on_event,
        )
    conclude(report, options.as_json)
    raise Exit(report.exit_code)


def _chosen(options: RunOptions) -> "Campaign":
    """Return the campaign with the options applied."""
    return run_campaign(options.campaign).with_overrides(
        seeds=_seeds(options.seeds),
        recipe=options.recipe,
        effort=options.effort,
        **options.engine.settings(),
    )


def _seeds(text: str | None) -> int | str | list[int] | None:
    if text is None or not (text.isdigit() or "," in text):
        return text
    try:
        return int(text) if text.isdigit() else [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"--seeds is {text!r}; expected a count, a range like 0:50, or a list like 3,7,9") from error
