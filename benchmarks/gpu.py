"""A GPU beside the CPU of the same machine, in one run: one table.

engine        one layout with all wind conditions, and thousands of layouts with 100 random conditions each, as in a
              step of stochastic descent: AEP and gradient in double and in single precision, beside one CPU core; the
              smallest batch at which the GPU is faster than 16 cores
smart_start   tasks of the built-in campaign with the recipe smart_start
refine        the same tasks with the recipe smart_start+refine at effort normal; with --compare beside the CPU

The layout is that of farm 0 of the built-in case: 66 turbines of 15 MW, 360 directions x 23 speeds, nygaard_2022. Times
of the engine are the shortest of several. "Compiled" says how long the first call took. Each part runs in a process of
its own, and every line is printed as soon as it is known. Without a GPU the exit code is 1.
"""

import argparse
import functools
import importlib.metadata
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from wake import ONE_CORE, cpu_name, fastest

PARTS = {"engine": None, "smart_start": "smart_start", "refine": "smart_start+refine"}
CONDITIONS = 100  # drawn for each layout
SHIFT_M = 200.0  # standard deviation of the random shifts that make different layouts
TIMED = 20  # layouts by which the time of a CPU core is measured
STATUS_S = 30.0  # between two lines about a campaign that runs
WIDTH = 62  # of the first column
BUILT_IN = "danish-energy-island"
LEEWARD = [sys.executable, "-c", "from leeward.cli import main; main()"]


# the table


def line(label, gpu="", cpu="", ratio="", note=""):
    print(f"  {label:{WIDTH}}{gpu:>12}{cpu:>14}{ratio:>10}   {note}".rstrip(), flush=True)


def title(text, beside=""):
    """Print a title, with the names of the columns if `beside` names what the GPU is compared with."""
    columns = f"{'GPU':>12}{beside:>14}{'ratio':>10}" if beside else ""
    print(f"\n{text:{WIDTH + 2}}{columns}".rstrip(" "), flush=True)


