"""Dask clusters on this machine whose parts are killed while a campaign runs: real processes, real kills."""

import functools
import os
import signal
import sys
import time

import pytest

import run_cases
from cluster_cases import (
    ONE_AT_A_TIME,
    PATIENT,
    DaskCluster,
    assert_tidy,
    called,
    children_of,
    leeward,
    lives,
    start,
    wait_for,
    worker_processes,
)
from leeward.campaign.execution import DaskSpec
from leeward.engines.cluster import links
from leeward.engines.engine import EngineLostError
from leeward.store.directory.records import read_record
from run_cases import PATIENCE_S, audit, calls, digests, kill_group, make_campaign, shards, until

pytest_plugins = ["cluster_fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: looks into /proc")]

# A word for orders that the recipe of these tests has in addition: an end for the Dask worker, too.
WITH_PARENT = """
def die_with_parent(_):
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
"""

# A module for Dask workers: their clock for time limits is ahead once a file exists. A jump is not a standstill.
CLOCK = """
import time
from pathlib import Path
from types import SimpleNamespace

from leeward.engines import local

local.STOPPED_S = float("inf")
local.time = SimpleNamespace(monotonic=lambda: time.monotonic() + ({ahead_s} if Path({late!r}).exists() else 0.0))
"""

start_one_at_a_time = functools.partial(run_cases.start, before=PATIENT + ONE_AT_A_TIME)


def on(cluster: DaskCluster) -> list[str]:
    return ["--engine", "dask", "--scheduler", cluster.address]


def called_under(worker, folder) -> list[int]:
    """Seeds of the tasks that were begun by worker processes which this Dask worker has now."""
    children = children_of(worker.inner)
    return [seed for seed, pid in called(folder) if pid in children]


@pytest.mark.parametrize("what", ["nanny and all", "its process only"])
def test_a_killed_worker_costs_what_it_had_in_hand_and_its_successor_gets_tasks(tmp_path, what):
    make_campaign(tmp_path, seeds=30, orders={"all": "until=go"}, execution={"timeout_s": 600})
    with DaskCluster(tmp_path / "dask", workers=2) as own:
        first, other = own.workers
        process = start("run", "campaign.yaml", *on(own), cwd=tmp_path)
        try:
            until(lambda: called_under(first, tmp_path), "the first one computes")
            until(lambda: called_under(other, tmp_path), "the other one does, too")
            time.sleep(0.3)  # so that the coordinator has mostly heard of it; the test passes either way
            if what == "nanny and all":
                first.kill()
                successor = own.add_worker(wait=False)
            else:
                os.kill(first.inner, signal.SIGKILL)
                successor = first  # its nanny starts it anew
                until(lambda: first.starts == 2, "it is there again")
            until(lambda: called_under(successor, tmp_path), "the successor computes")
            (tmp_path / "go").touch()
            assert wait_for(process) == 0, (tmp_path / "output.txt").read_text()
        finally:
            kill_group(process)
        assert_tidy(tmp_path / "layouts.run")
    assert sorted(digests(tmp_path / "layouts.h5")) == sorted(f"farm0_t0_s{seed}" for seed in range(30))
    assert set(calls(tmp_path)) == set(range(30))
    assert len(calls(tmp_path)) - 30 <= 1  # the one task in its hand
    assert "the Dask worker w0 on " in (tmp_path / "output.txt").read_text()
    events = [line["event"] for line in audit(tmp_path / "layouts.run")]
    assert events.count("retry") <= 1
    assert "failed" not in events
    assert not list((tmp_path / "layouts.run" / "failures").glob("farm*.json"))


