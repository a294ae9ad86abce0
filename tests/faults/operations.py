"""What the store does, one operation each: how things stand before it, the operation itself, and how they stand after.

An operation is made once per process, `make(folder, fault)`, and then performed, `act(turn)`: turn is "first", "retry"
(in the same process, after an error) or "anew" (in a new process, after a kill). It works in a copy of the folder that
`prepare` filled.
"""

import dataclasses
import errno
import functools
import json
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from interception import ERRORS, KILLS, MODES, Fault

from foreign_files import own_result, write_crashed_folder, write_foreign_file
from leeward.errors import InputError
from leeward.store import lock as locks
from leeward.store.audit import Audit, read_lines
from leeward.store.check import check
from leeward.store.clean import clean
from leeward.store.found import FoundFile
from leeward.store.keys import Key
from leeward.store.lock import Lock, Owner, read_owner
from leeward.store.merge import merge, merge_run
from leeward.store.paths import RunPaths
from leeward.store.quarantine import quarantine
from leeward.store.reader import read_files
from leeward.store.records import begin_attempt, forget, forgive_attempt, read_record, record_failure
from leeward.store.shard import store_result
from leeward.store.verdicts import Verdict
from leeward.store.writer import OutputHoldsMoreError
from run_cases import calls as recipe_calls
from run_cases import leeward as leeward_command
from run_cases import make_campaign

Act = Callable[[str], None]
KEY = Key(0, 0, 0)  # of the task in hand
STORED = range(1, 6)  # seeds of the results that are there before
COUNTS = 3
BAD = b"\x89HDF\r\n\x1a\n and no more"
TRACED = {"writing": ("pwrite64", "ftruncate", "fsync"), "reading": ("read", "pread64")}  # by what the child is for
TRACED_MODES = ("before", "ENOSPC", "EIO", "EDQUOT", "EACCES", "EROFS", "lost")
FAILURES = (*ERRORS, "short", "full")
READING_MODES = ("before", "always", "EIO", "lost")


@dataclass(frozen=True)
class Operation:
    """expect: how things stand in the end. retried: and besides, after a retry in the same process. modes: of faults
    that are tried. sample: how many the short version tries. every: of how many calls the long one tries one. most:
    calls that faults are tried at, where later ones may not come. all_threads: not only the main one counts. traced:
    the faults are not in this process but in a child: in the one in which libhdf5 writes ("writing"), or in one of
    those that read files ("reading"). raises: what an error is in any case. keeps_output: there is one all the time.
    """

    prepare: Callable[[Path], None]
    make: Callable[[Path, Fault | None], Act]
    expect: Callable[[Path], None]
    retried: Callable[[Path], None] = lambda folder: None
    modes: tuple[str, ...] = MODES
    sample: int = 12
    every: int = 1
    most: int = 1000
    all_threads: bool = False
    traced: str = ""
    raises: str = "StorageError"
    keeps_output: bool = True

    def mend(self) -> None:
        """No more faults in child processes."""
        sys.executable = _PYTHON


_PYTHON = sys.executable


def run_paths(folder: Path) -> RunPaths:
    return RunPaths(folder / "layouts.h5")


def _prepared(folder: Path, stored=STORED) -> RunPaths:
    paths = run_paths(folder)
    for place in (paths.root, *paths.folders()):
        place.mkdir()
    for seed in stored:
        store_result(paths, own_result(seed=seed))
    return paths


def _simple(action: Callable[[RunPaths], object]) -> Callable[[Path, Fault | None], Act]:
    """The same whichever turn it is."""
    return lambda folder, fault: lambda turn: action(run_paths(folder))


def _seeds(paths: RunPaths) -> set[int]:
    return {Key.parse(path.stem).seed for path in paths.shards()}


# --- faults in child processes ---------------------------------------------------------------------------------------


