"""What the tests of engines beyond one machine share: real Dask clusters on this one, whose parts can be killed."""

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import run_cases
from run_cases import PATIENCE_S, until

# Statements for the process of a command. The coordinator is patient: on a machine that stands still for a while it
# takes no worker for lost, and no task that waits for long goes to another worker, which would compute it twice.
PATIENT = (
    "from leeward.engines.cluster import crew, engine, links;"
    f"engine.STALLED_S = crew.ANSWER_S = links.CONNECT_S = links.ANSWER_S = {PATIENCE_S};"
)
# A Dask worker gets a task when it has a free slot, however brief tasks are: none waits behind another one.
ONE_AT_A_TIME = "from leeward.engines.cluster import members; members.MOST_TOGETHER = 1; members.BRIEF_S = 0.0;"
leeward = functools.partial(run_cases.leeward, before=PATIENT)
start = functools.partial(run_cases.start, before=PATIENT)

# What the command `dask` does, in a process that ends with these tests however they end.
_DASK = (
    "import sys; from leeward.processes import exit_with_parent; exit_with_parent(int(sys.argv.pop(1)));"
    "from distributed.cli.dask_{what} import main; main()"
)


class DaskWorker:
    """A Dask worker under a nanny: two processes in a group of their own."""

    def __init__(self, process: subprocess.Popen, log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def starts(self) -> int:
        """How often it has registered: once more after each death that its nanny saw."""
        return self.log.read_text().count("Registered to:")

    @property
    def inner(self) -> int:
        """Process id of the worker under the nanny."""

        def found() -> int | None:
            for pid in children_of(self.process.pid):
                if b"spawn_main" in command_of(pid):
                    return pid
            return None

        return until(found, "a Dask worker under its nanny")

    def kill(self) -> None:
        """Nanny and all, as by a machine that fails; what they started ends with them."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class DaskCluster:
    """A scheduler and its workers; within it they live, after it nothing of them does."""

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 0,
        threads: int = 1,
        host: str = "127.0.0.1",
        protocol: str = "tcp",
        options: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.workers: list[DaskWorker] = []
        self.address = ""
        self.scheduler: subprocess.Popen | None = None
        self._first = [threads] * workers
        self._host = host
        self._protocol = protocol
        self._options = options
        self._environment = {**os.environ, **(environment or {})}

    def __enter__(self) -> "DaskCluster":
        self.folder.mkdir(exist_ok=True)
        try:
            self._start_scheduler()
            for threads in self._first:
                self.add_worker(threads=threads, wait=False)
            self.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def _start_scheduler(self) -> None:
        log = self.folder / "scheduler.log"
        places = ["--host", self._host, "--port", "0", "--no-dashboard", "--dashboard-address", f"{self._host}:0"]
        places += ["--protocol", self._protocol]
        self.scheduler = _start("scheduler", [*places, *self._options], log, self._environment)

        def found() -> str | None:
            if self.scheduler.poll() is not None:
                raise AssertionError(log.read_text())
            line = re.search(r"Scheduler at:\s+(\S+)", log.read_text())
            return line and line[1]

        self.address = until(found, "the scheduler listens")

    def add_worker(
        self,
        *,
        threads: int = 1,
        wrap: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
        options: tuple[str, ...] = (),
        host: str | None = None,
        wait: bool = True,
    ) -> DaskWorker:
        """wrap: a command that starts it in some other surroundings, and becomes it: unshare, ip netns exec."""
        name = f"w{len(self.workers)}"
        log = self.folder / f"{name}.log"
        local = self.folder / f"{name}.local"
        arguments = [self.address, "--name", name, "--nthreads", str(threads), "--no-dashboard"]
        arguments += ["--local-directory", str(local), "--host", host or self._host, "--memory-limit", "0"]
        arguments += ["--protocol", self._protocol]
        environment = {**self._environment, **(environment or {})}
        process = _start("worker", [*arguments, *self._options, *options], log, environment, wrap)
        worker = DaskWorker(process, log)
        self.workers.append(worker)
        if wait:
            self.wait()
        return worker

    def wait(self) -> None:
        """Until all workers that were started, and live, have registered."""
        for worker in self.workers:

            def is_there(worker: DaskWorker = worker) -> bool:
                if worker.process.poll() is not None and not worker.starts:
                    raise AssertionError(worker.log.read_text())
                return worker.starts > 0

            until(is_there, f"{worker.log.stem} registers")

    def kill_scheduler(self) -> None:
        self.scheduler.kill()
        self.scheduler.wait()

    def stop(self) -> None:
        for worker in self.workers:
            worker.kill()
        if self.scheduler is not None:
            self.kill_scheduler()
        for folder in self.folder.glob("*.local"):
            shutil.rmtree(folder, ignore_errors=True)


def _start(what, arguments, log, environment, wrap=()) -> subprocess.Popen:
    command = [*wrap, sys.executable, "-P", "-c", _DASK.format(what=what), str(os.getpid()), *arguments]
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            cwd=log.parent,
        )


# --- processes -------------------------------------------------------------------------------------------------------


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] + [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            if task.name != str(pid)
            for child in (task / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return []


def worker_processes(folder: Path) -> list[int]:
    """Worker processes of leeward that live and belong to a run in the folder: their log is there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and b"leeward.engines.worker_main" in command_of(int(entry.name)):
            with contextlib.suppress(OSError):
                if os.readlink(entry / "fd" / "2").startswith(str(folder)):
                    found.append(int(entry.name))
    return found


def lives(pid: int) -> bool:
    """A zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_tidy(run: Path, folder: Path | None = None) -> None:
    """Nothing of a run that has ended is left but what it is to leave. folder: where logs of its workers are.

    A Dask worker may hear of the end after the run is over, and buries its worker processes then.
    """
    assert not (run / "lock").exists()
    until(lambda: not worker_processes(folder or run.parent), "worker processes end with their run")
    until(lambda: not list((run / "workers").glob("*.json")), "so do their heartbeats")  # killed writers leave .tmp
    until(lambda: not list(run.glob(".probe-*")), "and so do the probes")


def wait_for(process: subprocess.Popen, seconds: float = PATIENCE_S) -> int:
    """The exit code of a command; what it said where it does not end."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        output = Path(f"/proc/{process.pid}/fd/1").resolve()
        process.kill()
        text = output.read_text()[-3000:] if output.is_file() else ""
        raise AssertionError(f"{process.args[4:]} has not ended within {seconds} s: {text}") from None


def called(folder: Path) -> list[tuple[int, int]]:
    """Seeds whose recipe was called, and process ids of the workers that did; in order."""
    path = folder / "calls.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(line.split()[0]), int(line.split()[1])) for line in lines if len(line.split()) == 2]
