"""What the store does on its own: results, records of attempts, the audit log, the lock, merging, cleaning."""

import dataclasses
import errno
import functools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from interception import KILLS, Fault
from operation import KEY, STORED, Act, Operation, prepared, run_paths, seeds, simple, traced_python

from foreign_files import left_behind, own_result, write_crashed_folder
from leeward.store.directory import lock as locks
from leeward.store.directory.audit import Audit, read_lines
from leeward.store.directory.lock import Lock, read_owner
from leeward.store.directory.owner import Owner
from leeward.store.directory.quarantine import quarantine
from leeward.store.directory.records import begin_attempt, read_record, record_failure, remove_record, withdraw_attempt
from leeward.store.directory.results import Doubled, RunFiles, read_results
from leeward.store.directory.shards import store_result
from leeward.store.format.found import FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.merging.clean import clean
from leeward.store.merging.merge import merge, merge_run
from leeward.store.merging.packs import finish_packing, pack
from leeward.store.paths import RunPaths

COUNTS = 3
BAD = b"\x89HDF\r\n\x1a\n and no more"
WRITING_MODES = ("before", "ENOSPC", "EIO", "EDQUOT", "EACCES", "EROFS", "lost")

# --- results ---------------------------------------------------------------------------------------------------------


def _with_folder(folder: Path) -> None:
    prepared(folder)
    run_paths(folder).shard(KEY).parent.mkdir(exist_ok=True)


def _with_bad_file(folder: Path) -> None:
    _with_folder(folder)
    run_paths(folder).shard(KEY).write_bytes(BAD)


def _store(paths: RunPaths) -> None:
    store_result(paths, own_result(seed=KEY.seed))


def _all_stored(folder: Path) -> None:
    assert seeds(run_paths(folder)) == {KEY.seed, *STORED}


def _stored_and_bad_kept(folder: Path) -> None:
    _all_stored(folder)
    _is_quarantined(folder)


def _is_quarantined(folder: Path) -> None:
    """Once, with a reason that names it."""
    found = [path for path in run_paths(folder).quarantine.iterdir() if path.name.startswith(f"{KEY}.h5.")]
    files = [path for path in found if not path.name.endswith(".reason.json")]
    assert [path.read_bytes() for path in files] == [BAD], found
    about = json.loads(files[0].with_name(files[0].name + ".reason.json").read_text())
    assert about["file"] == files[0].name


def _quarantine(folder: Path, fault: Fault | None) -> Act:
    """As a run does: a file that is not there any more was moved before it was killed."""
    paths = run_paths(folder)
    bad = paths.shard(KEY)
    record = Audit(paths.audit).record

    def act(turn: str) -> None:
        if turn == "retry" or os.path.lexists(bad):
            quarantine(paths, bad, Verdict.TRUNCATED, "it ends early", record)

    return act


def _moved(folder: Path) -> None:
    assert seeds(run_paths(folder)) == set(STORED)
    _is_quarantined(folder)
    assert "quarantine" in {line["event"] for line in read_lines(run_paths(folder).audit)}


# --- records of attempts ---------------------------------------------------------------------------------------------


def _with_record(folder: Path) -> None:
    _begin(prepared(folder))


def _begin(paths: RunPaths) -> None:
    begin_attempt(paths, KEY, "f" * 64, "node-1-aa", "node")


def _begin_elsewhere(paths: RunPaths) -> None:
    begin_attempt(paths, KEY, "f" * 64, "node-2-bb", "node")


def _fail(paths: RunPaths) -> None:
    facts = {"kind": "died", "message": "it died", "traceback": "", "worker": "node-1-aa", "host": "node"}
    record_failure(paths, KEY, final=False, died=True, seconds=1.0, **facts)


def _attempts_are(*allowed: int, died: bool = False) -> Callable[[Path], None]:
    def expect(folder: Path) -> None:
        record = read_record(run_paths(folder).failure(KEY))
        assert (0 if record is None else len(record.attempts)) in allowed, record
        assert record is None or (record.failure is not None) == died

    return expect


