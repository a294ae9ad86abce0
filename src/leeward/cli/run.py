"""`leeward run`: compute a campaign."""

import logging
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Exit, Option

from leeward.cli.options import CAMPAIGN, RUN_OUTPUT, TAKE_OVER, Options, given
from leeward.cli.output import exit_code, is_terminal, picked
from leeward.cli.run_summary import print_summary
from leeward.cli.sources import run_campaign
from leeward.errors import InputError
from leeward.wording import json_text

if TYPE_CHECKING:
    from collections.abc import Collection

    from leeward.campaign import Campaign
    from leeward.runs.context import RunReport
    from leeward.store import Key

    Selection = str | Collection[Key] | None  # None: all tasks

STORAGE_WAIT_S = 1800.0


class DaskOptions(Options):
    """Connection to a running Dask cluster."""

    scheduler: str | None = Option(None, help="dask: address of a running scheduler, for example tls://host:8786.")
    tls_ca: str | None = Option(None, help="dask: PEM file with the certificate authority of the cluster.")
    tls_cert: str | None = Option(None, help="dask: PEM file with the client certificate.")
    tls_key: str | None = Option(None, help="dask: PEM file with the private key of the client certificate.")


class SlurmOptions(Options):
    """Size and number of SLURM jobs."""

    jobs: str | None = Option(None, help="slurm: number of jobs, for example 8, or a range, 2:20.")
    cores: int | None = Option(None, help="slurm: cores per job; each core computes one layout at a time.")
    memory: str | None = Option(None, help="slurm: memory per job, for example 64GB.")
    walltime: str | None = Option(None, help="slurm: time limit of a job, for example 2:00:00.")
    partition: str | None = Option(None, help="slurm: partition of the jobs.")
    account: str | None = Option(None, help="slurm: account to charge the jobs to.")


class RunOptions(Options):
    """Compute all layouts of a campaign in parallel, or resume an earlier run.

    Without a campaign file: ten areas x six turbine types of the Danish energy island, one seed, 60 layouts.

    Every layout is stored as soon as it is computed, in the run directory beside the output (`layouts.run` beside
    `layouts.h5`); at the end all are merged into the output. However the run ends, the same command resumes it. Ctrl-C
    or SIGTERM stops the run when the running tasks are done; a second one stops it at once. No finished layout is lost.

    A dry run prints tasks, farms, turbines and installed power, the wind, whether the turbines fit, how long the run
    will take, and every error that the run would raise. Its exit code is that of the first error.

    Exit codes: 0 all layouts are done; 3 some are missing or failed; 4 the disk rejected writes; 130 or 143 interrupted
    before all layouts were done; 1 other errors; 2 usage error.
    """

    campaign: Path | None = CAMPAIGN
    output: Path = RUN_OUTPUT
    seeds: str | None = Option(None, help="Number of seeds, or a list: 50, 0:50, 3,7,9.")
    recipe: str | None = Option(None, help="Recipe, as in the campaign file: smart_start, module:function, ...")
    effort: str | None = Option(None, help="Work per layout: fast, normal or thorough.")
    workers: int | None = Option(None, help="Number of worker processes. Default: the number of usable cores.")
    engine: str | None = Option(
        None, help="local (worker processes), inline (this process), dask (a Dask cluster) or slurm (SLURM jobs)."
    )
    dask: DaskOptions
    slurm: SlurmOptions
    timeout_s: float | None = Option(None, help="Time limit of a task in seconds; a task that takes longer is killed.")
    retries: int | None = Option(None, help="How often to retry a task whose worker died.")
    only: str | None = Option(
        None,
        help='Run only some tasks, for example "farm=0,3 type=5 seed=0:10"; ranges as in Python. Farms and types may '
        """be names: "farm=Nordsee I,3 type='V236'".""",
    )
    only_from: Path | None = Option(None, help="Run only the tasks in this file, as `leeward missing --csv` writes it.")
    retry_failed: bool = Option(False, "--retry-failed", help="Also retry tasks that failed before.")
    adopt: list[Path] | None = Option(
        None, help="Adopt results from elsewhere: worker files, folders, another layouts.h5. Repeatable."
    )
    keep_infeasible: bool = Option(
        False, "--keep-infeasible", help="Also adopt layouts with turbines closer than a rotor diameter."
    )
    new: bool = Option(False, "--new", help="Start over; the old run directory is kept under another name.")
    take_over: bool = TAKE_OVER
    grace: float = Option(60.0, min=0, help="Seconds that running tasks get to finish after Ctrl-C or SIGTERM.")
    storage_wait: float | None = Option(
        None, help="Seconds to wait while the disk rejects writes. Default: unlimited on a terminal, otherwise 1800."
    )
    dry_run: bool = Option(
        False, "--dry-run", help="Compute and write nothing; print what the run would do, and every error."
    )
    picture: Path | None = Option(None, help="Write the wind rose to this PNG, SVG or PDF file; with --dry-run.")
    quiet: bool = Option(False, "--quiet", "-q", help="Print only the summary.")
    as_json: bool = Option(False, "--json", help="Print events as JSON lines.")

    def of_engines(self) -> dict[str, dict[str, Any]]:
        """Return the options that belong to one engine, by the name of the engine."""
        return {"local": {"workers": self.workers}, "inline": {}, "dask": vars(self.dask), "slurm": vars(self.slurm)}


