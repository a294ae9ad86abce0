"""Workers that stand still, and disks that take long: what the tests of both share."""

import json
import os
import subprocess
import sys
from pathlib import Path

from run_cases import RECIPE, make_campaign

# Further orders for tasks; each is followed once, by whoever comes first, so that the next attempt is sound.
ORDERS = '''
import ctypes, re

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
import json, os, re, sys, time
from pathlib import Path

here = Path(__file__).parent
order = json.loads((here / "slow.json").read_text())
who = "worker" if "leeward.engine.worker" in sys.orig_argv else "coordinator"

def is_due(handle):
    if not re.search(order["where"], os.readlink(f"/proc/self/fd/{handle}")):
        return False
    for number in range(order["times"]):
        try:
            (here / f"slow-{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return True
    return False

def slow(real):
    def call(handle, *others):
        if is_due(handle):
            time.sleep(order["seconds"])
        return real(handle, *others)
    return call

if who == order["who"]:
    setattr(os, order["call"], slow(getattr(os, order["call"])))
"""

FOR_EVER = 100_000  # times, or seconds


def stalling_campaign(folder: Path, **options) -> Path:
    """As `make_campaign`, with more orders for tasks to follow."""
    path = make_campaign(folder, **options)
    (folder / "own_recipe_of_tests.py").write_text(RECIPE + ORDERS)
    return path


def slow_disk(
    folder: Path, where: str, seconds: float, *, who: str = "worker", call: str = "fsync", times: int = FOR_EVER
) -> dict[str, str]:
    """The environment of a run in whose processes a call takes longer, if the path of its file looks like `where`."""
    place = folder / "slow-disk"
    place.mkdir()
    (place / "sitecustomize.py").write_text(SLOW_DISK)
    (place / "slow.json").write_text(
        json.dumps({"where": where, "seconds": seconds, "who": who, "call": call, "times": times})
    )
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), *([before] if before else [])])}


def slowed(folder: Path) -> int:
    """How many calls took longer."""
    return len(list((folder / "slow-disk").glob("slow-[0-9]*")))


def start_with_limits(folder: Path, *arguments: object, environment: dict[str, str] | None = None, **limits: float):
    """`leeward run` in a process, with other limits of the local engine than a test has patience for."""
    changes = "; ".join(f"local.{name} = {value}" for name, value in limits.items())
    code = f"from leeward.engine import local; {changes or 'pass'}; from leeward.cli import main; main()"
    with (folder / "output.txt").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code, "run", "campaign.yaml", *map(str, arguments)],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
