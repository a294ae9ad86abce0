"""Run all that tests/faults can do, piece by piece, and write one line per piece.

    python tools/faults.py --jobs 2

A piece is one test, or a part of a long one; none takes much longer than ten minutes on a free machine. The storm of
kills keeps its own state. Interrupt this at any time and run it again to resume: pieces whose outcome is in the log for
the same source are skipped, and an interrupted piece leaves no line. The tests run on the package beside this file, so
run it in a clone to go on editing meanwhile. Linux only.
"""

import argparse
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FAULTS = ROOT / "tests" / "faults"
sys.path.insert(0, str(FAULTS))

from source import commit_of, digest_of  # noqa: E402
from storm_state import NAME, StateError, held, read  # noqa: E402

STORM = "test_storm.py::test_a_storm_of_kills"
STORM_PLAN = (900, 1000, 200)  # tasks, workers and coordinators to kill
SOAK_PARTS = 6  # of one hour
# Into how many parts a test is cut, by how its name ends. What is not here takes less than ten minutes.
PARTS = {
    "test_damaged_files": 10,
    "every_step[merge, with packs]": 2,
    "every_step[pack]": 2,
    "test_a_fault_at_every_step[clean, with a damaged pack]": 3,
    "test_a_fault_at_every_step[run, calls fail]": 3,
    "test_a_fault_at_every_step[run, packing]": 6,
    "test_a_fault_at_every_step[run --adopt]": 4,
    "test_a_fault_at_every_step[run --new]": 4,
    "test_a_fault_at_every_step[resume, reader]": 2,
    "test_a_fault_at_every_step[resume with an output, reader]": 2,
    "test_the_power_is_cut_at_every_step[run]": 3,
    "test_the_power_is_cut_at_every_step[run, packing]": 3,
    "test_the_power_is_cut_at_every_step[run --adopt]": 3,
    "test_the_power_is_cut_at_every_step[run --new]": 3,
}
END_S = 60.0  # for a piece to end after it was interrupted
_SET_PARENT_DEATH_SIGNAL = 1  # of prctl


@dataclass(frozen=True)
class Piece:
    """test: its name below tests/faults. part, parts: which share of it."""

    test: str
    part: int = 1
    parts: int = 1

    @property
    def kind(self) -> str:
        return self.test.partition(".py")[0].removeprefix("test_")

    def __str__(self) -> str:
        return self.test + (f" {self.part}/{self.parts}" if self.parts > 1 else "")


def main() -> None:
    """Run what is missing, print the figures, and end with 1 if anything went wrong, with 3 if pieces are left."""
    arguments = parse()
    source = digest_of(ROOT / "src" / "leeward")
    log = Log(arguments.folder / "runs.jsonl", source)
    pieces = [piece for piece in all_pieces(arguments.soak_parts) if arguments.only in str(piece)]
    if arguments.list:
        print(*(f"{log.state_of(piece):10s} {piece}" for piece in pieces), sep="\n")
        return
    if not arguments.report:
        commit = commit_of(ROOT)
        if commit.endswith("+"):
            sys.exit(f"{ROOT}: files were changed since the last commit. Commit them, or run this in a clone.")
        arguments.folder.mkdir(parents=True, exist_ok=True)
        try:
            with held(arguments.folder):
                Runner(arguments, log, commit).run(
                    [piece for piece in pieces if log.is_missing(piece, arguments.retry)]
                )
        except StateError as error:
            sys.exit(str(error))
    print(report(log, pieces))
    left = [piece for piece in pieces if log.state_of(piece) == "missing"]
    if left:
        print(f"{len(left)} pieces are left; run it again to resume")
    sys.exit(1 if any(log.state_of(piece) == "failed" for piece in pieces) else 3 if left else 0)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="pieces that run at the same time (default: 1)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no piece later (default: never)")
    parser.add_argument("--only", default="", metavar="TEXT", help="pieces with this in their name (default: all)")
    parser.add_argument("--retry", action="store_true", help="run failed pieces again")
    parser.add_argument("--soak-parts", type=int, default=SOAK_PARTS, help=f"of one hour (default: {SOAK_PARTS})")
    parser.add_argument("--folder", type=Path, default=ROOT / "fault-runs", help="for the log (default: fault-runs)")
    parser.add_argument("--list", action="store_true", help="list the pieces, and run none")
    parser.add_argument("--report", action="store_true", help="print the figures of what was run, and run nothing")
    return parser.parse_args()