def run(options: RunOptions) -> None:
    """Run a campaign, or preview it."""
    from leeward.cli.run_display import display
    from leeward.runs.run import run as run_tasks

    chosen = _chosen(options)
    engine = _engine(chosen, options.of_engines())
    selection = _selection(options)
    if options.dry_run:
        raise Exit(_dry_run(chosen, selection, options))
    if options.picture is not None:
        raise InputError("--picture is given without --dry-run; give both")
    _introduce(chosen, selection, options)
    storage_wait = options.storage_wait
    if storage_wait is None:
        storage_wait = float("inf") if is_terminal(sys.stderr) else STORAGE_WAIT_S
    _prepare(engine)
    with display(chosen, quiet=options.quiet, as_json=options.as_json) as on_event:
        report = run_tasks(
            chosen,
            options.output,
            only=selection,
            retry_failed=options.retry_failed,
            adopt=options.adopt or (),
            keep_infeasible=options.keep_infeasible,
            new=options.new,
            take_over=options.take_over,
            grace_s=options.grace,
            storage_wait_s=storage_wait,
            on_event=on_event,
        )
    _conclude(report, options.as_json)
    raise Exit(report.exit_code)


def _chosen(options: RunOptions) -> "Campaign":
    """Return the campaign with the options applied."""
    return run_campaign(options.campaign).with_overrides(
        seeds=_seeds(options.seeds),
        recipe=options.recipe,
        effort=options.effort,
        workers=options.workers,
        engine=options.engine,
        timeout_s=options.timeout_s,
        retries=options.retries,
        dask=given(vars(options.dask)),
        slurm=given(vars(options.slurm)),
    )


def _conclude(report: "RunReport", as_json: bool) -> None:
    try:
        if as_json:
            print(json_text(_as_data(report)), flush=True)
        else:
            print_summary(report, _command())
            sys.stdout.flush()
    except OSError:  # no reader, or disk full: the exit code still tells how the run ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _introduce(chosen: "Campaign", selection: "Selection", options: RunOptions) -> None:
    """Print what is to be computed: farms, turbines, wind and warnings. --quiet: only warnings."""
    from leeward.campaign.selection import task_counts
    from leeward.cli.preview import header, preview, preview_data

    tasks = task_counts(chosen, selection)
    if options.as_json:
        print(json_text(preview_data(preview(chosen, tasks))), flush=True)
    elif sys.stderr is not None:
        if not options.quiet:
            print(header(chosen, tasks), file=sys.stderr, flush=True)
        shown = preview(chosen, tasks)
        for line in shown.warning_lines() if options.quiet else shown.lines(is_short=True):
            print(line, file=sys.stderr, flush=True)


