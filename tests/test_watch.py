"""Snapshots of run directories and files, in every state that they may be met in."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from foreign_files import own_result, write_foreign_file, write_own_file
from leeward.campaign import Campaign, load
from leeward.cli.status import _activity, lines
from leeward.engines.heartbeat import Heartbeat
from leeward.errors import BadSourceError, InputError, LeewardError
from leeward.pages.overview import progress
from leeward.store.directory.index import (
    IndexLines,
    encode_line,
    output_index,
    whole_lines,
    write_output_index,
)
from leeward.store.directory.lock import Lock
from leeward.store.directory.quarantine import quarantine
from leeward.store.directory.records import begin_attempt, record_failure
from leeward.store.directory.shards import store_result
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.paths import RunPaths
from leeward.watch import (
    absent_tasks,
    activity,
    campaign_of,
    campaigns_of,
    find_result,
    layout_view,
    result_lines,
    snapshot,
)
from run_cases import PATIENCE_S, make_campaign, until

NOW = time.time()


def utc(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@pytest.fixture
def paths(tmp_path):
    """A run directory of two farms, one type, five seeds: nothing in it but the campaign."""
    campaign = load(make_campaign(tmp_path, seeds=5, farms=2))
    paths = RunPaths(tmp_path / "layouts.h5")
    for folder in paths.folders():
        folder.mkdir(parents=True)
    paths.campaign.write_text(campaign.frozen_text())
    return paths


def store(paths, *keys, indexed=True, **details):
    for farm, kind, seed in keys:
        result = own_result(farm, kind, seed, turbines=3, **details)
        store_result(paths, result)
        if indexed:
            with paths.index.open("ab") as file:
                file.write(encode_line(result.index_line()))


def beat(paths, task, *, pid=None, host=None, age=0.0, every_s=2.0, name="w1"):
    facts = {"worker": name, "host": host or socket.gethostname(), "pid": pid or os.getpid(), "task": task}
    facts |= {"since": utc(NOW - 100), "state": "computing", "step": 7, "phase": "refine", "best_aep_gwh": 101.5}
    path = paths.workers / f"{name}.json"
    path.write_text(json.dumps({**facts, "time": NOW - age, "every_s": every_s}))
    os.utime(path, (NOW - age, NOW - age))


def dead_process():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def fail(paths, key, *, final=True, message="ValueError: no layout today"):
    begin_attempt(paths, key, "f" * 64, "w9", "node")
    facts = {"kind": "exception", "message": message, "traceback": "Traceback ...", "worker": "w9", "host": "node"}
    record_failure(paths, key, final=final, died=False, seconds=3.0, **facts)


def test_nothing_yet(paths):
    seen = snapshot(paths.root, now=NOW)
    assert (seen.expected, seen.done, seen.missing, seen.failed, seen.running) == (10, 0, 10, 0, 0)
    assert (seen.seeds, dict(seen.farms), len(seen.cells)) == (5, {0: "square 0", 1: "square 1"}, 2)
    assert not seen.is_running
    assert not seen.is_complete
    assert seen.owner is None
    assert seen.rate_per_hour is None
    assert not seen.output_exists


def test_counts_by_farm_and_type(paths):
    store(paths, (0, 0, 0), (0, 0, 1), (0, 0, 2), (1, 0, 4))
    seen = snapshot(paths.root, now=NOW)
    assert (seen.done, seen.missing) == (4, 6)
    first, second = seen.cells
    assert (first.done, first.expected, first.best_key) == (3, 5, "farm0_t0_s2")
    assert first.best_aep_gwh == pytest.approx(100.002)
    assert first.median_aep_gwh == pytest.approx(100.001)
    assert (second.done, second.best_key) == (1, "farm1_t0_s4")
    beside = snapshot(paths.output, now=NOW)  # which is not there yet
    assert replace(beside, path=seen.path) == seen


def test_only_some_seeds(paths):
    store(paths, (0, 0, 0), (0, 0, 1), (1, 0, 1))
    seen = snapshot(paths.root, now=NOW, seeds=[1])
    assert (seen.expected, seen.done, seen.missing) == (2, 2, 0)
    with pytest.raises(InputError, match="seeds are 0 to 4"):
        snapshot(paths.root, seeds=[77])


def test_shards_count_whatever_the_index_says(paths):
    store(paths, (0, 0, 0), (0, 0, 1))
    store(paths, (0, 0, 2), indexed=False)
    paths.shard(Key(0, 0, 1)).unlink()
    seen = snapshot(paths.root, now=NOW)
    assert seen.done == 2
    assert seen.cells[0].best_key == "farm0_t0_s0"
    assert [line["key"] for line in result_lines(paths.root)] == ["farm0_t0_s0", "farm0_t0_s2"]
    assert result_lines(paths.root)[1] == {"key": "farm0_t0_s2"}


def test_torn_and_odd_lines(paths):
    store(paths, (0, 0, 0), (0, 0, 1))
    whole = paths.index.read_bytes()
    no_aep = b'{"aep": null, "key": "farm0_t0_s2"}\n'
    paths.index.write_bytes(whole[:50] + b"\n" + whole + b"[1]\n" + no_aep + whole[:70])
    store(paths, (0, 0, 2), indexed=False)
    seen = snapshot(paths.root, now=NOW)
    assert seen.done == 3
    assert seen.unreadable_lines == 2  # the last line may be in the making
    assert seen.cells[0].best_key == "farm0_t0_s1"
    assert [len(line) > 1 for line in result_lines(paths.root)] == [True, True, True]


def test_files_that_are_none(paths):
    store(paths, (0, 0, 0))
    (paths.shard(Key(0, 0, 0)).parent / "farm00_t0_s1.h5").touch()
    (paths.shard(Key(0, 0, 0)).parent / ".farm0_t0_s1.h5.abcd.tmp").touch()
    (paths.results / "stray").touch()
    quarantine(paths, paths.shard(Key(0, 0, 0)), Verdict.BAD_SEAL, "a test")
    seen = snapshot(paths.root, now=NOW)
    assert (seen.done, seen.quarantined) == (0, 1)
    assert "1 file(s)" in seen.notes[0]


def test_results_beyond_a_shrunk_campaign(paths):
    store(paths, (0, 0, 0), (0, 0, 9), (7, 0, 0))
    seen = snapshot(paths.root, now=NOW)
    assert (seen.done, seen.beyond, seen.missing) == (1, 2, 9)


def test_failures(paths):
    store(paths, (0, 0, 0))
    fail(paths, Key(0, 0, 0))  # a stored result outranks it
    fail(paths, Key(0, 0, 1))
    fail(paths, Key(0, 0, 2), final=False)
    begin_attempt(paths, Key(0, 0, 3), "f" * 64, "w", "node")
    for number in range(12):
        begin_attempt(paths, Key(0, 0, 4), "f" * 64, f"w{number}", "node")
    paths.failure(Key(1, 0, 0)).write_text("{")
    seen = snapshot(paths.root, now=NOW)
    assert [(failed.key, failed.kind, failed.final) for failed in seen.failures] == [
        ("farm0_t0_s1", "exception", True),
        ("farm0_t0_s2", "exception", False),
        ("farm0_t0_s4", "cut-off", True),
    ]
    assert seen.failures[0].message == "ValueError: no layout today"
    assert seen.failures[0].traceback.startswith("Traceback")
    assert seen.failures[0].attempts == 1
    assert (seen.failed, seen.cells[0].failed) == (2, 2)
    assert any("cannot be read" in note for note in seen.notes)


def test_workers(paths):
    lock = Lock.take(paths.lock)
    try:
        os.utime(paths.lock, (NOW, NOW))
        beat(paths, "farm0_t0_s1", name="fresh")
        beat(paths, "farm0_t0_s2", name="hung", age=16.0)
        beat(paths, "farm0_t0_s3", name="slow", age=16.0, every_s=10.0)
        beat(paths, "farm0_t0_s4", name="dead", pid=dead_process())
        beat(paths, None, name="idle", host="another-host", pid=1)
        (paths.workers / "torn.json").write_text('{"worker":')
        seen = snapshot(paths.root, now=NOW)
    finally:
        lock.release()
    workers = {worker.name: worker for worker in seen.workers}
    assert set(workers) == {"fresh", "hung", "slow", "idle"}
    assert [name for name, worker in workers.items() if worker.looks_hung] == ["hung"]
    assert workers["hung"].age_s == pytest.approx(16.0)
    fresh = workers["fresh"]
    assert (fresh.task, fresh.step, fresh.phase, fresh.best_aep_gwh) == ("farm0_t0_s1", 7, "refine", 101.5)
    assert fresh.task_s == pytest.approx(100, abs=1.5)
    assert seen.running == 3
    assert seen.owner.state == "alive"
    assert seen.owner.pid == os.getpid()
    assert seen.is_running


def test_left_over_heartbeats_without_an_owner(paths):
    beat(paths, "farm0_t0_s2", name="hung", age=1000.0, host="another-host")
    seen = snapshot(paths.root, now=NOW)
    assert seen.workers == ()
    assert not seen.is_running


def left_lock(paths, counter=0, **changes):
    """A lock whose owner counts no more."""
    paths.lock.unlink(missing_ok=True)
    lock = Lock.take(paths.lock)
    text = paths.lock.read_text()
    lock.release()
    owner = {**json.loads(text.partition("\n")[0]), **changes}
    paths.lock.write_text(f"{json.dumps(owner)}\ncounter {counter:020d}\n")


@pytest.mark.parametrize("is_dead", [False, True])
@pytest.mark.parametrize("jump_s", [-1e6, 0.0, 1e6])
def test_an_owner_on_this_machine_is_judged_by_its_process(paths, is_dead, jump_s):
    """Whatever the clock says, and whenever the lock was written by it."""
    left_lock(paths, **({"pid": dead_process()} if is_dead else {}))
    os.utime(paths.lock, (NOW, NOW))
    seen = snapshot(paths.root, now=NOW + jump_s)
    assert seen.owner.state == ("dead" if is_dead else "alive")
    assert seen.is_running is not is_dead


def test_an_owner_elsewhere_is_judged_by_its_counter(paths, monkeypatch):
    lock = Lock.take(paths.lock)
    try:
        monkeypatch.setattr(socket, "gethostname", lambda: "another-host")
        monkeypatch.setattr(activity, "WATCH_S", PATIENCE_S)  # only a guard: it ends when the counter moves
        seen = snapshot(paths.root, now=NOW + 1e9)
    finally:
        lock.release()
    assert seen.owner.state == "alive"
    assert seen.is_running


def test_an_owner_elsewhere_whose_counter_stands_still_is_not_known(paths, monkeypatch):
    monkeypatch.setattr(activity, "WATCH_S", 0.2)
    left_lock(paths, host="another-host", token="still")
    seen = snapshot(paths.root, now=time.time())
    assert seen.owner.state == "unknown"
    assert "it may be running, but its heartbeat has not advanced for" in seen.activity
    assert not seen.is_running
    left_lock(paths, counter=1, host="another-host", token="still")
    assert snapshot(paths.root, now=NOW).owner.state == "alive"  # the next look compares with the last
    monkeypatch.setattr(activity, "INTERVALS", 0)
    assert snapshot(paths.root, now=NOW).owner.state == "unknown"  # silent again, for too long


def test_an_unreadable_lock(paths):
    paths.lock.write_text("{")
    seen = snapshot(paths.root, now=NOW)
    assert seen.owner.state == "unknown"
    assert "on an unknown host, since an unknown time; it may be running: its lock cannot be read" in seen.activity


def test_a_heartbeat_of_this_machine_is_judged_by_a_clock_that_never_jumps(paths):
    heart = Heartbeat(paths.workers / "host-1-0123abcd.json", "w")
    try:
        until(lambda: list(paths.workers.glob("*.json")), "it has beaten")
        (worker,) = snapshot(paths.root, now=time.time() + 1e6).workers
        assert not worker.looks_hung
    finally:
        heart.stop()


def test_rate_and_time_left(paths):
    for seed in range(4):
        store(paths, (0, 0, seed), created=utc(NOW - 5000 + 60 * seed))
    at_rest = snapshot(paths.root, now=NOW)
    assert at_rest.rate_per_hour == pytest.approx(60.0)
    assert at_rest.seconds_left is None
    lock = Lock.take(paths.lock)
    began = datetime.fromisoformat(lock.owner.since).timestamp()  # of this run, however slow the machine is
    try:
        os.utime(paths.lock, (began + 10, began + 10))
        fresh = snapshot(paths.root, now=began + 10)
        assert fresh.rate_per_hour is None  # of this run there is none yet
        assert "time left not known yet" in _activity(fresh)
        assert "<dt>time left</dt><dd>not known yet</dd>" in progress(fresh)
        for seed in range(2):
            store(paths, (1, 0, seed), created=utc(began + 2))
        running = snapshot(paths.root, now=began + 10)
    finally:
        lock.release()
    assert running.rate_per_hour == pytest.approx(3600 * 2 / 10)
    assert running.seconds_left == pytest.approx(4 / running.rate_per_hour * 3600)


@pytest.mark.parametrize("failed", [0, 1])
def test_a_finished_run_has_no_rate(paths, failed):
    """Neither at rest nor while its owner merges, also where a task failed for good."""
    keys = [Key(farm, 0, seed) for farm in range(2) for seed in range(5)]
    for place, key in enumerate(keys[failed:]):
        store(paths, key, created=utc(NOW - 5000 + 60 * place))
    for key in keys[:failed]:
        fail(paths, key)
    lock = Lock.take(paths.lock)
    store(paths, keys[-1], created=utc(time.time() + 1))  # by this owner, again
    try:
        merging = snapshot(paths.root, now=time.time() + 10)
    finally:
        lock.release()
    for seen in (merging, snapshot(paths.root, now=NOW)):
        assert (seen.done, seen.missing) == (10 - failed, failed)
        assert (seen.rate_per_hour, seen.seconds_left) == (None, None)
        assert "hour" not in "\n".join(lines(seen))
        assert "rate" not in str(progress(seen))


def merged_file(paths, *keys, indexed=True):
    results = [own_result(*key, turbines=3) for key in keys]
    write_own_file(paths.output, results, campaign=paths.campaign.read_text())
    if indexed:
        lines = IndexLines()
        for result in results:
            lines.add(result.index_line())
        write_output_index(paths.output, lines)


@pytest.mark.parametrize("indexed", [True, False])
def test_results_that_only_the_output_has(paths, indexed):
    merged_file(paths, (0, 0, 0), (0, 0, 1), indexed=indexed)
    store(paths, (1, 0, 0))
    seen = snapshot(paths.root, now=NOW)
    assert (seen.done, seen.output_exists, seen.output_results) == (3, True, 2)
    assert seen.cells[0].best_key == "farm0_t0_s1"
    assert len(result_lines(paths.root)) == 3


@pytest.mark.parametrize("indexed", [True, False])
def test_lone_file(paths, indexed, tmp_path):
    merged_file(paths, (0, 0, 0), (1, 0, 1), indexed=indexed)
    paths.root.rename(tmp_path / "elsewhere")
    seen = snapshot(paths.output, now=NOW)
    assert (seen.run, seen.done, seen.expected, seen.missing) == (None, 2, 10, 8)
    assert seen.campaign == "campaign"
    assert [line["key"] for line in result_lines(paths.output)] == ["farm0_t0_s0", "farm1_t0_s1"]


def test_an_index_of_another_file_is_not_believed(paths, tmp_path):
    merged_file(paths, (0, 0, 0), (1, 0, 1))
    paths.root.rename(tmp_path / "elsewhere")
    write_own_file(paths.output, [own_result(0, 0, 3)])
    seen = snapshot(paths.output, now=NOW)
    assert (seen.done, seen.expected, seen.missing) == (1, None, None)


def test_an_output_behind_a_link_has_its_index_there(paths, tmp_path):
    merged_file(paths, (0, 0, 0))
    link = tmp_path / "elsewhere" / "link.h5"
    link.parent.mkdir()
    link.symlink_to(paths.output)
    assert output_index(link) is not None
    assert result_lines(link) == list(whole_lines(output_index(paths.output)))


def test_other_scripts_file(tmp_path):
    file = write_foreign_file(tmp_path / "worker_1.h5", [(0, 0, 0), (2, 1, 5)])
    seen = snapshot(file)
    assert (seen.done, seen.expected, dict(seen.farms)) == (2, None, {0: "", 2: ""})


def test_what_is_no_run(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        snapshot(tmp_path / "layouts.run")
    with pytest.raises(InputError, match="not a run directory"):
        snapshot(tmp_path)
    (tmp_path / "layouts.h5").touch()
    with pytest.raises(BadSourceError, match="empty"):
        snapshot(tmp_path / "layouts.h5")


def test_damaged_campaign_does_not_stand_in_the_way(paths):
    paths.campaign.write_text("farms: [")
    store(paths, (0, 0, 0))
    seen = snapshot(paths.root, now=NOW)
    assert (seen.done, seen.expected) == (1, None)
    assert "not known" in seen.notes[0]


def test_as_data_is_json(paths):
    store(paths, (0, 0, 0))
    fail(paths, Key(0, 0, 1))
    data = json.loads(json.dumps(snapshot(paths.root, now=NOW).as_data()))
    assert data["cells"][0]["best_key"] == "farm0_t0_s0"
    assert data["failures"][0]["key"] == "farm0_t0_s1"
    assert data["is_complete"] is False


def test_a_snapshot_is_quick_to_import(paths):
    code = (
        "import sys; from pathlib import Path; from leeward.watch import snapshot; snapshot(Path(sys.argv[1])); "
        "print([name for name in ('numba', 'shapely', 'xarray', 'matplotlib', 'h5py') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(paths.root)], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_nothing_is_written(paths):
    store(paths, (0, 0, 0))
    merged_file(paths, (0, 0, 1))
    before = sorted((path, path.stat().st_mtime_ns) for path in paths.root.parent.rglob("*") if path.is_file())
    snapshot(paths.root)
    result_lines(paths.root)
    absent_tasks(paths.root)
    assert before == sorted((path, path.stat().st_mtime_ns) for path in paths.root.parent.rglob("*") if path.is_file())


def test_absent_tasks(paths):
    store(paths, *((0, 0, seed) for seed in range(5)), (1, 0, 0), (1, 0, 1))
    fail(paths, Key(1, 0, 2), message="ValueError: why")
    beat(paths, "farm1_t0_s3", name="busy")
    absence = absent_tasks(paths.root, now=NOW)
    assert absence.expected == 10
    assert [(str(task.key), task.reason, task.failed) for task in absence.tasks] == [
        ("farm1_t0_s2", "failed: ValueError: why", True),
        ("farm1_t0_s3", "running on busy", False),
        ("farm1_t0_s4", "no result", False),
    ]


def test_absent_of_other_scripts(paths, tmp_path):
    folder = tmp_path / "temp"
    folder.mkdir()
    write_foreign_file(folder / "worker_1.h5", [(0, 0, 0), (1, 0, 4)])
    (folder / "worker_2.h5").touch()
    with pytest.raises(InputError, match="--campaign"):
        absent_tasks(folder)
    absence = absent_tasks(folder, load(tmp_path / "campaign.yaml"))
    assert len(absence.tasks) == 8


def test_campaigns(paths, tmp_path):
    merged_file(paths, (0, 0, 0))
    assert isinstance(campaign_of(paths.root), Campaign)
    assert len(campaigns_of([paths.root, paths.output])[0]) == 1
    foreign = write_foreign_file(tmp_path / "worker_1.h5", [(0, 0, 0)])
    assert campaign_of(foreign) is None
    lone = tmp_path / "copy.h5"
    lone.write_bytes(paths.output.read_bytes())
    assert campaign_of(lone).n_tasks == 10
    assert len(campaigns_of([paths.root, lone, foreign])[0]) == 1
    paths.campaign.write_bytes(b"\xff\xff")
    found, problems = campaigns_of([paths.root, lone])
    assert (len(found), len(problems)) == (1, 1)


@pytest.mark.slow
def test_find_result(paths, tmp_path):
    store(paths, (0, 0, 0))
    merged_file(paths, (1, 0, 0))
    assert find_result(paths.root, Key(0, 0, 0)).file == paths.shard(Key(0, 0, 0))
    assert find_result(paths.root, Key(1, 0, 0)).file == paths.output
    assert find_result(paths.output, Key(0, 0, 0)).result.key == Key(0, 0, 0)
    with pytest.raises(LeewardError, match="farm0_t0_s3 is missing"):
        find_result(paths.root, Key(0, 0, 3))
    paths.shard(Key(0, 0, 0)).write_bytes(b"")
    with pytest.raises(LeewardError, match="damaged"):
        find_result(paths.root, Key(0, 0, 0))
    foreign = write_foreign_file(tmp_path / "worker_1.h5", [(0, 0, 7)], folder="optimized_layouts")
    assert find_result(foreign, Key(0, 0, 7)).result.key == Key(0, 0, 7)
    with pytest.raises(LeewardError, match="no result farm0_t0_s8"):
        find_result(foreign, Key(0, 0, 8))


def test_neighbours_are_known_before_wake_losses_are():
    """A picture that waits for its colours does not change its frame when they come."""
    campaign = load(Path(__file__).parents[1] / "examples/own-farm/campaign.yaml")
    early, late = (layout_view(campaign, own_result(turbines=10), with_losses=losses) for losses in (False, True))
    assert early.neighbours.shape == (2, 5)
    np.testing.assert_array_equal(early.neighbours, late.neighbours)
