"""One suite over all engines: whatever computes, a campaign ends the same way, and leaves the same behind."""

import functools
import os
import signal
import subprocess
import sys

import pytest

from cluster_cases import assert_tidy, leeward, start, wait_for
from leeward.store.directory.records import read_record
from leeward.watch import snapshot
from run_cases import PATIENCE_S, audit, calls, digests, kill_group, make_campaign, shards, until
from small_studies import write_study

pytest_plugins = ["cluster_fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: looks into /proc")]

ENGINES = ("inline", "local", "dask", pytest.param("slurm", marks=pytest.mark.slurm))
WITH_PROCESSES = ENGINES[1:]  # a task that kills or hangs takes nothing with it but its worker
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
SIGNALS = {  # test_run.py has the others of local
    "inline": (signal.SIGINT,),
    "local": (signal.SIGTERM,),
    "dask": tuple(CODES),
    "slurm": tuple(CODES),
}
SLURM_OPTIONS = ("--jobs", "2", "--cores", "1", "--memory", "500MB", "--walltime", "0:30:00")


def engine_options(engine: str, request: pytest.FixtureRequest) -> list[str]:
    """What to add to `leeward run`: two tasks at a time, where the engine can."""
    if engine == "dask":
        return ["--engine", "dask", "--scheduler", request.getfixturevalue("cluster").address]
    if engine == "slurm":
        why = why_no_slurm()
        if why:
            pytest.skip(why)
        return ["--engine", "slurm", *SLURM_OPTIONS]
    return ["--engine", engine, *(["--workers", "2"] if engine == "local" else [])]


