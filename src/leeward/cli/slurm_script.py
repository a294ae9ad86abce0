"""`leeward slurm-script`: print a batch file that runs a campaign or study in a job until it is complete."""

import re
import shlex
import sys
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from typer import Argument, Option

from leeward.cli.options import Options, SlurmOptions, given
from leeward.cli.output import picked
from leeward.cli.sources import given_work
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.campaign.execution import SlurmSpec

COORDINATOR = {"cores": 1, "memory": "4GB"}  # size of a job that only starts other jobs
GPU_OPTION = re.compile(r"--(gres|gpus)\b|-G")  # options of sbatch that ask for GPUs
LONGEST_WARNING_S, SHORTEST_WARNING_S = 300, 30
SHORTEST_WALLTIME_S = 120
LAST_CALL_S = 20  # the job requeues itself this many seconds before its time limit

SCRIPT = Template("""\
#!/usr/bin/env bash
# Runs $campaign in a SLURM job. Submit it with `sbatch`. The job requeues itself until every task is done, and never
# recomputes a finished one.
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
set +e # exit codes other than 0 are handled below
requeue() { # unless the job was cancelled or requeued meanwhile; retry, as SLURM may be busy
  for pause in 1 2 4; do
    read -r state restarts <<< "$$(squeue --noheader --Format=State,RestartCnt --jobs="$$SLURM_JOB_ID")"
    if [ "$$state $$restarts" = "RUNNING $${SLURM_RESTART_COUNT:-0}" ]; then
      echo "$$(date '+%Y-%m-%d %H:%M:%S') the time limit is near: requeueing"
      scontrol requeue "$$SLURM_JOB_ID" && return
    elif [ -n "$$state" ]; then
      return
    fi
    sleep "$$pause"
  done
}

warned() { # let running tasks finish; if that takes too long, requeue without them
  kill -TERM "$$run" 2> /dev/null
  { sleep $patience && requeue; } &
}

trap warned TERM
$command &
run=$$!
while kill -0 "$$run" 2> /dev/null; do # a signal ends `wait` early, with another exit code
  wait "$$run"
done
wait "$$run"
code=$$?
if [ "$$code" -eq 143 ]; then
  requeue
fi
exit "$$code"
""")


class SlurmScriptOptions(Options):
    """Print a batch file for sbatch that runs a campaign or a study in a SLURM job until it is complete.

    SLURM warns the job with SIGTERM before its time limit, which must be two minutes or more: running tasks finish, and
    the job requeues itself, until every task is done. A cancelled job stays cancelled. Options not given here come
    from the campaign's `execution.slurm` and from your defaults file.

    Exit codes: 0 printed; 1 the campaign cannot be read; 2 usage error. The job exits with the codes of `leeward run`
    or `leeward evaluate`.
    """

    campaign: Path | None = Argument(
        None, help="Campaign file or study file (YAML), or name of a built-in campaign. Default: the built-in campaign."
    )
    output: Path | None = Option(
        None, "--output", "-o", help="Merged file. Default: layouts.h5, or study.h5 for a study."
    )
    engine: str | None = Option(
        None,
        help="local: compute in this job. gpu: compute in this job, for which the script asks for a GPU. slurm: this "
        "job starts other jobs, which have the given size. Default: gpu if the file says so, or local.",
    )
    slurm: SlurmOptions
    seeds: str | None = Option(
        None, help="Seeds: a count (50), a range (0:50) or a list (3,7,9). Default: the campaign's."
    )


def slurm_script(options: SlurmScriptOptions) -> None:
    """Print a batch file."""
    from leeward.campaign.execution import with_user_defaults

    engine = options.engine
    if engine not in (None, "local", "gpu", "slurm"):
        raise InputError(f"--engine is {engine!r}; expected local, gpu or slurm")
    from leeward.campaign import Campaign, builtin_campaign

    chosen = builtin_campaign() if options.campaign is None else given_work(str(options.campaign))
    if engine is None:
        engine = "gpu" if chosen.execution.engine == "gpu" else "local"
    if options.slurm.jobs is not None and engine != "slurm":
        raise InputError(f"--jobs needs --engine slurm; with --engine {engine} the campaign runs in one job at a time")
    slurm = given(vars(options.slurm))
    if isinstance(chosen, Campaign):
        name, usual, chosen = "run", "layouts.h5", chosen.with_overrides(slurm=slurm)
    else:
        name, usual, chosen = "evaluate", "study.h5", chosen.with_execution(slurm=slurm)
        if options.seeds is not None:
            raise InputError("--seeds is given, but a study has no seeds; leave it out")
    settings = with_user_defaults(chosen.execution).slurm
    output = options.output or Path(usual)
    words = [name, *([] if options.campaign is None else [str(options.campaign)]), "-o", str(output)]
    words += [] if options.seeds is None else ["--seeds", options.seeds]
    print(script(chosen.name, settings, engine, words, output.stem), end="")


def script(campaign: str, settings: "SlurmSpec", engine: str, options: list[str], stem: str) -> str:
    """Return the text of the batch file. options: the command of leeward and its options."""
    if settings.walltime_s < SHORTEST_WALLTIME_S:
        raise InputError(
            f"walltime is {settings.walltime}; expected 0:02:00 or more, because SLURM may warn the job up to a minute "
            "too early"
        )
    warning = int(max(SHORTEST_WARNING_S, min(LONGEST_WARNING_S, settings.walltime_s // 4)))
    job = COORDINATOR if engine == "slurm" else {"cores": settings.cores, "memory": settings.memory}
    directives = [f"--{name}={value}" for name, value in given(picked(settings, "partition", "account")).items()]
    directives += settings.options if engine != "slurm" else []  # these options are only for jobs that compute
    if engine == "gpu" and not any(GPU_OPTION.match(option) for option in settings.options):
        directives.append("--gres=gpu:1")
    beside = Path(sys.executable).parent / "leeward"  # use the installation that prints the script
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
        # --take-over: the previous job may have died with its node and left its lock
        command=shlex.join(
            [str(program), *options, *_engine(settings, engine), "--take-over", "--grace", str(warning // 2)]
        ),
    )


def _megabytes(memory: str) -> str:
    """Return a size in whole mebibytes, rounded up, in the format of sbatch."""
    number, factor, binary = re.fullmatch(r"([0-9.]+)\s*([KMGT])(i?)B", memory).groups()  # type: ignore[union-attr]
    size = float(number) * (1024 if binary else 1000) ** (" KMGT".index(factor))
    return f"{-(-int(size) // 1024**2)}M"


def _engine(settings: "SlurmSpec", engine: str) -> list[str]:
    if engine == "local":
        return ["--engine", "local", "--workers", str(settings.cores)]
    if engine == "gpu":
        return ["--engine", "gpu"]
    named = given(picked(settings, "jobs", "cores", "memory", "walltime", "partition", "account"))
    return ["--engine", "slurm", *(word for name, value in named.items() for word in (f"--{name}", str(value)))]
