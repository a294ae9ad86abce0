"""The layout optimiser beside TopFarm and beside published layouts, one core for each: one table.

smart_start  our SmartStart layouts and those that TopFarm made; the time of both in this run, 66 turbines (4 min)
farm0        the default recipe on farm 0 of the built-in case, 66 turbines of 15 MW, ten seeds (3 min)
step         one step of stochastic descent with 100 random conditions, TopFarm's and ours (1 min)
iea37        case study 1 of IEA Wind Task 37: 16, 36 and 64 turbines, 60 s each, ten seeds, two at a time (16 min)
growth       66, 132, 264 and 528 turbines, at the density of farm 0 (3 min)
regions      81 turbines in five invented regions, a table of 360 directions x 20 speeds, ten seeds (1 min)
shapes       a concave area and one of three regions, both invented for this benchmark (1 min)

Together about half an hour. Every measurement runs in a process of its own, and its kernels are compiled and loaded
before the clock starts. benchmarks/records.py compares the efforts with the best published layouts.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from layout_measurements import (
    DATA,
    FARM0,
    MEASUREMENTS,
    REFERENCES,
    SHAPES,
    SPACING_M,
    TOLERANCE_M,
    iea37_figures,
    iea37_radius,
)
from wake import ONE_CORE, cpu_name

START_GWH, GOAL_GWH, AIM_GWH, GOAL_SECONDS = 5246.57, 5296.8, 5305.0, 10.0
IEA37_GOALS_MWH = {16: 418_924, 36: 863_676, 64: 1_513_311}
IEA37_SECONDS = 60.0


def measure(name, **arguments):
    """Run one measurement in a process of its own, on one core, in an empty folder: OpenMDAO writes files."""
    command = [sys.executable, os.path.abspath(__file__), "--measure", name, json.dumps(arguments)]
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(command, env=os.environ | ONE_CORE, cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{name} {arguments} failed:\n{result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


def measure_all(name, jobs, each):
    """One measurement for each of several arguments, so many at a time; in their order."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda arguments: measure(name, **arguments), each))


# the table


def line(label, beside="", ours="", change="", seconds="", goal="", aim="", note=""):
    print(f"{label:40}{beside:>20}{ours:>16}{change:>10}{seconds:>10}{goal:>12}{aim:>12}   {note}".rstrip(), flush=True)


def title(text):
    print(f"\n{text}", flush=True)


def verdict(value, goal, aim=None, in_time=True):
    if value < goal:
        return f"misses the goal by {1 - value / goal:.2%}"
    if not in_time:
        return "reaches it too late"
    return "reaches the aim" if aim is not None and value >= aim else "reaches the goal"


def broken(results):
    """Whether a layout violates a constraint, in words for the last column."""
    worst = max(r["violation_m"] for r in results)
    return f", VIOLATES A CONSTRAINT by {worst:.3g} m" if worst > TOLERANCE_M else ""


def clock(seconds):
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def smart_start_rows(options):
    title("SmartStart layouts: largest difference to TopFarm's, m")
    for name in REFERENCES:
        reference = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
        case = ["tender", *(reference[key] for key in ("farm", "type", "n_turbines", "spacing_m"))]
        ours = measure("optimised", case=case, seed=reference["seed"], options={"recipe": "smart_start"})
        apart = difference(ours, reference["x_m"], reference["y_m"])
        label = "  farm {farm}, type {type}, seed {seed}, {n_turbines} turbines".format(**reference)
        same = "the same layout" if apart < TOLERANCE_M else "ANOTHER LAYOUT"
        line(label, ours=f"{apart:.2g}", goal="0", note=same)

    title("SmartStart on farm 0: seconds")
    case = ["tender", 0, 5, options.peer_turbines, SPACING_M]
    label = f"  {options.peer_turbines} turbines, 18 x 18 grid"
    arguments = {"case": case, "seed": 0, "options": {"recipe": "smart_start"}, "repeats": 8}
    ours = measure("optimised", **arguments)
    if not options.peer:
        return line(label, ours=clock(ours["seconds"]), goal="100x", aim="300x", note="TopFarm left out")
    peer = measure("peer_smart_start", count=options.peer_turbines)
    ours = min(ours, measure("optimised", **arguments), key=lambda r: r["seconds"])
    apart = difference(ours, peer["x"], peer["y"])
    note = f"layouts differ by {apart:.2g} m"
    return ratio_line(label, peer["seconds"], ours["seconds"], 100, 300, note)


