"""What has to hold in every state that a power cut may leave behind, looked at in memory: there are thousands."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operations import OPERATIONS
from power_disk import State
from power_files import Content
from power_variants import WRONG

from leeward.files import TEMPORARY
from leeward.store.directory.audit import parse_line
from leeward.store.directory.index import output_index, whole_lines
from leeward.store.directory.lock import read_owner
from leeward.store.directory.records import BadRecordError, read_record
from leeward.store.format.found import FoundFile
from leeward.store.merging.check import check

ALL = {**OPERATIONS, **WRONG}
RUN = "layouts.run"
OUTPUT = "layouts.h5"
_CACHES = (f"{RUN}/index.jsonl", f"{RUN}/workers/", f"{RUN}/logs/")  # may be anything; nobody trusts them
_OF_TESTS = ("calls.txt", "__pycache__/")
_OLD_RUN = re.compile(r"^layouts-[^./]+\.(run|h5)")  # put aside by `run --new`

# What is removed without a sync may be there again, as it was: why that does no harm.
MAY_COME_BACK = {
    "remove a record": "a stored result outranks an old record",
    "withdraw an attempt": "an attempt counts once more",
    "release the lock": "its owner is seen to be gone",
    "merge sources and remove them": "a source that was merged is merged again, and is the same",
    "clean": "what is left over is removed again",
    "clean --merged": "a shard that the output holds is the same",
    "pack": "a shard that a pack holds counts once, and is removed by the next run",
    "clean, with a damaged pack": "as above",
    "clean --merged, with packs": "what the output holds is the same",
    "run, packing": "as with pack, and records of attempts, and the lock, as below",
    "run": "records of attempts, and the lock, as above",
    "run --adopt": "the same",
    "run --new": "the same",
    "evaluate": "as with run",
}


def _plain(path: str) -> str:
    """What it was called before it was put aside with its run."""
    return _OLD_RUN.sub(r"layouts.\1", path)


def is_final(path: str) -> bool:
    """Whether the name promises that the file is whole."""
    path = _plain(path)
    if path.endswith((TEMPORARY, ".h5.index")) or path.startswith(_OF_TESTS):
        return False
    return not path.startswith(_CACHES)


def _is_log(path: str) -> bool:
    """Logs are written to in place, line by line."""
    return _plain(path) == f"{RUN}/audit.jsonl" or Path(path).name.startswith("merge_log_")


def _synced_lines(path: str, content: Content) -> frozenset[bytes]:
    """Of a log. The log of a merge is promised as soon as lines about removals are added to it."""
    synced = content.source.durable
    is_promised = not path.startswith("merge_log_") or b"removing" in synced
    return frozenset(synced.split(b"\n")[:-1] if is_promised else ())


def final_part(state: State) -> frozenset[tuple[str, str]]:
    return frozenset((path, content.digest) for path, content in state.files.items() if is_final(path))


@dataclass
class _Verdict:
    """On the content of a file. results: key and digest of each valid one. reason: why it is bad."""

    results: set[tuple[str, str]] = field(default_factory=set)
    reason: str = ""


class Verdicts:
    """On all contents of HDF5 files, each looked at once, many at a time: a child process reads them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, _Verdict] = {}
        folder.mkdir()

    def learn(self, states: Iterable[State]) -> None:
        new: dict[str, Content] = {}
        for state in states:
            for path, content in state.files.items():
                if path.endswith(".h5") and content.digest not in self._known:
                    new[content.digest] = content
        for digest, content in new.items():
            (self._folder / f"{digest}.h5").write_bytes(content.data)
            self._known[digest] = _Verdict()

        def hear(found: Any) -> None:
            verdict = self._known[found.path.stem]
            if not found.is_valid:
                verdict.reason = verdict.reason or f"{found.verdict} ({found.reason})"
            elif not isinstance(found, FoundFile):
                verdict.results.add((found.name.rpartition("/")[2], found.digest))

        if new:
            check([self._folder / f"{digest}.h5" for digest in new], on_found=hear)
        for digest in new:
            (self._folder / f"{digest}.h5").unlink()

    def of(self, content: Content) -> _Verdict:
        return self._known[content.digest]

    def results(self, state: State) -> set[tuple[str, str]]:
        """In shards and outputs, and not in quarantine."""
        found: set[tuple[str, str]] = set()
        for path, content in state.files.items():
            if path.endswith(".h5") and "quarantine" not in path:
                found |= self.of(content).results
        return found


