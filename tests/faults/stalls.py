"""Helpers for the tests of stopped workers and slow disks."""

import json
import os
from pathlib import Path

from run_cases import RECIPE, make_campaign

# Further orders for tasks; each is followed once, by whoever comes first, so that the next attempt is sound.
ORDERS = '''
import ctypes, json, re

def named(_):
    """Goes on once a sign of life of this worker names its task: whoever looks at it then knows what it is at."""
    while True:
        for beat in (HERE / "layouts.run" / "workers").glob("*.json"):
            try:
                seen = json.loads(beat.read_bytes())
            except (FileNotFoundError, ValueError):
                continue
            if seen["pid"] == os.getpid() and seen["task"]:
                return
        time.sleep(0.02)

def first(name):
    try:
        (HERE / f"did-{name}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def stop(_):
    """As by SIGSTOP from outside, at a moment that is known."""
    if first("stop"):
        os.kill(os.getpid(), signal.SIGSTOP)

def spin(_):
    """An endless loop in C that never gives the interpreter to another thread."""
    if first("spin"):
        re.match("(a+)+$", 100 * "a" + "b")

def hold(_):
    """The same, asleep."""
    if first("hold"):
        ctypes.PyDLL(None).pause()
'''

# Put into a process by Python itself, which imports a module of this name whenever it starts.
SLOW_DISK = """
import json, os, re, sys, threading, time
from pathlib import Path

here = Path(__file__).parent
mended = here / "mended"
order = json.loads((here / "slow.json").read_text())
who = "worker" if "leeward.engines.worker_main" in sys.orig_argv else "coordinator"

def is_due(handle):
    if not re.search(order["where"], os.readlink(f"/proc/self/fd/{handle}")):
        return False
    for number in range(order["times"]):
        try:
            with (here / f"slow-{number}").open("x") as mark:
                mark.write(str(os.getpid()))
        except FileExistsError:
            continue
        return True
    return False

def wait():
    end = time.monotonic() + order["seconds"]
    while time.monotonic() < end and not mended.exists():
        time.sleep(0.02)

def leap():
    passed = float(Path("leap").read_text()) if Path("leap").exists() else 0.0
    Path("leap.new").write_text(str(passed + order["seconds"]))
    os.replace("leap.new", "leap")

def slow(real):
    def call(handle, *others):
        if order["leaps"]:  # for the thread that watches the workers
            if threading.current_thread() is threading.main_thread() and is_due(handle):
                leap()
        elif is_due(handle):
            wait()
        return real(handle, *others)
    return call

if who == order["who"]:
    setattr(os, order["call"], slow(getattr(os, order["call"])))
"""

# The first worker of a run stands still as soon as its Python starts.
STOPPED_START = """
import os, signal, sys
from pathlib import Path

if "leeward.engines.worker_main" in sys.orig_argv:
    try:
        with (Path(__file__).parent / "stopped").open("x") as mark:
            mark.write(str(os.getpid()))
    except FileExistsError:
        pass
    else:
        os.kill(os.getpid(), signal.SIGSTOP)
"""

FOR_EVER = 100_000  # times, or seconds


def stalling_campaign(folder: Path, **options) -> Path:
    """As `make_campaign`, with more orders for tasks to follow."""
    path = make_campaign(folder, **options)
    (folder / "own_recipe_of_tests.py").write_text(RECIPE + ORDERS)
    return path


def slow_disk(
    folder: Path,
    where: str,
    seconds: float,
    *,
    who: str = "worker",
    call: str = "fsync",
    times: int = FOR_EVER,
    leaps: bool = False,
) -> dict[str, str]:
    """Return the environment of a run in which a system call on files whose path matches `where` takes so long.

    The call returns earlier when the disk is mended. leaps: the call returns at once, and the clock of a coordinator
    that `start_calmly` started goes forward by so many seconds.
    """
    place = folder / "slow-disk"
    environment = _started_with(place, SLOW_DISK)
    order = {"where": where, "seconds": seconds, "who": who, "call": call, "times": times, "leaps": leaps}
    (place / "slow.json").write_text(json.dumps(order))
    return environment


def stopped_start(folder: Path) -> dict[str, str]:
    """The environment of a run whose first worker is stopped while it starts."""
    return _started_with(folder / "stopped-start", STOPPED_START)


def stopped_worker(folder: Path) -> int | None:
    """That one; None as long as there is none."""
    mark = folder / "stopped-start" / "stopped"
    text = mark.read_text() if mark.exists() else ""
    return int(text) if text else None


def _started_with(place: Path, code: str) -> dict[str, str]:
    """An environment in which every Python runs this code first."""
    place.mkdir()
    (place / "sitecustomize.py").write_text(code)
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), *([before] if before else [])])}


def slowed(folder: Path) -> list[int]:
    """For each call that took longer, or takes long, the process that made it."""
    marks = (folder / "slow-disk").glob("slow-[0-9]*")
    return [int(text) for mark in marks if (text := mark.read_text())]


def mend(folder: Path) -> None:
    """From now on the disk is as quick as any."""
    (folder / "slow-disk" / "mended").touch()
