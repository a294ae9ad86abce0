"""The engine gpu: batches in real processes that are really killed. No GPU is needed: the numbers are those of CPUs."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

import leeward
from leeward.campaign import Campaign, load
from leeward.campaign.execution import VARIABLE
from leeward.engines import gpu, local, work as works
from leeward.engines.gpu import GpuEngine
from leeward.engines.worker_process import Launcher
from leeward.errors import InputError
from leeward.runs.context import Options
from leeward.runs.evaluate import evaluate
from leeward.runs.run import run_work
from leeward.store import Key, RunPaths
from leeward.store.directory.records import read_record
from leeward.store.format.kinds import KINDS
from leeward.study import Study, load_study
from leeward.study.work import StudyWork
from leeward.watch import snapshot
from run_cases import INLINE, audit, calls, digests, kill_group, leeward_here, make_campaign, shards, until, workers_of
from small_studies import write_study
from toy_batches import BatchWork
from toy_kind import Sample

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: looks into /proc")

# What the worker processes of these tests import first: the toy, and batches of layouts and evaluations from CPUs.
SITE = """
import os, sys, time, types
from pathlib import Path
from leeward.engines.work import WORKS
from leeward.store.format.kinds import KINDS
from toy_kind import Sample

WORKS["samples"] = "toy_batches:BatchWork"
KINDS[Sample.KIND] = Sample

def module(name, compute):
    made = types.ModuleType(name)
    made.compute_many = lambda source, keys, show_progress: (compute(source, key) for key in keys)
    sys.modules[name] = made

def layout(campaign, key):
    from leeward.campaign.compute import compute
    return compute(campaign, key, lambda **facts: None)

module("leeward.campaign.gpu", layout)
module("leeward.study.gpu", lambda study, key: study.evaluate(key))

if "leeward.engines.worker_main" in sys.orig_argv:
    from leeward.engines import worker
    from leeward.errors import StorageError
    store = worker.store_result

    def store_result(paths, result):
        if (paths.output.parent / "reject").exists():
            raise StorageError("no space left")
        silent = paths.output.parent / "silent"
        if silent.exists() and result.key.sample == 3:
            silent.unlink()
            time.sleep(3600)
        return store(paths, result)

    worker.store_result = store_result
    worker.PAUSES_S = (0.05,)
"""
RUN = """
from pathlib import Path
from leeward.engines import gpu
from leeward.runs.context import Options
from leeward.runs.run import run_work
from leeward.store import RunPaths
from toy_batches import BatchWork

gpu._count_gpus = lambda *environment: 1
options = Options(grace_s=0.0)
report = run_work(BatchWork(Path.cwd(), 6), RunPaths(Path("roots.h5")), options, lambda event: None)
raise SystemExit(report.exit_code)
"""


@pytest.fixture(autouse=True)
def one_gpu(tmp_path, monkeypatch):
    """Pretend that this machine has a GPU; put the toy into the tables, here and in all processes."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    folders = [str(site), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    monkeypatch.setitem(works.WORKS, "samples", "toy_batches:BatchWork")
    monkeypatch.setitem(KINDS, Sample.KIND, Sample)
    monkeypatch.delenv(gpu.VISIBLE, raising=False)
    use_gpus(monkeypatch, 1)


def use_gpus(monkeypatch, number):
    monkeypatch.setattr(gpu, "_count_gpus", lambda *environment: number)


def run(folder, count=6, *, events=None, retry_failed=False, **settings):
    work, options = BatchWork(folder, count, **settings), Options(retry_failed=retry_failed)
    return run_work(work, RunPaths(folder / "roots.h5"), options, [].append if events is None else events.append)


def batches(folder):
    path = folder / "batches.txt"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def samples(folder):
    """The samples of each batch."""
    return [batch["samples"] for batch in batches(folder)]


def record_of(folder, sample):
    return read_record(folder / "roots.run" / "failures" / f"sample{sample}_v1.json")


def test_a_batch_is_recorded_computed_stored_and_merged(tmp_path):
    events = []
    report = run(tmp_path, 20, events=events)
    assert (report.exit_code, report.computed, len(digests(tmp_path / "roots.h5"))) == (0, 20, 20)
    (batch,) = batches(tmp_path)
    assert batch["samples"] == list(range(20))
    assert batch["records"] == 20  # every attempt is recorded before the first computation
    assert batch["gpu"] == "0"
    assert not list((tmp_path / "roots.run" / "failures").iterdir())
    assert not list((tmp_path / "roots.run" / "workers").iterdir())
    (began,) = [event for event in events if event["event"] == "began"]
    assert (began["workers"], began["engine"]) == (1, "gpu")
    again = run(tmp_path, 22)
    assert (again.exit_code, again.computed) == (0, 2)
    assert samples(tmp_path)[1:] == [[20, 21]]


