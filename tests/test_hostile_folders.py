"""Run directories from elsewhere: links, pipes and devices in the place of what leeward makes there."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foreign_files import own_result, write_own_file
from leeward.errors import InputError
from leeward.runs import resume
from leeward.store.directory.audit import append_line, read_lines
from leeward.store.directory.index import indexed_count, output_index, output_index_path
from leeward.store.directory.records import BadRecordError, read_record
from leeward.store.directory.shards import store_result
from leeward.store.format.keys import Key
from leeward.store.merging.clean import clean
from leeward.store.merging.merge import merge
from leeward.store.paths import RunPaths
from run_cases import INLINE, PATIENCE_S, leeward_here, make_campaign

FOLDERS = ("workers", "failures", "logs", "quarantine", "packs", "results", "results/zz")
FILES = ("audit.jsonl", "index.jsonl", "campaign.yaml", "lock")
BEAT = "host-1-0123abcd0123abcd.json"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a campaign of two seeds that was run to its end."""
    folder = tmp_path_factory.mktemp("finished")
    make_campaign(folder, seeds=2, execution=INLINE)
    assert leeward_here("run", "campaign.yaml", cwd=folder).returncode == 0
    return folder


@pytest.fixture
def run(finished, tmp_path):
    """A copy of it that a test may spoil."""
    shutil.copytree(finished, tmp_path / "here", symlinks=True)
    return RunPaths(tmp_path / "here" / "layouts.h5")


@pytest.fixture
def precious(tmp_path):
    """Files of somebody else, with names that leeward uses too."""
    folder = tmp_path / "precious"
    folder.mkdir()
    names = ("notes.txt", BEAT, "farm0_t0_s1.json", ".old.json.0123abcd.tmp", ".probe-leeward-0123456789abcdef")
    for name in names:
        (folder / name).write_text("precious")
    write_own_file(folder / "all.h5", [own_result(seed=7)])
    for path in folder.iterdir():
        os.utime(path, (1e9, 1e9))
    return folder


