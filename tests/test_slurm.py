"""On a real SLURM: jobs are cancelled, reach their time limit, never start; and none of it costs a result.

`make test-slurm` starts one. The suite over all engines, tests/test_engines.py, runs there as well. Tests may run side
by side: each one looks only at jobs that were submitted from its own folder.
"""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import run_cases
from cluster_cases import ONE_AT_A_TIME, PATIENT, lives, worker_processes
from leeward.engines.cluster.slurm import seconds_left
from run_cases import LEEWARD, PATIENCE_S, calls, digests, make_campaign, shards, until

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        not (os.environ.get("SLURM_CONF") and shutil.which("sbatch")),
        reason="no SLURM here; make test-slurm starts one",
    ),
]
SMALL = ("--engine", "slurm", "--cores", "1", "--memory", "300MB")
MOST_JOBS = 3
# The coordinator looks at the queue every 2 s instead of every 10 s.
BEFORE = f"{PATIENT} {ONE_AT_A_TIME} from leeward.engines.cluster import slurm; slurm.QUEUE_S = 2.0;"
leeward = functools.partial(run_cases.leeward, before=BEFORE)
start = functools.partial(run_cases.start, before=BEFORE)


def queue(*options, format):
    """Return the lines of squeue, split at the bars. A busy SLURM is asked again. A forgotten job has no line."""

    def answer():
        said = subprocess.run(
            ["squeue", "--noheader", f"--format={format}", *options], capture_output=True, text=True, timeout=PATIENCE_S
        )
        return said if said.returncode == 0 or "Invalid job id" in said.stderr else None

    return [line.split("|") for line in until(answer, "squeue answers").stdout.splitlines()]


def jobs_of(folder):
    """Return number and state of each job that was submitted from the folder."""
    lines = queue(format="%i|%T|%Z")
    return [(int(number), state) for number, state, place in lines if place == str(folder.resolve())]


def limit_of(job):
    """Return the time limit of a job in seconds."""
    ((limit,),) = queue("--jobs", str(job), format="%l")
    return seconds_left(limit)


def set_limit(job, minutes):
    """Change the time limit of a job. SLURM refuses while the job is just beginning or ending."""
    command = ["scontrol", "update", f"JobId={job}", f"TimeLimit={minutes}"]
    until(lambda: subprocess.run(command, timeout=PATIENCE_S).returncode == 0, "its time limit is changed")


