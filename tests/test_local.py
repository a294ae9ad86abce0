"""The engine of this machine: tasks that are cut off, and workers that do not start. test_run.py has whole runs."""

import subprocess
import sys

import pytest

from leeward.campaign import load
from leeward.campaign.work import LayoutWork
from leeward.engines import local
from leeward.engines.engine import Done
from leeward.engines.local import LocalEngine
from leeward.engines.work import FrozenWork
from leeward.engines.worker_process import Launcher
from leeward.errors import LeewardError
from leeward.store.directory import space
from leeward.store.directory.records import begin_attempt, read_record, withdraw_attempt
from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths
from run_cases import calls, make_campaign, until


@pytest.mark.parametrize("is_heard", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_task_that_was_begun_is_in_hand_whether_or_not_its_beginning_was_heard(tmp_path, is_heard):
    """Its attempt is taken back when somebody ends the run, which is no fault of the task's."""
    campaign = load(make_campaign(tmp_path, seeds=1, orders={"all": "until=never"}))
    paths, key = RunPaths(tmp_path / "layouts.h5"), Key(0, 0, 0)
    space.prepare_folders(paths)
    begin_attempt(paths, key, campaign.fingerprint(0, 0), "host-1-earlier", "host")  # cut off with its coordinator
    engine = LocalEngine(Launcher(frozen(campaign), paths, "cafe"), 1, 600.0)
    try:
        engine.start(key)
        until(lambda: engine.poll(0.1) or _is_handed(engine), "it is handed to a worker")
        until(lambda: calls(tmp_path) and (not is_heard or engine.poll(0.1)), "it has begun")
    finally:
        in_hand = engine.close()
    assert in_hand == [key]
    assert len(read_record(paths.failure(key)).attempts) == 2
    for _ in range(2):  # the earlier one is none of its own
        withdraw_attempt(paths, key, mark=engine.mark)
        assert [attempt["worker"] for attempt in read_record(paths.failure(key)).attempts] == ["host-1-earlier"]


def frozen(campaign):
    return FrozenWork.of(LayoutWork(campaign))


def _is_handed(engine):
    return any(worker.tasks for worker in engine._workers)


def starting_as(programs, *, then=subprocess.Popen):
    """Launch these programs instead of the first workers."""
    left = list(programs)

    def launch(command, **options):
        return subprocess.Popen([sys.executable, "-c", left.pop(0)], **options) if left else then(command, **options)

    return launch


def engine_of(folder, launch, told):
    campaign = load(make_campaign(folder, seeds=1))
    paths = RunPaths(folder / "layouts.h5")
    space.prepare_folders(paths)

    def emit(kind, **facts):
        told.append((kind, facts["again_s"], facts["message"]))

    return LocalEngine(Launcher(frozen(campaign), paths, launch=launch), 1, 600.0, emit)


def test_workers_that_are_killed_while_they_start_do_not_end_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "PAUSES_S", (0.01, 0.02, 0.03))
    told = []
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    engine = engine_of(tmp_path, starting_as([killed] * 5), told)
    try:
        engine.start(Key(0, 0, 0))
        outcomes = []
        until(lambda: outcomes.extend(engine.poll(0.1)) or [one for one in outcomes if isinstance(one, Done)], "done")
    finally:
        engine.close()
    assert [again for _, again, _ in told] == [0.01, 0.02, 0.03, 0.03, 0.03]
    assert all(event == "start-killed" and "SIGKILL" in message for event, _, message in told)


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("import no_module_of_this_name", "No module named 'no_module_of_this_name'"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", r"SIGSEGV.*\.log, is empty"),
        ("raise SystemExit(1)", r"exit code 1.*\.log, is empty"),
    ],
)
def test_starts_that_fail_by_themselves_end_a_run_with_the_log(tmp_path, program, shown):
    told = []
    engine = engine_of(tmp_path, starting_as([program] * 3), told)
    try:
        engine.start(Key(0, 0, 0))
        with pytest.raises(LeewardError, match=f"(?s)3 workers in a row.*{shown}"):
            until(lambda: engine.poll(0.1), "it gives up")
    finally:
        engine.close()
    assert told == []


SAYING = """
import json, sys
for answer in {answers}:
    print(json.dumps(answer), flush=True)
sys.stdin.read()
"""


def test_workers_that_compile_are_told_of_once(tmp_path):
    """Here the second worker compiles longer than the first, and is killed while it does."""
    campaign = load(make_campaign(tmp_path, seeds=2))
    paths = RunPaths(tmp_path / "layouts.h5")
    space.prepare_folders(paths)
    first = [{"compiling": {}}, {"compiled": {"seconds": 1.0}}, {"ready": "one"}]
    programs = [SAYING.format(answers=first), SAYING.format(answers=[{"compiling": {}}])]
    told = []
    launcher = Launcher(frozen(campaign), paths, launch=starting_as(programs))
    engine = LocalEngine(launcher, 2, 600.0, lambda kind, **facts: told.append((kind, facts)))
    try:
        for seed in range(2):
            engine.start(Key(0, 0, seed))
        until(lambda: engine.poll(0.1) or [w.ready for w in engine._workers] == [True, False], "the first is ready")
        until(lambda: engine.poll(0.1) or engine._workers[1].compiles, "the second compiles")
    finally:
        engine.close()
    assert [event for event, _ in told if event == "compiling"]
    assert told[-1][0] == "compiled"
    assert told[-1][1]["seconds"] >= 0.0
    assert [event for event, _ in told] == ["compiling", "compiled"] * (len(told) // 2)


def test_an_error_of_the_callback_is_not_blamed_on_the_worker(tmp_path):
    campaign = load(make_campaign(tmp_path, seeds=1))
    paths = RunPaths(tmp_path / "layouts.h5")
    space.prepare_folders(paths)

    def fail(event, **facts):
        if event == "compiling":
            raise KeyError("no such key")

    launch = starting_as([SAYING.format(answers=[{"compiling": {}}])])
    engine = LocalEngine(Launcher(frozen(campaign), paths, launch=launch), 1, 600.0, fail)
    try:
        engine.start(Key(0, 0, 0))
        with pytest.raises(KeyError, match="no such key"):
            until(lambda: engine.poll(0.1), "the callback fails")
        assert len(engine._workers) == 1
    finally:
        engine.close()
