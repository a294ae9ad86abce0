"""One owner of a run directory, told apart from all others; dead ones give way, stopped ones when asked for."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from leeward.errors import HeldError
from leeward.files import rename
from leeward.store.directory import lock as locks
from leeward.store.directory.lock import Lock, read_owner
from leeward.store.directory.owner import Owner, process_start
from run_cases import is_stopped, until

HOLDER = """
import sys
from pathlib import Path
from leeward.store.directory import lock as locks
from leeward.store.directory.lock import Lock
locks.INTERVAL_S = 0.05
lock = Lock.take(Path(sys.argv[1]))
print("taken", flush=True)
sys.stdin.read()
lock.release()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


@pytest.fixture
def holder(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "taken\n"
    yield process
    process.kill()
    process.communicate()


def change_owner(path, **changes):
    """Replace the lock by one of another owner. It is another file: the holder goes on counting in its own."""
    first, second = path.read_text().splitlines()
    new = path.with_name("changed")
    new.write_text(f"{json.dumps({**json.loads(first), **changes})}\n{second}\n")
    new.replace(path)


def test_the_second_is_told_who_holds_it(path, holder):
    with pytest.raises(HeldError, match=f"process {holder.pid} on .*--take-over"):
        Lock.take(path)
    holder.communicate("")
    Lock.take(path).release()
    assert not path.exists()


def test_a_dead_owner_gives_way_at_once(path, holder):
    holder.kill()
    # not waited for: a dead process that its parent has not heard of yet still has its number
    until(lambda: process_start(holder.pid) is None, "the holder is dead")
    lock = Lock.take(path)
    assert read_owner(path)[0].pid == os.getpid()
    lock.release()


def test_a_process_with_the_number_of_the_owner_is_not_the_owner(path, holder):
    owner, _ = read_owner(path)
    change_owner(path, process_start="1")
    assert owner.is_gone is False
    Lock.take(path).release()


def test_an_owner_on_another_host_is_left_alone(path, holder):
    change_owner(path, host="elsewhere", pid=999_999_999)
    with pytest.raises(HeldError, match="elsewhere"):
        Lock.take(path)


def test_the_same_machine_started_anew_has_no_old_owners(path, holder):
    change_owner(path, boot_id="another")
    owner, _ = read_owner(path)
    assert owner.is_gone is bool(owner.machine_id)


def test_a_stopped_owner_is_taken_over_when_asked_for_and_learns_of_it(path, holder, monkeypatch):
    monkeypatch.setattr(locks, "INTERVAL_S", 0.05)
    holder.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(holder.pid), "it counts no more")
    with pytest.raises(HeldError, match="--take-over"):
        Lock.take(path)
    said = []
    with path.open() as old:
        lock = Lock.take(path, take_over=True, emit=lambda kind, **facts: said.append((kind, facts["message"])))
        assert said[0][0] == "waiting"
        assert "before taking over" in said[0][1]
        before = counter_in(old)
        holder.send_signal(signal.SIGCONT)
        until(lambda: counter_in(old) > before + 2, "the old owner counts on, in a file without a name")
    lock.check()
    holder.communicate("")  # and releases what is not its own
    lock.check()
    lock.release()


def counter_in(file):
    file.seek(0)
    return int(file.read().split()[-1])


def test_a_living_owner_is_not_taken_over(path, holder, monkeypatch):
    """Its heartbeat is seen as soon as it counts, however long that takes on a slow disk."""
    monkeypatch.setattr(locks, "INTERVAL_S", 0.05)
    monkeypatch.setattr(locks, "INTERVALS", 12_000)
    with pytest.raises(HeldError, match="alive"):
        Lock.take(path, take_over=True)


def test_the_owner_knows_when_it_is_not_any_more(path):
    lock = Lock.take(path)
    lock.check()
    owner = Owner.myself()
    locks._put(path, owner, rename)
    with pytest.raises(HeldError, match="taken over"):
        lock.check()
    lock.release()
    assert read_owner(path)[0].token == owner.token


def test_of_many_successors_one_wins(path, holder):
    holder.kill()
    holder.wait()
    won, lost = [], []

    def take():
        try:
            won.append(Lock.take(path))
        except HeldError:
            lost.append(1)

    threads = [threading.Thread(target=take) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert len(lost) == 15
    won[0].release()


def test_a_lock_that_nobody_can_read_is_held(path):
    path.write_text("{}\n")
    with pytest.raises(HeldError, match="unknown"):
        Lock.take(path)