def state(folder):
    """Every file with its content and its time; links as such."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(root) / name
            if path.is_symlink():
                found[str(path)] = os.readlink(path)
            else:
                content = path.read_bytes() if path.is_file() else None
                found[str(path)] = (content, path.lstat().st_mtime_ns)
    return found | {str(folder): folder.stat().st_mtime_ns}


def put_link(place, target):
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


# --- links in the place of folders and side files ---


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_a_link_ends_a_run_before_anything_is_touched(run, precious, name):
    target = precious / "notes.txt" if name in FILES else precious
    put_link(run.root / name, target)
    before = state(precious), state(run.root)
    ended = leeward_here("run", "campaign.yaml", cwd=run.root.parent)
    assert (state(precious), state(run.root)) == before
    assert ended.returncode == 2
    for part in (f"layouts.run/{name}: is a link to {target}", "expected a f", "or remove the link"):
        assert part in ended.stderr


def test_a_link_to_the_run_directory_itself_is_refused_inside_it(run):
    put_link(run.results / "51", "..")
    before = state(run.root)
    assert leeward_here("run", "campaign.yaml", cwd=run.root.parent).returncode == 2
    assert state(run.root) == before


def test_the_run_directory_itself_may_be_a_link(run, tmp_path):
    run.root.rename(tmp_path / "scratch")
    run.root.symlink_to(tmp_path / "scratch")
    left = run.workers / BEAT
    left.write_text("{}")
    shutil.rmtree(run.shard(Key(0, 0, 1)).parent)
    run.output.unlink()
    ended = leeward_here("run", "campaign.yaml", cwd=run.root.parent)
    assert ended.returncode == 0, ended.stderr
    assert run.root.is_symlink()
    assert not left.exists()
    assert run.shard(Key(0, 0, 1)).exists()


@pytest.mark.parametrize("name", FOLDERS)
def test_no_command_changes_what_a_link_leads_to(run, precious, name):
    """The commands are called as functions here; test_commands_with_links is about the command line."""
    put_link(run.root / name, precious)
    before = state(precious)
    with pytest.raises(InputError, match="is a link to"):
        clean(run)
    with pytest.raises(InputError, match="is a link to"):
        clean(run, merged=True)
    with pytest.raises(InputError, match="is a link to"):
        merge([run.root], run.output.with_name("all.h5"), on_bad="skip", remove_sources=True)
    resume.remove_leftovers(run)
    assert not any(str(precious) in os.path.realpath(path.parent) for path in run.files())
    assert state(precious) == before


@pytest.mark.slow
def test_commands_with_links(run, precious):
    for name in FOLDERS:
        if name != "results":
            put_link(run.root / name, precious)
    for name in FILES[:3]:
        put_link(run.root / name, precious / "notes.txt")
    before = state(precious)
    expected = {
        ("status", "layouts.run"): 0,
        ("check", "layouts.run"): 3,
        ("merge", "layouts.run", "-o", "all.h5"): 3,
        ("merge", "layouts.run", "-o", "all.h5", "--remove-sources"): 2,
        ("clean", "layouts.run"): 2,
        ("clean", "layouts.run", "--merged"): 2,
        ("show", "farm0_t0_s0", "layouts.run"): 0,
        ("report", "layouts.run", "-o", "page.html"): 1,  # the audit trail is a part of it
        ("run", "campaign.yaml"): 2,
    }
    for command, code in expected.items():
        ended = leeward_here(*command, cwd=run.root.parent)
        assert state(precious) == before, command
        assert ended.returncode == code, (command, ended.stdout, ended.stderr)
    said = leeward_here("check", "layouts.run", cwd=run.root.parent).stdout
    assert "results/zz" in said
    assert "it is a link to" in said


def test_status_names_the_links(run, precious):
    put_link(run.workers, precious)
    put_link(run.index, "/dev/zero")
    said = leeward_here("status", "layouts.run", cwd=run.root.parent).stdout
    assert f"workers: is a link to {precious}" in said
    assert "index.jsonl: is a link to /dev/zero" in said
    assert "2 of 2 layouts done" in said


# --- links in the place of single files ---


def test_links_in_the_place_of_files_are_put_aside_and_not_followed(run, precious):
    shard = run.shard(Key(0, 0, 1))
    shard.rename(precious / shard.name)  # a valid result, which the link would lead to
    put_link(shard, precious / shard.name)
    run.packs.mkdir()
    (run.packs / "pack-000001-01234567.h5").symlink_to(precious / "all.h5")
    run.failure(Key(0, 0, 1)).symlink_to(precious / "notes.txt")
    for place in (run.workers / BEAT, run.root / ".tls-abcdefgh", run.root / ".probe-leeward-0123456789abcdef"):
        place.symlink_to(precious)
    (run.results / "a note").write_text("in the place of a folder")
    before = state(precious)
    ended = leeward_here("run", "campaign.yaml", cwd=run.root.parent)
    assert ended.returncode == 0, ended.stderr
    assert state(precious) == before
    assert not shard.is_symlink()
    moved = [path for path in run.quarantine.iterdir() if path.is_symlink()]
    assert sorted(path.name.rpartition(".")[0] for path in moved) == [
        "farm0_t0_s1.h5",
        "farm0_t0_s1.json",
        "pack-000001-01234567.h5",
    ]
    reasons = [json.loads(path.read_text()) for path in run.quarantine.glob("*.reason.json")]
    assert {about["target"] for about in reasons if "target" in about} == {os.readlink(path) for path in moved}
    assert any(about["from"].endswith("a note") for about in reasons)


def test_a_result_is_never_stored_through_a_link(run, precious):
    key = Key(0, 0, 5)
    run.shard(key).parent.symlink_to(precious)
    before = state(precious)
    with pytest.raises(Exception, match="is a link; expected a folder"):
        store_result(run, own_result(seed=5))
    assert state(precious) == before


def test_tidying_removes_only_what_leeward_named(run, precious):
    old = [run.root / ".campaign.yaml.0123abcd.tmp", run.shard(Key(0, 0, 0)).with_name(".x.h5.0123abcd.tmp")]
    gone = [run.workers / BEAT, run.root / ".probe-leeward-0123456789abcdef", run.root / ".tls-abcdefgh" / "key.pem"]
    stay = [run.workers / "notes.txt", run.workers / "my.json", run.root / ".mine.tmp", run.root / ".tls-backup" / "x"]
    for path in (*old, *gone, *stay):
        path.parent.mkdir(exist_ok=True)
        path.write_text("half")
        os.utime(path, (1e9, 1e9))
    resume.remove_leftovers(run)
    assert not any(path.exists() for path in (*old, *gone, gone[2].parent))
    assert all(path.exists() for path in stay)


def test_tidying_goes_on_after_a_file_that_vanished(run, monkeypatch):
    """A writer that lives on takes its file away between the listing and the removal."""
    names = [run.root / f".campaign.yaml.0123abc{number}.tmp" for number in range(3)]
    for path in names:
        path.write_text("half")
        os.utime(path, (1e9, 1e9))
    listed = RunPaths.temporaries

    def vanishing(paths):
        found = listed(paths)
        names[1].unlink()
        return [names[1], *found]

    monkeypatch.setattr(RunPaths, "temporaries", vanishing)
    resume.remove_leftovers(run)
    assert not any(path.exists() for path in names)


# --- pipes and devices ---

CHILD = """
import json, os, shutil, sys
from pathlib import Path
from run_cases import leeward_here

