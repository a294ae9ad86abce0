"""The engine gpu: one worker process for each GPU of this machine, which computes a batch of tasks at a time.

A crash of the driver, a lost GPU or a process killed for its memory is a failed attempt of the unfinished tasks of a
batch, as with the engine local. Any of them may be the cause. They are retried in batches of a quarter of the size,
until a task that fails again and again is alone. Only then does its death count as one of its retries.
"""

import functools
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from leeward.campaign.execution import Execution
from leeward.engines.engine import Assignment, Failed, Outcome
from leeward.engines.local import LocalEngine
from leeward.engines.work import FrozenWork
from leeward.engines.worker_process import Launcher, WorkerProcess
from leeward.errors import InputError
from leeward.events import Emit, ignore
from leeward.store import Key

VISIBLE = "CUDA_VISIBLE_DEVICES"  # environment variable: the GPUs that a process sees
MOST_TASKS = 4096  # in the batches of all GPUs together
SHARE = 4  # after a death, the size of the next batch is that of the unfinished tasks divided by this
PROBE_LIMIT_S = 300.0  # time limit for looking for GPUs; the driver may be slow to start

PROBE = """
import json
from leeward.errors import LeewardError
from leeward.wind.gpu.device import gpus, require
try:
    require()
    print(json.dumps({"gpus": len(gpus())}))
except LeewardError as error:
    print(json.dumps({"error": str(error)}))
"""


class GpuEngine(LocalEngine):
    """Gives each GPU a batch of tasks. devices: values of CUDA_VISIBLE_DEVICES, one for each GPU.

    tasks: the number of tasks in all, which are divided into batches of equal size. timeout_s: time limit without any
    result or progress of a batch.
    """

    def __init__(
        self, launcher: Launcher, devices: list[str], tasks: int, timeout_s: float, emit: Emit = ignore
    ) -> None:
        super().__init__(launcher, len(devices), timeout_s, emit)
        self._devices = devices
        rounds = -(-tasks // MOST_TASKS)
        self._size = max(1, -(-tasks // max(1, rounds * len(devices))))
        self._next: list[Key] = []  # the batch that is being filled
        self._limit = self._size  # the most tasks in it
        self._limits: dict[Key, int] = {}  # the most tasks in a batch with a task whose worker has died

    @classmethod
    def demand(cls, execution: Execution, output: Path) -> None:
        _devices(execution)

    @classmethod
    def open(cls, assignment: Assignment) -> "GpuEngine":
        work, devices = assignment.work, _devices(assignment.work.execution)
        launcher = Launcher(FrozenWork.of(work), assignment.paths, secrets.token_hex(4))
        return cls(launcher, devices, assignment.tasks, work.execution.timeout_s, assignment.emit)

    @classmethod
    def worker_count(cls, execution: Execution, tasks: int) -> int:
        return max(1, min(len(_devices(execution)), tasks))

    @property
    def room(self) -> int:
        return self._limit - len(self._next) if self._free > 0 else 0

    def start(self, key: Key) -> None:
        limit = min(self._limit, self._limits.get(key, self._size))
        if len(self._next) >= limit:
            self._close_batch()
            limit = self._limits.get(key, self._size)
        self._next.append(key)
        self._limit = limit
        if len(self._next) >= limit:
            self._close_batch()

    def poll(self, seconds: float) -> list[Outcome]:
        self._close_batch()  # the coordinator has no more tasks to start now
        return super().poll(seconds)

    def close(self) -> list[Key]:
        self._next.clear()
        return super().close()

    def _close_batch(self) -> None:
        """Give the batch to a GPU, if one is free."""
        if self._next and self._free > 0:
            self._waiting.append(self._next)
            self._next, self._limit = [], self._size
            self._assign()

    def _command(self, names: list[str]) -> dict[str, Any]:
        return {"batch": names}

    def _launch(self) -> WorkerProcess:
        taken = {worker.device for worker in self._workers}
        device = next(device for device in self._devices if device not in taken)
        worker = self._launcher.start(self._selector, {VISIBLE: device})
        worker.device = device
        return worker

    def _late_message(self, seconds: float) -> str:
        return f"killed after {seconds:.0f} s: no result and no progress for {self._timeout_s:g} s"

    def _lost(self, worker: WorkerProcess, kind: str, message: str) -> list[Outcome]:
        unfinished = len(worker.tasks)
        if unfinished > 1:
            message += f"; {unfinished} tasks of its batch were unfinished"
            if kind != "storing":
                self._emit("batch-lost", message=message, worker=worker.name, tasks=unfinished)
        outcomes = super()._lost(worker, kind, message)
        for outcome in outcomes:
            if isinstance(outcome, Failed) and kind != "storing":  # the disk is not the fault of a task
                self._limits[outcome.key] = -(-unfinished // SHARE)
        return outcomes


def _devices(execution: Execution) -> list[str]:
    """Return the GPUs to use, as values of CUDA_VISIBLE_DEVICES. Raise InputError if there are none."""
    visible = os.environ.get(VISIBLE)
    number = _count_gpus(visible, os.environ.get("NUMBA_ENABLE_CUDASIM"))
    names = [str(device) for device in range(number)] if visible is None else visible.split(",")[:number]
    return names[: execution.workers]


@functools.cache
def _count_gpus(*environment: str | None) -> int:
    """Return the number of GPUs that this process sees, or raise InputError.

    A child process asks the driver, because a driver can crash, and because a process that has used a GPU occupies its
    memory until it ends. environment: variables that change the answer.
    """
    command = [sys.executable, "-P", "-c", PROBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_LIMIT_S, stdin=subprocess.DEVNULL)
        answer: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"the NVIDIA driver did not answer for {PROBE_LIMIT_S:g} s; see `nvidia-smi`") from error
    except ValueError as error:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise InputError(f"the GPUs of this machine cannot be listed ({last}); see `nvidia-smi`") from error
    if "error" in answer:
        raise InputError(f"the engine gpu cannot run: {answer['error']}")
    return int(answer["gpus"])
