"""`leeward slurm-script`: a batch file that runs a campaign inside a job, again and again until it is complete."""

import re
import shlex
import sys
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from typer import Option

from leeward.cli.options import CAMPAIGN, RUN_OUTPUT, Options, given
from leeward.cli.output import picked
from leeward.cli.sources import run_campaign
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.campaign.execution import SlurmSpec

COORDINATOR = {"cores": 1, "memory": "4GB"}  # of a job that starts others
LONGEST_WARNING_S, SHORTEST_WARNING_S = 300, 30
SHORTEST_WALLTIME_S = 120
LAST_CALL_S = 20  # before the end

SCRIPT = Template("""\
#!/usr/bin/env bash
# The campaign $campaign inside a job of SLURM. Submit it with `sbatch`: it goes back into the queue by itself
# until every layout is there, and never computes a finished one again.
#SBATCH --job-name=$name
#SBATCH --output=$name-%j.log
#SBATCH --open-mode=append
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=$cores
#SBATCH --mem=$memory
#SBATCH --time=$walltime
#SBATCH --requeue
#SBATCH --signal=B:TERM@$warning
$directives
cd $folder || exit 1
$prologue
set +e # whatever was set above: codes other than 0 are looked at below
go_on() { # back into the queue, unless somebody has cancelled the job or it was there since; SLURM may be busy
  for pause in 1 2 4; do
    read -r state restarts <<< "$$(squeue --noheader --Format=State,RestartCnt --jobs="$$SLURM_JOB_ID")"
    if [ "$$state $$restarts" = "RUNNING $${SLURM_RESTART_COUNT:-0}" ]; then
      echo "$$(date '+%Y-%m-%d %H:%M:%S') time is nearly up: back into the queue"
      scontrol requeue "$$SLURM_JOB_ID" && return
    elif [ -n "$$state" ]; then
      return
    fi
    sleep "$$pause"
  done
}

warned() { # tasks in hand may finish; if that takes too long, what is stored is stored
  kill -TERM "$$run" 2> /dev/null
  { sleep $patience && go_on; } &
}

trap warned TERM
$command &
run=$$!
while kill -0 "$$run" 2> /dev/null; do # a signal ends `wait` before its time, with a code of its own
  wait "$$run"
done
wait "$$run"
code=$$?
if [ "$$code" -eq 143 ]; then
  go_on
fi
exit "$$code"
""")


class JobOptions(Options):
    """The jobs."""

    jobs: str | None = Option(None, help="With --engine slurm: how many jobs, 8; or a range, 2:20.")
    cores: int | None = Option(None, help="Cores of a job; each computes a layout.")
    memory: str | None = Option(None, help="Memory of a job, 64GB.")
    walltime: str | None = Option(None, help="Time limit of a job, 2:00:00; two minutes or more.")
    partition: str | None = Option(None, help="Partition of the jobs.")
    account: str | None = Option(None, help="Account that pays for them.")


class SlurmScriptOptions(Options):
    """Print a batch file for sbatch that runs a campaign inside a job of SLURM until it is complete.

    Before its time limit the job is warned by SIGTERM: tasks in hand finish, and the job goes back into the queue,
    until every layout is there. A job that somebody cancels stays cancelled. What is not given here comes from the
    campaign's `execution.slurm` and from your defaults file.

    Exit codes: 0 it is printed; 1 the campaign cannot be read; 2 wrong use. Those of the job are those of `leeward
    run`.
    """

    campaign: Path | None = CAMPAIGN
    output: Path = RUN_OUTPUT
    engine: str = Option(
        "local", help="local: on the job's own cores. slurm: the job starts others, of which these are sizes."
    )
    job: JobOptions
    seeds: str | None = Option(None, help="As for `leeward run`: 50, 0:50, 3,7,9.")


def slurm_script(options: SlurmScriptOptions) -> None:
    """Print a batch file."""
    from leeward.campaign.defaults import with_user_defaults

    engine = options.engine
    if engine not in ("local", "slurm"):
        raise InputError(f"--engine is {engine!r}; expected local or slurm")
    if options.job.jobs is not None and engine != "slurm":
        raise InputError("--jobs goes with --engine slurm; with --engine local the campaign runs in one job at a time")
    chosen = run_campaign(options.campaign)
    settings = with_user_defaults(chosen.with_overrides(slurm=given(vars(options.job)))).execution.slurm
    words = [*([] if options.campaign is None else [str(options.campaign)]), "-o", str(options.output)]
    words += [] if options.seeds is None else ["--seeds", options.seeds]
    print(script(chosen.name, settings, engine, words, options.output.stem), end="")


def script(campaign: str, settings: "SlurmSpec", engine: str, options: list[str], stem: str) -> str:
    """The batch file."""
    if settings.walltime_s < SHORTEST_WALLTIME_S:
        raise InputError(
            f"walltime is {settings.walltime}; expected 0:02:00 or more: SLURM may warn a minute too early, and "
            "nothing would be computed before it"
        )
    warning = int(max(SHORTEST_WARNING_S, min(LONGEST_WARNING_S, settings.walltime_s // 4)))
    job = COORDINATOR if engine == "slurm" else {"cores": settings.cores, "memory": settings.memory}
    directives = [f"--{name}={value}" for name, value in given(picked(settings, "partition", "account")).items()]
    directives += settings.options if engine == "local" else []  # those of the jobs that do the work
    beside = Path(sys.executable).parent / "leeward"  # the one that prints it, wherever the job starts
    program = beside if beside.exists() else "leeward"
    return SCRIPT.substitute(
        campaign=campaign.replace("\n", " "),
        name="leeward-" + re.sub(r"[^\w.-]", "_", stem),
        cores=job["cores"],
        memory=_megabytes(str(job["memory"])),
        walltime=settings.walltime,
        warning=warning,
        patience=warning - LAST_CALL_S if warning > 2 * LAST_CALL_S else warning // 2,
        directives="".join(f"#SBATCH {directive}\n" for directive in directives),
        folder=shlex.quote(str(Path.cwd())),
        prologue="".join(f"{line}\n" for line in settings.prologue),
        # taken over: the job before this one may have died with its node, and cannot give back what it held
        command=shlex.join(
            [str(program), "run", *options, *_engine(settings, engine), "--take-over", "--grace", str(warning // 2)]
        ),
    )


def _megabytes(memory: str) -> str:
    """As sbatch takes it: whole mebibytes, rounded up."""
    number, factor, binary = re.fullmatch(r"([0-9.]+)\s*([KMGT])(i?)B", memory).groups()  # type: ignore[union-attr]
    size = float(number) * (1024 if binary else 1000) ** (" KMGT".index(factor))
    return f"{-(-int(size) // 1024**2)}M"


def _engine(settings: "SlurmSpec", engine: str) -> list[str]:
    if engine == "local":
        return ["--engine", "local", "--workers", str(settings.cores)]
    named = given(picked(settings, "jobs", "cores", "memory", "walltime", "partition", "account"))
    return ["--engine", "slurm", *(word for name, value in named.items() for word in (f"--{name}", str(value)))]
