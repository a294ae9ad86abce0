"""Results of other origin, brought into a run directory: they count as done, and the rest is computed."""

import functools
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leeward.campaign import Campaign
from leeward.errors import InputError
from leeward.store.check import gather
from leeward.store.found import FoundFile, FoundResult
from leeward.store.index import Brief, IndexLines, index_line
from leeward.store.keys import Key
from leeward.store.paths import RunPaths
from leeward.store.reader import read_files
from leeward.store.schema import FOREIGN, NO_AEP, OWN, SUCCESS, Result, Value
from leeward.store.shard import store_result
from leeward.store.verdicts import Verdict

SAME_AEP = 1e-9  # relative

Place = tuple[int, int]  # number of a file among the sources, and of a result in it


@dataclass
class Adoption:
    """What became of the sources.

    lines: of adopted results, for the index. results: these, by key. recomputed: how many of them had no possible AEP.
    violating: adopted layouts that violate constraints of the campaign, and by how much (m). present: results that the
    run had already. worse: other layouts of a key of which a better one was adopted. refused, bad_files: with reasons.
    """

    lines: IndexLines = field(default_factory=IndexLines)
    results: dict[Key, Brief] = field(default_factory=dict)
    recomputed: int = 0
    violating: dict[Key, float] = field(default_factory=dict)
    present: int = 0
    worse: int = 0
    refused: list[str] = field(default_factory=list)
    bad_files: list[str] = field(default_factory=list)


def adopt(
    campaign: Campaign,
    paths: RunPaths,
    sources: Iterable[Path],
    done: Collection[Key],
    store: Callable[[Callable[[], Any]], Any],
    notice: Callable[[], None],
) -> Adoption:
    """Store what is good in the sources, which stay as they are.

    store: calls what writes, and has patience. notice: called now and then.

    Of several layouts of one key the best is taken: that with the highest AEP.
    """
    adoption = Adoption()
    files = [path for source in gather(sources) for path in source.files]
    best: dict[Key, tuple[float, Place]] = {}
    for turn in ("choose", "store"):
        place: Place = (0, 0)  # a file that is gone at the second turn changes no other place
        for found in read_files(files, contents=True):
            notice()
            if isinstance(found, FoundFile):
                if turn == "choose":
                    _note_file(adoption, found)
                place = (place[0] + 1, 0)
                continue
            place = (place[0], place[1] + 1)
            if turn == "choose":
                _choose(campaign, adoption, found, place, best, done)
            elif found.key is not None and found.result is not None and best.get(found.key, (0.0, None))[1] == place:
                result = _adopted(campaign, adoption, found.result)
                store(functools.partial(store_result, paths, result))
                line = index_line(result)
                adoption.lines.add(line)
                adoption.results[found.key] = Brief.of(line)
    return adoption


def _note_file(adoption: Adoption, found: FoundFile) -> None:
    if found.verdict is not Verdict.VALID:
        adoption.bad_files.append(f"{found.path}: {found.verdict}{', ' + found.reason if found.reason else ''}")


def _choose(
    campaign: Campaign,
    adoption: Adoption,
    found: FoundResult,
    place: Place,
    best: dict[Key, tuple[float, Place]],
    done: Collection[Key],
) -> None:
    """Remember where the best result of each key is."""
    reason = refusal(campaign, found)
    if reason is not None or found.key is None or found.result is None:
        adoption.refused.append(f"{found.path}: {found.name}: {reason or 'no result'}")
        return
    if found.key in done:
        adoption.present += 1
        return
    aep = found.aep if found.status == SUCCESS else campaign.recompute(found.key, *found.result.layout)[0]
    if found.key in best:
        adoption.worse += 1  # or the same once more
    if found.key not in best or aep > best[found.key][0]:
        best[found.key] = aep, place


def refusal(campaign: Campaign, found: FoundResult) -> str | None:
    """Why a result cannot be one of the campaign's; None if it can. It has to come with its contents."""
    if not found.is_valid or found.result is None:
        return f"{found.verdict}, {found.reason}"
    if found.key is None or found.key not in campaign:
        return f"not a task of the campaign {campaign.name}"
    farm, kind = found.key.farm_idx, found.key.type_idx
    turbines, diameter = campaign.n_turbines(farm, kind), campaign.diameter(kind)
    if found.n_turbines != turbines:
        return f"{found.n_turbines} turbines, and the campaign has {turbines} there"
    if found.diameter == found.diameter and abs(found.diameter - diameter) > 1e-6 * diameter:
        return f"a rotor of {found.diameter:g} m, and the campaign has {diameter:g} m there"
    problem = campaign.problem(farm, kind)
    violation = problem.violation(*found.result.layout)
    limit = float(problem.room.max())
    if violation.outside_m.max() > limit:  # not a matter of tolerance: another farm, or other coordinates
        return f"turbines up to {violation.outside_m.max():.6g} m outside the area: is it this farm's layout?"
    return None


def _adopted(campaign: Campaign, adoption: Adoption, result: Result) -> Result:
    """The result as it will be stored: one of leeward's own, with the same settings, stays what it is."""
    key = result.key
    if result.origin == OWN and result.fingerprint == campaign.fingerprint(key.farm_idx, key.type_idx):
        return result
    violation = campaign.problem(key.farm_idx, key.type_idx).violation(*result.layout)
    aep, wake_loss, spacing = campaign.recompute(key, *result.layout)
    details: dict[str, Value] = {**result.details, "min_spacing_m": spacing}
    if result.origin == OWN:
        details["source_fingerprint"] = result.fingerprint
    if result.status == NO_AEP:
        details |= {"aep_source": "recomputed", "wake_loss": wake_loss}
        adoption.recomputed += 1
    else:
        details["aep_source"] = "stored"
        if abs(result.aep - aep) <= SAME_AEP * aep:
            details["wake_loss"] = wake_loss
        else:  # another wake model, or another site: what it lost to wakes is not known
            details["aep_here"] = aep
        aep = result.aep
    if not violation.is_feasible:
        details["violation_m"] = violation.worst_m
        adoption.violating[key] = violation.worst_m
    diameter = result.diameter if result.diameter == result.diameter else campaign.diameter(key.type_idx)
    facts = {"aep": aep, "status": SUCCESS, "origin": FOREIGN, "fingerprint": "", "diameter": diameter}
    return replace(result, **facts, details=details)  # type: ignore[arg-type]


def refuse_bad_sources(sources: Iterable[Path]) -> None:
    """A name that is not there is a mistake, not an empty source."""
    for source in sources:
        if not source.exists():
            raise InputError(f"{source}: no such file or folder to adopt from")
