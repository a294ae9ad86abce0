"""Exit codes as the help texts promise them, in real situations; and which run a command takes without being told."""

import json
import os
import re
import shutil
import subprocess

import pytest
import typer
import yaml

from evaluation_cases import evaluation, store_study
from export_cases import campaign_data
from foreign_files import own_result, write_own_file
from leeward import cli
from leeward.campaign import load
from leeward.store.directory.shards import store_result
from leeward.store.paths import RunPaths
from leeward.study import load_study
from run_cases import LEEWARD, leeward_here
from small_studies import write_study

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4000, 0], [4000, 4000], [0, 4000], [0, 0]]], "crs": None}
OPTIMISE = ["optimise", "--area", "area.json", "--turbines", "2", "--recipe", "random"]

# every command that writes a file, with the name of that file in a folder OUT
WRITERS = {
    "export csv": ["export", "layouts.run", "-o", "OUT/a.csv"],
    "export geojson": ["export", "layouts.run", "-o", "OUT/a.geojson"],
    "plot": ["plot", "rose", "layouts.run", "-o", "OUT/a.png"],
    "report": ["report", "layouts.run", "-o", "OUT/a.html", "-q"],
    "merge": ["merge", "layouts.run", "-o", "OUT/a.h5", "-q"],
    "salvage": ["salvage", "layouts.h5", "-o", "OUT/a.h5", "-q"],
    "new": ["new", "OUT/a.yaml"],
    "missing": ["missing", "layouts.run", "--csv", "OUT/a.csv"],
    "show": ["show", "0,0,0", "layouts.run", "--csv", "OUT/a.csv"],
    "aep": ["aep", "plain.csv", "--csv", "OUT/a.csv"],
    "optimise": [*OPTIMISE, "-o", "OUT/a.csv"],
    "optimise picture": [*OPTIMISE, "--picture", "OUT/a.svg"],
    "evaluate": ["evaluate", "study/study.yaml", "-o", "OUT/a.h5", "-q", "--storage-wait", "0"],
    "compare": ["compare", "study/study.h5", "--csv", "OUT/a.csv"],
    "export study": ["export", "study/study.h5", "-o", "OUT/a.csv"],
    "run": ["run", "campaign.yaml", "-o", "OUT/a.h5", "-q", "--storage-wait", "0"],
}
QUICK = ("export csv", "new", "missing", "show", "aep", "optimise")
EACH_WRITER = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in WRITERS]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a run of seven results out of eight, merged, and a study, that nobody changes."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "campaign.yaml").write_text(yaml.safe_dump(campaign_data()))
    (folder / "area.json").write_text(json.dumps(SQUARE))
    (folder / "plain.csv").write_text("x_m,y_m\n0,0\n1000,0\n")
    campaign = load(folder / "campaign.yaml")
    paths = RunPaths(folder / "layouts.h5")
    for each in paths.folders():
        each.mkdir(parents=True)
    paths.campaign.write_text(campaign.frozen_text())
    results = [own_result(*key, turbines=campaign.physics.n_turbines(*key[:2])) for key in campaign.tasks()][:7]
    for result in results:
        store_result(paths, result)
    write_own_file(paths.output, results, campaign=campaign.frozen_text())
    (folder / "study").mkdir()
    text = load_study(write_study(folder / "study", 2)).frozen_text()
    store_study(folder / "study", [evaluation(0, number) for number in range(2)], text)
    return folder


