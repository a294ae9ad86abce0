"""What runs inside a Dask worker; with a worker that is on paper. tests/test_cluster.py has real ones."""

from types import SimpleNamespace

import pytest

from leeward.engine.cluster import pilot
from leeward.errors import LeewardError
from run_cases import until


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """It does not see the run directory: every pilot has a folder of its own, which tells whether it is still there."""
    made = SimpleNamespace(status=pilot.Status.running, name="w0", local_directory=str(tmp_path))
    made.state, made.log_event = SimpleNamespace(nthreads=1, tasks={}), lambda *_: None
    monkeypatch.setattr(pilot, "get_worker", lambda: made)
    monkeypatch.setattr(pilot, "LOOK_AFTER_S", 0.02)
    monkeypatch.setattr(pilot, "_pilots", {})
    yield made
    made.status = pilot.Status.closed


def set_up(worker, key, folder):
    worker.state.tasks[key] = None
    worker.get_current_task = lambda: key
    texts = dict.fromkeys(("mark", "campaign", "content"), "")
    return pilot.set_up(
        {**texts, "token": "a run", "output": str(folder / "x.h5"), "probe": str(folder / "none"), "timeout_s": 60.0}
    )


def test_a_worker_that_is_set_up_once_more_stays_prepared_when_the_first_time_is_forgotten(tmp_path, worker):
    """As when it dies, and its successor has its address: Dask itself may repeat there what was asked of the first."""
    for key in ("first", "second"):
        set_up(worker, key, tmp_path)
    assert len(list(tmp_path.glob("leeward-*"))) == 2
    del worker.state.tasks["first"]
    until(lambda: len(list(tmp_path.glob("leeward-*"))) == 1, "the first one is over")
    assert pilot.work_off("a run", "unit", []) == 0
    del worker.state.tasks["second"]
    until(lambda: not list(tmp_path.glob("leeward-*")), "and so is the second")
    with pytest.raises(LeewardError, match="not been prepared"):
        pilot.work_off("a run", "unit", [])
