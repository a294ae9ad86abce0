"""Run a test target again and again while the machine is busy, and write one line per run.

    python tools/under_load.py --runs 5 --load 8

Keeps `--load` processes runnable: those of the tests, and as many busy loops as it takes. Interrupt it at any time and
run it again to resume: it counts the runs of this commit, target and load in the log, and an interrupted run leaves no
line. Linux only.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOOK_EVERY_S = 0.5
SPIN = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def main() -> None:
    """Run what is missing, and end with 1 if any run of this commit has failed."""
    arguments = parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("interrupted; run it again to resume"))
    commit = clean_commit()
    done = earlier_runs(arguments, commit)
    for number in range(len(done), arguments.runs):
        with Load(arguments.load) as load:
            done.append(run_once(arguments, commit, number + 1, load))
        with arguments.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(done[-1]) + "\n")
        print(json.dumps(done[-1]), flush=True)
    bad = [run for run in done if run["exit_code"]]
    print(f"{len(done)} runs of {commit[:10]}, {len(bad)} of them failed")
    sys.exit(1 if bad else 0)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of this commit that the log is to have (default: 5)")
    parser.add_argument("--load", type=int, default=8, help="runnable processes, the tests included (default: 8)")
    parser.add_argument("--target", default="test-quick", help="of the Makefile (default: test-quick)")
    parser.add_argument("--log", type=Path, default=ROOT / "load-runs.jsonl", help="default: load-runs.jsonl")
    return parser.parse_args()


def clean_commit() -> str:
    """Return the commit that is tested, or stop: a result has to name what it is a result of."""
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True)
    if changed.stdout.strip():
        sys.exit(f"commit these changes first, or run this in a clone:\n{changed.stdout.rstrip()}")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return head.stdout.strip()


def earlier_runs(arguments: argparse.Namespace, commit: str) -> list[dict]:
    if not arguments.log.exists():
        return []
    runs = [json.loads(line) for line in arguments.log.read_text(encoding="utf-8").splitlines()]
    wanted = (commit, arguments.target, arguments.load)
    return [run for run in runs if (run["commit"], run["target"], run["load"]) == wanted]


def run_once(arguments: argparse.Namespace, commit: str, number: int, load: "Load") -> dict:
    """Run the target to its end, from a cold kernel cache; its output goes to a file beside the log."""
    output = arguments.log.with_suffix(f".{commit[:10]}-{arguments.target}-{number}.txt")
    began = time.time()
    with output.open("wb") as file, tempfile.TemporaryDirectory() as cache:
        process = subprocess.Popen(
            ["make", arguments.target],
            cwd=ROOT,
            env={**os.environ, "LEEWARD_CACHE_DIR": cache},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
    said = output.read_text(encoding="utf-8", errors="replace")
    counts: dict[str, int] = {}
    for line in said.splitlines():
        if re.search(r"\d+ (passed|failed|errors?).* in [\d.:]+", line):
            for count, word in COUNTS.findall(line):
                counts[word] = counts.get(word, 0) + int(count)
    return {
        "commit": commit,
        "target": arguments.target,
        "load": arguments.load,
        "run": number,
        "began": time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(began)),
        "seconds": round(time.time() - began),
        "mean_runnable": round(load.mean(), 1),
        "exit_code": code,
        **counts,
        "failed_tests": sorted(set(FAILED.findall(said))),
    }


class Load:
    """Busy loops, as many of them awake as are missing to the wanted number of runnable processes."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._loops: list[subprocess.Popen[bytes]] = []
        self._awake = wanted
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._seen: list[int] = []

    def mean(self) -> float:
        """Return the mean number of runnable processes so far."""
        return sum(self._seen) / max(len(self._seen), 1)

    def __enter__(self) -> "Load":
        for _ in range(self._wanted):
            self._loops.append(subprocess.Popen([sys.executable, "-c", SPIN], start_new_session=True))
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watcher.join()
        for loop in self._loops:
            loop.kill()
            loop.wait()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            running = runnable() - 1  # without this one
            self._seen.append(running)
            others = running - self._awake
            awake = min(max(self._wanted - others, 0), self._wanted)
            for number, loop in enumerate(self._loops):
                loop.send_signal(signal.SIGCONT if number < awake else signal.SIGSTOP)
            self._awake = awake


def runnable() -> int:
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("procs_running"):
            return int(line.split()[1])
    raise OSError("/proc/stat does not say how many processes are runnable")


if __name__ == "__main__":
    main()