def test_each_gpu_has_a_process_and_an_even_share(tmp_path, monkeypatch):
    use_gpus(monkeypatch, 3)
    monkeypatch.setenv(gpu.VISIBLE, "4,GPU-1,7")
    (tmp_path / "hold").write_text("0")

    def release():
        until(lambda: len(batches(tmp_path)) == 2, "both GPUs have a batch")
        (tmp_path / "hold").unlink()

    with ThreadPoolExecutor(1) as pool:
        released = pool.submit(release)
        assert run(tmp_path, 10, workers=2).exit_code == 0
        released.result()
    found = batches(tmp_path)
    assert sorted(batch["gpu"] for batch in found) == ["4", "GPU-1"]
    assert sorted(batch["samples"] for batch in found) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert len({batch["pid"] for batch in found}) == 2


def engine_of(tasks, devices=1, monkeypatch=None):
    """An engine whose batches are only formed."""
    monkeypatch.setattr(GpuEngine, "_assign", lambda engine: None)
    launcher = Launcher(works.FrozenWork("samples", "{}"), RunPaths(Path("roots.h5")))
    return GpuEngine(launcher, [str(device) for device in range(devices)], tasks, 600.0)


def fill(engine, keys):
    """Start tasks as the coordinator does; return the sizes of the batches that are formed."""
    left = list(keys)
    while left and engine.room > 0:
        engine.start(left.pop(0))
    engine._close_batch()
    return [len(batch) for batch in engine._waiting]


@pytest.mark.parametrize(
    ("tasks", "devices", "sizes"),
    [(1, 1, [1]), (3000, 1, [3000]), (4096, 1, [4096]), (4097, 1, [2049]), (9000, 2, [1500, 1500]), (3, 8, [1, 1, 1])],
)
def test_batches_are_of_equal_size_and_none_is_tiny(tasks, devices, sizes, monkeypatch):
    engine = engine_of(tasks, devices, monkeypatch)
    assert fill(engine, [Key(0, 0, seed) for seed in range(tasks)]) == sizes
    assert engine.room == 0 or tasks < devices
    engine._waiting.clear()
    assert engine.room > 0


def test_a_task_whose_worker_died_never_joins_a_larger_batch(monkeypatch):
    engine = engine_of(100, 3, monkeypatch)
    keys = [Key(0, 0, seed) for seed in range(20)]
    engine._limits = dict.fromkeys(keys[5:], 4)
    assert fill(engine, keys) == [5, 4, 4]


