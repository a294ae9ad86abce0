"""Check files and results, and give each a verdict. Write nothing."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from leeward.store.directory.shards import was_packed
from leeward.store.directory.sources import gather
from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import NO_AEP, Result
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import Found, Limits, read_files
from leeward.store.merging.contents import read_groups
from leeward.store.merging.selection import Candidate, Compare, Judge, both
from leeward.store.paths import RunPaths

MOST_UNFIT = 1000  # files named in the report because they do not match the campaign


@dataclass(eq=False)
class CheckReport:
    """The findings of a check. They take little memory even for many results.

    file_verdicts, result_verdicts: counts. no_aep: valid layouts of unknown AEP. plausible: valid results without a
    digest: complete and consistent, but not verified. unfit: the first thousand files whose results are intact but do
    not match the campaign. expected: number of expected results, 0 if unknown. missing: expected keys that were not
    found. extra: keys that are not in the campaign. Both are empty if the expected keys are unknown. conflicts: keys
    with different results.
    """

    file_verdicts: Counter[Verdict] = field(default_factory=Counter)
    result_verdicts: Counter[Verdict] = field(default_factory=Counter)
    size: int = 0
    no_aep: int = 0
    plausible: int = 0
    unfit: list[Path] = field(default_factory=list)
    expected: int = 0
    missing: list[Key] = field(default_factory=list)
    extra: list[Key] = field(default_factory=list)
    conflicts: dict[Key, list[Path]] = field(default_factory=dict)
    _first: dict[Key, Candidate] = field(default_factory=dict)
    _copies: dict[Key, list[Candidate]] = field(default_factory=dict)
    _paths: list[str] = field(default_factory=list)

    @property
    def files(self) -> int:
        return self.file_verdicts.total()

    @property
    def results(self) -> int:
        return self.result_verdicts.total()

    @property
    def keys(self) -> Collection[Key]:
        """The keys of all valid results."""
        return self._first.keys()

    @property
    def duplicates(self) -> dict[Key, list[Path]]:
        """The files of each key that was found more than once, conflicts included."""
        return {key: self._paths_of(key) for key in sorted(self._copies)}

    @property
    def is_well(self) -> bool:
        """True if files were found, all are valid, no results conflict, and no expected result is missing."""
        bad = self.files - self.file_verdicts[Verdict.VALID] + self.results - self.result_verdicts[Verdict.VALID]
        return self.files > 0 and not (bad or self.conflicts or self.missing)

    def _paths_of(self, key: Key) -> list[Path]:
        numbers = dict.fromkeys(one.source for one in (self._first[key], *self._copies[key]))
        return [Path(self._paths[number]) for number in numbers]


def check(
    paths: Iterable[Path],
    *,
    judge: Judge | None = None,
    compare: Compare | None = None,
    campaign: Container[Key] | None = None,
    expected: Collection[Key] | None = None,
    limits: Limits = Limits(),  # noqa: B008 (it is frozen)
    on_found: Callable[[Found], None] | None = None,
    processes: int = 1,
) -> CheckReport:
    """Check files, folders, run directories and the worker files of other scripts.

    judge: returns what is physically wrong with a result, or None. compare: returns why a result does not match the
    campaign of its file, or None. campaign: the keys that have a task; other results are reported as extra and not
    judged. expected: the keys that must be there. on_found: called with each file and each result.
    """
    if campaign is None:
        campaign = None if expected is None else set(expected)
    report = CheckReport()
    doubt = both(compare, _judge_within(judge, campaign))
    sources = gather(paths)
    plain = [source.path for source in sources if source.run is None]  # read together, by the same child processes
    runs = [(source.files, source.run) for source in sources if source.run is not None]
    for files, run in [(iter(plain), None), *runs]:
        found_there = read_files(files, contents=doubt is not None, limits=limits, processes=processes)
        for found in _judged(found_there, run, doubt, report.unfit):
            _add(report, found)
            if on_found is not None:
                on_found(found)
    _compare(report, limits)
    if expected is not None:
        report.expected = len(expected)
        report.missing = sorted(set(expected).difference(report.keys))
    if campaign is not None:
        report.extra = sorted(key for key in report.keys if key not in campaign)
    return report


def _judge_within(judge: Judge | None, campaign: Container[Key] | None) -> Judge | None:
    if judge is None or campaign is None:
        return judge
    return lambda result: judge(result) if result.key in campaign else None


def _judged(
    all_found: Iterable[Found], run: RunPaths | None, doubt: Compare | None, unfit: list[Path]
) -> Iterator[Found]:
    """Also check the place of each file and its results. unfit: the files with results that fail `doubt` are added."""
    rejected = 0
    for found in all_found:
        if isinstance(found, FoundFile):
            if run is None or not was_packed(found):  # its pack is read later
                yield _judged_file(found, run, rejected)
            rejected = 0
            continue
        reason = None
        verdict = Verdict.IMPLAUSIBLE
        home = None if run is None or found.key is None else _misplaced(found.path, run, found.key)
        if found.is_valid and home is not None:
            verdict, reason = Verdict.WRONG_STRUCTURE, f"it is in the wrong place; expected {home}"
        elif found.is_valid and doubt is not None and found.result is not None:
            reason = doubt(found.path, found.result)
            if reason is not None and found.path not in unfit[-1:] and len(unfit) < MOST_UNFIT:
                unfit.append(found.path)
        rejected += reason is not None
        yield found if reason is None else replace(found, verdict=verdict, reason=reason, result=None)


def _misplaced(path: Path, run: RunPaths, key: Key) -> Path | None:
    """Return the right path of a misplaced shard, else None. A pack may hold any key."""
    home = run.shard(key)
    return None if path in (home, run.packs / path.name) else home


def _judged_file(found: FoundFile, run: RunPaths | None, rejected: int) -> FoundFile:
    found = replace(found, valid=found.valid - rejected, bad=found.bad + rejected)
    if run is None or found.verdict is not Verdict.VALID:
        return found
    count = found.valid + found.bad
    is_pack = found.path.parent == run.packs
    if found.sealed and (is_pack or count == 1):
        return found
    foreign = f"it was not written by leeward; expected a {'pack' if is_pack else 'shard'}"
    reason = f"it holds {count} results; expected one" if found.sealed else foreign
    return replace(found, verdict=Verdict.WRONG_STRUCTURE, reason=reason)


def _add(report: CheckReport, found: Found) -> None:
    if isinstance(found, FoundFile):
        report.file_verdicts[found.verdict] += 1
        report.size += max(found.size, 0)
        report._paths.append(str(found.path))
    else:
        report.result_verdicts[found.verdict] += 1
        if found.is_valid and found.key is not None:
            _add_valid(report, found, found.key)


def _add_valid(report: CheckReport, found: FoundResult, key: Key) -> None:
    report.no_aep += found.status == NO_AEP
    report.plausible += not found.is_verified
    new = Candidate.of(found, key, len(report._paths))
    if report._first.setdefault(key, new) is not new:
        report._copies.setdefault(key, []).append(new)


# --- several results of one key -------------------------------------------------------------------------------------


def _compare(report: CheckReport, limits: Limits) -> None:
    """Find the conflicts: keys of which no result makes all the others redundant."""
    different = {
        key: [report._first[key], *copies]
        for key, copies in report._copies.items()
        if any(copy.digest != report._first[key].digest for copy in copies)
    }
    names: dict[Path, list[str]] = defaultdict(list)
    for candidates in different.values():
        for one in candidates:
            names[Path(report._paths[one.source])].append(one.group)
    results: dict[Key | None, list[Result]] = defaultdict(list)
    for found, result in read_groups(names, limits):
        results[found.key].append(result)
    for key in sorted(different):
        there = results[key]
        if not any(all(one.covers(other) for other in there) for one in there):
            report.conflicts[key] = report._paths_of(key)