def traced_python(folder: Path, fault: Fault | None, purpose: str) -> Path:
    """A stand-in for the interpreter: children of one purpose are under strace, anything else is as ever.

    Each of them takes a number; a fault is in one of them, or in all from then on.
    """
    base = folder.parent / folder.name
    inject, which = "", "-ge 0"
    if fault is not None:
        effect = {"before": "signal=KILL", "always": "signal=KILL"}.get(fault.mode, f"error={fault.mode}")
        if fault.mode == "lost":
            effect = "retval=1" if purpose == "writing" else "retval=0"
        inject = f"-e inject={fault.call}:{effect}:when={fault.when}"
        which = f"-ge {fault.child}" if fault.mode == "always" else f"-eq {fault.child}"
    trace = f"strace -D -f -y --seccomp-bpf -qq -e trace={','.join(TRACED[purpose])}"
    path = folder.parent / f"{folder.name}-python"
    path.write_text(
        "#!/bin/bash\n"
        f'if [[ "$*" == *leeward.store.{purpose}* ]]; then\n'
        f"  n=0; until mkdir {base}-child-$n 2> /dev/null; do n=$((n + 1)); done\n"
        f'  if [ $n {which} ]; then exec {trace} -o {base}-child-$n/trace {inject} {_PYTHON} "$@"; fi\n'
        "fi\n"
        f'exec {_PYTHON} "$@"\n'
    )
    path.chmod(0o755)
    return path


def traced_calls(folder: Path, purpose: str) -> tuple[list[tuple[str, str]], list[tuple[int, int]]]:
    """Calls on files of the folder, with the name of the file; and of each, in which child it was the how many-th."""
    calls, moments = [], []
    children = list(folder.parent.glob(f"{folder.name}-child-*"))
    for child in range(len(children)):
        seen: Counter[str] = Counter()
        for line in (folder.parent / f"{folder.name}-child-{child}" / "trace").read_text().splitlines():
            found = _TRACED_LINE.match(line)
            if found is None or found["call"] not in TRACED[purpose]:
                continue
            call = found["call"]
            seen[call] += 1
            if found["path"].startswith(f"{folder}/"):
                calls.append((call, found["path"].removeprefix(f"{folder}/")))
                moments.append((child, seen[call]))
    return calls, moments


_TRACED_LINE = re.compile(r"^\d+ +(?P<call>\w+)\(\d+<(?P<path>[^>]*?)(?: \(deleted\))?>")


# --- results ---------------------------------------------------------------------------------------------------------


def _with_folder(folder: Path) -> None:
    _prepared(folder)
    run_paths(folder).shard(KEY).parent.mkdir(exist_ok=True)


def _with_bad_file(folder: Path) -> None:
    _with_folder(folder)
    run_paths(folder).shard(KEY).write_bytes(BAD)


def _store(paths: RunPaths) -> None:
    store_result(paths, own_result(seed=KEY.seed))


def _all_stored(folder: Path) -> None:
    assert _seeds(run_paths(folder)) == {KEY.seed, *STORED}


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
    assert _seeds(run_paths(folder)) == set(STORED)
    _is_quarantined(folder)
    assert "quarantine" in {line["event"] for line in read_lines(run_paths(folder).audit)}


# --- records of attempts ---------------------------------------------------------------------------------------------


def _with_record(folder: Path) -> None:
    _begin(_prepared(folder))


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
    audit = Audit(_prepared(folder).audit)
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
    _prepared(folder, ())


def _with_dead_owner(folder: Path) -> None:
    paths = _prepared(folder, ())
    dead = dataclasses.replace(Owner.myself(), process_start="0")
    handle = locks._create(paths.lock, dead)
    os.close(handle)


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
    locks.INTERVAL_S = 0.3  # until it is looked at
    lock = Lock.take(run_paths(folder).lock)
    began = time.monotonic()

    def act(turn: str) -> None:
        locks.INTERVAL_S = 0.01
        while read_owner(lock.path)[1] < COUNTS and time.monotonic() < began + 1.0:
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


def _with_older_output(folder: Path) -> None:
    paths = _prepared(folder, [1, 2, 3])
    merge_run(paths, ATTRIBUTES)
    for seed in (4, 5):
        store_result(paths, own_result(seed=seed))


def _with_damaged_output(folder: Path) -> None:
    _with_older_output(folder)
    output = run_paths(folder).output
    output.write_bytes(output.read_bytes()[:-100])


def _with_foreign_files(folder: Path) -> None:
    """The worker files of the story, and shards."""
    _prepared(folder, [20, 21])
    write_crashed_folder(folder / "worker_files")


def _merge_run(folder: Path, fault: Fault | None) -> Act:
    paths = run_paths(folder)
    return lambda turn: merge_run(paths, ATTRIBUTES, record=Audit(paths.audit).record)


def _merge_run_no_links(folder: Path, fault: Fault | None) -> Act:
    _without_links(errno.EPERM)
    return _merge_run(folder, fault)


