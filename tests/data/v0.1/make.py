"""Make the samples of leeward 0.1 that tests/test_old_versions.py reads. No test runs this.

A later leeward must read these files for ever, so they are never made again: this script tells how they were made. It
ran with leeward 0.1.0, as root, as `python tests/data/v0.1/make.py` in the root of the repository. It works in
namespaces of its own, in which the machine is called "sample" and the samples lie in /mnt/samples: no result, log or
traceback has the name of a real machine or folder in it. Nothing in the samples was edited afterwards, apart from the
locks of killed runs, which were removed.

finished     8 tasks of two farms, two turbine types and two seeds, all done and merged
interrupted  the same campaign: a task that failed, a damaged shard in quarantine, and a run that was killed
custom       a custom recipe: a seed is done, one has failed, and the run was killed while it computed the third one
packed       a run that was killed when most of its results were in packs
adopted      two results of foreign.h5, a plain HDF5 file, and one that leeward computed
"""

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[2] / "src"
PLACE = Path("/mnt/samples")
NEUTRAL = """\
set -e
hostname sample
mount -t tmpfs tmpfs /mnt
mkdir /mnt/src /mnt/samples
mount --bind "$1" /mnt/src
PYTHONPATH=/mnt/src exec "$2" "$3"
"""
SITE_AND_FARMS = """\
site:
  weibull:
    sector_frequency: [0.2, 0.3, 0.4, 0.1]
    weibull_a_m_s: [9, 10, 11, 8]
    weibull_k: [2, 2.1, 2.2, 1.9]
    turbulence_intensity: 0.08
    wind_directions_deg: DIRECTIONS
    wind_speeds_m_s: [7, 10, 13]
farms:
  - {name: north, polygon_m: [[0, 0], [6000, 0], [6000, 2500], [2500, 2500], [2500, 6000], [0, 6000]]}
  - {name: east, polygon_m: [[9000, 0], [15000, 0], [12000, 6000]]}
turbines:
  - {name: 15 MW, rated_power_mw: 15, rotor_diameter_m: 240, hub_height_m: 150}
  - {name: 10 MW, rated_power_mw: 10, rotor_diameter_m: 195, hub_height_m: 121}
turbines_per_farm: 5
spacing_diameters: 3
""".replace("DIRECTIONS", str([*range(0, 360, 10)]))
SETTINGS = {
    "finished": "seeds: 2\noptimiser: {recipe: smart_start}\nexecution: {engine: inline, retries: 0}\n",
    "custom": "seeds: 3\noptimiser: {recipe: 'own_recipe_of_tests:place'}\nexecution: {engine: inline}\n",
    "packed": (
        "seeds: 2\noptimiser: {recipe: random+refine, effort: fast}\nexecution: {engine: inline, loose_results: 2}\n"
    ),
    "adopted": "seeds: 3\noptimiser: {recipe: smart_start}\nexecution: {engine: inline}\n",
}
SETTINGS["interrupted"] = SETTINGS["finished"]
RECIPE = '''\
"""A custom recipe: turbines in a row. Files beside it make seed 1 fail, and seed 2 wait."""

import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def place(problem, seed):
    if seed == 1 and (HERE / "broken").exists():
        raise ValueError("no layout for seed 1")
    while seed == 2 and (HERE / "busy").exists():
        time.sleep(0.05)
    return np.linspace(300.0, 5700.0, problem.n_turbines), np.full(problem.n_turbines, 1000.0 + 100.0 * seed)
'''
# Ends a run as a power cut does, with SIGKILL, when so many tasks are done.
KILLED_RUN = """\
import os, signal, sys
from leeward import load, run

left = int(sys.argv[1])

def hear(event):
    global left
    left -= event["event"] == "done"
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

run(load("campaign.yaml").with_overrides(engine="local", workers=1), hear=hear)
"""


def main() -> None:
    if socket.gethostname() != "sample":
        command = ["unshare", "--mount", "--uts", "sh", "-c", NEUTRAL, "sh", str(SOURCE), sys.executable, __file__]
        os.execvp(command[0], command)
    import leeward

    if leeward.__version__ != "0.1.0":
        sys.exit(f"this is leeward {leeward.__version__}; these are samples of 0.1.0")
    folders = {name: start(name) for name in SETTINGS}
    make_finished(folders["finished"])
    make_interrupted(folders["interrupted"])
    make_custom(folders["custom"])
    make_packed(folders["packed"])
    make_adopted(folders["adopted"], like=folders["finished"])
    numbers = {name: numbers_of(folder) for name, folder in folders.items()}
    if numbers["interrupted"] != numbers["finished"]:
        sys.exit("the interrupted campaign came to other results than the finished one")
    for name, folder in folders.items():
        shutil.copytree(folder, HERE / name)  # fails if there is one: a sample is never replaced
    content = {"surroundings": surroundings(), "results": numbers}
    (HERE / "numbers.json").write_text(json.dumps(content, indent=1) + "\n")