def _died_once(folder: Path) -> None:
    assert read_record(run_paths(folder).failure(KEY)).deaths == 1, "one death counts twice"


# --- the audit log ---------------------------------------------------------------------------------------------------


def _with_log(folder: Path) -> None:
    audit = Audit(prepared(folder).audit)
    audit.record("earlier", number=1)


def _with_torn_log(folder: Path) -> None:
    _with_log(folder)
    with run_paths(folder).audit.open("ab") as log:
        log.write(b'{"time": "2026-01-01T00:00:00Z", "eve')


def _append(paths: RunPaths) -> None:
    Audit(paths.audit).record("test", text="x" * 200)


def _is_logged(folder: Path) -> None:
    events = [line["event"] for line in read_lines(run_paths(folder).audit)]
    assert events[0] == "earlier"
    assert set(events[1:]) == {"test"}


# --- the lock --------------------------------------------------------------------------------------------------------


def _bare(folder: Path) -> None:
    prepared(folder, ())


def _with_dead_owner(folder: Path) -> None:
    paths = prepared(folder, ())
    dead = dataclasses.replace(Owner.myself(), process_start="0")
    locks._create(paths.lock, dead)


def _take(folder: Path, fault: Fault | None) -> Act:
    """And keep it: the process ends without giving it back."""
    held = []
    return lambda turn: held.append(Lock.take(run_paths(folder).lock))


def _without_links(number: int) -> None:
    """EPERM: a file system that has none. Others: a disk that fails."""

    def no_link(source, target, **options) -> None:
        raise OSError(number, os.strerror(number), source)

    os.link = no_link


def _take_without_links(folder: Path, fault: Fault | None) -> Act:
    _without_links(errno.EPERM)
    return _take(folder, fault)


def _release(folder: Path, fault: Fault | None) -> Act:
    lock = Lock.take(run_paths(folder).lock)

    def act(turn: str) -> None:
        if turn != "retry":  # an owner that cannot give it back ends, and is dead
            lock.release()

    return act


def _count(folder: Path, fault: Fault | None) -> Act:
    """What the owner does every two seconds in a thread; here often. It goes on, whatever the disk says."""
    locks.INTERVAL_S = 1e6  # nothing is counted before it is looked at
    lock = Lock.take(run_paths(folder).lock)
    # On a full disk no count arrives any more. A short wait then gives the thread the chance to do something wrong.
    patience_s = 1.0 if fault is not None and fault.mode == "full" else 600.0

    def act(turn: str) -> None:
        lock._ended.set()
        lock._counter.join()
        lock._ended.clear()
        locks.INTERVAL_S = 0.01
        lock._counter = threading.Thread(target=lock._count, daemon=True)
        lock._counter.start()
        end = time.monotonic() + patience_s
        while read_owner(lock.path)[1] < COUNTS and time.monotonic() < end:
            time.sleep(0.01)
        lock._ended.set()
        lock._counter.join()

    return act


def _dead_owner_or_none(folder: Path) -> None:
    owner, _ = read_owner(run_paths(folder).lock)
    assert owner is None or owner.is_gone, owner


def _dead_owner(folder: Path) -> None:
    owner, _ = read_owner(run_paths(folder).lock)
    assert owner is not None
    assert owner.is_gone, owner


# --- merging ---------------------------------------------------------------------------------------------------------

ATTRIBUTES = {"campaign_name": "faults", "total_configs": 5}


def with_older_output(folder: Path) -> None:
    paths = prepared(folder, [1, 2, 3])
    merge_run(paths, ATTRIBUTES)
    for seed in (4, 5):
        store_result(paths, own_result(seed=seed))


def _with_damaged_output(folder: Path) -> None:
    with_older_output(folder)
    output = run_paths(folder).output
    output.write_bytes(output.read_bytes()[:-100])


def with_foreign_files(folder: Path) -> None:
    """The worker files of the story, and shards."""
    prepared(folder, [20, 21])
    write_crashed_folder(folder / "worker_files")


def start_merge(folder: Path, fault: Fault | None) -> Act:
    paths = run_paths(folder)
    return lambda turn: merge_run(paths, ATTRIBUTES, emit=Audit(paths.audit).record)


