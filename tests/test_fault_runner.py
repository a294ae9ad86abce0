"""tools/faults.py, which runs the long fault tests piece by piece: what it skips, adds up, and resumes."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from run_cases import PATIENCE_S, until

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "tools" / "faults.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: children end with their parent")


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("faults_runner", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        patch.setattr(sys, "path", list(sys.path))
        spec.loader.exec_module(module)
        yield module


def line(piece, outcome, source="s", **counts):
    facts = {"commit": "c" * 40, "source": source, "kind": piece.kind, "outcome": outcome, "seconds": 60}
    return {**facts, "piece": str(piece), "counts": counts}


def test_what_is_done_on_this_source_is_skipped(runner, tmp_path):
    """A failure is done too, until somebody asks for another try; the report still counts it then."""
    one, two = (runner.Piece("test_steps.py::test_x[a]", part, 2) for part in (1, 2))
    path = tmp_path / "runs.jsonl"
    runner.Log(path, "s").add(line(one, "failed"))
    runner.Log(path, "other").add(line(two, "passed", source="other"))
    log = runner.Log(path, "s")
    assert [log.state_of(piece) for piece in (one, two)] == ["failed", "missing"]
    assert [log.is_missing(piece, False) for piece in (one, two)] == [False, True]
    assert [log.is_missing(piece, True) for piece in (one, two)] == [True, True]
    log.add(line(one, "passed"))
    assert log.state_of(one) == "passed"
    assert "1 of 2 pieces" in runner.report(log, [one, two])
    assert "1 failures in all" in runner.report(log, [one, two])


def test_counts_are_added_up_and_the_largest_is_kept(runner, tmp_path):
    pieces = [runner.Piece("test_soak.py::test_a_soak", part, 2) for part in (1, 2)]
    log = runner.Log(tmp_path / "runs.jsonl", "s")
    log.add(line(pieces[0], "passed", **{"tasks": 100, "most MB": 3.5, "problems": 0}))
    log.add(line(pieces[1], "failed", **{"tasks": 20, "most MB": 7, "problems": 2}))
    assert runner.added_up(log.of(pieces)) == {"tasks": 120, "most MB": 7, "problems": 2}
    shown = runner.report(log, pieces)
    assert "soak: 2 of 2 pieces (1 passed, 1 failed), 120 s" in shown
    assert "failed: test_soak.py::test_a_soak 2/2" in shown


def test_the_parts_of_a_test_are_the_whole_of_it(runner):
    """And what is cut into parts is an operation that there is."""
    from operations import OPERATIONS
    from parts import share

    assert sorted(one for part in (1, 2, 3) for one in share(range(10), part, 3)) == list(range(10))
    named = {end[end.index("[") + 1 : -1] for end in runner.PARTS if end.endswith("]")}
    assert named
    assert named <= OPERATIONS.keys()


TESTS = '''
import os, time
from pathlib import Path

HERE = Path(__file__).parent

def test_quick(record_property):
    record_property("kills", 3)

def test_a_soak(record_property):
    """Waits until it is let go, and leaves the name of its part."""
    (HERE / "waits").touch()
    while not (HERE / "go").exists():
        time.sleep(0.02)
    record_property(os.environ["LEEWARD_FAULTS_PART"], 1)

def test_wrong(record_property):
    record_property("problems", 1)
    assert False, "lost"
'''


def run_tool(root, *options):
    command = [sys.executable, root / "tools" / "faults.py", "--soak-parts", "2", *options]
    return subprocess.Popen(command, cwd=root.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_is_resumed(tmp_path, ended_by):
    """A piece that was interrupted leaves no line and no process, and those that are done run once."""
    root = tmp_path / "tree"
    for path in ("tools/faults.py", "tests/faults/source.py", "tests/faults/storm_state.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, root / path)
    (root / "src" / "leeward").mkdir(parents=True)
    (root / "tests" / "faults" / "test_toy.py").write_text(TESTS)
    with run_tool(root) as process:
        until((root / "tests" / "faults" / "waits").exists, "the second piece runs")
        process.send_signal(ended_by)
        process.communicate(timeout=PATIENCE_S)
    until(lambda: not running_in(root), "the piece has ended")
    assert [(one["piece"], one["outcome"]) for one in lines(root)] == [("test_toy.py::test_quick", "passed")]
    (root / "tests" / "faults" / "go").touch()
    with run_tool(root, "--jobs", "2") as process:
        said = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 1, said
    assert sorted((one["piece"], one["outcome"]) for one in lines(root)) == [
        ("test_toy.py::test_a_soak 1/2", "passed"),
        ("test_toy.py::test_a_soak 2/2", "passed"),
        ("test_toy.py::test_quick", "passed"),
        ("test_toy.py::test_wrong", "failed"),
    ]
    counts = {name: count for one in lines(root) for name, count in one["counts"].items()}
    assert counts == {"kills": 3, "1/2": 1, "2/2": 1, "problems": 1}
    assert "failed: test_toy.py::test_wrong" in said


def lines(root):
    return [json.loads(line) for line in (root / "fault-runs" / "runs.jsonl").read_text().splitlines()]


def running_in(root):
    """Return the processes that work in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                place = os.readlink(entry / "cwd")
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if place == str(root):
                found.append(int(entry.name))
    return found