finished, kind, places, commands = json.loads(sys.argv[1])
for number, place in enumerate(places):
    folder = Path(str(number))
    shutil.copytree(finished, folder, symlinks=True)
    path = folder / place
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    for command in commands:
        ended = leeward_here(*command, cwd=folder)
        print(json.dumps([place, command[0], ended.returncode, ended.stdout, ended.stderr]), flush=True)
"""
LIMITS = "import resource; resource.setrlimit(resource.RLIMIT_AS, (8 << 30,) * 2)\n"  # a device never ends


def ended_in_child(finished, cwd, kind, places, commands):
    """How the commands end, one after another, with a pipe or a device in the place of each file in turn."""
    order = json.dumps([str(finished), kind, places, commands])
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.run(
        [sys.executable, "-c", LIMITS + CHILD, order],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return [json.loads(line) for line in child.stdout.splitlines()]


SIDE_FILES = [
    *(f"layouts.run/{name}" for name in FILES),
    "layouts.run/failures/farm0_t0_s1.json",
    f"layouts.run/workers/{BEAT}",
    "layouts.h5.index",
    "layouts.run/packs/pack-000001-01234567.h5",
    "layouts.run/packs/pack-000001-01234567.h5.index",
    "layouts.run/results/zz",
]
QUICK = ["layouts.run/campaign.yaml", "layouts.run/index.jsonl", f"layouts.run/workers/{BEAT}"]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_quick_command_waits_for_a_pipe(finished, tmp_path, kind):
    for place, command, code, out, err in ended_in_child(finished, tmp_path, kind, QUICK, [["status", "layouts.run"]]):
        assert code == 0, (place, command, out, err)
        assert "2 layouts" in out
        assert ("pipe" in out or "/dev/zero" in out) is ("workers" not in place)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_command_waits_for_a_pipe(finished, tmp_path, kind):
    commands = [
        ["status", "layouts.run"],
        ["check", "layouts.run", "--complete"],
        ["merge", "layouts.run", "-o", "all.h5"],
        ["missing", "layouts.run"],
        ["show", "farm0_t0_s0", "layouts.run"],
        ["report", "layouts.run", "-o", "page.html"],
        ["clean", "layouts.run", "--dry-run"],
        ["run", "campaign.yaml"],
    ]
    ended = ended_in_child(finished, tmp_path, kind, SIDE_FILES, commands)
    assert len(ended) == len(SIDE_FILES) * len(commands)
    for place, command, code, out, err in ended:
        assert "Traceback" not in err, (place, command, err)
        assert code in (0, 1, 2, 3), (place, command, out, err)
        if command == "run":
            assert code == (2 if re.fullmatch(r"layouts.run/([\w.]+|results/zz)", place) else 0), (place, err)


@pytest.fixture(params=["pipe", "link", "folder"])
def odd(request, tmp_path):
    """Something in the place of a side file."""
    path = tmp_path / "odd"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "link":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    return path


def test_readers_and_appenders_accept_regular_files_only(odd):
    with pytest.raises(OSError, match="expected a regular file"):
        append_line(odd, "{}\n")
    with pytest.raises(OSError, match="expected a regular file"):
        read_lines(odd)
    with pytest.raises(BadRecordError, match="expected a regular file"):
        read_record(odd)
    output = write_own_file(odd.with_name("layouts.h5"), [own_result()])
    odd.rename(output_index_path(output))
    assert output_index(output) is None
    assert indexed_count(output) is None
