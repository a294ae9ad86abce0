"""`leeward serve` on 100 000 tasks: how long until there is something to see, and what it costs to keep it fresh.

grid    ten farms, six types, 1667 seeds, as a run leaves them: a fifth are loose results, the others in packs
many    1000 farms, 100 types, one seed: 100 000 cells
merged  the results of `grid` as a lone layouts.h5 with its index

    python benchmarks/dashboard.py [grid] [many] [merged] [--folder FOLDER] [--tasks N]

The real command is started, and asked as a browser asks. Making the files takes five minutes and 1 GB; with --folder
they are kept, and used again. Of the run directories only the indexes, the names of files, the results that are opened
and the first packs are real; the other files are stand-ins of the same size, which nothing here opens.
"""

import argparse
import contextlib
import http.client
import os
import platform
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import h5py

from leeward.campaign import builtin_campaign, load
from leeward.store.directory.index import IndexLines, encode_line, write_output_index
from leeward.store.directory.lock import Lock
from leeward.store.directory.shards import shard_bytes
from leeward.store.format.groups import LIBVER, write_root
from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths
from leeward.store.writer_main import GroupWriter
from store import LEEWARD, example, numbered, resident_mb, row
from wake import ONE_CORE, cpu_name

TASKS = 100_000
PACK = 1000
REAL_PACKS = 10  # the first ones
REAL = 101  # one of so many loose results is real
WATCHED_S = 30.0


# --- places ----------------------------------------------------------------------------------------------------------


def results_of(keys):
    """Like the usual one, each with an AEP of its own."""
    usual = example()
    for i, key in enumerate(keys):
        yield replace(usual, key=key, aep_gwh=usual.aep_gwh + (i * 7919) % 1000 / 10)


def write_results(path, results, campaign):
    """A file as a merge writes it, with its index, in one go."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = IndexLines()
    with h5py.File(path, "w", libver=LIBVER) as file:
        groups = GroupWriter(file)
        for result in results:
            groups.write(str(result.key), {**result.attributes, "seal": result.seal}, result.datasets, result.UNITS)
            lines.add(result.index_line())
        write_root(file, {"campaign": campaign.study_text(), "campaign_name": campaign.name})
    write_output_index(path, lines)


def make_run(folder, campaign, keys):
    """As a run leaves it that is about to end: the last tenth of a percent is missing."""
    paths = RunPaths(folder / "layouts.h5")
    for place in [*paths.folders(), paths.packs]:
        place.mkdir(parents=True)
    paths.campaign.write_text(campaign.frozen_text())
    done = keys[: len(keys) - len(keys) // 1000]
    results = list(results_of(done))
    packed = len(results) * 4 // 5
    for i in range(packed, len(results)):
        if i % REAL == 0:  # what is best is opened, and has to be real
            results[i] = replace(results[i], aep_gwh=results[i].aep_gwh + 1000.0)
    paths.index.write_bytes(b"".join(encode_line(result.index_line()) for result in results))
    usual = folder / "stand-in"
    usual.write_bytes(shard_bytes(results[packed]))
    for i, result in enumerate(results[packed:], start=packed):
        shard = paths.shard(result.key)
        shard.parent.mkdir(exist_ok=True)
        if i % REAL == 0:
            shard.write_bytes(shard_bytes(result))
        else:
            shard.hardlink_to(usual)
    for start in range(0, packed, PACK):
        pack = paths.new_pack()
        part = results[start : min(start + PACK, packed)]
        if start < REAL_PACKS * PACK:
            write_results(pack, part, campaign)
            real = pack
        else:
            pack.hardlink_to(real)
            lines = IndexLines()
            for result in part:
                lines.add(result.index_line())
            write_output_index(pack, lines)
    return paths


def small_campaign(tasks):
    """The built-in one, with the seeds it takes."""
    return builtin_campaign().with_overrides(seeds=-(-tasks // 60))


def wide_campaign(farms):
    """So many areas in 40 columns, a hundred types."""
    corners = ((0, 0), (12_000, 0), (14_000, 9000), (5000, 15_000), (-2000, 8000))
    areas = [
        {"polygon_m": [[700_000 + 25_000 * (i % 40) + x, 6_200_000 + 25_000 * (i // 40) + y] for x, y in corners]}
        for i in range(farms)
    ]
    turbines = [
        {"rated_power_mw": 5 + 0.2 * i, "rotor_diameter_m": 130 + i, "hub_height_m": 90 + i / 2} for i in range(100)
    ]
    site = {"table": {"wind_directions_deg": [270], "wind_speeds_m_s": [10], "probability": [1.0]}}
    return load(
        {"site": site, "farms": areas, "turbines": turbines, "seeds": 1, "turbines_per_farm": 66, "spacing_m": 300}
    )


def grid_place(folder, tasks):
    return make_run(folder, small_campaign(tasks), [numbered(i) for i in range(tasks)]).root


def many_place(folder, tasks):
    return make_run(folder, wide_campaign(tasks // 100), [Key(i // 100, i % 100, 0) for i in range(tasks)]).root


def merged_place(folder, tasks):
    folder.mkdir(parents=True)
    path = folder / "results.h5"
    write_results(path, results_of(numbered(i) for i in range(tasks)), small_campaign(tasks))
    return path


# --- the command -----------------------------------------------------------------------------------------------------


class Browser:
    """One connection that is kept, and the cookie."""

    def __init__(self, address):
        parts = urlsplit(address)
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
        self._headers = {"Accept-Encoding": "gzip"}
        answer, _ = self._ask(f"{parts.path}?{parts.query}")
        self._headers["Cookie"] = answer.headers["Set-Cookie"].partition(";")[0]

    def _ask(self, path):
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        return answer, answer.read()

    def get(self, path):
        """Seconds and bytes."""
        began = time.perf_counter()
        answer, body = self._ask(path)
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return time.perf_counter() - began, len(body)


@contextlib.contextmanager
def served(place):
    """The command, with the seconds until it printed its address."""
    began = time.perf_counter()
    process = subprocess.Popen([*LEEWARD, "serve", str(place), "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        address = None
        while address is None:
            found = re.search(r"http://\S+", process.stdout.readline())
            address = found and found.group()
        yield process, address, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


def processor_s(pid):
    """Processor time of a process until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name, place, key, addresses):
    print(f"\n{name}: {place.name}")
    row("measured", "first", "again", "processor, first     size; the goal is 1 s")
    with served(place) as (process, address, started):
        row("start until the address is printed", f"{started:.2f} s", "", f"{processor_s(process.pid):14.2f} s")
        browser = Browser(address)
        for path in addresses:
            before = processor_s(process.pid)
            first, size = browser.get(path)
            spent = processor_s(process.pid) - before
            again = statistics.median(browser.get(path)[0] for _ in range(5))
            row(path, f"{first:.3f} s", f"{again:.3f} s", f"{spent:14.2f} s {size / 1e3:10.0f} kB")
        row("memory", f"{resident_mb(process.pid):.0f} MB", "", "")
    if place.suffix == ".run":
        measure_watched(place, key)