@pytest.fixture
def disk(tmp_path):
    """Return a function that mounts a disk of its own, full or read-only, and returns its folder."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(state):
        options = ["-o", "size=64k"]
        if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", place]).returncode:
            pytest.skip("only root can mount a file system")
        if state == "full":
            with (place / "filler").open("wb", buffering=0) as file:
                while room := os.statvfs(place).f_bavail:
                    file.write(bytes(room * 4096))
        else:
            subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        return place

    yield mount
    subprocess.run(["umount", place], capture_output=True)


def written(words, folder):
    return [word.replace("OUT", str(folder)) for word in words]


def check_refused(done, code):
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
    assert done.stderr.startswith("leeward: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("state", ["full", "read-only"])
@pytest.mark.parametrize("name", EACH_WRITER)
def test_a_disk_that_rejects_writes_is_exit_code_4(made, disk, name, state):
    place = disk(state)
    done = leeward_here(*written(WRITERS[name], place), cwd=made)
    check_refused(done, 4)
    assert re.search("No space left|Read-only file system", done.stderr)
    files = [path.name for path in place.rglob("*") if path.is_file()]  # a run directory may be there, and is empty
    assert files == (["filler"] if state == "full" else [])


@pytest.mark.parametrize("name", EACH_WRITER)
def test_a_folder_that_is_not_there_is_exit_code_2(made, tmp_path, name):
    check_refused(leeward_here(*written(WRITERS[name], tmp_path / "nowhere"), cwd=made), 2)
    (tmp_path / "file").touch()
    check_refused(leeward_here(*written(WRITERS[name], tmp_path / "file"), cwd=made), 2)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_every_command_that_writes_is_in_the_table():
    commands = typer.main.get_command(cli.app).commands
    reading = {"status", "check", "clean", "serve", "slurm-script", "doctor"}
    assert {words[0] for words in WRITERS.values()} == set(commands) - reading
    for name in {words[0] for words in WRITERS.values()}:
        assert re.search(r"\b4 [^;]*(written|reject)", commands[name].help), name


@pytest.mark.parametrize(
    "words",
    [
        ["slurm-script"],
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (["--help"], ["aep", "--json"], ["check", "layouts.h5"])
        ),
    ],
)
def test_what_is_printed_on_a_full_disk(made, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*LEEWARD, *words], cwd=made, stdout=full, stderr=subprocess.PIPE, text=True)
    check_refused(done, 4)
    assert "the output cannot be written" in done.stderr


# --- reading ---------------------------------------------------------------------------------------------------------

READERS = {
    "index.jsonl": [
        ["status", "layouts.run"],
        ["missing", "layouts.run"],
        ["serve", "layouts.run", "--port", "0"],
        pytest.param(["plot", "aep", "layouts.run", "-o", "a.png"], marks=pytest.mark.slow),
        pytest.param(["report", "layouts.run", "-o", "a.html", "-q"], marks=pytest.mark.slow),
    ],
    "campaign.yaml": [
        ["show", "Østervig/0/0", "layouts.run"],
        ["export", "layouts.run", "-o", "a.csv"],
        ["check", "layouts.run"],
        pytest.param(["merge", "layouts.run", "-o", "a.h5"], marks=pytest.mark.slow),
        pytest.param(["salvage", "layouts.run", "-o", "a.h5", "-q"], marks=pytest.mark.slow),
    ],
}


@pytest.fixture
def failing(made, tmp_path):
    """Return a function that lets a file of a copy of the run give an input/output error whenever it is read."""
    shutil.copytree(made / "layouts.run", tmp_path / "layouts.run")
    mounted = []

    def fail(name):
        place = tmp_path / "layouts.run" / name
        place.touch()
        # the memory of a process is a regular file whose first byte cannot be read
        command = ["mount", "--bind", f"/proc/{os.getpid()}/mem", place]
        if os.getuid() != 0 or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("only root can put another file in the place of one")
        mounted.append(place)
        return tmp_path

    yield fail
    for place in mounted:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param(name, *each.values, marks=each.marks) if hasattr(each, "marks") else (name, each)
        for name, several in READERS.items()
        for each in several
    ],
)
def test_a_disk_that_fails_while_it_is_read_is_exit_code_4(failing, name, words):
    folder = failing(name)
    done = leeward_here(*words, cwd=folder)
    check_refused(done, 4)
    assert "Input/output error" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["layouts.run"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, ["status", "cut.h5"]),
        (1, ["show", "0,0,0", "cut.h5"]),
        (1, ["show", "0,0,9", "layouts.h5"]),
        (1, ["export", "cut.h5", "-o", "a.csv"]),
        pytest.param(1, ["serve", "cut.h5", "--port", "0"], marks=pytest.mark.slow),
        pytest.param(1, ["plot", "aep", "cut.h5", "-o", "a.png"], marks=pytest.mark.slow),
        (3, ["check", "cut.h5"]),
        pytest.param(3, ["salvage", "cut.h5", "-o", "a.h5", "-q"], marks=pytest.mark.slow),
        (3, ["missing", "layouts.h5", "--csv", "-"]),
        (3, ["status", "layouts.h5"]),
        (0, ["show", "0,0,0", "layouts.h5", "--csv", "-"]),
        (2, ["status", "nowhere.run"]),
        (2, ["missing", "nowhere.run"]),
        (2, ["check", "nowhere.run"]),
        (2, ["clean", "nowhere.run"]),
        (2, ["serve", "nowhere.run"]),
        (2, ["merge", "nowhere.run", "-o", "a.h5"]),
        (2, ["salvage", "nowhere.h5", "-o", "a.h5"]),
        (2, ["slurm-script", "nowhere.yaml"]),
        (2, ["run", "nowhere.yaml"]),
        (2, ["status", "--nonsense"]),
    ],
)
def test_what_cannot_be_read(made, tmp_path, code, words):
    whole = (made / "layouts.h5").read_bytes()
    (tmp_path / "layouts.h5").write_bytes(whole)
    (tmp_path / "cut.h5").write_bytes(whole[:3000])
    done = leeward_here(*words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


# --- the only run in a folder ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(made, tmp_path):
    """A folder with one run, of another name than usual."""
    shutil.copytree(made / "layouts.run", tmp_path / "mine.run")
    shutil.copy(made / "layouts.h5", tmp_path / "mine.h5")
    return tmp_path


def test_the_only_run_is_found(folder):
    status = leeward_here("status", cwd=folder)
    assert (status.returncode, status.stderr) == (3, "")
    assert status.stdout.startswith("sample: mine.run\n")
    assert "in mine.run" in leeward_here("missing", cwd=folder).stdout
    assert "farm0_t0_s0  in mine.run" in leeward_here("show", "0,0,0", cwd=folder).stdout
    assert leeward_here("export", "-o", "a.csv", cwd=folder).returncode == 0
    checked = json.loads(leeward_here("check", "--json", cwd=folder).stdout)
    assert {path.partition("/")[0] for path in (each["path"] for each in checked["files"])} == {"mine.run", "mine.h5"}


def test_a_file_alone_is_found(folder):
    shutil.rmtree(folder / "mine.run")
    assert leeward_here("status", cwd=folder).stdout.startswith("sample: mine.h5\n")
    shutil.copy(folder / "mine.h5", folder / "other.h5")
    several = leeward_here("status", cwd=folder)
    check_refused(several, 2)
    assert "the current folder has 2 result files; name one of mine.h5, other.h5" in several.stderr
    (folder / "mine.h5").rename(folder / "layouts.h5")
    assert leeward_here("status", cwd=folder).stdout.startswith("sample: layouts.h5\n")


def test_of_several_runs_one_must_be_named(folder):
    shutil.copytree(folder / "mine.run", folder / "layouts.run")
    for words in (["status"], ["missing"], ["show", "0,0,0"], ["check"], ["export", "-o", "a.csv"], ["serve"]):
        several = leeward_here(*words, cwd=folder)
        check_refused(several, 2)
        assert "the current folder has 2 runs; name one of layouts.run, mine.run" in several.stderr
    (folder / "mine.run").rename(folder / "layouts-20260101T120000Z.run")  # as `run --new` puts an old one aside
    (folder / "mine.h5").unlink()
    assert leeward_here("status", cwd=folder).stdout.startswith("sample: layouts.run\n")


def test_no_run_at_all(tmp_path):
    (tmp_path / "mine.run").mkdir()  # not a run directory: nothing is in it
    none = leeward_here("status", cwd=tmp_path)
    check_refused(none, 2)
    assert "no run directory (layouts.run) and no result file" in none.stderr
