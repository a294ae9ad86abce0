"""Runs on a real NFS, of versions 3 and 4.2: killed, resumed, taken over from another node, merged, checked, cleaned.

`make test-nfs` boots two machines for it. Node `here` serves the NFS and mounts it over loopback; node `there` is
another machine. /export/files is the same folder on the disk of the server, without NFS in between.
"""

import errno
import json
import os
import secrets
import shutil
import signal
from pathlib import Path

import pytest
from nfs_node import Node

from run_cases import INLINE, calls, make_campaign, until

pytestmark = [
    pytest.mark.nfs,
    pytest.mark.skipif("LEEWARD_NFS" not in os.environ, reason="needs a real NFS: make test-nfs"),
]
SEEDS = 4
ON_SERVER = Path("/export/files")
# an owner counts, and is watched, in steps of half a second instead of two
QUICK = "from leeward.store.directory import lock as locks; locks.INTERVAL_S = 0.5\n"


@pytest.fixture(scope="session")
def here():
    return Node("127.0.0.1")


@pytest.fixture(scope="session")
def there():
    return Node("10.0.0.2")


@pytest.fixture(scope="session")
def expected(here, tmp_path_factory):
    """Digests of a run that nothing disturbed, on a local disk."""
    folder = tmp_path_factory.mktemp("undisturbed")
    make_campaign(folder, seeds=SEEDS, execution=INLINE)
    ok(here.leeward("run", "campaign.yaml", cwd=folder))
    return digests(here, folder / "layouts.h5")


@pytest.fixture(params=["v3", "v4"])
def folder(request):
    """A new folder, at the same path on both nodes."""
    path = Path(os.environ["LEEWARD_NFS"], request.param, secrets.token_hex(4))
    path.mkdir()
    return path


def ok(done, code=0):
    assert done.returncode == code, f"{done.args}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def digests(node: Node, output: Path) -> dict[str, str]:
    """Return those of all results in a file, as this node sees it."""
    return node.do(f"from run_cases import digests; answer = digests(Path({str(output)!r}))")


def cached(folder: Path) -> Path:
    """Return the folder on the mount that caches attributes and listings for 60 s."""
    return Path(f"{folder.parent}-cached", folder.name)


def on_server(folder: Path) -> Path:
    return ON_SERVER / folder.name


def start_until(node: Node, folder: Path, seed: int, before: str = QUICK) -> int:
    """Start a run that waits in the task of this seed until there is a file `go`."""
    make_campaign(folder, seeds=SEEDS, execution=INLINE, orders={seed: "until=go"})
    run = node.start("run", "campaign.yaml", cwd=folder, before=before)

    def reached():
        assert node.poll(run) is None, node.wait(run)
        return (on_server(folder) / "calls.txt").exists() and calls(on_server(folder)) == list(range(seed + 1))

    until(reached, f"the run is at seed {seed}")
    return run


def kill(node: Node, run: int) -> None:
    node.signal(run, signal.SIGKILL)
    assert node.wait(run).returncode == -signal.SIGKILL


# --- kill, resume, merge, check, clean -------------------------------------------------------------------------------


def test_a_killed_run_resumes_and_is_merged_checked_and_cleaned(folder, here, expected):
    kill(here, start_until(here, folder, 2))
    (folder / "go").touch()
    ok(here.leeward("run", "campaign.yaml", cwd=folder))
    assert digests(here, folder / "layouts.h5") == expected
    assert sorted(calls(folder)) == [0, 1, 2, 2, 3]
    ok(here.leeward("check", "layouts.run", "--complete", cwd=folder))
    ok(here.leeward("merge", "layouts.run", "-o", "merged.h5", cwd=folder))
    assert digests(here, folder / "merged.h5") == expected
    ok(here.leeward("clean", "layouts.run", cwd=folder))
    ok(here.leeward("clean", "layouts.run", "--merged", cwd=folder))
    ok(here.leeward("run", "campaign.yaml", cwd=folder))
    assert digests(here, folder / "layouts.h5") == expected
    assert sorted(calls(folder)) == [0, 1, 2, 2, 3]


# --- another node ----------------------------------------------------------------------------------------------------


def test_a_run_on_another_node_is_left_alone_while_it_lives(folder, here, there):
    run = start_until(here, folder, 0)
    refused = ok(there.leeward("run", "campaign.yaml", cwd=folder), code=1)
    assert "on node-a" in refused.stderr
    patient = QUICK + "locks.INTERVALS = 1000\n"
    refused = ok(there.leeward("run", "campaign.yaml", "--take-over", cwd=folder, before=patient), code=1)
    assert "alive" in refused.stderr
    (folder / "go").touch()
    ok(here.wait(run))
    assert calls(folder) == list(range(SEEDS))


def test_a_run_that_died_on_another_node_is_taken_over_when_asked_for(folder, here, there, expected):
    kill(here, start_until(here, folder, 2))
    (folder / "go").touch()
    refused = ok(there.leeward("run", "campaign.yaml", cwd=folder), code=1)
    assert "--take-over" in refused.stderr
    ok(there.leeward("run", "campaign.yaml", "--take-over", cwd=folder, before=QUICK))
    assert digests(here, folder / "layouts.h5") == expected
    assert sorted(calls(on_server(folder))) == [0, 1, 2, 2, 3]


