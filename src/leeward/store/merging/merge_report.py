"""The findings and actions of a merge as plain data, for its log, summary and exit code."""

from dataclasses import dataclass, field
from pathlib import Path

from leeward.errors import BadSourceError
from leeward.store.format.keys import Key
from leeward.store.format.verdicts import Verdict
from leeward.store.merging.contents import Identity
from leeward.store.rescue.recovery import BadResult, Recovery


@dataclass(slots=True)
class SourceReport:
    """One source file.

    valid: number of valid results. plausible: how many of these have no digest of their
    own. refused: how many bad results are intact but do not match the campaign. taken: results that went to the output.
    kinds: indices into the report's `kinds`. more: content that is not in the output, or "". copy: the file that its
    results are read from, "" if that is the source itself.
    """

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
        return Path(self.place)  # not stored: a Path takes more memory than its text

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
    """Different results of one key. kept: the index of the preferred rival, None without a preference."""

    key: Key
    why: str
    rivals: tuple[Rival, ...]
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

    kinds: the distinct combinations of dataset and attribute names that were taken, with a number each.
    not_recomputed: by key, why a missing AEP could not be computed. missing: expected keys that were not found, None if
    the expected keys are unknown. salvaged: recoveries from damaged files, in file order. removals: of sources.
    problem: why nothing was written, or "".
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
    def unsettled(self) -> list[Conflict]:
        return [conflict for conflict in self.conflicts if conflict.kept is None]

    @property
    def is_all_well(self) -> bool:
        """True if nothing is bad, missing, in conflict or without its AEP."""
        return not (self.problem or self.bad_files or self.unsettled or self.missing or self.no_aep)


class MergeRefusedError(BadSourceError):
    """The sources do not allow a merge; the report says why."""

    def __init__(self, report: MergeReport) -> None:
        self.report = report
        super().__init__(f"{report.problem}\nThe log is {report.logs[1]}")