def _merge_run_no_links(folder: Path, fault: Fault | None) -> Act:
    _without_links(errno.EPERM)
    return start_merge(folder, fault)


def start_merge_of_sources(folder: Path, fault: Fault | None) -> Act:
    """Another output; the worker files go where all they hold was found again. On the next turn some are gone."""
    output = folder / "merged.h5"

    def act(turn: str) -> None:
        sources = [run_paths(folder).root, folder / "worker_files", *([output] if output.exists() else [])]
        merge(sources, output, on_bad="skip", remove_sources=True)

    return act


def _merge_traced(folder: Path, fault: Fault | None) -> Act:
    sys.executable = str(traced_python(folder, fault, "writing"))
    return start_merge(folder, fault)


def is_merged(folder: Path) -> None:
    assert run_paths(folder).output.exists()
    assert seeds(run_paths(folder)) == set(STORED)


def _is_merged_and_damaged_kept(folder: Path) -> None:
    is_merged(folder)
    assert list(folder.glob("layouts.h5.damaged-*"))


def _sources_are_merged(folder: Path) -> None:
    left = {path.name for path in (folder / "worker_files").iterdir()}
    assert {"worker_101.h5", "worker_108.h5"} <= left  # the empty and the truncated one
    assert "worker_100.h5" not in left


# --- cleaning --------------------------------------------------------------------------------------------------------


def with_output(folder: Path) -> None:
    merge_run(prepared(folder), ATTRIBUTES)


def _with_left_overs(folder: Path) -> None:
    _with_bad_file(folder)
    (run_paths(folder).shard(KEY).parent / f".{KEY}.h5.0123abcd.tmp").write_bytes(b"half")
    (folder / left_behind("layouts.h5")).write_bytes(b"half")


def start_cleaning(merged: bool, folder: Path, fault: Fault | None) -> Act:
    paths = run_paths(folder)
    return lambda turn: clean(paths, merged=merged, emit=Audit(paths.audit).record)


def is_cleaned(folder: Path) -> None:
    assert run_paths(folder).output.exists()
    assert seeds(run_paths(folder)) == set()


def _moved_and_tidied(folder: Path) -> None:
    _moved(folder)
    assert not list(folder.rglob("*.0123abcd.tmp"))


# --- packing ---------------------------------------------------------------------------------------------------------

PACKED = range(1, 5)  # of the results that are there


def pack_some(folder: Path, fault: Fault | None) -> Act:
    """As a run does: the same pack again in the same process; what a killed one has packed already is finished."""
    paths = run_paths(folder)
    record = Audit(paths.audit).record
    keys = [Key(0, 0, seed) for seed in PACKED]
    place = paths.new_pack()

    def act(turn: str) -> None:
        left = keys
        if turn == "anew":
            doubled = [found for found in read_results(RunFiles(paths)) if isinstance(found, Doubled)]
            finish_packing(paths, doubled, record)
            left = [key for key in keys if paths.shard(key).exists()]
        if left:
            done = pack(paths, left, place, ATTRIBUTES, emit=record)
            assert (done.bad, done.kept) == ([], []), done

    return act


def _pack_traced(folder: Path, fault: Fault | None) -> Act:
    sys.executable = str(traced_python(folder, fault, "writing"))
    return pack_some(folder, fault)


def _with_damaged_pack(folder: Path) -> None:
    """One result of it is lost, which a shard has too."""
    prepared(folder)
    pack_some(folder, None)("first")
    (path,) = run_paths(folder).pack_files()
    content = bytearray(path.read_bytes())
    content[content.index(own_result(seed=2).layout.tobytes()[:32]) + 5] ^= 16
    path.write_bytes(content)
    store_result(run_paths(folder), own_result(seed=2))


def _with_packs(folder: Path) -> None:
    prepared(folder)
    pack_some(folder, None)("first")
    merge_run(run_paths(folder), ATTRIBUTES)


def _with_packs_to_merge(folder: Path) -> None:
    prepared(folder)
    pack_some(folder, None)("first")


