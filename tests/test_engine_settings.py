"""Which engine runs, and with which settings: options, campaign, the user's defaults; and what is refused."""

import os
import signal
import socket
import subprocess
import sys

import pytest

import leeward
from leeward import cli
from leeward.campaign import load
from leeward.campaign.execution import with_user_defaults
from leeward.errors import InputError
from run_cases import calls, make_campaign


@pytest.fixture
def inside(monkeypatch, capsys, tmp_path):
    """The command line within this process, in a folder with a campaign: exit code, standard output and error."""
    make_campaign(tmp_path, seeds=1, execution={})
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGINT)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["leeward", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    yield run
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine", "local", "--jobs", "3"], ["--jobs needs --engine slurm", "local", "--workers"]),
        (["--engine", "inline", "--workers", "2"], ["--workers needs --engine local", "its options are: none"]),
        (["--engine", "slurm", "--tls-ca", "x"], ["--tls-ca needs --engine dask", "--jobs", "--partition"]),
        (["--scheduler", "tcp://127.0.0.1:1"], ["--scheduler needs --engine dask", "the engine is local"]),
        (["--engine", "cloud"], ["cloud", "inline", "local", "dask", "slurm"]),
        (["--engine", "dask"], ["--scheduler tls://host:8786"]),
        (["--engine", "dask", "--scheduler", "somewhere"], ["somewhere", "tls://host:8786"]),
        (["--engine", "dask", "--scheduler", "tls://127.0.0.1:1"], ["--tls-ca, --tls-cert, --tls-key"]),
        (["--engine", "dask", "--scheduler", "tls://127.0.0.1:1", "--tls-ca", "no.pem"], ["no.pem: no such file"]),
        (["--engine", "slurm", "--jobs", "5:2"], ["5:2", "2:20"]),
        (["--engine", "slurm", "--memory", "much"], ["much", "64GB"]),
        (["--engine", "slurm", "--walltime", "soon"], ["soon", "2:00:00"]),
        (["--engine", "slurm", "--walltime", "0:00:00"], ["0:00:00", "at least one minute"]),
    ],
)
def test_settings_that_do_not_fit_are_refused(inside, arguments, said):
    code, _, errors = inside("run", "campaign.yaml", *arguments)
    assert code == 2, errors
    assert all(word in errors for word in said), errors
    assert errors.splitlines()[-1].startswith("leeward: ")
    assert "Traceback" not in errors


def test_an_unknown_option_lists_the_valid_ones(inside):
    code, _, errors = inside("run", "campaign.yaml", "--jbos", "3")
    assert code == 2
    assert all(option in errors for option in ("--jbos", "--engine", "--jobs", "--scheduler", "--walltime"))


@pytest.mark.parametrize(
    ("slurm", "said"),
    [
        (
            {"options": ["--qos=long", "--job-name=mine"]},
            "'--job-name=mine', which prevents leeward from tracking its jobs",
        ),
        ({"options": ["-a 1-10"]}, "'-a 1-10', which prevents leeward from tracking its jobs"),
        ({"options": ["-Jmine"]}, "'-Jmine', which prevents leeward from tracking its jobs"),
        ({"options": ["--wait"]}, "'--wait', which makes sbatch wait until the job ends"),
        ({"memory": "0GB"}, "'0GB'; expected at least some megabytes"),
        ({"memory": "900KB"}, "'900KB'; expected at least some megabytes"),
        ({"prologue": ["module load python\nrm -r ~"]}, "execution.slurm.prologue"),
        ({"scratch": "/my disk"}, "'/my disk'; expected a path without spaces"),
        ({"job": 3}, "did you mean jobs?"),
    ],
)
def test_settings_of_jobs_that_would_go_wrong_are_refused(tmp_path, slurm, said):
    path = make_campaign(tmp_path, execution={"engine": "slurm", "slurm": slurm})
    with pytest.raises(InputError) as refused:
        load(path)
    assert said in str(refused.value)


def test_under_slurm_the_output_has_a_plain_path(tmp_path, monkeypatch):
    place = tmp_path / "my project"
    place.mkdir()
    campaign = load(make_campaign(place, execution={"engine": "slurm"}))
    with pytest.raises(InputError, match=r"my project.*without spaces"):
        leeward.run(campaign, place / "layouts.h5")
    assert not (place / "layouts.run").exists()


def test_the_users_defaults_do_not_get_into_the_run_directory(tmp_path, defaults):
    defaults("execution: {engine: inline, retries: 7, slurm: {account: mine}}")
    campaign = make_campaign(tmp_path, seeds=1, execution={}, optimiser={"recipe": "random", "effort": "fast"})
    report = leeward.run(campaign, tmp_path / "layouts.h5")
    assert report.exit_code == 0
    frozen = (tmp_path / "layouts.run" / "campaign.yaml").read_text()
    assert "retries" not in frozen
    assert "mine" not in frozen


def test_an_address_where_nobody_answers_is_one_clear_line(inside, monkeypatch, tmp_path):
    links = pytest.importorskip("leeward.engines.cluster.links")
    monkeypatch.setattr(links, "CONNECT_S", 1.0)
    with socket.socket() as nobody:  # bound, and not listening: nobody else takes the port
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        code, _, errors = inside("run", "campaign.yaml", "--engine", "dask", "--scheduler", address)
    assert code == 1, errors
    assert f"warning: {address} is not encrypted" in errors
    assert errors.splitlines()[-1].startswith(f"leeward: {address}: no Dask scheduler answers")
    assert "Traceback" not in errors
    assert not list(tmp_path.glob("layouts.run/.probe-*"))
    assert not (tmp_path / "layouts.run" / "lock").exists()


