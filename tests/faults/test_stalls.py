"""Stopped workers are found and replaced, and a slow disk ends no worker.

The tests use real processes: stopped by a signal, in C code that holds the GIL, or waiting for a disk. Where a limit is
the subject, the test says which worker is late, or moves the clock of the coordinator.
"""

import os
import signal
import sys

import pytest
from stalls import (
    FOR_EVER,
    mend,
    slow_disk,
    slowed,
    stalling_campaign,
    stopped_start,
    stopped_worker,
)

from leeward.store.directory.audit import read_lines
from leeward.store.directory.owner import process_start
from leeward.watch import activity, snapshot
from run_cases import (
    INLINE,
    PATIENCE_S,
    audit,
    calls,
    digests,
    kill_group,
    leap,
    leeward_here,
    set_late,
    shards,
    start,
    start_calmly,
    until,
    until_looked,
    workers_of,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: looks into /proc")
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    stalling_campaign(folder, seeds=6, execution=INLINE)
    done = leeward_here("run", "campaign.yaml", cwd=folder)
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


@slow
def test_stopped_and_spinning_workers_are_replaced(tmp_path, undisturbed, monkeypatch):
    """One worker is stopped, one lets no other thread run, a third one continues. `leeward status` shows the two."""
    monkeypatch.setattr(activity, "SHORTEST_SILENCE_S", 0.0)  # five heartbeats that do not come are enough
    stalling_campaign(
        tmp_path, seeds=6, orders={0: "named stop", 1: "named spin"}, execution={"workers": 3, "timeout_s": 2}
    )
    process = start_calmly(tmp_path)
    try:
        until(lambda: len(shards(tmp_path / "layouts.run")) == 4, "the others are done")
        found = until(lambda: both_hung(tmp_path), "both look hung")
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


def both_hung(folder):
    """Return the process ids of the two workers by task, once both look hung.

    The third one may be late with a heartbeat, and looks hung for a moment.
    """
    seen = {task: pid for task, pid in hung(folder).items() if task in ("farm0_t0_s0", "farm0_t0_s1")}
    return seen if len(seen) == 2 else None


def status_of_two_hung(folder):
    """Return the text of `leeward status`, once it calls exactly two workers hung."""
    shown = leeward_here("status", "layouts.run", cwd=folder).stdout
    return shown.count("LOOKS HUNG") == 2 and shown


@slow
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


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "limits"), [pytest.param(2, {}, marks=slow), (1, {"START_LIMIT_S": 2.0})])
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


@slow
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
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 2)


@slow
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
        leap(tmp_path, 1500.0)  # this time passes for the coordinator while it is stopped
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


@slow
def test_a_run_that_was_suspended_as_a_whole(tmp_path, undisturbed):
    """A batch system may do that, for longer than the time limit of a task."""
    execution = {"workers": 2, "timeout_s": 1000}
    stalling_campaign(tmp_path, seeds=4, orders={"all": "until=told"}, execution=execution)
    process = start_calmly(tmp_path, is_strict=True)
    try:
        until(lambda: len(calls(tmp_path)) == 2, "two are computed")
        everybody = [process.pid, *workers_of(process)]
        for pid in everybody:
            os.kill(pid, signal.SIGSTOP)
        leap(tmp_path, 1500.0)
        for pid in everybody:
            os.kill(pid, signal.SIGCONT)
        until_looked(tmp_path)
        (tmp_path / "told").touch()
        code, said = ended(process, tmp_path)
        assert code == 0, said
    finally:
        kill_group(process)
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 4)
    assert retries(tmp_path) == []


# --- a slow disk -----------------------------------------------------------------------------------------------------


# A leap of the clock then counts as time that passes for the workers, and not as a standstill of the coordinator.
NO_STANDSTILL = {"STANDSTILL_S": 1e9, "STORE_LIMIT_S": 1e9}


@slow
@pytest.mark.parametrize("call", ["fsync", "write"])
def test_storing_may_take_longer_than_the_time_out(tmp_path, undisturbed, call):
    """The time limit is for computing. No worker is killed, and nothing is computed twice."""
    stalling_campaign(tmp_path, seeds=2, execution={"workers": 2, "timeout_s": 1000, "retries": 0})
    environment = slow_disk(tmp_path, "/results", FOR_EVER, call=call)
    process = start_calmly(tmp_path, environment=environment, is_strict=True, **NO_STANDSTILL)
    try:
        until(lambda: len(slowed(tmp_path)) == 2, "both store")
        until_looked(tmp_path)
        leap(tmp_path, 1500.0)
        until_looked(tmp_path)
        mend(tmp_path)
        code, said = ended(process, tmp_path)
    finally:
        kill_group(process)
    assert code == 0, said
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 2)
    assert sorted(calls(tmp_path)) == [0, 1]


@slow
def test_a_slow_disk_under_the_coordinator(tmp_path, undisturbed):
    """Every durable write of the coordinator takes longer than the time limit of a task."""
    execution = {"workers": 2, "timeout_s": 1000, "retries": 1}
    stalling_campaign(tmp_path, seeds=3, orders={0: "die=once"}, execution=execution)
    environment = slow_disk(tmp_path, "/layouts", 1500.0, who="coordinator", leaps=True)
    process = start_calmly(tmp_path, environment=environment, is_strict=True)
    try:
        code, said = ended(process, tmp_path)
    finally:
        kill_group(process)
    assert code == 0, said
    assert len(slowed(tmp_path)) > 5
    assert digests(tmp_path / "layouts.h5") == first_of(undisturbed, 3)
    assert sorted(calls(tmp_path)) == [0, 0, 1, 2]
    assert retries(tmp_path) == ["died"]


@slow
@pytest.mark.parametrize(
    ("where", "computed"),
    [
        pytest.param(r"/results/../\.farm0_t0_s0\.h5\.\w+\.tmp$", [0, 0, 1], id="before it is stored"),
        pytest.param(r"/results/..$", [0, 1], id="after it is stored"),
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
    stalling_campaign(tmp_path, seeds=1, execution={"workers": 1, "timeout_s": 1000, "retries": 0})
    environment = slow_disk(tmp_path, "/failures", FOR_EVER)
    process = start_calmly(tmp_path, environment=environment, is_strict=True, **NO_STANDSTILL)
    try:
        until(lambda: slowed(tmp_path), "an attempt is to be recorded")
        until_looked(tmp_path)
        leap(tmp_path, 1500.0)
        until_looked(tmp_path)
        assert calls(tmp_path) == []
        mend(tmp_path)
        code, said = ended(process, tmp_path)
    finally:
        kill_group(process)
    assert code == 0, said
    assert calls(tmp_path) == [0]


@slow
def test_a_disk_that_hangs_for_every_result_is_given_up(tmp_path):
    """The run ends after the time that --storage-wait says."""
    stalling_campaign(tmp_path, seeds=2, execution={"workers": 1, "timeout_s": 600})
    environment = slow_disk(tmp_path, r"s1\.h5\.\w+\.tmp$", FOR_EVER)
    process = start_calmly(tmp_path, "--storage-wait", 3, environment=environment, STORE_LIMIT_S=2.0)
    try:
        until(lambda: set_late(tmp_path, slowed(tmp_path)) or process.poll() is not None, "it ends")
        code, said = ended(process, tmp_path)
    finally:
        kill_group(process)
    assert code == 4, said
    assert shards(tmp_path / "layouts.run") == ["farm0_t0_s0"]