def leave(job, seconds):
    """Set the time limit of a job so that it has this time left, or up to a minute more: limits are whole minutes."""
    ((used,),) = queue("--jobs", str(job), format="%M")
    set_limit(job, int((seconds_left(used) + seconds) // 60) + 1)


def state_of(job):
    """Return the state of a job, or None: SLURM forgets a job some minutes after its end."""
    said = subprocess.run(
        ["scontrol", "--oneliner", "show", "job", str(job)], capture_output=True, text=True, timeout=PATIENCE_S
    )
    found = re.search(r"\bJobState=(\w+)", said.stdout)
    assert found or "Invalid job id" in said.stderr, said.stderr
    return found and found[1]


def processes_of(job):
    """Return the ids of all processes of a job, also of those that have lost their parent."""
    marks = {f"SLURM_JOB_ID={job}".encode(), f"SLURM_CONF={os.environ['SLURM_CONF']}".encode()}
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if marks <= set(path.read_bytes().split(b"\0")):
                found.append(int(path.parent.name))
    return found


def running(folder):
    """Return the numbers of the jobs of a run that are at work, the oldest first."""
    return sorted(number for number, state in jobs_of(folder) if state == "RUNNING")


@pytest.fixture(autouse=True)
def _nothing_stays(tmp_path):
    """Every job ends with its run. One that does not is shown, and ended."""
    yield
    try:
        until(lambda: not jobs_of(tmp_path), "all jobs are gone")
    finally:
        for number, _ in jobs_of(tmp_path):
            subprocess.run(["scontrol", "show", "job", str(number)])
            subprocess.run(["scancel", str(number)])


def ended(process, folder, code=0, seconds=PATIENCE_S):
    try:
        found = process.wait(seconds)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)
    assert found == code, (folder / "output.txt").read_text()
    return (folder / "output.txt").read_text()


def test_slurm_job_cancelled_in_the_middle_is_replaced_and_costs_only_the_task_in_hand(tmp_path):
    orders = {"all": "until=go", 0: "", 1: "", 2: ""}
    campaign = make_campaign(tmp_path, seeds=16, orders=orders, execution={"timeout_s": 600})
    process = start("run", campaign, *SMALL, "--jobs", 2, "--walltime", "0:30:00", cwd=tmp_path)
    until(lambda: len(shards(tmp_path / "layouts.run")) == 3 and len(calls(tmp_path)) == 5, "three results")
    before = running(tmp_path)
    assert len(before) == 2
    subprocess.run(["scancel", str(before[0])], check=True)
    until(lambda: len(set(running(tmp_path)) - set(before)) == 1, "a job in its place")
    (tmp_path / "go").touch()
    output = ended(process, tmp_path)
    assert len(digests(tmp_path / "layouts.h5")) == 16
    assert len(calls(tmp_path)) <= 16 + 2  # it, and one that may have changed hands meanwhile
    assert "is gone" in output
    assert "workers store their results" in output


def test_slurm_job_that_reaches_its_time_limit_is_replaced_and_its_task_is_not_to_blame(tmp_path):
    orders = {"1": "until=never"}
    campaign = make_campaign(tmp_path, seeds=3, orders=orders, execution={"timeout_s": 1800, "retries": 0})
    process = start("run", campaign, *SMALL, "--jobs", 1, "--walltime", "0:30:00", cwd=tmp_path)
    until(lambda: 1 in calls(tmp_path), "the long task")
    (first,) = running(tmp_path)
    (tmp_path / "orders" / "1").unlink()  # the next time it is a short one
    assert limit_of(first) == 1800
    leave(first, seconds=0)  # the coordinator sees it in time: SLURM grants another minute (OverTimeLimit)
    output = ended(process, tmp_path)
    assert state_of(first) in ("TIMEOUT", None)
    assert len(digests(tmp_path / "layouts.h5")) == 3
    assert sorted(calls(tmp_path)) == [0, 1, 1, 2]
    assert "its job has reached its time limit; retrying" in output
    retried = [json.loads(line) for line in (tmp_path / "layouts.run" / "audit.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in retried if line["event"] == "retry"] == ["cut-off"]


def test_slurm_jobs_get_no_task_that_would_not_end_in_their_time(tmp_path):
    campaign = make_campaign(tmp_path, seeds=100, orders={"all": "wait=8"}, execution={"timeout_s": 600, "retries": 0})
    process = start("run", campaign, *SMALL, "--jobs", 2, "--walltime", "0:30:00", cwd=tmp_path)
    until(lambda: len(shards(tmp_path / "layouts.run")) >= 2, "it is known how long tasks take")
    first = until(lambda: len(running(tmp_path)) == 2 and running(tmp_path), "two jobs")
    for job in first:
        leave(job, seconds=30)
    until(lambda: not set(first) & set(running(tmp_path)), "both have ended")
    until(lambda: len(running(tmp_path)) == 2, "others are in their place")
    assert len(shards(tmp_path / "layouts.run")) < 100
    assert "TIMEOUT" not in [state_of(job) for job in first]  # they were ended before
    (tmp_path / "orders" / "all").write_text("")  # the other tasks are quick
    output = ended(process, tmp_path)
    assert len(digests(tmp_path / "layouts.h5")) == 100
    assert sorted(calls(tmp_path)) == list(range(100))  # nothing was begun in vain
    assert "retrying" not in output


def test_slurm_jobs_grow_and_shrink_with_the_work(tmp_path):
    orders = {"all": "until=go", 17: "until=last"}
    campaign = make_campaign(tmp_path, seeds=18, orders=orders, execution={"timeout_s": 600})
    process = start("run", campaign, *SMALL, "--jobs", f"1:{MOST_JOBS}", "--walltime", "0:30:00", cwd=tmp_path)
    until(lambda: len(running(tmp_path)) == MOST_JOBS, "three jobs while there is much to do")
    (tmp_path / "go").touch()
    until(lambda: len(running(tmp_path)) == 1, "one job for the one task that is left")
    assert len(shards(tmp_path / "layouts.run")) == 17
    (tmp_path / "last").touch()
    ended(process, tmp_path)
    assert len(digests(tmp_path / "layouts.h5")) == 18


def test_slurm_coordinator_killed_its_jobs_end_by_themselves_and_the_same_command_goes_on(tmp_path):
    orders = {"all": "until=go", 0: "", 1: "", 2: ""}
    campaign = make_campaign(tmp_path, seeds=10, orders=orders, execution={"timeout_s": 600})
    command = ("run", campaign, *SMALL, "--jobs", 2, "--walltime", "0:30:00")
    process = start(*command, cwd=tmp_path)
    until(lambda: len(shards(tmp_path / "layouts.run")) == 3 and len(calls(tmp_path)) == 5, "three results")
    jobs, orphans = running(tmp_path), worker_processes(tmp_path)
    process.kill()
    process.wait()
    again = start(*command, cwd=tmp_path)
    until(lambda: not any(map(lives, orphans)), "what the first one has started ends")
    (tmp_path / "go").touch()
    ended(again, tmp_path)
    assert len(digests(tmp_path / "layouts.h5")) == 10
    assert len(calls(tmp_path)) == 10 + 2
    assert not list((tmp_path / "layouts.run").glob(".tls-*"))
    until(lambda: not set(jobs) & set(running(tmp_path)), "the orphaned jobs have ended")


def test_slurm_credentials_are_private_for_the_run_only_and_needed(tmp_path):
    campaign = make_campaign(tmp_path, seeds=6, orders={"all": "until=go", 0: ""}, execution={"timeout_s": 600})
    process = start("run", campaign, *SMALL, "--jobs", 1, "--walltime", "0:30:00", "--json", cwd=tmp_path)
    until(lambda: shards(tmp_path / "layouts.run"), "a result")
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
    """Nobody gets in without a certificate, even with the port and the authority. A slow machine refuses as well."""
    probe = (
        "import sys; from distributed import Client, Security\n"
        "kind, address, authority = sys.argv[1:]\n"
        "security = Security(tls_ca_file=authority, require_encryption=True) if kind == 'tls' else None\n"
        "Client(f'{kind}://{address}', security=security, timeout=5)\n"
    )
    for kind in ("tcp", "tls"):
        words = [LEEWARD[0], "-c", probe, kind, f"{host}:{port}", str(authority)]
        answer = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
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
    found = leeward("run", campaign, *SMALL, "--jobs", 1, cwd=tmp_path)
    assert found.returncode == 3, found.stderr
    assert "3 jobs in a row ended before their worker could be used" in found.stdout
    assert "no such module" in found.stdout
    assert "To resume" in found.stdout


def submitted(folder, campaign, *options):
    """Submit the script that is printed with these options, and return the number of its job."""
    made = leeward("slurm-script", campaign, *options, cwd=folder)
    assert made.returncode == 0, made.stderr
    (folder / "job.sh").write_text(made.stdout)
    said = subprocess.run(["sbatch", "job.sh"], cwd=folder, capture_output=True, text=True, check=True)
    return said.stdout.split()[-1]


def test_slurm_script_goes_back_into_the_queue_until_the_campaign_is_complete(tmp_path):
    campaign = make_campaign(tmp_path, seeds=8, orders={"all": "until=go"}, execution={"timeout_s": 1800})
    job = submitted(tmp_path, campaign, "--cores", 2, "--memory", "500MB", "--walltime", "0:30:00")
    log = tmp_path / f"leeward-layouts-{job}.log"
    until(lambda: len(calls(tmp_path)) == 2, "two tasks are in hand")
    assert limit_of(job) == 1800
    leave(job, seconds=300)  # SLURM warns it now
    until(lambda: "stopping: waiting for 2 running tasks" in log.read_text(), "it is warned")
    (tmp_path / "go").touch()
    until(lambda: "requeueing" in log.read_text(), "it goes back")
    assert len(shards(tmp_path / "layouts.run")) == 2
    set_limit(job, 30)  # until all is done
    until(lambda: not jobs_of(tmp_path), "the job is over")
    text = log.read_text()
    assert len(digests(tmp_path / "layouts.h5")) == 8, text
    assert text.count("requeueing") == 1, text
    assert sorted(calls(tmp_path)) == list(range(8))
    assert "8 of 8 layouts done, 6 computed now" in text


def test_slurm_script_whose_job_is_cancelled_stays_cancelled(tmp_path):
    orders = {"all": "until=never", 0: ""}
    campaign = make_campaign(tmp_path, seeds=4, orders=orders, execution={"timeout_s": 1800})
    job = submitted(tmp_path, campaign, "--cores", 1, "--memory", "300MB", "--walltime", "0:10:00")
    until(lambda: shards(tmp_path / "layouts.run"), "a result")
    subprocess.run(["scancel", job], check=True)
    until(lambda: not processes_of(job), "nobody is left who could put it back into the queue")
    until(lambda: state_of(job) != "COMPLETING", "SLURM has seen that, too")
    assert state_of(job) in ("CANCELLED", None)
    assert not jobs_of(tmp_path)
    assert len(shards(tmp_path / "layouts.run")) == 1
