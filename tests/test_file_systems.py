"""File systems of clusters: without file locks, without links, or with answers that are lost on the way.

A shim in C, preloaded into real processes, gives the errors (`file_system_shim.c`). Tests on a mounted FUSE file system
need `make test-fuse`, and those on a real NFS `make test-nfs`.
"""

import dataclasses
import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from foreign_files import own_result
from leeward.errors import HeldError, StorageError
from leeward.files import is_there, rename, replace_file
from leeward.runs import filesystem
from leeward.store.directory import lock as locks
from leeward.store.directory.lock import Lock, read_owner
from leeward.store.directory.owner import Owner, process_start
from leeward.store.directory.shards import store_result
from leeward.store.paths import RunPaths
from run_cases import INLINE, digests, kill_group, leeward, leeward_here, make_campaign, shards, start, until

HERE = Path(__file__).parent
NO_FLOCK = {"EBADF": 9, "ENOLCK": 37, "ENOSYS": 38, "EOPNOTSUPP": 95}

HOLD = """
import sys
from pathlib import Path
from leeward.store.directory.lock import Lock
lock = Lock.take(Path(sys.argv[1]))
lock.check()
print("taken", flush=True)
sys.stdin.read()
lock.release()
"""

STORE = """
import sys
from pathlib import Path
from foreign_files import own_result
from leeward.store.merging.merge import merge_run
from leeward.store.paths import RunPaths
from leeward.store.directory.quarantine import quarantine
from leeward.store.directory.shards import store_result
from leeward.store.format.verdicts import Verdict
paths = RunPaths(Path(sys.argv[1]))
for seed in range(3):
    store_result(paths, own_result(seed=seed))
quarantine(paths, paths.shard(own_result(seed=2).key), Verdict.EMPTY, "a test")
print(merge_run(paths, {}).count)
"""


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """Return the environment of a process whose file system misbehaves as asked."""
    if sys.platform != "linux":
        pytest.skip("needs Linux: LD_PRELOAD")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, HERE / "file_system_shim.c", "-ldl"], check=True)
    except FileNotFoundError:
        pytest.skip("needs a C compiler")
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return lambda orders: os.environ | {"LD_PRELOAD": str(library), "LEEWARD_SHIM": orders, "PYTHONPATH": path}


def hold(path, environment):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "taken\n", process.communicate()[1]
    return process


# --- the lock --------------------------------------------------------------------------------------------------------


LIES = ["rename=2", "rename=5", "link=17", "link=5", "stale=2"]


@pytest.mark.parametrize("orders", [*(f"flock={number}" for number in NO_FLOCK.values()), *LIES])
def test_a_lock_is_taken_taken_over_and_released(tmp_path, shim, orders):
    path = tmp_path / "lock"
    killed = hold(path, shim(orders))
    killed.kill()
    killed.communicate()
    assert read_owner(path)[0].is_gone
    successor = hold(path, shim(orders))
    assert read_owner(path)[0].pid == successor.pid
    assert successor.communicate("")[1] == ""
    assert list(tmp_path.iterdir()) == []


def test_a_claimant_that_was_killed_is_succeeded(tmp_path):
    """A coordinator was killed between its claim on a dead owner's lock and the rename that replaces the lock."""
    path = tmp_path / "lock"
    dead, claimant = (dataclasses.replace(Owner.myself(), process_start="0") for _ in range(2))
    assert locks._create(path, dead)
    held = locks._claim(path, dead.token, claimant)
    held.__enter__()
    assert len(list(tmp_path.iterdir())) == 2
    Lock.take(path).release()
    assert list(tmp_path.iterdir()) == []


def test_a_living_claimant_is_not_disturbed(tmp_path):
    path = tmp_path / "lock"
    dead = dataclasses.replace(Owner.myself(), process_start="0")
    assert locks._create(path, dead)
    with locks._claim(path, dead.token, Owner.myself()), pytest.raises(HeldError, match=f"process {os.getpid()}"):
        Lock.take(path)
    assert read_owner(path)[0].token == dead.token
    Lock.take(path).release()


def test_an_owner_that_is_being_taken_over_does_not_remove_the_lock_of_its_successor(tmp_path):
    """The successor has claimed the lock, and is about to replace it, when the old owner wakes up and releases it."""
    path = tmp_path / "lock"
    lock, successor = Lock.take(path), Owner.myself()
    with locks._claim(path, lock.owner.token, successor):
        lock.release()
        assert path.exists()
        locks._put(path, successor, rename)
    assert read_owner(path)[0].token == successor.token


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_something_else_in_the_place_of_the_lock(tmp_path, kind):
    path = tmp_path / "lock"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(HeldError, match=f"it is a {kind}"):
        Lock.take(path)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EIO])
