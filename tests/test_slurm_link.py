"""How many jobs there are, and what becomes of a run when they come to nothing; with a SLURM that is on paper."""

import asyncio
import itertools
from concurrent.futures import Future
from types import SimpleNamespace
from unittest import mock

import pytest

from cluster_cases import lives
from leeward.campaign.execution import SlurmSpec
from leeward.cli.run_display import sentence
from leeward.engines.cluster import slurm
from leeward.engines.cluster.members import Member
from leeward.engines.engine import EngineLostError
from leeward.errors import LeewardError
from leeward.runs.stop import StopNowError
from leeward.store.directory import space
from leeward.store.paths import RunPaths
from run_cases import PATIENCE_S


class PaperJobs:
    """What dask-jobqueue would do: a job for each entry of its specification. queue: what squeue prints."""

    scheduler_address = "paper:1"
    job_name = "leeward-paper"
    loop = None

    def __init__(self, **_):
        self.worker_spec = {}
        self.workers = {}
        self._i = 0
        self._numbers = itertools.count(1)
        self.submitted = 0
        self.scheduler = SimpleNamespace(workers={})

    def close(self, timeout):
        self.workers.clear()

    def new_worker_spec(self):
        return {f"job-{self._i}": {}}

    async def _correct_state(self):
        for name in self.worker_spec.keys() - self.workers.keys():
            self.workers[name] = SimpleNamespace(job_id=str(next(self._numbers)), status=None)
            self.submitted += 1
        for name in self.workers.keys() - self.worker_spec.keys():
            del self.workers[name]