def environment() -> dict[str, str]:
    """Return that of a long test of the package in this working tree."""
    paths = [str(ROOT / "src"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "LEEWARD_FAULTS": "long"}


def all_pieces(soak_parts: int) -> list[Piece]:
    """Return all pieces, in the order in which they run: the storm, which is the longest, first."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(FAULTS)]
    listed = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        sys.exit(f"the tests cannot be collected:\n{listed.stdout[-3000:]}{listed.stderr[-3000:]}")
    tests = re.findall(r"^(?:.*/)?(test_\w+\.py::.+)$", listed.stdout, re.MULTILINE)
    parts = {**PARTS, "test_a_soak": soak_parts}
    pieces = []
    for test in sorted(tests, key=lambda test: test != STORM):
        count = next((count for end, count in parts.items() if test.endswith(end)), 1)
        pieces += [Piece(test, part, count) for part in range(1, count + 1)]
    return pieces


class Log:
    """The lines of one source, the latest of each piece."""

    def __init__(self, path: Path, source: str) -> None:
        self._path, self.source = path, source
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._lines = [line for line in map(json.loads, lines) if line["source"] == source]

    def add(self, line: dict[str, Any]) -> None:
        """Append a line in one write, so that it is there as a whole or not at all."""
        with self._path.open("ab", buffering=0) as log:
            log.write((json.dumps(line) + "\n").encode())
        self._lines.append(line)

    def of(self, pieces: Iterable[Piece]) -> list[dict[str, Any]]:
        """Return the latest line of each of these pieces."""
        latest = {line["piece"]: line for line in self._lines}
        return [latest[str(piece)] for piece in pieces if str(piece) in latest]

    def state_of(self, piece: Piece) -> str:
        return next((line["outcome"] for line in self.of([piece])), "missing")

    def is_missing(self, piece: Piece, is_retry: bool) -> bool:
        return self.state_of(piece) in (("missing", "failed") if is_retry else ("missing",))

    def failures(self) -> int:
        """Return how many lines tell of a failure, those of pieces that passed later included."""
        return sum(line["outcome"] == "failed" for line in self._lines)


class Runner:
    """Runs pieces, some at a time, until all are done or until it is interrupted."""

    def __init__(self, arguments: argparse.Namespace, log: Log, commit: str) -> None:
        self._jobs, self._folder, self._log, self._commit = arguments.jobs, arguments.folder, log, commit
        self._end = time.monotonic() + 60.0 * arguments.minutes
        self._is_interrupted = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._interrupt)

    def _interrupt(self, number: int, frame: object) -> None:
        self._is_interrupted = True

    def run(self, pieces: Sequence[Piece]) -> None:
        waiting, running = list(pieces), list[Running]()
        try:
            while waiting or running:
                if self._is_interrupted:
                    sys.exit("interrupted; run it again to resume")
                if time.monotonic() > self._end:
                    waiting.clear()
                while waiting and len(running) < self._jobs:
                    running.append(Running(waiting.pop(0), self._folder / self._log.source[:10]))
                for one in [one for one in running if one.process.poll() is not None]:
                    running.remove(one)
                    self._note(one, f"{len(waiting) + len(running)} left")
                time.sleep(0.1)
        finally:
            for one in running:
                one.interrupt()

    def _note(self, one: "Running", left: str) -> None:
        result = one.result()
        if result["outcome"] == "unfinished":
            print(f"unfinished, run it again to resume: {result['piece']}\n{result['said']}", flush=True)
            return
        line = {"commit": self._commit, "source": self._log.source, **result}
        self._log.add(line)
        print(f"{line['outcome']:7s} {line['seconds']:5d} s  {line['piece']}  ({left})", flush=True)


class Running:
    """A piece in a process of its own. Its output goes to a file; the storm goes on in a folder of its own."""

    def __init__(self, piece: Piece, folder: Path) -> None:
        self._piece = piece
        self._began = time.monotonic()
        self._scratch = tempfile.TemporaryDirectory(prefix="leeward-piece-")
        seed = os.environ.get("LEEWARD_FAULTS_SEED") or "1"
        self._storm = folder / f"storm-{seed}"
        self._output = folder / (re.sub(r"\W+", "-", str(piece)) + ".txt")
        folder.mkdir(exist_ok=True)
        own = {"LEEWARD_FAULTS_PART": f"{piece.part}/{piece.parts}", "LEEWARD_FAULTS_SEED": seed}
        if piece.test == STORM:
            command = [str(FAULTS / "storm.py"), *map(str, STORM_PLAN), seed, "--folder", str(self._storm)]
        else:
            command = ["-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", f"--basetemp={self._scratch.name}/tests"]
            command += [f"--junitxml={self._result}", f"{FAULTS}/{piece.test}"]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env={**environment(), **own},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )

    @property
    def _result(self) -> Path:
        return Path(self._scratch.name) / "result.xml"

    def interrupt(self) -> None:
        """End it as Ctrl-C does, so that it ends what it has started; if that takes too long, kill all of it."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._scratch.cleanup()

    def result(self) -> dict[str, Any]:
        """Return what is known of a piece that has ended."""
        code = self.process.returncode
        outcome, counts = self._of_storm(code) if self._piece.test == STORM else self._of_test(code)
        seconds = counts.pop("storm seconds", time.monotonic() - self._began)
        facts = {"piece": str(self._piece), "kind": self._piece.kind, "outcome": outcome, "seconds": round(seconds)}
        began = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - seconds))
        said = self._output.read_text(encoding="utf-8", errors="replace")
        self._scratch.cleanup()
        return {**facts, "began": began, "counts": counts, "said": "" if outcome == "passed" else said[-2000:]}

    def _of_storm(self, code: int) -> tuple[str, dict[str, float]]:
        """A storm that found no problem and is not complete goes on with the next start."""
        path = self._storm / NAME
        if code not in (0, 1):
            return "unfinished", {}
        if not path.exists():
            return "failed", {}
        state = read(path)
        counts: dict[str, float] = {
            "tasks": state.plan[0],
            "workers killed": state.worker_kills,
            "coordinators killed": state.coordinator_kills,
            "of these while only merging was left": state.merger_kills,
            "coordinators ended by interruptions of the storm": state.interrupted,
            "computations": state.computations,
            "stored": len(state.stored),
            "problems": len(state.problems),
            "storm seconds": state.seconds,
        }
        return "passed" if code == 0 else "failed", counts

    def _of_test(self, code: int) -> tuple[str, dict[str, float]]:
        if not self._result.exists():
            return "failed", {}
        tree = xml.etree.ElementTree.parse(self._result)
        is_skipped = any(True for _ in tree.iter("skipped"))
        counts = {
            one.attrib["name"]: float(one.attrib["value"]) if "." in one.attrib["value"] else int(one.attrib["value"])
            for one in tree.iter("property")
        }
        return "failed" if code != 0 else "skipped" if is_skipped else "passed", counts