@functools.cache
def why_no_slurm() -> str | None:
    if not os.environ.get("SLURM_CONF"):
        return "no SLURM: the environment variable SLURM_CONF is not set"
    try:
        answer = subprocess.run(["sinfo"], capture_output=True, text=True, timeout=PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no SLURM: {error}"
    return None if answer.returncode == 0 else f"no SLURM: sinfo says {answer.stderr.strip()!r}"


@pytest.fixture
def run_with(request, tmp_path):
    """The command `leeward run campaign.yaml` with an engine: waits for its end, or starts it only."""

    def run(engine, *arguments, only_start=False):
        options = engine_options(engine, request)
        how = start if only_start else leeward
        return how("run", "campaign.yaml", *options, *arguments, cwd=tmp_path)

    return run


@pytest.mark.parametrize("engine", ENGINES)
def test_failures_are_recorded_tried_again_when_asked_and_the_campaign_grows(tmp_path, engine, run_with, undisturbed):
    make_campaign(tmp_path, seeds=3, orders={1: "fail=sorry"})
    run = tmp_path / "layouts.run"
    first = run_with(engine)
    assert first.returncode == 3, first.stdout + first.stderr
    assert shards(run) == ["farm0_t0_s0", "farm0_t0_s2"]
    assert "1 task failed" in first.stdout
    assert "--retry-failed" in first.stdout
    record = read_record(run / "failures" / "farm0_t0_s1.json")
    assert (record.failure.kind, record.failure.final, len(record.attempts), record.deaths) == ("exception", True, 1, 0)
    assert record.failure.message == "ValueError: no layout today: sorry"
    assert "own_recipe_of_tests.py" in record.failure.traceback
    assert record.failure.worker == record.attempts[0]["worker"]
    assert record.failure.worker.startswith(record.failure.host)
    assert [path.name for path in (run / "failures").iterdir()] == ["farm0_t0_s1.json"]
    assert_tidy(run)
    seen = snapshot(run)  # what `leeward status` shows
    assert (seen.done, seen.failed, seen.missing, seen.is_running, list(seen.workers)) == (2, 1, 1, False, [])
    assert [failure.key for failure in seen.failures] == ["farm0_t0_s1"]

    (tmp_path / "orders" / "1").unlink()
    make_campaign(tmp_path, seeds=6)
    grown = run_with(engine, "--retry-failed")
    assert grown.returncode == 0, grown.stdout + grown.stderr
    assert "6 of 6 layouts done, 4 computed now" in grown.stdout
    assert digests(tmp_path / "layouts.h5") == undisturbed
    assert sorted(calls(tmp_path)) == [0, 1, 1, 2, 3, 4, 5]
    assert not list((run / "failures").iterdir())
    assert_tidy(run)
    events = [line["event"] for line in audit(run)]
    assert [events.count(event) for event in ("run-began", "failed", "retry", "run-ended")] == [2, 1, 0, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stopped_run_finishes_what_is_in_hand_and_is_resumed(tmp_path, engine, run_with, undisturbed):
    make_campaign(tmp_path, seeds=6, orders={"all": "until=go"})
    run = tmp_path / "layouts.run"
    stored: set[str] = set()
    for number in SIGNALS[engine]:
        if signal.getsignal(number) is signal.SIG_IGN:
            pytest.skip("these tests were started with this signal ignored, as by nohup, and so is what they start")
        (tmp_path / "go").unlink(missing_ok=True)
        begun = len(calls(tmp_path))
        process = run_with(engine, "--grace", "600", only_start=True)
        try:
            until(lambda begun=begun: len(calls(tmp_path)) > begun, "a task is in hand")
            process.send_signal(number)
            (tmp_path / "go").touch()
            assert wait_for(process) == CODES[number]
        finally:
            kill_group(process)
        assert stored < set(shards(run))
        stored = set(shards(run))
        assert stored == set(digests(tmp_path / "layouts.h5"))
        assert len(calls(tmp_path)) == len(stored) < 6
        assert not list((run / "failures").iterdir())
        assert_tidy(run)
    text = (tmp_path / "output.txt").read_text()
    assert text.count("stopping") == len(SIGNALS[engine])
    assert "To resume: leeward run campaign.yaml" in text
    (tmp_path / "orders" / "all").unlink()
    done = run_with(engine)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(calls(tmp_path)) == list(range(6))
    assert digests(tmp_path / "layouts.h5") == undisturbed


@pytest.mark.parametrize("engine", WITH_PROCESSES)
def test_tasks_that_kill_are_given_up_and_the_others_are_computed(tmp_path, engine, run_with, undisturbed):
    orders = {1: "die=once", 2: "die"}
    make_campaign(tmp_path, seeds=6, orders=orders, execution={"timeout_s": 600, "retries": 1})
    run = tmp_path / "layouts.run"
    done = run_with(engine)
    assert done.returncode == 3, done.stdout + done.stderr
    counts = {seed: calls(tmp_path).count(seed) for seed in range(6)}
    assert counts == {0: 1, 1: 2, 2: 2, 3: 1, 4: 1, 5: 1}
    good = ["farm0_t0_s0", "farm0_t0_s1", "farm0_t0_s3", "farm0_t0_s4", "farm0_t0_s5"]
    assert digests(tmp_path / "layouts.h5") == {key: undisturbed[key] for key in good}
    (path,) = (run / "failures").iterdir()
    record = read_record(path)
    assert (path.stem, record.failure.kind, record.failure.final) == ("farm0_t0_s2", "died", True)
    assert record.deaths == 2
    assert "SIGKILL" in record.failure.message
    events = [line["event"] for line in audit(run)]
    assert [events.count(event) for event in ("failed", "retry")] == [1, 2]
    assert_tidy(run)


@pytest.mark.parametrize("engine", WITH_PROCESSES)
def test_a_task_that_hangs_is_given_up_and_the_next_run_computes_the_others(tmp_path, engine, run_with, undisturbed):
    """The short time limit holds for the hanging task only: on a slow machine it would hit the others too."""
    make_campaign(tmp_path, seeds=3, orders={1: "until=never"}, execution={"timeout_s": 4, "retries": 1})
    run = tmp_path / "layouts.run"
    given_up = run_with(engine, "--only", "seed=1")
    assert given_up.returncode == 3, given_up.stdout + given_up.stderr
    (path,) = (run / "failures").iterdir()
    record = read_record(path)
    assert (path.stem, record.failure.kind, record.failure.final) == ("farm0_t0_s1", "timed-out", True)
    assert record.deaths == 2
    assert "time limit of 4 s" in record.failure.message
    assert_tidy(run)

    make_campaign(tmp_path, seeds=3)
    done = run_with(engine)
    assert done.returncode == 3, done.stdout + done.stderr
    good = ["farm0_t0_s0", "farm0_t0_s2"]
    assert digests(tmp_path / "layouts.h5") == {key: undisturbed[key] for key in good}
    assert [path.stem for path in (run / "failures").iterdir()] == ["farm0_t0_s1"]
    assert_tidy(run)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_study_has_the_same_digests_on_every_engine(tmp_path, engine, request):
    """The shared suite is about layouts; evaluations go through the same engines."""
    here = tmp_path / "here"
    here.mkdir()
    for folder in (tmp_path, here):
        write_study(folder, 6)
    done = leeward("evaluate", "study.yaml", *engine_options(engine, request), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert leeward("evaluate", "study.yaml", cwd=here).returncode == 0
    assert digests(tmp_path / "study.h5") == digests(here / "study.h5")
