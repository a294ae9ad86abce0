"""The table of records: how good and how fast leeward's layouts are, on public cases and on the built-in farms.

Every case is optimised with each effort and ten seeds, each layout in a process of its own on one core. PyWake, and for
IEA37 also the formulas of the case studies, compute the AEP of every layout again, and shapely and numpy check its
constraints. Finished layouts are kept in the work folder: interrupt the run, and run it again to resume.

With --write, the best layouts are stored in benchmarks/records, and docs/records.md is updated. `records.py score CASE
FILE` computes the AEP of your own layout.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from record_cases import RecordError, all_cases, demand_feasible, demand_same_aep
from record_files import (
    EFFORT_HEADER,
    RECORD_HEADER,
    ROOT,
    Record,
    effort_rows,
    new_table,
    record_rows,
    stored_records,
    write_all,
)
from wake import ONE_CORE, cpu_name

EFFORTS = ("fast", "normal", "thorough")
MOST_SEEDS = 10  # the campaigns in benchmarks/records have as many
WORK = ROOT / "build" / "records"


def maker():
    """Return the version of leeward and of its method."""
    from leeward import __version__
    from leeward.campaign.fingerprint import METHOD_VERSION, REFINED_VERSION

    return f"leeward {__version__}, method version {max(METHOD_VERSION, REFINED_VERSION)}"


# measurements


def measured(name, effort, seed):
    """Return one optimised layout with its AEP by all programs; the clock starts after all kernels were loaded."""
    from leeward.campaign import load
    from leeward.layout import LayoutProblem, optimise
    from leeward.store import Key

    case = all_cases()[name]
    place = case.farm_idx, case.type_idx
    like = load(case.campaign_file).problem(*place)
    optimise(LayoutProblem(like.farm, like.area, 6, spacing_m=like.min_distances_m[0]), 0, effort="fast")
    campaign = load(case.campaign_file).with_overrides(effort=effort)
    campaign.problem(*place)  # a new one: it must not have anything from the call above
    before = time.process_time()
    solution = campaign.optimise(Key(*place, seed))
    seconds = time.process_time() - before
    x, y = solution.x, solution.y
    scores = {program: score(case, x, y) for program, score in case.scorers.items()}
    figures = {"aep_mwh": 1e3 * solution.aep_gwh, "cpu_s": seconds, "scores": scores}
    return {**key_of(name, effort, seed), **figures, "x": x.tolist(), "y": y.tolist()}


def key_of(name, effort, seed):
    return {"case": name, "effort": effort, "seed": seed, "leeward": maker()}


def kept_in(work, key):
    """Return the finished measurement of a key, or None."""
    path = path_of(work, key)
    if not path.exists():
        return None
    result = json.loads(path.read_text(encoding="utf-8"))
    return result if {name: result.get(name) for name in key} == key else None


def path_of(work, key):
    return work / f"{key['case']}-{key['effort']}-{key['seed']}.json"


def measure(work, key):
    """Return a measurement: the finished one, or a new one from a process of its own."""
    result = kept_in(work, key)
    if result is None:
        arguments = [key["case"], key["effort"], str(key["seed"])]
        command = [sys.executable, os.path.abspath(__file__), "measure", *arguments]
        done = subprocess.run(command, env=os.environ | ONE_CORE, capture_output=True, text=True)
        if done.returncode != 0:
            raise RecordError(f"{' '.join(arguments)} failed:\n{done.stderr}")
        result = json.loads(done.stdout.splitlines()[-1])
        keep(path_of(work, key), result)
        print(f"  {' '.join(arguments)}: {result['aep_mwh']:.0f} MWh, {result['cpu_s']:.1f} s", file=sys.stderr)
    case = all_cases()[key["case"]]
    demand_feasible(case, result["x"], result["y"])
    demand_same_aep(case, result["aep_mwh"], result["scores"])
    return result


def keep(path, result):
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    temporary.replace(path)


def measure_all(options):
    """Return all measurements, in the order of the table; the longest are made first."""
    keys = [
        key_of(name, effort, seed)
        for name in options.cases
        for effort in options.efforts
        for seed in range(options.seeds)
    ]
    longest_first = sorted(keys, key=lambda key: -EFFORTS.index(key["effort"]))
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda key: measure(options.work, key), longest_first))
    places = {path_of(options.work, key): place for place, key in enumerate(keys)}
    return sorted(results, key=lambda result: places[path_of(options.work, result)])


def figures_of(results):
    """Return median and best AEP, CPU seconds and spread, by case and effort."""
    groups = {}
    for result in results:
        groups.setdefault(result["case"], {}).setdefault(result["effort"], []).append(result)
    return {name: {effort: _figures(some) for effort, some in efforts.items()} for name, efforts in groups.items()}


def _figures(results):
    aeps = [result["aep_mwh"] for result in results]
    return {
        "seeds": len(results),
        "median_mwh": float(np.median(aeps)),
        "best_mwh": max(aeps),
        "cpu_s": float(np.median([result["cpu_s"] for result in results])),
        "spread": (max(aeps) - min(aeps)) / float(np.median(aeps)),
    }


def best_records(results):
    """Return the best layout of each case."""
    best = {}
    for result in sorted(results, key=lambda result: result["aep_mwh"]):
        made_by = f"{result['leeward']}, {result['effort']}, seed {result['seed']}"
        x, y = np.array(result["x"]), np.array(result["y"])
        best[result["case"]] = Record(x, y, result["aep_mwh"], made_by, result["seed"])
    return best


def report(options):
    """Measure, print the table, and with --write update all files."""
    results = measure_all(options)
    figures = figures_of(results)
    if options.write:
        better = write_all(figures, best_records(results), maker(), cpu_name())
    table = new_table(figures, maker(), cpu_name())
    print(f"{table['leeward']}, {table['machine']}, one core for each layout, {options.jobs} at a time\n")
    print_table(
        EFFORT_HEADER, [row for row in effort_rows(table) if row[0] in options.cases and row[4] in options.efforts]
    )
    print("\nstored records:")
    print_table(RECORD_HEADER, [row for row in record_rows(table) if row[0] in options.cases])
    if options.write:
        print(f"\nnew records: {', '.join(better) or 'none'}; docs/records.md is up to date")


def print_table(header, rows):
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for cells in (header, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


# a layout of somebody else


def score(options):
    """Print the AEP of a layout by leeward and by another program, beside the best published one and the record."""
    from leeward.campaign import load

    case = all_cases()[options.case]
    x, y = read_layout(options.layout)
    demand_feasible(case, x, y)
    ours = 1e3 * load(case.campaign_file).problem(case.farm_idx, case.type_idx).farm.aep_gwh(x, y)
    program, other = next(iter(case.scorers.items()))
    theirs = other(case, x, y)
    demand_same_aep(case, ours, {program: theirs})
    print(f"{case.name}: {options.layout} has {len(x)} turbines and satisfies all constraints to 1e-6 m")
    print(f"  AEP by leeward           {ours:16.3f} MWh")
    print(f"  AEP by {program:17} {theirs:16.3f} MWh, a relative difference of {abs(theirs / ours - 1.0):.0e}")
    record = stored_records({case.name: case}).get(case.name)
    for label, value in (("best published", case.published_mwh), ("record", record and record.aep_mwh)):
        if value is not None:
            print(f"  {label:24} {value:16.3f} MWh, this layout {ours / value - 1.0:+.4%} ({ours - value:+.3f} MWh)")
    if options.accept:
        better = write_all({}, {case.name: Record(x, y, ours, options.accept)}, maker(), cpu_name())
        print("  stored as the new record" if better else "  not stored: it does not beat the record")


def read_layout(path):
    """Return x and y of the only layout in a CSV file, m."""
    from leeward.errors import LeewardError
    from leeward.formats.layout_table import read_layouts

    try:
        layouts = read_layouts(path)
    except LeewardError as error:
        raise RecordError(str(error)) from error
    if len(layouts) != 1:
        raise RecordError(f"{path}: {len(layouts)} layouts; expected one")
    return np.array(layouts[0].x), np.array(layouts[0].y)


# the command


def some_of(known):
    """Return a parser of a comma-separated list of known names."""

    def parse(text):
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"unknown: {name!r}; expected some of {','.join(known)}")
        return text.split(",")

    return parse


def parser():
    text = argparse.RawDescriptionHelpFormatter
    main_parser = argparse.ArgumentParser(description=__doc__, formatter_class=text)
    add = main_parser.add_argument
    names = list(all_cases())
    add("--cases", type=some_of(names), default=names, help="comma-separated names (default: all)")
    add("--efforts", type=some_of(EFFORTS), default=list(EFFORTS), help=f"some of {','.join(EFFORTS)} (default: all)")
    add("--seeds", type=int, choices=range(1, MOST_SEEDS + 1), default=MOST_SEEDS, metavar="N", help="1 to 10 (10)")
    add("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="layouts at a time (default: 2)")
    add("--work", type=Path, default=WORK, help="folder of the finished layouts (default: build/records)")
    add("--write", action="store_true", help="update benchmarks/records and docs/records.md")
    commands = main_parser.add_subparsers(dest="command", metavar="score", title="commands")
    scorer = commands.add_parser("score", help="compute the AEP of a layout in a CSV file, and check its constraints")
    scorer.add_argument("case", choices=names, metavar="CASE", help=", ".join(names))
    scorer.add_argument("layout", type=Path, metavar="FILE", help="CSV file with the columns x_m and y_m")
    scorer.add_argument("--accept", metavar="NAME", help="store the layout, made by NAME, if it beats the record")
    child = commands.add_parser("measure")
    child.add_argument("key", nargs=3)
    return main_parser


def main():
    options = parser().parse_args()
    try:
        if options.command == "score":
            score(options)
        elif options.command == "measure":
            name, effort, seed = options.key
            print(json.dumps(measured(name, effort, int(seed))))
        else:
            report(options)
    except RecordError as error:
        raise SystemExit(f"records.py: {error}") from error
    except KeyboardInterrupt:
        print("records.py: interrupted; run it again to resume", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