def _end_with_parent() -> None:
    """Have the kernel interrupt this process when the runner ends, however that ends."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGINT)


def report(log: Log, pieces: Sequence[Piece]) -> str:
    """Return the figures of all pieces that were run on this source, by kind, added up; "most" is the largest."""
    lines = log.of(pieces)
    commits = Counter(line["commit"][:10] for line in lines)
    texts = [
        f"source {log.source[:10]}, commits: {', '.join(f'{commit} ({n} pieces)' for commit, n in commits.items())}",
        f"{len(lines)} of {len(pieces)} pieces, {sum(line['seconds'] for line in lines) / 3600:.1f} hours of them; "
        f"{log.failures()} failures in all, later repeated ones included",
    ]
    for kind in dict.fromkeys(piece.kind for piece in pieces):
        of_kind = [line for line in lines if line["kind"] == kind]
        outcomes = Counter(line["outcome"] for line in of_kind)
        counted = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        total = sum(piece.kind == kind for piece in pieces)
        texts.append(f"\n{kind}: {len(of_kind)} of {total} pieces ({counted}), {sum(o['seconds'] for o in of_kind)} s")
        texts += [f"  {value:>10g}  {name}" for name, value in added_up(of_kind).items()]
        texts += [f"  {line['outcome']}: {line['piece']}" for line in of_kind if line["outcome"] != "passed"]
    return "\n".join(texts)


def added_up(lines: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Return the counts of several pieces as one."""
    totals: dict[str, float] = {}
    for line in lines:
        for name, count in line["counts"].items():
            totals[name] = max(count, totals.get(name, 0)) if name.startswith("most ") else totals.get(name, 0) + count
    return totals


if __name__ == "__main__":
    main()
