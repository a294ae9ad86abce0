"""`leeward slurm-script`: what it prints and does. tests/test_slurm.py submits it to a real SLURM."""

import os
import shlex
import signal
import subprocess

import pytest

from run_cases import PATIENCE_S, leeward_here, make_campaign, until


def printed(folder, *options, campaign="campaign.yaml"):
    done = leeward_here("slurm-script", campaign, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def directives(text):
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]


def command(text):
    """The line that runs the campaign."""
    (line,) = [line for line in text.splitlines() if " run " in line and line.endswith(" &")]
    return shlex.split(line.removesuffix(" &"))


def test_a_batch_file_is_ready_for_sbatch(tmp_path):
    make_campaign(tmp_path)
    text = printed(tmp_path, "--cores", 32, "--memory", "64GB", "--walltime", "2:00:00", "--partition", "standard")
    asked = ["--cpus-per-task=32", "--mem=61036M", "--time=2:00:00", "--partition=standard", "--requeue"]
    assert set(asked) <= set(directives(text))
    assert "--signal=B:TERM@300" in directives(text)
    words = command(text)
    assert words[1:3] == ["run", "campaign.yaml"]
    assert words[words.index("--workers") :][:2] == ["--workers", "32"]
    assert "--take-over" in words  # from a job whose node has died
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0


def test_odd_names_and_folders_stay_whole(tmp_path):
    place = tmp_path / "it's my $HOME"
    place.mkdir()
    make_campaign(place)
    text = printed(place, "-o", "my layouts.h5", "--seeds", "0:5")
    assert "--job-name=leeward-my_layouts" in directives(text)
    assert f"cd {shlex.quote(str(place))} || exit 1" in text.splitlines()
    assert command(text)[3:7] == ["-o", "my layouts.h5", "--seeds", "0:5"]
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0


def test_settings_come_from_the_campaign_and_the_defaults(tmp_path, monkeypatch):
    slurm = {"cores": 8, "memory": "1.5GiB", "prologue": ["module load python"], "options": ["--qos=long"]}
    make_campaign(tmp_path, execution={"slurm": slurm})
    (tmp_path / "defaults.yaml").write_text("execution: {slurm: {account: wind, cores: 2}}")
    monkeypatch.setenv("LEEWARD_DEFAULTS", str(tmp_path / "defaults.yaml"))
    text = printed(tmp_path)
    assert {"--cpus-per-task=8", "--mem=1536M", "--account=wind", "--qos=long"} <= set(directives(text))
    assert "module load python" in text.splitlines()


def test_a_job_that_starts_others_is_a_small_one(tmp_path):
    make_campaign(tmp_path, execution={"slurm": {"options": ["--exclusive"]}})
    text = printed(tmp_path, "--engine", "slurm", "--jobs", "2:8", "--cores", 64, "--memory", "100GB")
    assert "--cpus-per-task=1" in directives(text)
    assert "--exclusive" not in directives(text)
    words = command(text)
    assert words[words.index("--engine") :][:8] == (
        ["--engine", "slurm", "--jobs", "2:8", "--cores", "64", "--memory", "100GB"]
    )


