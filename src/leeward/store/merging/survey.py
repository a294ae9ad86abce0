"""The two passes of a merge: choose one result for each key, then read the chosen results."""

import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from leeward.errors import BadSourceError, LeewardError
from leeward.events import OnProgress
from leeward.store.directory.shards import was_packed
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.kind import Array, Value
from leeward.store.format.layout_result import NO_AEP, SUCCESS, Result
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import read_files
from leeward.store.merging.merge_report import (
    BadResult,
    Conflict,
    Duplicate,
    MergeReport,
    Rival,
    Salvaged,
    SourceReport,
)

Recompute = Callable[[Key, Array, Array], tuple[float, float, float]]  # key, x, y -> AEP (GWh), wake loss, spacing (m)
Judge = Callable[[Result], str | None]
Compare = Callable[[Path, Result], str | None]


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


class _Known(NamedTuple):
    """The data that are needed only for rivals. made: seconds since 1970, NaN if unknown."""

    result: Result
    made: float


_Read = tuple[Candidate, _Known]
_EXECUTION = re.compile(r"^execution:.*\n?(?:[ \t].*\n?|\n)*", re.MULTILINE)  # how a campaign is run, not what it is


@dataclass
class Survey:
    """The first pass: collects what the reader finds, in its order.

    judge: returns what is wrong with a result, or None. compare: returns why a result does not belong to the campaign
    of its file, or None. salvaged: by copy, its original. campaigns: known number of different campaigns.
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
    judge: Judge | None = None
    compare: Compare | None = None
    salvaged: Mapping[str, Salvaged] = field(default_factory=dict)
    _bad: list[BadResult] = field(default_factory=list)
    _more: str = ""
    _rejected: int = 0
    _plausible: int = 0

    def look_at(self, paths: Iterable[Path], processes: int, on_file: Callable[[int], None]) -> None:
        """Read all sources. Bad files and results are noted, not raised."""
        contents = self.judge is not None or self.compare is not None
        for found in read_files(paths, sha256=True, contents=contents, processes=processes):
            if isinstance(found, FoundFile):
                if was_packed(found):  # its pack is read too
                    continue
                self._add_file(found)
                on_file(len(self.files))
            else:
                self._add_result(found)

    def _add_file(self, found: FoundFile) -> None:
        original = self.salvaged.get(str(found.path))
        about = original or found
        self.files.append(
            SourceReport(
                number=len(self.files),
                place=str(found.path) if original is None else original.place,
                size=about.size,
                verdict=about.verdict,
                reason=about.reason,
                sha256=bytes.fromhex(found.sha256) if original is None else original.sha256,
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
        doubt = None if found.result is None else self._doubt(found.path, found.result)
        if doubt is not None:
            self._bad.append(BadResult(found.name, Verdict.IMPLAUSIBLE, doubt))
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

    def _doubt(self, path: Path, result: Result) -> str | None:
        original = self.salvaged.get(str(path))
        unfit = self.compare and self.compare(path if original is None else Path(original.place), result)
        return unfit or (self.judge and self.judge(result))

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
        known: dict[tuple[Key, bytes, bytes], _Known] = {}
        for found in read_files(names, contents=True, keys=names):
            if isinstance(found, FoundResult) and found.result is not None and found.key is not None:
                made = _seconds(found.attributes.get("created"))
                place = found.key, bytes.fromhex(found.digest), found.type.said(found.attributes)
                known[place] = _Known(found.result, made)
        for key, candidates in self.rivals.items():
            read = [(one, known.get((key, one.digest, one.said))) for one in candidates]
            self._settle_one(key, [(one, about) for one, about in read if about is not None], prefer)

    def _settle_one(self, key: Key, candidates: list[_Read], prefer: str | None) -> None:
        distinct: list[_Read] = []
        for new, about in candidates:
            standing = next((one for one in distinct if one[1].result.covers(about.result)), None)
            if standing is not None:
                self._drop(key, (new, about), standing)
                continue
            for old in [old for old in distinct if about.result.covers(old[1].result)]:
                self._drop(key, old, (new, about))
                distinct.remove(old)
            distinct.append((new, about))
        if not distinct:
            return  # they are gone by now: the second pass reports it
        rivals = tuple(
            Rival(one.source, one.digest.hex(), known.result.merit, self._made(one, known)) for one, known in distinct
        )
        kept = _preferred(rivals, prefer)
        self.chosen[key] = distinct[kept or 0][0]
        for number, (loser, _) in enumerate(distinct):
            if number != (kept or 0):
                self.files[loser.source].more = f"not in the output: {key}"
        if len(rivals) > 1:
            why = distinct[0][1].result.difference(distinct[1][1].result)
            self.conflicts.append(Conflict(key, why, rivals, kept))

    def _drop(self, key: Key, loser: _Read, winner: _Read) -> None:
        """Drop a result that another covers."""
        self.duplicates.append(Duplicate(key, winner[0].source, loser[0].source))
        if not winner[1].result.covers(loser[1].result, to_the_letter=True):
            self.files[loser[0].source].more = f"it says something else of {key} than what is taken"

    def _made(self, candidate: Candidate, known: _Known) -> float:
        """Return when a result was made, in seconds since 1970: by its attributes, else by its file."""
        if not math.isnan(known.made):
            return known.made
        try:
            return self.files[candidate.source].path.stat().st_mtime
        except FileNotFoundError:
            return -math.inf


def _preferred(rivals: Sequence[Rival], prefer: str | None) -> int | None:
    numbers = range(len(rivals))
    if prefer == "newest":
        return max(numbers, key=lambda number: rivals[number].made)
    if prefer == "best":
        return max(numbers, key=lambda number: _or_lowest(rivals[number].aep))
    return None


def _or_lowest(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _seconds(created: object) -> float:
    try:
        moment = datetime.fromisoformat(str(created))
    except ValueError:
        return math.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


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
        self._kinds: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}

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
        kind = self._kinds.setdefault(names, len(self._kinds))
        if kind == len(self._report.kinds):
            self._report.kinds.append(names)
        file.taken += 1
        if kind not in file.kinds:
            file.kinds = (*file.kinds, kind)