@pytest.mark.parametrize("where", ["the main thread", "another thread"])
def test_engines_of_clusters_leave_signals_alone(where):
    """dask-jobqueue sets a handler for Ctrl-C when it is imported, which would end a run with exit code 0."""
    program = (
        "import signal, sys, threading\n"
        "before = [signal.getsignal(number) for number in (2, 15, 1)]\n"
        "def load():\n"
        "    import leeward.engines.cluster.engine\n"
        "    import leeward.engines.cluster.slurm\n"
        "thread = threading.Thread(target=load)\n"
        "(thread.start(), thread.join()) if 'another' in sys.argv[1] else load()\n"
        "assert before == [signal.getsignal(number) for number in (2, 15, 1)], 'changed'\n"
        "assert 'leeward.engines.cluster.engine' in sys.modules, 'not imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", program, where], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


# --- the user's defaults ---------------------------------------------------------------------------------------------


@pytest.fixture
def defaults(monkeypatch, tmp_path):
    """Write the file of a user's defaults."""

    def write(text):
        path = tmp_path / "defaults.yaml"
        path.write_text(text)
        monkeypatch.setenv("LEEWARD_DEFAULTS", str(path))
        return path

    return write


def test_command_line_before_campaign_before_defaults_before_built_in(tmp_path, defaults):
    defaults(
        "execution:\n  engine: dask\n  workers: 7\n  retries: 5\n"
        "  dask: {scheduler: 'tcp://defaults:1', tls_ca: of-defaults}\n  slurm: {jobs: 3, partition: of-defaults}\n"
    )
    campaign = load(make_campaign(tmp_path, execution={"workers": 3, "dask": {"scheduler": "tcp://campaign:1"}}))
    chosen = with_user_defaults(campaign.with_overrides(retries=1, slurm={"jobs": "2:4"}).execution)
    assert chosen.engine == "dask"
    assert chosen.workers == 3
    assert chosen.retries == 1
    assert chosen.timeout_s == 3600.0
    assert (chosen.dask.scheduler, chosen.dask.tls_ca, chosen.dask.tls_cert) == (
        "tcp://campaign:1",
        "of-defaults",
        None,
    )
    assert (chosen.slurm.jobs, chosen.slurm.partition, chosen.slurm.cores) == ("2:4", "of-defaults", 1)
    assert with_user_defaults(campaign.with_overrides(engine="inline").execution).engine == "inline"


def test_the_command_line_heeds_the_defaults(inside, defaults, tmp_path):
    defaults("execution: {engine: inline}\n")
    code, output, errors = inside("run", "campaign.yaml")
    assert code == 0, errors
    assert calls(tmp_path) == [0]
    assert (tmp_path / "calls.txt").read_text() == f"0 {os.getpid()}\n"  # inline: in this very process
    assert "1 of 1 layouts done" in output
    code, _, errors = inside("run", "campaign.yaml", "--workers", "2")
    assert code == 2
    assert "the engine is inline" in errors


def test_empty_and_absent_defaults(tmp_path, defaults, monkeypatch):
    campaign = load(make_campaign(tmp_path))
    for text in ("", "# execution:\n#   engine: dask\n", "execution:\n"):
        defaults(text)
        chosen = with_user_defaults(campaign.execution)
        assert chosen.model_dump(exclude={"import_folders"}) == campaign.execution.model_dump(
            exclude={"import_folders"}
        )
    monkeypatch.delenv("LEEWARD_DEFAULTS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert with_user_defaults(campaign.execution) is campaign.execution
    (tmp_path / "config" / "leeward").mkdir(parents=True)
    (tmp_path / "config" / "leeward" / "defaults.yaml").write_text("execution: {workers: 9, retries: 9}\n")
    assert with_user_defaults(campaign.execution).retries == 9
    assert with_user_defaults(campaign.execution).workers == campaign.execution.workers


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("execution:\n  workers: 2\n  engin: dask\n", ["line 3", "engin"]),
        ("execution:\n  retries: often\n", ["line 2", "retries", "often"]),
        ("execution:\n  dask:\n    scheduler: somewhere\n", ["line 3", "scheduler", "somewhere"]),
        ("# mine\nseeds: 3\n", ["line 2", "seeds"]),
        ("execution: [\n", ["line 2"]),
        ("- dask\n", []),
    ],
)
def test_a_bad_defaults_file_is_named_with_line_and_key(tmp_path, defaults, text, said):
    campaign = load(make_campaign(tmp_path))
    path = defaults(text)
    with pytest.raises(InputError) as error:
        with_user_defaults(campaign.execution)
    assert str(path) in str(error.value)
    assert all(word in str(error.value) for word in said), str(error.value)


def test_defaults_that_are_named_and_not_there(tmp_path, monkeypatch):
    campaign = load(make_campaign(tmp_path))
    monkeypatch.setenv("LEEWARD_DEFAULTS", str(tmp_path / "nowhere.yaml"))
    with pytest.raises(InputError, match=r"nowhere\.yaml"):
        with_user_defaults(campaign.execution)
