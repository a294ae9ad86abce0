"""The two passes of a merge: choose one result for each key, then read the chosen results."""

import contextlib
import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from leeward.errors import BadSourceError, LeewardError
from leeward.events import OnProgress
from leeward.store.directory.shards import was_packed
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.kind import Array, Value
from leeward.store.format.layout_result import NO_AEP, SUCCESS, Result
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import read_files
from leeward.store.merging.contents import read_groups
from leeward.store.merging.merge_report import Alternative, Conflict, Duplicate, MergeReport, SourceReport
from leeward.store.rescue.recovery import BadResult, Recovery

Recompute = Callable[[Key, Array, Array], tuple[float, float, float]]  # key, x, y -> AEP (GWh), wake loss, spacing (m)
Judge = Callable[[Result], str | None]  # returns what is physically wrong with a result, or None
Compare = Callable[[Path, Result], str | None]  # returns why a result in a file does not match its campaign, or None
_EXECUTION = re.compile(r"^execution:.*\n?(?:[ \t].*\n?|\n)*", re.MULTILINE)  # does not affect results


def both(compare: Compare | None, judge: Judge | None) -> Compare | None:
    """Combine both tests. The comparison comes first, because the judge recomputes and so takes longer."""
    if compare is None:
        return None if judge is None else lambda path, result: judge(result)
    if judge is None:
        return compare
    return lambda path, result: compare(path, result) or judge(result)


@dataclass(slots=True, eq=False)
class Candidate:
    """A compact record of a valid result.

    source: number of its file. name: its group, "" if that is the key. other: a digest of the attributes of a foreign
    result that its own digest does not cover.
    """

    key: Key
    digest: bytes
    source: int
    name: str = ""
    other: bytes = b""

    @classmethod
    def of(cls, found: FoundResult, key: Key, source: int) -> "Candidate":
        """Return the candidate for a result that was found."""
        name = "" if found.name == str(key) else sys.intern(found.name)
        return cls(key, bytes.fromhex(found.digest), source, name, found.type.details_digest(found.attributes))

    @property
    def group(self) -> str:
        return self.name or str(self.key)


_Read = tuple[Candidate, Result]


