"""Adopt results from elsewhere: store them in a run directory and count their tasks as done."""

import math
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from leeward.campaign.campaign import Campaign
from leeward.campaign.judge import AEP_TOLERANCE, layout_mismatch
from leeward.errors import InputError
from leeward.layout.problem import TOLERANCE_M
from leeward.store import (
    FOREIGN,
    NO_AEP,
    OWN,
    SUCCESS,
    Brief,
    FoundFile,
    FoundResult,
    Key,
    Result,
    Value,
    Verdict,
    gather,
    read_files,
)

SAME_AEP = 1e-6  # relative difference of two AEPs; larger ones are listed
REPLACED = ("aep_here", "aep_source")  # details of an earlier adoption, which a new adoption replaces

Place = tuple[int, int]  # position of the file among the sources, position of the result in the file


class Choice(NamedTuple):
    """The best layout of a key so far, with the numbers that the wake engine computed for it.

    wake_loss: a fraction. min_spacing_m: distance between the two closest turbines.
    """

    place: Place
    digest: str
    aep_gwh: float
    wake_loss: float
    min_spacing_m: float


@dataclass
class Adoption:
    """The outcome of an adoption.

    results: the adopted results, by key. recomputed: how many of them had no valid AEP. disagreeing: layouts whose
    stored AEP differs from that of the wake engine, adopted or not. violating: violation (m) of each adopted
    layout that breaks constraints. present: number of results that the run already had. not_the_best: number of
    layouts that were skipped because their key has a better one. refused, bad_files: each with the reason.
    """

    results: dict[Key, Brief] = field(default_factory=dict)
    recomputed: int = 0
    disagreeing: list[dict[str, Any]] = field(default_factory=list)
    present: int = 0
    not_the_best: int = 0
    violating: dict[str, float] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    bad_files: list[str] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """Return the facts for the event and the audit log."""
        facts = {name: value for name, value in vars(self).items() if name not in ("lines", "results")}
        return {"adopted": len(self.results), **facts}

    def refuse(self, found: FoundResult, reason: str) -> None:
        self.refused.append(f"{found.path}: {found.name}: {reason}")


