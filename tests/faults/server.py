"""Performs operations, each in a process of its own, which is forked from this one: `python server.py`.

An order is a line of JSON: operation, folder, turn, and the fault, if there is to be one. So is the answer: how it
ended and which calls were made. Forking spares the start of Python and all imports for each of many faults.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import sys
import time
from pathlib import Path

import operations
from interception import Calls, Fault

from run_cases import PATIENCE_S

SECONDS = 1200.0  # an operation that takes longer hangs, on whatever machine


def perform(order: dict) -> dict:
    """In the forked process. After an error that is no kill, the same call is made again, as its message promises."""
    operation = operations.OPERATIONS[order["operation"]]
    folder = Path(order["folder"])
    os.chdir(folder)
    fault = Fault(**order["fault"]) if order["fault"] else None
    calls = Calls(folder, fault, operation.all_threads)
    act = operation.make(folder, fault)  # what is ready before the calls are counted
    if not operation.traced:
        calls.install()
    handles = _handles(folder)
    answer = _outcome(act, order["turn"])
    answer["calls"] = list(calls.made)
    if operation.traced and not fault:
        answer["calls"], answer["moments"] = operations.traced_calls(folder, operation.traced)
    if answer["ended"] == "raised":
        answer["more_handles"] = _more_handles(folder, handles)
        calls.fault = None
        calls.made.clear()
        operation.mend()
        answer["again"] = {**_outcome(act, "retry"), "calls": list(calls.made)}
    return answer


def _outcome(act, turn: str) -> dict:
    try:
        act(turn)
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"ended": "raised", "kinds": kinds, "message": f"{error}"}
    return {"ended": "done"}


def _handles(folder: Path) -> int:
    """Pipes and the like, and files below the folder; a cache of the package may be mapped into memory for good."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink(f"/proc/self/fd/{name}")
            count += not target.startswith("/") or target.startswith(f"{folder}/")
    return count


def _more_handles(folder: Path, before: int) -> int:
    """Return how many more handles are open than before, once threads have closed the pipes of ended children."""
    end = time.monotonic() + PATIENCE_S
    gc.collect()
    while (more := _handles(folder) - before) > 0 and time.monotonic() < end:
        time.sleep(0.01)
    return more


def fork_and_perform(order: dict) -> dict:
    write = os.write
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        content = memoryview(json.dumps(perform(order)).encode())
        while content:
            content = content[write(writing, content) :]
        os._exit(0)
    os.close(writing)
    pieces = []
    while True:
        if not select.select([reading], [], [], SECONDS)[0]:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(reading)
            return {"ended": "hung"}
        piece = os.read(reading, 1 << 16)
        if not piece:
            break
        pieces.append(piece)
    os.close(reading)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return {"ended": signal.Signals(os.WTERMSIG(status)).name}
    return json.loads(b"".join(pieces))


def main() -> None:
    importlib.import_module("leeward.runs.run")  # once, here
    gc.collect()
    gc.freeze()  # so that looking for garbage in a fork does not copy all of this
    for line in sys.stdin:
        print(json.dumps(fork_and_perform(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