@pytest.mark.parametrize(
    ("own", "asked"),
    [([], ["--gres=gpu:1"]), (["--gres=gpu:4"], ["--gres=gpu:4"]), (["--gpus-per-node=2"], ["--gpus-per-node=2"])],
)
def test_a_job_of_the_engine_gpu_asks_for_one(tmp_path, own, asked):
    make_campaign(tmp_path, execution={"slurm": {"options": own}})
    assert not [line for line in directives(printed(tmp_path)) if line == "--gres=gpu:1"]
    given = printed(tmp_path, "--engine", "gpu")
    make_campaign(tmp_path, execution={"engine": "gpu", "slurm": {"options": own}})
    for text in (given, printed(tmp_path)):
        assert [line for line in directives(text) if line.startswith("--g")] == asked
        words = command(text)
        assert words[words.index("--engine") :][:2] == ["--engine", "gpu"]
        assert "--workers" not in words
    words = command(printed(tmp_path, "--engine", "local"))
    assert words[words.index("--engine") :][:2] == ["--engine", "local"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--walltime", "0:01:00"], "expected 0:02:00 or more"),
        (["--jobs", "3"], "--jobs needs --engine slurm"),
        (["--engine", "dask"], "expected local, gpu or slurm"),
        (["--memory", "lots"], "64GB"),
    ],
)
def test_what_would_not_work_is_refused(tmp_path, options, said):
    make_campaign(tmp_path)
    done = leeward_here("slurm-script", "campaign.yaml", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


class Job:
    """The batch file under bash, with stand-ins for SLURM's commands and for `leeward run`, of which it needs three.

    The patience for tasks in hand, after a warning, is over when a test says so. hears_late: the shell handles the
    warning for so long that the run has ended meanwhile.
    """

    def __init__(self, folder, run, *, hears_late=False):
        make_campaign(folder, execution={"slurm": {"prologue": ["set -eu"]}})
        text = printed(folder, "--cores", 1, "--walltime", "0:02:00")
        program = command(text)[0]
        assert text.count("sleep 15 &&") == text.count(f"\n{program} run ") == 1
        self.folder = folder
        self._program("squeue", 'cat "$STATE"')
        self._program("scontrol", f'echo PENDING 1 > "$STATE"; echo "$*" >> {folder}/asked')
        self._program("leeward", run.replace("; while", f"; touch {folder}/at_work; while", 1))  # its trap is set
        patience = f"until [ -e {folder}/patience_is_over ]; do sleep 0.05; done"
        hearing = 'while kill -0 "$run" 2> /dev/null; do sleep 0.05; done' if hears_late else ":"
        text = text.replace("{ sleep 15 &&", f"{hearing}\n  {{ {patience} &&")
        text = text.replace(f"\n{program} run ", f"\n{folder}/leeward run ")
        (folder / "job.sh").write_text(text)
        self.is_now("RUNNING 0")
        slurm = {"STATE": str(folder / "state"), "SLURM_JOB_ID": "7", "PATH": f"{folder}:{os.environ['PATH']}"}
        with (folder / "log").open("w") as log:
            self.script = subprocess.Popen(
                ["bash", "job.sh"], cwd=folder, env=os.environ | slurm, stdout=log, stderr=log, start_new_session=True
            )
        until((folder / "at_work").exists, "the run has begun")

    def _program(self, name, text):
        (self.folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (self.folder / name).chmod(0o755)

    def is_now(self, state):
        (self.folder / "state").write_text(state + "\n")

    def asked(self):
        """What SLURM was told to do."""
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []

    def warn(self):
        self.script.send_signal(signal.SIGTERM)

    def end_patience(self):
        (self.folder / "patience_is_over").touch()

    def nothing_left(self):
        """All that the script started has ended, also what outlived it, the patience being over."""
        self.end_patience()
        until(lambda: subprocess.run(["pgrep", "-s", str(self.script.pid)], capture_output=True).returncode, "no rest")


STOPS_WHEN_TOLD = "trap 'exit 143' TERM; while true; do sleep 0.05; done"
STOPS_TOO_LATE = "trap '' TERM; while [ ! -e late ]; do sleep 0.05; done; exit 143"


def test_a_warned_job_goes_back_once_and_leaves_its_next_start_alone(tmp_path):
    job = Job(tmp_path, STOPS_WHEN_TOLD)
    job.warn()
    assert job.script.wait(PATIENCE_S) == 143
    assert job.asked() == ["requeue 7"]
    job.is_now("RUNNING 1")  # SLURM has started it again before the first one's patience was over
    job.nothing_left()
    assert job.asked() == ["requeue 7"]


def test_a_warned_job_whose_tasks_take_too_long_goes_back_all_the_same(tmp_path):
    job = Job(tmp_path, STOPS_TOO_LATE)
    job.warn()
    job.end_patience()
    until(job.asked, "it asks to go back, its run still at work")
    job.warn()  # as SLURM does when it requeues
    (tmp_path / "late").touch()
    assert job.script.wait(PATIENCE_S) == 143
    job.is_now("RUNNING 1")
    job.nothing_left()
    assert job.asked() == ["requeue 7"]


def test_a_cancelled_job_asks_for_nothing(tmp_path):
    job = Job(tmp_path, STOPS_WHEN_TOLD)
    job.is_now("COMPLETING 0")
    job.warn()
    assert job.script.wait(PATIENCE_S) == 143
    job.nothing_left()
    assert job.asked() == []


def test_a_complete_campaign_is_not_begun_again(tmp_path):
    job = Job(tmp_path, "trap 'exit 0' TERM; while true; do sleep 0.05; done")
    job.warn()
    assert job.script.wait(PATIENCE_S) == 0
    job.is_now("COMPLETING 0")
    job.nothing_left()
    assert job.asked() == []


def test_a_run_that_ends_while_the_shell_hears_the_warning_keeps_its_own_exit_code(tmp_path):
    """A signal ends the shell's `wait` with a code that says "go on"; what the run says is another."""
    job = Job(tmp_path, "trap 'exit 3' TERM; while true; do sleep 0.05; done", hears_late=True)
    job.warn()
    assert job.script.wait(PATIENCE_S) == 3
    job.is_now("COMPLETING 0")
    job.nothing_left()
    assert job.asked() == []