@dataclass(frozen=True)
class Promised:
    """What had been told as done, durably, when the power was cut.

    logs: lines of each log that were synced. keys: of results that the index of the run tells of. merged: output and
    number of results, as the audit log says.
    """

    logs: dict[str, frozenset[bytes]]
    keys: frozenset[str]
    merged: dict[str, int]

    @classmethod
    def by(cls, live: State, already: State) -> "Promised":
        """already: before all of this."""
        logs: dict[str, frozenset[bytes]] = {}
        for path, content in live.files.items():
            if _is_log(path):
                logs[_plain(path)] = logs.get(_plain(path), frozenset()) | _synced_lines(path, content)
        index = live.files.get(f"{RUN}/index.jsonl")
        keys = frozenset() if index is None else frozenset(line["key"] for line in whole_lines(index.data))
        audit, before = (state.files.get(f"{RUN}/audit.jsonl") for state in (live, already))
        known = before.data.split(b"\n") if before else []
        merged = {}
        for line in audit.data.split(b"\n") if audit else ():
            about = parse_line(line) if line not in known else {}
            if about.get("event") == "merged":
                merged[Path(about["output"]).name] = about["results"]
        return cls(logs, keys, merged)


class Judge:
    """Of one operation. before, end: how it began, and ended. What everybody saw after a call is allowed to be seen."""

    def __init__(self, verdicts: Verdicts, folder: Path, before: State, end: State, name: str) -> None:
        self._verdicts = verdicts
        self._scratch = folder
        self._before = before
        self._name = name
        self._may_come_back = name in MAY_COME_BACK
        self._allowed: dict[str, set[str]] = {}
        self._small: dict[tuple[str, str], str] = {}
        verdicts.learn([before, end])
        self._results = verdicts.results(before)
        self._bad = {
            content.digest
            for path, content in before.files.items()
            if path.endswith(".h5") and verdicts.of(content).reason
        }
        both = before.files.keys() & end.files.keys() if ALL[name].keeps_output else ()
        self._kept = {path for path in both if is_final(path) and before.files[path].digest not in self._bad}
        self._has_output = OUTPUT in before.files and ALL[name].keeps_output
        self.allow(before)
        folder.mkdir()

    def allow(self, live: State) -> None:
        for path, content in live.files.items():
            self._allowed.setdefault(_plain(path), set()).add(content.digest)

    def problems(self, state: State, promised: Promised) -> Iterator[str]:
        """Of any state. Its contents are known to the verdicts."""
        for path, content in state.files.items():
            if is_final(path):
                yield from self._of_file(path, content)
        results = self._verdicts.results(state)
        lost = self._results - results
        if lost:
            yield f"lost: {', '.join(sorted(key for key, _ in lost))}"
        for path in sorted(self._kept - state.files.keys()):
            yield f"{path}: was there before and after, and is not"
        if self._has_output and OUTPUT not in state.files:
            yield "there is no output any more"
        if not self._bad <= {content.digest for content in state.files.values()}:
            yield "a bad file is gone"
        yield from self._of_promises(state, promised, {key for key, _ in results})

    def _of_file(self, path: str, content: Content) -> Iterator[str]:
        path = _plain(path)
        if _is_log(path):
            yield from self._of_log(path, content)
            return
        if path == f"{RUN}/lock" or path.startswith(f"{RUN}/failures/") or path.endswith(".reason.json"):
            reason = self._of_small(path, content)
            if reason:
                yield reason
        if path != f"{RUN}/lock" and content.digest not in self._allowed.get(path, ()):
            zeros = ", all zeros" if content.data and not content.data.strip(b"\0") else ""
            yield f"{path}: neither old nor new, but {len(content.data)} bytes{zeros}"
        elif path.endswith(".h5") and content.digest not in self._bad and "quarantine" not in path:
            reason = self._verdicts.of(content).reason
            if reason:
                yield f"{path}: {reason}"

    def _of_log(self, path: str, content: Content) -> Iterator[str]:
        """One torn line more than before; lines that are whole in JSON, where it is that."""
        before = self._before.files.get(path)
        if path.endswith(".jsonl") and _torn(content.data) > (_torn(before.data) if before else 0) + 1:
            yield f"{path}: {_torn(content.data)} torn lines"

    def _of_small(self, path: str, content: Content) -> str:
        """A record, a reason or the lock: read as the store reads it."""
        known = (path, content.digest)
        if known not in self._small:
            place = self._scratch / "small"
            place.write_bytes(content.data)
            self._small[known] = _unreadable(path, place)
        return self._small[known]

    def _of_promises(self, state: State, promised: Promised, keys: set[str]) -> Iterator[str]:
        for path, lines in promised.logs.items():
            logs = [content.data.split(b"\n") for name, content in state.files.items() if _plain(name) == path]
            if lines - frozenset(itertools.chain(*logs)):
                yield f"{path}: {'lacks lines' if logs else 'is gone'}, after it had been synced"
        gone = promised.keys - keys
        if gone:
            yield f"told as done, and not there: {', '.join(sorted(gone))}"
        for name, count in promised.merged.items():
            there = state.files.get(name)
            if there is None or len(self._verdicts.of(there).results) < count:
                yield f"{name}: the log says that it was merged, and it is not there"

    def end_problems(self, state: State, live: State, killed: str = "") -> Iterator[str]:
        """After the operation has said that it is done: all that it did is there, in every state.

        killed: before it, this operation, which said nothing. If it was another one, no result is gone that this one
        saw; if it was the same, what it moved out of the way may be there again.
        """
        if killed and killed != self._name:
            gone = self._verdicts.results(live) - self._verdicts.results(state)
            if gone:
                yield f"seen, and then gone: {', '.join(sorted(key for key, _ in gone))}"
            return
        for path, content in live.files.items():
            there = state.files.get(path)
            if killed and (path != _plain(path) or "/quarantine/" in path or _is_log(path)):
                continue  # a line that a killed process had not synced yet was never promised
            if is_final(path) and (there is None or there.digest != content.digest):
                yield f"{path}: done, and then {'gone' if there is None else 'as it was before, or damaged'}"
        if not self._may_come_back:
            for path in state.files.keys() - live.files.keys():
                if is_final(path):
                    yield f"{path}: removed, and there again"


def index_problems(folder: Path, state: State, verdicts: Verdicts) -> Iterator[str]:
    """A cache that is taken for the very output's tells of what that holds. folder: the state as a real one."""
    if OUTPUT in state.files and (lines := output_index(folder / OUTPUT)) is not None:
        told = {line["key"] for line in whole_lines(lines)}
        held = {key for key, _ in verdicts.of(state.files[OUTPUT]).results}
        if told != held:
            yield f"{OUTPUT}.index tells of {len(told)} results, and there are {len(held)}"


def _torn(content: bytes) -> int:
    return sum(bool(line) and not _is_json(line) for line in content.split(b"\n"))


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _unreadable(path: str, place: Path) -> str:
    try:
        if path.endswith("/lock"):
            owner, _ = read_owner(place)
            return "" if owner is not None and owner.pid else "the lock cannot be read"
        if path.endswith(".reason.json"):
            json.loads(place.read_bytes())
        else:
            read_record(place)
    except (ValueError, BadRecordError) as error:
        return f"{path}: {error}".replace(str(place), "it")
    return ""
