"""A study beside PyWake, in one run on one core: one sample, then 300 samples through `leeward evaluate`.

The sample: a target of 66 turbines of 15 MW, nine neighbours that are built over ten years, 3653 days, with all wakes
and with the neighbours' wakes only. With LEEWARD_SHARED_DATA it is sample 3 of the neighbour study; without, layouts,
wind and construction days of the same size are drawn at random. PyWake computes some of the days only, and its time is
extrapolated to all of them. Every measurement runs in a process of its own.
"""

import argparse
import csv
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml

ONE_CORE = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
DAYS = 3653
PEER_DAYS = 366
ALL_SAMPLES = 15_000
SEEDS = 5
LEEWARD = str(Path(sys.executable).parent / "leeward")
PARTS = ("leeward", "simulate", "pywake", "many")


def peak_mb():
    """Highest resident memory of this process so far, MB."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024.0


def shared():
    folder = os.environ.get("LEEWARD_SHARED_DATA")
    return None if not folder else Path(folder) / "neighbour-study"


def wind():
    """Direction (degrees) and speed (m/s) of each day."""
    if shared() is not None:
        with (shared() / "wind-daily.csv").open() as file:
            rows = list(csv.reader(file, delimiter=";"))[1:]
        return np.array([float(row[2]) for row in rows]), np.array([float(row[1]) for row in rows])
    rng = np.random.default_rng(0)
    return rng.uniform(0, 360, DAYS), 10.0 * rng.weibull(2.2, DAYS) + 0.5


def campaign():
    import leeward

    return leeward.load("danish-energy-island").with_overrides(recipe="random", seeds=SEEDS)


def sample():
    """The target's layout; then layout, type number and first day of each neighbour."""
    if shared() is not None:
        data = json.loads((shared() / "sample3.json").read_text())
        layouts = {key: np.array([place["x_m"], place["y_m"]]) for key, place in data["layouts"].items()}
        neighbours = [
            (layouts[one["key"]], one["rated_power_mw"] - 10, one["construction_day"]) for one in data["neighbours"]
        ]
        return layouts[data["target"]], neighbours
    from leeward.store import Key

    rng, found = np.random.default_rng(1), []
    for farm in range(10):
        kind = 5 if farm == 0 else int(rng.integers(0, 6))
        solution = campaign().optimise(Key(farm, kind, 0))
        found.append((np.array([solution.x, solution.y]), kind, int(rng.integers(0, DAYS))))
    return found[0][0], found[1:]


def types():
    physics = campaign().physics
    return [physics.turbine(number) for number in range(6)]


def measure_leeward():
    from leeward.wind import Site
    from leeward.wind.scenarios import Group, ScenarioFarm

    target, neighbours = sample()
    machines = types()
    farm = ScenarioFarm(Site.from_time_series(*wind(), 0.1), machines[5], *target, types=machines)
    groups = [Group(*layout, machines[kind], first) for layout, kind, first in neighbours]
    farm.evaluate(groups[:1], ["all"])  # compile, and compute the target alone, which all samples share
    before = time.process_time()
    power = farm.evaluate(groups, ["all", "external"])
    seconds = time.process_time() - before
    return {"seconds": seconds, "memory_mb": peak_mb(), "all": power["all"].sum(axis=0)[:, 0].tolist()}


def measure_simulate():
    """As users did before: a WindFarm for each period between two constructions, and for each case."""
    from leeward.wind import Neighbours, Site, Turbine, WindFarm

    target, neighbours = sample()
    machines, (direction, speed) = types(), wind()
    knots = machines[5].curve.ends[:-1]
    power, thrust = machines[5].curve(knots)
    lengths = {"rotor_diameter_m": machines[5].rotor_diameter_m, "hub_height_m": machines[5].hub_height_m}
    without = Turbine(wind_speeds_m_s=knots, power_mw=power, thrust_coefficient=0.0 * thrust, **lengths)
    cuts = sorted({0, DAYS, *(first for _, _, first in neighbours)})

    def simulate():
        total = np.zeros(DAYS)
        for turbine in (without, machines[5]):
            for begin, end in itertools.pairwise(cuts):
                there = [(layout, machines[kind]) for layout, kind, first in neighbours if first <= begin]
                others = None
                if there:
                    x, y = np.concatenate([layout for layout, _ in there], axis=1)
                    others = Neighbours(x, y, [machine for layout, machine in there for _ in layout[0]])
                site = Site.from_time_series(direction[begin:end], speed[begin:end], 0.1)
                farm = WindFarm(site, turbine, neighbours=others)
                total[begin:end] = farm.simulate(*target, per_condition=True).condition_power_mw.sum(axis=0)[:, 0]
        return total

    simulate()
    before = time.process_time()
    total = simulate()
    return {"seconds": time.process_time() - before, "memory_mb": peak_mb(), "all": total.tolist()}


