"""The main program of a worker process: it reads keys from its pipe, computes, stores, and answers.

Started as `python -m leeward.engines.worker_main`. Messages are lines of JSON: commands come on standard input, answers
go to the original standard output; everything else that is printed goes to the worker's log. The process ends with its
coordinator.
"""

import faulthandler
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from leeward.errors import StorageError
from leeward.processes import end_with

if TYPE_CHECKING:
    from leeward.engines.worker import Worker
    from leeward.store import Key

TRY_AGAIN_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # after the disk rejected a write; the last one repeats


def main() -> None:
    parent = int(sys.argv[1])
    end_with(parent)
    for name in (signal.SIGINT, signal.SIGTERM):  # they are for the coordinator, which ends its workers
        signal.signal(name, signal.SIG_IGN)
    answers = os.dup(1)
    os.dup2(2, 1)
    faulthandler.enable()
    commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    me = os.getpid()
    _serve(commands, lambda answer: _send(answers, answer, me))


def _listen(commands: "queue.SimpleQueue[dict[str, Any]]") -> None:
    for line in sys.stdin.buffer:
        commands.put(json.loads(line))
    os._exit(1)  # the coordinator has closed the pipe or is gone


def _send(handle: int, answer: dict[str, Any], worker: int) -> None:
    if os.getpid() != worker:  # a copy that a recipe forked
        os._exit(1)
    content = memoryview((json.dumps(answer) + "\n").encode())
    while content:
        content = content[os.write(handle, content) :]


def _serve(commands: "queue.SimpleQueue[dict[str, Any]]", answer: Callable[[dict[str, Any]], None]) -> None:
    """Read the order, then compute one task after another until the coordinator ends this process."""
    order = commands.get()
    from pathlib import Path

    from leeward.compiling import compile_events
    from leeward.engines.work import FrozenWork
    from leeward.engines.worker import Worker
    from leeward.store import RunPaths, parse_key

    work = FrozenWork(order["kind"], order["text"]).load()
    with compile_events(lambda kind, **facts: answer({kind: facts})):
        work.warm_up()
    worker = Worker(work, RunPaths(Path(order["output"])), f"{socket.gethostname()}-{os.getpid()}-{order['token']}")
    answer({"ready": worker.name})
    while True:
        _perform(worker, parse_key(commands.get()["task"]), answer)


def _perform(worker: "Worker", key: "Key", answer: Callable[[dict[str, Any]], None]) -> None:
    from leeward.engines.worker import last_line

    stuck = 0

    def on_rejected(error: StorageError) -> None:
        nonlocal stuck
        answer({"stuck": str(key), "message": str(error)})
        time.sleep(TRY_AGAIN_S[min(stuck, len(TRY_AGAIN_S) - 1)])
        stuck += 1

    def report(stage: str) -> None:
        nonlocal stuck
        if stuck:
            answer({"unstuck": str(key)})
            stuck = 0
        answer({stage: str(key)})

    began = time.monotonic()
    answer({"taken": str(key)})
    try:
        line = worker.perform(key, report, on_rejected)
    except (Exception, SystemExit) as error:  # the one place that records a task's failure
        facts = {"message": last_line(error), "traceback": traceback.format_exc()}
        answer({"failed": str(key), **facts, "seconds": time.monotonic() - began})
    else:
        answer({"done": str(key), "line": line})


if __name__ == "__main__":
    main()
