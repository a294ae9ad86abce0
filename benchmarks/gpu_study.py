"""A study on a GPU: samples of the study of `benchmarks/study.py`, without and with storing, and five on the CPU.

The time without storing is that of the results as Python objects; the first two samples, which compile the kernels, are
timed apart. With storing it is the time of `leeward evaluate --engine gpu`, with start, compilation and merge. Both are
extrapolated to 15 000 samples: the time with storing by the samples only, from the times of a tenth and of all of them.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from study import ALL_SAMPLES, LEEWARD, write_study

CHECKED = 5


def computed(study, keys):
    """Return the results of some tasks, and the seconds that they took."""
    from leeward.study.gpu import compute_many

    began = time.monotonic()
    results = list(compute_many(study, keys, lambda **facts: None))
    failed = [result.exception for result in results if hasattr(result, "exception")]
    if failed:
        raise failed[0]
    return {result.key: result for result in results}, time.monotonic() - began


def largest_difference(study, results):
    """Return the largest difference of AEP and of farm power to the CPU, relative to the largest value."""
    off = []
    for key in list(results)[:: max(1, len(results) // CHECKED)][:CHECKED]:
        ours, peer = results[key], study.evaluate(key)
        for name in ("aep_gwh", "farm_power_mw"):
            one, other = getattr(ours, name), getattr(peer, name)
            off.append(np.abs(one - other).max() / other.max())
    return max(off)


def stored(folder, count):
    """Return the seconds of `leeward evaluate` for the first samples."""
    output = folder / f"study-{count}.h5"
    command = [LEEWARD, "evaluate", "study.yaml", "--engine", "gpu", "--quiet", "-o", output.name]
    began = time.monotonic()
    subprocess.run([*command, "--only", f"scenario=0:{count}"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def show(name, count, seconds, total):
    print(f"  {name:34s}{count:9d}{seconds:10.2f}{1e3 * seconds / count:14.2f}{total:22.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000, help="of the study (default: 1000)")
    parser.add_argument("--no-storing", action="store_true", help="only compute the results")
    chosen = parser.parse_args()

    from leeward.study import load_study
    from leeward.wind.gpu.device import gpus

    print(", ".join(gpu.name for gpu in gpus()), f"{os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = load_study(write_study(folder, chosen.samples, {"engine": "gpu"}))
        keys = list(study.tasks())
        _, compiling = computed(study, keys[:2])
        results, seconds = computed(study, keys)
        print(f"  {'':34s}{'samples':>9s}{'seconds':>10s}{'ms each':>14s}{f'seconds of {ALL_SAMPLES}':>22s}")
        show("two samples, with compilation", 2, compiling, compiling + ALL_SAMPLES * seconds / len(keys))
        show("without storing", len(keys), seconds, ALL_SAMPLES * seconds / len(keys))
        if not chosen.no_storing:
            few = max(1, len(keys) // 10)
            short, long = stored(folder, few), stored(folder, len(keys))
            each = max(long - short, 0.0) / max(len(keys) - few, 1)
            show("leeward evaluate", few, short, short + (ALL_SAMPLES - few) * each)
            show("leeward evaluate", len(keys), long, long + (ALL_SAMPLES - len(keys)) * each)
        print(f"  largest relative difference to the CPU: {largest_difference(study, results):.1e}")


if __name__ == "__main__":
    main()
