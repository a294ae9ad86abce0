"""Workers that stand still are found and replaced; a disk that takes long is no reason to kill anybody.

Real processes: stopped by a signal, caught in C code that keeps the interpreter for itself, or waiting for a disk.
"""

import os
import signal
import sys
import time

import pytest
from stalls import (
    FOR_EVER,
    mend,
    set_late,
    slow_disk,
    slowed,
    stalling_campaign,
    start_calmly,
    stopped_start,
    stopped_worker,
)

from leeward.store.audit import read_lines
from leeward.store.lock import process_start
from leeward.watch import activity, snapshot
from run_cases import (
    PATIENCE_S,
    audit,
    calls,
    digests,
    kill_group,
    leeward,
    leeward_here,
    shards,
    start,
    until,
    workers_of,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
long = pytest.mark.skipif(os.environ.get("LEEWARD_FAULTS") != "long", reason="only with LEEWARD_FAULTS=long")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    stalling_campaign(folder, seeds=6, execution={"engine": "inline"})
    done = leeward("run", "campaign.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    return digests(folder / "layouts.h5")


def first_of(undisturbed, count):
    return {f"farm0_t0_s{seed}": undisturbed[f"farm0_t0_s{seed}"] for seed in range(count)}


def retries(folder):
    return [line["kind"] for line in audit(folder / "layouts.run") if line["event"] == "retry"]


def hung(folder):
    return {worker.task: worker.pid for worker in snapshot(folder / "layouts.run").workers if worker.looks_hung}


def ended(process, folder, seconds=PATIENCE_S):
    """With which code; and what it said, for the message of an assertion."""
    return process.wait(seconds), (folder / "output.txt").read_text()


def births(pids):
    """By which a process is known when another one has its number."""
    return {pid: process_start(pid) for pid in pids}


def are_gone(born):
    return all(process_start(pid) != birth for pid, birth in born.items())


def test_stopped_and_spinning_workers_are_replaced(tmp_path, undisturbed, monkeypatch):
    """One was stopped, one lets no other thread run, a third goes on; whoever asks meanwhile is told."""
    monkeypatch.setattr(activity, "SHORTEST_SILENCE_S", 0.0)  # five heartbeats that do not come are enough
    stalling_campaign(
        tmp_path, seeds=6, orders={0: "named stop", 1: "named spin"}, execution={"workers": 3, "timeout_s": 2}
    )
    process = start_calmly(tmp_path)
    try:
        until(lambda: len(shards(tmp_path / "layouts.run")) == 4, "the others are done")
        found = until(lambda: len(seen := hung(tmp_path)) == 2 and seen, "both look hung")
        assert found.keys() == {"farm0_t0_s0", "farm0_t0_s1"}
        shown = until(lambda: status_of_two_hung(tmp_path), "status says of two that they look hung")
        assert "farm0_t0_s0" in shown
        stalled = births(found.values())
        set_late(tmp_path, found.values())
        assert ended(process, tmp_path)[0] == 0
    finally:
        kill_group(process)
    assert digests(tmp_path / "layouts.h5") == undisturbed
    assert sorted(calls(tmp_path)) == [0, 0, 1, 1, 2, 3, 4, 5]
    assert retries(tmp_path) == ["timed-out", "timed-out"]
    assert are_gone(stalled)


def status_of_two_hung(folder):
    """A third one may be late with a sign of life, and looks so for a moment."""
    shown = leeward_here("status", "layouts.run", cwd=folder).stdout
    return shown.count("LOOKS HUNG") == 2 and shown


def test_a_worker_stopped_between_two_tasks(tmp_path, undisturbed):
    """It has none when it is stopped; then it is given one."""
    orders = {0: "until=first", 1: "until=second"}
    stalling_campaign(tmp_path, seeds=2, orders=orders, execution={"workers": 2, "timeout_s": 2})
    process = start_calmly(tmp_path)
    try:
        until(lambda: sorted(calls(tmp_path)) == [0, 1], "each has a task")
        (tmp_path / "first").touch()
        until(lambda: read_lines(tmp_path / "layouts.run" / "index.jsonl"), "one of them is known to have done it")
        lines = (tmp_path / "calls.txt").read_text().splitlines()
        idle, busy = (int(pid) for _, pid in sorted(line.split() for line in lines))
        stopped = births([idle])
        os.kill(idle, signal.SIGSTOP)
        set_late(tmp_path, [idle])
        os.kill(busy, signal.SIGKILL)
        (tmp_path / "second").touch()
        code, said = ended(process, tmp_path)
        assert code == 0, said
    finally:
        kill_group(process)
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 2)
    assert retries(tmp_path) == ["died", "timed-out"]
    assert sorted(calls(tmp_path)) == [0, 1, 1]
    assert are_gone(stopped)


@pytest.mark.parametrize(("workers", "limits"), [(2, {}), pytest.param(1, {"START_LIMIT_S": 15.0}, marks=long)])
def test_a_worker_stopped_while_it_starts(tmp_path, undisturbed, workers, limits):
    """Nobody waits for one of two; a single one is replaced when its time to start is over."""
    stalling_campaign(tmp_path, seeds=3, execution={"workers": workers, "timeout_s": 600})
    process = start_calmly(tmp_path, environment=stopped_start(tmp_path), **limits)
    try:
        stopped = births([until(lambda: stopped_worker(tmp_path), "a worker starts")])
        set_late(tmp_path, stopped)
        code, said = ended(process, tmp_path)
        assert code == 0, said
    finally:
        kill_group(process)
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 3)
    assert sorted(calls(tmp_path)) == [0, 1, 2]
    assert are_gone(stopped)