def test_no_task_can_use_up_its_attempts_with_others():
    """A record allows ten attempts without a death of the task's own."""
    size, attempts = gpu.MOST_TASKS, 0
    while size > 1:
        size, attempts = -(-size // gpu.SHARE), attempts + 1
    assert attempts <= 6


def test_a_task_that_fails_alone_leaves_the_others_alone(tmp_path):
    (tmp_path / "fail-3").write_text("always")
    report = run(tmp_path)
    assert (report.exit_code, report.computed) == (3, 5)
    assert len(batches(tmp_path)) == 1
    record = record_of(tmp_path, 3)
    assert (record.failure.kind, record.failure.final, record.deaths) == ("exception", True, 0)
    assert record.failure.message == "ValueError: no root of 3"
    assert "toy_batches.py" in record.failure.traceback
    assert [path.stem for path in (tmp_path / "roots.run" / "failures").iterdir()] == ["sample3_v1"]
    (tmp_path / "fail-3").unlink()
    assert run(tmp_path, retry_failed=True).exit_code == 0


def test_a_killed_worker_loses_no_result_and_the_rest_is_retried_in_smaller_batches(tmp_path):
    (tmp_path / "kill-4").touch()
    events = []
    report = run(tmp_path, 12, events=events, retries=0)  # the death is not one of the tasks, so no retry is needed
    assert (report.exit_code, report.computed) == (0, 12)
    assert sorted(calls(tmp_path)) == list(range(12))  # nothing is computed twice
    first, *others = [len(batch) for batch in samples(tmp_path)]
    assert (first, sum(others)) == (12, 8)
    assert max(others) <= 3  # a quarter, of one more if the process died before it reported the last stored result
    (lost,) = [event for event in events if event["event"] == "batch-lost"]
    assert 8 <= lost["tasks"] <= 12  # some of the stored results were not reported yet
    assert "SIGKILL" in lost["message"]
    retried = [event for event in events if event["event"] == "retry"]
    assert len(retried) == 8
    assert {event["kind"] for event in retried} == {"died"}
    assert len([line for line in audit(tmp_path / "roots.run") if line["event"] == "retry"]) == 8
    assert not list((tmp_path / "roots.run" / "failures").iterdir())


def test_a_task_that_always_kills_is_found_and_the_others_are_computed(tmp_path):
    (tmp_path / "kill-9").write_text("always")
    report = run(tmp_path, 16, retries=1)
    assert (report.exit_code, report.computed) == (3, 15)
    assert sorted(calls(tmp_path)) == [sample for sample in range(16) if sample != 9]
    record = record_of(tmp_path, 9)
    assert (record.failure.kind, record.failure.final, record.deaths) == ("died", True, 2)
    assert [path.stem for path in (tmp_path / "roots.run" / "failures").iterdir()] == ["sample9_v1"]
    assert samples(tmp_path).count([9]) >= 1


def test_an_error_of_the_batch_is_retried_in_another_process(tmp_path):
    (tmp_path / "raise-3").touch()
    events = []
    report = run(tmp_path, events=events, retries=0)
    assert (report.exit_code, report.computed) == (0, 6)
    assert sorted(calls(tmp_path)) == list(range(6))  # what was finished before the error is stored
    assert len({batch["pid"] for batch in batches(tmp_path)}) == 2
    (lost,) = [event for event in events if event["event"] == "batch-lost"]
    assert "its worker died: RuntimeError: CUDA_ERROR_OUT_OF_MEMORY" in lost["message"]


def test_a_batch_without_progress_is_killed(tmp_path):
    (tmp_path / "hang-5").touch()
    events = []
    report = run(tmp_path, events=events, timeout_s=2.0, retries=1)
    assert (report.exit_code, report.computed) == (0, 6)
    (retried,) = [event for event in events if event["event"] == "retry"]
    assert (retried["kind"], retried["key"]) == ("timed-out", "sample5_v1")
    assert "no result and no progress for 2 s" in retried["message"]


@pytest.mark.slow
def test_a_batch_with_progress_may_take_long(tmp_path):
    (tmp_path / "steps-2").write_text("6")
    assert run(tmp_path, timeout_s=3.0, retries=0).exit_code == 0
    assert len(batches(tmp_path)) == 1


def test_a_disk_that_rejects_results_stops_no_batch(tmp_path):
    (tmp_path / "reject").touch()
    events = []

    def on_event(event):
        events.append(event["event"])
        if event["event"] == "storage-refuses":
            (tmp_path / "reject").unlink()

    report = run_work(BatchWork(tmp_path, 6), RunPaths(tmp_path / "roots.h5"), Options(), on_event)
    assert (report.exit_code, len(batches(tmp_path))) == (0, 1)
    assert events.index("storage-refuses") < events.index("storage-accepts") < events.index("merged")


def test_a_disk_that_does_not_answer_is_not_the_fault_of_a_task(tmp_path, monkeypatch):
    """Sample 3 is never stored, while sample 5 makes progress, which does not hide that."""
    monkeypatch.setattr(local, "STORE_LIMIT_S", 2.0)
    (tmp_path / "silent").touch()
    (tmp_path / "steps-5").write_text("8")
    events = []

    def on_event(event):
        events.append(event["event"])
        if event["event"] == "storage-refuses":
            (tmp_path / "steps-5").unlink()

    report = run_work(BatchWork(tmp_path, 6, retries=0), RunPaths(tmp_path / "roots.h5"), Options(), on_event)
    assert report.exit_code == 0
    assert not {"retry", "failed", "batch-lost"} & set(events)
    assert sorted(calls(tmp_path)) == [0, 1, 2, 3, 3, 4, 5]
    assert sorted(sample for batch in samples(tmp_path)[1:] for sample in batch) == [3, 5]


@pytest.fixture
def held(tmp_path):
    """A run in a process, whose batch has two results and waits; the number of the process group."""
    (tmp_path / "hold").write_text("2")
    process = subprocess.Popen([sys.executable, "-c", RUN], cwd=tmp_path, start_new_session=True)
    try:
        until(lambda: len(shards(tmp_path / "roots.run")) == 2, "two are stored")
        yield process
    finally:
        kill_group(process)


def resume(folder):
    (folder / "hold").unlink()
    report = run(folder)
    assert (report.exit_code, report.computed, len(digests(folder / "roots.h5"))) == (0, 4, 6)
    assert sorted(calls(folder)) == list(range(6))
    assert samples(folder) == [[0, 1, 2, 3, 4, 5], [2, 3, 4, 5]]
    assert not list((folder / "roots.run" / "failures").iterdir())


def test_a_killed_coordinator_takes_its_workers_along_and_is_resumed(tmp_path, held):
    (worker,) = workers_of(held)
    (heartbeat,) = (tmp_path / "roots.run" / "workers").glob("*.json")
    until(lambda: "computed" in heartbeat.read_text(), "the heartbeat tells of the batch")
    beat = json.loads(heartbeat.read_text())
    assert (beat["task"], beat["phase"]) == ("6 tasks, 2 computed", "waiting")
    held.send_signal(signal.SIGKILL)
    held.wait()
    until(lambda: not Path(f"/proc/{worker}").exists(), "the worker has ended")
    assert len(list((tmp_path / "roots.run" / "failures").iterdir())) == 4  # attempts of unknown outcome
    resume(tmp_path)


def test_a_stopped_run_takes_back_the_attempts_of_its_batch(tmp_path, held):
    held.send_signal(signal.SIGTERM)
    assert held.wait(60.0) == 143
    assert not list((tmp_path / "roots.run" / "failures").iterdir())
    resume(tmp_path)


# --- a GPU is another method ---


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path, seeds=2, optimiser={"recipe": "smart_start"}, execution=INLINE)


