"""The wake engine beside PyWake, in one run on one core: time, memory, agreement; then how leeward's cost grows.

Farm 0 of the built-in case, 66 turbines of 15 MW, 360 directions x 23 speeds, nygaard_2022. Every measurement runs in
a process of its own, the two programs in turns, so that a slow spell of the machine hits both.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np

ONE_CORE = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
SIZES = (16, 66, 132, 264, 528)


def peak_mb() -> float:
    """Highest resident memory of this process so far, MB. (Not getrusage: that one starts with the parent's.)"""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024.0


def fastest(work, repeats, seconds=4.0):
    """Shortest of several runs, s."""
    times = []
    start = time.perf_counter()
    while len(times) < repeats and (not times or time.perf_counter() - start < seconds):
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return min(times)


def layout(count):
    """The built-in layout, or `count` turbines at the same density."""
    from leeward.campaign import builtin

    _, _, x, y = builtin.example_layout()
    if count == len(x):
        return x, y
    rng = np.random.default_rng(count)
    side = np.sqrt(count / len(x))
    east, north = [np.ptp(c) * side for c in (x, y)]
    places: list[np.ndarray] = []
    while len(places) < count:
        place = rng.random(2) * (east, north)
        if all(np.hypot(*(place - other)) > 720 for other in places):
            places.append(place)
    return np.array(places).T


def our_farm():
    import leeward.wind.kernels.sweep  # noqa: F401  # memory is counted above import, numba's included
    from leeward.campaign import builtin
    from leeward.wind import WindFarm

    return WindFarm(builtin.site(), builtin.turbines()[5])


def ours_aep(count):
    x, y = layout(count)
    farm = our_farm()
    before = peak_mb()
    value = farm.aep_gwh(x, y)
    return {"seconds": fastest(lambda: farm.aep_gwh(x, y), 20), "memory_mb": peak_mb() - before, "aep_gwh": value}


def ours_gradient(count):
    x, y = layout(count)
    farm = our_farm()
    before = peak_mb()
    value, by_x, by_y = farm.aep_gradient(x, y)
    return {
        "seconds": fastest(lambda: farm.aep_gradient(x, y), 10),
        "memory_mb": peak_mb() - before,
        "aep_gwh": value,
        "gradient": [*by_x, *by_y],
    }


def ours_sampled(count):
    x, y = layout(count)
    farm = our_farm()
    rng = np.random.default_rng(0)
    farm.sampled_aep_gradient(x, y, 100, rng)
    return {"seconds": fastest(lambda: farm.sampled_aep_gradient(x, y, 100, rng), 300)}


def peer_farm():
    import xarray
    from py_wake.literature.turbopark import Nygaard_2022
    from py_wake.site import XRSite
    from py_wake.wind_turbines.generic_wind_turbines import GenericWindTurbine

    from leeward.campaign import builtin

    figures = builtin.figures("site.yaml")
    site = XRSite(
        xarray.Dataset(
            {
                "Weibull_A": ("wd", figures["weibull_a_m_s"]),
                "Weibull_k": ("wd", figures["weibull_k"]),
                "Sector_frequency": ("wd", figures["sector_frequency"]),
                "TI": figures["turbulence_intensity"],
            },
            coords={"wd": figures["sector_centre_deg"]},
        ),
        interp_method="nearest",
    )
    return Nygaard_2022(site, GenericWindTurbine("generic", 240, 150, power_norm=15000))


def peer_aep(count):
    x, y = layout(count)
    farm = peer_farm()
    before = peak_mb()
    value = farm.aep(x, y)
    return {
        "seconds": fastest(lambda: farm.aep(x, y), 3, seconds=20),
        "memory_mb": peak_mb() - before,
        "aep_gwh": float(value),
    }


def peer_gradient(count):
    x, y = layout(count)
    farm = peer_farm()
    before = peak_mb()
    start = time.perf_counter()
    gradient = farm.aep_gradients(wrt_arg=["x", "y"], x=x, y=y)
    return {
        "seconds": time.perf_counter() - start,
        "memory_mb": peak_mb() - before,
        "gradient": [float(v) for v in np.ravel(gradient)],
    }


MEASUREMENTS = {f.__name__: f for f in (ours_aep, ours_gradient, ours_sampled, peer_aep, peer_gradient)}


def measure(name, count):
    """Run one measurement in a process of its own, on one core."""
    command = [sys.executable, __file__, "--measure", name, "--count", str(count)]
    result = subprocess.run(command, env=os.environ | ONE_CORE, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{name} failed:\n{result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


def best_of(name, count, rounds):
    results = [measure(name, count) for _ in range(rounds)]
    return min(results, key=lambda r: r["seconds"])


def report(rounds, with_gradient):
    import numba
    import py_wake

    from leeward import __version__

    print(f"leeward {__version__}, PyWake {py_wake.__version__}, numba {numba.__version__}, numpy {np.__version__}")
    print(f"Python {platform.python_version()}, {cpu_name()}, one core")
    print("66 turbines of 15 MW, 360 directions x 23 speeds, nygaard_2022; shortest time, memory above import\n")

    measure("ours_gradient", 16)  # compiles, if that has not happened yet
    measure("ours_aep", 16)
    ours, theirs, our_gradient, their_gradient = [], [], [], []
    for _ in range(rounds):
        theirs.append(measure("peer_aep", 66))
        ours.append(measure("ours_aep", 66))
        our_gradient.append(measure("ours_gradient", 66))
    if with_gradient:
        their_gradient.append(measure("peer_gradient", 66))
    our_gradient.append(measure("ours_gradient", 66))

    def fastest_of(results):
        return min(results, key=lambda r: r["seconds"])

    print(f"{'':24}{'PyWake':>12}{'leeward':>12}{'times':>9}{'PyWake':>12}{'leeward':>12}   agree to")
    a, b = fastest_of(theirs), fastest_of(ours)
    row("AEP", a, b, abs(a["aep_gwh"] / b["aep_gwh"] - 1))
    if their_gradient:
        a, b = fastest_of(their_gradient), fastest_of(our_gradient)
        ours_g, theirs_g = np.array(b["gradient"]), np.array(a["gradient"])
        row("AEP with gradient", a, b, np.abs(ours_g - theirs_g).max() / np.abs(theirs_g).max())
    sampled = best_of("ours_sampled", 66, rounds)
    print(f"{'100 random conditions, with gradient':36}{sampled['seconds'] * 1e3:10.2f}ms\n")

    cold, warm, help_text = start_up()
    print(f"from starting python to the first AEP: {cold:.1f} s with a cold cache, {warm:.2f} s with a warm one")
    print(f"to the end of `leeward --help`: {help_text:.2f} s\n")

    print(f"leeward alone: {'turbines':>8}{'AEP':>12}{'gradient':>12}{'100 cond.':>12}{'memory':>12}")
    for count in SIZES:
        a, g, s = (best_of(n, count, 2) for n in ("ours_aep", "ours_gradient", "ours_sampled"))
        print(
            f"{count:23d}{a['seconds'] * 1e3:10.1f}ms{g['seconds'] * 1e3:10.1f}ms"
            f"{s['seconds'] * 1e3:10.2f}ms{g['memory_mb']:10.0f}MB"
        )


def start_up():
    """Seconds from starting python: to a first AEP with a cold and with a warm cache, and to the command's help."""
    program = (
        "from leeward.campaign import builtin\n"
        "from leeward.wind import WindFarm\n"
        "_, turbine, x, y = builtin.example_layout()\n"
        "WindFarm(builtin.site(), turbine).aep_gwh(x, y)\n"
    )
    with tempfile.TemporaryDirectory() as cache:
        variables = os.environ | ONE_CORE | {"LEEWARD_CACHE_DIR": cache}

        def once(*arguments):
            before = time.perf_counter()
            subprocess.run([sys.executable, *arguments], env=variables, check=True, stdout=subprocess.DEVNULL)
            return time.perf_counter() - before

        cold = once("-c", program)
        warm = min(once("-c", program) for _ in range(5))
        help_text = min(once("-c", "from leeward.cli import main; main()", "--help") for _ in range(5))
    return cold, warm, help_text


def row(label, peer, own, difference):
    print(
        f"{label:24}{peer['seconds']:10.2f} s{own['seconds'] * 1e3:10.1f}ms{peer['seconds'] / own['seconds']:8.0f}x"
        f"{peer['memory_mb']:10.0f}MB{own['memory_mb']:10.0f}MB   {difference:.0e}"
    )


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often to measure; the shortest time counts")
    parser.add_argument("--no-peer-gradient", action="store_true", help="skip PyWake's gradient (a minute, 14 GB)")
    parser.add_argument("--measure", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=66, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(MEASUREMENTS[arguments.measure](arguments.count)))
    else:
        report(arguments.rounds, not arguments.no_peer_gradient)


if __name__ == "__main__":
    main()
