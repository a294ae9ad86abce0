"""First use: commands with an empty cache, which compile, and with a full one. CPU seconds of all processes, and wall.

`--before REVISION` measures a git revision in turns with the working tree, so that a slow spell of the machine hits
both. The least of several turns counts.
"""

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CAMPAIGN = """
site: {{weibull: {{sector_frequency: [0.2, 0.3, 0.4, 0.1], weibull_a_m_s: [9, 10, 11, 8], weibull_k: [2, 2, 2, 2],
                   turbulence_intensity: 0.08}}}}
farms: [{{circle_m: {{x: 0, y: 0, radius: 3000}}}}]
turbines: [{{rated_power_mw: 15, rotor_diameter_m: 240, hub_height_m: 150}}]
turbines_per_farm: 5
spacing_diameters: 3
seeds: {workers}
optimiser: {{recipe: {recipe}, effort: fast}}
"""
RUNS = (("smart_start", 1), ("smart_start+refine", 1), ("random+refine", 1), ("smart_start+refine", 2))


def cases():
    """Return the commands by their titles; a campaign has a task for each worker."""
    commands = {"leeward aep": (["aep"], None)}
    for recipe, workers in RUNS:
        title = f"leeward run, {recipe}, {workers} worker{'s' if workers > 1 else ''}"
        command = ["run", "campaign.yaml", "--new", "--workers", str(workers)]
        commands[title] = (command, CAMPAIGN.format(recipe=recipe, workers=workers))
    return commands


def seconds(command, campaign, source, cache):
    """Return CPU and wall seconds of a command and all that it starts."""
    with tempfile.TemporaryDirectory() as folder:
        if campaign is not None:
            (Path(folder) / "campaign.yaml").write_text(campaign)
        program = [sys.executable, "-P", "-c", "from leeward.cli import main; main()", *command]
        variables = {**os.environ, "PYTHONPATH": str(source), "LEEWARD_CACHE_DIR": cache}
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(program, cwd=folder, env=variables, check=True, capture_output=True)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def measure(command, campaign, source):
    """Return CPU and wall seconds with an empty cache, and then with the full one."""
    with tempfile.TemporaryDirectory() as cache:
        return [*seconds(command, campaign, source, cache), *seconds(command, campaign, source, cache)]


def unpacked(revision, folder):
    """Return the sources of a git revision."""
    archive = subprocess.run(["git", "-C", ROOT, "archive", revision, "src"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return Path(folder) / "src"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="a git revision to compare with")
    parser.add_argument("--turns", type=int, default=3, help="measurements of each case (default: 3)")
    parser.add_argument("--only", default="", help="part of a title")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = {options.before: unpacked(options.before, folder)} if options.before else {}
        sources["now"] = ROOT / "src"
        print(
            f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores"
        )
        print("| command | sources | CPU, empty cache | wall | CPU, full cache | wall |\n|---|---|---|---|---|---|")
        for title, (command, campaign) in cases().items():
            if options.only not in title:
                continue
            found = {name: [] for name in sources}
            for _ in range(options.turns):
                for name, source in sources.items():
                    found[name].append(measure(command, campaign, source))
            for name, times in found.items():
                least = " | ".join(f"{min(column):.1f} s" for column in zip(*times, strict=True))
                print(f"| {title} | {name} | {least} |", flush=True)


if __name__ == "__main__":
    main()
