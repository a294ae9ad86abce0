"""The report of a merge, as data for the summary and the exit code, and as a log beside the output."""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leeward.errors import BadSourceError, StorageError
from leeward.files import storage_errors, sync, sync_folder
from leeward.store.directory.audit import append_line, utc_now
from leeward.store.directory.temporary import Temporary, remove_left_overs
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.merging.contents import Identity
from leeward.store.rescue.recovery import BadResult, Recovery
from leeward.wording import json_text, printable


@dataclass(slots=True)
class SourceReport:
    """One source file.

    valid: number of valid results. plausible: how many of these have no digest in the file. bad: the other results.
    refused: how many of these are intact but do not match the campaign. taken: number of results in the output. kinds:
    numbers in the report's `kinds`. more: content that is not in the output, or "". copy: the file that its results are
    read from, "" if that is the source itself.
    """

    place: str = ""
    size: int = -1
    verdict: Verdict = Verdict.VALID
    reason: str = ""
    sha256: bytes = b""
    sealed: bool = False
    valid: int = 0
    bad: list[BadResult] = field(default_factory=list)
    taken: int = 0
    kinds: tuple[int, ...] = ()
    more: str = ""
    copy: str = ""
    refused: int = 0
    plausible: int = 0

    @property
    def path(self) -> Path:
        return Path(self.place)  # not stored: a Path takes more memory than its text

    @property
    def read_from(self) -> Path:
        return Path(self.copy or self.place)

    @property
    def is_good(self) -> bool:
        return self.verdict is Verdict.VALID and not self.bad


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The same result in two sources. kept, dropped: numbers of the sources."""

    key: Key
    kept: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of several different results of a key. source: number of its file. made: seconds since 1970."""

    source: int
    digest: str
    aep_gwh: float
    made: float


@dataclass(frozen=True)
class Conflict:
    """Different results of one key. kept: index of the preferred one, None without a preference."""

    key: Key
    why: str
    alternatives: tuple[Alternative, ...]
    kept: int | None


@dataclass(frozen=True, slots=True)
class Removal:
    """A file to remove. reason: why it is kept, "" if it is removed. identity: of the file when it was read."""

    path: Path
    reason: str = ""
    identity: Identity | None = None


@dataclass
class MergeReport:
    """The full report of a merge.

    kinds: the distinct combinations of dataset and attribute names that were taken, with a number each. not_recomputed:
    the reason, by key, why a missing AEP could not be computed. missing: expected keys that were not found, None if the
    expected keys are unknown. salvaged: recoveries from damaged files, in file order. removals: of sources. problem:
    why nothing was written, or "".
    """

    output: Path
    began: str
    on_bad: str
    prefer: str | None
    files: list[SourceReport] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    kinds: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = field(default_factory=dict)
    recomputed: list[Key] = field(default_factory=list)
    not_recomputed: dict[Key, str] = field(default_factory=dict)
    no_aep: int = 0
    results: int = 0
    size: int = -1
    missing: list[Key] | None = None
    salvaged: list[Recovery] = field(default_factory=list)
    moved: Path | None = None
    notes: list[str] = field(default_factory=list)
    problem: str = ""
    logs: tuple[Path, ...] = ()
    removals: list[Removal] = field(default_factory=list)

    @property
    def bad_files(self) -> list[SourceReport]:
        """Files that are bad or hold a bad result."""
        return [file for file in self.files if not file.is_good]

    @property
    def unresolved(self) -> list[Conflict]:
        """Conflicts without a preferred result."""
        return [conflict for conflict in self.conflicts if conflict.kept is None]

    @property
    def is_all_well(self) -> bool:
        """True if no result is bad, missing, in conflict or without an AEP."""
        return not (self.problem or self.bad_files or self.unresolved or self.missing or self.no_aep)


class MergeRefusedError(BadSourceError):
    """The sources cannot be merged. report.problem: the reason."""

    def __init__(self, report: MergeReport) -> None:
        self.report = report
        super().__init__(f"{report.problem}\nThe log is {report.logs[1]}")


# --- the log: JSON lines for programs, text for people ---------------------------------------------------------------


