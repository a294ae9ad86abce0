"""What the tests of runs share: a tiny campaign whose tasks do what a test wants, and the command line in a process."""

import contextlib
import io
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from unittest import mock

import yaml

from leeward import cli
from leeward.store.format.layout_result import Result
from leeward.store.isolated.reader import read_files

# Somebody's own recipe: three turbines where the seed says. Files in the folder `orders` say what else it does.
RECIPE = '''
import os, signal, sys, threading, time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ORDERS = HERE / "orders"

def place(problem, seed):
    order = ORDERS / str(seed)
    if not order.exists():
        order = ORDERS / "all"
    words = order.read_text().split() if order.exists() else []
    with (HERE / "calls.txt").open("a") as calls:  # whoever sees this may change the orders: these are known
        calls.write(f"{seed} {os.getpid()}\\n")
    for word in words:
        globals()[word.partition("=")[0]](word.partition("=")[2])
    rng = np.random.default_rng(seed)
    x = np.array([500.0, 2500.0, 4500.0]) + rng.uniform(-400, 400, 3)
    y = rng.uniform(500, 4500, 3)
    left, low, _, _ = problem.area.bounds
    return x + left, y + low

def wait(seconds):
    time.sleep(float(seconds))

def until(name):
    """Goes on once there is a file of that name beside this one."""
    while not (HERE / name).exists():
        time.sleep(0.02)

def die(once):
    mark = HERE / f"died-{once}"
    if not once or not mark.exists():
        if once:
            mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)

def segfault(_):
    import ctypes
    ctypes.string_at(0)

def fail(message):
    raise ValueError(f"no layout today: {message}")

def hang(_):
    while True:
        pass

def fork(what):
    """A copy of this process goes on, or sleeps with all pipes in its hand."""
    if os.fork() == 0 and what:
        time.sleep(float(what))
        os._exit(0)

def leave(code):
    sys.exit(int(code))

def go(path):
    os.chdir(path)

def die_when(path):
    """Once the file is there: in a thread that sees it before anything else happens."""
    def look():
        while not os.path.exists(path):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    if not (HERE / "died-when").exists():
        (HERE / "died-when").touch()
        threading.Thread(target=look, daemon=True).start()
'''

PATIENCE_S = 600.0  # how long a test waits for an event: machines may be slow, and stand still for a while
# Tasks are computed in the process of the command. It is for tests that are not about worker processes.
INLINE = {"engine": "inline", "workers": 1}

_MAIN = "from leeward.cli import main; main()"
# as the installed command: nothing is imported from the current folder
LEEWARD = [sys.executable, "-P", "-c", _MAIN]


def make_campaign(folder: Path, *, seeds=4, farms=1, name="campaign.yaml", orders=None, **changes) -> Path:
    """A campaign file with its recipe beside it; orders: from seed (or "all") to what its task does."""
    (folder / "orders").mkdir(exist_ok=True)
    (folder / "own_recipe_of_tests.py").write_text(RECIPE)
    for seed, order in (orders or {}).items():
        (folder / "orders" / str(seed)).write_text(order)
    side = 5000.0
    campaign = {
        "site": {
            "weibull": {
                "sector_frequency": [0.2, 0.3, 0.4, 0.1],
                "weibull_a_m_s": [9.0, 10.0, 11.0, 8.0],
                "weibull_k": [2.0, 2.1, 2.2, 1.9],
                "turbulence_intensity": 0.08,
                "wind_directions_deg": [0.0, 80.0, 200.0, 270.0],
                "wind_speeds_m_s": [7.0, 10.0, 13.0],
            }
        },
        "farms": [
            {
                "name": f"square {i}",
                "polygon_m": [[i * 9000.0 + x, y] for x, y in ((0.0, 0.0), (side, 0.0), (side, side), (0.0, side))],
            }
            for i in range(farms)
        ],
        "turbines": [{"rated_power_mw": 10, "rotor_diameter_m": 195, "hub_height_m": 121}],
        "turbines_per_farm": 3,
        "spacing_m": 600,
        "seeds": seeds,
        "optimiser": {"recipe": "own_recipe_of_tests:place"},
        "execution": {"workers": 2, "timeout_s": PATIENCE_S},
    }
    campaign.update(changes)
    path = folder / name
    path.write_text(yaml.safe_dump(campaign))
    return path


def command_line(*arguments, before="") -> list[str]:
    """before: statements for its process, such as limits of its own."""
    return [*LEEWARD[:-1], before + _MAIN, *map(str, arguments)]


def leeward(*arguments, cwd, timeout=PATIENCE_S, before="", **options) -> subprocess.CompletedProcess:
    command = command_line(*arguments, before=before)
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, **options)


def without_compiling(text: str) -> str:
    """Return what a command printed, without the lines that only the first one on a machine prints."""
    return re.sub(r"^.*compil(ing|ed) the wake engine .*\n", "", text, flags=re.M)


