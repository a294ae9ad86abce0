"""Runs, engines and workers know nothing of layouts: another kind of work goes through them unchanged."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import leeward
from leeward.campaign.execution import Execution
from leeward.engines import gpu, work as works
from leeward.engines.engine import ENGINES, engine_class
from leeward.errors import InputError
from leeward.runs.context import Options
from leeward.runs.run import run_work
from leeward.store import RunPaths
from leeward.store.format.kinds import KINDS
from run_cases import calls, digests, kill_group, make_campaign, shards, until
from toy_kind import Sample
from toy_work import KIND, NumberWork

TABLE = """
from leeward.engines.work import WORKS
from leeward.store.format.kinds import KINDS
from toy_kind import Sample

WORKS["samples"] = "toy_work:NumberWork"
KINDS[Sample.KIND] = Sample
"""
RUN = """
from pathlib import Path
from leeward.runs.context import Options
from leeward.runs.run import run_work
from leeward.store import RunPaths
from toy_work import NumberWork

report = run_work(NumberWork(Path.cwd(), 6, engine={engine!r}), RunPaths(Path("roots.h5")), Options(), print)
raise SystemExit(report.exit_code)
"""


@pytest.fixture(autouse=True)
def known(tmp_path, monkeypatch):
    """Put the toy into the tables of works and of results, here and in the processes that compute, read and write."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(TABLE)
    folders = [str(site), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    monkeypatch.setitem(works.WORKS, KIND, "toy_work:NumberWork")
    monkeypatch.setitem(KINDS, Sample.KIND, Sample)


def run(folder, *, count=6, engine="inline", factor=1.0, only=None, events=None):
    work = NumberWork(folder, count, factor, engine)
    return run_work(work, RunPaths(folder / "roots.h5"), Options(only), [].append if events is None else events.append)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [pytest.param("inline", marks=pytest.mark.slow), "local"])
def test_another_kind_of_work_is_computed_stored_merged_and_grows(tmp_path, engine):
    events = []
    report = run(tmp_path, engine=engine, only="even", events=events)
    assert (report.exit_code, report.computed) == (0, 3)
    assert sorted(calls(tmp_path)) == [0, 2, 4]
    assert {event["event"] for event in events} >= {"began", "done", "merged"}
    (began,) = [event for event in events if event["event"] == "began"]
    assert (began["campaign"], began["workers"]) == ("roots", {"inline": 1, "local": 2}[engine])
    report = run(tmp_path, count=8, engine=engine)
    assert (report.exit_code, report.computed, len(report.results)) == (0, 5, 8)
    assert len(digests(tmp_path / "roots.h5")) == 8
    assert not list((tmp_path / "roots.run" / "workers").iterdir())


def test_results_of_other_settings_are_refused_in_words_of_the_kind(tmp_path):
    run(tmp_path)
    with pytest.raises(InputError, match=r"6 of its results were made with other settings.*\n  factor: 2.0, was 1.0"):
        run(tmp_path, factor=2.0)


@pytest.mark.parametrize("engine", [pytest.param("inline", marks=pytest.mark.slow), "local"])
def test_a_killed_run_is_resumed(tmp_path, engine):
    (tmp_path / "wait").touch()
    process = subprocess.Popen(
        [sys.executable, "-c", RUN.format(engine=engine)], cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE
    )
    try:
        until(lambda: len(shards(tmp_path / "roots.run")) == 2 and len(calls(tmp_path)) > 2, "two are stored")
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finally:
        kill_group(process)
    (tmp_path / "wait").unlink()
    report = run(tmp_path, engine=engine)
    assert (report.exit_code, report.computed, report.done) == (0, 4, 6)
    assert [calls(tmp_path).count(number) for number in (0, 1)] == [1, 1]
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    run(undisturbed)
    assert digests(tmp_path / "roots.h5") == digests(undisturbed / "roots.h5")


def test_the_table_of_engines_has_those_that_a_campaign_can_name(monkeypatch):
    monkeypatch.setattr(gpu, "_count_gpus", lambda *environment: 4)
    monkeypatch.delenv(gpu.VISIBLE, raising=False)
    names = get_args(Execution.model_fields["engine"].annotation)
    assert set(ENGINES) == set(names)
    for name in names:
        assert engine_class(name).worker_count(Execution(workers=3), 2) == {"inline": 1, "local": 2, "gpu": 2}.get(name)


def test_runs_and_engines_do_not_speak_of_layouts():
    """But for the public function `run`, the table of kinds, and file and event names that users know."""
    package = Path(leeward.__file__).parent
    words = ("farm", "turbine", "aep", "Campaign")
    found = {
        f"{path.relative_to(package)}:{word}"
        for folder in ("runs", "engines")
        for path in (package / folder).rglob("*.py")
        for word in words
        if word in path.read_text() and path.name != "run.py"
    }
    assert not found


def test_the_old_name_of_the_callback_for_events_is_heard_and_warned_of(tmp_path):
    campaign = make_campaign(tmp_path, seeds=1, execution={"engine": "inline"})
    events = []
    with pytest.warns(DeprecationWarning, match="on_event"):
        leeward.run(campaign, tmp_path / "layouts.h5", hear=events.append)
    assert "done" in {event["event"] for event in events}