def write_logs(report: MergeReport) -> tuple[Path, Path]:
    """Write both logs durably and return their paths, JSON lines first. Their names are new and share a time stamp."""
    folder = report.output.parent
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 0
    with storage_errors(folder, "the merge log cannot be written"):
        remove_left_overs(folder, ".merge_log_")
        while True:
            name = f"merge_log_{stamp}" + (f"-{number}" if number else "")
            data, text = folder / f"{name}.jsonl", folder / f"{name}.txt"
            if not data.exists() and not text.exists():
                break
            number += 1
        _write(text, text_lines(report))
        _write(data, (json_text(line) for line in data_lines(report)))
        sync_folder(folder)
    return data, text


def _write(path: Path, lines: Iterable[str]) -> None:
    """Write line by line, because the log of a hundred thousand sources would need much memory."""
    with Temporary(path) as temporary:
        with open(temporary.handle, "wb", closefd=False) as file:
            file.writelines(f"{printable(line)}\n".encode() for line in lines)
        sync(temporary.handle)
        temporary.put_in_place()


def append_removals(logs: Iterable[Path], event: str, removals: list[Removal]) -> None:
    """Append lines durably to both logs. event: "removing", "removed" or "kept"."""
    data = [{"event": event, "time": utc_now(), "path": str(one.path), "reason": one.reason} for one in removals]
    text = [f"{event}  {one.path}" + (f": {one.reason}" if one.reason else "") for one in removals]
    for path in logs:
        lines = map(json_text, data) if path.suffix == ".jsonl" else text
        try:
            append_line(path, "".join(f"{printable(line)}\n" for line in lines), durable=True)
        except OSError as error:
            raise StorageError(f"{path}: cannot be written ({error}); no source was removed after that") from error


def data_lines(report: MergeReport) -> Iterator[dict[str, Any]]:
    """Yield the log as data, one event at a time."""
    settings = {"output": str(report.output), "on_bad": report.on_bad, "prefer": report.prefer}
    yield {"event": "merge", "time": report.began, **settings}
    for (datasets, attributes), number in report.kinds.items():
        yield {"event": "kind", "kind": number, "datasets": datasets, "attributes": attributes}
    salvaged = {str(one.file.path): one for one in report.salvaged}
    for file in report.files:
        yield _file_data(file, salvaged.get(file.place))
    for duplicate in report.duplicates:
        kept, dropped = report.files[duplicate.kept].path, report.files[duplicate.dropped].path
        yield {"event": "duplicate", "key": str(duplicate.key), "kept": str(kept), "dropped": str(dropped)}
    for conflict in report.conflicts:
        yield {"event": "conflict", **_conflict_data(report, conflict)}
    for key in report.recomputed:
        yield {"event": "recomputed", "key": str(key)}
    for key, reason in report.not_recomputed.items():
        yield {"event": "not-recomputed", "key": str(key), "reason": reason}
    for key in report.missing or ():
        yield {"event": "missing", "key": str(key)}
    yield {"event": "end", "time": utc_now(), **totals(report), "notes": report.notes, "problem": report.problem}


def _file_data(file: SourceReport, about: Recovery | None) -> dict[str, Any]:
    data = {"event": "file", "path": file.place, "size": file.size, "sha256": file.sha256.hex()}
    data |= {name: getattr(file, name) for name in ("verdict", "reason", "sealed", "valid", "taken", "kinds")}
    data["bad"] = [bad._asdict() for bad in file.bad]
    if about is not None:
        data["salvaged"] = {"verified": about.verified, "plausible": about.plausible, "ways": about.tried}
    return data


def _conflict_data(report: MergeReport, conflict: Conflict) -> dict[str, Any]:
    rivals = [
        {
            "path": str(report.files[one.source].path),
            "digest": one.digest,
            "aep_gwh": None if math.isnan(one.aep_gwh) else one.aep_gwh,
            "kept": number == conflict.kept,
        }
        for number, one in enumerate(conflict.alternatives)
    ]
    return {"key": str(conflict.key), "why": conflict.why, "rivals": rivals}


