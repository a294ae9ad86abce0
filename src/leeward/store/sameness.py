"""Whether one result stands for another of the same key: by digest, or, where the origin is foreign, by its numbers."""

import hashlib
from dataclasses import dataclass

from leeward.store.schema import FOREIGN, NO_AEP, OWN, Result


@dataclass(frozen=True, slots=True)
class Essence:
    """What two results of one key are compared by. layout: SHA-256 of the coordinates; aep: GWh."""

    digest: str
    layout: bytes
    aep: float
    status: str
    origin: str
    fingerprint: str

    @classmethod
    def of(cls, result: Result) -> "Essence":
        layout = hashlib.sha256(result.layout.tobytes()).digest()
        return cls(result.digest, layout, result.aep, result.status, result.origin, result.fingerprint)


def covers(new: Essence, old: Essence) -> bool:
    """Whether nothing is lost with `old` where `new`, of the same key, is.

    Another script's result has no fingerprint: it is its layout and its aep, and where the aep is missing its layout
    alone. It never stands for one of leeward's own, which knows what made it.
    """
    if new.digest == old.digest:
        return True
    if old.origin == OWN or FOREIGN not in (new.origin, old.origin):
        return False
    return new.layout == old.layout and (old.status == NO_AEP or new.aep == old.aep)


def difference(one: Essence, other: Essence) -> str:
    """Why two results of one key are not the same, in a few words."""
    if one.origin == other.origin == OWN and one.fingerprint != other.fingerprint:
        return "different settings (their fingerprints differ)"
    if one.layout != other.layout:
        return "different layouts"
    if one.aep != other.aep:
        return "the same layout with different AEP"
    return "the same layout and AEP, made in different ways"