def test_a_stopped_owner_that_wakes_up_after_a_take_over_stops(folder, here, there, expected):
    run = start_until(here, folder, 2)
    here.signal(run, signal.SIGSTOP)
    (on_server(folder) / "go").touch()
    ok(there.leeward("run", "campaign.yaml", "--take-over", cwd=folder, before=QUICK))
    here.signal(run, signal.SIGCONT)
    stopped = here.wait(run)
    assert stopped.returncode == 1
    assert "taken over" in stopped.stderr
    assert digests(here, folder / "layouts.h5") == expected


# --- silly renames ---------------------------------------------------------------------------------------------------

HOLD_OPEN = """
handles = [open(path, "rb") for path in Path({folder!r}).rglob("*") if path.is_file()]
"""


def test_files_that_are_open_elsewhere_and_removed_are_ignored(folder, here, expected):
    """The client renames them to .nfs... instead, and these stay in the folder until they are closed."""
    kill(here, start_until(here, folder, 2))
    (folder / "go").touch()
    run = folder / "layouts.run"
    here.do(HOLD_OPEN.format(folder=str(run)))
    ok(here.leeward("run", "campaign.yaml", cwd=folder))
    here.do(HOLD_OPEN.format(folder=str(folder)).replace("handles =", "handles +="))
    ok(here.leeward("clean", "layouts.run", "--merged", cwd=folder))
    assert list(folder.rglob(".nfs*"))
    ok(here.leeward("check", "layouts.run", "layouts.h5", cwd=folder))
    ok(here.leeward("clean", "layouts.run", cwd=folder))
    ok(here.leeward("merge", "layouts.run", "layouts.h5", "-o", "layouts.h5", cwd=folder))
    ok(here.leeward("run", "campaign.yaml", cwd=folder))
    ok(here.leeward("status", "layouts.run", cwd=folder))
    here.do("for handle in handles: handle.close()")
    assert digests(here, folder / "layouts.h5") == expected
    assert sorted(calls(folder)) == [0, 1, 2, 2, 3]
    assert not list(on_server(folder).rglob(".nfs*"))


# --- stale handles ---------------------------------------------------------------------------------------------------


READ_AGAIN = """
os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)  # from the server, not from memory
try:
    os.pread(handle, 10, 0)
except OSError as error:
    answer = error.errno
os.close(handle)
"""


def test_a_lock_that_is_replaced_on_the_server_by_a_copy_is_still_held(folder, here, there, expected):
    run = start_until(there, folder, 2)
    lock = on_server(folder) / "layouts.run" / "lock"
    there.do(f"handle = os.open({str(folder / 'layouts.run' / 'lock')!r}, os.O_RDONLY)")
    copy = lock.with_name("copy")
    copy.write_bytes(lock.read_bytes())
    copy.replace(lock)
    found = there.do(READ_AGAIN)
    assert found == errno.ESTALE or folder.parent.name == "v4"  # there the server keeps a file that is open
    (on_server(folder) / "go").touch()
    ok(there.wait(run))
    assert digests(here, on_server(folder) / "layouts.h5") == expected
    assert not lock.exists()


def test_a_run_directory_that_is_replaced_on_the_server_loses_nothing(folder, here, there, expected):
    """It is put in place anew, as from a backup: every handle and every cached name of the client is stale."""
    run = start_until(there, folder, 2)
    directory = on_server(folder) / "layouts.run"
    copy = directory.with_name("copy")
    shutil.copytree(directory, copy)
    shutil.rmtree(directory)
    copy.rename(directory)
    (on_server(folder) / "go").touch()
    done = there.wait(run)
    print("the run itself:", done.returncode, done.stderr)
    if done.returncode:
        assert done.returncode in (1, 4), done
        assert "layouts.run" in done.stderr
        ok(there.leeward("run", "campaign.yaml", cwd=folder))
    assert digests(here, on_server(folder) / "layouts.h5") == expected
    assert [calls(on_server(folder)).count(seed) for seed in (0, 1)] == [1, 1]


# --- cached attributes and listings ----------------------------------------------------------------------------------

LOOK = "answer = sorted(str(path) for path in Path({folder!r}).rglob('*'))"


def test_a_node_with_an_old_listing_computes_nothing_twice(folder, here, there, expected):
    run = start_until(here, folder, 1)
    old = cached(folder)
    there.do(LOOK.format(folder=str(old)))
    ok(there.leeward("status", "layouts.run", "--json", cwd=old))
    (folder / "orders" / "3").write_text("until=stay")
    (folder / "go").touch()
    until(lambda: calls(folder) == [0, 1, 2, 3], "it is at seed 3")
    kill(here, run)
    (folder / "stay").touch()
    ok(there.leeward("run", "campaign.yaml", "--take-over", cwd=old, before=QUICK))
    assert digests(here, on_server(folder) / "layouts.h5") == expected
    assert sorted(calls(on_server(folder))) == [0, 1, 2, 3, 3]


def test_a_node_with_an_old_listing_calls_nothing_missing(folder, here, there):
    run = start_until(here, folder, 2)
    old = cached(folder)
    there.do(LOOK.format(folder=str(old)))
    assert json.loads(ok(there.leeward("status", "layouts.run", "--json", cwd=old)).stdout)["done"] == 2
    (folder / "go").touch()
    ok(here.wait(run))
    seen = there.leeward("status", "layouts.run", "--json", cwd=old)
    print("status right after the end, from the old listing:", seen.returncode, seen.stdout)
    ok(there.leeward("run", "campaign.yaml", cwd=old))
    assert calls(on_server(folder)) == list(range(SEEDS))
    ok(there.leeward("check", "layouts.run", "--complete", cwd=old))
    assert json.loads(ok(there.leeward("status", "layouts.run", "--json", cwd=old)).stdout)["missing"] == 0