def measure_watched(place, key):
    """One page is looked at while a run goes on, which ends a task a second."""
    paths = RunPaths.of(place)
    lock = Lock.take(paths.lock)
    line = encode_line(replace(example(), key=key).index_line())
    try:
        for path in ("/", "/tasks"):
            with served(place) as (process, address, _):
                browser = Browser(address)
                browser.get(path)
                before, times = processor_s(process.pid), []
                end = time.monotonic() + WATCHED_S
                while time.monotonic() < end:
                    time.sleep(1.0)
                    os.utime(paths.lock)
                    with paths.index.open("ab") as file:
                        file.write(line)
                    if len(times) < (WATCHED_S - (end - time.monotonic())) / 2:
                        times.append(browser.get(path)[0])
                share = (processor_s(process.pid) - before) / WATCHED_S
                what = f"{path} every 2 s while a run goes on"
                row(what, f"{max(times):.3f} s", f"{statistics.median(times):.3f} s", f"{share:.0%} of a core")
    finally:
        lock.release()


PLACES = {"grid": grid_place, "many": many_place, "merged": merged_place}
COMMON = ["/", "/map", "/tasks", "/tasks?page=1500", "/tasks?sort=-aep", "/tasks?state=missing", "/tasks.csv", "/audit"]
ONE = ["/tasks?farm=3&sort=-aep", "/task/farm0_t0_s0", "/settings"]


def addresses(name, tasks):
    """Pages that are asked for; of single tasks only those whose files are real."""
    if name == "grid":
        loose = numbered(tasks // REAL * REAL - 2 * REAL)
        return [*COMMON, "/tasks?farm=3&type=2&sort=-aep", "/tasks?farm=3", f"/task/{loose}", *ONE]
    return [*COMMON, "/?farms=20", *ONE] if name == "many" else [*COMMON, *ONE]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*PLACES, []], help="all of them without a name")
    parser.add_argument("--folder", type=Path, help="where to keep what is served, for the next time")
    parser.add_argument("--tasks", type=int, default=TASKS, help=f"how many of them (default: {TASKS})")
    arguments = parser.parse_args()
    os.environ.update(ONE_CORE)
    print(f"{cpu_name()}, {os.cpu_count()} cores, python {platform.python_version()}, h5py {h5py.__version__}")
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="leeward-bench-"))
    try:
        for name in arguments.what or PLACES:
            place = folder / name / ("results.h5" if name == "merged" else "layouts.run")
            if not place.exists():
                PLACES[name](folder / name, arguments.tasks)
            measure(name, place, numbered(arguments.tasks - 1), addresses(name, arguments.tasks))
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