def ratio_line(label, peer, ours, goal, aim, note):
    said = f"{verdict(peer / ours, goal, aim)}, {note}"
    line(label, f"TopFarm {clock(peer)}", clock(ours), f"{peer / ours:.0f}x", "", f"{goal}x", f"{aim}x", said)


def difference(ours, x, y):
    """Largest difference of a coordinate, m."""
    return max(np.abs(np.subtract(ours["x"], x)).max(), np.abs(np.subtract(ours["y"], y)).max())


def farm0_rows(options):
    title(f"farm 0, type 5, 66 turbines: AEP in GWh, goal within {GOAL_SECONDS:g} s")
    seeds = range(options.seeds)

    def run(effort, seed):
        return measure("optimised", case=FARM0, seed=seed, options={"effort": effort})

    def show(label, aep, seconds, results):
        note = verdict(aep, GOAL_GWH, AIM_GWH, seconds <= GOAL_SECONDS) + broken(results)
        gain = f"{aep / START_GWH - 1:+.2%}"
        goal, aim = f"{GOAL_GWH:.1f}", f"{AIM_GWH:.1f}"
        line(f"  {label}", f"start {START_GWH:.2f}", f"{aep:.2f}", gain, clock(seconds), goal, aim, note)

    for effort in ("normal", "fast"):
        results = [run(effort, seed) for seed in seeds]
        show(f"{effort}, seed 0", results[0]["aep_gwh"], results[0]["seconds"], results[:1])
        if len(results) > 1:
            best = max(results, key=lambda r: r["aep_gwh"])
            show(
                f"{effort}, median of {len(results)}",
                *(np.median([r[k] for r in results]) for k in ("aep_gwh", "seconds")),
                results,
            )
            show(f"{effort}, best of {len(results)}", best["aep_gwh"], best["seconds"], [best])
    if options.thorough:
        result = run("thorough", 0)
        show("thorough, seed 0", result["aep_gwh"], result["seconds"], [result])


def step_rows(options):
    title("one step of stochastic descent, 100 random conditions, 66 turbines: seconds")
    ours = measure("our_step", steps=200)
    label = "  farm 0, from its SmartStart layout"
    if not options.peer:
        return line(label, ours=clock(ours["seconds"]), goal="300x", aim="1000x", note="TopFarm left out")
    peer = measure("peer_step", steps=options.peer_steps)
    ours = min(ours, measure("our_step", steps=200), key=lambda r: r["seconds"])
    note = f"shortest of TopFarm's {options.peer_steps} steps"
    return ratio_line(label, peer["seconds"], ours["seconds"], 300, 1000, note)


def iea37_results(count, seconds, options):
    """For every seed: AEP in MWh, and whether the layout is within boundary and spacing, by a check of its own."""
    each = [
        {"case": ["iea37", count], "seed": seed, "options": {"time_budget_s": seconds}} for seed in range(options.seeds)
    ]
    results = measure_all("optimised", options.jobs, each)
    radius, spacing = iea37_radius(count), iea37_figures()["min_spacing_m"]
    for result in results:
        place = np.array(result["x"]) + 1j * np.array(result["y"])
        apart = np.abs(place[:, None] - place)[np.triu_indices(count, 1)].min()
        result["mwh"] = 1e3 * result["aep_gwh"]
        result["feasible"] = bool(np.abs(place).max() <= radius + TOLERANCE_M and apart >= spacing - TOLERANCE_M)
    return results


def feasible_note(results):
    count = sum(r["feasible"] for r in results)
    return f"{count} of {len(results)} within boundary and spacing" + ("" if count == len(results) else ": NOT ALL")


def iea37_rows(options):
    seconds = options.seconds
    title(f"IEA37 case study 1: AEP in MWh after {seconds:g} s, {options.seeds} seed(s), {options.jobs} at a time")
    for count, goal in IEA37_GOALS_MWH.items():
        results = iea37_results(count, seconds, options)
        values = [r["mwh"] for r in results]
        longest = clock(max(r["seconds"] for r in results))
        for what, value, note in (
            ("median", np.median(values), feasible_note(results)),
            ("best", max(values), f"seed {int(np.argmax(values))}"),
        ):
            said = f"{verdict(value, goal)}, {note}"
            label = f"  {count} turbines, {what} of {len(values)}"
            line(
                label,
                ours=f"{value:.0f}",
                change=f"{value / goal - 1:+.2%}",
                seconds=longest,
                goal=f"{goal}",
                note=said,
            )


