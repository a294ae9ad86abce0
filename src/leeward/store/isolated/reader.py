"""Read untrusted files in a child process, which sends back plain data.

A damaged file can make libhdf5 crash, loop endlessly or use all memory, but only in the child. A child that dies or
hangs is replaced. The group that it was reading gets a verdict, and the rest of the file is still read.
"""

import contextlib
import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.errors import LeewardError
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.kinds import KINDS, key_or_none
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.frames import TOO_MUCH_MEMORY, Frame
from leeward.store.isolated.reader_process import Child, ChildLostError

_AHEAD = 16  # requests in the queue of a child, so that it never waits
_MOST_RESTARTS = 10  # of the child, for one file
_MOST_FAILED_STARTS = 3  # starts in a row that failed
_MOST_TIMEOUTS = 3  # in a row, for one file, without a result in between

Found = FoundResult | FoundFile


@dataclass(frozen=True)
class Limits:
    """Limits of a child. seconds: longest time without a message. memory_mb: most memory (enforced on Linux)."""

    seconds: float = 30.0
    memory_mb: int = 2000


def read_files(
    paths: Iterable[Path],
    *,
    contents: bool = False,
    keys: Mapping[Path, Collection[str]] | None = None,
    limits: Limits = Limits(),
    processes: int = 1,
    sha256: bool = False,
    carve: bool = False,
) -> Iterator[Found]:
    """Yield, for each file in order, its results and then the file itself.

    contents: include the arrays of valid results. keys: read only the named groups of these files; the verdict on the
    file then only says whether it could be opened. processes: number of children. sha256: also hash each file. carve:
    search the bytes for results, however damaged the file is. A bad or missing file raises no error. Paths are
    taken from the iterator a few files ahead. Closing the iterator ends the children.
    """
    readers = [Reader(contents=contents, limits=limits, sha256=sha256, carve=carve) for _ in range(max(processes, 1))]
    asked: deque[Reader] = deque()
    try:
        for number, path in enumerate(paths):
            reader = readers[number % len(readers)]
            reader.ask(path, None if keys is None else keys.get(path))
            asked.append(reader)
            if len(asked) >= _AHEAD * len(readers):
                yield from asked.popleft().answers()
        while asked:
            yield from asked.popleft().answers()
    finally:
        for reader in readers:
            reader.close()


@dataclass
class _Request:
    """A file to read, and the progress on it."""

    path: Path
    names: list[str] | None
    start: int = 0  # number of groups that are done
    at: tuple[int, str] | None = None  # number and name of the current group
    is_second_try: bool = False
    restarts: int = 0
    timeouts: int = 0
    valid: int = 0
    bad: int = 0

    def finish_group(self, number: int, *, is_valid: bool) -> None:
        self.start, self.at, self.is_second_try = number + 1, None, False
        self.valid += is_valid
        self.bad += not is_valid


class Reader:
    """A reader with one child at a time: `ask` for files, then take the `answers` for each in turn."""

    def __init__(
        self,
        *,
        contents: bool = False,
        limits: Limits = Limits(),
        sha256: bool = False,
        carve: bool = False,
    ) -> None:
        self._limits = limits
        self._options = {"contents": contents, "sha256": sha256, "carve": carve}
        self._requests: deque[_Request] = deque()
        self._child: Child | None = None
        self._failed_starts = 0

    def close(self) -> None:
        """End the child. The reader can be used again."""
        self._requests.clear()
        self._drop()

    def read(self, path: Path, names: Collection[str] | None = None) -> Iterator[Found]:
        """Read one file. No other request may be pending."""
        self.ask(path, names)
        return self.answers()

    def ask(self, path: Path, names: Collection[str] | None = None) -> None:
        """Request a file. names: read only these groups."""
        request = _Request(path, None if names is None else list(names))
        self._requests.append(request)
        if self._child is None:
            self._start()
        else:
            self._send(request)

    def answers(self) -> Iterator[Found]:
        """Yield the findings on the oldest requested file."""
        request = self._requests[0]
        while True:
            try:
                found = _parse(self._receive(), request, self._options["contents"])
            except ChildLostError as error:
                found = self._handle_loss(request, error)
            if isinstance(found, FoundFile):
                self._requests.popleft()
                if self._child is None and self._requests:
                    self._start()
                yield found
                return
            if found is not None:
                yield found

    def _receive(self) -> Frame:
        if self._child is None:
            self._start()
        assert self._child is not None
        frame = self._child.receive(self._limits.seconds)
        self._failed_starts = 0
        if frame.header.get("last"):
            self._drop()
        return frame

    def _start(self) -> None:
        """Start a new child, and send it the pending requests. It resumes where the last child ended."""
        self._child = Child(self._limits.seconds, self._limits.memory_mb)
        for request in self._requests:
            self._send(request)

    def _send(self, request: _Request) -> None:
        assert self._child is not None
        place = {"path": os.fspath(request.path), "names": request.names, "start": request.start}
        self._child.send(place | self._options)

    def _drop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _handle_loss(self, request: _Request, error: ChildLostError) -> Found | None:
        """Return the verdict on the current group or file after the child was lost; None if it is retried."""
        code = self._child.close() if self._child is not None else None
        self._child = None
        if not error.has_started:
            self._failed_starts += 1
            if self._failed_starts < _MOST_FAILED_STARTS:
                return None
            raise LeewardError(f"the reader process does not start: {error}; try python -m {Child.MODULE}")
        verdict, reason = _verdict(error, code, self._limits)
        request.restarts += 1
        request.timeouts += error.is_timeout
        if request.restarts <= _MOST_RESTARTS and not request.is_second_try and _is_worth_another_try(request, error):
            request.is_second_try = True
            return None
        is_given_up = request.restarts > _MOST_RESTARTS or request.timeouts >= _MOST_TIMEOUTS
        if is_given_up or request.at is None:
            return _bad_file(request, verdict, reason)
        number, name = request.at
        request.finish_group(number, is_valid=False)
        return FoundResult(request.path, name, _key_in(name), verdict, reason)


