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
from leeward.store.merging.merge_report import Conflict, Duplicate, MergeReport, Rival, SourceReport
from leeward.store.rescue.recovery import BadResult, Recovery

Recompute = Callable[[Key, Array, Array], tuple[float, float, float]]  # key, x, y -> AEP (GWh), wake loss, spacing (m)
Judge = Callable[[Result], str | None]  # what is physically wrong with a result, or None
Compare = Callable[[Path, Result], str | None]  # why a result in a file does not match its campaign, or None
_EXECUTION = re.compile(r"^execution:.*\n?(?:[ \t].*\n?|\n)*", re.MULTILINE)  # how a campaign is run, not what it is


def both(compare: Compare | None, judge: Judge | None) -> Compare | None:
    """Return both tests as one. The comparison comes first: the judge recomputes, which takes longer."""
    if compare is None:
        return None if judge is None else lambda path, result: judge(result)
    if judge is None:
        return compare
    return lambda path, result: compare(path, result) or judge(result)


@dataclass(slots=True, eq=False)
class Candidate:
    """A valid result of a source, in little memory.

    name: its group, "" if that is the key. said: a digest of the other attributes of a foreign result.
    """

    key: Key
    digest: bytes
    source: int
    name: str = ""
    said: bytes = b""

    @property
    def group(self) -> str:
        return self.name or str(self.key)


_Read = tuple[Candidate, Result]


