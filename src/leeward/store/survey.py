"""The first pass of a merge: what the sources hold, which result of each key is taken, and what stands in the way."""

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from leeward.store.found import FoundFile, FoundResult
from leeward.store.keys import Key
from leeward.store.merge_report import BadResult, Conflict, Duplicate, Rival, SourceReport
from leeward.store.reader import read_files
from leeward.store.sameness import Essence, covers, difference
from leeward.store.schema import Result, Value
from leeward.store.verdicts import Verdict

Judge = Callable[[Result], str | None]


@dataclass(slots=True, eq=False)
class Candidate:
    """A valid result of a source, in little memory. name: of its group, "" if that is the key."""

    key: Key
    digest: bytes
    source: int
    name: str = ""

    @property
    def group(self) -> str:
        return self.name or str(self.key)


class _Known(NamedTuple):
    """What is looked at only if there are rivals. made: seconds since 1970, NaN if it is not said."""

    essence: Essence
    made: float


@dataclass
class Survey:
    """Takes in what the reader found, in its order."""

    judge: Judge | None = None
    files: list[SourceReport] = field(default_factory=list)
    chosen: dict[Key, Candidate] = field(default_factory=dict)
    rivals: dict[Key, list[Candidate]] = field(default_factory=dict)
    duplicates: list[Duplicate] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    attributes: Mapping[str, Value] = field(default_factory=dict)
    campaigns: set[str] = field(default_factory=set)
    _bad: list[BadResult] = field(default_factory=list)

    def look_at(self, paths: Iterable[Path], processes: int, tell: Callable[[int], None]) -> None:
        """All sources, to the end: what is bad is noted, not raised."""
        for found in read_files(paths, contents=self.judge is not None, sha256=True, processes=processes):
            if isinstance(found, FoundFile):
                self._add_file(found)
                tell(len(self.files))
            else:
                self._add_result(found)

    def _add_file(self, found: FoundFile) -> None:
        valid = found.valid - sum(bad.reason.startswith(_JUDGED) for bad in self._bad)
        self.files.append(
            SourceReport(
                number=len(self.files),
                place=str(found.path),
                size=found.size,
                verdict=found.verdict,
                reason=found.reason,
                sha256=bytes.fromhex(found.sha256),
                sealed=found.sealed,
                valid=valid,
                bad=tuple(self._bad),
            )
        )
        self._bad.clear()
        self._note_campaign(found.attributes)

    def _note_campaign(self, attributes: Mapping[str, Value]) -> None:
        """The newest campaign text is kept; different ones are counted."""
        text = attributes.get("campaign")
        if not text:
            return
        if not self.attributes or str(attributes.get("created", "")) > str(self.attributes.get("created", "")):
            self.attributes = attributes
        self.campaigns.add(str(text))

    def _add_result(self, found: FoundResult) -> None:
        reason = found.reason
        verdict = found.verdict
        if found.is_valid and self.judge is not None and found.result is not None:
            judged = self.judge(found.result)
            if judged is not None:
                verdict, reason = Verdict.IMPLAUSIBLE, _JUDGED + judged
        if verdict is not Verdict.VALID or found.key is None:
            self._bad.append(BadResult(found.name, verdict, reason))
            return
        name = "" if found.name == str(found.key) else sys.intern(found.name)
        self._add_candidate(Candidate(found.key, bytes.fromhex(found.digest), len(self.files), name))

    def _add_candidate(self, new: Candidate) -> None:
        first = self.chosen.setdefault(new.key, new)
        if first is new:
            return
        known = self.rivals.get(new.key, [first])
        same = next((old for old in known if old.digest == new.digest), None)
        if same is not None:
            self.duplicates.append(Duplicate(new.key, same.source, new.source))
        else:
            self.rivals[new.key] = [*known, new]

    # --- different results of one key ---

    def settle(self, prefer: str | None) -> None:
        """Tell rivals that are the same after all (results of other scripts) from those that are not."""
        names: dict[Path, list[str]] = defaultdict(list)
        for candidates in self.rivals.values():
            for candidate in candidates:
                names[self.files[candidate.source].path].append(candidate.group)
        known: dict[tuple[Key, bytes], _Known] = {}
        for found in read_files(names, contents=True, keys=names):
            if isinstance(found, FoundResult) and found.result is not None and found.key is not None:
                made = _seconds(found.details.get("created"))
                known[found.key, bytes.fromhex(found.digest)] = _Known(Essence.of(found.result), made)
        for key, candidates in self.rivals.items():
            self._settle_one(
                key, [(one, known[key, one.digest]) for one in candidates if (key, one.digest) in known], prefer
            )

    def _settle_one(self, key: Key, candidates: list[tuple[Candidate, _Known]], prefer: str | None) -> None:
        distinct: list[tuple[Candidate, _Known]] = []
        for new, about in candidates:
            standing = next((old for old, known in distinct if covers(known.essence, about.essence)), None)
            if standing is not None:
                self.duplicates.append(Duplicate(key, standing.source, new.source))
                continue
            dropped = [old for old, known in distinct if covers(about.essence, known.essence)]
            self.duplicates += [Duplicate(key, new.source, old.source) for old in dropped]
            distinct = [(old, known) for old, known in distinct if old not in dropped] + [(new, about)]
        if not distinct:
            return  # what was read first is gone by now: the second pass says so
        rivals = tuple(
            Rival(one.source, one.digest.hex(), known.essence.aep, self._made(one, known)) for one, known in distinct
        )
        kept = _preferred(rivals, prefer)
        self.chosen[key] = distinct[kept or 0][0]
        if len(rivals) > 1:
            why = difference(distinct[0][1].essence, distinct[1][1].essence)
            self.conflicts.append(Conflict(key, why, rivals, kept))

    def _made(self, candidate: Candidate, known: _Known) -> float:
        """When, in seconds since 1970: as the result says, else as its file does."""
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


_JUDGED = "not possible: "


def _or_lowest(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _seconds(created: object) -> float:
    try:
        moment = datetime.fromisoformat(str(created))
    except ValueError:
        return math.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
