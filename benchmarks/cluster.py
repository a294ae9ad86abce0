"""Many trivial tasks through Dask on this machine: what each costs, and the memory it takes over time.

Two Dask workers with one thread each, on loopback. Beside it, in the same run: the same tasks by local processes, and
what a script would do with Dask alone, `client.map` over as many calls of a function that does nothing.

    python benchmarks/cluster.py [--tasks 100000]

100 000 tasks take about half an hour and 2 GB in the folder for temporary files.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import distributed
import yaml
from distributed import Client, as_completed

from store import LEEWARD, resident_mb, trivial_campaign
from wake import ONE_CORE, cpu_name

STEPS = 10  # lines of the table


def make_campaign(folder, count):
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(trivial_campaign(folder, count)))
    return path


@contextlib.contextmanager
def dask_cluster(folder):
    """A scheduler and two workers as processes; yields its address and process id."""
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    where = folder / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    processes = [subprocess.Popen([*dask, "scheduler", *options, "--scheduler-file", str(where)], **quiet)]
    try:
        while not where.exists() or not where.read_text():
            time.sleep(0.1)
        address = json.loads(where.read_text())["address"]
        for i in range(2):
            options = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(folder / f"worker{i}")]
            processes.append(subprocess.Popen([*dask, "worker", address, *options], **quiet))
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        yield address, processes[0].pid
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


class Progress:
    """Reads what a run prints, and looks at memory on the way."""

    def __init__(self, count, pids):
        self._marks = [count * step // STEPS for step in range(1, STEPS + 1)]
        self._pids = pids
        self.rows = []
        self.seconds = 0.0

    def follow(self, process):
        began, done = None, 0
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "done":
                began = began or time.perf_counter()  # workers are there: starting them is not what is measured
                done += 1
                if self._marks and done >= self._marks[0]:
                    self._marks.pop(0)
                    memory = {name: resident_mb(pid) for name, pid in self._pids.items()}
                    self.rows.append((done, time.perf_counter() - began, memory))
            elif event["event"] == "merging":
                self.seconds = time.perf_counter() - began
            elif event["event"] == "summary":
                self.complete = event["exit_code"] == 0


def run(folder, count, options, pids=None):
    """A whole run in a process of its own, told by its events."""
    folder.mkdir()
    command = [*LEEWARD, "run", str(make_campaign(folder, count)), "--json", *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    progress = Progress(count, {"coordinator": process.pid, **(pids or {})})
    progress.follow(process)
    process.wait()
    if process.returncode != 0 or not progress.complete:
        raise SystemExit(f"the run with {options} was not complete")
    return progress


def nothing(number):
    return number


def bare_dask(address, scheduler, count):
    """All tasks at once, results gathered as they come: seconds, and what it adds to the scheduler's memory, MB."""
    before = highest = resident_mb(scheduler)
    with Client(address, set_as_default=False) as client:
        began = time.perf_counter()
        futures = client.map(nothing, range(count), pure=False)
        for number, future in enumerate(as_completed(futures, loop=client.loop)):
            future.result()
            if number % 1000 == 0:
                highest = max(highest, resident_mb(scheduler))
        return time.perf_counter() - began, highest - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100_000)
    tasks = parser.parse_args().tasks
    few = min(tasks, 5000)
    os.environ.update(ONE_CORE)
    print(f"{cpu_name()}, {os.cpu_count()} cores, python {platform.python_version()}, ", end="")
    print(f"distributed {distributed.__version__}")
    folder = Path(tempfile.mkdtemp(prefix="leeward-bench-"))
    try:
        local = run(folder / "local", few, ["--engine", "local", "--workers", "2"])
        print(f"local processes: {few} tasks, {1e3 * local.seconds / few:.2f} ms a task", flush=True)
        with dask_cluster(folder) as (address, scheduler):
            seconds, more = bare_dask(address, scheduler, few)
            print(f"bare Dask, nothing stored: {few} tasks, {1e3 * seconds / few:.2f} ms a task, ", end="")
            print(f"the scheduler's memory grows by {more:.0f} MB", flush=True)
        (folder / "scheduler.json").unlink(missing_ok=True)
        with dask_cluster(folder) as (address, scheduler):
            options = ["--engine", "dask", "--scheduler", address]
            dask = run(folder / "dask", tasks, options, {"scheduler": scheduler})
        each = 1e3 * dask.seconds / tasks
        print(f"Dask: {tasks} tasks, {each:.2f} ms a task, {each - 1e3 * local.seconds / few:+.2f} ms beside local")
        print(f"{'done':>8} {'seconds':>8} {'coordinator':>12} {'scheduler':>10}   MB")
        for done, seconds, memory in dask.rows:
            print(f"{done:>8} {seconds:>8.0f} {memory['coordinator']:>12.1f} {memory['scheduler']:>10.1f}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
