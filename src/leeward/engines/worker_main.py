"""A worker process: takes one key after another from its pipe, computes, stores, and says so.

Started as `python -m leeward.engines.worker_main`. It talks to its coordinator in lines of JSON: commands come on
standard input, answers go to what was standard output; whatever else prints goes to the worker's log. It ends with its
coordinator, however that ends.
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

from leeward.errors import StorageError
from leeward.processes import end_with

TRY_AGAIN_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # after a refusal of the disk, then always the last


def main() -> None:
    parent = int(sys.argv[1])
    end_with(parent)
    for name in (signal.SIGINT, signal.SIGTERM):  # meant for the coordinator, which decides what becomes of us
        signal.signal(name, signal.SIG_IGN)
    answers = os.dup(1)
    os.dup2(2, 1)
    faulthandler.enable()
    commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    me = os.getpid()
    _Worker(commands, lambda answer: _send(answers, answer, me)).serve()


def _listen(commands: "queue.SimpleQueue[dict[str, Any]]") -> None:
    for line in sys.stdin.buffer:
        commands.put(json.loads(line))
    os._exit(1)  # the coordinator has closed the pipe, or is gone; what was stored is stored


def _send(handle: int, answer: dict[str, Any], worker: int) -> None:
    if os.getpid() != worker:  # a copy that a recipe has forked, and let go on here
        os._exit(1)
    content = memoryview((json.dumps(answer) + "\n").encode())
    while content:
        content = content[os.write(handle, content) :]


class _Worker:
    """What the main thread does."""

    def __init__(self, commands: "queue.SimpleQueue[dict[str, Any]]", answer: Callable[[dict[str, Any]], None]) -> None:
        self._commands = commands
        self._answer = answer

    def serve(self) -> None:
        order = self._commands.get()
        from pathlib import Path

        from leeward.campaign import Campaign
        from leeward.compiling import compile_events
        from leeward.engines.heartbeat import Heartbeat
        from leeward.engines.warming import warm_up
        from leeward.store import Key, RunPaths

        paths = RunPaths(Path(order["output"]))
        campaign = Campaign.from_text(order["campaign"], "the campaign")
        with compile_events(lambda event, **facts: self._answer({event: facts})):
            warm_up(campaign)
        name = f"{socket.gethostname()}-{os.getpid()}-{order['token']}"
        heart = Heartbeat(paths.workers / f"{name}.json", name)
        heart.start()
        self._answer({"ready": name})
        while True:  # until the coordinator ends us
            self._perform(campaign, paths, Key.parse(self._commands.get()["task"]), name, heart)

    def _perform(self, campaign: Any, paths: Any, key: Any, name: str, heart: Any) -> None:
        from leeward.engines.compute import perform
        from leeward.engines.inline import last_line

        stuck = 0

        def trouble(error: StorageError) -> None:
            nonlocal stuck
            heart.say(state="waiting for storage")
            self._answer({"stuck": str(key), "message": str(error)})
            time.sleep(TRY_AGAIN_S[min(stuck, len(TRY_AGAIN_S) - 1)])
            stuck += 1

        def report(what: str) -> None:
            nonlocal stuck
            if stuck:
                self._answer({"unstuck": str(key)})
                stuck = 0
            heart.say(state="storing" if what == "computed" else "computing")
            self._answer({what: str(key)})

        began = time.monotonic()
        self._answer({"taken": str(key)})
        heart.begin(str(key))
        try:
            line = perform(campaign, paths, key, name, report, trouble, heart.watch)
        except (Exception, SystemExit) as error:  # the one place that records a task's failure
            shown = traceback.format_exc()
            answer = {"failed": str(key), "message": last_line(error), "traceback": shown}
            self._answer({**answer, "seconds": time.monotonic() - began})
        else:
            self._answer({"done": str(key), "line": line})
        heart.rest()


if __name__ == "__main__":
    main()
