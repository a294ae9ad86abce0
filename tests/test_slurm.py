"""On a real SLURM: jobs are cancelled, reach their time limit, never start; and none of it costs a result.

`make test-slurm` starts one. The suite over all engines, tests/test_engines.py, runs there as well.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from cluster_cases import lives, worker_processes
from run_cases import LEEWARD, calls, digests, leeward, make_campaign, shards, start, until

pytestmark = pytest.mark.skipif(
    not (os.environ.get("SLURM_CONF") and shutil.which("sbatch")), reason="no SLURM here; make test-slurm starts one"
)
SMALL = ("--engine", "slurm", "--cores", "1", "--memory", "300MB")
NODES = 3


def queue(*options, format="%i|%T|%j"):
    answer = subprocess.run(
        ["squeue", "--noheader", f"--format={format}", *options], capture_output=True, text=True, timeout=30
    )
    return [line.split("|") for line in answer.stdout.splitlines()]


def running():
    """Numbers of jobs of a run that are at work, the oldest first; other jobs are not ours to touch."""
    return sorted(int(number) for number, state, name in queue() if state == "RUNNING" and name.startswith("leeward-"))


@pytest.fixture(autouse=True)
def _nothing_stays():
    """Every job ends with its run; one that does not is shown, and is not left to the next test."""
    yield
    try:
        until(lambda: not [name for _, _, name in queue() if name.startswith("leeward-")], "all jobs are gone")
    finally:
        subprocess.run(["scontrol", "show", "jobs"])
        for number, _, name in queue():
            if name.startswith("leeward-"):
                subprocess.run(["scancel", number])


def ended(process, folder, code=0, seconds=240):
    try:
        found = process.wait(seconds)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    assert found == code, (folder / "output.txt").read_text()
    return (folder / "output.txt").read_text()


def test_slurm_job_cancelled_in_the_middle_is_replaced_and_costs_only_the_task_in_hand(tmp_path):
    orders = {"all": "until=go", 0: "wait=1.5", 1: "wait=1.5", 2: "wait=1.5"}  # too long to travel together
    campaign = make_campaign(tmp_path, seeds=16, orders=orders, execution={"timeout_s": 600})
    process = start("run", campaign, *SMALL, "--jobs", 2, "--walltime", "0:10:00", cwd=tmp_path)
    until(lambda: len(shards(tmp_path / "layouts.run")) == 3 and len(calls(tmp_path)) == 5, "three results", 120)
    before = running()
    assert len(before) == 2
    subprocess.run(["scancel", str(before[0])], check=True)
    until(lambda: len(set(running()) - set(before)) == 1, "a job in its place", 120)
    (tmp_path / "go").touch()
    output = ended(process, tmp_path)
    assert len(digests(tmp_path / "layouts.h5")) == 16
    assert len(calls(tmp_path)) <= 16 + 2  # it, and one that may have changed hands meanwhile
    assert "is gone" in output
    assert "workers store their results" in output


def test_slurm_job_that_reaches_its_time_limit_is_replaced_and_its_task_is_not_to_blame(tmp_path):
    campaign = make_campaign(tmp_path, seeds=3, orders={"1": "wait=300"}, execution={"timeout_s": 600, "retries": 0})
    process = start("run", campaign, *SMALL, "--jobs", 1, "--walltime", "0:01:00", cwd=tmp_path)
    until(lambda: 1 in calls(tmp_path), "the long task")
    first = running()
    (tmp_path / "orders" / "1").unlink()  # the next time it is a short one
    output = ended(process, tmp_path)
    assert len(digests(tmp_path / "layouts.h5")) == 3
    assert "its job has reached its time limit; it is tried again" in output
    assert len(first) == 1
    retried = [json.loads(line) for line in (tmp_path / "layouts.run" / "audit.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in retried if line["event"] == "retry"] == ["cut-off"]


def test_slurm_jobs_get_no_task_that_would_not_end_in_their_time(tmp_path):
    campaign = make_campaign(tmp_path, seeds=14, orders={"all": "wait=8"}, execution={"timeout_s": 60, "retries": 0})
    process = start("run", campaign, *SMALL, "--jobs", 2, "--walltime", "0:01:00", cwd=tmp_path)
    seen = set()

    def is_over():
        seen.update(running())
        time.sleep(1)
        return process.poll() is not None

    try:
        until(is_over, "the run is over", 400)
    finally:
        output = ended(process, tmp_path)
    assert len(digests(tmp_path / "layouts.h5")) == 14
    assert len(seen) > 2  # two at a time, replaced before their end
    assert sorted(calls(tmp_path)) == list(range(14))  # nothing was begun in vain
    assert "tried again" not in output


def test_slurm_jobs_grow_and_shrink_with_the_work(tmp_path):
    orders = {"all": "until=go", 17: "until=last"}
    campaign = make_campaign(tmp_path, seeds=18, orders=orders, execution={"timeout_s": 600})
    process = start("run", campaign, *SMALL, "--jobs", "1:3", "--walltime", "0:10:00", cwd=tmp_path)
    until(lambda: len(running()) == NODES, "three jobs while there is much to do", 120)
    (tmp_path / "go").touch()
    until(lambda: len(running()) == 1, "one job for the one task that is left", 120)
    assert len(shards(tmp_path / "layouts.run")) == 17
    (tmp_path / "last").touch()
    ended(process, tmp_path)
    assert len(digests(tmp_path / "layouts.h5")) == 18


def test_slurm_coordinator_killed_its_jobs_end_by_themselves_and_the_same_command_goes_on(tmp_path):
    orders = {"all": "until=go", 0: "", 1: "", 2: ""}
    campaign = make_campaign(tmp_path, seeds=10, orders=orders, execution={"timeout_s": 600})
    command = ("run", campaign, *SMALL, "--jobs", 2, "--walltime", "0:10:00")
    process = start(*command, cwd=tmp_path)
    until(lambda: len(shards(tmp_path / "layouts.run")) == 3 and len(calls(tmp_path)) == 5, "three results", 120)
    jobs, orphans = running(), worker_processes(tmp_path)
    process.kill()
    process.wait()
    again = start(*command, cwd=tmp_path)
    until(lambda: not any(map(lives, orphans)), "what the first one has started ends", 120)
    (tmp_path / "go").touch()
    ended(again, tmp_path)
    assert len(digests(tmp_path / "layouts.h5")) == 10
    assert len(calls(tmp_path)) == 10 + 2
    assert not list((tmp_path / "layouts.run").glob(".tls-*"))
    until(lambda: not set(jobs) & set(running()), "the orphaned jobs have ended", 120)


def test_slurm_credentials_are_private_for_the_run_only_and_needed(tmp_path):
    campaign = make_campaign(tmp_path, seeds=6, orders={"all": "until=go", 0: ""}, execution={"timeout_s": 600})
    process = start("run", campaign, *SMALL, "--jobs", 1, "--walltime", "0:10:00", "--json", cwd=tmp_path)
    until(lambda: shards(tmp_path / "layouts.run"), "a result", 120)
    (folder,) = (tmp_path / "layouts.run").glob(".tls-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    script = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True).stdout
    host, port = re.search(rf"tls://([\d.]+):(\d+) .*{re.escape(str(folder))}", script).groups()
    _demand_refusal(host, int(port), folder / "ca_file.pem")
    assert process.poll() is None
    (tmp_path / "go").touch()
    ended(process, tmp_path)
    assert not folder.exists()


def _demand_refusal(host, port, authority):
    """Somebody who reaches the port, and even knows the authority, gets no further without a certificate."""
    probe = (
        "import sys; from distributed import Client, Security\n"
        "kind, address, authority = sys.argv[1:]\n"
        "security = Security(tls_ca_file=authority, require_encryption=True) if kind == 'tls' else None\n"
        "Client(f'{kind}://{address}', security=security, timeout=5)\n"
    )
    for kind in ("tcp", "tls"):
        words = [LEEWARD[0], "-c", probe, kind, f"{host}:{port}", str(authority)]
        answer = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert answer.returncode != 0, f"{kind} was let in"


def test_slurm_that_refuses_jobs_says_why(tmp_path):
    campaign = make_campaign(tmp_path, seeds=2, execution={"timeout_s": 60})
    found = leeward("run", campaign, *SMALL, "--jobs", 1, "--partition", "nowhere", cwd=tmp_path)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1].startswith("leeward: no job could be started: sbatch: error: ")
    assert "Traceback" not in found.stderr


def test_slurm_jobs_that_never_come_to_work_end_the_run_with_their_log(tmp_path):
    campaign = make_campaign(
        tmp_path, seeds=2, execution={"timeout_s": 60, "slurm": {"prologue": ["echo no such module >&2", "exit 3"]}}
    )
    found = leeward("run", campaign, *SMALL, "--jobs", 1, cwd=tmp_path, timeout=240)
    assert found.returncode == 3, found.stderr
    assert "3 jobs in a row ended before their worker could be used" in found.stdout
    assert "no such module" in found.stdout
    assert "To go on" in found.stdout


def test_slurm_script_goes_back_into_the_queue_until_the_campaign_is_complete(tmp_path):
    campaign = make_campaign(tmp_path, seeds=26, orders={"all": "wait=8"}, execution={"timeout_s": 60})
    options = ("--cores", 2, "--memory", "500MB", "--walltime", "0:02:00")
    made = leeward("slurm-script", campaign, *options, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    (tmp_path / "job.sh").write_text(made.stdout)
    submitted = subprocess.run(["sbatch", "job.sh"], cwd=tmp_path, capture_output=True, text=True, check=True)
    number = submitted.stdout.split()[-1]
    until(lambda: (tmp_path / "layouts.h5").exists() or not queue("--jobs", number), "a first end", 300)
    until(lambda: not queue("--jobs", number), "the job is over", 600)
    log = (tmp_path / f"leeward-layouts-{number}.log").read_text()
    assert len(digests(tmp_path / "layouts.h5")) == 26, log
    assert 1 <= log.count("back into the queue") <= 8, log  # a job has half a minute or more between two
    assert "26 of 26 layouts are there" in log


def test_slurm_script_whose_job_is_cancelled_stays_cancelled(tmp_path):
    campaign = make_campaign(tmp_path, seeds=40, orders={"all": "wait=2"}, execution={"timeout_s": 60})
    made = leeward("slurm-script", campaign, "--cores", 1, "--memory", "300MB", "--walltime", "0:05:00", cwd=tmp_path)
    (tmp_path / "job.sh").write_text(made.stdout)
    submitted = subprocess.run(["sbatch", "job.sh"], cwd=tmp_path, capture_output=True, text=True, check=True)
    number = submitted.stdout.split()[-1]
    until(lambda: shards(tmp_path / "layouts.run"), "a result", 120)
    subprocess.run(["scancel", number], check=True)
    until(lambda: not queue("--jobs", number), "the job is gone", 60)
    time.sleep(8)  # longer than a requeued job waits
    assert not queue("--jobs", number)
    assert len(shards(tmp_path / "layouts.run")) >= 1