def _is_worth_another_try(request: _Request, error: ChildLostError) -> bool:
    """Return whether the cause may not be the file: the child was killed, or hung between two groups."""
    return not error.is_timeout or (request.at is None and request.start > 0)


def _verdict(error: ChildLostError, code: int | None, limits: Limits) -> tuple[Verdict, str]:
    if error.is_timeout:
        return Verdict.TIMED_OUT_READER, f"the reader process did not respond for {limits.seconds:g} s while reading it"
    if code == TOO_MUCH_MEMORY:
        return Verdict.UNREADABLE, f"reading it takes more than {limits.memory_mb} MB of memory"
    return Verdict.CRASHED_READER, f"the reader process crashed while reading it ({error}; exit code {code})"


def _bad_file(request: _Request, verdict: Verdict, reason: str) -> FoundFile:
    size = -1
    with contextlib.suppress(OSError):  # the verdict does not need the size
        size = request.path.stat().st_size
    return FoundFile(request.path, size, verdict, reason, valid=request.valid, bad=request.bad)


def _key_in(name: str) -> Any:
    """Return the key in the name of a group, which may lie in another group; None if it is not a key."""
    return key_or_none(name.rpartition("/")[2])


# --- frames ----------------------------------------------------------------------------------------------------------


def _parse(frame: Frame, request: _Request, contents: bool) -> Found | None:
    """Return the finding in a frame, if any. Raise ChildLostError for an invalid one."""
    header = frame.header
    try:
        kind = header["kind"]
        if kind == "group":
            request.at = (int(header["number"]), str(header["name"]))
        elif kind == "result":
            return _found_result(frame, request, contents)
        elif kind == "file_read":
            return _found_file(frame, request)
        elif kind != "alive":
            raise ChildLostError(f"unknown message {kind!r:.40}")
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ChildLostError(f"invalid message ({error!r:.80})") from error
    return None


def _found_result(frame: Frame, request: _Request, contents: bool) -> FoundResult:
    name = str(frame.header["name"])
    if request.at is None or request.at[1] != name:
        raise ChildLostError(f"{name:.60} was not announced")
    verdict = Verdict(frame.header["verdict"])
    kind = KINDS[frame.header["of"]]
    result: Any = kind.of(frame.attributes, frame.datasets) if contents and verdict is Verdict.VALID else None
    if result is not None and result.digest != frame.attributes["digest"]:
        raise ValueError("the digest does not match the result")
    found = FoundResult(
        path=request.path,
        name=name,
        key=_key_in(name),
        verdict=verdict,
        reason=str(frame.header["reason"]),
        sealed=bool(frame.header["sealed"]),
        kind=kind.KIND,
        attributes=frame.attributes,
        scalars={dataset: float(array) for dataset, array in frame.datasets.items() if array.ndim == 0},
        result=result,
    )
    request.finish_group(request.at[0], is_valid=found.is_valid)
    request.timeouts = 0
    return found


def _found_file(frame: Frame, request: _Request) -> FoundFile:
    return FoundFile(
        path=request.path,
        size=int(frame.header["size"]),
        verdict=Verdict(frame.header["verdict"]),
        reason=str(frame.header["reason"]),
        sha256=str(frame.header["sha256"]),
        sealed=bool(frame.header["sealed"]),
        valid=request.valid,
        bad=request.bad,
        attributes=frame.attributes,
        is_passing=bool(frame.header["is_passing"]),
    )
