"""The store and the coordinator, with a bare h5py loop that does the same work unchecked beside them: one table.

store     one result made durable, and the same group written by h5py without a sync (10 s)
merge     check and merge of 3000 shards, and a loop that copies their groups into one file (1 min)
large     check and merge of 100 000 results, and the memory it takes; `leeward status` of them (15 min)
tasks     what the coordinator costs a task: 400 trivial tasks over real worker processes (1 min)
layouts   layouts per core-hour on the built-in campaign, a sample over farms and types (3 min)

`large` needs 2 GB in the folder for temporary files, which has to be on a disk for the figures to mean anything.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from leeward.store.directory.shards import shard_bytes, store_result
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import Result
from leeward.store.merging.check import check
from leeward.store.merging.merge import merge_run
from leeward.store.paths import RunPaths
from wake import ONE_CORE, cpu_name

TURBINES = 66
LEEWARD = [sys.executable, "-c", "from leeward.cli import main; main()"]


def example():
    """A result of the usual size."""
    key = Key(0, 5, 0)
    rng = np.random.default_rng(0)
    details = {
        "aep_by_phase": np.array([5246.5, 5300.1, 5308.0]),
        "phases": "placing,descent,polish",
        "wake_loss": 0.0406,
        "min_spacing_m": 720.1,
        "seconds": 6.6,
        "host": "node0001.cluster",
        "created": "2026-11-15T08:00:00Z",
        "work": 4_000_000_000,
        "reproducible": True,
        "versions": "leeward 0.1.0, python 3.11.7, numpy 2.4.6, numba 0.66.0, h5py 3.16.0, machine x86_64",
    }
    layout = rng.uniform(0, 20_000, (2, TURBINES)) + np.array([[700_000.0], [6_200_000.0]])
    history = np.array([np.arange(40.0), np.linspace(5200, 5308, 40)])
    return Result(key, layout, 5308.09, 240.0, "f" * 64, "work_done", 1234, details=details, history=history)


def numbered(i):
    """Keys of a campaign with ten farms, six types and any number of seeds."""
    return Key(i % 10, i // 10 % 6, i // 60)


def bare_write(path, result):
    """What a script does: a file, a group, no sync, no check."""
    with h5py.File(path, "w") as file:
        group = file.create_group(str(result.key))
        group["layout"] = result.layout
        group["aep"] = result.aep_gwh
        for name, value in result.attributes.items():
            group.attrs[name] = value


def measure_store(folder, count=300):
    result = example()
    paths = RunPaths(folder / "layouts.h5")
    ours, theirs = [], []
    for i in range(count):
        one = replace(result, key=numbered(i))
        began = time.perf_counter()
        store_result(paths, one)
        middle = time.perf_counter()
        bare_write(folder / f"bare{i}.h5", one)
        ours.append(middle - began)
        theirs.append(time.perf_counter() - middle)
    ms = 1e3 * statistics.median(ours), 1e3 * statistics.median(theirs)
    row("storing a result durably, median", f"{ms[0]:.2f} ms", "5 ms", f"bare h5py, not synced: {ms[1]:.2f} ms")


def make_shards(folder, count):
    """Shards without a sync, for what is measured afterwards; one made, the others like it."""
    paths = RunPaths(folder / "layouts.h5")
    result = example()
    for i in range(count):
        one = replace(result, key=numbered(i), aep_gwh=result.aep_gwh + i)
        path = paths.shard(one.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(shard_bytes(one))
    return paths


def bare_merge(paths, target):
    """Every group copied into one file; nothing is looked at."""
    with h5py.File(target, "w") as merged:
        for path in sorted(paths.shards()):
            with h5py.File(path, "r") as file:
                for name in file:
                    file.copy(name, merged)


def measure_merge(folder, count=3000):
    paths = make_shards(folder, count)
    began = time.perf_counter()
    report = check([paths.root])
    middle = time.perf_counter()
    merged = merge_run(paths, {"campaign": "x" * 9000}, processes=2)
    ended = time.perf_counter()
    bare_merge(paths, folder / "bare.h5")
    bare = time.perf_counter() - ended
    assert report.results == merged.count == count
    row(
        f"check and merge of {count} shards",
        f"{ended - began:.1f} s",
        "10 s",
        f"check {middle - began:.1f} s, merge {ended - middle:.1f} s; bare h5py: {bare:.1f} s",
    )


class Memory:
    """The highest resident memory of this process and of each of its children, looked at ten times a second."""

    def __enter__(self):
        self.own, self.children = 0.0, 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _look(self):
        while not self._ended.wait(0.1):
            self.own = max(self.own, resident_mb(os.getpid()))
            children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
            self.children = max([self.children, *(resident_mb(pid) for pid in children)])


def resident_mb(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1e3
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0.0


def measure_large(folder, count=100_000):
    """In a process of its own, so that its memory is that of checking and merging alone."""
    paths = make_shards(folder, count)
    command = [sys.executable, os.path.abspath(__file__), "--check-and-merge", str(folder)]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seconds = figures["check_s"] + figures["merge_s"]
    memory = max(figures["own_mb"], figures["children_mb"])
    row(
        f"check and merge of {count} results",
        f"{seconds:.0f} s",
        "300 s",
        f"check {figures['check_s']:.0f} s, merge {figures['merge_s']:.0f} s; file of {figures['size'] / 1e6:.0f} MB",
    )
    row(
        "its memory",
        f"{memory:.0f} MB",
        "200 MB",
        f"coordinator {figures['own_mb']:.0f} MB, a child at most {figures['children_mb']:.0f} MB",
    )
    began = time.perf_counter()
    bare_merge(paths, folder / "bare.h5")
    row("", "", "", f"bare h5py loop: {time.perf_counter() - began:.0f} s")
    measure_status(folder, paths, count)


def check_and_merge(folder):
    paths = RunPaths(Path(folder) / "layouts.h5")
    with Memory() as memory:
        began = time.perf_counter()
        report = check([paths.root])
        middle = time.perf_counter()
        del report
        merged = merge_run(paths, {"campaign": "x" * 9000}, processes=2)
        ended = time.perf_counter()
    figures = {"check_s": middle - began, "merge_s": ended - middle, "size": merged.size}
    print(json.dumps({**figures, "own_mb": memory.own, "children_mb": memory.children}))


def measure_status(folder, paths, count):
    from leeward.campaign import builtin_campaign
    from leeward.store.directory.index import encode_line, output_index_path

    result = example()
    lines = (replace(result, key=numbered(i), aep_gwh=result.aep_gwh + i).index_line() for i in range(count))
    paths.index.write_bytes(b"".join(encode_line(line) for line in lines))
    paths.campaign.write_text(builtin_campaign().with_overrides(seeds=-(-count // 60)).frozen_text())
    for path in (paths.output, output_index_path(paths.output)):
        path.unlink(missing_ok=True)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([*LEEWARD, "status", str(paths.root)], check=False, capture_output=True)
        times.append(time.perf_counter() - began)
    row(f"leeward status of {count} results", f"{min(times):.2f} s", "2 s", "the command, from start to end")


RECIPE = """
import numpy as np
def place(problem, seed):
    return np.array([0.0, 2000.0, 4000.0]) + problem.area.bounds[0] + 100, np.full(3, problem.area.bounds[1] + 100.0)
