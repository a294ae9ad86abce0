"""Whether one result stands for another of the same key: by digest, or, where the origin is foreign, by its numbers."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from leeward.store.format.maker import Maker
from leeward.store.format.schema import FOREIGN, NO_AEP, OWN, Result, Value

_ABOUT_READING = ("source", "ignored", "evidence", "recovered_by")  # how a foreign result was read, not what it is
_NOTHING = {"aep_note": "no aep in the source"}  # a note of an absence, with which nothing is lost


@dataclass(frozen=True, slots=True)
class Essence:
    """What two results of one key are compared by. layout: SHA-256 of the coordinates; aep: GWh; diameter: m."""

    digest: str
    layout: bytes
    aep: float
    status: str
    origin: str
    fingerprint: str
    diameter: float
    details: Mapping[str, Value]

    @classmethod
    def of(cls, result: Result) -> "Essence":
        layout = hashlib.sha256(result.layout.tobytes()).digest()
        return cls(
            digest=result.digest,
            layout=layout,
            aep=result.aep,
            status=result.status,
            origin=result.origin,
            fingerprint=result.fingerprint,
            diameter=result.diameter,
            details=result.details,
        )


def covers(new: Essence, old: Essence) -> bool:
    """Whether nothing is lost with `old` where `new`, of the same key, is.

    Another script's result has no fingerprint: it is its layout and its aep, and where the aep is missing its layout
    alone. An adopted one has the aep of the wake engine, and remembers that of its file. A foreign result never stands
    for one of leeward's own, which knows what made it.
    """
    if new.digest == old.digest:
        return True
    if old.origin == OWN or FOREIGN not in (new.origin, old.origin):
        return False
    return new.layout == old.layout and (old.status == NO_AEP or old.aep in (new.aep, new.details.get("aep_claimed")))


def covers_all(new: Essence, old: Essence) -> bool:
    """The same, and nothing is lost of what else `old` says: before what holds it is removed.

    The digest knows no details: two foreign results of one digest may still say different things.
    """
    if not covers(new, old) or old.origin != FOREIGN:
        return covers(new, old)
    is_diameter_there = math.isnan(old.diameter) or old.diameter == new.diameter
    return is_diameter_there and all(
        name in _ABOUT_READING or _NOTHING.get(name) == value or _is_same(new.details.get(name), value)
        for name, value in old.details.items()
    )


def _is_same(one: Value | None, other: Value) -> bool:
    return one is not None and _plain(one) == _plain(other)


def _plain(value: Value) -> str:
    """Tells values of all kinds apart, and takes one NaN for another."""
    return repr(value.tolist() if isinstance(value, np.ndarray) else value)


def said(details: Mapping[str, Value]) -> bytes:
    """A short digest of what else a foreign result says, which is in no other digest."""
    told = sorted((name, _plain(value)) for name, value in details.items() if name not in _ABOUT_READING)
    return hashlib.blake2b(repr(told).encode(), digest_size=12).digest()


def difference(one: Essence, other: Essence) -> str:
    """Why two results of one key are not the same, in a few words."""
    if one.origin == other.origin == OWN and one.fingerprint != other.fingerprint:
        makers = [Maker.of(essence.details) for essence in (one, other)]
        if makers[0].method_version == makers[1].method_version:
            return "different settings (their fingerprints differ)"
        return f"made by {makers[0]} and by {makers[1]} (their fingerprints differ)"
    if one.layout != other.layout:
        return "different layouts"
    if one.aep != other.aep:
        return "the same layout with different AEP"
    return "the same layout and AEP, made in different ways"