class Adopter:
    """Stores the valid results of files from elsewhere. It does not change these files.

    keep_infeasible: accept layouts with turbines closer than a rotor diameter.

    If a key has several layouts, it takes the one with the highest AEP. It computes each AEP with the wake engine and
    ignores the stored one, which may be wrong in a damaged file.
    """

    def __init__(self, campaign: Campaign, keep_infeasible: bool) -> None:
        self._campaign = campaign
        self._keep_infeasible = keep_infeasible
        self._adoption = Adoption()
        self._best: dict[Key, Choice] = {}

    def adopt(
        self, sources: Iterable[Path], done: Container[Key], store: Callable[[Result], None], notice: Callable[[], None]
    ) -> Adoption:
        """Store the best result of each key that is not done. notice: called for each result."""
        adoption = self._adoption
        files = [path for source in gather(sources) for path in source.files]
        for stage in ("choose", "store"):
            place: Place = (0, 0)  # a file that vanishes between the stages still counts, so places stay the same
            for found in read_files(files, contents=True):
                notice()
                if isinstance(found, FoundFile):
                    if stage == "choose" and found.verdict is not Verdict.VALID:
                        reason = f", {found.reason}" if found.reason else ""
                        adoption.bad_files.append(f"{found.path}: {found.verdict}{reason}")
                    place = (place[0] + 1, 0)
                    continue
                place = (place[0], place[1] + 1)
                if stage == "choose":
                    self._choose(found, place, done)
                elif found.key is not None and found.key in self._best and self._best[found.key].place == place:
                    self._store(found, self._best[found.key], store)
        return adoption

    def refusal(self, found: FoundResult) -> str | None:
        """Return why a result cannot belong to the campaign, or None. found: must include the contents."""
        if not found.is_valid or found.result is None:
            return f"{found.verdict}, {found.reason}"
        if found.key is None or found.key not in self._campaign:
            return f"not a task of the campaign {self._campaign.name}"
        reason = layout_mismatch(self._campaign, found.result)
        return reason if reason is not None or self._keep_infeasible else self._too_close(found.key, found.result)

    def _choose(self, found: FoundResult, place: Place, done: Container[Key]) -> None:
        """Remember the place of the best result of each key."""
        adoption, best = self._adoption, self._best
        reason = self.refusal(found)
        if reason is not None or found.key is None or found.result is None:
            adoption.refuse(found, reason or "no result")
            return
        if found.key in done:
            adoption.present += 1
            return
        try:
            choice = Choice(place, found.digest, *self._campaign.recompute(found.key, *found.result.layout))
        except InputError as error:
            adoption.refuse(found, f"the wake engine rejects this layout: {error}")
            return
        if not (math.isfinite(choice.aep_gwh) and choice.aep_gwh > 0):
            adoption.refuse(found, f"the wake engine computes an AEP of {choice.aep_gwh:g} GWh for this layout")
            return
        off = abs(found.aep_gwh - choice.aep_gwh) / choice.aep_gwh
        if found.status == SUCCESS and not off <= SAME_AEP:
            facts = {"key": str(found.key), "file": str(found.path), "claimed_aep_gwh": found.aep_gwh}
            adoption.disagreeing.append({**facts, "aep_gwh": choice.aep_gwh, "relative": off})
        if found.key in best:
            adoption.not_the_best += 1  # this one or the earlier one is not the best, or both are equal
        if found.key not in best or choice.aep_gwh > best[found.key].aep_gwh:
            best[found.key] = choice

    def _too_close(self, key: Key, result: Result) -> str | None:
        """Return a reason if turbines are closer than a rotor diameter and the campaign forbids that, else None."""
        problem = self._campaign.problem(key.farm_idx, key.type_idx)
        diameter = self._campaign.physics.rotor_diameter_m(key.type_idx)
        spacing = problem.min_spacing_m(*result.layout)
        if spacing >= diameter or problem.violation(*result.layout).too_close_m.max() <= TOLERANCE_M:
            return None
        return (
            f"two turbines are {spacing:.6g} m apart, less than a rotor diameter ({diameter:g} m); to adopt it anyway, "
            "use --keep-infeasible"
        )

    def _store(self, found: FoundResult, choice: Choice, store: Callable[[Result], None]) -> None:
        """Store the chosen result of a key, unless its file has changed since."""
        if found.result is None or found.digest != choice.digest:
            self._adoption.refuse(found, "the file changed during the adoption; run the command again")
            return
        result = self._adopted(found.result, choice)
        store(result)
        self._adoption.results[result.key] = Brief.of(result.index_line())

    def _adopted(self, result: Result, choice: Choice) -> Result:
        """Return the result to be stored. A result that leeward made with the same settings is unchanged."""
        campaign, adoption, key = self._campaign, self._adoption, result.key
        is_own = result.origin == OWN and result.fingerprint == campaign.fingerprint(key.farm_idx, key.type_idx)
        if is_own and abs(result.aep_gwh - choice.aep_gwh) <= AEP_TOLERANCE * choice.aep_gwh:
            return result
        violation = campaign.problem(key.farm_idx, key.type_idx).violation(*result.layout)
        details: dict[str, Value] = {name: value for name, value in result.details.items() if name not in REPLACED}
        details |= {"wake_loss": choice.wake_loss, "min_spacing_m": choice.min_spacing_m}
        if result.origin == OWN:
            details["source_fingerprint"] = result.fingerprint
            details |= {f"source_{name}": details[name] for name in ("method_version",) if name in details}
        details["method_version"] = campaign.fingerprints.method_version  # the version that computed this AEP
        if result.status == NO_AEP:
            details["aep_source"] = "recomputed"
            adoption.recomputed += 1
        elif "aep_claimed" not in details or abs(result.aep_gwh - choice.aep_gwh) > SAME_AEP * choice.aep_gwh:
            details["aep_claimed"] = result.aep_gwh  # a repeated adoption keeps the AEP of the first file
        if not violation.is_feasible:
            details["violation_m"] = violation.worst_m
            adoption.violating[str(key)] = violation.worst_m
        diameter = result.rotor_diameter_m
        return replace(
            result,
            aep_gwh=choice.aep_gwh,
            rotor_diameter_m=campaign.physics.rotor_diameter_m(key.type_idx) if math.isnan(diameter) else diameter,
            fingerprint="",
            status=SUCCESS,
            origin=FOREIGN,
            details=details,
        )
