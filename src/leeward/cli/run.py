"""`leeward run`: a campaign from its file to layouts.h5."""

import logging
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli.exits import exit_code
from leeward.cli.options import GivenCampaign, RunOutput
from leeward.cli.run_summary import print_summary
from leeward.errors import InputError
from leeward.wording import json_text

if TYPE_CHECKING:
    from collections.abc import Collection

    from leeward.campaign import Campaign
    from leeward.runs.run import Options, RunReport
    from leeward.store import Key

STORAGE_WAIT_S = 1800.0


def run(
    campaign: GivenCampaign = None,
    output: RunOutput = Path("layouts.h5"),
    seeds: Annotated[str | None, typer.Option(help="How many seeds, or which: 50, 0:50, 3,7,9.")] = None,
    recipe: Annotated[
        str | None, typer.Option(help="As in the campaign file: smart_start, module:function, ...")
    ] = None,
    effort: Annotated[str | None, typer.Option(help="fast, normal or thorough.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes. Default: as many as there are usable cores.")] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="local (processes of this machine), inline (this one), dask, or slurm (jobs of a cluster)."),
    ] = None,
    scheduler: Annotated[str | None, typer.Option(help="dask: address of a running one, tls://host:8786.")] = None,
    tls_ca: Annotated[str | None, typer.Option(help="dask: certificate authority of the cluster, a PEM file.")] = None,
    tls_cert: Annotated[str | None, typer.Option(help="dask: certificate to show it, a PEM file.")] = None,
    tls_key: Annotated[str | None, typer.Option(help="dask: private key of that certificate, a PEM file.")] = None,
    jobs: Annotated[str | None, typer.Option(help="slurm: how many jobs, 8; or a range, 2:20.")] = None,
    cores: Annotated[int | None, typer.Option(help="slurm: cores of a job; each computes a layout.")] = None,
    memory: Annotated[str | None, typer.Option(help="slurm: memory of a job, 64GB.")] = None,
    walltime: Annotated[str | None, typer.Option(help="slurm: time limit of a job, 2:00:00.")] = None,
    partition: Annotated[str | None, typer.Option(help="slurm: partition of the jobs.")] = None,
    account: Annotated[str | None, typer.Option(help="slurm: account that pays for them.")] = None,
    timeout_s: Annotated[float | None, typer.Option(help="Kill a task that takes longer, s.")] = None,
    retries: Annotated[int | None, typer.Option(help="How often a task whose worker died is tried again.")] = None,
    only: Annotated[
        str | None,
        typer.Option(
            help='Only some tasks, for example "farm=0,3 type=5 seed=0:10"; ranges as in Python. Farms and types may '
            """be names: "farm=Nordsee I,3 type='V236'"."""
        ),
    ] = None,
    only_from: Annotated[
        Path | None, typer.Option(help="Only the tasks in this file, as `leeward missing --csv` writes it.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try tasks again that failed before.")] = False,
    adopt: Annotated[
        list[Path] | None,
        typer.Option(help="Bring in results of other origin: worker files, folders, another layouts.h5. Repeatable."),
    ] = None,
    keep_infeasible: Annotated[
        bool,
        typer.Option("--keep-infeasible", help="Adopt layouts with turbines closer than a rotor diameter, too."),
    ] = False,
    new: Annotated[
        bool, typer.Option("--new", help="Begin anew; the old run directory is kept under another name.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the run directory from an owner elsewhere that stands still.")
    ] = False,
    grace: Annotated[
        float, typer.Option(min=0, help="After Ctrl-C or SIGTERM: so many seconds for tasks in hand.")
    ] = 60.0,
    storage_wait: Annotated[
        float | None,
        typer.Option(
            help="Seconds to wait for a disk that takes nothing. Default: for ever on a terminal, otherwise 1800."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Compute and write nothing: print what the run would do, and every error."),
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="With --dry-run: write the wind rose to this PNG, SVG or PDF file.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the summary only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print events as JSON lines.")] = False,
) -> None:
    """Compute all layouts of a campaign, in parallel; finish what an earlier run began.

    Without a campaign file: ten areas x six turbine types of the Danish energy island, one seed, 60 layouts.

    Every layout is stored as soon as it is computed, in the run directory beside the output (`layouts.run` beside
    `layouts.h5`); at the end all of them are merged into the output. Whatever ends the run, the same command goes on
    from there. Ctrl-C or SIGTERM ends it when the tasks in hand are done; a second one at once, and nothing finished is
    lost.

    A dry run prints tasks, farms, turbines and installed power, the wind, whether the turbines fit, how long the run
    will take, and every error that the run would raise; it exits with the code of the first one.

    Exit codes: 0 all layouts are there; 3 some are missing or failed; 4 the disk would not take results; 130 or 143
    interrupted before all was done; 1 other errors; 2 wrong use.
    """
    from leeward.cli.run_display import display
    from leeward.runs.run import Options, run as run_campaign
    from leeward.wind.cache import cache_folder

    of_engines: dict[str, dict[str, Any]] = {
        "local": {"workers": workers},
        "inline": {},
        "dask": {"scheduler": scheduler, "tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key},
        "slurm": {
            **{"jobs": jobs, "cores": cores, "memory": memory, "walltime": walltime},
            **{"partition": partition, "account": account},
        },
    }
    chosen = _campaign(campaign).with_overrides(
        seeds=_seeds(seeds),
        recipe=recipe,
        effort=effort,
        workers=workers,
        engine=engine,
        timeout_s=timeout_s,
        retries=retries,
        dask=_given(of_engines["dask"]),
        slurm=_given(of_engines["slurm"]),
    )
    engine = _engine(chosen, of_engines)
    selection = _only(only, only_from)
    if dry_run:
        options = Options(selection, adopt=tuple(adopt or ()), new=new, take_over=take_over)
        raise typer.Exit(_dry_run(chosen, output, options, picture, as_json))
    if picture is not None:
        raise InputError("--picture is given without --dry-run; it is a picture of the dry run: give both")
    _introduce(chosen, selection, quiet, as_json)
    if storage_wait is None:
        storage_wait = float("inf") if sys.stderr is not None and sys.stderr.isatty() else STORAGE_WAIT_S
    if engine in ("dask", "slurm"):
        _quieten_dask()
    if engine == "local":
        cache_folder()  # warns here, once, if it cannot be used; the workers warn in their logs
    with display(chosen, quiet=quiet, as_json=as_json) as hear:
        report = run_campaign(
            chosen,
            output,
            only=selection,
            retry_failed=retry_failed,
            adopt=adopt or (),
            keep_infeasible=keep_infeasible,
            new=new,
            take_over=take_over,
            grace_s=grace,
            storage_wait_s=storage_wait,
            on_event=hear,
        )
    try:
        if as_json:
            print(json_text(_as_data(report)), flush=True)
        else:
            print_summary(report, _command())
            sys.stdout.flush()
    except OSError:  # nobody reads it, or its disk is full: what the run came to is in the exit code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(report.exit_code)


def _introduce(chosen: "Campaign", selection: "str | Collection[Key] | None", quiet: bool, as_json: bool) -> None:
    """Say what is to be computed: farms, turbines, wind, and what looks wrong. quiet: only what looks wrong."""
    from leeward.campaign.selection import task_counts
    from leeward.cli.preview import header, preview, preview_data

    tasks = task_counts(chosen, selection)
    if as_json:
        print(json_text(preview_data(preview(chosen, tasks))), flush=True)
    elif sys.stderr is not None:
        if not quiet:
            print(header(chosen, tasks), file=sys.stderr, flush=True)
        shown = preview(chosen, tasks)
        for line in shown.warning_lines() if quiet else shown.lines(is_short=True):
            print(line, file=sys.stderr, flush=True)


def _dry_run(chosen: "Campaign", output: Path, options: "Options", picture: Path | None, as_json: bool) -> int:
    """Print all there is to know before a run; return the exit code that the run would fail with, or 0."""
    from leeward.campaign.defaults import with_user_defaults
    from leeward.campaign.selection import task_counts
    from leeward.cli.preview import forecast, forecast_lines, header, preview, preview_data
    from leeward.plots.style import check_picture_path

    if picture is not None:
        check_picture_path(picture)
    tasks = task_counts(chosen, options.only)
    if not as_json:
        print(header(chosen, tasks), flush=True)
    shown = preview(chosen, tasks)
    if not as_json:
        print("\n".join(shown.lines(is_short=False)), flush=True)
    ahead = forecast(shown, with_user_defaults(chosen).execution, output, options)
    if as_json:
        print(json_text(preview_data(shown, ahead)))
    else:
        print("\n".join(forecast_lines(shown, ahead, output)))
    if picture is not None:
        from leeward.plots import save_figure, wind_rose_figure

        save_figure(picture, wind_rose_figure(chosen.site, title=f"wind of {chosen.name}"))
    return exit_code(ahead.errors[0]) if ahead.errors else 0


def _quieten_dask() -> None:
    """What it would print besides: all of it is said by the run itself, in words about layouts."""
    import distributed.config  # noqa: F401 (sets up its logging)

    for top in ("distributed", "tornado", "asyncio"):
        for name in (top, *(name for name in logging.root.manager.loggerDict if name.startswith(f"{top}."))):
            logging.getLogger(name).handlers[:] = [logging.NullHandler()]
            logging.getLogger(name).propagate = False


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _engine(chosen: "Campaign", of_engines: dict[str, dict[str, Any]]) -> str:
    """Which it is. An option of another one would do nothing: that is not what somebody meant who gave it."""
    from leeward.campaign.defaults import with_user_defaults

    engine = with_user_defaults(chosen).execution.engine
    for other, options in of_engines.items():
        given = [_option(name) for name in _given(options)]
        if given and other != engine:
            takes = ", ".join(map(_option, of_engines[engine])) or "none of its own"
            raise InputError(
                f"{', '.join(given)} goes with --engine {other}, and the engine is {engine}, which takes: {takes}"
            )
    return engine


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _campaign(source: Path | None) -> "Campaign":
    from leeward.campaign import builtin_campaign, load

    return builtin_campaign() if source is None else load(str(source))


def _seeds(text: str | None) -> int | str | list[int] | None:
    if text is None:
        return None
    if text.isdigit():
        return int(text)
    if "," in text:
        try:
            return [int(part) for part in text.split(",")]
        except ValueError as error:
            raise InputError(
                f"--seeds is {text!r}; expected a count, a range like 0:50, or a list like 3,7,9"
            ) from error
    return text


def _only(only: str | None, only_from: Path | None) -> Any:
    if only is not None and only_from is not None:
        raise InputError("--only and --only-from are both given; expected one of them")
    if only_from is None:
        return only
    from leeward.campaign.selection import read_keys

    return read_keys(only_from)


def _command() -> str:
    """The command that goes on with this run: the same, but for what is for once only."""
    once = ("--new", "--retry-failed", "--take-over")
    return shlex.join(["leeward", *(word for word in sys.argv[1:] if word not in once)])


def _as_data(report: "RunReport") -> dict[str, Any]:
    return {
        "event": "summary",
        "wanted": len(report.wanted),
        "done": report.done,
        "computed": report.computed,
        "failed": [str(key) for key in report.failed],
        "missing": len(report.missing),
        "quarantined": report.quarantined,
        "output": str(report.paths.output) if report.merged else None,
        "run": str(report.paths.root),
        "seconds": round(report.seconds, 1),
        "exit_code": report.exit_code,
    }