"""


def trivial_campaign(folder, count):
    """Tasks in which computing takes no time; their recipe lies in the folder."""
    (folder / "trivial_recipe.py").write_text(RECIPE)
    return {
        "site": {"table": {"wind_directions_deg": [270], "wind_speeds_m_s": [10], "probability": [1.0]}},
        "farms": [{"polygon_m": [[0, 0], [5000, 0], [5000, 5000], [0, 5000]]}],
        "turbines": [{"rated_power_mw": 10, "rotor_diameter_m": 195, "hub_height_m": 121}],
        "turbines_per_farm": 3,
        "spacing_m": 600,
        "crs": "EPSG:25831",
        "seeds": count,
        "optimiser": {"recipe": "trivial_recipe:place"},
    }


def measure_tasks(folder, count=400):
    """The coordinator's own processor time, from the first task to the last; its workers' is not in it."""
    campaign = {**trivial_campaign(folder, count), "execution": {"workers": 2}}
    os.chdir(folder)
    import leeward

    clock = {}

    def hear(event):
        if event["event"] in ("began", "merging"):
            usage = resource.getrusage(resource.RUSAGE_SELF)
            clock[event["event"]] = usage.ru_utime + usage.ru_stime, time.perf_counter()

    report = leeward.run(campaign, folder / "layouts.h5", on_event=hear)
    assert report.done == count
    cpu, wall = (after - before for before, after in zip(clock["began"], clock["merging"], strict=True))
    row("coordinator, processor time a task", f"{1e3 * cpu / count:.2f} ms", "1 ms", f"{count} tasks in {wall:.1f} s")


def measure_layouts(folder):
    """Every farm and every type is in the sample; kernels are loaded before the clock starts."""
    from leeward.campaign import builtin_campaign

    campaign = builtin_campaign()
    sample = [Key(i, i % 6, 0) for i in range(10)]
    for recipe, effort in (("smart_start", None), ("smart_start+refine", "fast"), ("smart_start+refine", "normal")):
        chosen = campaign.with_overrides(recipe=recipe, effort=effort)
        chosen.with_overrides(effort="fast").optimise(sample[0])
        keys = sample if recipe == "smart_start" or effort == "fast" else sample[::3]
        began = time.perf_counter()
        for key in keys:
            chosen.optimise(key)
        seconds = (time.perf_counter() - began) / len(keys)
        rate = 3600 / seconds
        name = recipe if effort is None else f"{recipe}, {effort}"
        row(
            f"layouts per core-hour, {name}",
            f"{rate:.0f}",
            "",
            f"{seconds:.2f} s each ({len(keys)} tasks)",
        )


def row(what, found, goal, more=""):
    print(f"{what:<48} {found:>10} {goal:>8}  {more}", flush=True)


def main():
    measurements = {
        "store": measure_store,
        "merge": measure_merge,
        "large": measure_large,
        "tasks": measure_tasks,
        "layouts": measure_layouts,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*measurements, []], help="all of them without a name")
    parser.add_argument("--check-and-merge", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.check_and_merge:
        check_and_merge(arguments.check_and_merge)
        return
    os.environ.update(ONE_CORE)
    print(
        f"{cpu_name()}, {os.cpu_count()} cores, python {platform.python_version()}, h5py {h5py.__version__}, ", end=""
    )
    print(f"HDF5 {h5py.version.hdf5_version}, numba {importlib.metadata.version('numba')}")
    row("measured", "found", "goal")
    for name in arguments.what or measurements:
        folder = Path(tempfile.mkdtemp(prefix="leeward-bench-"))
        try:
            measurements[name](folder)
        finally:
            os.chdir("/")
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