def totals(report: MergeReport) -> dict[str, Any]:
    """Return the counts of a merge by name."""
    return {
        "files": len(report.files),
        "bad_files": len(report.bad_files),
        "bad_results": sum(len(file.bad) for file in report.files),
        "valid_results": sum(file.valid for file in report.files),
        "duplicates": len(report.duplicates),
        "conflicts": len(report.conflicts),
        "recomputed": len(report.recomputed),
        "no_aep": report.no_aep,
        "results": report.results,
        "missing": None if report.missing is None else len(report.missing),
        "output_size": report.size if report.size >= 0 else None,
        "moved": None if report.moved is None else str(report.moved),
    }


def text_lines(report: MergeReport) -> Iterator[str]:
    """Yield the log as text, line by line."""
    settings = f"bad sources: {report.on_bad}; different results of one key: {report.prefer or 'error'}"
    yield f"leeward merge into {report.output}"
    yield f"began {report.began}; {settings}"
    yield f"outcome: {'nothing was written: ' + report.problem if report.problem else 'written and verified'}"
    yield from _section(
        "Totals", (f"{name.replace('_', ' ')}: {_or_unknown(name, value)}" for name, value in totals(report).items())
    )
    yield from _section("Notes", report.notes)
    yield from _section("Datasets and attributes taken", map(_kind_text, report.kinds.items()))
    yield from _section(f"Files ({len(report.files)})", (line for file in report.files for line in _file_text(file)))
    yield from _section("Salvaged", map(_salvage_text, report.salvaged))
    yield from _section(
        f"Duplicates ({len(report.duplicates)})",
        (
            f"{one.key}  kept from {report.files[one.kept].path}, also in {report.files[one.dropped].path}"
            for one in report.duplicates
        ),
    )
    conflicts = (line for conflict in report.conflicts for line in _conflict_text(report, conflict))
    yield from _section(f"Conflicts ({len(report.conflicts)})", conflicts)
    yield from _section("AEP recomputed", map(str, report.recomputed))
    yield from _section("AEP not recomputed", (f"{key}: {why}" for key, why in report.not_recomputed.items()))
    yield from _section("Missing", map(str, report.missing or ()))
    yield f"ended {utc_now()}"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a titled section, or nothing if it has no lines."""
    is_first = True
    for line in lines:
        if is_first:
            yield from ("", title)
            is_first = False
        yield f"  {line}"


def _or_unknown(name: str, value: Any) -> Any:
    if value is not None:
        return value
    return "no" if name == "moved" else "unknown"


def _kind_text(kind: tuple[tuple[tuple[str, ...], tuple[str, ...]], int]) -> str:
    (datasets, attributes), number = kind
    return f"kind {number}: datasets {', '.join(datasets)}; attributes {', '.join(attributes)}"


def _file_text(file: SourceReport) -> Iterator[str]:
    kinds = f" (kind {', '.join(map(str, file.kinds))})" if file.kinds else ""
    results = f"{file.valid} valid, {len(file.bad)} bad, {file.taken} taken{kinds}"
    reason = f" ({file.reason})" if file.reason else ""
    yield file.place
    digest = file.sha256.hex() or "unknown"
    yield f"    {file.verdict}{reason}; {file.size} bytes; sha256 {digest}; results: {results}"
    for bad in file.bad:
        yield f"    {bad.name}: {bad.verdict} ({bad.reason})"


def _salvage_text(about: Recovery) -> str:
    tried = ", ".join(f"{method} {found}" for method, found in about.tried.items())
    counts = f"{about.verified} verified, {about.plausible} plausible, {len(about.lost)} lost"
    return f"{about.file.path}: {counts} ({tried})"


def _conflict_text(report: MergeReport, conflict: Conflict) -> Iterator[str]:
    yield f"{conflict.key}: {conflict.why}"
    for number, one in enumerate(conflict.alternatives):
        kept = "  kept" if number == conflict.kept else ""
        yield f"    {one.aep_gwh:.6f} GWh  digest {one.digest[:12]}  {report.files[one.source].path}{kept}"
