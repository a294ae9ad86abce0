"""The power is cut after each call of the store: on a model of a disk that loses whatever was not synced, and on ext4.

The short version looks at fewer states, and at half of the slow operations; at other ones with another
LEEWARD_FAULTS_SEED. With LEEWARD_FAULTS=long it looks at all, or at many. `make test` has a few operations, and
`make test-all` has the short version. One operation alone, with the states that are not as promised:
`python tests/faults/power.py OPERATION --seed S --keep FOLDER`.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import power
import pytest
from operations import OPERATIONS, Operation
from parts import PART, PARTS
from power import Plan, try_power
from power_disk import Call, Disk
from power_ext4 import SEEDS
from power_variants import FOUND
from test_steps import can_trace, marked

from leeward.store.format.verdicts import Verdict
from leeward.store.merging.check import check

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: records system calls")

IS_LONG = os.environ.get("LEEWARD_FAULTS") == "long"
SEED = int(os.environ.get("LEEWARD_FAULTS_SEED", "1"))
PLAN = (
    Plan(SEED, part=PART, parts=PARTS) if IS_LONG else Plan(SEED, most=12, again=3, kills=3, slow_again=1, slow_kills=0)
)

QUICK = ("store, folder is there", "record a failure", "take the lock", "merge, over an output")  # for `make test`
QUICK_FOUND = ("wrong: store, the file is not synced", "wrong: record, removed and renamed")

SLOW = [name for name in power.NAMES if OPERATIONS[name].sample < Operation.sample]
LEFT_OUT = [] if IS_LONG else [name for name in random.Random(SEED).sample(SLOW, len(SLOW) // 2) if name not in QUICK]

# Promises that are known not to be kept yet, by operation. An entry goes with its bug: the long version fails on one
# that is not needed any more.
KNOWN = {
    # where there are no links, a damaged output may be only under its other name, until the next merge
    "merge, over a damaged output, links fail": r"; (after a kill: )?there is no output any more",
    # where there are no links, a lock may be there that is not whole: it needs --take-over
    "take the lock, no links": r"; .*lock cannot be read",
}


@pytest.fixture(scope="module")
def tools():
    if not can_trace():
        pytest.skip("needs strace, and the right to trace")
    with power.tools() as tools:
        yield tools


@pytest.mark.parametrize("name", marked([name for name in power.NAMES if name not in LEFT_OUT], QUICK))
def test_the_power_is_cut_at_every_step(name, tools, record_property):
    outcome = try_power(tools, name, PLAN)
    print(f"\n{outcome}; seed {SEED}")
    new = [
        problem for problem in outcome.problems if name not in KNOWN or not re.search(KNOWN[name], problem, re.DOTALL)
    ]
    record_property("operations", int(PART == 1))
    record_property("points", outcome.points)
    record_property("states", outcome.states)
    record_property("states in which it was done again", outcome.again)
    record_property("kills before", outcome.kills)
    record_property("problems that are known", len(outcome.problems) - len(new))
    record_property("problems", len(new))
    assert not new, "\n".join([f"seed {SEED}, {len(new)} problems:", *new])
    assert outcome.states > outcome.points > 0
    if IS_LONG and PARTS == 1 and name in KNOWN:
        assert outcome.problems, f"remove {name} from KNOWN"


@pytest.mark.parametrize("name", marked(FOUND, QUICK_FOUND))
def test_what_is_done_wrong_is_found(name, tools, record_property):
    """Each variant leaves out what it takes to survive a power cut, and nothing else shows it."""
    outcome = try_power(tools, name, PLAN)
    print(f"\n{outcome}; seed {SEED}")
    assert any(re.search(FOUND[name], problem) for problem in outcome.problems), outcome.problems
    record_property("wrong variants found", 1)


# --- the model -------------------------------------------------------------------------------------------------------


def held(disk, most=1000):
    """The trees that the disk may hold."""
    states = disk.states(random.Random(SEED), most)
    return {tuple(sorted((path, content.data) for path, content in state.files.items())) for state in states}


def applied(folder, *calls):
    disk = Disk(folder)
    for call in calls:
        disk.apply(call)
    return disk


NEW = Call("open", "new", handle=3, flags=frozenset({"O_CREAT"}))
WRITTEN = Call("write", "new", data=b"abcd", handle=3)


def test_nothing_that_is_not_synced_is_sure(tmp_path):
    states = held(applied(tmp_path, NEW, WRITTEN))
    assert states == {
        (),
        (("new", b""),),
        (("new", b"\0\0\0\0"),),
        (("new", b"a"),),
        (("new", b"ab"),),
        (("new", b"abcd"),),
    }


def test_a_synced_file_may_have_no_name_and_no_name_lacks_synced_data(tmp_path):
    synced = (NEW, WRITTEN, Call("sync", "new"))
    assert held(applied(tmp_path, *synced)) == {(), (("new", b"abcd"),)}
    assert held(applied(tmp_path, *synced, Call("sync", ""))) == {(("new", b"abcd"),)}


def test_a_rename_may_come_before_the_data_and_is_one_step(tmp_path):
    (tmp_path / "old").write_bytes(b"xy")
    new = (NEW, WRITTEN, Call("sync", ""))  # the name, and not the data
    states = held(applied(tmp_path, *new, Call("rename", "new", "old")))
    assert (("old", b""),) in states
    assert (("old", b"xy"), ("new", b"abcd")) not in states
    assert all([path for path, _ in state] in (["old"], ["new", "old"]) for state in states)
    durable = held(applied(tmp_path, NEW, WRITTEN, Call("sync", "new"), Call("rename", "new", "old")))
    assert durable == {(("old", b"xy"),), (("old", b"abcd"),), (("new", b"abcd"), ("old", b"xy"))}


def test_names_are_lost_in_any_order(tmp_path):
    made = [Call("open", name, flags=frozenset({"O_CREAT"})) for name in "abc"]
    assert len(held(applied(tmp_path, *made))) == 8
    folder = (Call("mkdir", "in"), Call("open", "in/a", flags=frozenset({"O_CREAT"})), Call("sync", "in"))
    assert held(applied(tmp_path, *folder)) == {(), (("in/a", b""),)}


def test_a_moved_file_is_somewhere(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "file").write_bytes(b"xy")
    moved = Call("rename", "one/file", "two/file")
    assert held(applied(tmp_path, moved)) == {(("one/file", b"xy"),), (("two/file", b"xy"),)}
    for synced in ("one", "two"):
        assert held(applied(tmp_path, moved, Call("sync", synced))) == {(("two/file", b"xy"),)}
    removed = applied(tmp_path, moved, Call("rmdir", "one"))
    assert all(len(state) == 1 for state in held(removed))


def test_pages_are_lost_one_by_one(tmp_path):
    (tmp_path / "new").write_bytes(b"")
    states = held(applied(tmp_path, Call("write", "new", data=b"x" * 8192, offset=0)))
    assert (("new", bytes(4096) + b"x" * 4096),) in states
    assert (("new", b"x" * 4096),) in states


# --- a real file system ----------------------------------------------------------------------------------------------


@pytest.fixture
def real_disk(tmp_path):
    """An ext4 in a file, and where it is mounted. It writes what it is asked to sync, and little else."""
    image, place = tmp_path / "image", tmp_path / "disk"
    place.mkdir()
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("needs mkfs.ext4")
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    mount(image, place)
    yield image, place
    subprocess.run(["umount", "--lazy", place], check=True)


def mount(image, place):
    command = ["mount", "-t", "ext4", "-o", "loop,commit=600", image, place]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a file system: {mounted.stderr.strip()}")


def copies_of(real_disk, folder, *options):
    image, place = real_disk
    for name in ("layouts.run", "layouts.run/results"):
        (place / name).mkdir()
    subprocess.run(["sync", "-f", place], check=True)
    folder.mkdir()
    script = Path(__file__).with_name("power_ext4.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, script, place, image, folder, *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def files_in(image, folder):
    """What is on the disk when the power is back."""
    place = folder / "mounted"
    place.mkdir(parents=True)
    mount(image, place)
    try:
        shutil.copytree(place, folder / "files", ignore=shutil.ignore_patterns("lost+found"))
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
    return [path for path in (folder / "files").rglob("*.h5") if path.is_file()]


def test_a_real_file_system(tmp_path, real_disk, record_property):
    """Every copy has all that was told as done, and nothing that is damaged."""
    copies = copies_of(real_disk, tmp_path / "copies")
    if not IS_LONG:
        copies = [*random.Random(SEED).sample(copies[:-1], 10), copies[-1]]
    found = []
    for copy in copies:
        there = files_in(tmp_path / "copies" / copy["copy"], tmp_path / copy["copy"])
        lacking = set(copy["done"]) - {path.stem for path in there} - {path.name for path in there}
        assert not lacking, (copy, f"seed {SEED}")
        found += there
    record_property("copies of an ext4 image", len(copies))
    heard = []
    report = check(found, on_found=heard.append)
    problems = [one for one in heard if one.verdict is not Verdict.VALID]
    assert not problems, (problems, f"seed {SEED}")
    assert len(report.keys) == len(SEEDS)


def test_a_real_file_system_that_nobody_syncs(tmp_path, real_disk):
    """The same without a single sync: if nothing were missing here, the test above would show nothing.

    The machine itself may sync all of its disks at any moment, for somebody else.
    """
    *_, last = copies_of(real_disk, tmp_path / "copies", "--no-sync")
    assert len(last["done"]) == len(SEEDS)
    assert len(files_in(tmp_path / "copies" / last["copy"], tmp_path / "last")) < len(SEEDS)