@dataclass
class Survey:
    """The first pass: collects what the reader finds, in its order.

    doubt: returns what is wrong with a result in a file, or None. salvaged: by copy, the recovery that made it.
    campaigns: known number of different campaigns.
    """

    files: list[SourceReport] = field(default_factory=list)
    chosen: dict[Key, Candidate] = field(default_factory=dict)
    rivals: dict[Key, list[Candidate]] = field(default_factory=dict)
    duplicates: list[Duplicate] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    attributes: Mapping[str, Value] = field(default_factory=dict)
    studies: set[str] = field(default_factory=set)
    campaigns: int = 1
    kinds: set[str] = field(default_factory=set)
    doubt: Compare | None = None
    salvaged: Mapping[str, Recovery] = field(default_factory=dict)
    _bad: list[BadResult] = field(default_factory=list)
    _more: str = ""
    _rejected: int = 0
    _plausible: int = 0

    def look_at(self, paths: Iterable[Path], processes: int, on_file: Callable[[int], None]) -> None:
        """Read all sources. Bad files and results are noted, not raised."""
        for found in read_files(paths, sha256=True, contents=self.doubt is not None, processes=processes):
            if isinstance(found, FoundFile):
                if was_packed(found):  # its pack is read too
                    continue
                self._add_file(found)
                on_file(len(self.files))
            else:
                self._add_result(found)

    def _add_file(self, found: FoundFile) -> None:
        original = self.salvaged.get(str(found.path))
        about = found if original is None else original.file
        self.files.append(
            SourceReport(
                place=str(about.path),
                size=about.size,
                verdict=about.verdict,
                reason=about.reason,
                sha256=bytes.fromhex(about.sha256),
                sealed=found.sealed,
                valid=found.valid - self._rejected,
                bad=(*self._bad, *(() if original is None else original.lost)),
                more=self._more,
                copy="" if original is None else str(found.path),
                refused=self._rejected,
                plausible=self._plausible,
            )
        )
        self._rejected = self._plausible = 0
        self._bad.clear()
        self._more = ""
        self._note_campaign(found.attributes)

    def _note_campaign(self, attributes: Mapping[str, Value]) -> None:
        """Keep the newest campaign text, and count the texts that differ in more than their execution."""
        count = attributes.get("campaigns")
        self.campaigns = max(self.campaigns, count if isinstance(count, int) else 1)
        text = attributes.get("campaign")
        if not text:
            return
        if not self.attributes or str(attributes.get("created", "")) > str(self.attributes.get("created", "")):
            self.attributes = attributes
        self.studies.add(_EXECUTION.sub("", str(text)))

    def _add_result(self, found: FoundResult) -> None:
        if not found.is_valid or found.key is None:
            self._bad.append(BadResult(found.name, found.verdict, found.reason))
            return
        if self.doubt is not None and found.result is not None:
            original = self.salvaged.get(str(found.path))
            reason = self.doubt(found.path if original is None else original.file.path, found.result)
            if reason is not None:
                self._bad.append(BadResult(found.name, Verdict.IMPLAUSIBLE, reason))
                self._rejected += 1
                return
        self.kinds.add(found.kind)
        self._plausible += not found.is_verified
        name = "" if found.name == str(found.key) else sys.intern(found.name)
        new = Candidate(
            found.key, bytes.fromhex(found.digest), len(self.files), name, found.type.said(found.attributes)
        )
        if not found.sealed and "ignored" in found.attributes:
            self._more = f"there is more in {found.name}: {found.attributes['ignored']}"
        self._add_candidate(new)

    def _add_candidate(self, new: Candidate) -> None:
        first = self.chosen.setdefault(new.key, new)
        if first is new:
            return
        known = self.rivals.get(new.key, [first])
        same = next((old for old in known if (old.digest, old.said) == (new.digest, new.said)), None)
        if same is not None:
            self.duplicates.append(Duplicate(new.key, same.source, new.source))
        else:
            self.rivals[new.key] = [*known, new]

    # --- different results of one key ---

    def settle(self, prefer: str | None) -> None:
        """Drop rivals that another result covers (as of other scripts). Those that remain are conflicts."""
        names: dict[Path, list[str]] = defaultdict(list)
        for candidates in self.rivals.values():
            for candidate in candidates:
                names[self.files[candidate.source].read_from].append(candidate.group)
        known: dict[tuple[Key | None, bytes, bytes], Result] = {}
        for found, result in read_groups(names):
            known[found.key, bytes.fromhex(found.digest), found.type.said(found.attributes)] = result
        for key, candidates in self.rivals.items():
            read = [(one, known.get((key, one.digest, one.said))) for one in candidates]
            self._settle_one(key, [(one, result) for one, result in read if result is not None], prefer)

    def _settle_one(self, key: Key, candidates: list[_Read], prefer: str | None) -> None:
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
            return  # they are gone by now: the second pass reports it
        rivals = tuple(
            Rival(one.source, one.digest.hex(), result.merit, self._made(one, result)) for one, result in distinct
        )
        kept = _preferred(rivals, prefer)
        self.chosen[key] = distinct[kept or 0][0]
        for number, (loser, _) in enumerate(distinct):
            if number != (kept or 0):
                self.files[loser.source].more = f"not in the output: {key}"
        if len(rivals) > 1:
            why = distinct[0][1].difference(distinct[1][1])
            self.conflicts.append(Conflict(key, why, rivals, kept))

    def _drop(self, key: Key, loser: _Read, winner: _Read) -> None:
        """Drop a result that another covers."""
        self.duplicates.append(Duplicate(key, winner[0].source, loser[0].source))
        if not winner[1].covers(loser[1], to_the_letter=True):
            self.files[loser[0].source].more = f"it says something else of {key} than what is taken"

    def _made(self, candidate: Candidate, result: Result) -> float:
        """Return when a result was made, in seconds since 1970: by its attributes, else by its file."""
        with contextlib.suppress(ValueError):  # not stated, or not a time
            created = datetime.fromisoformat(str(result.attributes.get("created")))
            return (created if created.tzinfo else created.replace(tzinfo=UTC)).timestamp()
        try:
            return self.files[candidate.source].path.stat().st_mtime
        except FileNotFoundError:
            return -math.inf