def leeward_here(*arguments, cwd) -> subprocess.CompletedProcess:
    """Run the command within this process, which has all imported and compiled; workers are still processes.

    The recipe is forgotten before and after: recipes of two folders may not have one name in a process.
    """
    command = ["leeward", *map(str, arguments)]
    code = None
    sys.modules.pop("own_recipe_of_tests", None)
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
        mock.patch.object(sys, "argv", command),
        mock.patch.object(sys, "path", list(sys.path)),
    ):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
        finally:
            sys.modules.pop("own_recipe_of_tests", None)
    return subprocess.CompletedProcess(command, code or 0, out.getvalue(), without_compiling(err.getvalue()))


def start(*arguments, cwd, before="", **options) -> subprocess.Popen:
    """In a process group of its own, with its output in a file."""
    command = command_line(*arguments, before=before)
    with (Path(cwd) / "output.txt").open("ab") as output:
        return subprocess.Popen(command, cwd=cwd, stdout=output, stderr=subprocess.STDOUT, **options)


def until(condition, what: str, seconds: float = PATIENCE_S):
    """Wait until the condition is true, and return its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


# `leeward run` in which a worker is overdue only if its process id is in the file `late`. Limits can then be short, and
# a slow machine makes no other worker late. The clock of the coordinator is ahead by the seconds in the file `leap`. It
# copies the file `look` to `looked` when it has looked at all of its workers since.
CALMLY = """
import os, sys, time, types
from pathlib import Path
from leeward.engines import local

late, leap, look = Path("late"), Path("leap"), Path("look")
known = set()

def monotonic():
    return time.monotonic() + (float(leap.read_text()) if leap.exists() else 0.0)

def poll(engine, seconds, real=local.LocalEngine.poll):
    asked = look.read_text() if look.exists() else ""
    outcomes = real(engine, seconds)
    if asked:
        Path("looked.new").write_text(asked)
        os.replace("looked.new", "looked")
    return outcomes

def overdue(engine, worker, judge=local.LocalEngine._overdue):
    pid = str(worker.process.pid)
    if late.exists() and pid in late.read_text().split():
        if pid in known:
            return judge(engine, worker)
        known.add(pid)  # first read what it sent before it was late
    worker.deadline = monotonic() + 0.5
    return []

local.time = types.SimpleNamespace(monotonic=monotonic)
local.LocalEngine.poll = poll
if not {is_strict}:
    local.LocalEngine._overdue = overdue
{limits}
from leeward.cli import main
main()
"""


def start_calmly(
    folder: Path,
    *arguments: object,
    environment: dict[str, str] | None = None,
    is_strict: bool = False,
    **limits: float,
) -> subprocess.Popen:
    """Start `leeward run` with other limits of the local engine, which apply to late workers only.

    is_strict: the limits apply to all workers.
    """
    changes = "\n".join(f"local.{name} = {value}" for name, value in limits.items())
    code = CALMLY.format(is_strict=is_strict, limits=changes)
    with (folder / "output.txt").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code, "run", "campaign.yaml", *map(str, arguments)],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def set_late(folder: Path, workers: Iterable[int]) -> None:
    """Make these workers late from now on, and no others."""
    _replace(folder / "late", " ".join(map(str, workers)))


def leap(folder: Path, seconds: float) -> None:
    """Put the clock of the coordinator forward by so many seconds."""
    _replace(folder / "leap", str(seconds))


def until_looked(folder: Path) -> None:
    """Wait until the coordinator has read what its workers sent, and has compared the clock with their deadlines."""
    asked = secrets.token_hex(4)
    _replace(folder / "look", asked)
    looked = folder / "looked"
    until(lambda: looked.exists() and looked.read_text() == asked, "the coordinator looks at its workers")


def _replace(path: Path, text: str) -> None:
    """Write a file so that no reader sees half of it."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


def is_stopped(pid: int) -> bool:
    """Return whether all threads of a process are stopped; one may still be waiting for the disk."""
    stats = [task.joinpath("stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def workers_of(process: subprocess.Popen) -> list[int]:
    """Process ids of its workers, whatever they are doing."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == process.pid and b"leeward.engines.worker_main" in command:
                found.append(int(entry.name))
    return found


def computing(run: Path) -> dict[str, int]:
    """Which tasks are being computed, and by which processes, as the heartbeats say."""
    tasks = {}
    for path in (run / "workers").glob("*.json"):
        try:
            beat = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            continue
        if beat["task"]:
            tasks[beat["task"]] = beat["pid"]
    return tasks


def calls(folder: Path) -> list[int]:
    """The seeds whose recipe was called, in order."""
    path = folder / "calls.txt"
    return [int(line.split()[0]) for line in path.read_text().splitlines()] if path.exists() else []


def shards(run: Path) -> list[str]:
    return sorted(path.stem for path in run.glob("results/*/*.h5"))


def digests(output: Path) -> dict[str, str]:
    """Of all results in a file, every one of which must be valid."""
    found = list(read_files([output]))
    assert all(entry.is_valid for entry in found), found
    return {entry.name: entry.digest for entry in found if hasattr(entry, "digest")}


def results(output: Path) -> dict[str, Result]:
    found = read_files([output], contents=True)
    return {entry.name: entry.result for entry in found if hasattr(entry, "digest")}


def kill_group(process: subprocess.Popen) -> None:
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()


def audit(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "audit.jsonl").read_text().splitlines()]