def _merge_sources(folder: Path, fault: Fault | None) -> Act:
    """Another output; the worker files go where all they hold was found again. On the next turn some are gone."""
    output = folder / "merged.h5"

    def act(turn: str) -> None:
        sources = [run_paths(folder).root, folder / "worker_files", *([output] if output.exists() else [])]
        merge(sources, output, on_bad="skip", remove_sources=True)

    return act


def _merge_traced(folder: Path, fault: Fault | None) -> Act:
    sys.executable = str(traced_python(folder, fault, "writing"))
    return _merge_run(folder, fault)


def _is_merged(folder: Path) -> None:
    assert run_paths(folder).output.exists()
    assert _seeds(run_paths(folder)) == set(STORED)


def _is_merged_and_damaged_kept(folder: Path) -> None:
    _is_merged(folder)
    assert list(folder.glob("layouts.h5.damaged-*"))


def _sources_are_merged(folder: Path) -> None:
    left = {path.name for path in (folder / "worker_files").iterdir()}
    assert {"worker_101.h5", "worker_108.h5"} <= left  # the empty and the truncated one
    assert "worker_100.h5" not in left


# --- cleaning --------------------------------------------------------------------------------------------------------


def _with_output(folder: Path) -> None:
    merge_run(_prepared(folder), ATTRIBUTES)


def _with_left_overs(folder: Path) -> None:
    _with_bad_file(folder)
    (run_paths(folder).shard(KEY).parent / f".{KEY}.h5.0011.tmp").write_bytes(b"half")
    (folder / ".layouts.h5.0022.tmp").write_bytes(b"half")


def _clean(merged: bool, folder: Path, fault: Fault | None) -> Act:
    paths = run_paths(folder)
    return lambda turn: clean(paths, merged=merged, record=Audit(paths.audit).record)


def _is_cleaned(folder: Path) -> None:
    assert run_paths(folder).output.exists()
    assert _seeds(run_paths(folder)) == set()


def _moved_and_tidied(folder: Path) -> None:
    _moved(folder)
    assert not [path for path in folder.rglob("*.tmp") if path.name.endswith(("0011.tmp", "0022.tmp"))]


# --- a whole run -----------------------------------------------------------------------------------------------------

SEEDS = range(3)
INLINE = {"engine": "inline"}
ADOPTED = (0, 1)


def _with_campaign(folder: Path) -> None:
    make_campaign(folder, seeds=len(SEEDS), execution=INLINE)


def _leeward_run(folder: Path, **options) -> None:
    """In this process, with little patience for the disk."""
    import leeward
    from leeward.engine import coordinator, inline

    coordinator.TRY_AGAIN_S = inline.TRY_AGAIN_S = 0.01
    report = leeward.run(folder / "campaign.yaml", folder / "layouts.h5", storage_wait_s=0, **options)
    assert report.is_complete, report


