"""The wake engine where the wind varies over the site, beside PyWake on the same field and beside the uniform site.

Farm 0 of the built-in case, 66 turbines of 15 MW, 360 directions x 23 speeds, nygaard_2022. The field has 50 x 50
points and 12 sectors; sector frequency and Weibull A and k vary smoothly by a few per cent. Every measurement runs in a
process of its own, on one core.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np

from wake import ONE_CORE, cpu_name, fastest, layout, os, peak_mb, peer_farm

POINTS, SECTORS = 50, 12
GRIDS = (50, 200)  # points along each axis, for the growth of memory
TERRAIN = {  # what varies besides, and the option `distances`
    "turbulence": "straight",
    "elevated": "elevated",
    "terrain_following": "terrain_following",
}


def field(points=POINTS):
    """The wind of the built-in case with smooth waves over the area, in the names of PyWake's XRSite."""
    import xarray

    from leeward.campaign import builtin

    figures = builtin.figures("site.yaml")
    x, y = layout(66)
    grids = [np.linspace(axis.min() - 4000.0, axis.max() + 4000.0, points) for axis in (x, y)]
    east, north = np.meshgrid(*(np.linspace(0.0, 1.0, points) for _ in grids), indexing="ij")
    sector = np.arange(SECTORS)
    wave = np.sin(2.0 * np.pi * (east[..., None] + sector / SECTORS)) * np.cos(np.pi * north[..., None])
    frequency = np.array(figures["sector_frequency"])
    varied = frequency * (1.0 + 0.1 * np.cos(2.0 * np.pi * north[..., None] + sector))
    varied *= frequency.sum() / varied.sum(axis=-1, keepdims=True)
    values = {
        "Weibull_A": np.array(figures["weibull_a_m_s"]) * (1.0 + 0.04 * wave),
        "Weibull_k": np.array(figures["weibull_k"]) * (1.0 + 0.02 * wave),
        "Sector_frequency": varied,
    }
    return xarray.Dataset(
        {name: (("x", "y", "wd"), each) for name, each in values.items()} | {"TI": figures["turbulence_intensity"]},
        coords={"x": grids[0], "y": grids[1], "wd": sector * (360.0 / SECTORS)},
    )


def farm(kind):
    import leeward.wind.kernels.sweep  # noqa: F401  # memory is counted above import, numba's included
    from leeward.campaign import builtin
    from leeward.wind import Site, WindFarm

    if kind == "uniform":
        site = builtin.site()
    elif kind in TERRAIN:
        site = Site.from_dataset(hills(), distances=TERRAIN[kind])
    else:
        site = Site.from_dataset(field(int(kind)))
    return WindFarm(site, builtin.turbines()[5])


def hills():
    """The field with turbulence that varies too, bins of local speeds, and hills of 200 m."""
    data = field()
    steps = np.linspace(0.0, 2.0 * np.pi, POINTS)
    hill = 0.5 * (np.sin(3.0 * steps)[:, None] * np.cos(2.0 * steps) + 1.0)
    changed = {
        "TI": (("x", "y"), float(data["TI"]) * (1.2 - 0.4 * hill)),
        "Speedup": (("x", "y"), 0.95 + 0.1 * hill),
        "Elevation": (("x", "y"), 200.0 * hill),
    }
    return data.assign(changed).assign_attrs(speed_bins="local")


def evaluation(kind):
    ours, (x, y) = farm(kind), layout(66)
    before = peak_mb()
    _, by_x, by_y = ours.aep_gradient(x, y)
    aep = ours.aep_gwh(x, y)
    rng = np.random.default_rng(0)
    ours.sampled_aep_gradient(x, y, 100, rng)
    return {
        "aep_gwh": aep,
        "gradient": [*by_x, *by_y],
        "aep_s": fastest(lambda: ours.aep_gwh(x, y), 20),
        "gradient_s": fastest(lambda: ours.aep_gradient(x, y), 10),
        "sampled_s": fastest(lambda: ours.sampled_aep_gradient(x, y, 100, rng), 300),
        "memory_mb": peak_mb() - before,
    }


def normal(kind):
    """The effort `normal` in CPU seconds, for seed 0."""
    from leeward.campaign import builtin
    from leeward.layout import LayoutProblem, optimise

    area = builtin.area(0)
    problem = LayoutProblem(farm(kind), area, 66, spacing_diameters=2.0)
    optimise(problem, seed=1, recipe="smart_start+refine", effort="fast")
    before = time.process_time()
    solution = optimise(problem, seed=0, recipe="smart_start+refine", effort="normal")
    return {"seconds": time.process_time() - before, "aep_gwh": solution.aep_gwh}