def test_workers_that_stand_still_end_with_their_coordinator(tmp_path, undisturbed):
    execution = {"workers": 2, "timeout_s": 600}
    stalling_campaign(tmp_path, seeds=2, orders={0: "stop", 1: "hold"}, execution=execution)
    process = start("run", "campaign.yaml", cwd=tmp_path)
    try:
        until(lambda: len(list(tmp_path.glob("did-*"))) == 2, "both stand still")
        stalled = births(workers_of(process))
    finally:
        kill_group(process)
    assert len(stalled) == 2
    until(lambda: are_gone(stalled), "they are gone")
    done = leeward("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 2)


def test_a_coordinator_that_was_stopped_blames_nobody(tmp_path, undisturbed):
    """For longer than the time-out: what its workers said meanwhile counts, and one that goes on is not late."""
    orders = {0: "until=first", 1: "until=second"}
    stalling_campaign(tmp_path, seeds=4, orders=orders, execution={"workers": 2, "timeout_s": 1000})
    process = start_calmly(tmp_path, is_strict=True)
    try:
        until(lambda: sorted(calls(tmp_path)) == [0, 1], "two are computed")
        process.send_signal(signal.SIGSTOP)
        (tmp_path / "first").touch()
        until(lambda: shards(tmp_path / "layouts.run"), "one is done")
        (tmp_path / "leap").write_text("1500")  # seconds that pass while it is stopped, for itself
        process.send_signal(signal.SIGCONT)
        until(lambda: len(shards(tmp_path / "layouts.run")) == 3, "others are done")
        (tmp_path / "second").touch()
        code, said = ended(process, tmp_path)
        assert code == 0, said
    finally:
        kill_group(process)
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 4)
    assert sorted(calls(tmp_path)) == [0, 1, 2, 3]
    assert retries(tmp_path) == []


@long
def test_a_run_that_was_suspended_as_a_whole(tmp_path, undisturbed):
    """As by a batch system, for longer than the time-out."""
    stalling_campaign(tmp_path, seeds=4, orders={"all": "wait=1"}, execution={"workers": 2, "timeout_s": 6})
    process = start("run", "campaign.yaml", cwd=tmp_path)
    try:
        until(lambda: len(calls(tmp_path)) == 2, "two are computed")
        everybody = [process.pid, *workers_of(process)]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in everybody:
                os.kill(pid, number)
            time.sleep(7.5 if number == signal.SIGSTOP else 0)
        code, said = ended(process, tmp_path)
        assert code == 0, said
    finally:
        kill_group(process)
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 4)
    assert retries(tmp_path) == []