class PaperSlurm:
    """A link, its jobs, and workers that come or do not. Its clock stands still unless it is moved."""

    def __init__(self, folder, monkeypatch, **settings):
        self.told = []
        self._now_s = 1000.0
        self._queue = folder / "queue"
        self._queue.write_text("")
        for name, does in (("squeue", f"cat {self._queue}"), ("scancel", f'echo "$*" >> {folder}/cancelled')):
            (folder / name).write_text(f"#!/bin/sh\n{does}\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        monkeypatch.setattr(slurm, "_Cluster", PaperJobs)
        monkeypatch.setattr(slurm, "Client", lambda *_, **__: SimpleNamespace(status="running"))
        monkeypatch.setattr(slurm, "time", SimpleNamespace(monotonic=lambda: self._now_s))
        monkeypatch.setattr(slurm.SlurmLink, "_run", self._run)
        paths = RunPaths(folder / "layouts.h5")
        space.prepare_folders(paths)
        self.link = slurm.SlurmLink(SlurmSpec(tls=False, **settings), paths, self._tell)
        self.jobs = self.link._cluster
        self.members = []

    def cancelled(self):
        """What scancel was asked for."""
        path = self._queue.with_name("cancelled")
        return path.read_text().splitlines() if path.exists() else []

    def _run(self, action):
        self.link._running = Future()
        try:
            self.link._running.set_result(asyncio.run(action))
        except Exception as error:
            self.link._running.set_exception(error)

    def _tell(self, event, **facts):
        self.told.append({"event": event, **facts})

    def pass_time(self, times=1):
        """Long enough for a look at the queue, which all jobs have left but those of members, and for what follows."""
        for _ in range(times):
            self.look("".join(f"{member.job}|RUNNING|None|1:00:00\n" for member in self.members), left=100)

    def look(self, queue, left):
        """What squeue prints is looked at, and then what is to be done with so many tasks left."""
        self._queue.write_text(queue)
        for seconds in (11.0, 2.0, 2.0):
            self._now_s += seconds
            self.link.adjust(left, self.members)

    def come(self, count):
        """All jobs are submitted, and so many of them come to work."""
        self.link.adjust(100, self.members)
        for name, job in list(self.jobs.workers.items())[:count]:
            member = Member(f"paper:{job.job_id}", name=name, job=job.job_id, slots=1, heard=1.0)
            self.members.append(member)
            self.link.joined(member)


def test_jobs_that_never_come_to_work_end_a_run_in_which_nobody_is(tmp_path, monkeypatch):
    paper = PaperSlurm(tmp_path, monkeypatch, jobs="1")
    with pytest.raises(EngineLostError, match=r"3 jobs in a row ended .* the last one, 3: it left no log"):
        paper.pass_time(20)


def test_a_node_that_is_no_good_does_not_end_a_run_in_which_others_are_at_work(tmp_path, monkeypatch):
    """SLURM gives it every job that is to take the place of the last one: it is always free."""
    paper = PaperSlurm(tmp_path, monkeypatch, jobs="3")
    paper.come(2)
    paper.pass_time(20)
    said = [event for event in paper.told if event["event"] == "jobs-in-vain"]
    assert len(said) >= 2
    words = sentence(said[0])
    assert words.startswith("3 jobs in a row ended before their worker could be used; the last one, ")
    assert "other jobs are working" in words
    assert paper.jobs.submitted < 3 + 20  # it waits before it tries again
    paper.members.clear()
    with pytest.raises(EngineLostError, match="3 jobs in a row"):
        paper.pass_time(20)


def test_workers_that_were_of_use_are_replaced_and_not_counted_as_jobs_in_vain(tmp_path, monkeypatch):
    paper = PaperSlurm(tmp_path, monkeypatch, jobs="4")
    paper.come(4)
    paper.pass_time()
    for member in paper.members[:3]:
        member.unfit = "the disk rejects its writes, but accepts those of other workers"
    paper.pass_time()
    assert paper.jobs.submitted == 4 + 3
    assert [event for event in paper.told if event["event"] != "not-encrypted"] == []


@pytest.mark.parametrize("slots", [0, 1])
def test_jobs_whose_worker_comes_to_nothing_are_not_replaced_for_ever(tmp_path, monkeypatch, slots):
    """It never says who it is, as leeward is not there; or its worker processes cannot start."""
    paper = PaperSlurm(tmp_path, monkeypatch, jobs="1")

    def go_on():
        for name, job in paper.jobs.workers.items():
            member = Member(f"paper:{job.job_id}", unfit="No module named 'leeward'")
            paper.jobs.scheduler.workers[member.address] = SimpleNamespace(name=name)
            if slots:
                member.name, member.job, member.slots = name, job.job_id, slots
                paper.link.joined(member)
            paper.members[:] = [member]
        paper.look("".join(f"{job.job_id}|RUNNING|None|1:00:00\n" for job in paper.jobs.workers.values()), left=100)

    with pytest.raises(EngineLostError, match=r"3 jobs in a row ended .*: No module named 'leeward'"):
        [go_on() for _ in range(20)]
    assert paper.jobs.submitted <= 4


def test_a_worker_that_comes_when_its_job_is_told_to_end_gets_no_tasks(tmp_path, monkeypatch):
    paper = PaperSlurm(tmp_path, monkeypatch, jobs="0:1")
    paper.link.adjust(1, [])
    ((name, job),) = paper.jobs.workers.items()
    paper.look(f"{job.job_id}|PENDING|Resources|1:00:00\n", left=1)
    assert paper.jobs.workers
    paper.look(f"{job.job_id}|PENDING|Resources|1:00:00\n", left=0)
    assert not paper.jobs.workers
    late = Member("paper:1", name=name, job=job.job_id, slots=1)
    paper.link.joined(late)
    assert not late.is_ready


def test_a_scheduler_that_cannot_be_started_is_said_in_one_line_and_leaves_nothing(tmp_path):
    paths = RunPaths(tmp_path / "layouts.h5")
    space.prepare_folders(paths)
    with pytest.raises(LeewardError, match=r"the Dask scheduler .* 'nope0' is not a valid network interface"):
        slurm.SlurmLink(SlurmSpec(interface="nope0", tls=False), paths, lambda *_, **__: None)
    assert not list(paths.root.glob(".tls-*"))


@pytest.mark.parametrize("command", ["sbatch", "squeue"])
def test_a_command_of_slurm_that_does_not_end_is_ended(tmp_path, monkeypatch, command):
    pid = tmp_path / "pid"
    (tmp_path / command).write_text(f"#!/bin/sh\necho $$ > {pid}.new\nmv {pid}.new {pid}\nexec sleep 3600\n")
    (tmp_path / command).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(slurm, "ANSWER_S", 0.5)

    async def call():
        with pytest.raises(RuntimeError, match=f"{command} has not answered for 0.5 s"):
            await slurm._Job._call([command])
        while pid.exists() and lives(int(pid.read_text())):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # asyncio closes the pipes; a machine that is too slow for it only warns

    asyncio.run(asyncio.wait_for(call(), PATIENCE_S))


def test_who_does_not_wait_for_the_end_of_a_run_leaves_no_jobs_and_no_credentials(tmp_path, monkeypatch):
    paper = PaperSlurm(tmp_path, monkeypatch, jobs="2")
    paper.come(2)
    assert list((tmp_path / "layouts.run").glob(".tls-*"))
    paper.link.client.close = mock.Mock(side_effect=StopNowError)
    with pytest.raises(StopNowError):
        paper.link.close()
    assert paper.cancelled() == ["--quiet --name=leeward-paper", "--quiet 1 2"]
    assert not list((tmp_path / "layouts.run").glob(".tls-*"))


def test_the_number_of_a_job_is_found_in_what_sbatch_prints():
    """A cluster may have an sbatch of its own, which says more."""
    number = slurm._Job._job_id_from_submit_output
    assert number(None, "You have used 40 of 100 hours.\nSubmitted batch job 1234 on cluster blue\n") == "1234"
    assert number(None, "sbatch: Submitted batch job 1234\n") == number(None, "1234;blue\n") == "1234"
    with pytest.raises(RuntimeError, match="sbatch printed 'queued as 17'; expected: Submitted batch job NUMBER"):
        number(None, "queued as 17\n")