@dataclass
class Selection:
    """The choice of the results to merge. Files, duplicates, conflicts and losses go into the report.

    doubt: returns what is wrong with a result in a file, or None. recompute: for layouts without an AEP. salvaged: the
    recovery of each copy. campaigns: known number of different campaigns. chosen: one candidate for each key.
    attributes: of the newest source with a campaign. studies: the campaign texts without execution settings.
    """

    report: MergeReport
    doubt: Compare | None
    recompute: Recompute | None
    on_progress: OnProgress
    processes: int
    campaigns: int
    salvaged: Mapping[str, Recovery] = field(default_factory=dict)
    chosen: dict[Key, Candidate] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    attributes: Mapping[str, Value] = field(default_factory=dict)
    studies: set[str] = field(default_factory=set)
    _different: dict[Key, list[Candidate]] = field(default_factory=dict)
    _file: SourceReport = field(default_factory=SourceReport)

    # --- the first pass ---

    def read(self, paths: Iterable[Path], total: int) -> None:
        """Read sources. Record bad files and results without an error. total: number of files, for the progress."""
        files = self.report.files
        for found in read_files(paths, sha256=True, contents=self.doubt is not None, processes=self.processes):
            if isinstance(found, FoundResult):
                self._add_result(found)
            elif not was_packed(found):  # otherwise its pack is read too
                self._add_file(found)
                self.on_progress("checking", len(files), total)

    def _add_file(self, found: FoundFile) -> None:
        original = self.salvaged.get(str(found.path))
        about = found if original is None else original.file
        file, self._file = self._file, SourceReport()
        file.place, file.size, file.verdict, file.reason = str(about.path), about.size, about.verdict, about.reason
        file.sha256, file.sealed = bytes.fromhex(about.sha256), found.sealed
        file.valid = found.valid - file.refused
        if original is not None:
            file.bad += original.lost
            file.copy = str(found.path)
        self.report.files.append(file)
        self._add_campaign(found.attributes)

    def _add_campaign(self, attributes: Mapping[str, Value]) -> None:
        """Keep the newest campaign text, and count the texts that differ in more than execution settings."""
        count = attributes.get("campaigns")
        self.campaigns = max(self.campaigns, count if isinstance(count, int) else 1)
        text = attributes.get("campaign")
        if not text:
            return
        if not self.attributes or str(attributes.get("created", "")) > str(self.attributes.get("created", "")):
            self.attributes = attributes
        self.studies.add(_EXECUTION.sub("", str(text)))

    def _add_result(self, found: FoundResult) -> None:
        file = self._file
        if not found.is_valid or found.key is None:
            file.bad.append(BadResult(found.name, found.verdict, found.reason))
            return
        if self.doubt is not None and found.result is not None:
            original = self.salvaged.get(str(found.path))
            reason = self.doubt(found.path if original is None else original.file.path, found.result)
            if reason is not None:
                file.bad.append(BadResult(found.name, Verdict.IMPLAUSIBLE, reason))
                file.refused += 1
                return
        self.kinds.add(found.kind)
        file.plausible += not found.is_verified
        if not found.sealed and "ignored" in found.attributes:
            file.more = f"{found.name} has content that a result does not include: {found.attributes['ignored']}"
        self._add_candidate(Candidate.of(found, found.key, len(self.report.files)))

    def _add_candidate(self, new: Candidate) -> None:
        first = self.chosen.setdefault(new.key, new)
        if first is new:
            return
        known = self._different.get(new.key, [first])
        same = next((old for old in known if (old.digest, old.other) == (new.digest, new.other)), None)
        if same is not None:
            self.report.duplicates.append(Duplicate(new.key, same.source, new.source))
        else:
            self._different[new.key] = [*known, new]

    # --- different results of one key ---

    def resolve(self, prefer: str | None) -> None:
        """Drop each result that another result of its key makes redundant. The others are conflicts."""
        names: dict[Path, list[str]] = defaultdict(list)
        for candidates in self._different.values():
            for one in candidates:
                names[self.report.files[one.source].read_from].append(one.group)
        results: dict[tuple[Key | None, bytes, bytes], Result] = {}
        for found, result in read_groups(names):
            results[found.key, bytes.fromhex(found.digest), found.type.details_digest(found.attributes)] = result
        for key, candidates in self._different.items():
            read = [(one, results.get((key, one.digest, one.other))) for one in candidates]
            self._resolve_key(key, [(one, result) for one, result in read if result is not None], prefer)

    def _resolve_key(self, key: Key, candidates: list[_Read], prefer: str | None) -> None:
        distinct: list[_Read] = []
        for new in candidates:
            winner = next((old for old in distinct if old[1].covers(new[1])), None)
            if winner is not None:
                self._drop(key, new, winner)
                continue
            for old in [old for old in distinct if new[1].covers(old[1])]:
                self._drop(key, old, new)
                distinct.remove(old)
            distinct.append(new)
        if not distinct:
            return  # they have disappeared: the second pass reports it
        alternatives = tuple(
            Alternative(one.source, one.digest.hex(), result.merit, self._made(one, result)) for one, result in distinct
        )
        kept = _preferred(alternatives, prefer)
        self.chosen[key] = distinct[kept or 0][0]
        for number, (loser, _) in enumerate(distinct):
            if number != (kept or 0):
                self.report.files[loser.source].more = f"not in the output: {key}"
        if len(alternatives) > 1:
            why = distinct[0][1].difference(distinct[1][1])
            self.report.conflicts.append(Conflict(key, why, alternatives, kept))

    def _drop(self, key: Key, loser: _Read, winner: _Read) -> None:
        """Drop a redundant result."""
        self.report.duplicates.append(Duplicate(key, winner[0].source, loser[0].source))
        if not winner[1].covers(loser[1], to_the_letter=True):
            self.report.files[loser[0].source].more = f"the attributes differ from those in the output: {key}"

    def _made(self, candidate: Candidate, result: Result) -> float:
        """Return when a result was made, in seconds since 1970: by its attributes, else by its file."""
        with contextlib.suppress(ValueError):  # the time is missing or invalid
            created = datetime.fromisoformat(str(result.attributes.get("created")))
            return (created if created.tzinfo else created.replace(tzinfo=UTC)).timestamp()
        try:
            return self.report.files[candidate.source].path.stat().st_mtime
        except FileNotFoundError:
            return -math.inf

    # --- the second pass ---

    def results(self) -> Iterator[Result]:
        """Read the chosen results, file by file, for the output."""
        files = self.report.files
        groups: dict[int, list[str]] = defaultdict(list)
        for candidate in self.chosen.values():
            groups[candidate.source].append(candidate.group)
        order = sorted(groups)
        partly = (number for number in order if len(groups[number]) != files[number].valid)  # others are read whole
        names = {files[number].read_from: groups[number] for number in partly}
        numbers = iter(order)
        number = next(numbers)
        done = 0
        paths = (files[number].read_from for number in order)
        for found in read_files(paths, contents=True, keys=names, processes=self.processes):
            if isinstance(found, FoundFile):
                number = next(numbers, -1)
            elif self._is_chosen(found, number):
                if found.result is None:
                    changed = f"{found.path}: {found.name} changed during the merge ({found.reason})"
                    raise BadSourceError(f"{changed}; run it again")
                result = self._with_aep(found.result)
                self._note_kind(files[number], result)
                done += 1
                self.on_progress("writing", done, len(self.chosen))
                yield result
        if done != len(self.chosen):
            gone = len(self.chosen) - done
            raise BadSourceError(f"{gone} results disappeared from their files during the merge; run it again")

    def _is_chosen(self, found: FoundResult, number: int) -> bool:
        candidate = self.chosen.get(found.key) if found.key is not None else None
        if candidate is None or candidate.source != number or candidate.group != found.name:
            return False
        if found.is_valid and bytes.fromhex(found.digest) != candidate.digest:
            if found.sealed or self.report.on_bad == "abort":
                raise BadSourceError(f"{found.path}: {found.name} changed during the merge; run it again")
            self._reject(number, candidate.key, found.name)
            return False
        return True

    def _reject(self, number: int, key: Key, name: str) -> None:
        """Drop an unsealed result that differs each time it is read. libhdf5 may do this with damaged files."""
        file = self.report.files[number]
        file.bad.append(BadResult(name, Verdict.UNREADABLE, "its content differs each time it is read"))
        file.valid -= 1
        del self.chosen[key]
        if self.report.missing is not None:
            self.report.missing = sorted([*self.report.missing, key])

    def _with_aep(self, result: Result) -> Result:
        if self.recompute is None or result.status != NO_AEP:
            return result
        try:
            aep, wake_loss, spacing = self.recompute(result.key, result.layout[0], result.layout[1])
        except LeewardError as error:  # keep the layout without an AEP
            self.report.not_recomputed[result.key] = str(error)
            return result
        self.report.recomputed.append(result.key)
        details = {**result.details, "aep_source": "recomputed", "wake_loss": wake_loss, "min_spacing_m": spacing}
        return replace(result, aep_gwh=aep, status=SUCCESS, details=details)

    def _note_kind(self, file: SourceReport, result: Result) -> None:
        """Record which datasets and attributes were taken from a file."""
        names = tuple(result.datasets), tuple(result.attributes)
        kind = self.report.kinds.setdefault(names, len(self.report.kinds))
        file.taken += 1
        if kind not in file.kinds:
            file.kinds = (*file.kinds, kind)


def _preferred(alternatives: Sequence[Alternative], prefer: str | None) -> int | None:
    """Return the index of the preferred result; None without a preference."""
    numbers = range(len(alternatives))
    if prefer == "newest":
        return max(numbers, key=lambda number: alternatives[number].made)
    if prefer == "best":
        aeps = [-math.inf if math.isnan(one.aep_gwh) else one.aep_gwh for one in alternatives]
        return max(numbers, key=aeps.__getitem__)
    return None
