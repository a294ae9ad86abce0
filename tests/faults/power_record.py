"""Which system calls an operation makes that change files below its folder, in order: strace tells, of all processes.

What libhdf5 does is seen as well as what Python does. The order is that in which calls ended.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from power_disk import Call, Disk

_KNOWN = (
    ("open", "openat"),
    ("write", "pwrite64", "writev", "pwritev", "pwritev2"),
    ("ftruncate", "fsync", "fdatasync"),
    ("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"),
)
# What the store does not do. If it ever does, it is to be added here, and not to be overlooked.
_UNKNOWN = ("creat", "openat2", "truncate", "fallocate", "copy_file_range", "sendfile", "sync", "syncfs")
_UNKNOWN += ("symlink", "symlinkat", "sync_file_range", "msync")
_STRINGS = r'"((?:\\x[0-9a-f]{2})*)"'
_HANDLE = re.compile(r"(-?\d+|AT_FDCWD)<((?:\\x[0-9a-f]{2})*)>(\(deleted\))?")
_PATH = re.compile(rf"(?:(?:\d+|AT_FDCWD)<((?:\\x[0-9a-f]{{2}})*)>(?:\(deleted\))?, )?{_STRINGS}")
_WRITING = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"}
_SCRIPT = Path(__file__).with_name("power_variants.py")


class OperationError(RuntimeError):
    """An operation that does not end well, and should."""


class Recorder:
    """A server of operations under strace: `record` performs one and tells its calls."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="leeward-power-")
        self._log = Path(self._folder.name) / "calls"
        names = ",".join(f"?{name}" for name in (*sum(_KNOWN, ()), *_UNKNOWN))
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-s", "100000000", "-o", str(self._log)]
        unwritten = {"PYTHONDONTWRITEBYTECODE": "1"}  # Python syncs none of it, and a torn file would fail the recipe
        self._process = subprocess.Popen(
            [*strace, "-e", f"trace={names}", "-e", "signal=none", sys.executable, str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                **single,
                **unwritten,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },  # the tests' own modules
        )
        self._read = 0
        return self

    def __exit__(self, *error: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()

    def record(self, operation: str, folder: Path, turn: str = "first") -> list[Call]:
        """Performs it in the folder, for which it must end well."""
        folder = Path(os.path.realpath(folder))
        order = {"operation": operation, "folder": str(folder), "turn": turn, "fault": None}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"ended": "the server is gone"}
        if answer["ended"] != "done":
            raise OperationError(f"{operation} cannot be done: {answer.get('message', answer['ended'])}")
        with self._log.open("rb") as log:
            log.seek(self._read)
            text = log.read()
            self._read = log.tell()
        return list(parse(text.decode(), folder))


def is_as_in(disk: Disk, folder: Path) -> bool:
    """Whether the disk, after all calls, has what is there: then none was missed or misunderstood."""
    there = {path.relative_to(folder): path for path in folder.rglob("*")}
    files = {str(path): place.read_bytes() for path, place in there.items() if place.is_file()}
    folders = {str(path) for path, place in there.items() if place.is_dir()}
    live = disk.live()
    return files == {path: content.data for path, content in live.files.items()} and folders == live.folders


def parse(log: str, folder: Path) -> Iterator[Call]:
    """The calls that succeeded, and concern the folder."""
    mark = _hex(str(folder))
    for line in _joined(log):
        if mark not in line:
            continue
        name, _, rest = line.partition("(")
        arguments, _, answer = rest.rpartition(" = ")
        if answer.startswith(("-1", "?")):
            continue
        call = _call(name, arguments, answer, folder)
        if call is not None:
            yield call


def _joined(log: str) -> Iterator[str]:
    """Calls during which others were made come in two pieces."""
    begun: dict[str, str] = {}
    for line in log.splitlines():
        process, _, text = line.partition(" ")
        text = text.strip()
        if text.endswith("<unfinished ...>"):
            begun[process] = text.removesuffix("<unfinished ...>").rstrip()
        elif text.startswith("<... "):
            yield begun.pop(process, "") + text.partition(" resumed>")[2]
        else:
            yield text


def _call(name: str, arguments: str, answer: str, folder: Path) -> Call | None:
    if name in _KNOWN[3]:
        return _by_path(name, arguments, folder)
    if name in _KNOWN[0]:
        return _opening(arguments, answer, folder)
    found = _HANDLE.match(arguments)
    place = None if found is None else _within(_text(found[2]), folder)
    if place is None:
        return None
    if name not in sum(_KNOWN, ()):
        raise NotImplementedError(f"{name} of {place}: not known here; teach the model what a power cut makes of it")
    about = {"path": place, "handle": int(found[1]), "is_gone": bool(found[3])}
    rest = arguments[found.end() :]
    if name == "ftruncate":
        return Call("truncate", size=int(rest.strip(", )")), **about)
    if name in ("fsync", "fdatasync"):
        return Call("sync", **about)
    data = b"".join(_bytes(text) for text in re.findall(_STRINGS, rest))[: int(answer)]
    offset = int(rest.rstrip(") ").rpartition(",")[2]) if name in ("pwrite64", "pwritev") else None
    return Call("write", data=data, offset=offset, **about)


def _opening(arguments: str, answer: str, folder: Path) -> Call | None:
    flags = frozenset(re.findall(r"O_\w+", arguments))
    found = _HANDLE.match(answer)
    place = None if found is None else _within(_text(found[2]), folder)
    if place is None or not flags & _WRITING:
        return None
    if "O_TMPFILE" in flags:
        raise NotImplementedError(f"a file without a name in {place}: not known here")
    return Call("open", place, handle=int(found[1]), flags=flags)


def _by_path(name: str, arguments: str, folder: Path) -> Call | None:
    paths = []
    for found in _PATH.finditer(arguments):
        start = _text(found[1]) if found[1] else str(folder)  # operations are performed in their folder
        paths.append(_within(os.path.join(start, _text(found[2])), folder))
    if paths[0] is None:
        return None
    if None in paths:
        raise NotImplementedError(f"{name}: {paths[0]} leaves its folder, or comes from outside")
    plain = name.removesuffix("2").removesuffix("at")
    if plain == "unlink" and "AT_REMOVEDIR" in arguments:
        plain = "rmdir"
    return Call(plain, *paths)


def _within(path: str, folder: Path) -> str | None:
    path = os.path.normpath(path)
    if path == str(folder):
        return ""
    return path.removeprefix(f"{folder}/") if path.startswith(f"{folder}/") else None


def _hex(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(text))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _text(text: str) -> str:
    return os.fsdecode(_bytes(text))