def growth_rows(options):
    title("growth: default recipe and effort, at the density of farm 0; AEP in GWh")
    for count in options.sizes:
        result = measure("optimised", case=["scaled", count], seed=0, options={})
        note = f"wake loss {result['wake_loss']:.2%}, {result['steps']} steps" + broken([result])
        line(f"  {count} turbines", ours=f"{result['aep_gwh']:.1f}", seconds=clock(result["seconds"]), note=note)


def regions_rows(options):
    title("81 turbines in five regions, 360 x 20 conditions: default recipe and effort; AEP in GWh")
    each = [{"case": ["five_regions"], "seed": seed, "options": {}} for seed in range(options.seeds)]
    results = measure_all("optimised", options.jobs, each)
    values = [r["aep_gwh"] for r in results]
    gains = [1e3 * (r["phases"]["polish"] - r["phases"]["descent"]) for r in results]
    note = f"spread {np.ptp(values) / np.median(values):.3%}, polish gains {min(gains):.0f} to {max(gains):.0f} MWh"
    seconds = clock(np.median([r["seconds"] for r in results]))
    line(f"  median of {len(values)}", ours=f"{np.median(values):.2f}", seconds=seconds, note=note + broken(results))


def shape_rows(options):
    title("areas invented for this benchmark, turbines of 10 MW, 4 diameters apart; AEP in GWh")
    for name, (count, _) in SHAPES.items():
        alone, result = (
            measure("optimised", case=["shape", name], seed=0, options=o) for o in ({"recipe": "smart_start"}, {})
        )
        note = f"wake loss {result['wake_loss']:.2%}, of SmartStart {alone['wake_loss']:.2%}" + broken([alone, result])
        line(
            f"  {name}, {count} turbines",
            f"SmartStart {alone['aep_gwh']:.2f}",
            f"{result['aep_gwh']:.2f}",
            f"{result['aep_gwh'] / alone['aep_gwh'] - 1:+.2%}",
            clock(result["seconds"]),
            note=note,
        )


ROWS = {
    "smart_start": smart_start_rows,
    "farm0": farm0_rows,
    "step": step_rows,
    "iea37": iea37_rows,
    "growth": growth_rows,
    "regions": regions_rows,
    "shapes": shape_rows,
}


def report(options):
    packages = ["leeward", "numba", "numpy"]
    if options.peer and {"smart_start", "step"} & set(options.rows):
        packages[1:1] = ["topfarm", "py_wake"]
    try:
        print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages))
    except importlib.metadata.PackageNotFoundError as missing:
        raise SystemExit(
            f"{missing.name} is not installed; expected pip install 'topfarm>=2.7.1,<2.8', or --no-peer"
        ) from missing
    print(f"Python {platform.python_version()}, {cpu_name()}, one core for each measurement\n")
    line("", "beside", "leeward", "change", "seconds", "goal", "aim")
    for name in options.rows:
        ROWS[name](options)


def names_of_rows(text):
    names = text.split(",")
    for name in names:
        if name not in ROWS:
            raise argparse.ArgumentTypeError(f"no rows {name!r}; expected some of {','.join(ROWS)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=names_of_rows, default=list(ROWS), help="some of " + ",".join(ROWS))
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="leave TopFarm out")
    parser.add_argument("--thorough", action="store_true", help="farm0 with effort thorough, too (seed 0)")
    parser.add_argument("--seeds", type=int, default=10, help="of farm0, regions and iea37: 10")
    parser.add_argument("--seconds", type=float, default=IEA37_SECONDS, help="for each layout of iea37: 60")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="layouts of iea37 at a time")
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[66, 132, 264, 528],
        metavar="TURBINES",
        help="of growth",
    )
    parser.add_argument("--peer-turbines", type=int, default=66, help=argparse.SUPPRESS)  # fewer while developing
    parser.add_argument("--peer-steps", type=int, default=5, help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "ARGUMENTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, arguments = options.measure
        print(json.dumps(MEASUREMENTS[name](**json.loads(arguments))))
    else:
        report(options)


if __name__ == "__main__":
    main()