def _dry_run(chosen: "Campaign", selection: "Selection", options: RunOptions) -> int:
    """Print the complete preview; return the exit code that the run would fail with, or 0."""
    from leeward.campaign.execution import with_user_defaults
    from leeward.campaign.selection import task_counts
    from leeward.cli.preview import forecast, forecast_lines, header, preview, preview_data
    from leeward.plots.style import check_picture_path
    from leeward.runs.context import Options as RunSettings

    as_json, picture = options.as_json, options.picture
    if picture is not None:
        check_picture_path(picture)
    tasks = task_counts(chosen, selection)
    if not as_json:
        print(header(chosen, tasks), flush=True)
    shown = preview(chosen, tasks)
    if not as_json:
        print("\n".join(shown.lines(is_short=False)), flush=True)
    wanted = RunSettings(selection, adopt=tuple(options.adopt or ()), new=options.new, take_over=options.take_over)
    ahead = forecast(shown, with_user_defaults(chosen.execution), options.output, wanted)
    if as_json:
        print(json_text(preview_data(shown, ahead)))
    else:
        print("\n".join(forecast_lines(shown, ahead, options.output)))
    if picture is not None:
        from leeward.plots import save_figure, wind_rose_figure

        save_figure(picture, wind_rose_figure(chosen.physics.site, title=f"wind of {chosen.name}"))
    return exit_code(ahead.errors[0]) if ahead.errors else 0


def _prepare(engine: str) -> None:
    """Check the cache of the kernels, and silence Dask: the run reports the same events itself."""
    if engine == "local":
        from leeward.wind.cache import cache_folder

        cache_folder()  # warns once if it cannot be used; workers would warn only in their logs
    if engine not in ("dask", "slurm"):
        return
    import distributed.config  # noqa: F401 (sets up its logging)

    for top in ("distributed", "tornado", "asyncio"):
        for name in (top, *(name for name in logging.root.manager.loggerDict if name.startswith(f"{top}."))):
            logging.getLogger(name).handlers[:] = [logging.NullHandler()]
            logging.getLogger(name).propagate = False


def _engine(chosen: "Campaign", of_engines: dict[str, dict[str, Any]]) -> str:
    """Return the name of the engine; raise InputError for an option of another engine, which would have no effect."""
    from leeward.campaign.execution import with_user_defaults

    engine = with_user_defaults(chosen.execution).engine
    for other, options in of_engines.items():
        named = [_option(name) for name in given(options)]
        if named and other != engine:
            takes = ", ".join(map(_option, of_engines[engine])) or "none"
            raise InputError(
                f"{', '.join(named)} needs --engine {other}, but the engine is {engine}; its options are: {takes}"
            )
    return engine


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _seeds(text: str | None) -> int | str | list[int] | None:
    if text is None or not (text.isdigit() or "," in text):
        return text
    try:
        return int(text) if text.isdigit() else [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"--seeds is {text!r}; expected a count, a range like 0:50, or a list like 3,7,9") from error


def _selection(options: RunOptions) -> "Selection":
    if options.only is not None and options.only_from is not None:
        raise InputError("--only and --only-from are both given; give one or the other, not both")
    if options.only_from is None:
        return options.only
    from leeward.campaign.selection import read_keys

    return read_keys(options.only_from)


def _command() -> str:
    """Return the command that resumes this run: the same without options that apply once."""
    once = ("--new", "--retry-failed", "--take-over")
    return shlex.join(["leeward", *(word for word in sys.argv[1:] if word not in once)])


def _as_data(report: "RunReport") -> dict[str, Any]:
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