def start(name: str) -> Path:
    """Return a new folder with the campaign file of a sample."""
    folder = PLACE / name
    folder.mkdir()
    (folder / "campaign.yaml").write_text(f"name: {name}\n{SITE_AND_FARMS}{SETTINGS[name]}")
    return folder


def make_finished(folder: Path) -> None:
    leeward(folder, "run", "campaign.yaml", "--engine", "local", "--workers", 1)


def make_interrupted(folder: Path) -> None:
    slow = ("env", "NUMBA_DISABLE_JIT=1")  # so slow that the task does not end within its time limit
    task = ("--only", "farm=1 type=1 seed=1", "--timeout-s", 0.5)
    leeward(folder, "run", "campaign.yaml", *task, "--engine", "local", before=slow, code=3)
    killed_run(folder, after=3)
    damaged = sorted(folder.glob("layouts.run/results/*/*.h5"))[0]
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 16
    damaged.write_bytes(content)
    leeward(folder, "clean", "layouts.run", code=3)
    killed_run(folder, after=2)


def make_custom(folder: Path) -> None:
    (folder / "own_recipe_of_tests.py").write_text(RECIPE)
    causes = [folder / "broken", folder / "busy"]
    for cause in causes:
        cause.touch()
    only = ("--only", "farm=0 type=1")
    run = subprocess.Popen(command_line("run", "campaign.yaml", *only, "--engine", "local", "--workers", 1), cwd=folder)
    while not any('"farm0_t1_s2"' in path.read_text() for path in folder.glob("layouts.run/workers/*.json")):
        time.sleep(0.05)  # until a heartbeat tells of the task
    run.kill()
    run.wait()
    time.sleep(2)  # its worker ends with it
    (folder / "layouts.run" / "lock").unlink()
    for cause in causes:
        cause.unlink()
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)


def make_packed(folder: Path) -> None:
    killed_run(folder, after=7)


def make_adopted(folder: Path, like: Path) -> None:
    """One foreign result claims a wrong AEP, the other one has none."""
    import leeward as package

    with package.open_layouts(like / "layouts.h5") as layouts, h5py.File(folder / "foreign.h5", "w") as file:
        file["init"] = 1
        for seed, aep in ((0, 250.0), (1, 0.0)):
            group = file.create_group(f"farm0_t0_s{seed}")
            group["layout"] = layouts[0, 0, seed].layout + np.array([[10.0 + seed], [20.0]])
            group["aep"] = aep
            facts = {"farm_idx": 0, "type_idx": 0, "n_turbines": 5, "diameter": 240.0, "ss_seed": seed}
            group.attrs.update(facts)
    only = ("--only", "farm=0 type=0")
    leeward(folder, "run", "campaign.yaml", *only, "--adopt", "foreign.h5", "--engine", "local", "--workers", 1)


def leeward(folder: Path, *arguments: object, before: tuple[str, ...] = (), code: int = 0) -> None:
    """Run a command in a folder, with relative paths only, and demand its exit code."""
    done = subprocess.run([*before, *command_line(*arguments)], cwd=folder, check=False)
    if done.returncode != code:
        sys.exit(f"leeward {arguments[0]} in {folder} ended with {done.returncode}; expected {code}")


def command_line(*arguments: object) -> list[str]:
    return [sys.executable, "-P", "-c", "from leeward.cli import main; main()", *map(str, arguments)]


def killed_run(folder: Path, after: int) -> None:
    """Run the campaign, kill it when so many more tasks are done, and remove its lock."""
    done = subprocess.run([sys.executable, "-P", "-c", KILLED_RUN, str(after)], cwd=folder, check=False)
    if done.returncode != -signal.SIGKILL:
        sys.exit(f"the run in {folder} ended with {done.returncode} before it was killed")
    (folder / "layouts.run" / "lock").unlink()


def numbers_of(folder: Path) -> dict[str, object]:
    """Finish a copy of a sample, and return the layout (m), the AEP (GWh) and the digest of each result."""
    import leeward as package

    copy = shutil.copytree(folder, PLACE / "copies" / folder.name)
    only = {"custom": "farm=0 type=1", "adopted": "farm=0 type=0"}.get(folder.name)
    selection = () if only is None else ("--only", only)
    leeward(copy, "run", "campaign.yaml", "--retry-failed", *selection, "--engine", "local")
    with package.open_layouts(copy / "layouts.h5") as layouts:
        return {
            str(key): {
                "x_m": result.x.tolist(),
                "y_m": result.y.tolist(),
                "aep_gwh": result.aep,
                "digest": result.digest,
            }
            for key, result in layouts.items()
        }


def surroundings() -> dict[str, str]:
    """Return what the last bits of a recomputed result depend on."""
    import llvmlite.binding
    import numba

    return {
        "cpu": llvmlite.binding.get_host_cpu_name(),
        "machine": platform.machine(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


if __name__ == "__main__":
    main()