def peer(kind):
    """PyWake on the same field: AEP, and with `gradient` its derivatives."""
    from py_wake.site import XRSite

    model, (x, y) = peer_farm(), layout(66)
    model.site = XRSite(field(), interp_method={"wd": "nearest", "x": "linear", "y": "linear"})
    before = peak_mb()
    start = time.perf_counter()
    if kind == "gradient":
        found = model.aep_gradients(wrt_arg=["x", "y"], x=x, y=y)
        result = {"gradient": [float(value) for value in np.ravel(found)]}
    else:
        result = {"aep_gwh": float(model.aep(x, y))}
    return {**result, "seconds": time.perf_counter() - start, "memory_mb": peak_mb() - before}


MEASUREMENTS = {work.__name__: work for work in (evaluation, normal, peer)}


def measure(name, kind):
    command = [sys.executable, __file__, "--measure", name, "--kind", kind]
    result = subprocess.run(command, env=os.environ | ONE_CORE, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{name} of {kind} failed:\n{result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


def best(name, kinds, rounds, key):
    """Measure the kinds in turns, and keep the fastest of each."""
    found = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            found[kind].append(measure(name, kind))
    return {kind: min(results, key=lambda each: each[key]) for kind, results in found.items()}


def report(rounds, with_gradient):
    import py_wake

    from leeward import __version__

    print(f"leeward {__version__}, PyWake {py_wake.__version__}, {cpu_name()}, one core")
    print(f"66 turbines, 360 directions x 23 speeds, nygaard_2022; a field of {POINTS} x {POINTS} points, 12 sectors\n")
    grids = [str(points) for points in GRIDS]
    ours = best("evaluation", ["uniform", *grids], rounds, "gradient_s")
    uniform, own = ours["uniform"], ours[grids[0]]
    print(f"{'leeward':32}{'uniform':>12}{'field':>12}{'ratio':>9}")
    for name, label in (("aep_s", "AEP"), ("gradient_s", "AEP with gradient"), ("sampled_s", "100 conditions")):
        a, b = uniform[name], own[name]
        print(f"{label:32}{a * 1e3:10.2f}ms{b * 1e3:10.2f}ms{b / a:9.2f}")
    efforts = best("normal", ["uniform", grids[0]], rounds, "seconds")
    a, b = efforts["uniform"]["seconds"], efforts[grids[0]]["seconds"]
    print(f"{'effort normal, CPU time':32}{a:10.2f} s{b:10.2f} s{b / a:9.2f}")
    memory = ", ".join(f"{ours[kind]['memory_mb']:.0f} MB on {kind} x {kind} points" for kind in grids)
    print(f"memory above import: {uniform['memory_mb']:.0f} MB uniform, {memory}\n")

    print(f"{'relative to the uniform site':32}{'AEP':>12}{'gradient':>12}")
    rows = {"Weibull parameters, frequency": own}
    terrain = best("evaluation", list(TERRAIN), rounds, "gradient_s")
    rows |= {"and speed-up, TI, local bins": terrain["turbulence"]}
    rows |= {f"and distances {kind}": terrain[kind] for kind in ("elevated", "terrain_following")}
    for label, found in rows.items():
        ratios = (found[name] / uniform[name] for name in ("aep_s", "gradient_s"))
        print(f"{label:32}" + "".join(f"{ratio:12.2f}" for ratio in ratios))
    print()

    theirs = min((measure("peer", "aep") for _ in range(rounds)), key=lambda each: each["seconds"])
    print(f"{'the same field':32}{'PyWake':>12}{'leeward':>12}{'times':>9}   agree to")
    difference = abs(theirs["aep_gwh"] / own["aep_gwh"] - 1.0)
    times = theirs["seconds"] / own["aep_s"]
    print(f"{'AEP':32}{theirs['seconds']:10.2f} s{own['aep_s'] * 1e3:10.1f}ms{times:9.0f}   {difference:.0e}")
    if with_gradient:
        theirs = measure("peer", "gradient")
        found, expected = np.array(own["gradient"]), np.array(theirs["gradient"])
        difference = np.abs(found - expected).max() / np.abs(expected).max()
        times = theirs["seconds"] / own["gradient_s"]
        print(
            f"{'AEP with gradient':32}{theirs['seconds']:10.2f} s{own['gradient_s'] * 1e3:10.1f}ms{times:9.0f}   "
            f"{difference:.0e}  ({theirs['memory_mb']:.0f} MB)"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often to measure; the shortest time counts")
    parser.add_argument("--no-peer-gradient", action="store_true", help="skip PyWake's gradient (minutes, 20 GB)")
    parser.add_argument("--measure", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(MEASUREMENTS[arguments.measure](arguments.kind)))
    else:
        report(arguments.rounds, not arguments.no_peer_gradient)


if __name__ == "__main__":
    main()
