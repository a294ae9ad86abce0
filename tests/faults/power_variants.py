"""Operations done wrong, each in a way that only a power cut shows: the simulated ones have to find every one of them.

As a script, the server of `server.py` with these among its operations.
"""

import functools
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import operations
import server
from interception import Fault
from operations import ATTRIBUTES, OPERATIONS, Act, Operation, run_paths

from leeward.store.directory import shards
from leeward.store.merging.clean import clean
from leeward.store.merging.merge import merge_run


def _syncing_less(is_left_out: Callable[[Path, bool], bool]) -> None:
    """No sync where this says so, of the path and whether it is a folder."""
    real = os.fsync

    def fsync(handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if not is_left_out(path, stat.S_ISDIR(os.fstat(handle).st_mode)):
            real(handle)

    os.fsync = fsync


def _wrong(name: str, spoil: Callable[[Path], None]) -> Operation:
    """An operation that something was done to before."""
    right = OPERATIONS[name]

    def make(folder: Path, fault: Fault | None) -> Act:
        spoil(folder)
        return right.make(folder, fault)

    return Operation(right.prepare, make, right.expect)


def _store_in_place(folder: Path) -> None:
    def in_place(path: Path, content: bytes, **options: object) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        os.write(handle, content)
        os.fsync(handle)
        os.close(handle)
        shards.sync_folder(path.parent)

    shards.replace_file = in_place


def _remove_and_rename(folder: Path) -> None:
    def replace(source: Path, target: Path) -> None:
        if os.path.exists(target):
            os.unlink(target)
        os.rename(source, target)

    os.replace = replace


def _write_without_sync(folder: Path) -> None:
    """The child process in which libhdf5 writes."""
    run = "runpy.run_module('leeward.store.writer_main', None, '__main__', True)"
    code = f"import os, runpy; os.fsync = lambda handle: None; {run}"
    path = folder.parent / f"{folder.name}-python"
    path.write_text(
        "#!/bin/bash\n"
        f'if [[ "$*" == *leeward.store.writer_main* ]]; then exec {sys.executable} -P -c "{code}" "${{@:4}}"; fi\n'
        f'exec {sys.executable} "$@"\n'
    )
    path.chmod(0o755)
    sys.executable = str(path)


def _merge_and_clean(folder: Path, fault: Fault | None) -> Act:
    """The shards go before the name of the output is durable."""
    paths = run_paths(folder)
    _syncing_less(lambda path, is_folder: path == folder)

    def act(turn: str) -> None:
        merge_run(paths, ATTRIBUTES)
        clean(paths, merged=True)

    return act


_no_files = functools.partial(_syncing_less, lambda path, is_folder: not is_folder)
_no_folders = functools.partial(_syncing_less, lambda path, is_folder: is_folder)
_not_above = functools.partial(_syncing_less, lambda path, is_folder: path.name == "results")
_no_packs = functools.partial(_syncing_less, lambda path, is_folder: path.name == "packs")
_not_above_packs = functools.partial(_syncing_less, lambda path, is_folder: path.name == "layouts.run")
_plain = OPERATIONS["merge, new output"]

WRONG = {
    "wrong: store, the file is not synced": _wrong("store, folder is there", lambda folder: _no_files()),
    "wrong: store, its folder is not synced": _wrong("store, folder is there", lambda folder: _no_folders()),
    "wrong: store, the folder above is not synced": _wrong("store, new folder", lambda folder: _not_above()),
    "wrong: store, in place": _wrong("store, folder is there", _store_in_place),
    "wrong: record, removed and renamed": _wrong("record a failure", _remove_and_rename),
    "wrong: record, not synced": _wrong("record a failure", lambda folder: _no_files()),
    "wrong: merge, the file is not synced": _wrong("merge, over an output", _write_without_sync),
    "wrong: merge, its folder is not synced": _wrong("merge, new output", lambda folder: _no_folders()),
    "wrong: merge and clean, the folder is not synced": Operation(_plain.prepare, _merge_and_clean, _plain.expect),
    "wrong: pack, the file is not synced": _wrong("pack", _write_without_sync),
    "wrong: pack, its folder is not synced": _wrong("pack", lambda folder: _no_packs()),
    "wrong: pack, the folder above is not synced": _wrong("pack", lambda folder: _not_above_packs()),
}

# what is to be found of each, among other things
FOUND = {
    "wrong: store, the file is not synced": r"results/\w\w/farm0_t0_s0.h5: neither old nor new, but 0 bytes",
    "wrong: store, its folder is not synced": r"results/\w\w/farm0_t0_s0.h5: done, and then gone",
    "wrong: store, the folder above is not synced": r"results/\w\w/farm0_t0_s0.h5: done, and then gone",
    "wrong: store, in place": r"results/\w\w/farm0_t0_s0.h5: ",
    "wrong: record, removed and renamed": r"failures/farm0_t0_s0.json: was there before and after, and is not",
    "wrong: record, not synced": r"failures/farm0_t0_s0.json: it: cannot be read as a record",
    "wrong: merge, the file is not synced": r"layouts.h5: neither old nor new, but \d+ bytes, all zeros",
    "wrong: merge, its folder is not synced": r"layouts.h5: the log says that it was merged, and it is not there",
    "wrong: merge and clean, the folder is not synced": r"lost: farm0_t0_s1, farm0_t0_s2",
    "wrong: pack, the file is not synced": r"packs/pack-\w+-\w+.h5: ",
    "wrong: pack, its folder is not synced": r"lost: farm0_t0_s[1-4]",
    "wrong: pack, the folder above is not synced": r"lost: farm0_t0_s[1-4]",
}


if __name__ == "__main__":
    operations.OPERATIONS.update(WRONG)
    server.main()
