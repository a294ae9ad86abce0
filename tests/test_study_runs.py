"""Runs of studies: the same digests from every engine and after kills, growth, and refusal of other settings."""

import os
import signal

import pytest
import yaml

import leeward
from leeward.errors import InputError
from leeward.store import EvaluationKey, RunPaths
from leeward.study import load_study
from leeward.study.work import StudyWork
from run_cases import digests, kill_group, shards, start, until, workers_of
from small_studies import study_data, write_study


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A study of eight scenarios, computed in this process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    report = leeward.evaluate(write_study(folder, 8), folder / "study.h5")
    assert (report.exit_code, report.computed) == (0, 8)
    return digests(folder / "study.h5")


@pytest.mark.slow
def test_local_workers_give_the_same_digests(tmp_path, undisturbed):
    path = write_study(tmp_path, 8, execution={"engine": "local", "workers": 2})
    events = []
    report = leeward.evaluate(path, tmp_path / "study.h5", on_event=events.append)
    assert report.exit_code == 0
    assert digests(tmp_path / "study.h5") == undisturbed
    assert {"began", "done", "merged"} <= {event["event"] for event in events}


@pytest.mark.slow
def test_the_order_and_the_selection_do_not_matter(tmp_path, undisturbed):
    path = write_study(tmp_path, 8)
    report = leeward.evaluate(path, tmp_path / "study.h5", only="scenario=5:")
    assert (report.computed, len(report.results)) == (3, 3)
    leeward.evaluate(path, tmp_path / "study.h5", only=[EvaluationKey(0, 2), "target0_scenario0"])
    report = leeward.evaluate(path, tmp_path / "study.h5")
    assert (report.exit_code, report.computed) == (0, 3)
    assert digests(tmp_path / "study.h5") == undisturbed


def test_a_killed_evaluation_is_resumed_and_computes_nothing_twice(tmp_path, undisturbed):
    """Kill a worker, then the coordinator and all others, as soon as results are there."""
    write_study(tmp_path, 8, execution={"engine": "local", "workers": 2, "retries": 50})
    run = RunPaths(tmp_path / "study.h5")
    process = start("evaluate", "study.yaml", cwd=tmp_path, start_new_session=True)
    try:
        until(lambda: workers_of(process) or process.poll() is not None, "a worker is there")
        for worker in workers_of(process)[:1]:
            os.kill(worker, signal.SIGKILL)
        until(lambda: len(shards(run.root)) >= 2 or process.poll() is not None, "two results are stored")
    finally:
        kill_group(process)
    before = {path: path.stat().st_ino for path in run.results.rglob("*.h5")}
    report = leeward.evaluate(tmp_path / "study.yaml", tmp_path / "study.h5")
    assert report.exit_code == 0
    assert report.computed == 8 - len(before)
    assert {path: path.stat().st_ino for path in before} == before
    assert digests(tmp_path / "study.h5") == undisturbed


def test_a_study_grows_and_keeps_its_results(tmp_path, undisturbed):
    leeward.evaluate(write_study(tmp_path, 3), tmp_path / "study.h5")
    report = leeward.evaluate(write_study(tmp_path, 8), tmp_path / "study.h5")
    assert (report.exit_code, report.computed) == (0, 5)
    assert digests(tmp_path / "study.h5") == undisturbed
    report = leeward.evaluate(write_study(tmp_path, 2), tmp_path / "study.h5")  # and shrinks: nothing is lost
    assert (report.computed, report.merged.count) == (0, 8)


def test_results_of_other_settings_are_refused(tmp_path):
    leeward.evaluate(write_study(tmp_path, 2), tmp_path / "study.h5")
    with pytest.raises(InputError, match=r"2 of its results were made with other settings.*\n.*wake_model"):
        leeward.evaluate(write_study(tmp_path, 2, wake_model="jensen"), tmp_path / "study.h5")
    report = leeward.evaluate(tmp_path / "study.yaml", tmp_path / "study.h5", new=True)
    assert report.computed == 2


def test_a_damaged_result_is_set_aside_and_computed_again(tmp_path, undisturbed):
    path = write_study(tmp_path, 8)
    leeward.evaluate(path, tmp_path / "study.h5")
    run = RunPaths(tmp_path / "study.h5")
    shard = run.shard(EvaluationKey(0, 3))
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    (tmp_path / "study.h5").unlink()
    report = leeward.evaluate(path, tmp_path / "study.h5")
    assert (report.exit_code, report.computed, report.quarantined) == (0, 1, 1)
    assert digests(tmp_path / "study.h5") == undisturbed


def test_a_campaign_file_is_not_a_study(tmp_path):
    data = study_data(tmp_path)
    with pytest.raises(InputError, match="is a campaign, not a study"):
        leeward.evaluate(tmp_path / "campaign.yaml", tmp_path / "study.h5")
    with pytest.raises(InputError, match="no such file; expected a study file"):
        leeward.evaluate(tmp_path / "absent.yaml")
    work = StudyWork(load_study(data))
    with pytest.raises(InputError, match="a study cannot adopt"):
        work.adopt([], (), False, None, None)


@pytest.mark.slow
def test_the_command_prints_sizes_and_a_summary(tmp_path):
    from run_cases import leeward as command

    write_study(tmp_path, 4)
    dry = command("evaluate", "study.yaml", "--dry-run", cwd=tmp_path)
    assert dry.returncode == 0, dry.stderr
    assert "keep farm_power: farm power in each step, 3.8 kB" in dry.stdout
    assert not (tmp_path / "study.run").exists()
    done = command("evaluate", "study.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 of 4 evaluations done, 4 computed now" in done.stdout
    wrong = yaml.safe_load((tmp_path / "study.yaml").read_text()) | {"target": "x"}
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(wrong))
    failed = command("evaluate", "wrong.yaml", cwd=tmp_path)
    assert failed.returncode == 2
    assert "target is not a known key" in failed.stderr