def _preferred(rivals: Sequence[Rival], prefer: str | None) -> int | None:
    numbers = range(len(rivals))
    if prefer == "newest":
        return max(numbers, key=lambda number: rivals[number].made)
    if prefer == "best":
        aeps = [-math.inf if math.isnan(rival.aep) else rival.aep for rival in rivals]
        return max(numbers, key=aeps.__getitem__)
    return None


# --- the second pass ------------------------------------------------------------------------------------------------


class SecondPass:
    """The second pass: reads the chosen results, file by file, for the output."""

    def __init__(
        self, survey: Survey, report: MergeReport, recompute: Recompute | None, on_progress: OnProgress, processes: int
    ) -> None:
        self._survey = survey
        self._report = report
        self._recompute = recompute
        self._on_progress = on_progress
        self._processes = processes

    def results(self) -> Iterator[Result]:
        files = self._report.files
        chosen = self._chosen_groups()
        names = {files[number].read_from: groups for number, groups in chosen.items() if groups is not None}
        numbers = iter(sorted(chosen))
        number = next(numbers)
        done = 0
        ordered = (files[number].read_from for number in sorted(chosen))
        for found in read_files(ordered, contents=True, keys=names, processes=self._processes):
            if not isinstance(found, FoundResult):
                number = next(numbers, -1)
            elif found.key is not None and self._is_chosen(found, number):
                if found.result is None:
                    raise BadSourceError(f"{found.path}: {found.name} changed during the merge ({found.reason})")
                result = self._with_aep(found.result)
                self._note(number, result)
                done += 1
                self._on_progress("writing", done, len(self._survey.chosen))
                yield result
        if done != len(self._survey.chosen):
            gone = len(self._survey.chosen) - done
            raise BadSourceError(f"{gone} results disappeared from their files during the merge; run it again")

    def _chosen_groups(self) -> dict[int, list[str] | None]:
        """Return the chosen groups of each file, or None for a file that is read whole, as all of it is taken."""
        groups: dict[int, list[str]] = defaultdict(list)
        for candidate in self._survey.chosen.values():
            groups[candidate.source].append(candidate.group)
        files = self._report.files
        return {number: None if len(taken) == files[number].valid else taken for number, taken in groups.items()}

    def _is_chosen(self, found: FoundResult, number: int) -> bool:
        candidate = self._survey.chosen.get(found.key) if found.key is not None else None
        if candidate is None or candidate.source != number or candidate.group != found.name:
            return False
        if found.is_valid and bytes.fromhex(found.digest) != candidate.digest:
            if found.sealed or self._report.on_bad == "abort":
                raise BadSourceError(f"{found.path}: {found.name} changed during the merge; run it again")
            self._give_up(number, candidate.key, found.name)
            return False
        return True

    def _give_up(self, number: int, key: Key, name: str) -> None:
        """Drop an unsealed result that differs each time it is read, which damage can make libhdf5 do."""
        file = self._report.files[number]
        file.bad = (*file.bad, BadResult(name, Verdict.UNREADABLE, "it is another one each time it is read"))
        file.valid -= 1
        del self._survey.chosen[key]
        if self._report.missing is not None:
            self._report.missing = sorted([*self._report.missing, key])

    def _with_aep(self, result: Result) -> Result:
        if self._recompute is None or result.status != NO_AEP:
            return result
        try:
            aep, wake_loss, spacing = self._recompute(result.key, result.layout[0], result.layout[1])
        except LeewardError as error:  # keep the layout without an AEP
            self._report.not_recomputed[result.key] = str(error)
            return result
        self._report.recomputed.append(result.key)
        details = {**result.details, "aep_source": "recomputed", "wake_loss": wake_loss, "min_spacing_m": spacing}
        return replace(result, aep=aep, status=SUCCESS, details=details)

    def _note(self, number: int, result: Result) -> None:
        file = self._report.files[number]
        names = tuple(result.datasets), tuple(result.attributes)
        kind = self._report.kinds.setdefault(names, len(self._report.kinds))
        file.taken += 1
        if kind not in file.kinds:
            file.kinds = (*file.kinds, kind)