# --- a slow disk -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", pytest.param("write", marks=long)])
def test_storing_may_take_longer_than_the_time_out(tmp_path, undisturbed, call):
    """Which is for computing. Nobody is killed, and nothing is computed twice."""
    stalling_campaign(tmp_path, seeds=2, execution={"workers": 2, "timeout_s": 1, "retries": 0})
    environment = slow_disk(tmp_path, "/results", FOR_EVER, call=call)
    process = start_calmly(tmp_path, environment=environment)
    try:
        set_late(tmp_path, until(lambda: len(pids := slowed(tmp_path)) == 2 and pids, "both store"))
        time.sleep(4)
        mend(tmp_path)
        code, said = ended(process, tmp_path)
    finally:
        kill_group(process)
    assert code == 0, said
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 2)
    assert sorted(calls(tmp_path)) == [0, 1]


@long
def test_a_slow_disk_under_the_coordinator(tmp_path, undisturbed):
    """All that it writes durably takes two seconds, also what it writes of a task whose worker died."""
    execution = {"workers": 2, "timeout_s": 8, "retries": 1}
    stalling_campaign(tmp_path, seeds=3, orders={0: "die=once", 2: "wait=2"}, execution=execution)
    environment = slow_disk(tmp_path, "/layouts", 2.0, who="coordinator")
    process = start("run", "campaign.yaml", cwd=tmp_path, env=environment)
    try:
        code, said = ended(process, tmp_path)
    finally:
        kill_group(process)
    assert code == 0, said
    assert len(slowed(tmp_path)) > 5
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 3)
    assert sorted(calls(tmp_path)) == [0, 0, 1, 2]
    assert retries(tmp_path) == ["died"]


@pytest.mark.parametrize(
    ("where", "computed"),
    [
        pytest.param(r"/results/../\.farm0_t0_s0\.h5\.\w+\.tmp$", [0, 0, 1], id="before it is stored"),
        pytest.param(
            r"/results/..$",
            [0, 1],
            id="after it is stored",
        ),
    ],
)
def test_a_disk_that_hangs_once(tmp_path, undisturbed, where, computed):
    """For ever: the worker is killed, and its task is not blamed. What had its name already counts."""
    stalling_campaign(tmp_path, seeds=2, execution={"workers": 1, "timeout_s": 600, "retries": 0})
    environment = slow_disk(tmp_path, where, FOR_EVER, times=1)
    process = start_calmly(tmp_path, environment=environment, STORE_LIMIT_S=2.0)
    try:
        set_late(tmp_path, until(lambda: slowed(tmp_path), "the disk hangs"))
        code, said = ended(process, tmp_path)
    finally:
        kill_group(process)
    assert code == 0, said
    assert len(slowed(tmp_path)) == 1
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 2)
    assert sorted(calls(tmp_path)) == computed
    assert not list((tmp_path / "layouts.run" / "failures").iterdir())


def test_a_slow_disk_before_the_computation_is_not_the_tasks_fault(tmp_path):
    stalling_campaign(tmp_path, seeds=1, execution={"workers": 1, "timeout_s": 1, "retries": 0})
    environment = slow_disk(tmp_path, "/failures", FOR_EVER)
    process = start_calmly(tmp_path, environment=environment)
    try:
        set_late(tmp_path, until(lambda: slowed(tmp_path), "an attempt is to be recorded"))
        time.sleep(4)
        assert calls(tmp_path) == []
        set_late(tmp_path, [])
        mend(tmp_path)
        code, said = ended(process, tmp_path)
    finally:
        kill_group(process)
    assert code == 0, said
    assert calls(tmp_path) == [0]


@long
def test_a_disk_that_hangs_for_every_result_is_given_up(tmp_path):
    """After the time that --storage-wait says, and not never."""
    stalling_campaign(tmp_path, seeds=2, execution={"workers": 1, "timeout_s": 60})
    environment = slow_disk(tmp_path, r"s1\.h5\.\w+\.tmp$", FOR_EVER)
    process = start_calmly(tmp_path, "--storage-wait", 3, environment=environment, is_strict=True, STORE_LIMIT_S=10.0)
    try:
        code, said = ended(process, tmp_path)
    finally:
        kill_group(process)
    assert code == 4, said
    assert shards(tmp_path / "layouts.run") == ["farm0_t0_s0"]
