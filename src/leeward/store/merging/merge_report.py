"""What a merge found and did, as plain data: for its log, its summary and its exit code."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from leeward.errors import BadSourceError
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict


@dataclass(frozen=True)
class Facts:
    """What a campaign knows of its file. text: the frozen campaign. expected: the keys of all its tasks."""

    text: str
    name: str
    crs: str
    grid_size: int
    random_pct: float
    expected: Collection[Key] = ()


@dataclass(frozen=True, slots=True)
class BadResult:
    """A group that is not taken."""

    name: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What could be had of a file that is damaged, or could be. verified, plausible: results with and without a digest.

    lost: results that were there once. tried: ways, and how many results each has found. notes: on ways that came to no
    end.
    """

    place: str
    size: int
    verdict: Verdict
    reason: str
    sha256: bytes
    verified: int
    plausible: int
    lost: tuple[BadResult, ...]
    tried: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class SourceReport:
    """One source file.

    number: its place in the list. valid: how many valid results. plausible: how many of these have no digest of their
    own. refused: how many of the bad ones only the campaign speaks against. taken: how many are in the output from this
    file. kinds: which of the report's `kinds` these are of. more: what it holds that would not be in the output, "" if
    nothing. copy: where its results are read from, "" if that is the file itself.
    """

    number: int
    place: str
    size: int
    verdict: Verdict
    reason: str
    sha256: bytes
    sealed: bool
    valid: int
    bad: tuple[BadResult, ...] = ()
    taken: int = 0
    kinds: tuple[int, ...] = ()
    more: str = ""
    copy: str = ""
    refused: int = 0
    plausible: int = 0

    @property
    def path(self) -> Path:
        return Path(self.place)  # not kept: paths are large

    @property
    def read_from(self) -> Path:
        return Path(self.copy or self.place)

    @property
    def is_good(self) -> bool:
        return self.verdict is Verdict.VALID and not self.bad


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The same result twice: `dropped` and `kept` are numbers of sources."""

    key: Key
    kept: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Rival:
    """One of several different results of a key. made: seconds since 1970; aep: GWh."""

    source: int
    digest: str
    aep: float
    made: float


@dataclass(frozen=True)
class Conflict:
    """Different results of one key. kept: which of the rivals was preferred, None if nobody said which."""

    key: Key
    why: str
    rivals: tuple[Rival, ...]
    kept: int | None


@dataclass(frozen=True, slots=True)
class Removal:
    """What became of a source that was to be removed, or would. reason: why it stays, "" if it is gone."""

    path: Path
    reason: str = ""


@dataclass
class MergeReport:
    """All of a merge.

    kinds: the names of datasets and attributes that were taken, each combination once. not_recomputed: why the AEP of a
    layout without one could not be had, by key. missing: expected, and not there; None if nobody knows what was
    expected. salvaged: what was had of damaged files, in the order of the files. notes: what else is worth knowing.
    removals: of sources. problem: why nothing was written, "" if something was, or would be.
    """

    output: Path
    began: str
    on_bad: str
    prefer: str | None
    files: list[SourceReport] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    kinds: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    recomputed: list[Key] = field(default_factory=list)
    not_recomputed: dict[Key, str] = field(default_factory=dict)
    no_aep: int = 0
    results: int = 0
    size: int = -1
    missing: list[Key] | None = None
    salvaged: list[Salvaged] = field(default_factory=list)
    moved: Path | None = None
    notes: list[str] = field(default_factory=list)
    problem: str = ""
    logs: tuple[Path, ...] = ()
    removals: list[Removal] = field(default_factory=list)

    @property
    def bad_files(self) -> list[SourceReport]:
        """Files that are bad, or hold a result that is."""
        return [file for file in self.files if not file.is_good]

    @property
    def unsettled(self) -> list[Conflict]:
        return [conflict for conflict in self.conflicts if conflict.kept is None]

    @property
    def is_all_well(self) -> bool:
        """Written, with nothing bad, missing, in conflict or without its AEP."""
        return not (self.problem or self.bad_files or self.unsettled or self.missing or self.no_aep)


class MergeRefusedError(BadSourceError):
    """The sources do not allow a merge; the report says why."""

    def __init__(self, report: MergeReport) -> None:
        self.report = report
        super().__init__(f"{report.problem}\nThe log is {report.logs[1]}")
