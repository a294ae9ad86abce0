"""The main program of a worker process: it reads keys from its pipe, computes, stores, and answers.

Started as `python -m leeward.engines.worker_main`. It computes one task after the other, or batches of them on a GPU.
Messages are lines of JSON: commands come on standard input, answers go to the original standard output; everything else
that is printed goes to the worker's log. The process ends with its coordinator.
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
    me, sending = os.getpid(), threading.Lock()

    def answer(message: dict[str, Any]) -> None:
        with sending:  # the threads of a batch send too
            _send(answers, message, me)

    _serve(commands, answer)


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
    """Read the order, then compute tasks and batches until the coordinator ends this process."""
    order = commands.get()
    from pathlib import Path

    from leeward.compiling import compile_events
    from leeward.engines.batch_worker import BatchWorker
    from leeward.engines.engine import Outcome, to_message
    from leeward.engines.work import FrozenWork
    from leeward.engines.worker import failure, last_line
    from leeward.store import Key, RunPaths, parse_key

    work = FrozenWork(order["kind"], order["text"]).load()

    def emit(kind: str, /, **facts: Any) -> None:
        answer({kind: facts})

    with compile_events(emit):
        work.warm_up()
    worker = BatchWorker(
        work, RunPaths(Path(order["output"])), f"{socket.gethostname()}-{os.getpid()}-{order['token']}"
    )

    def send(outcome: Outcome) -> None:
        answer(to_message(outcome))

    def enter(key: Key, phase: str) -> None:
        answer({"phase": phase, "key": str(key)})

    def compute(name: str) -> Outcome:
        key, began = parse_key(name), time.monotonic()
        try:
            return worker.perform(key, send, enter)
        except (Exception, SystemExit) as error:  # the coordinator records the failure
            return failure(key, error, began, worker.name)

    def compute_batch(names: list[str]) -> None:
        try:
            with compile_events(emit):
                worker.perform_batch([parse_key(name) for name in names], send, enter, lambda: answer({"progress": 1}))
        except BaseException as error:  # the state of the GPU is unknown: another process goes on
            answer({"ending": last_line(error)})
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)  # the end of the interpreter would wait for the driver, and for the thread that reads commands

    answer({"ready": worker.name})
    while True:
        command = commands.get()
        if "batch" in command:
            compute_batch(command["batch"])
        else:
            send(compute(command["task"]))


if __name__ == "__main__":
    main()
