"""A disk that is full, read-only or gone, and comes back: nothing is lost, nothing half-written has a final name."""

import shlex
import subprocess
import sys
import time

import pytest

from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths
from run_cases import (
    INLINE,
    LEEWARD,
    PATIENCE_S,
    audit,
    calls,
    digests,
    kill_group,
    leeward_here,
    make_campaign,
    shards,
    start,
    until,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts file systems as Linux does")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a file system: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


TASKS = 8  # more than what is freed on a full disk, by files that are being replaced, has room for


def waiting_campaign(folder):
    """The first task is done at once; the others wait for a file `go`."""
    execution = {"workers": 2, "timeout_s": 600}
    return make_campaign(folder, seeds=TASKS, orders={"0": "wait=0", "all": "until=go"}, execution=execution)


def until_two_wait(folder, run):
    until(lambda: shards(run) and len(calls(folder)) == 3, "the first result, and two tasks in hand")


def until_steady(count, seconds=1.0):
    """Wait until a number has not changed for a while, and return it.

    The wait gives a fault the chance to show: on a slow machine the number is too small, never too large.
    """
    latest, since = count(), time.monotonic()
    end = since + PATIENCE_S
    while time.monotonic() < since + seconds:
        assert time.monotonic() < end
        time.sleep(0.1)
        if count() != latest:
            latest, since = count(), time.monotonic()
    return latest


def fill(disk):
    """To the last byte."""
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass


def whole(run):
    """Every file with a final name in the run directory can be read to its end."""
    done = leeward_here("check", run, cwd=run.parent)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_full_disk_that_gets_room_again(tmp_path, small_disk):
    waiting_campaign(tmp_path)
    run = small_disk / "layouts.run"
    process = start("run", "campaign.yaml", "-o", small_disk / "layouts.h5", cwd=tmp_path)
    output = tmp_path / "output.txt"
    try:
        until_two_wait(tmp_path, run)
        fill(small_disk)
        (tmp_path / "go").touch()
        until(lambda: "the disk rejects writes" in output.read_text(), "the full disk is noticed")
        assert until_steady(lambda: len(calls(tmp_path))) < TASKS  # no new ones are begun
        assert process.poll() is None
        whole(run)
        (small_disk / "filler").unlink()
        assert process.wait(PATIENCE_S) == 0
    finally:
        kill_group(process)
    assert "accepts writes again" in output.read_text()
    assert len(digests(small_disk / "layouts.h5")) == TASKS
    assert sorted(calls(tmp_path)) == list(range(TASKS))  # what was computed waited in memory
    assert not list((run / "failures").iterdir())
    assert "failed" not in {line["event"] for line in audit(run)}


@pytest.mark.slow
def test_a_disk_that_stays_full(tmp_path, small_disk):
    waiting_campaign(tmp_path)
    run = small_disk / "layouts.run"
    process = start("run", "campaign.yaml", "-o", small_disk / "layouts.h5", "--storage-wait", 1, cwd=tmp_path)
    try:
        until_two_wait(tmp_path, run)
        fill(small_disk)
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE_S) == 4
    finally:
        kill_group(process)
    assert "the disk has rejected writes for" in (tmp_path / "output.txt").read_text()
    whole(run)
    full = leeward_here("run", "campaign.yaml", "-o", small_disk / "layouts.h5", cwd=tmp_path)
    assert full.returncode == 4  # said at once, by the probe
    (small_disk / "filler").unlink()
    inline = ("--engine", "inline")
    done = leeward_here("run", "campaign.yaml", "-o", small_disk / "layouts.h5", *inline, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(digests(small_disk / "layouts.h5")) == TASKS


@pytest.mark.slow
def test_a_log_on_the_full_disk_and_a_reader_that_is_gone(tmp_path, small_disk):
    """Nobody who watches may stop a run."""
    waiting_campaign(tmp_path)
    run = small_disk / "layouts.run"
    with (small_disk / "run.log").open("wb") as log:
        process = subprocess.Popen(
            [*LEEWARD, "run", tmp_path / "campaign.yaml", "-o", small_disk / "layouts.h5"], stdout=log, stderr=log
        )
    try:
        until_two_wait(tmp_path, run)
        fill(small_disk)
        (tmp_path / "go").touch()
        time.sleep(1)  # it gives a fault the chance to show; a slow machine shows less
        assert process.poll() is None
        (small_disk / "filler").unlink()
        assert process.wait(PATIENCE_S) == 0
    finally:
        kill_group(process)
    assert len(digests(small_disk / "layouts.h5")) == TASKS
    command = shlex.join([*LEEWARD, "run", "campaign.yaml", "--json", "--engine", "inline"])
    shell = f"exec 3>&1; {{ {command}; echo $? >&3; }} | head -1 > /dev/null"
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout.split() == ["0"], done.stderr
    assert len(digests(tmp_path / "layouts.h5")) == TASKS


def test_too_little_room_is_said_at_once(tmp_path, small_disk):
    make_campaign(tmp_path, seeds=1000)
    done = leeward_here("run", "campaign.yaml", "-o", small_disk / "layouts.h5", cwd=tmp_path)
    assert done.returncode == 4
    assert "MB are free, but 1000 results" in done.stderr
    assert calls(tmp_path) == []


def test_a_read_only_disk_is_said_at_once(tmp_path, small_disk):
    make_campaign(tmp_path, seeds=2, execution=INLINE)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = leeward_here("run", "campaign.yaml", "-o", small_disk / "layouts.h5", cwd=tmp_path)
    assert done.returncode == 4
    assert "Read-only file system" in done.stderr
    assert "Traceback" not in done.stderr
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert leeward_here("run", "campaign.yaml", "-o", small_disk / "layouts.h5", cwd=tmp_path).returncode == 0


def test_a_folder_that_takes_nothing_for_a_while(tmp_path):
    """Results cannot be stored in the middle of a run, and later they can."""
    waiting_campaign(tmp_path)
    run = tmp_path / "layouts.run"
    process = start("run", "campaign.yaml", cwd=tmp_path)
    try:
        until_two_wait(tmp_path, run)
        places = {RunPaths(tmp_path / "layouts.h5").shard(Key(0, 0, seed)).parent for seed in range(TASKS)}
        blocked = [place for place in places if not place.exists()]
        for place in blocked:
            place.touch()  # a file where a folder is to be made
        (tmp_path / "go").touch()
        until(lambda: "the disk rejects writes" in (tmp_path / "output.txt").read_text(), "it is noticed")
        for place in blocked:
            place.unlink()
        assert process.wait(PATIENCE_S) == 0
    finally:
        kill_group(process)
    assert len(digests(tmp_path / "layouts.h5")) == TASKS
    assert sorted(calls(tmp_path)) == list(range(TASKS))