def test_a_killed_coordinator_takes_its_worker_processes_with_it_and_is_resumed(tmp_path, cluster, undisturbed):
    orders = {4: "until=never", 5: "until=never"}
    make_campaign(tmp_path, seeds=6, orders=orders, execution={"timeout_s": 6 * PATIENCE_S})
    run = tmp_path / "layouts.run"
    process = start_one_at_a_time("run", "campaign.yaml", *on(cluster), "--only", "seed=0,1,4,5", cwd=tmp_path)
    try:
        until(lambda: {4, 5} <= set(calls(tmp_path)) and len(shards(run)) == 2, "two are stored, two in hand")
        workers = worker_processes(tmp_path)
    finally:
        kill_group(process)
    assert len(workers) == 2
    until(lambda: not any(lives(pid) for pid in workers), "its workers end")  # before their time limit
    stored = {int(key.rpartition("_s")[2]) for key in shards(run)}
    before = len(calls(tmp_path))
    for order in (tmp_path / "orders").iterdir():
        order.unlink()
    done = leeward("run", "campaign.yaml", *on(cluster), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert digests(tmp_path / "layouts.h5") == undisturbed
    assert not stored & set(calls(tmp_path)[before:])
    assert_tidy(run)


def test_a_killed_scheduler_ends_the_run_and_another_one_completes_it(tmp_path, undisturbed):
    make_campaign(tmp_path, seeds=6, orders={4: "until=never", 5: "until=never"})
    run = tmp_path / "layouts.run"
    with DaskCluster(tmp_path / "dask", workers=1, threads=2) as own:
        process = start_one_at_a_time("run", "campaign.yaml", *on(own), cwd=tmp_path)
        try:
            until(lambda: len(shards(run)) == 4 and {4, 5} <= set(calls(tmp_path)), "four are stored, two hang")
            own.kill_scheduler()
            assert wait_for(process) == 3
        finally:
            kill_group(process)
        until(lambda: not worker_processes(tmp_path), "worker processes end")
    text = (tmp_path / "output.txt").read_text()
    assert f"the Dask scheduler at {own.address} is gone or cannot be reached" in text
    assert "2 layouts missing" in text
    assert "To resume: leeward run campaign.yaml" in text
    assert "Traceback" not in text
    assert sorted(digests(tmp_path / "layouts.h5")) == shards(run)
    assert not list((run / "failures").glob("farm*.json"))  # it was no fault of the two
    assert [line["event"] for line in audit(run)].count("engine-lost") == 1
    assert_tidy(run)
    for order in (tmp_path / "orders").iterdir():
        order.unlink()
    with DaskCluster(tmp_path / "dask again", workers=1) as another:
        done = leeward("run", "campaign.yaml", *on(another), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(calls(tmp_path)) == [0, 1, 2, 3, 4, 4, 5, 5]
    assert digests(tmp_path / "layouts.h5") == undisturbed


def test_a_scheduler_that_stands_still_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(links, "CONNECT_S", PATIENCE_S)
    monkeypatch.setattr(links, "ANSWER_S", PATIENCE_S)
    with DaskCluster(tmp_path / "dask") as own:
        link = links.connect(DaskSpec(scheduler=own.address), lambda *_, **__: None)
        assert link.addresses() == []
        monkeypatch.setattr(links, "ANSWER_S", 0.5)
        own.scheduler.send_signal(signal.SIGSTOP)
        with pytest.raises(EngineLostError, match=f"the Dask scheduler at {own.address} does not answer"):
            link.addresses()
        own.scheduler.send_signal(signal.SIGCONT)
        link.close()


def test_a_stopped_worker_process_is_ended_by_the_time_out(tmp_path):
    """The test moves the clock of the Dask worker past the time limit, when only the stopped task is in hand."""
    make_campaign(tmp_path, seeds=3, orders={0: "until=go"}, execution={"timeout_s": PATIENCE_S})
    (tmp_path / "clock.py").write_text(CLOCK.format(late=str(tmp_path / "late"), ahead_s=PATIENCE_S + 100.0))
    with DaskCluster(tmp_path / "dask") as own:
        own.add_worker(threads=2, options=("--preload", str(tmp_path / "clock.py")))
        process = start_one_at_a_time("run", "campaign.yaml", *on(own), cwd=tmp_path)
        try:
            stopped = until(lambda: dict(called(tmp_path)).get(0), "it computes")
            os.kill(stopped, signal.SIGSTOP)
            until(lambda: len(shards(tmp_path / "layouts.run")) == 2, "the others are stored")
            (tmp_path / "go").touch()
            (tmp_path / "late").touch()
            assert wait_for(process) == 0, (tmp_path / "output.txt").read_text()
        finally:
            kill_group(process)
        assert not lives(stopped)
        assert_tidy(tmp_path / "layouts.run")
    assert sorted(calls(tmp_path)) == [0, 0, 1, 2]
    assert len(digests(tmp_path / "layouts.h5")) == 3
    (retry,) = [line for line in audit(tmp_path / "layouts.run") if line["event"] == "retry"]
    assert (retry["key"], retry["kind"]) == ("farm0_t0_s0", "timed-out")


@pytest.mark.parametrize("when", ["at once", "when it is known to have begun"])
def test_a_task_that_kills_dask_workers_is_given_up_and_nobody_else_is_blamed(tmp_path, when):
    """Its neighbours on the same Dask worker die with it, and are tried again away from it."""
    orders = {"all": "wait=0.5", 1: "die_with_parent" if when == "at once" else "wait=1 die_with_parent"}
    make_campaign(tmp_path, seeds=8, orders=orders, execution={"retries": 1})
    recipe = tmp_path / "own_recipe_of_tests.py"
    recipe.write_text(recipe.read_text() + WITH_PARENT)
    run = tmp_path / "layouts.run"
    with DaskCluster(tmp_path / "dask", workers=2, threads=2) as own:
        done = leeward("run", "campaign.yaml", *on(own), cwd=tmp_path)
        assert_tidy(run)
    assert done.returncode == 3, done.stdout + done.stderr
    assert sorted(digests(tmp_path / "layouts.h5")) == [f"farm0_t0_s{seed}" for seed in (0, 2, 3, 4, 5, 6, 7)]
    assert [path.stem for path in (run / "failures").glob("farm*.json")] == ["farm0_t0_s1"]  # killed writers leave .tmp
    record = read_record(run / "failures" / "farm0_t0_s1.json")
    assert (record.deaths, len(record.attempts), record.failure.kind) == (2, 2, "died")
    assert "is gone" in record.failure.message or "its worker was lost" in record.failure.message
    assert calls(tmp_path).count(1) == 2
