"""Evaluations: the second kind of results, a layout in a scenario."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from leeward.deprecation import Renamed
from leeward.errors import InputError
from leeward.store.format.keys import EvaluationKey
from leeward.store.format.kind import AnyResult, Array, Value, check_value, digest_of
from leeward.store.format.layout_result import OWN, SUCCESS

CASES = ("all", "external", "internal", "none")

_IN_INDEX = ("target", "scenario", "seconds", "created")


@dataclass(frozen=True, eq=False)
class Evaluation(AnyResult):
    """The energy and power of a target layout in a scenario, case by case.

    cases: some of CASES, in this order. aep_gwh: shape (cases,). gross_aep_gwh: without wakes. Optional:
    window_power_mw: mean farm power, shape (cases, windows). farm_power_mw: farm power, shape (cases, steps).
    turbine_power_mw: shape (cases, steps, turbines). details: provenance, and the names of target, scenario and
    windows.
    """

    KIND: ClassVar[str] = "evaluations"
    EXAMPLE: ClassVar[str] = "target0_scenario3"
    NAMES: ClassVar[bytes] = rb"target\d{1,9}_scenario\d{1,9}"
    FIXED: ClassVar[tuple[str, ...]] = (
        *("key", "target_idx", "scenario_idx", "cases", "aep", "wake_loss"),
        *("status", "origin", "fingerprint", "digest"),
    )
    DATASETS: ClassVar[Mapping[str, int]] = {
        "aep_gwh": 1,
        "gross_aep_gwh": 0,
        "window_power_mw": 2,
        "farm_power_mw": 2,
        "turbine_power_mw": 3,
    }
    OPTIONAL: ClassVar[tuple[str, ...]] = ("window_power_mw", "farm_power_mw", "turbine_power_mw")
    UNITS: ClassVar[Mapping[str, str]] = {"aep_gwh": "GWh", "gross_aep_gwh": "GWh", **dict.fromkeys(OPTIONAL, "MW")}
    MARK: ClassVar[str] = "aep_gwh"
    MOST_NUMBERS: ClassVar[int] = 4_000_000

    key: EvaluationKey
    cases: tuple[str, ...]
    aep_gwh: Array
    gross_aep_gwh: float
    fingerprint: str
    status: str = SUCCESS
    origin: str = OWN
    details: Mapping[str, Value] = field(default_factory=dict)
    window_power_mw: Array | None = None
    farm_power_mw: Array | None = None
    turbine_power_mw: Array | None = None

    def __post_init__(self) -> None:
        if not self.cases or len(set(self.cases)) < len(self.cases) or not set(self.cases) <= set(CASES):
            raise InputError(f"{self.key}: the cases are {','.join(self.cases)!r:.60}; expected some of {CASES}")
        for name, array in self.datasets.items():
            if name != "gross_aep_gwh" and array.shape[:1] != (len(self.cases),):
                raise InputError(f"{self.key}: {name} has the shape {array.shape}; expected ({len(self.cases)}, ...)")
            if array.size > self.MOST_NUMBERS:
                raise InputError(f"{self.key}: {name} has {array.size} numbers; expected at most {self.MOST_NUMBERS}")
        for name, value in self.details.items():
            if name in self.FIXED or name == "seal":
                raise InputError(f"{self.key}: {name} is not a detail; it is derived from the result itself")
            check_value(f"{self.key}: {name}", value)

    aep = Renamed("case_aep_gwh")
    loss = Renamed("wake_loss")

    def case_aep_gwh(self, case: str) -> float:
        """Return the AEP in a case, GWh."""
        return float(self.aep_gwh[self.cases.index(case)])

    def wake_loss(self, case: str) -> float:
        """Return the share of the gross yield that is lost in a case."""
        return 1.0 - self.case_aep_gwh(case) / self.gross_aep_gwh if self.gross_aep_gwh else 0.0

    # --- as a kind: see AnyResult ---

    @classmethod
    def parse_key(cls, text: str) -> EvaluationKey:
        return EvaluationKey.parse(text)

    @classmethod
    def of(cls, attributes: Mapping[str, Any], datasets: Mapping[str, Array]) -> "Evaluation":
        return cls(
            key=EvaluationKey.parse(str(attributes["key"])),
            cases=tuple(str(attributes["cases"]).split(",")),
            aep_gwh=datasets["aep_gwh"],
            gross_aep_gwh=float(datasets["gross_aep_gwh"]),
            fingerprint=str(attributes["fingerprint"]),
            status=str(attributes["status"]),
            origin=str(attributes["origin"]),
            details={name: value for name, value in attributes.items() if name not in cls.FIXED},
            **{name: datasets.get(name) for name in cls.OPTIONAL},
        )

    @functools.cached_property
    def digest(self) -> str:
        arrays = [value for name, array in sorted(self.datasets.items()) for value in (name, array)]
        return digest_of(str(self.key), self.fingerprint, ",".join(self.cases), *arrays)

    @property
    def attributes(self) -> dict[str, Value]:
        return {
            "key": str(self.key),
            **self.key._asdict(),
            "cases": ",".join(self.cases),
            "aep": float(self.aep_gwh[0]),
            "wake_loss": self.wake_loss(self.cases[0]),
            "status": self.status,
            "origin": self.origin,
            "fingerprint": self.fingerprint,
            "digest": self.digest,
            **self.details,
        }

    @functools.cached_property
    def datasets(self) -> dict[str, Array]:
        found = {"aep_gwh": self.aep_gwh, "gross_aep_gwh": np.array(self.gross_aep_gwh)}
        found |= {name: array for name in self.OPTIONAL if (array := getattr(self, name)) is not None}
        return {
            name: np.ascontiguousarray(array, dtype="<f8").reshape(np.shape(array)) for name, array in found.items()
        }

    def doubt(self) -> str | None:
        if self.status != SUCCESS:
            return f"the status is {self.status!r:.60}; expected {SUCCESS}"
        for name, array in self.datasets.items():
            if not np.isfinite(array).all() or (array < 0).any():
                return f"{name} has values that are not finite or below 0"
        return None

    @classmethod
    def line_of(cls, attributes: Mapping[str, Any], scalars: Mapping[str, float]) -> dict[str, Any]:
        numbers = {"aep": attributes["aep"], "gross_aep_gwh": scalars["gross_aep_gwh"]}
        numbers["wake_loss"] = attributes["wake_loss"]
        return {
            "key": attributes["key"],
            **{name: value if math.isfinite(value) else None for name, value in numbers.items()},
            **{name: attributes[name] for name in ("cases", "status", "origin", "fingerprint")},
            **{name: attributes[name] for name in _IN_INDEX if name in attributes},
        }

    def difference(self, other: "Evaluation") -> str:
        if self.fingerprint != other.fingerprint:
            return "different settings"
        return f"AEP {self.aep_gwh[0]:.9g} and {other.aep_gwh[0]:.9g} GWh"