def test_a_rename_that_was_done_and_reports_an_error(tmp_path, shim, number):
    output = tmp_path / "layouts.h5"
    done = subprocess.run(
        [sys.executable, "-c", STORE, str(output)], env=shim(f"rename={number}"), capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("2\n", "")
    assert sorted(digests(output)) == ["farm0_t0_s0", "farm0_t0_s1"]
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_rename_that_was_not_done_is_an_error(tmp_path):
    (tmp_path / "a").write_text("a")
    with pytest.raises(FileNotFoundError):
        rename(tmp_path / "a", tmp_path / "no" / "b")
    with pytest.raises(FileNotFoundError):
        rename(tmp_path / "c", tmp_path / "a")
    assert (tmp_path / "a").read_text() == "a"


def test_a_name_that_somebody_else_has_just_made_is_found(tmp_path):
    assert not is_there(tmp_path / "folder" / "file")
    assert not is_there(tmp_path / "file")
    (tmp_path / "file").touch()
    assert is_there(tmp_path / "file")


def test_names_that_nfs_gives_to_removed_files_are_passed_over(tmp_path):
    """NFS keeps a removed file under such a name as long as a process of the same machine has it open."""
    paths = RunPaths(tmp_path / "layouts.h5")
    shard = store_result(paths, own_result())
    for folder in (shard.parent, paths.results, paths.packs, paths.workers):
        folder.mkdir(exist_ok=True)
        (folder / ".nfs0000000000000001").write_bytes(b"")
    assert list(paths.files()) == [shard]
    assert list(paths.odd_places()) == []
    assert paths.heartbeats() == []


# --- whole runs ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    make_campaign(folder, seeds=4, execution=INLINE)
    assert leeward_here("run", "campaign.yaml", cwd=folder).returncode == 0
    return digests(folder / "layouts.h5")


def kill_and_resume(folder, undisturbed, environment=None):
    """Run a campaign whose coordinator is killed in the middle, resume it, run it again, and clean up."""
    make_campaign(folder, seeds=4, orders={3: "until=go"})
    process = start("run", "campaign.yaml", cwd=folder, env=environment)
    try:
        until(lambda: len(shards(folder / "layouts.run")) == 3, "three results are stored")
    finally:
        kill_group(process)
    until(lambda: process_start(process.pid) is None, "it is dead")
    (folder / "go").touch()
    for command in (
        ["run", "campaign.yaml"],
        ["run", "campaign.yaml"],
        ["clean", "layouts.run"],
        ["check", "layouts.run", "--complete"],
    ):
        done = leeward(*command, cwd=folder, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not (folder / "layouts.run" / "lock").exists()
    assert digests(folder / "layouts.h5") == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("orders", ["flock=9", "flock=37", "flock=38", "flock=95", "rename=2", "link=17", "stale=3"])
def test_a_killed_run_is_resumed(tmp_path, shim, undisturbed, orders):
    kill_and_resume(tmp_path, undisturbed, shim(orders))


# --- what is said about the file system ------------------------------------------------------------------------------


MOUNTS = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/root rw
23 22 0:20 / /scratch rw shared:1 - lustre 10.0.0.1@tcp:/scratch rw,flock
24 22 0:21 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2,hard,proto=tcp
25 22 0:22 / /old rw,relatime - nfs server:/old rw,vers=3,soft,proto=tcp
26 22 0:23 / /dev/shm rw - tmpfs tmpfs rw,size=1g
27 22 0:24 / /mnt/with\040blank rw - fuse.sshfs me@host: rw
"""


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("/data/layouts.run", ""),
        ("/scratch/layouts.run", ""),
        ("/home/me/layouts.run", "is on NFS 4.2: another node may see new results up to a minute late"),
        ("/homely/layouts.run", ""),
        ("/old/layouts.run", "is on NFS 3: .*a slow server causes I/O errors .the mount option is soft; hard is safer"),
        ("/dev/shm/layouts.run", "is in memory .tmpfs.: its results are lost when this machine restarts"),
        ("/mnt/with blank/layouts.run", "is on fuse.sshfs: whether results survive a power cut depends"),
    ],
)
def test_one_line_about_the_file_system_where_it_matters(tmp_path, monkeypatch, folder, said):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS.lstrip())
    monkeypatch.setattr(filesystem, "MOUNTS", mounts)
    text = filesystem.remark(Path(folder))
    if said:
        assert text.startswith(folder)
        assert re.search(said, text)
    else:
        assert text == ""


def test_a_run_prints_the_line(tmp_path, monkeypatch):
    mounts = tmp_path / "mountinfo"
    mounts.write_text("1 0 0:1 / / rw - nfs4 server:/ rw,vers=4.1\n")
    monkeypatch.setattr(filesystem, "MOUNTS", mounts)
    make_campaign(tmp_path, seeds=1, execution=INLINE)
    done = leeward_here("run", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert "layouts.run is on NFS 4.1: another node may see" in done.stderr


# --- a real file system of the user's own ----------------------------------------------------------------------------


@pytest.fixture
def mounted(tmp_path):
    """Return a function that mounts a FUSE file system that behaves as asked."""
    pytest.importorskip("mfusepy", reason="needs mfusepy, of the test dependencies", exc_type=ImportError)
    processes = []

    def mount(*words):
        folder, point = tmp_path / "behind", tmp_path / "mounted"
        folder.mkdir()
        point.mkdir()
        command = [sys.executable, HERE / "fuse_folder.py", folder, point, *words]
        processes.append(subprocess.Popen(command))
        until(lambda: os.path.ismount(point) or processes[0].poll() is not None, "it is mounted")
        assert processes[0].poll() is None
        return point

    yield mount
    for process in processes:
        subprocess.run(["umount", "-l", tmp_path / "mounted"], check=True)
        process.send_signal(signal.SIGTERM)
        process.wait()


@pytest.mark.fuse
@pytest.mark.parametrize("words", [["no-locks"], ["no-locks", "no-links"]], ids=" ".join)
def test_a_killed_run_is_resumed_on_fuse(mounted, undisturbed, words):
    kill_and_resume(mounted(*words), undisturbed)


@pytest.mark.fuse
def test_a_disk_that_returns_other_bytes_is_found_out(mounted):
    """What was written is read back from the disk itself, not from memory."""
    folder = mounted("rot")
    content = bytes(2**16)  # whole pages of memory: parts of one are read again anyway
    with pytest.raises(StorageError, match="is the disk failing"):
        replace_file(folder / "a", content, check=lambda handle: os.read(handle, 2**17) == content)
    assert not (folder / "a").exists()
    with pytest.raises(StorageError):
        store_result(RunPaths(folder / "layouts.h5"), own_result())
    assert not RunPaths(folder / "layouts.h5").shard(own_result().key).exists()
