"""What runs inside a Dask worker; with a worker that is on paper. tests/test_cluster.py has real ones."""

import os
import threading
from types import SimpleNamespace

import pytest

from leeward.campaign import load
from leeward.engines.cluster import pilot
from leeward.errors import LeewardError
from leeward.store.directory import space
from leeward.store.paths import RunPaths
from run_cases import PATIENCE_S, make_campaign, until


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """It does not see the run directory: every pilot has a folder of its own, which tells whether it is still there."""
    made = SimpleNamespace(status=pilot.Status.running, name="w0", local_directory=str(tmp_path))
    made.state, made.log_event = SimpleNamespace(nthreads=1, tasks={}), lambda *_: None
    monkeypatch.setattr(pilot, "get_worker", lambda: made)
    monkeypatch.setattr(pilot, "SUPERVISE_S", 0.02)
    monkeypatch.setattr(pilot, "_pilots", {})
    yield made
    made.status = pilot.Status.closed


def set_up(worker, key, folder):
    worker.state.tasks[key] = None
    worker.get_current_task = lambda: key
    texts = dict.fromkeys(("mark", "content"), "")
    return pilot.set_up(
        {
            **texts,
            "token": "a run",
            "work": ("layouts", ""),
            "output": str(folder / "x.h5"),
            "probe": str(folder / "none"),
            "timeout_s": PATIENCE_S,
        }
    )


def test_a_worker_that_is_set_up_once_more_stays_prepared_when_the_first_time_is_forgotten(tmp_path, worker):
    """As when it dies, and its successor has its address: Dask itself may repeat there what was asked of the first."""
    for key in ("first", "second"):
        set_up(worker, key, tmp_path)
    assert len(list(tmp_path.glob("leeward-*"))) == 2
    del worker.state.tasks["first"]
    until(lambda: len(list(tmp_path.glob("leeward-*"))) == 1, "the first one is over")
    assert pilot.compute_unit("a run", []) == 0
    del worker.state.tasks["second"]
    until(lambda: not list(tmp_path.glob("leeward-*")), "and so is the second")
    with pytest.raises(LeewardError, match="is not prepared"):
        pilot.compute_unit("a run", [])


def test_a_worker_process_lives_on_when_the_thread_that_wanted_it_ends(tmp_path, worker):
    """As Dask's threads do when a task of somebody else's secedes."""
    said = []
    worker.log_event = lambda _, message: said.extend(message.get("outcomes", ()))  # and the news of compiling
    worker.get_current_task = lambda: "set-up"
    worker.state.tasks = dict.fromkeys(("set-up", "first", "second"), SimpleNamespace(state="executing"))
    campaign = load(make_campaign(tmp_path, seeds=2))
    paths = RunPaths(tmp_path / "layouts.h5")
    space.prepare_folders(paths)
    (tmp_path / "probe").write_text("it is")
    order = {"token": "a run", "mark": "", "work": ("layouts", campaign.frozen_text()), "output": str(paths.output)}
    pilot.set_up({**order, "probe": str(tmp_path / "probe"), "content": "it is", "timeout_s": PATIENCE_S})
    worker.get_current_task = lambda: "first"
    thread = threading.Thread(target=pilot.compute_unit, args=("a run", ["farm0_t0_s0"]))
    thread.start()
    thread.join()
    task = f"/proc/self/task/{thread.native_id}"
    until(lambda: not os.path.exists(task), "the thread is gone, for the kernel too")
    worker.get_current_task = lambda: "second"
    pilot.compute_unit("a run", ["farm0_t0_s1"])
    assert [outcome["what"] for outcome in said] == ["Began", "Done", "Began", "Done"]
    assert len({outcome["worker"] for outcome in said}) == 1
    pilot.tear_down("a run")


def test_news_of_short_tasks_go_together_but_not_too_many_results(monkeypatch):
    """A Dask scheduler keeps the last thousand messages."""
    monkeypatch.setattr(pilot.time, "monotonic", lambda: 0.0)  # no moment passes
    said = []
    outbox = pilot._Outbox(said.append, "unit")
    for number in range(10):
        outbox.put([{"what": "Began", "key": number}, {"what": "Computed", "key": number, "shard": bytes(20_000)}])
    outbox.flush()
    assert [one["key"] for message in said for one in message["outcomes"]] == [n for n in range(10) for _ in "12"]
    sizes = [sum(len(one.get("shard", b"")) for one in message["outcomes"]) for message in said]
    assert sizes == [60_000, 60_000, 60_000, 20_000]