def measure_pywake():
    import xarray
    from py_wake.literature.turbopark import Nygaard_2022
    from py_wake.site import XRSite
    from py_wake.wind_turbines import WindTurbine, WindTurbines
    from py_wake.wind_turbines.power_ct_functions import PowerCtTabular

    target, neighbours = sample()
    machines, (direction, speed) = types(), wind()

    def peer(turbine, factor=1.0):
        knots = turbine.curve.ends[:-1]
        power, thrust = turbine.curve(knots)
        function = PowerCtTabular(knots, power, "MW", factor * thrust)
        return WindTurbine(turbine.name, turbine.rotor_diameter_m, turbine.hub_height_m, function)

    cuts = sorted({0, DAYS, *(first for _, _, first in neighbours)})
    days = np.linspace(0, DAYS - 1, PEER_DAYS).round().astype(int)
    site = XRSite(xarray.Dataset({"P": 1.0, "TI": 0.1}))
    total = np.zeros(len(days))
    before = time.process_time()
    for own in (peer(machines[5], 0.0), peer(machines[5])):
        model = Nygaard_2022(site, WindTurbines.from_WindTurbine_lst([own, *map(peer, machines)]))
        for begin, end in itertools.pairwise(cuts):  # one call for all days between two constructions
            rows = np.flatnonzero((days >= begin) & (days < end))
            if not len(rows):
                continue
            there = [(target, -1), *((layout, kind) for layout, kind, first in neighbours if first <= begin)]
            x, y = np.concatenate([layout for layout, _ in there], axis=1)
            kinds = np.repeat([kind + 1 for _, kind in there], [layout.shape[1] for layout, _ in there])
            now = days[rows]
            result = model(x, y, type=kinds, wd=direction[now], ws=speed[now], time=True, TI=0.1)
            total[rows] = result.Power.values[: target.shape[1]].sum(axis=0) / 1e6
    seconds = (time.process_time() - before) * DAYS / PEER_DAYS
    return {"seconds": seconds, "memory_mb": peak_mb(), "all": total.tolist(), "days": days.tolist()}


def in_a_process(part, *options):
    command = [sys.executable, __file__, "--part", part, *map(str, options)]
    done = subprocess.run(command, env={**os.environ, **ONE_CORE}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def one_sample():
    found = {part: in_a_process(part) for part in PARTS[:3]}
    ours, peer = np.array(found["leeward"]["all"]), found["pywake"]
    off = np.abs(ours[peer["days"]] - peer["all"]) / np.maximum(peer["all"], 1e-9)
    same = np.abs(ours - found["simulate"]["all"]) / np.maximum(ours, 1e-9)
    print(f"one sample, 3653 days, two cases; PyWake on {PEER_DAYS} days, extrapolated")
    print(f"  {'':30s}{'CPU s':>10s}{'PyWake / this':>15s}{'peak MB':>10s}")
    names = {"pywake": "PyWake", "simulate": "WindFarm.simulate", "leeward": "leeward evaluate"}
    for part, name in names.items():
        seconds, memory = found[part]["seconds"], found[part]["memory_mb"]
        print(f"  {name:30s}{seconds:10.2f}{peer['seconds'] / seconds:14.0f}x{memory:10.0f}")
    print(f"  largest difference of farm power: {off.max():.1e} to PyWake, {same.max():.1e} to WindFarm.simulate")


def write_study(folder, count, execution):
    """Write a study of drawn samples, with means and farm series, and its layouts into a folder."""
    options = ["--recipe", "random", "--seeds", str(SEEDS), "-o", "layouts.h5", "--quiet"]
    subprocess.run([LEEWARD, "run", *options], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    direction, speed = wind()
    study = {
        "layouts": {"alone": "layouts.h5"},
        "targets": "alone:farm0_t5_s0",
        "wind": {
            "wind_direction_deg": direction.tolist(),
            "wind_speed_m_s": speed.tolist(),
            "turbulence_intensity": 0.1,
            "hours_per_step": 24,
            "start": "2012-01-01",
        },
        "scenarios": {
            "draw": count,
            "farms": list(range(1, 10)),
            "type": [0, 1, 2, 3, 4, 5],
            "seed": {"low": 0, "high": SEEDS - 1},
            "from_step": {"low": 0, "high": DAYS - 1},
        },
        "keep": ["aep", "windows", "farm_power"],
        "windows": {"first_360": "0:360", "all": "all"},
        "execution": execution,
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(study))
    return path


def measure_many(count, workers):
    """Evaluate drawn samples through the command line, with means and farm series."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_study(folder, count, {"engine": "local", "workers": workers})
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        evaluate = [LEEWARD, "evaluate", "study.yaml", "--quiet"]
        subprocess.run(evaluate, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        size = (folder / "study.h5").stat().st_size
    # the largest of all processes: `leeward run`, `leeward evaluate`, their workers and readers
    return {"seconds": seconds, "cpu_s": cpu, "bytes": size, "memory_mb": after.ru_maxrss / 1024.0}


def many_samples(count, workers):
    found = in_a_process("many", "--samples", count, "--workers", workers)
    cpu, size = found["cpu_s"], found["bytes"]
    took = f"{found['seconds']:.0f} s, {cpu:.0f} CPU s"
    print(f"{count} samples with means and farm series, {workers} workers: {took}")
    print(
        f"  {cpu / count:.2f} CPU s and {size / count / 1e3:.1f} kB each; largest process {found['memory_mb']:.0f} MB"
    )
    hours = cpu * ALL_SAMPLES / count / 3600.0
    print(f"  {ALL_SAMPLES} samples, extrapolated: {hours:.1f} core-hours, {size * ALL_SAMPLES / count / 1e9:.2f} GB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, help="only this measurement, as JSON")
    parser.add_argument("--samples", type=int, default=300, help="of the study that is evaluated (default: 300)")
    parser.add_argument("--workers", type=int, default=2, help="that evaluate it (default: 2)")
    chosen = parser.parse_args()
    if chosen.part:
        arguments = (chosen.samples, chosen.workers) if chosen.part == "many" else ()
        print(json.dumps(globals()[f"measure_{chosen.part}"](*arguments)))
        return
    source = "sample 3 of the neighbour study" if shared() is not None else "a random sample of the same size"
    print(f"{platform.machine()}, {os.cpu_count()} cores; {source}")
    one_sample()
    many_samples(chosen.samples, chosen.workers)


if __name__ == "__main__":
    main()
