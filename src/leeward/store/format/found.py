"""The findings on an untrusted file, as plain data: one object per result, and one for the file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leeward.store.format.keys import Key
from leeward.store.format.kind import AnyResult, Value
from leeward.store.format.kinds import KINDS
from leeward.store.format.layout_result import Result
from leeward.store.format.verdicts import Verdict

PLAUSIBLE = "plausible"  # evidence: the result is complete and consistent, but has no digest that proves it


@dataclass(frozen=True, eq=False)
class FoundResult:
    """The findings on one group of a file.

    name: of the group. key: None if the name is not a key or contradicts the attributes. reason: why it is invalid, or
    "". sealed: it has a seal, so that "valid" means verified, not only plausible. kind: of the result. attributes: all
    that could be read, without the seal. scalars: its datasets of a single number. result: the result itself, if
    requested and valid. A foreign result without a plausible AEP is valid with the status "no-aep".

    key and result are typed as those of layouts, the first kind.
    """

    path: Path
    name: str
    key: Key | None
    verdict: Verdict
    reason: str = ""
    sealed: bool = True
    kind: str = Result.KIND
    attributes: Mapping[str, Value] = field(default_factory=dict)
    scalars: Mapping[str, float] = field(default_factory=dict)
    result: Result | None = None

    @property
    def is_valid(self) -> bool:
        return self.verdict is Verdict.VALID

    @property
    def is_verified(self) -> bool:
        """True if a seal proves the result valid. A result adopted from a file without seals is only plausible."""
        return self.is_valid and self.sealed and self.attributes.get("evidence") != PLAUSIBLE

    @property
    def type(self) -> type[AnyResult]:
        """The class of the result."""
        return KINDS[self.kind]

    @property
    def digest(self) -> str:
        return str(self.attributes.get("digest", ""))

    @property
    def status(self) -> str:
        return str(self.attributes.get("status", ""))

    @property
    def origin(self) -> str:
        return str(self.attributes.get("origin", ""))

    @property
    def fingerprint(self) -> str:
        return str(self.attributes.get("fingerprint", ""))

    @property
    def aep_gwh(self) -> float:
        """The AEP of a layout; NaN if unknown."""
        return self.scalars.get("aep", float("nan"))

    @property
    def details(self) -> dict[str, Value]:
        """The attributes besides those that every result has."""
        return {name: value for name, value in self.attributes.items() if name not in self.type.FIXED}

    def index_line(self) -> dict[str, Any]:
        """Return the values that lists and pages show."""
        return self.type.line_of(self.attributes, self.scalars)


@dataclass(eq=False)
class FoundFile:
    """The findings on one file. They come after those on its results.

    verdict: valid if the file was read to its end, even if some of its results are not. size: bytes, -1 if there is no
    file. sha256: of its bytes, "" if they could not be read. sealed: made by leeward (it has a format_version) and
    not by another script. valid, bad: number of results. attributes: of the file itself, if sealed (with the campaign
    text). is_passing: it could not be opened for a temporary reason, so that nothing is known about its content.
    """

    path: Path
    size: int
    verdict: Verdict
    reason: str = ""
    sha256: str = ""
    sealed: bool = False
    valid: int = 0
    bad: int = 0
    attributes: Mapping[str, Value] = field(default_factory=dict)
    is_passing: bool = False

    @property
    def is_valid(self) -> bool:
        return self.verdict is Verdict.VALID and self.bad == 0