def _is_merged_from_packs(folder: Path) -> None:
    assert run_paths(folder).output.exists()
    is_packed(folder)


def is_packed(folder: Path) -> None:
    """Once, all that was to be packed, and none of it as a shard."""
    paths = run_paths(folder)
    assert seeds(paths) == set(STORED) - set(PACKED)
    found = list(read_results(RunFiles(paths)))
    assert all(isinstance(one, FoundResult) for one in found), found
    assert {one.key.seed for one in found} == set(STORED)
    assert not list(paths.packs.glob(".*")), "left over"


def _is_unpacked(folder: Path) -> None:
    paths = run_paths(folder)
    assert seeds(paths) == set(STORED)
    assert not paths.pack_files()
    assert [path for path in paths.quarantine.iterdir() if path.name.startswith("pack-")]


def _no_packs(folder: Path) -> None:
    is_cleaned(folder)
    assert not run_paths(folder).pack_files()


STORE = {
    "store, new folder": Operation(prepared, simple(_store), _all_stored),
    "store, folder is there": Operation(_with_folder, simple(_store), _all_stored),
    "store, bad file in its place": Operation(_with_bad_file, simple(_store), _stored_and_bad_kept),
    "quarantine": Operation(_with_bad_file, _quarantine, _moved),
    "begin an attempt": Operation(prepared, simple(_begin), _attempts_are(1, 2), retried=_attempts_are(1)),
    "begin another attempt": Operation(
        _with_record, simple(_begin_elsewhere), _attempts_are(2, 3), retried=_attempts_are(2)
    ),
    "record a failure": Operation(_with_record, simple(_fail), _attempts_are(1, died=True), retried=_died_once),
    "withdraw an attempt": Operation(
        _with_record, simple(lambda paths: withdraw_attempt(paths, KEY)), _attempts_are(0)
    ),
    "remove a record": Operation(_with_record, simple(lambda paths: remove_record(paths, KEY)), _attempts_are(0)),
    "audit": Operation(_with_log, simple(_append), _is_logged),
    "audit after a torn line": Operation(_with_torn_log, simple(_append), _is_logged),
    "take the lock": Operation(_bare, _take, _dead_owner),
    "take the lock, no links": Operation(_bare, _take_without_links, _dead_owner),
    "take over the lock": Operation(_with_dead_owner, _take, _dead_owner),
    "release the lock": Operation(_bare, _release, _dead_owner_or_none),
    "count in the lock": Operation(_bare, _count, _dead_owner, most=2 * COUNTS, all_threads=True),
    "merge, new output": Operation(prepared, start_merge, is_merged, sample=2),
    "merge, over an output": Operation(with_older_output, start_merge, is_merged, sample=2),
    "merge, over a damaged output": Operation(_with_damaged_output, start_merge, _is_merged_and_damaged_kept, sample=2),
    "merge, over a damaged output, links fail": Operation(
        _with_damaged_output, _merge_run_no_links, _is_merged_and_damaged_kept, modes=KILLS, sample=2
    ),
    "merge, libhdf5": Operation(prepared, _merge_traced, is_merged, modes=WRITING_MODES, traced="writing", sample=2),
    "merge sources and remove them": Operation(
        with_foreign_files, start_merge_of_sources, _sources_are_merged, sample=2, every=3
    ),
    "clean": Operation(_with_left_overs, functools.partial(start_cleaning, False), _moved_and_tidied, sample=2),
    "pack": Operation(prepared, pack_some, is_packed, sample=2),
    "pack, libhdf5": Operation(prepared, _pack_traced, is_packed, modes=WRITING_MODES, traced="writing", sample=2),
    "merge, with packs": Operation(_with_packs_to_merge, start_merge, _is_merged_from_packs, sample=2),
    "clean, with a damaged pack": Operation(
        _with_damaged_pack, functools.partial(start_cleaning, False), _is_unpacked, sample=2
    ),
    "clean --merged, with packs": Operation(_with_packs, functools.partial(start_cleaning, True), _no_packs, sample=2),
    "clean --merged": Operation(with_output, functools.partial(start_cleaning, True), is_cleaned, sample=2),
}