def test_the_engine_sets_the_device_and_the_device_the_engine(campaign):
    cpu = load(campaign)
    assert (cpu.device, cpu.fingerprint(0, 0)) == (None, load(campaign).fingerprint(0, 0))
    assert "device" not in cpu.frozen_text()
    on_gpu = cpu.with_overrides(engine="gpu")
    assert on_gpu.device == "cuda"
    assert on_gpu.fingerprint(0, 0) != cpu.fingerprint(0, 0)
    assert on_gpu.differences(cpu, 0, 0) == ["optimiser.device: 'cuda', was not set"]
    assert cpu.differences(on_gpu, 0, 0) == ["optimiser.device: not set, was 'cuda'"]
    for text in (on_gpu.frozen_text(), on_gpu.study_text()):  # what a run directory and a file of results hold
        again = Campaign.from_text(text, "again")
        assert (again.device, again.execution.engine) == ("cuda", "gpu")
        assert again.fingerprint(0, 0) == on_gpu.fingerprint(0, 0)
        assert again.with_overrides(effort="fast").device == "cuda"
        assert again.with_overrides(engine="local").fingerprint(0, 0) == cpu.fingerprint(0, 0)
    data = yaml.safe_load(campaign.read_text())
    assert load({**data, "execution": {"engine": "gpu"}}).fingerprint(0, 0) == on_gpu.fingerprint(0, 0)
    with pytest.raises(InputError, match="the device cuda and the engine local, which does not use it"):
        load({**data, "execution": {"engine": "local"}, "optimiser": {"device": "cuda"}})
    with pytest.raises(InputError, match="device is 'rocm'; expected one of 'cuda'"):
        load({**data, "optimiser": {"device": "rocm"}})


