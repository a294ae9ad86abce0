"""A Dask cluster for one run: its scheduler runs in this process, and dask-jobqueue starts its workers as SLURM jobs.

Each job is one Dask worker with one thread per core. dask-jobqueue does not replace jobs that end while there is work
for them, nor report why a cluster could not be started. This module does.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import dask
from distributed import Client, Security
from distributed.core import Status

from leeward.campaign.execution import SlurmSpec
from leeward.engines.cluster.links import CONNECT_S, Link
from leeward.engines.cluster.members import Member
from leeward.engines.engine import EngineLostError
from leeward.errors import LeewardError
from leeward.events import Emit
from leeward.files import storage_errors
from leeward.store import CREDENTIALS, RunPaths

_before = signal.getsignal(signal.SIGINT)
from dask_jobqueue.slurm import SLURMCluster, SLURMJob  # noqa: E402

signal.signal(signal.SIGINT, _before)  # the import replaces the handler of Ctrl-C

ADJUST_S = 1.0
QUEUE_S = 10.0  # time between two calls of squeue, to limit the load of SLURM
RETRY_S = 60.0  # time to the next attempt after sbatch has failed
ANSWER_S = 60.0
MOST_AT_ONCE = 10  # most jobs to submit at once
MOST_USELESS_JOBS = 3
CLOSE_S = 60.0
DEATH_TIMEOUT_S = 60  # a job ends after this time without its scheduler
_QUEUED = re.compile(r"(?m)^ *(\d+)\|(\w*)\|(.*)\| *(\S*) *$")
_LEFT = re.compile(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+)\Z")

# detect lost workers, and serve no web pages
DASK_SETTINGS = {
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.deploy.lost-worker-timeout": "15s",
}
EXPORT = "export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES='[]'"  # jobs do not inherit this setting


class _Job(SLURMJob):
    """A job that sets its status, which Dask reads after the job has ended. Its SLURM commands have a time limit."""

    @staticmethod
    async def _call(cmd: list[str], **_: Any) -> str:
        """Return the output of a SLURM command, or raise RuntimeError if it fails or does not end.

        If sbatch is killed, its job may start anyway. That job ends with the others at the end of the run.
        """
        child = await asyncio.create_subprocess_exec(
            *cmd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must not end it
        )
        try:
            output, errors = await asyncio.wait_for(child.communicate(), ANSWER_S)
        except TimeoutError:
            child.kill()
            raise RuntimeError(f"{cmd[0]} has not answered for {ANSWER_S:g} s") from None
        if child.returncode != 0:
            raise RuntimeError(f"stderr:\n{errors.decode(errors='replace')}")
        return output.decode(errors="replace")

    def _job_id_from_submit_output(self, out: str) -> str:
        """Return the number of the job, also with --parsable; a wrapper of sbatch may print other numbers too."""
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


class _Cluster(SLURMCluster):
    job_cls = _Job


class Job(NamedTuple):
    """A job in the queue. state: PENDING, RUNNING, ... reason: why it waits. ends: on the monotonic clock, if known."""

    state: str
    reason: str
    ends: float | None


def parse_queue(text: str, now: float) -> dict[str, Job]:
    """Return jobs by number, from lines `number|state|reason|time left`."""
    jobs = {}
    for number, state, reason, left in _QUEUED.findall(text):
        seconds = seconds_left(left) if state == "RUNNING" else None
        jobs[number] = Job(state, reason, None if seconds is None else now + seconds)
    return jobs


def seconds_left(text: str) -> float | None:
    """Return the seconds in 1-02:03:04, 2:03:04 or 3:04; None for anything else, such as UNLIMITED."""
    found = _LEFT.match(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


class SlurmLink(Link):
    """The connection to a cluster whose number of jobs follows the work, within the given limits."""

    def __init__(self, settings: SlurmSpec, paths: RunPaths, emit: Emit) -> None:
        self._settings = settings
        self._emit = emit
        self._logs = paths.logs
        self._credentials = _make_folder(settings, paths)
        self._queue: dict[str, Job] = {}
        self._known: set[str] = set()  # names of members that are prepared or unfit
        self._used: set[str] = set()  # names of members that have begun a task
        self._ending: set[str] = set()  # names of jobs that are being ended
        self._useless_jobs: list[str] = []  # jobs in a row that ended before their worker could be used, and why
        self._has_started = False
        self._running: Future[None] | None = None
        self._adjusted = self._queue_read = self._not_before = 0.0
        try:
            with dask.config.set(DASK_SETTINGS):
                self._cluster = self._start()
            client = Client(self._cluster, set_as_default=False, timeout=CONNECT_S)
        except BaseException as error:
            shutil.rmtree(self._credentials, ignore_errors=True)
            if isinstance(error, RuntimeError | OSError | ValueError):  # no such network interface, port in use
                raise LeewardError(f"the Dask scheduler for the jobs could not be started here: {error}") from error
            raise
        super().__init__(client, self._cluster.scheduler_address)
        if not settings.tls:
            emit("not-encrypted", address=self.address)

    def _start(self) -> _Cluster:
        settings = self._settings
        name = f"leeward-{self._credentials.name.rpartition('-')[2]}"
        here = "127.0.0.1:0"  # otherwise Dask would listen on all interfaces, even with its pages off
        scheduler = {"dashboard": settings.dashboard is not None, "dashboard_address": settings.dashboard or here}
        return _Cluster(
            name=name,
            job_name=name,
            cores=settings.cores,
            processes=1,
            memory=settings.memory,
            walltime=settings.walltime,
            queue=settings.partition,
            account=settings.account,
            job_extra_directives=["--no-requeue", *settings.options],  # a job that ends is replaced by a new one
            job_script_prologue=[EXPORT, *settings.prologue],
            interface=settings.interface,
            python=settings.python or sys.executable,
            local_directory=settings.scratch,
            log_directory=str(self._logs.absolute()),
            death_timeout=DEATH_TIMEOUT_S,
            worker_extra_args=["--no-dashboard", "--dashboard-address", here],
            security=_security(self._credentials) if settings.tls else None,
            scheduler_options=scheduler,
        )

    @property
    def expects(self) -> str | None:
        waiting = [job for job in self._queue.values() if job.state == "PENDING"]
        if waiting:
            reasons = ", ".join(sorted({job.reason for job in waiting}))
            return f"{len(waiting)} job(s) wait in SLURM's queue ({reasons})"
        starting = set(self._cluster.workers) - self._known
        return f"{len(starting)} job(s) are starting" if starting or not self._has_started else None

    def joined(self, member: Member) -> None:
        member.is_ending = member.name in self._ending
        if member.ends is None:
            member.ends = time.monotonic() + self._settings.walltime_s  # an estimate until squeue reports the end

    def lost(self, member: Member) -> None:
        self._queue_read = 0.0  # read the queue at once: its job may be gone too

    def adjust(self, left: int, members: Sequence[Member]) -> None:
        now = time.monotonic()
        if self._running is not None:
            if not self._running.done():
                return
            done, self._running = self._running, None
            self._handle_error(done.exception())
        if now - self._adjusted < ADJUST_S:
            return
        self._adjusted = now
        self._update(members)
        if len(self._useless_jobs) >= MOST_USELESS_JOBS:
            self._stop_or_pause(members)
        if now < self._not_before:
            return
        if now - self._queue_read > QUEUE_S and self._has_started:
            self._queue_read = now
            self._run(self._read_queue())
        else:
            needed = max(self._settings.least_jobs, -(-left // self._settings.cores))
            self._adjust_jobs(min(self._settings.most_jobs, needed), members)

    def _update(self, members: Sequence[Member]) -> None:
        """Set names and ends of members, also of those that never answer, so that their jobs can be ended."""
        scheduler: Any = self._cluster.scheduler
        for member in members:
            if not member.name and (found := scheduler.workers.get(member.address)) is not None:
                member.name = str(found.name)
            if member.job in self._queue and self._queue[member.job].ends is not None:
                member.ends = self._queue[member.job].ends
            if member.slots or member.unfit:
                self._known.add(member.name)
            if member.heard and member.name not in self._used:
                self._used.add(member.name)
                self._useless_jobs.clear()

    def close(self) -> None:
        """End all jobs, pending ones included, without raising an error."""
        shutil.rmtree(self._credentials, ignore_errors=True)
        numbers = [job.job_id for job in self._cluster.workers.values() if job.job_id is not None]
        try:
            for step in (self.client.close, self._cluster.close):
                try:
                    step(timeout=CLOSE_S)
                except (TimeoutError, OSError, RuntimeError, AssertionError) as error:  # SLURM is slow or unavailable
                    self._emit("not-closed", message=f"{type(error).__name__} {error}".strip(), jobs=numbers)
        finally:  # runs even after a second Ctrl-C
            by_name = f"--name={self._cluster.job_name}"  # includes jobs whose sbatch was interrupted
            for which in ([by_name], numbers):
                with contextlib.suppress(OSError, subprocess.SubprocessError):  # jobs end by themselves
                    subprocess.run(["scancel", "--quiet", *which], capture_output=True, timeout=CLOSE_S, check=False)

    def _adjust_jobs(self, wanted: int, members: Sequence[Member]) -> None:
        """End idle jobs that are spent, unfit or surplus, and submit missing ones."""
        by_name = {member.name: member for member in members}
        spec = self._cluster.worker_spec
        idle = [name for name in spec if name not in by_name or not by_name[name].held]
        ending = {name for name in idle if name in by_name and (by_name[name].is_spent or by_name[name].unfit)}
        for member in (by_name[name] for name in ending):
            if member.unfit and not member.is_ending and member.name not in self._used:
                self._useless_jobs.append(f"{member.job or member.name}: {member.unfit}")
        surplus = len(spec) - len(ending) - wanted
        pending_first = sorted((name for name in idle if name not in ending), key=lambda name: name in by_name)
        if surplus > 0 and self._settings.least_jobs < self._settings.most_jobs:
            ending |= set(pending_first[:surplus])
        self._ending |= ending
        for name in ending & by_name.keys():
            by_name[name].is_ending = True  # it gets no more tasks from now on
        missing = max(0, min(wanted - (len(spec) - len(ending)), MOST_AT_ONCE))
        if ending or missing or set(spec) != set(self._cluster.workers):
            self._run(self._change(ending, missing))

    async def _change(self, ending: set[str], more: int) -> None:
        """End these jobs, and submit this many more."""
        for name in ending:
            self._cluster.worker_spec.pop(name, None)
        for _ in range(more):
            self._cluster._i += 1  # names must be unique
            self._cluster.worker_spec.update(self._cluster.new_worker_spec())
        try:
            await self._cluster._correct_state()
        finally:
            for name in [name for name, job in self._cluster.workers.items() if job.job_id is None]:
                del self._cluster.workers[name]  # sbatch has failed
                self._cluster.worker_spec.pop(name, None)

    def _run(self, action: Coroutine[Any, Any, None]) -> None:
        """Start an action in the thread of the cluster; `adjust` handles its error."""
        loop: Any = self._cluster.loop
        self._running = asyncio.run_coroutine_threadsafe(action, loop.asyncio_loop)

    def _handle_error(self, error: BaseException | None) -> None:
        self._has_started = self._has_started or bool(self._cluster.workers)
        if error is None:
            return
        if not isinstance(error, RuntimeError | OSError):
            raise error
        text = str(error).partition("stderr:\n")[2] or str(error)
        message = "; ".join(line.strip() for line in text.strip().splitlines()) or "no reason was given"
        if not self._has_started:
            raise LeewardError(f"no job could be started: {message}")
        self._not_before = time.monotonic() + RETRY_S
        self._emit("slurm-refuses", message=message, again_s=RETRY_S)

    async def _read_queue(self) -> None:
        """Update the queue. A job that is not in it has ended."""
        output = await _Job._call(["squeue", "--noheader", "--format=%i|%T|%r|%L", "--me"])
        ours = {job.job_id for job in self._cluster.workers.values()}
        queue = parse_queue(output, time.monotonic())
        self._queue = {number: job for number, job in queue.items() if number in ours}
        for name, job in list(self._cluster.workers.items()):
            if job.job_id is not None and job.job_id not in self._queue:
                job.status = Status.closed
                del self._cluster.workers[name]
                self._cluster.worker_spec.pop(name, None)
                if name not in self._known:
                    self._useless_jobs.append(f"{job.job_id}: {self._end_of_log(job.job_id)}")

    def _stop_or_pause(self, members: Sequence[Member]) -> None:
        """Raise EngineLostError if no job works; else pause, because one bad node may get every new job."""
        last = self._useless_jobs[-1]
        message = f"{MOST_USELESS_JOBS} jobs in a row ended before their worker could be used; the last one, {last}"
        if all(member.unfit or member.is_ending for member in members):
            raise EngineLostError(message)
        self._useless_jobs.clear()
        self._not_before = time.monotonic() + RETRY_S
        self._emit("jobs-in-vain", message=message, again_s=RETRY_S)

    def _end_of_log(self, job_id: str) -> str:
        found = ""
        for path in sorted(self._logs.glob(f"*-{job_id}.*")):
            with contextlib.suppress(OSError):
                found += path.read_text(errors="replace")
        return f"its log ends: {found.strip()[-500:]}" if found.strip() else "it left no log"


def _make_folder(settings: SlurmSpec, paths: RunPaths) -> Path:
    """Make a folder for credentials that only this user, and thus the jobs, can read."""
    where = paths.root if settings.credentials is None else Path(settings.credentials).expanduser()
    with storage_errors(where, "a folder for credentials cannot be made there"):
        return Path(tempfile.mkdtemp(prefix=CREDENTIALS, dir=where.absolute()))


def _security(folder: Path) -> Security:
    """Create credentials for this run, in files that its jobs can read."""
    made = Security.temporary().get_tls_config_for_role("worker")
    files = {}
    for name in ("ca_file", "cert", "key"):
        path = folder / f"{name}.pem"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(made[name])
        files[name] = str(path)
    pairs = {
        f"tls_{role}_{name}": files[name] for role in ("client", "scheduler", "worker") for name in ("cert", "key")
    }
    return Security(require_encryption=True, tls_ca_file=files["ca_file"], **pairs)
