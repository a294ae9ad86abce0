"""The code inside a Dask worker: it receives units of tasks and computes them in worker processes.

Each thread of the Dask worker drives one worker process, the same as with `--engine local`, so that a task that crashes
or hangs affects only itself. The pilot sends outcomes to the coordinator at once. The future of a unit marks its end.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from distributed import Worker, get_worker
from distributed.core import Status

from leeward import __version__
from leeward.compiling import COMPILE_EVENTS
from leeward.engines.engine import Began, Done, Failed, Outcome, to_message
from leeward.engines.local import LocalEngine
from leeward.engines.work import FrozenWork
from leeward.engines.worker_process import Launch, Launcher
from leeward.errors import LeewardError, StorageError
from leeward.files import is_there, read_regular
from leeward.store import Key, RunPaths, parse_key, prepare_folders, probe

POLL_S = 0.25
SUPERVISE_S = 2.0
IDLE_S = 60.0  # an idle worker process ends after this time, because its coordinator may be gone
LARGEST_MESSAGE = 64_000  # bytes of results; a Dask scheduler keeps the last thousand messages
ALIVE = (Status.init, Status.running, Status.paused)
CANCELLED = ("cancelled", "released", "forgotten")

_pilots: dict[str, "_Pilot"] = {}
_changed = threading.Lock()
_launch_thread = ThreadPoolExecutor(1, "leeward-launch")  # one thread that lives as long as this Dask worker


def set_up(order: dict[str, Any]) -> dict[str, Any]:
    """Prepare this Dask worker for a run; return facts about it. It stays prepared while the coordinator keeps these.

    order: token, of the run and of its messages; mark, for the names of worker processes; work, a FrozenWork; output,
    the coordinator's path; probe and content, a file in the run directory and its content; timeout_s.
    """
    worker = get_worker()
    pilot = _Pilot(order, worker, str(worker.get_current_task()))
    with _changed:
        _pilots[order["token"]] = pilot
    return pilot.facts()


def compute_unit(token: str, keys: list[str]) -> int:
    """Compute tasks one after the other until the unit is cancelled; return how many were computed."""
    pilot = _pilots.get(token)
    if pilot is None:
        raise LeewardError("this Dask worker is not prepared for the run")
    return pilot.compute_unit(str(get_worker().get_current_task()), keys)


def tear_down(token: str) -> None:
    """End the worker processes of a run that is over."""
    pilot = _pilots.get(token)
    if pilot is not None:
        pilot.end()


class _Pilot:
    """One run on one Dask worker. key: of the Dask task that prepared it; the coordinator keeps its result."""

    def __init__(self, order: dict[str, Any], worker: Worker, key: str) -> None:
        self._order = order
        self._frozen = FrozenWork(*order["work"])
        self._worker = worker
        self._key = key
        self._unreached = _unreached_reason(order)
        self._own_folder: Path | None = None
        if self._unreached is not None:
            self._own_folder = Path(tempfile.mkdtemp(prefix="leeward-", dir=worker.local_directory))
        output = Path(order["output"])
        self._paths = RunPaths((self._own_folder or output.parent) / output.name)
        if self._own_folder is not None:
            prepare_folders(self._paths)
        self._idle: list[tuple[float, LocalEngine]] = []
        self._changed = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._supervise, name="leeward-pilot", daemon=True).start()

    def facts(self) -> dict[str, Any]:
        ends = os.environ.get("SLURM_JOB_END_TIME", "")
        return {
            "version": __version__,
            "host": socket.gethostname(),
            "name": str(self._worker.name),
            "slots": self._worker.state.nthreads,
            "unreached": self._unreached,
            "job": os.environ.get("SLURM_JOB_ID"),
            "seconds_left": float(ends) - time.time() if ends.isdigit() else None,
        }

    def compute_unit(self, unit: str, names: list[str]) -> int:
        keys = [parse_key(name) for name in names]
        engine = self._take_engine()
        outbox = _Outbox(self._send, unit)
        try:
            for done, key in enumerate(keys):
                if not self._compute_task(engine, outbox, key):
                    engine.close()
                    return done
        except BaseException:
            engine.close()
            raise
        finally:
            outbox.flush()
        self._put_back(engine)
        return len(keys)

    def _compute_task(self, engine: LocalEngine, outbox: "_Outbox", key: Key) -> bool:
        """Compute a task; return False if the unit is cancelled."""
        if self._is_cancelled(outbox.unit):
            return False
        if self._own_folder is None and is_there(self._paths.shard(key)):
            return True  # another worker has stored the result meanwhile, and the coordinator finds it
        began = time.monotonic()
        engine.start(key)
        while True:
            outcomes = engine.poll(POLL_S)
            if any(isinstance(outcome, Began) for outcome in outcomes):
                began = time.monotonic()  # the time to start a process does not count
            seconds = time.monotonic() - began
            outbox.put([self._message(outcome, seconds) for outcome in outcomes])
            if any(isinstance(outcome, Done | Failed) for outcome in outcomes):
                return True
            if self._is_cancelled(outbox.unit):
                return False

    def _is_cancelled(self, unit: str) -> bool:
        """Return whether the coordinator has cancelled the unit or is gone, or whether this Dask worker ends."""
        task = self._worker.state.tasks.get(unit)
        released = task is None or task.state in CANCELLED
        return self._ended.is_set() or released or self._worker.status not in ALIVE

    def _message(self, outcome: Outcome, seconds: float) -> dict[str, Any]:
        """Return an outcome as a message, with the result if this machine cannot reach the run directory."""
        message = to_message(outcome)
        if isinstance(outcome, Done):
            message["took_s"] = seconds
            if self._own_folder is not None:
                shard = self._paths.shard(outcome.key)
                message["shard"] = shard.read_bytes()
                shard.unlink()
        return message

    def _send(self, message: dict[str, Any]) -> None:
        self._worker.log_event(self._order["token"], message)

    def _emit(self, kind: str, /, **facts: Any) -> None:
        """Send an event about compiling. Other problems are reported with their task."""
        if kind in COMPILE_EVENTS:
            self._send({"event": kind, "host": socket.gethostname(), **facts})

    def _take_engine(self) -> LocalEngine:
        """Return an idle engine, or a new one."""
        with self._changed:
            engine = self._idle.pop()[1] if self._idle else None
        if engine is not None:
            engine.poll(0.0)  # detect a dead process now, not during the next task
            return engine
        launcher = Launcher(self._frozen, self._paths, self._order["mark"], _launch)
        return LocalEngine(launcher, 1, self._order["timeout_s"], self._emit)

    def _put_back(self, engine: LocalEngine) -> None:
        with self._changed:
            if not self._ended.is_set():
                self._idle.append((time.monotonic(), engine))
                return
        engine.close()

    def _supervise(self) -> None:
        """End this pilot when its coordinator is gone, end idle processes, and send heartbeats."""
        while not self._ended.wait(SUPERVISE_S):
            if self._worker.status not in ALIVE or self._key not in self._worker.state.tasks:
                self.end()
                return
            self._close_idle(IDLE_S)
            if self._own_folder is not None:
                self._send_heartbeats()

    def _close_idle(self, longer_than_s: float) -> None:
        now = time.monotonic()
        with self._changed:
            old = [engine for since, engine in self._idle if now - since >= longer_than_s]
            self._idle = [(since, engine) for since, engine in self._idle if now - since < longer_than_s]
        for engine in old:
            engine.close()

    def _send_heartbeats(self) -> None:
        """Send the heartbeats in the local folder, which the coordinator cannot reach."""
        beats = []
        for path in self._paths.heartbeats():
            with contextlib.suppress(OSError, ValueError):  # the file disappears when its process ends
                beats.append(json.loads(read_regular(path)))
        self._send({"beats": beats})

    def end(self) -> None:
        """End this pilot; busy threads notice at their next poll. A newer pilot of the same run stays."""
        with _changed:
            if _pilots.get(self._order["token"]) is self:
                del _pilots[self._order["token"]]
        self._ended.set()
        self._close_idle(0.0)
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)  # Dask removes the rest with its folder


class _Outbox:
    """Collects outcomes of a unit, so that short tasks share a message. It limits the delay and size of messages."""

    def __init__(self, send: Callable[[dict[str, Any]], None], unit: str) -> None:
        self.unit = unit
        self._send = send
        self._held: list[dict[str, Any]] = []
        self._size = 0
        self._flushed = 0.0

    def put(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            if self._held and self._size + len(message.get("shard", b"")) > LARGEST_MESSAGE:
                self.flush()
            self._held.append(message)
            self._size += len(message.get("shard", b""))
        if not messages or time.monotonic() - self._flushed > POLL_S:
            self.flush()

    def flush(self) -> None:
        if self._held:
            self._send({"unit": self.unit, "outcomes": self._held})
            self._held = []
            self._size = 0
        self._flushed = time.monotonic()


def _launch(*command: Any, **options: Any) -> "subprocess.Popen[bytes]":
    """Start a process that ends with this Dask worker, not with the calling thread.

    Threads of Dask may end when other tasks secede, and another thread may use the process by then.
    """
    launch: Launch = subprocess.Popen
    return _launch_thread.submit(launch, *command, **options).result()


def _unreached_reason(order: dict[str, Any]) -> str | None:
    """Return why this machine cannot store results in the run directory; None if it can."""
    try:
        if Path(order["probe"]).read_text(encoding="utf-8") != order["content"]:
            return f"{order['probe']} is a different file there"
        probe(RunPaths(Path(order["output"])))
    except (OSError, StorageError) as error:
        return str(error)
    return None
