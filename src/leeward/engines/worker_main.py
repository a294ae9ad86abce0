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
from collections.abc import Callable
from typing import Any

from leeward.processes import exit_with_parent


def main() -> None:
    parent = int(sys.argv[1])
    exit_with_parent(parent)
    for name in (signal.SIGINT, signal.SIGTERM):  # the coordinator handles them and ends its workers
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
    if os.getpid() != worker:  # a fork of the worker, made by a recipe
        os._exit(1)
    content = memoryview((json.dumps(answer) + "\n").encode())
    while content:
        content = content[os.write(handle, content) :]


def _serve(commands: "queue.SimpleQueue[dict[str, Any]]", answer: Callable[[dict[str, Any]], None]) -> None:
    """Read the order, then compute one task after another until the coordinator ends this process."""
    order = commands.get()
    from pathlib import Path

    from leeward.compiling import compile_events
    from leeward.engines.engine import Outcome, to_message
    from leeward.engines.work import FrozenWork
    from leeward.engines.worker import Worker, failure
    from leeward.store import RunPaths, parse_key

    work = FrozenWork(order["kind"], order["text"]).load()
    with compile_events(lambda kind, **facts: answer({kind: facts})):
        work.warm_up()
    worker = Worker(work, RunPaths(Path(order["output"])), f"{socket.gethostname()}-{os.getpid()}-{order['token']}")

    def send(outcome: Outcome) -> None:
        answer(to_message(outcome))

    def compute(name: str) -> Outcome:
        key, began = parse_key(name), time.monotonic()
        try:
            return worker.perform(key, send, lambda phase: answer({"phase": phase, "key": name}))
        except (Exception, SystemExit) as error:  # the coordinator records the failure
            return failure(key, error, began, worker.name)

    answer({"ready": worker.name})
    while True:
        send(compute(commands.get()["task"]))


if __name__ == "__main__":
    main()
