"""The engine of this machine: what it knows of tasks that are cut off. tests/test_run.py has whole runs."""

import pytest

from leeward.campaign import load
from leeward.engine import space
from leeward.engine.local import LocalEngine
from leeward.store.keys import Key
from leeward.store.paths import RunPaths
from leeward.store.records import begin_attempt, forgive_attempt, read_record
from run_cases import calls, make_campaign, until


@pytest.mark.parametrize("is_heard", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_task_that_was_begun_is_in_hand_whether_or_not_its_beginning_was_heard(tmp_path, is_heard):
    """Its attempt is taken back when somebody ends the run, which is no fault of the task's."""
    campaign = load(make_campaign(tmp_path, seeds=1, orders={"all": "until=never"}))
    paths, key = RunPaths(tmp_path / "layouts.h5"), Key(0, 0, 0)
    space.prepare_folders(paths)
    begin_attempt(paths, key, campaign.fingerprint(0, 0), "host-1-earlier", "host")  # cut off with its coordinator
    engine = LocalEngine(campaign.frozen_text(), paths, 1, 600.0, mark="cafe")
    try:
        engine.start(key)
        until(lambda: engine.poll(0.1) or _is_handed(engine), "it is handed to a worker")
        until(lambda: calls(tmp_path) and (not is_heard or engine.poll(0.1)), "it has begun")
    finally:
        in_hand = engine.close()
    assert in_hand == [key]
    assert len(read_record(paths.failure(key)).attempts) == 2
    for _ in range(2):  # the earlier one is none of its own
        forgive_attempt(paths, key, mark=engine.mark)
        assert [attempt["worker"] for attempt in read_record(paths.failure(key)).attempts] == ["host-1-earlier"]


def _is_handed(engine):
    return any(worker.key is not None for worker in engine._workers)