def test_results_of_cpus_and_gpus_do_not_mix(tmp_path, campaign):
    output = tmp_path / "layouts.h5"
    on_cpu, on_gpu = load(campaign), load(campaign).with_overrides(engine="gpu", workers=1)
    assert leeward.run(on_gpu, output).exit_code == 0
    assert leeward.run(on_gpu, output).computed == 0  # resumes
    before = digests(output)
    with pytest.raises(InputError, match=r"(?s)2 of its results.*optimiser\.device: not set, was 'cu"):
        leeward.run(on_cpu, output)
    for command in (["check", "layouts.h5", "--deep"], ["status"], ["merge", "layouts.h5", "-o", "merged.h5"]):
        done = leeward_here(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert digests(tmp_path / "merged.h5") == before
    assert snapshot(tmp_path / "layouts.run").done == 2
    other = tmp_path / "other.h5"
    assert leeward.run(on_cpu, other).exit_code == 0
    assert not set(digests(other).values()) & set(before.values())
    refused = leeward_here("run", "campaign.yaml", "-o", "other.h5", "--engine", "gpu", cwd=tmp_path)
    assert refused.returncode == 2
    assert "optimiser.device: 'cuda', was not set" in refused.stderr


def test_studies_of_cpus_and_gpus_do_not_mix(tmp_path):
    write_study(tmp_path, 2)
    study, output = load_study(tmp_path / "study.yaml").with_execution(engine="inline"), tmp_path / "study.h5"
    on_gpu = study.with_execution(engine="gpu", workers=1)
    key = next(iter(study.tasks()))
    assert "device" not in study.settings(key)
    assert on_gpu.fingerprint(key) != study.fingerprint(key)
    assert on_gpu.with_execution(engine="inline").fingerprint(key) == study.fingerprint(key)
    for text in (on_gpu.frozen_text(), on_gpu.study_text()):
        again = Study.from_text(text, "again")
        assert (again.execution.engine, again.fingerprint(key)) == ("gpu", on_gpu.fingerprint(key))
    assert list(StudyWork(on_gpu).differences(StudyWork(study), [key])) == [
        "device: 'cuda', was not set (1 of 1 task compared)"
    ]
    assert evaluate(study, output).exit_code == 0
    with pytest.raises(InputError, match="device: 'cuda', was not set"):
        evaluate(on_gpu, output)


def test_a_study_is_evaluated_in_batches(tmp_path):
    write_study(tmp_path, 2)
    done = leeward_here("evaluate", "study.yaml", "--engine", "gpu", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    again = leeward_here("evaluate", "study.yaml", cwd=tmp_path)
    assert again.returncode == 2
    assert "device: not set, was 'cuda'" in again.stderr


def test_defaults_may_not_choose_the_gpu(tmp_path, campaign, monkeypatch):
    (tmp_path / "defaults.yaml").write_text("execution: {engine: gpu}")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "defaults.yaml"))
    with pytest.raises(InputError, match=r"execution\.engine is 'gpu', but defaults must not change numbers"):
        leeward.run(campaign, tmp_path / "layouts.h5")


@pytest.mark.parametrize(
    ("optimiser", "said"),
    [
        ({"recipe": "own_recipe_of_tests:place"}, "optimiser.recipe is own_recipe_of_tests:place, a custom function"),
        ({"objective": "own_recipe_of_tests:wait"}, "optimiser.objective is own_recipe_of_tests:wait, a custom class"),
        ({"time_budget_s": 5}, "optimiser.time_budget_s is given, but all layouts are computed together"),
    ],
)
def test_what_needs_a_cpu_is_refused_before_a_run(tmp_path, optimiser, said):
    path = make_campaign(tmp_path, optimiser=optimiser, execution={"engine": "gpu"})
    with pytest.raises(InputError) as refused:
        load(path).check()
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    with pytest.raises(InputError, match="the engine gpu cannot use it"):
        leeward.run(path, tmp_path / "layouts.h5")
    assert not (tmp_path / "layouts.run").exists()
    load(path).with_overrides(engine="local").check()


def test_a_preview_does_not_measure_the_cores(tmp_path, campaign):
    done = leeward_here("run", "campaign.yaml", "--engine", "gpu", "--workers", 1, "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "recipe smart_start, without refinement, on GPUs" in done.stdout
    assert "time: not known; only the cores of this machine can be measured, not its GPUs" in done.stdout
    assert "memory:" not in done.stdout


def test_a_cpu_computes_no_result_of_a_gpu(campaign):
    """A result has the fingerprint of its task, whatever computes it."""
    from leeward.campaign.work import LayoutWork
    from leeward.errors import LeewardError

    work = LayoutWork(load(campaign).with_overrides(engine="gpu"))
    with pytest.raises(LeewardError, match="is computed on a GPU"):
        work.compute(Key(0, 0, 0), lambda **facts: None)


# --- no GPU ---


@pytest.mark.parametrize("command", [["run", "campaign.yaml"], ["run", "campaign.yaml", "--dry-run"]])
def test_a_machine_without_a_gpu_is_named_in_one_line(tmp_path, campaign, monkeypatch, command):
    monkeypatch.undo()
    monkeypatch.setenv(gpu.VISIBLE, "")
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    gpu._count_gpus.cache_clear()
    done = leeward_here(*command, "--engine", "gpu", cwd=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if "the engine gpu cannot run: " in line]
    assert line.startswith(("leeward: ", "error: "))
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "layouts.run").exists()


@pytest.mark.parametrize("probe", ["import os; os.abort()", "raise SystemExit('broken driver')", "print('nonsense')"])
def test_a_driver_that_crashes_does_not_crash_the_command(monkeypatch, probe):
    monkeypatch.undo()
    monkeypatch.setattr(gpu, "PROBE", probe)
    with pytest.raises(InputError, match=r"the GPUs of this machine cannot be listed \("):
        gpu._count_gpus(probe)
