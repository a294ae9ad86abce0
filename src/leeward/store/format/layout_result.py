"""Layouts: the first kind of results."""

import functools
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from leeward.deprecation import Renamed
from leeward.errors import InputError
from leeward.store.format.keys import Key
from leeward.store.format.kind import AnyResult, Array, Value, check_value, digest_of

MOST_TURBINES = 100_000

SUCCESS = "success"
NO_AEP = "no-aep"  # a layout of other origin whose AEP is unknown
OWN = "leeward"
FOREIGN = "foreign"

_IN_INDEX = ("wake_loss", "min_spacing_m", "seconds", "created", "aep_source")
_ABOUT_READING = ("source", "ignored", "evidence", "recovered_by")  # how a foreign result was read, not its content
_NOTHING = {"aep_note": "no aep in the source"}  # states that the AEP is missing: a copy need not repeat it
_LEEWARD = re.compile(r"leeward [\w.+-]{1,40}")


@dataclass(frozen=True, eq=False)
class Result(AnyResult):
    """A finished layout and its provenance.

    layout: easting and northing, m, shape (2, turbines). aep_gwh: NaN with the status "no-aep". details: provenance,
    as text, numbers and short arrays by name. history: optional, shape (2, n): steps and AEP (GWh), of the current
    layout until the first refinement ends, then of the best one so far.
    """

    KIND: ClassVar[str] = "layouts"
    EXAMPLE: ClassVar[str] = "farm0_t5_s3"
    NAMES: ClassVar[bytes] = rb"farm\d{1,9}_t\d{1,9}_s\d{1,18}"
    FIXED: ClassVar[tuple[str, ...]] = (
        *("key", "farm_idx", "type_idx", "ss_seed", "n_turbines", "diameter"),
        *("status", "origin", "fingerprint", "stop_reason", "steps", "digest"),
    )
    DATASETS: ClassVar[Mapping[str, int]] = {"layout": 2, "aep": 0, "history": 2}
    OPTIONAL: ClassVar[tuple[str, ...]] = ("history",)
    UNITS: ClassVar[Mapping[str, str]] = {"layout": "m", "aep": "GWh", "history": "steps, GWh"}
    MARK: ClassVar[str] = "layout"
    MOST_NUMBERS: ClassVar[int] = 2 * MOST_TURBINES

    key: Key
    layout: Array
    aep_gwh: float
    rotor_diameter_m: float
    fingerprint: str
    stop_reason: str
    steps: int
    status: str = SUCCESS
    origin: str = OWN
    details: Mapping[str, Value] = field(default_factory=dict)
    history: Array | None = None

    aep = Renamed("aep_gwh")
    diameter = Renamed("rotor_diameter_m")

    def __post_init__(self) -> None:
        layout = np.ascontiguousarray(self.layout, dtype="<f8")
        if layout.ndim != 2 or layout.shape[0] != 2 or not 1 <= layout.shape[1] <= MOST_TURBINES:
            raise InputError(f"{self.key}: layout has the shape {layout.shape}; expected (2, turbines)")
        object.__setattr__(self, "layout", layout)
        for name, value in self.details.items():
            if name in self.FIXED or name == "seal":
                raise InputError(f"{self.key}: {name} is not a detail; it is derived from the result itself")
            check_value(f"{self.key}: {name}", value)

    @property
    def n_turbines(self) -> int:
        return int(self.layout.shape[1])

    @property
    def x(self) -> Array:
        """Easting, m."""
        easting: Array = self.layout[0]
        return easting

    @property
    def y(self) -> Array:
        """Northing, m."""
        northing: Array = self.layout[1]
        return northing

    # --- as a kind: see AnyResult ---

    @classmethod
    def parse_key(cls, text: str) -> Key:
        return Key.parse(text)

    @classmethod
    def of(cls, attributes: Mapping[str, Any], datasets: Mapping[str, Array]) -> "Result":
        return cls(
            key=Key.parse(str(attributes["key"])),
            layout=datasets["layout"],
            aep_gwh=float(datasets["aep"]),
            rotor_diameter_m=float(attributes["diameter"]),
            fingerprint=str(attributes["fingerprint"]),
            stop_reason=str(attributes["stop_reason"]),
            steps=int(attributes["steps"]),
            status=str(attributes["status"]),
            origin=str(attributes["origin"]),
            details={name: value for name, value in attributes.items() if name not in cls.FIXED},
            history=datasets.get("history"),
        )

    @functools.cached_property
    def digest(self) -> str:
        values = str(self.key), self.fingerprint, self.n_turbines, float(self.rotor_diameter_m), self.layout
        return digest_of(*values, float(self.aep_gwh), self.stop_reason, self.steps)

    @property
    def attributes(self) -> dict[str, Value]:
        return {
            "key": str(self.key),
            "farm_idx": self.key.farm_idx,
            "type_idx": self.key.type_idx,
            "ss_seed": self.key.seed,
            "n_turbines": self.n_turbines,
            "diameter": float(self.rotor_diameter_m),
            "status": self.status,
            "origin": self.origin,
            "fingerprint": self.fingerprint,
            "stop_reason": self.stop_reason,
            "steps": self.steps,
            "digest": self.digest,
            **self.details,
        }

    @property
    def datasets(self) -> dict[str, Array]:
        datasets = {"layout": self.layout, "aep": np.array(self.aep_gwh, dtype="<f8")}
        if self.history is not None:
            datasets["history"] = np.ascontiguousarray(self.history, dtype="<f8")
        return datasets

    def doubt(self) -> str | None:
        if self.status not in (SUCCESS, NO_AEP):
            return f"the status is {self.status!r:.60}; expected {SUCCESS} or {NO_AEP}"
        if not np.isfinite(self.layout).all():
            return "the layout has coordinates that are not finite numbers"
        if self.status == NO_AEP:
            return None if math.isnan(self.aep_gwh) else f"aep is {self.aep_gwh:g}, but the status is {NO_AEP}"
        is_plausible = math.isfinite(self.aep_gwh) and self.aep_gwh > 0
        return None if is_plausible else f"aep is {self.aep_gwh:g} GWh; expected a positive number"

    @classmethod
    def line_of(cls, attributes: Mapping[str, Any], scalars: Mapping[str, float]) -> dict[str, Any]:
        aep, diameter = scalars["aep"], attributes["diameter"]
        line = {
            "key": attributes["key"],
            "aep": aep if aep == aep else None,  # JSON has no NaN
            "n_turbines": attributes["n_turbines"],
            "diameter": diameter if diameter == diameter else None,
            **{name: attributes[name] for name in ("status", "origin", "fingerprint")},
        }
        for name in _IN_INDEX:
            value = attributes.get(name)
            if isinstance(value, str | bool | int | float) and value == value:
                is_infinite = isinstance(value, float) and math.isinf(value)  # a single turbine has an infinite spacing
                line[name] = None if is_infinite else value
        return line

    def covers(self, other: "Result", *, to_the_letter: bool = False) -> bool:
        """Return whether this result makes `other` redundant.

        A result of another script has no fingerprint: its layout and AEP are compared, or its layout alone if the AEP
        is missing. An adopted result has the AEP of the wake engine, and keeps that of its file as a detail. A foreign
        result lacks provenance, so it never covers a result of leeward. The digest does not cover details: two foreign
        results with the same digest may differ in them.
        """
        if self.digest != other.digest:
            if other.origin == OWN or FOREIGN not in (self.origin, other.origin):
                return False
            is_same_aep = other.status == NO_AEP or other.aep_gwh in (self.aep_gwh, self.details.get("aep_claimed"))
            if self.layout.tobytes() != other.layout.tobytes() or not is_same_aep:
                return False
        if not to_the_letter or other.origin != FOREIGN:
            return True
        is_same_diameter = math.isnan(other.rotor_diameter_m) or other.rotor_diameter_m == self.rotor_diameter_m
        return is_same_diameter and all(
            name in _ABOUT_READING
            or _NOTHING.get(name) == value
            or (name in self.details and _plain(self.details[name]) == _plain(value))
            for name, value in other.details.items()
        )

    @property
    def merit(self) -> float:
        return self.aep_gwh

    @classmethod
    def details_digest(cls, attributes: Mapping[str, Value]) -> bytes:
        if attributes["origin"] != FOREIGN:
            return b""
        others = [name for name in attributes if name not in cls.FIXED and name not in _ABOUT_READING]
        pairs = sorted((name, _plain(attributes[name])) for name in others)
        return hashlib.blake2b(repr(pairs).encode(), digest_size=12).digest()

    def difference(self, other: "Result") -> str:
        if self.origin == other.origin == OWN and self.fingerprint != other.fingerprint:
            makers = [Maker.of(result.details) for result in (self, other)]
            if makers[0].method_version == makers[1].method_version:
                return "different settings (their fingerprints differ)"
            return f"made by {makers[0]} and by {makers[1]} (their fingerprints differ)"
        if self.layout.tobytes() != other.layout.tobytes():
            return "different layouts"
        if self.aep_gwh != other.aep_gwh:
            return "the same layout with different AEP"
        return "the same layout and AEP, made in different ways"


def _plain(value: Value) -> str:
    """Return a text that differs for different values, and is the same for all NaN."""
    return repr(value.tolist() if isinstance(value, np.ndarray) else value)


class Maker(NamedTuple):
    """The version of leeward, and of its method, that made a result.

    leeward: name and version of the program, "" if unknown. method_version: None if unknown.
    """

    leeward: str
    method_version: int | None

    @classmethod
    def of(cls, details: Mapping[str, Value]) -> "Maker":
        """Return the maker that the details of a result name."""
        program = _LEEWARD.match(str(details.get("versions", "")))
        version = details.get("method_version")
        is_number = isinstance(version, int) and not isinstance(version, bool)
        return cls(program.group() if program else "", int(version) if is_number else None)  # type: ignore[arg-type]

    def __str__(self) -> str:
        known = [self.leeward] if self.leeward else []
        known += [] if self.method_version is None else [f"method version {self.method_version}"]
        return ", ".join(known) or "an unknown version of leeward"
