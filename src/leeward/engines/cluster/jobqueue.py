"""The jobs of SLURM: started by dask-jobqueue, and looked for with squeue."""

import asyncio
import re
import signal
from dataclasses import dataclass
from typing import Any

from distributed.core import Status

_before = signal.getsignal(signal.SIGINT)
from dask_jobqueue.slurm import SLURMCluster, SLURMJob  # noqa: E402

signal.signal(signal.SIGINT, _before)  # its import takes Ctrl-C for itself, as if it were a program of its own

ANSWER_S = 60.0
_LEFT = re.compile(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+)\Z")


async def answer_of(*command: str) -> str:
    """What a command of SLURM prints; a RuntimeError where it refuses, or does not end."""
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is not for it
    )
    try:
        output, errors = await asyncio.wait_for(child.communicate(), ANSWER_S)
    except TimeoutError:
        child.kill()
        raise RuntimeError(f"{command[0]} has not answered for {ANSWER_S:g} s") from None
    if child.returncode != 0:
        raise RuntimeError(f"stderr:\n{errors.decode(errors='replace')}")
    return output.decode(errors="replace")


class _Job(SLURMJob):
    """One that says how it is: Dask demands it of those that are over. And commands of SLURM have a time limit."""

    @staticmethod
    async def _call(cmd: list[str], **_: Any) -> str:
        """A job of an sbatch that was killed comes all the same, or goes with the others when the run is over."""
        return await answer_of(*cmd)

    def _job_id_from_submit_output(self, out: str) -> str:
        """The number of the job, also with --parsable; a cluster's own sbatch may print other numbers too."""
        numbers = re.findall(r"(?m)^(?:.*Submitted batch job )?(\d+)(?:;\S*| on cluster .*)?\s*$", out)
        if not numbers:
            raise RuntimeError(f"stderr:\nsbatch printed {out.strip()!r:.200}; expected: Submitted batch job NUMBER")
        return str(numbers[-1])

    async def start(self) -> None:
        try:
            await super().start()
        except BaseException:
            self.status = Status.failed
            raise

    async def close(self) -> None:
        await super().close()
        self.status = Status.closed


class JobCluster(SLURMCluster):
    job_cls = _Job


@dataclass(frozen=True)
class Job:
    """state: PENDING, RUNNING, ... reason: why it waits. ends: on the monotonic clock, if there is a limit."""

    state: str
    reason: str
    ends: float | None


def parse_queue(text: str, now: float) -> dict[str, Job]:
    """Jobs by their numbers, from lines of number, state, reason and time left, between bars."""
    jobs = {}
    for line in text.splitlines():
        number, _, rest = line.partition("|")
        state, _, rest = rest.partition("|")
        reason, _, left = rest.rpartition("|")
        seconds = seconds_left(left.strip())
        is_running = state == "RUNNING" and seconds is not None
        jobs[number.strip()] = Job(state, reason, now + seconds if is_running and seconds is not None else None)
    return jobs


def seconds_left(text: str) -> float | None:
    """Of 1-02:03:04, 2:03:04 or 3:04; None for anything else, such as UNLIMITED."""
    found = _LEFT.match(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
