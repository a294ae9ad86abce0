"""A campaign under random kills: no result is lost, none is computed again, and all are what they would have been.

A short storm is in `make test-all`. LEEWARD_FAULTS=long asks for the long one. LEEWARD_FAULTS_SEED, as a storm prints
it, gives the same choices once more; when exactly they take effect is up to the machine. tests/test_run.py has single
kills for `make test`.
"""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import storm_state
from source import digest_of
from steps import quick_folder
from storm import UNFINISHED, new_storm
from storm_state import State, StateError, resumed

from run_cases import PATIENCE_S, calls, until

IS_LONG = os.environ.get("LEEWARD_FAULTS") == "long"
LIMIT_S = 6 * 3600.0 if IS_LONG else 3600.0  # without any progress
PLAN = (16, 8, 3, 1)

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: looks into /proc")


@pytest.mark.slow
@needs_linux
def test_a_storm_of_kills():
    tasks, workers, coordinators = (900, 1000, 200) if IS_LONG else PLAN[:3]
    seed = int(os.environ.get("LEEWARD_FAULTS_SEED") or random.SystemRandom().randrange(10**6))
    print(f"\nseed {seed}")
    with quick_folder() as folder:
        storm = new_storm(folder, (tasks, workers, coordinators, seed), is_told=IS_LONG)
        is_complete = storm.rage(LIMIT_S)
        print(storm)
    assert not storm.state.problems, "\n".join([f"seed {seed}:", *storm.state.problems])
    assert is_complete
    assert storm.state.worker_kills >= workers
    assert storm.state.coordinator_kills >= coordinators


# --- a storm that is interrupted itself ------------------------------------------------------------------------------


def kills_in(folder):
    path = folder / storm_state.NAME
    return storm_state.read(path).worker_kills if path.exists() else 0


def started(folder, *options):
    script = Path(__file__).with_name("storm.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, script, *map(str, PLAN), "--folder", folder, *options]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@needs_linux
def test_a_storm_is_resumed_however_it_was_ended():
    """By SIGKILL, by SIGTERM and by its own time limit. No kill is forgotten, and no problem is made up."""
    with quick_folder() as folder:
        for ended_by, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, UNFINISHED)):
            before = kills_in(folder)
            with started(folder) as process:
                until(lambda: kills_in(folder) > before, "a worker is killed")  # noqa: B023
                process.send_signal(ended_by)
                assert process.wait(PATIENCE_S) == code
        with started(folder, "--minutes", "0") as process:
            assert process.wait(PATIENCE_S) == UNFINISHED
        with started(folder) as process:
            said = process.communicate(timeout=PATIENCE_S)[0]
            assert process.returncode == 0, said
        state = storm_state.read(folder / storm_state.NAME)
        assert state.computations == len(calls(folder / "wild"))
    assert (state.starts, state.interrupted, state.problems, state.is_compared) == (4, 3, [], True), said
    assert state.stored == set(range(PLAN[0]))
    assert state.worker_kills >= PLAN[1]
    assert state.coordinator_kills >= PLAN[2]


def test_a_computation_that_nobody_saw_is_judged_by_its_time(tmp_path):
    """Both calls of a seed are read after its result is there: the second one may have been before, or after."""
    for second, is_problem in ((50, False), (150, True)):
        state = State(PLAN, "source", "commit")
        state.hear_calls([(3, 10), (3, second)])
        state.write(tmp_path)
        state = resumed(tmp_path, PLAN, "source", "commit")
        state.hear_stored(3, 100)
        assert bool(state.problems) == is_problem
        state.write(tmp_path)
        state = resumed(tmp_path, PLAN, "source", "commit")
        assert (state.stored, state.computations, state.begun) == ({3}, 2, {})
        state.hear_calls([(3, 200)])
        assert len(state.problems) == 1 + is_problem


def test_a_storm_goes_on_with_its_own_plan_and_source_only(tmp_path):
    State(PLAN, "source", "commit").write(tmp_path)
    with pytest.raises(StateError, match=r"began with another source, of commit commit.*another folder"):
        resumed(tmp_path, PLAN, "other", "commit")
    with pytest.raises(StateError, match=r"began with \(16, 8, 3, 1\), not \(17, 8, 3, 1\)"):
        resumed(tmp_path, (17, 8, 3, 1), "source", "commit")


def test_one_storm_at_a_time_in_a_folder(tmp_path):
    with storm_state.held(tmp_path), pytest.raises(StateError, match="another run goes on here"):
        storm_state.held(tmp_path)
    storm_state.held(tmp_path).close()


def test_the_digest_of_a_source_ignores_byte_code(tmp_path):
    package = tmp_path / "package"
    (package / "__pycache__").mkdir(parents=True)
    (package / "one.py").write_text("1")
    before = digest_of(package)
    (package / "__pycache__" / "one.pyc").write_text("compiled")
    assert digest_of(package) == before
    (package / "one.py").rename(package / "two.py")
    assert digest_of(package) != before