def clock(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def times(slow, fast):
    return f"{slow / fast:.3g}x"


# the engine


class Case:
    """The farm, its layout and its wind, on the CPU and in the form that the GPU's engine takes."""

    def __init__(self, options):
        from leeward.campaign import builtin
        from leeward.wind import WindFarm

        site = builtin.site()
        if options.directions:
            site = site.coarser(options.directions, [8.0, 12.0])
        _, turbine, x, y = builtin.example_layout()
        self.site, self.x, self.y = site, x[: options.turbines], y[: options.turbines]
        self.farm = WindFarm(site, turbine)

    def layouts(self, count):
        """Return so many different layouts, shape (2, count, turbines), and random conditions for each."""
        rng = np.random.default_rng(0)
        at = np.array([self.x, self.y])[:, None] + rng.normal(0.0, SHIFT_M, (2, count, len(self.x)))
        return at, [self.site.draw(CONDITIONS, rng) for _ in range(count)]

    def on_gpu(self, engine, at, each):
        """Return layouts, shape (2, count, turbines), and the conditions of each, on the GPU."""
        from leeward.wind.engine import wind_of
        from leeward.wind.kernels.data import Places

        kind = np.zeros(at.shape[2], dtype=np.uint32)
        places = [Places(x, y, kind) for x, y in zip(*at, strict=True)]
        winds = engine.winds([wind_of(conditions) for conditions in each], each[0].speed.shape[1])
        return engine.batch(places, [len(kind)] * len(places), range(len(places))), winds


def engine_part(options):
    from leeward.wind.gpu.engine import BatchEngine

    case = Case(options)
    title("the engine", "one core")
    of_cpu = cpu_reference(case)
    for single in (False, True):
        one_layout(case, BatchEngine(case.farm._engine, single=single), of_cpu, precision(single))
    at, drawn = case.layouts(options.layouts)
    some = list(zip(*at, drawn, strict=True))[:TIMED]
    case.farm.aep_gradient(*some[0])  # compiles
    of_core = fastest(lambda: [case.farm.aep_gradient(*layout) for layout in some], 5) / len(some)
    for single in (True, False):
        many_layouts(case, BatchEngine(case.farm._engine, single=single), at, drawn, of_core, precision(single))
    smallest_batch(case, BatchEngine(case.farm._engine, single=True), at, drawn, of_core, options.cores)


def precision(single):
    return "single precision" if single else "double precision"


def cpu_reference(case):
    """Return for AEP and for its gradient the seconds on one core, and the result of the gradient."""
    farm, x, y = case.farm, case.x, case.y
    result = farm.aep_gradient(x, y)  # compiles
    farm.aep_gwh(x, y)
    return fastest(lambda: farm.aep_gwh(x, y), 20), fastest(lambda: farm.aep_gradient(x, y), 20), result


def one_layout(case, engine, of_cpu, name):
    """Print the times and the errors of AEP and gradient of one layout, with all conditions of the site."""
    from leeward.wind.conditions import GWH_PER_MW

    batch, winds = case.on_gpu(engine, np.array([case.x, case.y])[:, None], [case.site.conditions])
    aep_seconds, gradient_seconds, (aep, *slopes) = of_cpu
    for label, work, seconds in (("AEP", engine.power, aep_seconds), ("gradient", engine.gradient, gradient_seconds)):
        compiled, fast, found = timed(lambda work=work: work(batch, winds).copy_to_host())
        found = found[:, 0, : len(case.x)] * GWH_PER_MW
        note = f"AEP to {abs(found[0].sum() / aep - 1):.0e}"
        if label == "gradient":
            largest = np.abs(slopes).max()
            note += f", gradient to {np.abs(found[1:] - slopes).max() / largest:.0e} of the largest"
        title_of_row = f"{label}, {case.site.conditions.speed.size} conditions, {name}"
        line(title_of_row, clock(fast), clock(seconds), times(seconds, fast), f"{note}; compiled in {clock(compiled)}")


def timed(work):
    """Return the seconds of the first call, the shortest seconds of the next ones, and a result."""
    began = time.perf_counter()
    result = work()
    first = time.perf_counter() - began
    return first, fastest(work, 20), result


def many_layouts(case, engine, at, drawn, of_core, name):
    batch, winds = case.on_gpu(engine, at, drawn)
    compiled, fast, _ = timed(stepped(engine, batch, winds))
    cpu = of_core * len(drawn)
    label = f"gradient, {len(drawn)} layouts x {CONDITIONS} conditions, {name}"
    line(label, clock(fast), clock(cpu), times(cpu, fast), f"first call {clock(compiled)}")


def stepped(engine, batch, winds):
    """Return a function that computes gradients and leaves them on the GPU, as a step of a descent does."""
    from leeward.wind.gpu.engine import wait

    def step():
        engine.gradient(batch, winds)
        wait()

    return step


def smallest_batch(case, engine, at, drawn, of_core, cores):
    """Print the time of growing batches, up to the first one at which the GPU is faster than so many cores."""
    title(f"gradient, {CONDITIONS} conditions for each layout, {precision(True)}", f"{cores} cores")
    count = 1
    while count <= len(drawn):
        batch, winds = case.on_gpu(engine, at[:, :count], drawn[:count])
        _, fast, _ = timed(stepped(engine, batch, winds))
        cpu = of_core * count / cores
        line(f"layouts: {count}", clock(fast), clock(cpu), times(cpu, fast))
        if fast < cpu:
            return line(f"smallest batch at which the GPU is faster: {count}")
        count *= 2
    return line(f"the GPU is slower in every batch up to {count // 2}")


# campaigns


@functools.cache
def campaign(source, recipe, effort, tasks):
    import leeward

    chosen = leeward.load(source)
    pairs = len(chosen.farms) * len(chosen.types)
    return chosen.with_overrides(recipe=recipe, seeds=-(-tasks // pairs), effort=effort)


def campaign_part(options):
    recipe, count = PARTS[options.part], options.campaign
    chosen = campaign(options.file, recipe, "normal", count)
    keys = list(chosen.tasks())[:count]
    title(f"{len(keys)} tasks of {chosen.name}, {recipe}, effort normal")
    quick = campaign(options.file, recipe, "fast", count)
    _, seconds, _ = computed(quick, keys[:1])
    line("one layout at effort fast, with compilation", clock(seconds))
    results, seconds, phases = computed(chosen, keys)
    line("computed", clock(seconds), note=f"{len(keys) / seconds * 3600:.0f} an hour")
    for phase, (steps, spent) in phases.items():
        line(f"  {phase}", clock(spent), note=f"{steps} steps" if steps else "")
    if options.store:
        stored(options.file, recipe, keys)
    if options.compare and options.part == "refine":
        compare(options, results)


def computed(chosen, keys):
    """Return the AEP of each task, the seconds, and for each phase its steps and seconds."""
    from leeward.campaign.gpu import compute_many

    phases, results, failed = {}, {}, []
    began = noted = shown = time.perf_counter()

    def spend(phase, steps):
        nonlocal noted
        before, noted = noted, time.perf_counter()
        known_steps, known_seconds = phases.get(phase, (0, 0.0))
        phases[phase] = known_steps + steps, known_seconds + noted - before

    def show_progress(step, phase, best_aep_gwh):
        nonlocal shown
        spend(phase, 1)
        if noted - shown >= STATUS_S:
            shown = noted
            spent = ", ".join(f"{name} {clock(seconds)}" for name, (_, seconds) in phases.items())
            line(f"... after {noted - began:.0f} s: {len(results)} done", note=spent)

    for outcome in compute_many(chosen, keys, show_progress):
        if hasattr(outcome, "exception"):
            failed.append(outcome)
        else:
            results[outcome.key] = outcome.aep_gwh
    spend("finishing", 0)
    if failed:
        line(f"{len(failed)} TASKS FAILED", note=f"{failed[0].key}: {failed[0].exception}")
    return results, time.perf_counter() - began, phases


def stored(source, recipe, keys):
    """Print the time of `leeward run --engine gpu` for these tasks, in a temporary folder."""
    seeds = max(key.seed for key in keys) + 1
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tasks.txt").write_text("".join(f"{key}\n" for key in keys), encoding="utf-8")
        command = [*LEEWARD, "run", source, "--engine", "gpu", "--recipe", recipe, "--effort", "normal", "--quiet"]
        command += ["--seeds", str(seeds), "--only-from", "tasks.txt", "-o", "layouts.h5"]
        began = time.perf_counter()
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        seconds = time.perf_counter() - began
        size = sum(path.stat().st_size for path in Path(folder).glob("layouts.h5"))
    if done.returncode != 0:
        return line("leeward run FAILED", note=f"exit code {done.returncode}: {done.stdout[-500:]}")
    note = f"{len(keys) / seconds * 3600:.0f} an hour, layouts.h5 {size / 1e6:.1f} MB"
    return line("stored: leeward run --engine gpu", clock(seconds), note=note)


def compare(options, results):
    """Print the AEP of some tasks beside that of the CPU, which computes them in a process on each core."""
    keys = list(results)[:: max(1, len(results) // options.compare)][: options.compare]
    settings = options.file, PARTS["refine"], "normal", options.campaign
    peers, seconds, began = {}, [], time.perf_counter()
    context = multiprocessing.get_context("spawn")  # a forked process could not use a GPU
    with context.Pool(os.cpu_count(), warm, settings) as pool:
        shown = began
        for key, aep, spent in pool.imap_unordered(on_cpu, [(key, settings) for key in keys]):
            peers[key] = aep
            seconds.append(spent)
            if time.perf_counter() - shown >= STATUS_S:
                shown = time.perf_counter()
                line(f"... after {shown - began:.0f} s: {len(peers)} of {len(keys)} computed by the CPU")
    ours, theirs = (np.array([found[key] for key in keys]) for found in (results, peers))
    change = ours / theirs - 1
    note = (
        f"{change.mean():+.4%} in the mean, {np.median(change):+.4%} in the median, better in {(change > 0).mean():.0%}"
    )
    line(
        f"median AEP of {len(keys)} tasks, GWh: GPU, CPU",
        f"{np.median(ours):.3f}",
        f"{np.median(theirs):.3f}",
        note=note,
    )
    line("CPU seconds of a layout", cpu=clock(float(np.mean(seconds))), note=f"{os.cpu_count()} processes at once")


def warm(*settings):
    """Compile the kernels, or load them, before the first task of a process."""
    from leeward.campaign.compute import warm_up

    os.environ.update(ONE_CORE)
    warm_up(campaign(*settings))


def on_cpu(task):
    key, settings = task
    began = time.process_time()
    solution = campaign(*settings).optimise(key)
    return key, solution.aep_gwh, time.process_time() - began


# the parts


def heading():
    from leeward import __version__
    from leeward.wind.gpu.device import gpus

    names = ", ".join(f"{gpu.name} (driver {gpu.driver or 'unknown'}, CUDA {gpu.cuda or 'unknown'})" for gpu in gpus())
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numba", "numba-cuda", "numpy"))
    print(f"{names}; {cpu_name()}, {os.cpu_count()} cores")
    print(f"leeward {__version__}, {versions}, Python {platform.python_version()}", flush=True)


def run_part(options):
    heading() if options.part == "heading" else engine_part(options) if options.part == "engine" else campaign_part(
        options
    )


def run_all(options):
    """Run each part in a process of its own. Return the exit code."""
    from leeward.errors import LeewardError
    from leeward.wind.gpu import device

    try:
        device.require()
    except LeewardError as error:
        raise SystemExit(f"this benchmark needs a GPU: {error}") from None
    chosen = [part for part in options.parts if part == "engine" or options.campaign]
    codes = [
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--part", part], env=os.environ | ONE_CORE).returncode
        for part in ("heading", *chosen)
    ]
    return 1 if any(codes) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure (default: all)")
    parser.add_argument("--campaign", type=int, default=3000, help="tasks of a campaign; 0 for none (default: 3000)")
    parser.add_argument("--store", action="store_true", help="also measure `leeward run --engine gpu`")
    parser.add_argument("--compare", type=int, default=0, help="tasks to compute on all CPU cores too (default: 0)")
    parser.add_argument("--layouts", type=int, default=3000, help="layouts in a step of a descent (default: 3000)")
    parser.add_argument("--cores", type=int, default=16, help="CPU cores to compare batches with (default: 16)")
    parser.add_argument("--turbines", type=int, default=66, help=argparse.SUPPRESS)
    parser.add_argument("--directions", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--file", default=BUILT_IN, help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=["heading", *PARTS], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        run_part(options)
    else:
        raise SystemExit(run_all(options))


if __name__ == "__main__":
    main()
