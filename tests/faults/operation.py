"""What the store does, one operation each: how things stand before it, the operation itself, and how they stand after.

An operation is made once per process, `make(folder, fault)`, and then performed, `act(turn)`: turn is "first", "retry"
(in the same process, after an error) or "anew" (in a new process, after a kill). It works in a copy of the folder that
`prepare` filled.
"""

import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from interception import MODES, Fault

from foreign_files import own_result
from leeward.store.directory.shards import store_result
from leeward.store.format.keys import Key
from leeward.store.paths import RunPaths

Act = Callable[[str], None]
KEY = Key(0, 0, 0)  # of the task in hand
STORED = range(1, 6)  # seeds of the results that are there before
TRACED = {"writing": ("pwrite64", "ftruncate", "fsync"), "reading": ("read", "pread64")}  # by what the child is for


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


def prepared(folder: Path, stored=STORED) -> RunPaths:
    paths = run_paths(folder)
    for place in (paths.root, *paths.folders()):
        place.mkdir()
    for seed in stored:
        store_result(paths, own_result(seed=seed))
    return paths


def simple(action: Callable[[RunPaths], object]) -> Callable[[Path, Fault | None], Act]:
    """The same whichever turn it is."""
    return lambda folder, fault: lambda turn: action(run_paths(folder))


def seeds(paths: RunPaths) -> set[int]:
    return {Key.parse(path.stem).seed for path in paths.shards()}


def copy(template: Path, folder: Path) -> Path:
    """With the times, which tell an index whose it is."""
    shutil.copytree(template, folder, symlinks=True)
    return folder


# --- faults in child processes ---------------------------------------------------------------------------------------


_PROGRAMS = {"reading": "reader_main", "writing": "writer_main"}


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
        f'if [[ "$*" == *leeward.store.{_PROGRAMS[purpose]}* ]]; then\n'
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
