"""`leeward slurm-script`: what it prints. tests/test_slurm.py submits it to a real SLURM."""

import shlex
import subprocess

import pytest

from run_cases import leeward_here, make_campaign


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
    ("options", "said"),
    [
        (["--walltime", "0:01:00"], "expected 0:02:00 or more"),
        (["--jobs", "3"], "--jobs goes with --engine slurm"),
        (["--engine", "dask"], "expected local or slurm"),
        (["--memory", "lots"], "64GB"),
    ],
)
def test_what_would_not_work_is_refused(tmp_path, options, said):
    make_campaign(tmp_path)
    done = leeward_here("slurm-script", "campaign.yaml", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
