"""What reading a file that nobody trusts gives: plain data, per result and per file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from leeward.store.format.keys import Key
from leeward.store.format.schema import Result, Value
from leeward.store.format.verdicts import Verdict

PLAUSIBLE = "plausible"  # evidence: complete and consistent, and no digest that could prove it


@dataclass(frozen=True, eq=False)
class FoundResult:
    """One group of a file.

    name: as the group is named. key: None where the name is no key, or contradicts the attributes. reason: why it is
    not valid; "" if it is. sealed: whether it carried a seal, so that "valid" is proved and not only plausible. digest:
    of a valid one. status, origin, fingerprint, n_turbines, diameter, aep (GWh): as read, as far as they could be.
    details: the other attributes. result: the result itself, where it was asked for and is valid. A foreign one without
    a possible aep is valid with the status "no-aep".
    """

    path: Path
    name: str
    key: Key | None
    verdict: Verdict
    reason: str = ""
    sealed: bool = True
    digest: str = ""
    status: str = ""
    origin: str = ""
    fingerprint: str = ""
    n_turbines: int = 0
    diameter: float = float("nan")
    aep: float = float("nan")
    details: Mapping[str, Value] = field(default_factory=dict)
    result: Result | None = None

    @property
    def is_valid(self) -> bool:
        return self.verdict is Verdict.VALID

    @property
    def is_verified(self) -> bool:
        """Valid, with a digest since it was made: a result that was taken in without one stays only plausible."""
        return self.is_valid and self.sealed and self.details.get("evidence") != PLAUSIBLE


@dataclass(frozen=True, eq=False)
class FoundFile:
    """One file, after all of its results.

    verdict: of the file as a whole: valid if it could be read to its end, whatever its results are. size: bytes, -1
    where there is no file. sha256: of its bytes, "" where they could not be read. sealed: made by leeward (it has a
    format_version), or the file of another script. valid, bad: how many results. attributes: those of the file itself,
    of a sealed one (campaign text included). is_passing: it could not be opened for a reason that says nothing about
    what is in it, and may be gone later.
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