def _run_elsewhere(folder: Path) -> None:
    """In a process of its own: a process imports a recipe of one name only once."""
    done = leeward_command("run", "campaign.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr


def _run(folder: Path, fault: Fault | None) -> Act:
    def act(turn: str) -> None:
        before = {seed: recipe_calls(folder).count(seed) for seed in _stored_seeds(folder)}
        _leeward_run(folder)
        now = recipe_calls(folder)
        again = [seed for seed, count in before.items() if now.count(seed) != count]
        assert not again, f"computed again after they had been stored: seeds {again}"

    return act


def _stored_seeds(folder: Path) -> set[int]:
    return _seeds(run_paths(folder))


def _is_run(folder: Path) -> None:
    assert _stored_seeds(folder) == set(SEEDS)
    assert not list(run_paths(folder).failures.glob("*.json"))
    assert not list(run_paths(folder).workers.glob("*.json"))


def _with_worker_files(folder: Path) -> None:
    """Two layouts that another script made for this campaign, and a file without any."""
    _with_campaign(folder)
    source = folder / "worker_files"
    source.mkdir()
    for seed in ADOPTED:
        layout = np.array([[500.0, 2500.0, 4500.0], [1000.0, 2000.0 + 100.0 * seed, 3000.0]])
        facts = {"turbines": 3, "layout": layout, "aep": 90.0 + seed, "diameter": 195.0}
        write_foreign_file(source / f"worker_{seed}.h5", [(0, 0, seed)], **facts)
    (source / "worker_9.h5").touch()


def _run_and_adopt(folder: Path, fault: Fault | None) -> Act:
    return lambda turn: _leeward_run(folder, adopt=folder / "worker_files")


def _is_run_and_adopted(folder: Path) -> None:
    """Only what was not to be had elsewhere was computed; the sources stay."""
    _is_run(folder)
    assert set(recipe_calls(folder)) == set(SEEDS) - set(ADOPTED), recipe_calls(folder)
    assert len(list((folder / "worker_files").iterdir())) == 3


def _with_other_run(folder: Path) -> None:
    """A run that is complete, and then other settings."""
    make_campaign(folder, seeds=2, spacing_m=650, execution=INLINE)
    _run_elsewhere(folder)
    _with_campaign(folder)


def _run_anew(folder: Path, fault: Fault | None) -> Act:
    """The names under which old runs are kept tell seconds: whoever is faster is asked to try again."""

    def act(turn: str) -> None:
        try:
            _leeward_run(folder, new=True)
        except InputError as error:
            if "try again" not in str(error):
                raise
            time.sleep(1.1)
            _leeward_run(folder, new=True)

    return act


def _is_run_anew(folder: Path) -> None:
    _is_run(folder)
    old = [path for path in folder.glob("layouts-*.run") if len(list(path.glob("results/*/*.h5"))) == 2]
    assert len(old) == 1, list(folder.iterdir())
    assert (old[0] / "campaign.yaml").exists()


# --- reading ---------------------------------------------------------------------------------------------------------


def _reading(make: Callable[[Path, Fault | None], Act]) -> Callable[[Path, Fault | None], Act]:
    """The same, with the fault in a process that reads files."""

    def make_traced(folder: Path, fault: Fault | None) -> Act:
        sys.executable = str(traced_python(folder, fault, "reading"))
        return make(folder, fault)

    return make_traced


def _check(folder: Path, fault: Fault | None) -> Act:
    """What is called valid is what is there."""
    known = json.loads((folder / "known.json").read_text())

    def act(turn: str) -> None:
        seen: list[Any] = []
        check([run_paths(folder).root, run_paths(folder).output], tell=seen.append)
        results = [found for found in seen if not isinstance(found, FoundFile)]
        wrong = [found.name for found in results if found.is_valid and known.get(found.name) != found.digest]
        assert not wrong, f"valid, and not what is there: {wrong}"
        missed = set(run_paths(folder).shards()) - {found.path for found in seen}
        assert not missed, f"nothing is said of {missed}"

    return act


def _with_output_and_list(folder: Path) -> None:
    _with_output(folder)
    known = {str(key): result.digest for key in map(Key, [0] * 5, [0] * 5, STORED) for result in [own_result(*key)]}
    (folder / "known.json").write_text(json.dumps(known))


def _merge_unless_more(folder: Path, fault: Fault | None) -> Act:
    """A shard that cannot be read is left out, unless the output has it: then the output stays as it is."""
    merge_run = _merge_run(folder, fault)

    def act(turn: str) -> None:
        try:
            merge_run(turn)
        except OutputHoldsMoreError:
            if fault is None:
                raise

    return act


def _is_merged_in_the_end(folder: Path) -> None:
    """When it is done once more, without a fault."""
    merge_run(run_paths(folder), ATTRIBUTES)
    _is_merged(folder)
    assert _results_in(run_paths(folder).output) == {str(Key(0, 0, seed)) for seed in STORED}


def _with_finished_run(folder: Path) -> None:
    _with_campaign(folder)
    _run_elsewhere(folder)


def _with_unfinished_run(folder: Path) -> None:
    """All but one are there, and no output."""
    _with_finished_run(folder)
    run_paths(folder).output.unlink()
    run_paths(folder).shard(Key(0, 0, SEEDS[-1])).unlink()


def _resume(folder: Path, fault: Fault | None) -> Act:
    return lambda turn: _leeward_run(folder)


def _cleaned_in_the_end(folder: Path) -> None:
    clean(run_paths(folder), merged=True)
    _is_cleaned(folder)
    assert _results_in(run_paths(folder).output) == {str(Key(0, 0, seed)) for seed in STORED}


def _results_in(path: Path) -> set[str]:
    return {found.name for found in read_files([path]) if found.is_valid and not isinstance(found, FoundFile)}


_READER: dict[str, Any] = {
    "modes": READING_MODES,
    "traced": "reading",
    "raises": "LeewardError",  # of a child that never lives, or of an output that cannot be verified
    "sample": 1,
}

OPERATIONS = {
    "store, new folder": Operation(_prepared, _simple(_store), _all_stored),
    "store, folder is there": Operation(_with_folder, _simple(_store), _all_stored),
    "store, bad file in its place": Operation(_with_bad_file, _simple(_store), _stored_and_bad_kept),
    "quarantine": Operation(_with_bad_file, _quarantine, _moved),
    "begin an attempt": Operation(_prepared, _simple(_begin), _attempts_are(1, 2), retried=_attempts_are(1)),
    "begin another attempt": Operation(
        _with_record, _simple(_begin_elsewhere), _attempts_are(2, 3), retried=_attempts_are(2)
    ),
    "record a failure": Operation(_with_record, _simple(_fail), _attempts_are(1, died=True), retried=_died_once),
    "forgive an attempt": Operation(_with_record, _simple(lambda paths: forgive_attempt(paths, KEY)), _attempts_are(0)),
    "forget a record": Operation(_with_record, _simple(lambda paths: forget(paths, KEY)), _attempts_are(0)),
    "audit": Operation(_with_log, _simple(_append), _is_logged),
    "audit after a torn line": Operation(_with_torn_log, _simple(_append), _is_logged),
    "take the lock": Operation(_bare, _take, _dead_owner),
    "take the lock, no links": Operation(_bare, _take_without_links, _dead_owner),
    "take over the lock": Operation(_with_dead_owner, _take, _dead_owner),
    "release the lock": Operation(_bare, _release, _dead_owner_or_none),
    "count in the lock": Operation(_bare, _count, _dead_owner, most=2 * COUNTS, all_threads=True),
    "merge, new output": Operation(_prepared, _merge_run, _is_merged, sample=2),
    "merge, over an output": Operation(_with_older_output, _merge_run, _is_merged, sample=2),
    "merge, over a damaged output": Operation(_with_damaged_output, _merge_run, _is_merged_and_damaged_kept, sample=2),
    "merge, over a damaged output, links fail": Operation(
        _with_damaged_output, _merge_run_no_links, _is_merged_and_damaged_kept, modes=KILLS, sample=2
    ),
    "merge, libhdf5": Operation(_prepared, _merge_traced, _is_merged, modes=TRACED_MODES, traced="writing", sample=2),
    "merge sources and remove them": Operation(
        _with_foreign_files, _merge_sources, _sources_are_merged, sample=2, every=3
    ),
    "clean": Operation(_with_left_overs, functools.partial(_clean, False), _moved_and_tidied, sample=2),
    "clean --merged": Operation(_with_output, functools.partial(_clean, True), _is_cleaned, sample=2),
    "run": Operation(_with_campaign, _run, _is_run, modes=KILLS, every=4, sample=2),
    "run, calls fail": Operation(_with_campaign, _run, _is_run, modes=FAILURES, every=3, sample=2),
    "run --adopt": Operation(_with_worker_files, _run_and_adopt, _is_run_and_adopted, every=5, sample=2),
    "run --new": Operation(_with_other_run, _run_anew, _is_run_anew, every=3, sample=2, keeps_output=False),
    "check, reader": Operation(_with_output_and_list, _reading(_check), lambda folder: None, **_READER),
    "merge, reader": Operation(_prepared, _reading(_merge_run), _is_merged_in_the_end, **_READER),
    "merge, over an output, reader": Operation(
        _with_older_output, _reading(_merge_unless_more), _is_merged_in_the_end, **_READER
    ),
    "resume, reader": Operation(_with_unfinished_run, _reading(_resume), _is_run, **_READER),
    "resume with an output, reader": Operation(_with_finished_run, _reading(_resume), _is_run, **_READER),
    "clean --merged, reader": Operation(
        _with_output, _reading(functools.partial(_clean, True)), _cleaned_in_the_end, **_READER
    ),
    "merge sources and remove them, reader": Operation(
        _with_foreign_files, _reading(_merge_sources), lambda folder: None, **_READER
    ),
}


def copy(template: Path, folder: Path) -> Path:
    """With the times, which tell an index whose it is."""
    shutil.copytree(template, folder, symlinks=True)
    return folder
