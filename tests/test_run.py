"""Campaigns end to end: real processes, real files, real kills.

Tests that are not about worker processes compute within this process. `make test` has one test of each kind of fault;
the others are slow.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import leeward as package
from cluster_cases import called
from foreign_files import write_foreign_file
from leeward.errors import StorageError
from leeward.store.directory import lock as locks
from leeward.store.directory.records import read_record
from run_cases import (
    INLINE,
    PATIENCE_S,
    audit,
    calls,
    digests,
    is_stopped,
    kill_group,
    leeward,
    leeward_here,
    make_campaign,
    results,
    set_late,
    shards,
    start,
    start_calmly,
    until,
    workers_of,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: looks into /proc")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the digests of six tasks that are computed one after the other within this process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    make_campaign(folder, seeds=6, execution=INLINE)
    done = leeward_here("run", "campaign.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    return digests(folder / "layouts.h5")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished campaign of three tasks; tests work on copies of it."""
    folder = tmp_path_factory.mktemp("finished")
    make_campaign(folder, seeds=3, execution=INLINE)
    assert leeward_here("run", "campaign.yaml", cwd=folder).returncode == 0
    return folder


def test_a_run_and_the_same_command_again(tmp_path, undisturbed):
    make_campaign(tmp_path, seeds=6)
    first = leeward_here("run", "campaign.yaml", "--workers", 2, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "6 of 6 layouts done, 6 computed now" in first.stdout
    assert digests(tmp_path / "layouts.h5") == undisturbed
    assert sorted(calls(tmp_path)) == list(range(6))
    result = results(tmp_path / "layouts.h5")["farm0_t0_s3"]
    assert result.details["host"]
    assert result.details["reproducible"] is True
    assert "numba" in result.details["versions"]
    second = leeward_here("run", "campaign.yaml", "--json", cwd=tmp_path)
    assert second.returncode == 0
    events = [json.loads(line) for line in second.stdout.splitlines()]
    assert {"checking", "checked", "began", "merging", "merged", "summary"} <= {event["event"] for event in events}
    assert events[-1]["computed"] == 0
    assert len(calls(tmp_path)) == 6
    assert not list((tmp_path / "layouts.run" / "failures").iterdir())
    assert not list((tmp_path / "layouts.run" / "workers").glob("*.json"))  # killed writers leave .tmp


def test_a_task_that_kills_its_workers_is_given_up_and_the_others_are_computed(tmp_path, undisturbed):
    make_campaign(tmp_path, seeds=3, orders={1: "die"}, execution={"workers": 1, "timeout_s": 600, "retries": 1})
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    good = ["farm0_t0_s0", "farm0_t0_s2"]
    assert digests(tmp_path / "layouts.h5") == {key: undisturbed[key] for key in good}
    record = read_record(tmp_path / "layouts.run" / "failures" / "farm0_t0_s1.json")
    assert (record.failure.kind, record.failure.final, record.deaths) == ("died", True, 2)
    assert "SIGKILL" in record.failure.message
    assert sorted(calls(tmp_path)) == [0, 1, 1, 2]


@pytest.mark.slow
def test_whatever_a_task_does_the_others_are_computed(tmp_path):
    """One dies once, one always, one crashes, one raises; two are innocent."""
    orders = {1: "die=once", 2: "die", 3: "segfault", 4: "fail=sorry"}
    make_campaign(tmp_path, seeds=6, orders=orders, execution={"workers": 2, "timeout_s": 600, "retries": 1})
    run = tmp_path / "layouts.run"
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert shards(run) == ["farm0_t0_s0", "farm0_t0_s1", "farm0_t0_s5"]
    assert sorted(digests(tmp_path / "layouts.h5")) == shards(run)
    failures = {path.stem: json.loads(path.read_text()) for path in (run / "failures").iterdir()}
    kinds = {key: record["failure"]["kind"] for key, record in failures.items()}
    assert kinds == {
        "farm0_t0_s2": "died",
        "farm0_t0_s3": "died",
        "farm0_t0_s4": "exception",
    }
    assert "SIGKILL" in failures["farm0_t0_s2"]["failure"]["message"]
    assert "SIGSEGV" in failures["farm0_t0_s3"]["failure"]["message"]
    assert "own_recipe_of_tests.py" in failures["farm0_t0_s3"]["failure"]["traceback"]  # from the log, by faulthandler
    assert "ValueError: no layout today: sorry" in failures["farm0_t0_s4"]["failure"]["message"]
    assert "Traceback" in failures["farm0_t0_s4"]["failure"]["traceback"]
    counts = {seed: calls(tmp_path).count(seed) for seed in range(6)}
    assert counts == {0: 1, 1: 2, 2: 2, 3: 2, 4: 1, 5: 1}
    assert "3 tasks failed" in done.stdout
    assert "--retry-failed" in done.stdout
    events = [line["event"] for line in audit(run)]
    assert events.count("failed") == 3
    assert events.count("retry") == 3

    again = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert again.returncode == 3
    assert len(calls(tmp_path)) == sum(counts.values())
    for path in (tmp_path / "orders").iterdir():
        path.unlink()
    mended = leeward_here("run", "campaign.yaml", "--retry-failed", "--engine", "inline", cwd=tmp_path)
    assert mended.returncode == 0, mended.stderr
    assert len(digests(tmp_path / "layouts.h5")) == 6
    assert not list((run / "failures").iterdir())


@pytest.mark.parametrize("retries", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_task_that_hangs_is_ended_by_the_time_out_and_the_others_are_computed(tmp_path, retries):
    """Only the workers of the task that hangs are late, so the short time limit hits no other task."""
    execution = {"workers": 1, "timeout_s": 1, "retries": retries}
    make_campaign(tmp_path, seeds=3, orders={1: "until=never"}, execution=execution)
    process = start_calmly(tmp_path)
    try:
        for attempts in range(1, retries + 2):
            until(lambda attempts=attempts: calls(tmp_path).count(1) == attempts, "the task hangs")
            set_late(tmp_path, [pid for seed, pid in called(tmp_path) if seed == 1])
        assert process.wait(PATIENCE_S) == 3
    finally:
        kill_group(process)
    assert sorted(digests(tmp_path / "layouts.h5")) == ["farm0_t0_s0", "farm0_t0_s2"]
    assert sorted(calls(tmp_path)) == [0, *[1] * (retries + 1), 2]
    (path,) = (tmp_path / "layouts.run" / "failures").iterdir()
    record = read_record(path)
    assert (path.stem, record.failure.kind, record.failure.final) == ("farm0_t0_s1", "timed-out", True)
    assert (record.deaths, len(record.attempts)) == (retries + 1, retries + 1)
    assert "time limit of 1 s" in record.failure.message


def test_a_worker_killed_after_it_stored_its_result(tmp_path):
    make_campaign(tmp_path, seeds=2)
    from leeward.store.format.keys import Key
    from leeward.store.paths import RunPaths

    shard = RunPaths(tmp_path / "layouts.h5").shard(Key(0, 0, 1))
    (tmp_path / "orders" / "1").write_text(f"die_when={shard}")
    done = leeward_here("run", "campaign.yaml", "--workers", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "died-when").exists()
    assert sorted(calls(tmp_path)) == [0, 1]
    assert len(digests(tmp_path / "layouts.h5")) == 2


@pytest.mark.slow
def test_workers_killed_from_outside(tmp_path, undisturbed):
    """While they start, and while they compute. If killing the first one takes long, it may have begun."""
    make_campaign(tmp_path, seeds=6, orders={"all": "until=told"})
    process = start("run", "campaign.yaml", cwd=tmp_path)
    try:
        first = until(lambda: workers_of(process), "a worker starts")[0]
        os.kill(first, signal.SIGKILL)
        killed = until(lambda: _computing(tmp_path, 2, first), "two others compute")
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        until(lambda: _computing(tmp_path, 2, first, *killed), "two more compute")
        (tmp_path / "told").touch()
        assert process.wait(PATIENCE_S) == 0
    finally:
        kill_group(process)
    assert digests(tmp_path / "layouts.h5") == undisturbed
    lost = [pid for _, pid in called(tmp_path) if pid in (first, *killed)]
    assert set(killed) <= set(lost)
    assert len(calls(tmp_path)) == 6 + len(lost)
    retried = [line["worker"].split("-")[-2] for line in audit(tmp_path / "layouts.run") if line["event"] == "retry"]
    assert sorted(pid for pid in retried if pid != str(first)) == sorted(map(str, killed))
    assert len(retried) <= 3


def _computing(folder, count, *but):
    """Process ids of so many workers that have begun a task, when there are so many; but: others than these."""
    pids = list(dict.fromkeys(pid for _, pid in called(folder) if pid not in but))
    return pids if len(pids) == count else None


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_a_coordinator_is_killed_again_and_again(tmp_path, undisturbed, times):
    """Each time one more task may end, and the coordinator is killed as soon as its result is there."""
    make_campaign(tmp_path, seeds=6, orders={seed: f"until=go-{seed}" for seed in range(6)})
    run = tmp_path / "layouts.run"
    for count in range(1, times + 1):
        before, begun = set(shards(run)), len(calls(tmp_path))
        process = start("run", "campaign.yaml", "--workers", 1, cwd=tmp_path)
        try:
            seed = until(lambda begun=begun: calls(tmp_path)[begun:], "a task begins")[0]
            (tmp_path / f"go-{seed}").touch()
            until(lambda count=count: len(shards(run)) >= count, "another result")
            children = workers_of(process)
        finally:
            kill_group(process)
        until(lambda children=children: not any(_lives(pid) for pid in children), "the workers end by themselves")
        assert before <= set(shards(run))
        stored = {int(key.rpartition("_s")[2]) for key in shards(run)}
        begun = len(calls(tmp_path))
    assert len(stored) == times
    for seed in range(6):
        (tmp_path / f"go-{seed}").touch()
    done = leeward_here("run", "campaign.yaml", "--engine", "inline", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not stored & set(calls(tmp_path)[begun:])
    assert digests(tmp_path / "layouts.h5") == undisturbed
    assert "took over" not in done.stderr  # a dead owner is nothing to wait for


def _lives(pid):
    from leeward.store.directory.owner import process_start

    return process_start(pid) is not None


@pytest.mark.slow
def test_attempts_are_counted_across_resumes(tmp_path):
    execution = {"workers": 1, "timeout_s": PATIENCE_S}
    make_campaign(tmp_path, seeds=2, orders={1: "die"}, execution=execution)
    run = tmp_path / "layouts.run"
    process = start("run", "campaign.yaml", cwd=tmp_path)

    def died_once():
        record = read_record(run / "failures" / "farm0_t0_s1.json") if run.exists() else None
        return record is not None and record.deaths >= 1

    try:
        until(died_once, "the poisonous task has killed a worker")
    finally:
        kill_group(process)
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 3
    assert shards(run) == ["farm0_t0_s0"]
    assert read_record(run / "failures" / "farm0_t0_s1.json").deaths == 3
    assert calls(tmp_path).count(1) in (3, 4)  # one may have been cut off with the coordinator


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_a_request_to_stop(tmp_path, number, code):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("these tests were started with this signal ignored, as by nohup, and so is what they start")
    make_campaign(tmp_path, seeds=6, orders={"all": "until=told"})
    run = tmp_path / "layouts.run"
    process = start("run", "campaign.yaml", cwd=tmp_path)
    output = tmp_path / "output.txt"
    try:
        until(lambda: len(calls(tmp_path)) == 2, "two tasks are in hand")
        process.send_signal(number)
        until(lambda: "stopping: waiting for 2 running tasks" in output.read_text(), "it says so")
        (tmp_path / "told").touch()
        assert process.wait(PATIENCE_S) == code
    finally:
        kill_group(process)
    text = output.read_text()
    assert "To resume: leeward run campaign.yaml" in text
    assert len(calls(tmp_path)) == len(shards(run)) == len(digests(tmp_path / "layouts.h5"))
    assert 0 < len(shards(run)) < 6
    if number == signal.SIGTERM:
        (tmp_path / "orders" / "all").unlink()
        assert leeward_here("run", "campaign.yaml", "--engine", "inline", cwd=tmp_path).returncode == 0
        assert len(calls(tmp_path)) == 6


@pytest.mark.slow
def test_a_second_request_and_the_end_of_patience(tmp_path):
    make_campaign(tmp_path, seeds=3, orders={1: "until=never", 2: "until=never"})
    run = tmp_path / "layouts.run"
    process = start("run", "campaign.yaml", cwd=tmp_path)
    try:
        until(lambda: len(calls(tmp_path)) == 3 and shards(run), "one is stored, two hang")
        process.send_signal(signal.SIGTERM)
        until(lambda: "a second Ctrl-C or SIGTERM" in (tmp_path / "output.txt").read_text(), "the first one is heard")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 143
    finally:
        kill_group(process)
    assert shards(run) == ["farm0_t0_s0"]
    assert not (tmp_path / "layouts.h5").exists()
    assert not list((run / "failures").iterdir())  # they were cut off by us
    process = start("run", "campaign.yaml", "--grace", 1, cwd=tmp_path)
    try:
        until(lambda: len(calls(tmp_path)) == 5, "two hang")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 143
    finally:
        kill_group(process)
    assert sorted(digests(tmp_path / "layouts.h5")) == ["farm0_t0_s0"]  # the next run merges
    assert not list((run / "failures").iterdir())


@pytest.mark.slow
def test_two_coordinators_and_a_stopped_one_that_is_taken_over(tmp_path, undisturbed, monkeypatch):
    make_campaign(tmp_path, seeds=6, orders=dict.fromkeys(range(1, 6), "until=told"))
    first = start("run", "campaign.yaml", "--workers", 1, cwd=tmp_path)
    try:
        until(lambda: shards(tmp_path / "layouts.run"), "the first result")
        second = leeward_here("run", "campaign.yaml", cwd=tmp_path)
        assert second.returncode == 1
        assert f"held by process {first.pid} on " in second.stderr
        first.send_signal(signal.SIGSTOP)
        until(lambda: is_stopped(first.pid), "its heartbeat has stopped")
        (tmp_path / "told").touch()
        monkeypatch.setattr(locks, "INTERVAL_S", 0.05)
        third = leeward_here("run", "campaign.yaml", "--take-over", cwd=tmp_path)
        assert third.returncode == 0, third.stderr
        assert digests(tmp_path / "layouts.h5") == undisturbed
        before = (tmp_path / "layouts.run" / "audit.jsonl").read_bytes()
        first.send_signal(signal.SIGCONT)
        assert first.wait(PATIENCE_S) == 1
    finally:
        kill_group(first)
    assert "taken over" in (tmp_path / "output.txt").read_text()
    assert (tmp_path / "layouts.run" / "audit.jsonl").read_bytes() == before
    assert digests(tmp_path / "layouts.h5") == undisturbed


def test_a_changed_campaign_is_refused_and_a_grown_one_is_not(tmp_path):
    make_campaign(tmp_path, seeds=2, execution=INLINE)
    assert leeward_here("run", "campaign.yaml", cwd=tmp_path).returncode == 0
    before = digests(tmp_path / "layouts.h5")
    make_campaign(tmp_path, seeds=2, spacing_m=650, wake_model="jensen", execution=INLINE)
    changed = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert changed.returncode == 2
    assert "spacing" in changed.stderr
    assert "650" in changed.stderr
    assert "jensen" in changed.stderr
    assert "--new" in changed.stderr
    assert "-o" in changed.stderr
    assert digests(tmp_path / "layouts.h5") == before

    make_campaign(tmp_path, seeds=3, farms=2, execution=INLINE)
    grown = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert grown.returncode == 0, grown.stderr
    assert "4 computed now" in grown.stdout
    assert before.items() <= digests(tmp_path / "layouts.h5").items()
    make_campaign(tmp_path, seeds=1, execution=INLINE)
    shrunk = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert shrunk.returncode == 0, shrunk.stderr
    assert len(digests(tmp_path / "layouts.h5")) == 6  # nothing is thrown away

    make_campaign(tmp_path, seeds=1, spacing_m=650, execution=INLINE)
    anew = leeward_here("run", "campaign.yaml", "--new", cwd=tmp_path)
    assert anew.returncode == 0, anew.stderr
    assert len(digests(tmp_path / "layouts.h5")) == 1
    (old,) = tmp_path.glob("layouts-*.h5")
    assert len(digests(old)) == 6
    assert (old.with_suffix(".run") / "campaign.yaml").exists()
    assert not (old.with_suffix(".run") / "lock").exists()


def test_a_damaged_shard_is_put_aside_and_computed_again(tmp_path, finished):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    before = digests(tmp_path / "layouts.h5")
    run = tmp_path / "layouts.run"
    (shard,) = run.glob("results/*/farm0_t0_s1.h5")
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    (other,) = run.glob("results/*/farm0_t0_s2.h5")
    other.write_bytes(b"")
    kept = (tmp_path / "layouts.h5").read_bytes()
    back = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert back.returncode == 0, back.stderr  # the output has them
    assert len(calls(tmp_path)) == 3
    assert digests(tmp_path / "layouts.h5") == before
    assert (tmp_path / "layouts.h5").read_bytes() == kept

    shard.write_bytes(content)
    other.write_bytes(b"")
    (tmp_path / "layouts.h5").unlink()
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(calls(tmp_path)) == [0, 1, 1, 2, 2]
    assert digests(tmp_path / "layouts.h5") == before
    reasons = [json.loads(path.read_text()) for path in (run / "quarantine").glob("*.reason.json")]
    assert len(reasons) == 4
    assert "empty" in {reason["verdict"] for reason in reasons}
    assert "2 bad files moved to" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("earlier", [False, True])
def test_shards_damaged_and_removed_while_the_run_goes_on(tmp_path, earlier):
    """They are found at the merge, put aside, and taken from an earlier output or computed again."""
    make_campaign(tmp_path, seeds=2, execution=INLINE)
    run = tmp_path / "layouts.run"
    if earlier:
        assert leeward_here("run", "campaign.yaml", cwd=tmp_path).returncode == 0
    make_campaign(tmp_path, seeds=3, orders={2: "until=told"}, execution=INLINE)
    process = start("run", "campaign.yaml", cwd=tmp_path)
    try:
        until(lambda: 2 in calls(tmp_path), "the last one is computed")
        (shard,) = run.glob("results/*/farm0_t0_s0.h5")
        shard.write_bytes(b"junk")
        (shard,) = run.glob("results/*/farm0_t0_s1.h5")
        shard.unlink()
        (tmp_path / "told").touch()
        assert process.wait(PATIENCE_S) == 0
    finally:
        kill_group(process)
    assert len(digests(tmp_path / "layouts.h5")) == 3
    assert sorted(calls(tmp_path)) == ([0, 1, 2] if earlier else [0, 0, 1, 1, 2])
    assert shards(run) == ["farm0_t0_s0", "farm0_t0_s1", "farm0_t0_s2"]
    assert len(list((run / "quarantine").glob("*.reason.json"))) == 1


@pytest.mark.slow
def test_only_some_tasks(tmp_path):
    make_campaign(tmp_path, seeds=5, farms=2, execution=INLINE)
    done = leeward_here("run", "campaign.yaml", "--only", "farm=1 seed=0:4:2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert shards(tmp_path / "layouts.run") == ["farm1_t0_s0", "farm1_t0_s2"]
    (tmp_path / "missing.csv").write_text("key\nfarm0_t0_s4\n")
    (tmp_path / "orders" / "4").write_text("go=/")
    done = leeward_here("run", "campaign.yaml", "--only-from", "missing.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 more results kept" in done.stdout
    assert len(digests(tmp_path / "layouts.h5")) == 3
    (tmp_path / "missing.csv").write_text("key\nfarm0_t0_s4\nfarm0_t0_s40\n")
    strange = leeward_here("run", "campaign.yaml", "--only-from", "missing.csv", cwd=tmp_path)
    assert strange.returncode == 2
    assert "farm0_t0_s40" in strange.stderr
    (tmp_path / "orders" / "1").write_text("leave=0")
    left = leeward_here("run", "campaign.yaml", "--only", "farm=0 seed=1", cwd=tmp_path)
    assert left.returncode == 3
    assert "SystemExit: 0" in left.stdout
    nothing = leeward_here("run", "campaign.yaml", "--only", "farm=7", cwd=tmp_path)
    assert nothing.returncode == 2
    assert "none of the 10 tasks" in nothing.stderr


def test_an_output_with_other_results_is_not_overwritten(tmp_path):
    make_campaign(tmp_path, seeds=2, execution=INLINE)
    assert leeward_here("run", "campaign.yaml", "-o", "other.h5", cwd=tmp_path).returncode == 0
    other = tmp_path / "other.h5"
    other.rename(tmp_path / "layouts.h5")
    before = (tmp_path / "layouts.h5").read_bytes()
    make_campaign(tmp_path, seeds=4, execution=INLINE)
    refused = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert refused.returncode == 1
    assert "--adopt layouts.h5" in refused.stderr
    assert "-o" in refused.stderr
    assert (tmp_path / "layouts.h5").read_bytes() == before
    adopted = leeward_here("run", "campaign.yaml", "--adopt", "layouts.h5", cwd=tmp_path)
    assert adopted.returncode == 0, adopted.stderr
    assert "2 results adopted" in adopted.stderr
    assert sorted(calls(tmp_path)) == [0, 1, 2, 3]


def test_results_that_were_cleaned_away_come_back_from_the_output(tmp_path, finished):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    before = digests(tmp_path / "layouts.h5")
    assert leeward_here("clean", "layouts.run", "--merged", cwd=tmp_path).returncode == 0
    assert shards(tmp_path / "layouts.run") == []
    shrunk = leeward_here("run", "campaign.yaml", "--seeds", 2, cwd=tmp_path)  # fewer seeds are not a change
    assert shrunk.returncode == 0, shrunk.stderr
    assert digests(tmp_path / "layouts.h5") == before
    grown = leeward_here("run", "campaign.yaml", "--seeds", 4, cwd=tmp_path)
    assert grown.returncode == 0, grown.stderr
    assert "1 computed now" in grown.stdout
    assert before.items() <= digests(tmp_path / "layouts.h5").items()


def test_a_foreign_file_in_the_place_of_the_output_is_refused(tmp_path):
    make_campaign(tmp_path, seeds=3, execution=INLINE)
    assert leeward_here("run", "campaign.yaml", "--only", "seed=0", cwd=tmp_path).returncode == 0
    output = tmp_path / "layouts.h5"
    write_foreign_file(output, [(0, 0, 1)], turbines=5, aep=-7.0)
    before = output.read_bytes()
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "--adopt layouts.h5" in done.stderr
    assert output.read_bytes() == before
    output.unlink()
    output.mkdir()
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "is a folder" in done.stderr
    assert len(calls(tmp_path)) == 1


def test_failures_of_other_settings_do_not_count(tmp_path):
    make_campaign(tmp_path, seeds=1, orders={0: "fail=so"}, execution=INLINE)
    assert leeward_here("run", "campaign.yaml", cwd=tmp_path).returncode == 3
    (tmp_path / "orders" / "0").unlink()
    assert leeward_here("run", "campaign.yaml", cwd=tmp_path).returncode == 3  # it stands
    make_campaign(tmp_path, seeds=1, spacing_m=650, execution=INLINE)
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_whatever_is_left_behind_in_the_run_directory(tmp_path):
    """Damaged small files cost no result, and no traceback."""
    make_campaign(tmp_path, seeds=2, execution=INLINE)
    assert leeward_here("run", "campaign.yaml", "--only", "seed=0", cwd=tmp_path).returncode == 0
    run = tmp_path / "layouts.run"
    (run / "campaign.yaml").write_bytes(bytes(range(256)))
    (run / "failures" / "farm0_t0_s1.json").write_text('{"key": "x", "attempts": 5, "failure": null}')
    (run / "index.jsonl").write_bytes(b"\xff\x00")
    (run / "workers" / "old.json").write_text("{}")
    (run / "audit.jsonl").write_bytes((run / "audit.jsonl").read_bytes()[:-9])
    (tmp_path / "layouts.h5.index").write_bytes(b"junk")
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(digests(tmp_path / "layouts.h5")) == 2
    assert sorted(calls(tmp_path)) == [0, 1]
    (run / "lock").mkdir()
    odd = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert odd.returncode == 2
    assert "layouts.run/lock: is a folder; expected a file" in odd.stderr


@pytest.mark.slow
def test_a_recipe_that_forks(tmp_path):
    """A copy of a worker speaks for nobody, and one that holds its pipes does not hide its death."""
    make_campaign(tmp_path, seeds=4, orders={1: "fork", 2: "fork=1200 die=once"})
    done = leeward("run", "campaign.yaml", "--workers", 1, cwd=tmp_path)  # waits for less than the copy sleeps
    assert done.returncode == 0, done.stderr
    assert len(digests(tmp_path / "layouts.h5")) == 4


@pytest.mark.slow
def test_a_recipe_is_imported_from_the_file_that_was_digested(tmp_path):
    """Other modules of its name, and of numpy's name beside it, are ignored: by a process that imports both first."""
    make_campaign(tmp_path, seeds=1, execution={"workers": 1})
    other = tmp_path / "other"
    other.mkdir()
    (other / "own_recipe_of_tests.py").write_text(
        "def place(problem, seed):\n    raise RuntimeError('the wrong one')\n"
    )
    (tmp_path / "numpy.py").write_text("raise RuntimeError('not this one')\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(other), str(Path(package.__file__).parents[1])])}
    done = leeward("run", "campaign.yaml", cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "elsewhere").mkdir()
    again = leeward_here("run", "../layouts.run/campaign.yaml", "-o", "../layouts.h5", cwd=tmp_path / "elsewhere")
    assert again.returncode == 0, again.stderr  # the run directory knows where the recipe is
    (tmp_path / "own_recipe_of_tests.py").write_text("def place(problem, seed):\n    return 0\n")
    (tmp_path / "numpy.py").unlink()
    changed = leeward_here("run", "layouts.run/campaign.yaml", "--seeds", 2, cwd=tmp_path)
    assert changed.returncode == 2
    assert "SHA-256" in changed.stderr
    assert not list((tmp_path / "layouts.run" / "failures").iterdir())  # no task is blamed


@pytest.mark.slow
def test_from_python_in_a_script_without_a_guard(tmp_path):
    make_campaign(tmp_path, seeds=2, execution={"workers": 1})
    script = tmp_path / "study.py"
    script.write_text(
        "import leeward\n"
        "events = []\n"
        "report = leeward.run('campaign.yaml', output='study.h5', on_event=events.append)\n"
        "print(report.done, report.is_complete, report.exit_code, len(events) > 3)\n"
        "layouts = leeward.open_layouts('study.h5')\n"
        "print(layouts[0, 0, 1].layout.shape, len(layouts))\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout == "2 True 0 True\n(2, 3) 2\n", done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere.yaml"], 2, "no such file"),
        (["campaign.yaml", "--seeds", "x"], 2, "seeds"),
        (["campaign.yaml", "--engine", "cloud"], 2, "local"),
        (["campaign.yaml", "-o", "layouts.txt"], 2, ".h5"),
        (["campaign.yaml", "--adopt", "nowhere"], 2, "nowhere"),
        (["campaign.yaml", "-o", "nowhere/layouts.h5"], 2, "nowhere"),
        (["campaign.yaml", "--only", "seed=0", "--only-from", "x.csv"], 2, "both"),
    ],
)
def test_wrong_use(tmp_path, arguments, code, said):
    make_campaign(tmp_path)
    done = leeward_here("run", *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("**/*.run"))


def test_the_package_says_what_it_has():
    assert callable(package.run)
    assert callable(package.load)
    with pytest.raises(AttributeError):
        package.nothing  # noqa: B018


def test_a_shard_that_cannot_be_opened_now_is_not_put_aside(tmp_path, finished, monkeypatch):
    """It may be good: the run waits for the machine, or gives up with everything where it was."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    before = shards(tmp_path / "layouts.run")
    here = str(Path(__file__).parent)
    monkeypatch.setenv("FAULT", "any unopened")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr("leeward.store.isolated.reader_process.Child.MODULE", "faulty_child")
    with pytest.raises(StorageError, match="cannot be opened: Too many open files in system"):
        package.run(tmp_path / "campaign.yaml", tmp_path / "layouts.h5", storage_wait_s=0)
    assert shards(tmp_path / "layouts.run") == before
    assert not list((tmp_path / "layouts.run" / "quarantine").iterdir())
    monkeypatch.undo()
    assert leeward_here("run", "campaign.yaml", cwd=tmp_path).returncode == 0
    assert sorted(calls(tmp_path)) == [0, 1, 2]
